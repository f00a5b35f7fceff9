//! Tables of plain text.

use evenhand_model::printable;

#[cfg(feature = "agent")]
use super::fold_lines::fold_lines_at;
use super::fold_lines::table_width;

/// Replaces control characters in a name from a file by escapes; they could move a terminal's cursor.
pub(crate) fn printable(name: &str) -> String {
    printable::printable(name).into_owned()
}

/// Rows of text under a header, whose control characters appear as escapes. The first columns hold names and are left-aligned; the others are right-aligned.
pub(crate) struct Table {
    left: usize,
    /// Whether the last column is left-aligned too.
    has_text_last: bool,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Returns a table with this header, whose first `left` columns hold names.
    pub(crate) fn new(left: usize, header: impl IntoIterator<Item = impl Into<String>>) -> Table {
        Table {
            left,
            has_text_last: false,
            rows: vec![header.into_iter().map(|cell| printable(&cell.into())).collect()],
        }
    }

    /// Makes the last column one of texts, which is left-aligned as names are.
    #[cfg(feature = "agent")]
    pub(crate) fn with_text_last(mut self) -> Table {
        self.has_text_last = true;
        self
    }

    /// Adds a row, which has as many cells as the header.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.rows[0].len());
        self.rows.push(cells.iter().map(|cell| printable(cell)).collect());
    }

    /// Leaves out the columns of these names, one after the other, until no line is longer than `columns`.
    pub(crate) fn fit(mut self, columns: usize, optional: &[&str]) -> Table {
        for name in optional {
            let place = self.rows[0].iter().position(|cell| cell == name);
            match place.filter(|_| self.width() > columns) {
                Some(place) => self.rows.iter_mut().for_each(|row| drop(row.remove(place))),
                None => continue,
            }
            self.left -= usize::from(place.is_some_and(|place| place < self.left));
        }
        self
    }

    /// Formats the table with the last column, of texts, folded so that lines have at most `columns` characters, where words and
    /// other columns allow it. A text beside which no space is left stands on lines of its own. If the other columns are too wide,
    /// they are cut as [`Table::render_within`] does, and the texts follow in a table of their own.
    #[cfg(feature = "agent")]
    pub(crate) fn render_folded(&self, columns: usize) -> String {
        const LEAST: usize = 30;
        let text = self.render_within(usize::MAX);
        let Some(last) = self.rows[0].len().checked_sub(1) else { return text };
        let widths = self.widths();
        if self.left < last && length_of_line(&widths[..last]) > columns {
            let others = self.part((0..last).collect()).render_within(columns);
            let texts = self.part((0..self.left).chain([last]).collect()).render_folded(columns);
            return format!("{others}\n\n{texts}");
        }
        let start: usize = widths[..last].iter().map(|width| width + 2).sum();
        let mut lines = Vec::new();
        for line in text.lines() {
            let cut = line.char_indices().nth(start).map_or(line.len(), |(at, _)| at);
            match line.split_at(cut) {
                _ if line.chars().count() <= columns => lines.push(line.to_owned()),
                _ if line.starts_with("---") => lines.push("-".repeat(columns)),
                (_, _) if start + LEAST <= columns => lines.push(fold_lines_at(line, columns, &" ".repeat(start))),
                (begin, end) => {
                    lines.push(begin.trim_end().to_owned());
                    lines.push(fold_lines_at(&format!("    {end}"), columns, "    "));
                }
            }
        }
        lines.join("\n")
    }

    /// Formats the table; no line has trailing blanks.
    ///
    /// A table wider than [`table_width`] is cut between columns into tables below one another, each of which begins with the
    /// columns of names.
    pub(crate) fn render(&self) -> String {
        self.render_within(table_width())
    }

    /// Returns a table of some columns, among them all of names.
    #[cfg(feature = "agent")]
    fn part(&self, columns: Vec<usize>) -> Table {
        let has_text_last = self.has_text_last && columns.last().is_some_and(|last| last + 1 == self.rows[0].len());
        let row = |row: &Vec<String>| columns.iter().map(|&column| row[column].clone()).collect();
        Table { left: self.left, has_text_last, rows: self.rows.iter().map(row).collect() }
    }

    /// Formats the table as [`Table::render`] does, for lines of this length.
    pub(crate) fn render_within(&self, columns: usize) -> String {
        let widths = self.widths();
        let of_names = length_of_line(&widths[..self.left]);
        let mut blocks: Vec<Vec<usize>> = Vec::new();
        let mut length = usize::MAX;
        for (column, width) in widths.iter().enumerate().skip(self.left) {
            length = length.saturating_add(2 + width);
            match blocks.last_mut().filter(|_| length <= columns) {
                Some(block) => block.push(column),
                None => {
                    blocks.push((0..self.left).chain([column]).collect());
                    length = of_names + if self.left > 0 { 2 } else { 0 } + width;
                }
            }
        }
        match blocks.len() {
            0 | 1 => self.render_columns(&widths, (0..widths.len()).collect()),
            _ => blocks.into_iter().map(|block| self.render_columns(&widths, block)).collect::<Vec<_>>().join("\n\n"),
        }
    }

    /// Returns the width of each column.
    fn widths(&self) -> Vec<usize> {
        let width = |column: usize| self.rows.iter().map(|r| r[column].chars().count()).max().unwrap_or(0);
        (0..self.rows[0].len()).map(width).collect()
    }

    /// Returns the length of the longest line.
    pub(crate) fn width(&self) -> usize {
        length_of_line(&self.widths())
    }

    /// Formats these columns of the table, which have these widths.
    fn render_columns(&self, widths: &[usize], columns: Vec<usize>) -> String {
        let line = |row: &Vec<String>| {
            let cells = columns.iter().map(|&i| {
                let (cell, width) = (&row[i], widths[i]);
                if i < self.left || (self.has_text_last && i + 1 == widths.len()) {
                    format!("{cell:<width$}")
                } else {
                    format!("{cell:>width$}")
                }
            });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_string()
        };
        let mut lines: Vec<String> = self.rows.iter().map(line).collect();
        let shown: Vec<usize> = columns.iter().map(|&i| widths[i]).collect();
        lines.insert(1, "-".repeat(length_of_line(&shown)));
        lines.join("\n")
    }
}

