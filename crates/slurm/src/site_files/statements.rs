//! The lines of slurm.conf as `Name=value` pairs with their places, included files in their place.

use std::path::{Path, PathBuf};

use super::{Position, SiteFileError};
use crate::error::quoted;

/// How deep files may include one another.
const MAX_INCLUDES: usize = 16;

/// A line, with its continuations: its settings in order.
pub(super) type Statement = Vec<Setting>;

/// A setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) name: String,
    pub(super) value: String,
    /// Where the value begins.
    pub(super) place: Position,
}

impl Setting {
    pub(super) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    pub(super) fn error(&self, expected: impl Into<String>) -> SiteFileError {
        SiteFileError::Invalid { place: self.place.clone(), found: quoted(&self.value), expected: expected.into() }
    }
}

/// Reads a file and those that it includes, and returns their paths too.
pub(super) fn read_statements(path: &Path) -> Result<(Vec<Statement>, Vec<PathBuf>), SiteFileError> {
    let folder = path.parent().map_or_else(PathBuf::new, Path::to_owned);
    let mut found = (Vec::new(), Vec::new());
    read(path, String::new(), &folder, 0, &mut found)?;
    Ok(found)
}

fn read(
    path: &Path,
    included_at: String,
    folder: &Path,
    depth: usize,
    found: &mut (Vec<Statement>, Vec<PathBuf>),
) -> Result<(), SiteFileError> {
    let text = std::fs::read(path).map_err(|source| SiteFileError::Read {
        place: included_at,
        path: path.to_owned(),
        source,
    })?;
    refuse_invalid_bytes(path, &text)?;
    found.1.push(path.to_owned());
    let text = String::from_utf8_lossy(&text);
    // Some editors begin a file with a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    refuse_running_configuration(path, text)?;
    let mut lines = text.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let mut text = Joined { file: path, text: String::new(), lines: Vec::new() };
        text.push(at + 1, without_comment(line));
        while text.text.ends_with('\\') {
            text.text.pop();
            let Some((at, next)) = lines.next() else { break };
            text.push(at + 1, without_comment(next));
        }
        if let Some((file, place)) = text.include() {
            if depth == MAX_INCLUDES {
                let expected = format!("files that include one another at most {MAX_INCLUDES} deep");
                return Err(SiteFileError::Invalid { place, found: quoted(file), expected });
            }
            // Slurm takes a name without a folder from that of slurm.conf.
            read(&folder.join(file), format!("{place}: "), folder, depth + 1, found)?;
            continue;
        }
        let statement = text.settings()?;
        if !statement.is_empty() {
            found.0.push(statement);
        }
    }
    Ok(())
}

/// Refuses the text of `scontrol show config`, which has the settings of the running Slurm without its nodes and partitions.
fn refuse_running_configuration(path: &Path, text: &str) -> Result<(), SiteFileError> {
    let Some((at, line)) = text.lines().enumerate().find(|(_, line)| !line.trim().is_empty()) else { return Ok(()) };
    if !line.trim_start().starts_with("Configuration data as of") {
        return Ok(());
    }
    let stated = text.lines().filter_map(|line| line.split_once('=')).find(|(name, _)| name.trim() == "SLURM_CONF");
    let stated = stated.map_or(String::new(), |(_, file)| format!(" {}", file.trim()));
    Err(SiteFileError::Invalid {
        place: Position { file: path.to_owned(), line: at + 1, column: 1 },
        found: "the text of scontrol show config, which has no nodes and partitions".into(),
        expected: format!("slurm.conf itself; copy the file{stated} of the site, and those that it includes"),
    })
}

/// Refuses bytes that are not UTF-8, except in comments, which may be in any encoding.
fn refuse_invalid_bytes(path: &Path, text: &[u8]) -> Result<(), SiteFileError> {
    let mut begin = 0;
    for line in text.split(|byte| *byte == b'\n') {
        if let Err(error) = std::str::from_utf8(line) {
            let at = error.valid_up_to();
            let before = std::str::from_utf8(&line[..at]).unwrap_or_default();
            if comment(before).is_none() {
                return Err(invalid_byte(path, text, begin + at));
            }
        }
        begin += line.len() + 1;
    }
    Ok(())
}

