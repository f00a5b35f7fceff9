//! Text in columns under a header line: what `squeue -O`, `sacctmgr -P`, `sshare -P` and `sprio -o` print.

use crate::error::{TextError, quoted};

/// What parts the columns of commands that take any separator: no name, reason or feature holds it.
pub(crate) const SEPARATOR: char = '\u{1f}';

/// A table that is read by the names of its columns.
pub(crate) struct Table<'a> {
    source: &'static str,
    delimiter: char,
    headers: Vec<&'a str>,
    lines: Vec<(usize, &'a str)>,
}

impl<'a> Table<'a> {
    /// Finds the header: the first line that is not blank.
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

    /// The rows, each with as many fields as the header.
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
            let expected = format!("{}, as the header has", self.headers.len());
            Err(TextError { source_name: self.source, line, column: text.len() + 1, found, expected })
        })
    }
}

/// One row of a [`Table`].
pub(crate) struct Row<'t, 'a> {
    table: &'t Table<'a>,
    line: usize,
    fields: Vec<(usize, &'a str)>,
}

impl<'a> Row<'_, 'a> {
    /// The field of a column, with its blanks; `None` if there is no such column.
    pub(crate) fn raw(&self, name: &str) -> Option<Field<'a>> {
        let at = self.table.headers.iter().position(|h| h.eq_ignore_ascii_case(name))?;
        let (column, text) = self.fields[at];
        Some(Field { source: self.table.source, line: self.line, column, text })
    }

    /// What a column says; `None` if it is absent or says nothing, in any of Slurm's words for that.
    pub(crate) fn get(&self, name: &str) -> Option<Field<'a>> {
        self.raw(name)?.said()
    }

    /// What a column must say.
    pub(crate) fn needed(&self, name: &str, expected: &str) -> Result<Field<'a>, TextError> {
        let field = self.raw(name).unwrap_or(Field { source: self.table.source, line: self.line, column: 1, text: "" });
        field.said().ok_or_else(|| field.error(expected))
    }
}

/// A piece of text and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field<'a> {
    pub(crate) source: &'static str,
    pub(crate) line: usize,
    /// The byte in the line, counted from 1.
    pub(crate) column: usize,
    pub(crate) text: &'a str,
}

impl<'a> Field<'a> {
    /// Without blanks around; `None` if it says nothing.
    pub(crate) fn said(mut self) -> Option<Field<'a>> {
        let begin = self.text.len() - self.text.trim_start().len();
        self.column += begin;
        self.text = self.text.trim();
        let nothing = ["", "(null)", "N/A", "None", "NONE", "Unknown"];
        (!nothing.contains(&self.text)).then_some(self)
    }

    /// What `read` makes of it.
    pub(crate) fn read<T>(self, expected: &str, read: impl FnOnce(&'a str) -> Option<T>) -> Result<T, TextError> {
        read(self.text).ok_or_else(|| self.error(expected))
    }

    /// That it is not what was expected.
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
    fn columns_are_found_by_name_and_places_are_told() {
        let table = Table::of("squeue", "\nJOBID|USER|X\n7| ann|N/A\n", &["JobId"]).unwrap();
        let row = table.rows().next().unwrap().unwrap();
        assert_eq!(row.get("user").map(|f| (f.line, f.column, f.text)), Some((3, 4, "ann")));
        assert_eq!((row.get("x").is_none(), row.get("y").is_none()), (true, true));
        let error = row.needed("user", "").unwrap().error("a number").to_string();
        assert_eq!(error, "squeue:3:4: found \"ann\", expected a number");
        assert_eq!(row.needed("Y", "y").unwrap_err().to_string(), "squeue:3:1: found nothing, expected y");
    }

    #[test]
    fn a_separator_no_text_has_is_preferred() {
        let table = Table::of("squeue", "A\u{1f}B\u{1f}\nx|y\u{1f}z\u{1f}\n", &[]).unwrap();
        assert_eq!(table.rows().next().unwrap().unwrap().get("A").map(|f| f.text), Some("x|y"));
        let short = Table::of("squeue", "A|B\n1\n", &[]).unwrap();
        let error = short.rows().next().unwrap().err().unwrap().to_string();
        assert_eq!(error, "squeue:2:2: found 1 columns, expected 2, as the header has");
        assert!(Table::of("squeue", " \n", &["A"]).is_err());
        assert!(Table::of("squeue", "B\n", &["A"]).is_err());
    }
}
