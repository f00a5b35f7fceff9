//! Folds long lines between words.

/// The width of tables and of folded lines.
pub(crate) const COLUMNS: usize = 100;

/// Returns the width that tables may have: that of the terminal or of the variable `COLUMNS`, at least [`COLUMNS`] without
/// either; never less than a table of few columns needs.
pub(crate) fn table_width() -> usize {
    const LEAST: usize = 40;
    let stated = std::env::var("COLUMNS").ok().and_then(|text| text.trim().parse::<usize>().ok());
    stated.filter(|columns| *columns >= LEAST).or_else(terminal_width).unwrap_or(COLUMNS)
}

/// Returns the width of the terminal to which results are printed, if it is known.
#[cfg(feature = "agent")]
fn terminal_width() -> Option<usize> {
    use std::io::IsTerminal;
    let size = std::io::stdout().is_terminal().then(ratatui::crossterm::terminal::size)?;
    size.ok().map(|(columns, _)| usize::from(columns)).filter(|columns| *columns > 0)
}

#[cfg(not(feature = "agent"))]
fn terminal_width() -> Option<usize> {
    None
}

/// Folds each line of more than `long` characters at [`COLUMNS`], between words; the lines that follow begin with
/// `indent`.
pub(crate) fn fold_lines(text: &str, long: usize, indent: &str) -> String {
    let fold = |line: &str| match line.chars().count() <= long {
        true => line.to_string(),
        false => fold_lines_at(line, COLUMNS, indent),
    };
    text.split('\n').map(fold).collect::<Vec<_>>().join("\n")
}

/// Folds a text at this number of characters, between words; the lines that follow begin with `indent`.
pub(crate) fn fold_lines_at(text: &str, columns: usize, indent: &str) -> String {
    let fold = |line: &str| {
        let (mut folded, mut width) = (String::new(), 0);
        for (n, word) in line.split(' ').enumerate() {
            let length = word.chars().count();
            if n > 0 && width + 1 + length > columns {
                folded.push('\n');
                folded.push_str(indent);
                width = indent.len();
            } else if n > 0 {
                folded.push(' ');
                width += 1;
            }
            folded.push_str(word);
            width += length;
        }
        folded
    };
    text.split('\n').map(fold).collect::<Vec<_>>().join("\n")
}

/// Folds each line of prose of more than [`COLUMNS`] characters; the lines that follow are indented by two more.
///
/// Rows of tables have two spaces between columns, and a line of few words is a name that scripts read (`Report: FOLDER`):
/// both stay.
pub(crate) fn fold_prose(text: &str) -> String {
    let fold = |line: &str| {
        let words = line.trim_start();
        let is_prose = words.split(' ').count() >= 12 && !words.contains("  ");
        match is_prose {
            true => fold_lines(line, COLUMNS, &format!("{}  ", &line[..line.len() - words.len()])),
            false => line.to_string(),
        }
    };
    text.split('\n').map(fold).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_folded_between_words() {
        let short = "word ".repeat(40).trim_end().to_string();
        assert_eq!(fold_lines(&short, 200, "  "), short);
        let long = "word ".repeat(50).trim_end().to_string();
        let text = fold_lines(&format!("a\n{long}"), 200, "  ");
        assert!(text.lines().all(|line| line.chars().count() <= 100) && text.lines().count() == 4, "{text}");
        assert_eq!(text.split_whitespace().count(), 51);
        // A word that is longer than a line stays whole, and blanks at the beginning of a line stay.
        let path = "x".repeat(300);
        assert_eq!(fold_lines(&path, 200, "  "), path);
        assert!(fold_lines(&format!("  {long}"), COLUMNS, "  ").starts_with("  word"));
    }

    #[test]
    fn prose_is_folded_and_rows_and_names_stay() {
        let prose = format!("  {}", "word ".repeat(30).trim_end());
        let folded = fold_prose(&prose);
        let mut lines = folded.lines();
        assert!(lines.all(|line| line.chars().count() <= COLUMNS && line.starts_with("  ")), "{folded}");
        assert_eq!(folded.lines().nth(1).map(|line| line.starts_with("    word")), Some(true), "{folded}");
        let row = "column  ".repeat(20).trim_end().to_string();
        assert_eq!(fold_prose(&row), row);
        let name = format!("Report: {}", "folder".repeat(30));
        assert_eq!(fold_prose(&name), name);
    }
}
