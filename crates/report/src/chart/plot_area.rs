//! The parts that all charts share: the legend at the top and the plot area with its axes below it.

use super::figure::{Caption, Figure};
use super::legend::{Entry, draw_legend};
use super::scale::{Scale, Spacing};
use super::svg_pen::{Anchor, Pen, shortened, text_width};
use super::ticks::{Tick, Unit, ticks};

/// Width of every figure in pixels, so that figures line up in a page.
pub(super) const WIDTH: f64 = 560.0;

/// Width of a figure that takes the whole page, and height of its plot area.
pub(super) const WIDE: [f64; 2] = [960.0, 420.0];

/// Margin at the right in pixels: for half of the last label, at least for a bubble at the edge.
const RIGHT: f64 = 18.0;
const TICK_GAP: f64 = 7.0;
/// How much wider labels may be than estimated: a page for a phone has larger ones.
const WIDER: f64 = 1.2;
const TEXT_HEIGHT: f64 = 12.0;
const MAX_LANE_LABEL: usize = 16;

/// One axis: its quantity, its labels and its scale.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Name of the quantity, without the unit of time or `%`, which the axis appends.
    pub title: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Range and spacing.
    pub scale: Scale,
}

impl Axis {
    /// Returns the ticks, and the title with the unit of the labels.
    fn labelled(&self) -> (Vec<Tick>, String) {
        let (ticks, unit) = ticks(&self.scale, self.unit);
        let title = if unit.is_empty() { self.title.clone() } else { format!("{} ({unit})", self.title) };
        (ticks, title)
    }
}