/// Returns the length of a line of cells of these widths, with two blanks between them.
fn length_of_line(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1)
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

    #[test]
    fn a_table_too_wide_is_cut_into_tables_that_begin_with_the_names() {
        let mut table = Table::new(1, ["name", "first", "second", "third"]);
        table.row(vec!["a".into(), "1".into(), "2".into(), "3".into()]);
        let whole = "name  first  second  third\n--------------------------\na         1       2      3";
        assert_eq!(table.render_within(26), whole);
        let cut =
            "name  first  second\n-------------------\na         1       2\n\nname  third\n-----------\na         3";
        assert_eq!(table.render_within(25), cut);
        assert_eq!(table.render_within(19), cut);
        // A column that does not fit stands alone beside the names.
        assert_eq!(table.render_within(1).split("\n\n").count(), 3);
    }

    #[cfg(feature = "agent")]
    #[test]
    fn texts_of_the_last_column_are_folded_beside_the_others_or_below_them() {
        let folded = |name: &str, columns: usize| {
            let mut table = Table::new(2, ["part", "found"]);
            table.row(vec![name.into(), "word ".repeat(20).trim_end().into()]);
            table.render_folded(columns)
        };
        let beside = folded("clock", 60);
        assert!(beside.lines().all(|line| line.chars().count() <= 60), "{beside}");
        assert!(beside.lines().skip(3).all(|line| line.starts_with("       word")), "{beside}");
        let below = folded(&"/a".repeat(25), 60);
        assert_eq!(below.lines().nth(2), Some("/a".repeat(25).as_str()));
        assert!(below.lines().all(|line| line.chars().count() <= 60), "{below}");
    }
}
