//! Writes comma-separated values (RFC 4180).
//!
//! Texts come from traces, and spreadsheets execute texts that look like formulas: a user named `=HYPERLINK(…)` sends
//! the table to another site when it is opened. [`TextCells::Safe`] prevents it.

use std::borrow::Cow;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use evenhand_model::printable::printable;

/// How texts are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextCells {
    /// For people: control characters appear as escapes, and a text that a spreadsheet takes for a formula follows an
    /// apostrophe.
    Safe,
    /// For programs: every text as it is.
    Raw,
}

static RAW: AtomicBool = AtomicBool::new(false);

impl TextCells {
    /// Returns how this process writes its results: [`TextCells::Safe`], unless [`set_for_results`] changed it.
    ///
    /// [`set_for_results`]: TextCells::set_for_results
    pub fn of_results() -> TextCells {
        if RAW.load(Ordering::Relaxed) { TextCells::Raw } else { TextCells::Safe }
    }

    /// Sets how this process writes its results. Tables are written in many places, all of them for the same reader, so
    /// this is a choice of the command line and not of the places.
    pub fn set_for_results(self) {
        RAW.store(self == TextCells::Raw, Ordering::Relaxed);
    }

    fn apply(self, text: &str) -> Cow<'_, str> {
        match self {
            TextCells::Raw => Cow::Borrowed(text),
            TextCells::Safe if is_formula(text) => Cow::Owned(format!("'{}", printable(text))),
            TextCells::Safe => printable(text),
        }
    }
}

/// Returns whether a spreadsheet may take a text for a formula. A number is none.
fn is_formula(text: &str) -> bool {
    match text.chars().next() {
        Some('=' | '@' | '\t' | '\r' | '\n' | '\u{ff1d}' | '\u{ff20}' | '\u{ff0b}' | '\u{ff0d}') => true,
        Some('+' | '-') => text.parse::<f64>().is_err(),
        _ => false,
    }
}

/// A table of comma-separated values in memory: a header, then one record per row. Lines end in `\n`.
pub struct Csv {
    text: Vec<u8>,
    cells: TextCells,
}

/// A field of a record.
#[derive(Clone, Copy, Debug)]
pub enum Cell<'a> {
    /// Text, quoted if it holds a comma, a quotation mark or a line break.
    Text(&'a str),
    /// A count.
    Count(u64),
    /// A number in the fewest digits that read back as the same `f64`; empty if absent, infinite or not a number.
    Number(Option<f64>),
    /// A time in nanoseconds, written as seconds with nine decimals; empty if absent.
    Seconds(Option<u64>),
}

impl Csv {
    /// Creates a table with these columns and no row, whose texts are written as in all [results](TextCells::of_results).
    pub fn new(columns: &[&str]) -> Csv {
        Csv::with_cells(columns, TextCells::of_results())
    }

    fn with_cells(columns: &[&str], cells: TextCells) -> Csv {
        let mut csv = Csv { text: Vec::new(), cells };
        csv.row(&columns.iter().map(|column| Cell::Text(column)).collect::<Vec<_>>());
        csv
    }

