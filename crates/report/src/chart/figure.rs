//! A finished drawing, and the pen it is drawn with.

use std::fmt::{Display, Write as _};

const STYLE: &str = include_str!("../../assets/chart.css");

/// Around a figure of its own: the line above it that holds its title, and the margin at its sides.
const TITLE_HEIGHT: f64 = 34.0;
const MARGIN: f64 = 12.0;

/// The style sheet of all figures, which a page that shows them inline needs once.
pub fn style() -> &'static str {
    STYLE
}

/// What a figure is called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caption {
    /// Fit for a file name, unique in the report: `user-waits-drf-0.5`.
    pub name: String,
    /// One line.
    pub title: String,
    /// What is to be seen, for readers who do not see it.
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
    /// The figure's file name without an ending.
    pub fn name(&self) -> &str {
        &self.caption.name
    }

    /// The figure's title.
    pub fn title(&self) -> &str {
        &self.caption.title
    }

    /// An `svg` element for a page that holds the style sheet of the figures.
    pub fn inline(&self) -> String {
        let (width, height) = (Coordinate(self.width), Coordinate(self.height));
        format!("{}\n{}</svg>\n", self.head(&format!("0 0 {width} {height}"), ""), self.body)
    }

    /// A file of its own: with its style, a margin, and its title above it.
    pub fn standalone(&self) -> String {
        let corner = format!("x=\"-{MARGIN}\" y=\"-{TITLE_HEIGHT}\"");
        let (width, height) = (Coordinate(self.width + 2.0 * MARGIN), Coordinate(self.height + TITLE_HEIGHT));
        let size = format!(" width=\"{width}\" height=\"{height}\"");
        let head = self.head(&format!("-{MARGIN} -{TITLE_HEIGHT} {width} {height}"), &size);
        // Titles name policies and files, which may be long: they shrink rather than leave the paper.
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

/// About how wide `text` is at the size of labels: characters of DejaVu Sans, the widest of the fonts
/// named in the style sheet, are 0.6 of their height on average.
pub(super) fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * 7.4
}

/// `text`, or its beginning with an ellipsis if it has more than `most` characters.
pub(super) fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// Where a text is held.
#[derive(Clone, Copy, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// Writes SVG elements.
#[derive(Default)]
pub(super) struct Pen {
    pub(super) body: String,
}

impl Pen {
    /// Writes anything; writing to a string does not fail.
    pub(super) fn write(&mut self, text: std::fmt::Arguments<'_>) {
        let _ = self.body.write_fmt(text);
    }

    pub(super) fn line(&mut self, class: &str, [x1, y1]: [f64; 2], [x2, y2]: [f64; 2]) {
        let [x1, y1, x2, y2] = [x1, y1, x2, y2].map(Coordinate);
        self.write(format_args!("<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>\n"));
    }

    pub(super) fn rectangle(&mut self, class: &str, [x, y]: [f64; 2], [width, height]: [f64; 2]) {
        let [x, y, width, height] = [x, y, width, height].map(Coordinate);
        self.write(format_args!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>\n"
        ));
    }

    pub(super) fn text(&mut self, class: &str, [x, y]: [f64; 2], anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let [x, y] = [x, y].map(Coordinate);
        self.write(format_args!("<text class=\"{class}\" x=\"{x}\" y=\"{y}\"{anchor}>{}</text>\n", Escaped(text)));
    }
}

/// A coordinate with two decimals at most: a hundredth of a pixel, so that curves stay curves.
#[derive(Clone, Copy)]
pub(super) struct Coordinate(pub(super) f64);

impl Display for Coordinate {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Places on a scale are finite; 0 only guards against a figure that no viewer opens.
        let hundredths = if self.0.is_finite() { (self.0 * 100.0).round() as i64 } else { 0 };
        let (whole, rest) = (hundredths.abs() / 100, hundredths.abs() % 100);
        let sign = if hundredths < 0 { "-" } else { "" };
        match rest {
            0 => write!(formatter, "{sign}{whole}"),
            _ if rest % 10 == 0 => write!(formatter, "{sign}{whole}.{}", rest / 10),
            _ => write!(formatter, "{sign}{whole}.{rest:02}"),
        }
    }
}

/// Text for the content of an element or for an attribute in double quotes. Characters that XML does
/// not allow (most control characters) become the replacement character.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => formatter.write_str("&amp;")?,
                '<' => formatter.write_str("&lt;")?,
                '>' => formatter.write_str("&gt;")?,
                '"' => formatter.write_str("&quot;")?,
                '\'' => formatter.write_str("&#39;")?,
                '\t' | '\n' | '\r' => formatter.write_char(' ')?,
                '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => formatter.write_char('\u{fffd}')?,
                _ => formatter.write_char(character)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_keep_hundredths_and_no_more() {
        let text = |value| Coordinate(value).to_string();
        assert_eq!([text(1.0), text(1.5), text(1.049), text(-0.004), text(-2.25)], ["1", "1.5", "1.05", "0", "-2.25"]);
        assert_eq!(text(f64::NAN), "0");
    }

    #[test]
    fn no_text_leaves_its_element() {
        assert_eq!(
            Escaped("<a b=\"c\" d='e'>&\u{1}\n").to_string(),
            "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;\u{fffd} "
        );
    }
}
