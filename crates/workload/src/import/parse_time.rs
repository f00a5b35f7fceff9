//! Parses dates as tables and job lists write them, and the words for a value that is unknown.

use evenhand_model::calendar::parse_date_time;
use evenhand_model::{Span, Time};

use super::parse_number::{NANO, decimal, leading_digits};

/// Returns whether a field holds a word for an unknown value instead of one.
pub(super) fn is_unknown(text: &[u8]) -> bool {
    const WORDS: [&[u8]; 10] =
        [b"NA", b"N/A", b"null", b"None", b"nan", b"NaT", b"-", b"Unknown", b"\\N", b"undefined"];
    text.is_empty() || WORDS.iter().any(|word| word.eq_ignore_ascii_case(text))
}

/// Parses a date: `2023-08-31`, `2023-08-31T12:29:47`, also with a blank, a fraction of a second, `Z`, `UTC` or an offset
/// such as `+08:00`, `-0700` or `+01`. Without an offset it is taken as UTC.
pub(super) fn date(text: &[u8]) -> Option<Time> {
    if text.len() == 10 {
        return date(&[text, b"T00:00:00"].concat());
    }
    let mut clock: [u8; 19] = text.get(..19)?.try_into().ok()?;
    if clock[10] == b' ' {
        clock[10] = b'T';
    }
    let mut nanos = u128::from(parse_date_time(&clock)?.nanos());
    let mut rest = &text[19..];
    if let Some(fraction) = rest.strip_prefix(b".").or(rest.strip_prefix(b",")) {
        let (_, digits) = leading_digits(fraction);
        if digits == 0 {
            return None;
        }
        nanos += decimal(&[b"0.", &fraction[..digits]].concat())?.nano.min(NANO - 1);
        rest = &fraction[digits..];
    }
    let rest = rest.trim_ascii_start();
    let time = Time::checked_from_nanos(nanos)?;
    match rest.split_first() {
        None => Some(time),
        Some((b'Z', b"")) => Some(time),
        Some((b'U', b"TC")) | Some((b'G', b"MT")) => Some(time),
        Some((sign @ (b'+' | b'-'), offset)) => {
            let offset: Vec<u8> = offset.iter().copied().filter(|b| *b != b':').collect();
            let (value, digits) = leading_digits(&offset);
            let minutes = match (digits == offset.len(), digits) {
                (true, 2) => value * 60,
                (true, 4) => value / 100 * 60 + value % 100,
                _ => return None,
            };
            let offset = Span::checked_from_nanos(u128::from(minutes) * 60 * NANO)?;
            // A clock ahead of UTC shows a later time.
            if *sign == b'-' {
                time.checked_add(offset)
            } else {
                nanos.checked_sub(u128::from(offset.nanos())).and_then(Time::checked_from_nanos)
            }
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_with_offsets_and_fractions_are_read() {
        let seconds = |text: &str| date(text.as_bytes()).map(|t| t.to_string());
        let noon = Some("1693484987".to_string());
        for same in [
            "2023-08-31T12:29:47",
            "2023-08-31 12:29:47",
            "2023-08-31T12:29:47Z",
            "2023-08-31 12:29:47 UTC",
            "2023-08-31 20:29:47+08:00",
            "2023-08-31 05:29:47-0700",
            "2023-08-31T13:29:47+01",
            "2023-08-31 12:29:47.000000",
        ] {
            assert_eq!(seconds(same), noon, "{same}");
        }
        assert_eq!(seconds("2023-08-31 12:29:47.25+00:00").as_deref(), Some("1693484987.25"));
        assert_eq!(seconds("1970-01-02").as_deref(), Some("86400"));
        for bad in
            ["", "1970-01-01T00:00:00+01:00", "2023-08-31 12:29", "2023-08-31T12:29:47 CET", "2023-08-31T12:29:47+1"]
        {
            assert_eq!(seconds(bad), None, "{bad}");
        }
    }

    #[test]
    fn words_for_unknown_values() {
        assert!(["", "NA", "null", "-", "None", "NaN", "unknown"].iter().all(|w| is_unknown(w.as_bytes())));
        assert!(!is_unknown(b"0") && !is_unknown(b"nobody"));
    }
}
