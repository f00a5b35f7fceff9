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
