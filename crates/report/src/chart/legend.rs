//! Draws legends: what each colour, pattern and size means.

use super::svg_pen::{Anchor, Coordinate, Pen, shortened, text_width};

const ROW_HEIGHT: f64 = 20.0;
const GAP: f64 = 16.0;
const MAX_LABEL: usize = 30;
/// Number of series in the style sheet; higher numbers repeat them.
const SERIES: usize = 8;

/// The symbol in front of a label.
pub(super) enum Swatch {
    Line(usize),
    Bar(usize),
    Box(&'static str),
    Bubble {
        class: &'static str,
        radius: f64,
    },
    Diagonal,
    /// A short line with a style class.
    Rule(&'static str),
}

impl Swatch {
    fn width(&self) -> f64 {
        match self {
            Swatch::Line(_) | Swatch::Diagonal | Swatch::Rule(_) => 26.0,
            Swatch::Bar(_) | Swatch::Box(_) => 12.0,
            Swatch::Bubble { radius, .. } => (2.0 * radius).max(8.0),
        }
    }
}

/// One entry of a legend.
pub(super) struct Entry {
    pub(super) swatch: Swatch,
    pub(super) label: String,
}

/// Returns the style class of a series.
pub(super) fn series_class(series: usize) -> String {
    format!("s{}", series % SERIES)
}

/// Draws the entries in rows from the top left and returns the height of the legend in pixels.
pub(super) fn draw_legend(pen: &mut Pen, entries: &[Entry], width: f64) -> f64 {
    let mut x = 0.0;
    let mut y = 12.0;
    for entry in entries {
        let label = shortened(&entry.label, MAX_LABEL);
        let swatch_width = entry.swatch.width();
        let entry_width = swatch_width + 6.0 + text_width(&label);
        if x > 0.0 && x + entry_width > width {
            x = 0.0;
            y += ROW_HEIGHT;
        }
        draw_swatch(pen, &entry.swatch, x, y);
        pen.text("label", [x + swatch_width + 6.0, y + 4.0], Anchor::Start, &label);
        x += entry_width + GAP;
    }
    if entries.is_empty() { 0.0 } else { y + ROW_HEIGHT / 2.0 }
}

fn draw_swatch(pen: &mut Pen, swatch: &Swatch, x: f64, y: f64) {
    let width = swatch.width();
    match swatch {
        Swatch::Line(series) => {
            pen.line(&format!("line {}", series_class(*series)), [x, y], [x + width, y]);
        }
        Swatch::Bar(series) => {
            pen.rectangle(&format!("bar {}", series_class(*series)), [x, y - width / 2.0], [width, width]);
        }
        Swatch::Box(class) => pen.rectangle(class, [x, y - width / 2.0], [width, width]),
        Swatch::Bubble { class, radius } => {
            let [x, y, radius] = [x + width / 2.0, y, *radius].map(Coordinate);
            pen.write(format_args!("<circle class=\"bubble {class}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"/>\n"));
        }
        Swatch::Rule(class) => pen.line(class, [x, y], [x + width, y]),
        Swatch::Diagonal => pen.line("diagonal", [x + 2.0, y + 7.0], [x + width - 2.0, y - 7.0]),
    }
}
