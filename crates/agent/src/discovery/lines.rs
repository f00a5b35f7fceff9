//! Files of lines with fields between commas or blanks.

use std::ops::Range;

use evenhand_documents::{DocumentError, Source, positive};

/// One field and where it stands in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field<'t> {
    pub(crate) text: &'t str,
    at: usize,
}

impl<'t> Field<'t> {
    pub(crate) fn span(&self) -> Range<usize> {
        self.at..self.at + self.text.len()
    }

    /// That something is wrong with it.
    pub(crate) fn error(&self, source: &Source, problem: impl AsRef<str>) -> DocumentError {
        source.error(self.span(), problem.as_ref())
    }

    /// A number greater than 0.
    pub(crate) fn positive(&self, source: &Source, what: &str) -> Result<f64, DocumentError> {
        positive(self.text).map(|q| q.to_f64()).map_err(|problem| self.error(source, format!("{what}: {problem}")))
    }
}

/// The fields of each line that has any: between commas if it has a comma, else between blanks. What follows a
/// `#` at the beginning or after a blank is a comment. A field may be empty between commas.
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
    fn commas_or_blanks() {
        let text = "# heading\na b  c # rest\r\n\n x y , , z#1\n";
        let found: Vec<Vec<&str>> = lines(text).map(|l| l.iter().map(|f| f.text).collect()).collect();
        assert_eq!(found, [vec!["a", "b", "c"], vec!["x y", "", "z#1"]]);
        assert_eq!(lines(text).last().unwrap()[2].span(), 35..38);
    }

    proptest! {
        #[test]
        fn fields_are_where_they_say(text in "[ab,# \t\r\n\u{e9}]{0,40}") {
            for field in lines(&text).flatten() {
                prop_assert_eq!(&text[field.span()], field.text);
                prop_assert!(!field.text.contains('\n') && field.text.trim() == field.text);
            }
        }
    }
}