/// The horizontal axis of a plot area.
pub(super) enum Horizontal<'a> {
    /// An axis with numbers.
    Axis(&'a Axis),
    /// A title; the chart itself labels the positions.
    Named(&'a str),
}

/// A plot area with drawn axes, ready for the data. Edges are in pixels.
pub(super) struct PlotArea {
    pub(super) pen: Pen,
    width: f64,
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
    y: Scale,
}

impl PlotArea {
    /// Draws the legend and the axes. `height` is the height of the plot area.
    pub(super) fn new(x: Horizontal<'_>, y: &Axis, height: f64, legend: &[Entry]) -> PlotArea {
        PlotArea::sized(x, y, [WIDTH, height], legend)
    }

    /// Draws the legend and the axes in a figure of this width, with a plot area of this height.
    pub(super) fn sized(x: Horizontal<'_>, y: &Axis, [width, height]: [f64; 2], legend: &[Entry]) -> PlotArea {
        let mut pen = Pen::default();
        let (y_ticks, y_title) = y.labelled();
        let label_width = y_ticks.iter().map(|tick| text_width(&tick.label)).fold(0.0, f64::max);
        let left = (WIDER * label_width + TICK_GAP + 4.0).max(36.0);
        let last_label = match x {
            Horizontal::Axis(axis) => axis.labelled().0.pop().map_or(0.0, |tick| text_width(&tick.label)),
            Horizontal::Named(_) => 0.0,
        };
        let right = width - RIGHT.max(last_label / 2.0);
        let legend_height = draw_legend(&mut pen, legend, width);
        let top = legend_height + 34.0;
        let bottom = top + height;
        pen.text("axis-title vertical", [0.0, top - 14.0], Anchor::Start, &y_title);
        let mut plot = PlotArea { pen, width, left, right, top, bottom, y: y.scale };
        for tick in &y_ticks {
            let at = plot.y(tick.value);
            plot.pen.line(grid_class(&y.scale, tick), [left, at], [right, at]);
            plot.pen.text("tick", [left - TICK_GAP, at + 4.0], Anchor::End, &tick.label);
        }
        match x {
            Horizontal::Axis(axis) => plot.horizontal(axis),
            Horizontal::Named(title) => plot.x_title(title),
        }
        plot
    }

    /// Draws the legend, labelled lanes of the given heights, and a horizontal axis with its grid; also returns the
    /// tops of the lanes. The lowest `below` pixels of a height are a gap under the lane; the label is centred on
    /// the rest.
    pub(super) fn with_lanes(
        x: &Axis,
        labels: &[&str],
        heights: &[f64],
        below: f64,
        legend: &[Entry],
    ) -> (PlotArea, Vec<f64>) {
        let mut pen = Pen::default();
        let labels: Vec<String> = labels.iter().map(|label| shortened(label, MAX_LANE_LABEL)).collect();
        let label_width = labels.iter().map(|label| text_width(label)).fold(0.0, f64::max);
        // Whole pixels, so that bars have crisp edges.
        let left = (WIDER * label_width + TICK_GAP + 4.0).max(36.0).ceil();
        let last_label = x.labelled().0.pop().map_or(0.0, |tick| text_width(&tick.label));
        let right = (WIDTH - RIGHT.max(last_label / 2.0)).floor();
        let legend_height = draw_legend(&mut pen, legend, WIDTH);
        let top = legend_height + 14.0;
        let bottom = top + heights.iter().sum::<f64>();
        let y = Scale::fixed(0.0, 1.0, Unit::Number);
        let mut plot = PlotArea { pen, width: WIDTH, left, right, top, bottom, y };
        for tick in x.labelled().0.iter().filter(|tick| tick.value > x.scale.low()) {
            let at = plot.x(&x.scale, tick.value);
            plot.pen.line("grid", [at, top], [at, bottom]);
        }
        let mut tops = Vec::new();
        let mut lane_top = top;
        for (label, height) in labels.iter().zip(heights) {
            let middle = lane_top + (height - below) / 2.0;
            plot.pen.text("label", [left - TICK_GAP, middle + 4.0], Anchor::End, label);
            tops.push(lane_top);
            lane_top += height;
        }
        plot.horizontal(x);
        (plot, tops)
    }

    fn horizontal(&mut self, axis: &Axis) {
        let (ticks, title) = axis.labelled();
        let vertical_grid = axis.scale.spacing() == Spacing::LogWithZero;
        for tick in &ticks {
            let at = self.x(&axis.scale, tick.value);
            if vertical_grid {
                self.pen.line(grid_class(&axis.scale, tick), [at, self.top], [at, self.bottom]);
            } else {
                self.pen.line("axis", [at, self.bottom], [at, self.bottom + 4.0]);
            }
            self.pen.text("tick", [at, self.bottom + TICK_GAP + TEXT_HEIGHT], Anchor::Middle, &tick.label);
        }
        self.pen.line("axis", [self.left, self.bottom], [self.right, self.bottom]);
        self.x_title(&title);
    }

    fn x_title(&mut self, title: &str) {
        let middle = (self.left + self.right) / 2.0;
        self.pen.text("axis-title", [middle, self.bottom + 42.0], Anchor::Middle, title);
    }

    /// Returns the horizontal position of a value on `scale`, in pixels.
    pub(super) fn x(&self, scale: &Scale, value: f64) -> f64 {
        self.left + scale.place(value) * (self.right - self.left)
    }

    /// Returns the vertical position of a value, in pixels.
    pub(super) fn y(&self, value: f64) -> f64 {
        self.bottom - self.y.place(value) * (self.bottom - self.top)
    }

    /// Returns the finished figure.
    pub(super) fn finish(self, caption: &Caption) -> Figure {
        Figure { caption: caption.clone(), width: self.width, height: self.bottom + 54.0, body: self.pen.body }
    }
}

/// Returns the style class of a grid line: the line at zero is an axis; on a logarithmic scale it has a style of its
/// own, since zero has a separate position there.
fn grid_class(scale: &Scale, tick: &Tick) -> &'static str {
    match scale.spacing() {
        Spacing::Linear if tick.value == 0.0 => "axis",
        Spacing::LogWithZero if tick.value == 0.0 => "zero",
        _ => "grid",
    }
}