/// Returns the error of a byte of a file that is not UTF-8.
pub(super) fn invalid_byte(path: &Path, text: &[u8], at: usize) -> SiteFileError {
    let before = text.get(..at).unwrap_or(text);
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
    let found = text.get(at).map_or_else(|| "nothing".into(), |byte| format!("the byte 0x{byte:02x}"));
    let expected = "text in UTF-8".into();
    SiteFileError::Invalid { place: Position { file: path.to_owned(), line, column }, found, expected }
}

/// Where a comment begins: at a `#` that has no backslash before it.
fn comment(line: &str) -> Option<usize> {
    line.match_indices('#').map(|(at, _)| at).find(|at| !line[..*at].ends_with('\\'))
}

fn without_comment(line: &str) -> &str {
    line[..comment(line).unwrap_or(line.len())].trim_end()
}

/// A line with those that continue it.
struct Joined<'a> {
    file: &'a Path,
    text: String,
    /// Where each line begins in the text, and its number.
    lines: Vec<(usize, usize)>,
}

impl Joined<'_> {
    fn push(&mut self, line: usize, text: &str) {
        self.lines.push((self.text.len(), line));
        self.text.push_str(text);
    }

    fn place(&self, at: usize) -> Position {
        let (begin, line) = self.lines.iter().rev().find(|(begin, _)| *begin <= at).copied().unwrap_or((0, 1));
        Position { file: self.file.to_owned(), line, column: at - begin + 1 }
    }

    /// The file that it includes, if it does.
    fn include(&self) -> Option<(&str, Position)> {
        let (word, rest) = self.text.trim_start().split_once([' ', '\t'])?;
        let at = self.text.len() - rest.trim_start().len();
        word.eq_ignore_ascii_case("include").then(|| (rest.trim(), self.place(at)))
    }

    /// Splits `Name=value Name="value with blanks"`.
    fn settings(&self) -> Result<Statement, SiteFileError> {
        let text = self.text.as_str();
        let mut statement = Statement::new();
        let mut at = 0;
        loop {
            at = text.len() - text[at..].trim_start().len();
            if at >= text.len() {
                return Ok(statement);
            }
            let end = text[at..].find(['=', ' ', '\t']).map_or(text.len(), |n| at + n);
            if !text[end..].starts_with('=') || end == at {
                let found = quoted(text[at..].split_whitespace().next().unwrap_or_default());
                return Err(SiteFileError::Invalid { place: self.place(at), found, expected: "Name=value".into() });
            }
            let name = text[at..end].trim_end_matches(['+', '-']).to_string();
            let begin = end + 1;
            let (value, next) = match text[begin..].strip_prefix('"') {
                Some(inside) => match inside.find('"') {
                    Some(n) => (&inside[..n], begin + n + 2),
                    None => {
                        let (place, found) = (self.place(begin), quoted(&text[begin..]));
                        let expected = "a closing quotation mark on the same line".into();
                        return Err(SiteFileError::Invalid { place, found, expected });
                    }
                },
                None => {
                    let n = text[begin..].find([' ', '\t']).unwrap_or(text.len() - begin);
                    (&text[begin..begin + n], begin + n)
                }
            };
            statement.push(Setting { name, value: value.to_string(), place: self.place(begin) });
            at = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_of_a_running_slurm_is_recognised() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.txt");
        let text = "\nConfiguration data as of 2026-11-28T10:00:00\nAccountingStorageHost = db\nSLURM_CONF = /etc/slurm/slurm.conf\n";
        std::fs::write(&path, text).unwrap();
        let error = read_statements(&path).unwrap_err().to_string().replace(&format!("{}:", path.display()), "");
        assert_eq!(
            error,
            "2:1: found the text of scontrol show config, which has no nodes and partitions, expected slurm.conf itself; copy the \
             file /etc/slurm/slurm.conf of the site, and those that it includes"
        );
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_refused_outside_comments() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("slurm.conf");
        let read = |text: &[u8]| {
            std::fs::write(&path, text).unwrap();
            read_statements(&path).map(|_| ()).map_err(|error| {
                assert!(!error.is_environment());
                error.to_string().replace(&format!("{}:", path.display()), "")
            })
        };
        assert_eq!(read(b"# caf\xe9\nClusterName=lab # \xff\n"), Ok(()));
        for (text, expected) in [
            (&b"ClusterName=a\n# \xe9\nNodeName=n\xff1\n"[..], "3:11: found the byte 0xff, expected text in UTF-8"),
            (b"A=\xc3\xa9 B=\\#\xe9", "1:10: found the byte 0xe9, expected text in UTF-8"),
        ] {
            assert_eq!(read(text), Err(expected.to_string()));
        }
    }
}
