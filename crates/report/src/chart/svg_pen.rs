//! Writes elements of SVG: lines, rectangles, texts, coordinates, escaped text.

use std::fmt::{Display, Write as _};

/// Estimates the width of a label in pixels. Characters of DejaVu Sans, the widest font in the style sheet, are on
/// average 0.6 times as wide as high; an `@`, which names of users in public logs contain, and characters of East Asian scripts are
/// as wide as high.
pub(super) fn text_width(text: &str) -> f64 {
    let is_wide = |c| c == '@' || ('\u{2e80}'..='\u{ffef}').contains(&c);
    text.chars().map(|c| if is_wide(c) { 12.0 } else { 7.4 }).sum()
}

/// Cuts `text` to at most `max` characters, the last of which is then an ellipsis.
pub(super) fn shortened(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    text.chars().take(max.saturating_sub(1)).chain(['…']).collect()
}

/// The part of a text that lies at its coordinates (SVG's `text-anchor`).
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
    /// Writes formatted text; writing to a string cannot fail.
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

/// A coordinate written with at most two decimals: a hundredth of a pixel, so that curves stay smooth.
#[derive(Clone, Copy)]
pub(super) struct Coordinate(pub(super) f64);

impl Display for Coordinate {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Positions on a scale are finite; 0 guards against a file that no viewer can open.
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

/// Text escaped for the content of an element or for an attribute in double quotes. Characters that XML does not
/// allow (most control characters) become the replacement character.
pub(crate) struct Escaped<'a>(pub(crate) &'a str);

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
    fn coordinates_have_at_most_two_decimals() {
        let text = |value| Coordinate(value).to_string();
        assert_eq!([text(1.0), text(1.5), text(1.049), text(-0.004), text(-2.25)], ["1", "1.5", "1.05", "0", "-2.25"]);
        assert_eq!(text(f64::NAN), "0");
    }

    #[test]
    fn escaped_text_contains_no_markup() {
        assert_eq!(
            Escaped("<a b=\"c\" d='e'>&\u{1}\n").to_string(),
            "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;\u{fffd} "
        );
    }
}
