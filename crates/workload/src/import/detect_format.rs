//! Detects the format of a trace from its first lines.

use super::error::quoted;
use super::lines::BYTE_ORDER_MARK;
use super::parse_number::decimal;
use super::{Format, ImportError};

/// Returns the format of the stream that starts with `head`.
pub(super) fn detect(file: &str, head: &[u8]) -> Result<Format, ImportError> {
    let head = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head);
    let mut lines = head.split(|&b| b == b'\n').map(<[u8]>::trim_ascii).filter(|l| !l.is_empty());
    let Some(first) = lines.next() else {
        return Err(match head.is_empty() {
            true => ImportError::EmptyFile { file: file.to_string() },
            false => unknown_format(file, b""),
        });
    };
    if first[0] == b'{' {
        return Ok(Format::Batsim);
    }
    if first[0] == b';' || is_swf(first) {
        return Ok(Format::Swf);
    }
    let commas = |line: &[u8]| line.iter().filter(|&&b| b == b',').count();
    let starts_with_number = |line: &[u8]| decimal(line.split(|&b| b == b',').next().unwrap_or_default()).is_some();
    if commas(first) == 12 && starts_with_number(first) {
        return Ok(Format::Google2011);
    }
    let is_sdrf = |line: &[u8]| commas(line) == 6 && starts_with_number(line);
    // The first line may be a header; then the second line decides.
    if is_sdrf(first) || commas(first) == 6 && lines.next().is_some_and(is_sdrf) {
        return Ok(Format::SdrfCsv);
    }
    let mut words = first.split(|b| !b.is_ascii_alphanumeric());
    if words.any(|w| w.eq_ignore_ascii_case(b"JobID") || w.eq_ignore_ascii_case(b"JobIDRaw")) {
        return Ok(Format::Sacct);
    }
    Err(unknown_format(file, first))
}

fn is_swf(line: &[u8]) -> bool {
    let mut fields = line.split(u8::is_ascii_whitespace).filter(|f| !f.is_empty());
    let number = |field: &[u8]| decimal(field.strip_prefix(b"-").unwrap_or(field)).is_some();
    (0..18).all(|_| fields.next().is_some_and(number))
}

fn unknown_format(file: &str, first: &[u8]) -> ImportError {
    let expected: Vec<&str> = Format::ALL.iter().filter(|f| **f != Format::Auto).map(|f| f.name()).collect();
    ImportError::UnclearFormat { file: file.to_string(), found: quoted(first), expected: expected.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_detected_from_their_first_lines() {
        let swf = "1 0 5 10 4 -1 -1 4 60 -1 1 3 1 -1 1 -1 -1 -1\n";
        let cases = [
            ("; Version: 2.2\n", Some(Format::Swf)),
            (swf, Some(Format::Swf)),
            ("0 1 0 1 64 1.5 -1 64 86400 -1 1 62 1 1 -1 1 1 1 {1241} q_2w 1:ppn=12\n", Some(Format::Swf)),
            ("0,2,3418309,0,4155527081,0,70s=,3,9,,,,\n", Some(Format::Google2011)),
            ("1,2,3,u,t,0.5,0.25\n", Some(Format::SdrfCsv)),
            ("\u{feff}submit,start,finish,user,task,cpu,mem\n1,2,3,u,t,0.5,0.25\n", Some(Format::SdrfCsv)),
            ("submit,start,finish,user,task,cpu,mem\n", None),
            ("Account|JobID|User\n", Some(Format::Sacct)),
            ("JobIDRaw☃User\n", Some(Format::Sacct)),
            ("\n  {\"nb_res\": 4}", Some(Format::Batsim)),
            ("1 2 3 4 5\n", None),
            ("\n\n", None),
            ("", None),
        ];
        for (head, expected) in cases {
            let found = detect("f", head.as_bytes());
            assert_eq!(found.as_ref().ok().copied(), expected, "{head:?}");
        }
        let message = detect("f", b"hello").unwrap_err().to_string();
        assert!(
            message.contains("\"hello\"")
                && message.contains("swf, google2011, sdrf-csv")
                && message.contains("--from")
        );
    }
}
