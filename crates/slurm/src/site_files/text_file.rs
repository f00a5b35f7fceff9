//! Files with the texts of Slurm's commands.

use std::path::Path;

use super::statements::invalid_byte;
use super::{Position, SiteFileError};
use crate::error::TextError;

/// Reads a file with the text of `command` (`scontrol -o show node`), without a byte order mark.
///
/// # Errors
/// Returns an error if the file cannot be read, is not UTF-8, is empty, or is JSON, which these commands also print.
pub fn read_command_text(path: &Path, command: &str) -> Result<String, SiteFileError> {
    let bytes = std::fs::read(path).map_err(|source| SiteFileError::Read {
        place: String::new(),
        path: path.to_owned(),
        source,
    })?;
    let invalid = |line: usize, found: &str, expected: String| SiteFileError::Invalid {
        place: Position { file: path.to_owned(), line, column: 1 },
        found: found.into(),
        expected,
    };
    let text = String::from_utf8(bytes)
        .map_err(|error| invalid_byte(path, error.as_bytes(), error.utf8_error().valid_up_to()))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    match text.trim_start().chars().next() {
        None => Err(invalid(1, "an empty file", format!("the text of {command}"))),
        Some('{' | '[') => {
            Err(invalid(1, "JSON, which is not read here", format!("the text of {command}, without --json")))
        }
        Some(_) => Ok(text.to_string()),
    }
}

/// Returns the records that a text of `command` was read to, or an error if there is none; a record begins with `first`.
///
/// # Errors
/// Returns an error if there is no record.
pub fn some_records<T>(records: Vec<T>, command: &'static str, first: &str) -> Result<Vec<T>, TextError> {
    if records.is_empty() {
        return Err(TextError {
            source_name: command,
            line: 1,
            column: 1,
            found: format!("no line that begins with {first}="),
            expected: format!("the text of {command}"),
        });
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_files_and_json_are_named_and_a_byte_order_mark_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("nodes");
        let read = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            let error = |error: SiteFileError| error.to_string().replace(&format!("{}:", path.display()), "");
            read_command_text(&path, "scontrol show node").map_err(error)
        };
        assert_eq!(read("\u{feff}NodeName=a\n".as_bytes()), Ok("NodeName=a\n".into()));
        for (bytes, expected) in [
            (&b" \n"[..], "1:1: found an empty file, expected the text of scontrol show node"),
            (b"{}", "1:1: found JSON, which is not read here, expected the text of scontrol show node, without --json"),
            (b"a\n\xff", "2:1: found the byte 0xff, expected text in UTF-8"),
        ] {
            assert_eq!(read(bytes), Err(expected.to_string()));
        }
    }
}
