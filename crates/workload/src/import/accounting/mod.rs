//! Readers of the accounting logs of batch systems, and of job lists like them.
//!
//! Each converts its records to [`JobRecord`]s, which decides alike for all of them whether a job becomes a task and
//! what is assumed.

pub(super) mod flux;
pub(super) mod grid_engine;
pub(super) mod htcondor;
mod job_record;
mod json_records;
pub(super) mod lsf;
pub(super) mod oar;
pub(super) mod pbs;
mod pbs_select;
mod pbs_vnodes;
pub(super) mod slurm_json;
pub(super) mod slurm_simulator;

pub(super) use job_record::{JobRecord, Jobs, assumptions};
pub(super) use json_records::{Records, for_each_record, text, time};

use job_record::Unfinished;
use json_records::number;

use super::error::FieldError;
use super::parse_number::decimal;
use evenhand_model::{Nano, Span, Time};

/// The reason for lines that do not record the end of a job.
const OTHER_EVENT: &str = "records of other events than a job's end";

/// Returns a time in whole or fractional seconds since 1970; `None` for 0 and negative numbers, which mean unknown.
pub(super) fn epoch(text: &[u8]) -> Option<Time> {
    decimal(text).map(|d| d.nano).filter(|n| *n > 0).and_then(Time::checked_from_nanos)
}

/// Parses a duration as `[DD:]HH:MM:SS`, `MM:SS` or seconds.
fn clock_or_seconds(text: &[u8]) -> Option<Span> {
    let mut nano: Nano = 0;
    let parts: Vec<&[u8]> = text.split(|b| *b == b':').collect();
    let factors: &[Nano] = match parts.len() {
        1 => &[1],
        2 => &[60, 1],
        3 => &[3600, 60, 1],
        4 => &[86_400, 3600, 60, 1],
        _ => return None,
    };
    for (part, factor) in parts.iter().zip(factors) {
        nano = nano.checked_add(decimal(part)?.nano.checked_mul(*factor)?)?;
    }
    Span::checked_from_nanos(nano)
}

/// Parses a size with a unit of powers of 1024, as PBS and Grid Engine write it, to billionths of a byte: `600mb`,
/// `8gb`, `4G`, `1.5t`, `307200kb`, `1024`. PBS's words (`kw`) have 8 bytes.
fn size(text: &[u8]) -> Option<Nano> {
    let digits = text.iter().take_while(|b| b.is_ascii_digit() || **b == b'.').count();
    let (amount, unit) = text.split_at(digits);
    let unit = unit.to_ascii_lowercase();
    let (shift, rest) = match unit.split_first() {
        Some((b'k', rest)) => (10, rest),
        Some((b'm', rest)) => (20, rest),
        Some((b'g', rest)) => (30, rest),
        Some((b't', rest)) => (40, rest),
        Some((b'p', rest)) => (50, rest),
        _ => (0, &unit[..]),
    };
    let bytes: Nano = match rest {
        b"" | b"b" => 1,
        b"w" => 8,
        _ => return None,
    };
    decimal(amount)?.nano.checked_mul(1 << shift)?.checked_mul(bytes)
}

/// Returns an optional field: `None` if it is absent. A malformed one is an error, or unknown if `lenient`.
fn optional<T>(field: Result<Option<T>, Box<FieldError>>, jobs: &mut Jobs) -> Result<Option<T>, Box<FieldError>> {
    match field {
        Err(_) if jobs.lenient => {
            jobs.tally.adjust(job_record::MALFORMED_OPTION);
            Ok(None)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_of_batch_systems() {
        let seconds = |text: &str| clock_or_seconds(text.as_bytes()).map(|s| s.to_string());
        assert_eq!(seconds("02:00:00").as_deref(), Some("7200"));
        assert_eq!(seconds("1:00:00:01").as_deref(), Some("86401"));
        assert_eq!(seconds("36000").as_deref(), Some("36000"));
        assert_eq!((seconds(""), seconds("1:2:3:4:5"), seconds("soon")), (None, None, None));
        let bytes = |text: &str| size(text.as_bytes()).map(|n| n / 1_000_000_000);
        assert_eq!(bytes("600mb"), Some(600 << 20));
        assert_eq!(bytes("8gb"), Some(8 << 30));
        assert_eq!(bytes("1.5T"), Some(3 << 39));
        assert_eq!(bytes("2kw"), Some(16 << 10));
        assert_eq!(bytes("17"), Some(17));
        assert_eq!((bytes("1x"), bytes("gb"), bytes("")), (None, None, None));
    }
}
