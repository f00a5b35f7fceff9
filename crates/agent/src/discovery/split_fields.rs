//! Splits files of lines into fields separated by commas or white space.

use std::ops::Range;

use evenhand_documents::{DocumentError, Source, positive};

/// A field and its position in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field<'t> {
    pub(crate) text: &'t str,
    at: usize,
}

impl<'t> Field<'t> {
    pub(crate) fn span(&self) -> Range<usize> {
        self.at..self.at + self.text.len()
    }

    /// Creates an error at the position of this field.
    pub(crate) fn error(&self, source: &Source, problem: impl AsRef<str>) -> DocumentError {
        source.error(self.span(), problem.as_ref())
    }

    /// Parses a number greater than 0.
    pub(crate) fn positive(&self, source: &Source, what: &str) -> Result<f64, DocumentError> {
        positive(self.text).map(|q| q.to_f64()).map_err(|problem| self.error(source, format!("{what}: {problem}")))
    }
}

/// Splits each non-empty line into fields: at commas if it has any, else at white space. A `#` at the beginning or
/// after white space starts a comment. A field between commas may be empty.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = Vec<Field<'_>>> {
    let mut start = 0;
    let lines = text.split_inclusive('\n').map(move |line| {
        let at = start;
        start += line.len();
        (at, line)
    });
    lines.filter_map(|(at, line)| {
        let comment = line
            .char_indices()
            .find(|&(i, c)| c == '#' && line[..i].chars().next_back().is_none_or(char::is_whitespace));
        let line = &line[..comment.map_or(line.len(), |(i, _)| i)];
        if line.trim().is_empty() {
            return None;
        }
        let piece = |part: &str| part.as_ptr() as usize - line.as_ptr() as usize;
        let field = |part: &'_ str| (at + piece(part), part.len());
        let found: Vec<(usize, usize)> = if line.contains(',') {
            line.split(',').map(|part| field(part.trim())).collect()
        } else {
            line.split_whitespace().map(field).collect()
        };
        Some(found.into_iter().map(|(at, len)| Field { text: &text[at..at + len], at }).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_are_separated_by_commas_or_white_space() {
        let text = "# heading\na b  c # rest\r\n\n x y , , z#1\n";
        let found: Vec<Vec<&str>> = lines(text).map(|l| l.iter().map(|f| f.text).collect()).collect();
        assert_eq!(found, [vec!["a", "b", "c"], vec!["x y", "", "z#1"]]);
        assert_eq!(lines(text).last().unwrap()[2].span(), 35..38);
    }

    proptest! {
        #[test]
        fn fields_have_their_position_in_the_text(text in "[ab,# \t\r\n\u{e9}]{0,40}") {
            for field in lines(&text).flatten() {
                prop_assert_eq!(&text[field.span()], field.text);
                prop_assert!(!field.text.contains('\n') && field.text.trim() == field.text);
            }
        }
    }
}