    /// Appends a row.
    pub fn row(&mut self, cells: &[Cell<'_>]) {
        push_record(&mut self.text, cells, self.cells);
    }

    /// Returns the table as text.
    pub fn finish(self) -> String {
        String::from_utf8(self.text).expect("every field is text")
    }
}

/// Appends a record and its line end to `line`. For tables too large to hold in memory.
///
/// ```
/// use evenhand_documents::{Cell, TextCells, push_record};
/// let mut line = Vec::new();
/// let cells = [Cell::Text("a,b"), Cell::Text("=1"), Cell::Count(3), Cell::Seconds(Some(1_500_000_000))];
/// push_record(&mut line, &cells, TextCells::Safe);
/// assert_eq!(line, b"\"a,b\",'=1,3,1.500000000\n");
/// ```
pub fn push_record(line: &mut Vec<u8>, cells: &[Cell<'_>], texts: TextCells) {
    for (index, cell) in cells.iter().enumerate() {
        if index > 0 {
            line.push(b',');
        }
        match *cell {
            Cell::Text(text) => push_text(line, &texts.apply(text)),
            Cell::Count(count) => push_integer(line, count),
            Cell::Number(number) => {
                if let Some(number) = number.filter(|number| number.is_finite()) {
                    // Writing to a vector does not fail.
                    let _ = write!(line, "{number}");
                }
            }
            Cell::Seconds(None) => {}
            Cell::Seconds(Some(nanos)) => push_seconds(line, nanos),
        }
    }
    line.push(b'\n');
}

fn push_text(line: &mut Vec<u8>, text: &str) {
    if !text.contains([',', '"', '\n', '\r']) {
        line.extend_from_slice(text.as_bytes());
        return;
    }
    line.push(b'"');
    line.extend_from_slice(text.replace('"', "\"\"").as_bytes());
    line.push(b'"');
}

/// Faster than `write!`, which a table of millions of tasks would notice.
fn push_integer(line: &mut Vec<u8>, mut n: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    line.extend_from_slice(&digits[at..]);
}

fn push_seconds(line: &mut Vec<u8>, nanos: u64) {
    push_integer(line, nanos / 1_000_000_000);
    line.push(b'.');
    let mut fraction = nanos % 1_000_000_000;
    let mut digits = [b'0'; 9];
    for d in digits.iter_mut().rev() {
        *d = b'0' + (fraction % 10) as u8;
        fraction /= 10;
    }
    line.extend_from_slice(&digits);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(cell: Cell<'_>) -> String {
        let mut line = Vec::new();
        push_record(&mut line, &[cell], TextCells::Raw);
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn text_with_separators_is_quoted() {
        let mut csv = Csv::with_cells(&["a", "b,c", "d"], TextCells::Raw);
        csv.row(&[Cell::Text("\"x\"\ny"), Cell::Count(3), Cell::Number(Some(0.1))]);
        csv.row(&[Cell::Text("=z"), Cell::Number(None), Cell::Number(Some(f64::NAN))]);
        assert_eq!(csv.finish(), "a,\"b,c\",d\n\"\"\"x\"\"\ny\",3,0.1\n=z,,\n");
    }

    #[test]
    fn texts_for_people_are_neither_formulas_nor_control_characters() {
        for (text, expected) in [
            ("=1+1", "'=1+1"),
            ("=HYPERLINK(\"http://x\",\"y\")", "\"'=HYPERLINK(\"\"http://x\"\",\"\"y\"\")\""),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
            ("-2+3", "'-2+3"),
            ("\t=1", "'\\t=1"),
            ("\u{ff1d}1", "'\u{ff1d}1"),
            ("-1", "-1"),
            ("+2.5e3", "+2.5e3"),
            ("ann=1", "ann=1"),
            ("'quoted", "'quoted"),
            ("a\u{1b}[2J\nb", "a\\x1b[2J\\nb"),
        ] {
            let mut csv = Csv::with_cells(&["name"], TextCells::Safe);
            csv.row(&[Cell::Text(text)]);
            assert_eq!(csv.finish(), format!("name\n{expected}\n"));
        }
    }

    #[test]
    fn text_is_quoted_only_when_it_must_be() {
        for (field, expected) in
            [("alice", "alice"), ("a b", "a b"), ("a,b", "\"a,b\""), ("say \"hi\"", "\"say \"\"hi\"\"\""), ("", "")]
        {
            assert_eq!(line(Cell::Text(field)), format!("{expected}\n"));
        }
    }

    #[test]
    fn seconds_are_exact() {
        for (ns, expected) in [
            (0, "0.000000000"),
            (1, "0.000000001"),
            (1_500_000_000, "1.500000000"),
            (1_356_996_147_000_000_001, "1356996147.000000001"),
            (u64::MAX, "18446744073.709551615"),
        ] {
            assert_eq!(line(Cell::Seconds(Some(ns))), format!("{expected}\n"));
        }
        assert_eq!(line(Cell::Seconds(None)), "\n");
    }
}
