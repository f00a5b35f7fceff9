//! Parses text in columns with a header line, as `squeue -O`, `sacctmgr -P`, `sshare -P` and `sprio -o` print it.

use crate::error::{TextError, quoted};
use crate::parse_values::{expected_number, number};

/// The column separator for commands that accept any: no name, reason or feature contains it.
pub(crate) const SEPARATOR: char = '\u{1f}';

/// A table whose columns are accessed by name.
pub(crate) struct Table<'a> {
    source: &'static str,
    delimiter: char,
    headers: Vec<&'a str>,
    lines: Vec<(usize, &'a str)>,
}

impl<'a> Table<'a> {
    /// Finds the header, the first line that is not blank.
    pub(crate) fn of(source: &'static str, text: &'a str, needed: &[&str]) -> Result<Table<'a>, TextError> {
        let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
        let mut lines = lines.filter(|(_, line)| !line.trim().is_empty());
        let expected = || format!("a header line with {}", needed.join(", "));
        let error = |line, column, found| TextError { source_name: source, line, column, found, expected: expected() };
        let Some((number, header)) = lines.next() else { return Err(error(1, 1, "no text".into())) };
        let delimiter = if header.contains(SEPARATOR) { SEPARATOR } else { '|' };
        let headers: Vec<&str> = header.split(delimiter).map(str::trim).collect();
        if needed.iter().any(|name| !headers.iter().any(|h| h.eq_ignore_ascii_case(name))) {
            return Err(error(number, 1, quoted(header)));
        }
        Ok(Table { source, delimiter, headers, lines: lines.collect() })
    }

    /// Returns the names of the columns.
    pub(crate) fn headers(&self) -> &[&'a str] {
        &self.headers
    }

    /// Returns the rows, each with as many fields as the header.
    pub(crate) fn rows(&self) -> impl Iterator<Item = Result<Row<'_, 'a>, TextError>> {
        self.lines.iter().map(|&(line, text)| {
            let mut fields = Vec::with_capacity(self.headers.len());
            let mut column = 1;
            for field in text.split(self.delimiter) {
                fields.push((column, field));
                column += field.len() + self.delimiter.len_utf8();
            }
            if fields.len() == self.headers.len() {
                return Ok(Row { table: self, line, fields });
            }
            let found = format!("{} columns", fields.len());
            let expected = format!("{} as in the header", self.headers.len());
            Err(TextError { source_name: self.source, line, column: text.len() + 1, found, expected })
        })
    }
}

/// A row of a [`Table`].
pub(crate) struct Row<'t, 'a> {
    table: &'t Table<'a>,
    line: usize,
    fields: Vec<(usize, &'a str)>,
}

impl<'a> Row<'_, 'a> {
    /// Returns the field of a column, with blanks; `None` if there is no such column.
    pub(crate) fn raw(&self, name: &str) -> Option<Field<'a>> {
        let at = self.table.headers.iter().position(|h| h.eq_ignore_ascii_case(name))?;
        let (column, text) = self.fields[at];
        Some(Field { source: self.table.source, line: self.line, column, text })
    }

    /// Returns the value in a column; `None` if it is missing or empty, in any of Slurm's notations.
    pub(crate) fn get(&self, name: &str) -> Option<Field<'a>> {
        self.raw(name)?.non_empty()
    }

    /// Returns the value in a required column.
    pub(crate) fn required(&self, name: &str, expected: &str) -> Result<Field<'a>, TextError> {
        let field = self.raw(name).unwrap_or(Field { source: self.table.source, line: self.line, column: 1, text: "" });
        field.non_empty().ok_or_else(|| field.error(expected))
    }
}

/// A piece of text with its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field<'a> {
    pub(crate) source: &'static str,
    pub(crate) line: usize,
    /// The byte in the line, counted from 1.
    pub(crate) column: usize,
    pub(crate) text: &'a str,
}

impl<'a> Field<'a> {
    /// Trims blanks; `None` if the field is empty.
    pub(crate) fn non_empty(mut self) -> Option<Field<'a>> {
        let begin = self.text.len() - self.text.trim_start().len();
        self.column += begin;
        self.text = self.text.trim();
        let nothing = ["", "(null)", "N/A", "None", "NONE", "Unknown"];
        (!nothing.contains(&self.text)).then_some(self)
    }

    /// Converts the field with `read`.
    pub(crate) fn read<T>(self, expected: &str, read: impl FnOnce(&'a str) -> Option<T>) -> Result<T, TextError> {
        read(self.text).ok_or_else(|| self.error(expected))
    }

    /// Converts the field to a whole number.
    pub(crate) fn whole(self) -> Result<u64, TextError> {
        number(self.text).ok_or_else(|| self.error(&expected_number(self.text)))
    }

    /// Returns an error at the position of the field.
    pub(crate) fn error(&self, expected: &str) -> TextError {
        TextError {
            source_name: self.source,
            line: self.line,
            column: self.column,
            found: quoted(self.text),
            expected: expected.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_by_name_and_errors_have_positions() {
        let table = Table::of("squeue", "\nJOBID|USER|X\n7| ann|N/A\n", &["JobId"]).unwrap();
        let row = table.rows().next().unwrap().unwrap();
        assert_eq!(row.get("user").map(|f| (f.line, f.column, f.text)), Some((3, 4, "ann")));
        assert_eq!((row.get("x").is_none(), row.get("y").is_none()), (true, true));
        let error = row.required("user", "").unwrap().error("a number").to_string();
        assert_eq!(error, "squeue:3:4: found \"ann\", expected a number");
        assert_eq!(row.required("Y", "y").unwrap_err().to_string(), "squeue:3:1: found nothing, expected y");
    }

    #[test]
    fn the_separator_without_ambiguity_is_preferred() {
        let table = Table::of("squeue", "A\u{1f}B\u{1f}\nx|y\u{1f}z\u{1f}\n", &[]).unwrap();
        assert_eq!(table.rows().next().unwrap().unwrap().get("A").map(|f| f.text), Some("x|y"));
        let short = Table::of("squeue", "A|B\n1\n", &[]).unwrap();
        let error = short.rows().next().unwrap().err().unwrap().to_string();
        assert_eq!(error, "squeue:2:2: found 1 columns, expected 2 as in the header");
        assert!(Table::of("squeue", " \n", &["A"]).is_err());
        assert!(Table::of("squeue", "B\n", &["A"]).is_err());
    }
}
