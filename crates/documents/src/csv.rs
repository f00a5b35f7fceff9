//! The data of figures as comma-separated values (RFC 4180): a header, then a row a datum.

use std::fmt::Write as _;

/// A table that grows row by row.
pub struct Csv {
    text: String,
}

/// A value in a table.
pub enum Cell<'a> {
    /// Text, quoted where it must be.
    Text(&'a str),
    /// A count.
    Count(u64),
    /// Absent and infinite numbers are left empty. The digits are those that give the same number
    /// when read.
    Number(Option<f64>),
}

impl Csv {
    /// A table with these columns and no row.
    pub fn new(columns: &[&str]) -> Csv {
        let mut csv = Csv { text: String::new() };
        csv.row(&columns.iter().map(|column| Cell::Text(column)).collect::<Vec<_>>());
        csv
    }

    /// Adds a row.
    pub fn row(&mut self, cells: &[Cell<'_>]) {
        for (index, cell) in cells.iter().enumerate() {
            if index > 0 {
                self.text.push(',');
            }
            // Writing to a string does not fail.
            let _ = match cell {
                Cell::Text(text) if text.contains([',', '"', '\n', '\r']) => {
                    write!(self.text, "\"{}\"", text.replace('"', "\"\""))
                }
                Cell::Text(text) => write!(self.text, "{text}"),
                Cell::Count(count) => write!(self.text, "{count}"),
                Cell::Number(number) => match number.filter(|number| number.is_finite()) {
                    Some(number) => write!(self.text, "{number}"),
                    None => Ok(()),
                },
            };
        }
        self.text.push('\n');
    }

    /// The text of the table.
    pub fn finish(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_with_separators_is_quoted() {
        let mut csv = Csv::new(&["a", "b,c", "d"]);
        csv.row(&[Cell::Text("\"x\"\ny"), Cell::Count(3), Cell::Number(Some(0.1))]);
        csv.row(&[Cell::Text("=z"), Cell::Number(None), Cell::Number(Some(f64::NAN))]);
        assert_eq!(csv.finish(), "a,\"b,c\",d\n\"\"\"x\"\"\ny\",3,0.1\n=z,,\n");
    }
}
