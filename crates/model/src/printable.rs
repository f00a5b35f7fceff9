//! Text from files and from other machines, made safe to print.
//!
//! A name in a trace may hold escape sequences that recolour a terminal, move its cursor or retitle its window, line
//! ends that forge lines of a log, and marks that reverse the direction of writing. Printed text shows them as escapes.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Returns whether a character changes how other text appears, instead of appearing itself: a control character, a line
/// separator, or a mark that overrides the direction of writing.
pub fn is_control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Replaces each control character by an escape such as `\n`, `\x1b` or `\u{202e}`; for one cell or name. Other text,
/// backslashes included, is unchanged.
///
/// ```
/// use evenhand_model::printable::printable;
/// assert_eq!(printable("DOMAIN\\ann"), "DOMAIN\\ann");
/// assert_eq!(printable("\u{1b}[2Jann\nroot"), "\\x1b[2Jann\\nroot");
/// ```
pub fn printable(text: &str) -> Cow<'_, str> {
    escape(text, is_control)
}

/// Does the same, but keeps line ends; for text of several lines.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escape(text, |c| c != '\n' && is_control(c))
}

fn escape(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    let Some(first) = text.find(&is_escaped) else { return Cow::Borrowed(text) };
    let mut escaped = text[..first].to_string();
    for c in text[first..].chars() {
        if !is_escaped(c) {
            escaped.push(c);
            continue;
        }
        // Writing to a string does not fail.
        let _ = match c {
            '\t' | '\n' | '\r' => write!(escaped, "{}", c.escape_default()),
            c if u32::from(c) < 0x100 => write!(escaped, "\\x{:02x}", u32::from(c)),
            c => write!(escaped, "\\u{{{:x}}}", u32::from(c)),
        };
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn whatever_controls_a_terminal_is_escaped() {
        for (text, expected) in [
            ("\u{1b}]0;title\u{7}", "\\x1b]0;title\\x07"),
            ("\u{9b}2J", "\\x9b2J"),
            ("a\u{7f}\u{0}", "a\\x7f\\x00"),
            ("\u{202e}nna", "\\u{202e}nna"),
            ("a\tb\r\nc\u{2028}d", "a\\tb\\r\\nc\\u{2028}d"),
            ("été 東京 \u{202f}\\", "été 東京 \u{202f}\\"),
        ] {
            assert_eq!(printable(text), expected);
        }
        assert_eq!(printable_lines("a\r\nb\u{1b}"), "a\\r\nb\\x1b");
    }

    proptest! {
        #[test]
        fn no_control_character_is_left(text in "\\PC{0,5}[\\x00-\\x9f\u{202a}-\u{202e}]{0,5}\\PC{0,5}") {
            prop_assert!(!printable(&text).contains(is_control));
            prop_assert!(!printable_lines(&text).replace('\n', "").contains(is_control));
            prop_assert_eq!(printable_lines(&text).matches('\n').count(), text.matches('\n').count());
        }
    }
}
