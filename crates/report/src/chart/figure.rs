//! A finished SVG drawing with its caption.

use super::svg_pen::{Coordinate, Escaped, text_width};

const STYLE: &str = include_str!("../../assets/chart.css");

/// Height of the title line above a standalone figure, and margin at its sides, in pixels.
const TITLE_HEIGHT: f64 = 34.0;
const MARGIN: f64 = 12.0;

/// Returns the style sheet of all figures; a page with inline figures must contain it once.
pub fn style() -> &'static str {
    STYLE
}

/// The name, title and description of a figure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caption {
    /// Name of the figure's files without extension, unique in the report: `user-waits-drf-0.5`.
    pub name: String,
    /// Title, one line.
    pub title: String,
    /// Description of the figure's content for screen readers.
    pub description: String,
}

/// A finished drawing.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    pub(super) caption: Caption,
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) body: String,
}

impl Figure {
    /// Returns the figure's file name without extension.
    pub fn name(&self) -> &str {
        &self.caption.name
    }

    /// Returns the figure's title.
    pub fn title(&self) -> &str {
        &self.caption.title
    }

    /// Returns the `viewBox` of the inline drawing.
    pub(super) fn view(&self) -> String {
        format!("0 0 {} {}", Coordinate(self.width), Coordinate(self.height))
    }

    /// Returns an `svg` element for a page that contains the [style sheet](style) of the figures.
    pub fn inline(&self) -> String {
        format!("{}\n{}</svg>\n", self.head(&self.view(), ""), self.body)
    }

    /// Returns a standalone SVG file with the style sheet, a margin, and the title above the drawing.
    pub fn standalone(&self) -> String {
        let corner = format!("x=\"-{MARGIN}\" y=\"-{TITLE_HEIGHT}\"");
        let (width, height) = (Coordinate(self.width + 2.0 * MARGIN), Coordinate(self.height + TITLE_HEIGHT));
        let size = format!(" width=\"{width}\" height=\"{height}\"");
        let head = self.head(&format!("-{MARGIN} -{TITLE_HEIGHT} {width} {height}"), &size);
        // Titles contain names of policies and files, which may be long: such titles shrink to the figure's width.
        let squeeze = if text_width(&self.caption.title) * 1.25 > self.width {
            format!(" textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\"", Coordinate(self.width))
        } else {
            String::new()
        };
        format!(
            "{head}\n<style>{STYLE}</style>\n<rect class=\"paper\" {corner} width=\"{width}\" height=\"{height}\"/>\n\
             <text class=\"headline\" x=\"0\" y=\"-12\"{squeeze}>{}</text>\n{}</svg>\n",
            Escaped(&self.caption.title),
            self.body
        )
    }

    fn head(&self, view: &str, size: &str) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" role=\"img\"{size} viewBox=\"{view}\" \
             aria-labelledby=\"{name}-title {name}-description\">\n\
             <title id=\"{name}-title\">{}</title>\n<desc id=\"{name}-description\">{}</desc>",
            Escaped(&self.caption.title),
            Escaped(&self.caption.description),
            name = Escaped(&self.caption.name),
        )
    }
}
