//! Tables of plain text.

use evenhand_model::printable;

/// Replaces control characters in a name from a file by escapes; they could move a terminal's cursor.
pub(crate) fn printable(name: &str) -> String {
    printable::printable(name).into_owned()
}

/// Rows of text under a header, whose control characters appear as escapes. The first columns hold names and are left-aligned; the others are right-aligned.
pub(crate) struct Table {
    left: usize,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Returns a table with this header, whose first `left` columns hold names.
    pub(crate) fn new(left: usize, header: impl IntoIterator<Item = impl Into<String>>) -> Table {
        Table { left, rows: vec![header.into_iter().map(|cell| printable(&cell.into())).collect()] }
    }

    /// Adds a row, which has as many cells as the header.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.rows[0].len());
        self.rows.push(cells.iter().map(|cell| printable(cell)).collect());
    }

    /// Leaves out the columns of these names, one after the other, until no line is longer than `columns`.
    pub(crate) fn fit(mut self, columns: usize, optional: &[&str]) -> Table {
        for name in optional {
            let width = self.render().lines().map(|line| line.chars().count()).max().unwrap_or(0);
            let place = self.rows[0].iter().position(|cell| cell == name);
            match place.filter(|_| width > columns) {
                Some(place) => self.rows.iter_mut().for_each(|row| drop(row.remove(place))),
                None => continue,
            }
            self.left -= usize::from(place.is_some_and(|place| place < self.left));
        }
        self
    }

    /// Formats the table; no line has trailing blanks.
    pub(crate) fn render(&self) -> String {
        let width = |column: usize| self.rows.iter().map(|r| r[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.rows[0].len()).map(width).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).enumerate().map(|(i, (cell, &width))| {
                if i < self.left { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_string()
        };
        let mut lines: Vec<String> = self.rows.iter().map(line).collect();
        lines.insert(1, "-".repeat(widths.iter().sum::<usize>() + 2 * (widths.len() - 1)));
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn columns_are_left_out_until_a_table_fits() {
        let table = || {
            let mut table = Table::new(1, ["name", "long", "short"]);
            table.row(vec!["a".into(), "x".repeat(30), "1".into()]);
            table
        };
        let fitted = |columns| table().fit(columns, &["short", "long"]).render().lines().next().map(str::to_string);
        assert_eq!(fitted(100).as_deref(), Some("name                            long  short"));
        assert_eq!(fitted(40).as_deref(), Some("name                            long"));
        assert_eq!(fitted(10).as_deref(), Some("name"));
    }
}
