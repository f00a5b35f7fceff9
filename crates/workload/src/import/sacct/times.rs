//! The times of a row of sacct: dates without a zone, as `SLURM_TIME_FORMAT=standard` has them, and exact times.

use evenhand_model::calendar::parse_date_time;
use evenhand_model::{Span, Time};

use super::Row;
use super::columns::Column;
use crate::import::JobId;
use crate::import::accounting::epoch;
use crate::import::error::FieldError;
use crate::import::parse_time::date;
use crate::import::summary::Tally;
use crate::slurm_notation::{self, duration};

pub(super) const UTC: &str = "local time";
pub(super) const BY_DIFFERENCE: &str = "end minus start";
pub(super) const ENDED: &str = "assumed to have ended";

/// The times of a job that ran and ended.
pub(super) struct JobTimes {
    pub(super) submit: Time,
    pub(super) start: Time,
    pub(super) length: Span,
    /// Whether the submission or the start has no zone.
    pub(super) is_local: bool,
}

/// Returns whether a field is in seconds since 1970, as `SLURM_TIME_FORMAT=%s` prints times.
pub(super) fn is_epoch(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

/// Parses a date and time of day with a zone: `2026-01-05T08:00:00+0100`, `+01:00` or `Z`.
pub(super) fn with_zone(text: &[u8]) -> Option<Time> {
    let (clock, zone) = text.split_at_checked(19)?;
    parse_date_time(clock)?;
    let is_zone = zone == b"Z" || matches!(zone, [b'+' | b'-', b'0'..=b'9', ..]);
    is_zone.then(|| date(text)).flatten()
}

impl Row<'_> {
    /// Parses a time; `None` also for Slurm's words for an absent one, and for 0.
    pub(super) fn time(&self, column: Column) -> Result<Option<Time>, Box<FieldError>> {
        let Some((at, text)) = self.get(column).filter(|(_, text)| !super::is_none(text)) else { return Ok(None) };
        if is_epoch(text) && text.iter().all(|digit| *digit == b'0') {
            return Ok(None);
        }
        let found = match is_epoch(text) {
            true => epoch(text),
            false => parse_date_time(text).or_else(|| with_zone(text)),
        };
        let error = || {
            let error = FieldError::new(at, text, "a time such as 2023-08-31T12:29:47, from 1970 on");
            // `relative` prints the time of day of today, a day of this week, or a day of this year.
            let is_date = text.get(..5).is_some_and(|year| year.ends_with(b"-") && is_epoch(&year[..4]));
            match is_date || is_epoch(text) {
                true => error,
                false => error.remedy(
                    "if sacct printed it, unset SLURM_TIME_FORMAT or export with SLURM_TIME_FORMAT=%s; else correct the row, \
                     or pass --lenient to skip such rows",
                ),
            }
        };
        found.map(Some).ok_or_else(error)
    }

    /// Returns whether a column has a time without a zone.
    fn is_local(&self, column: Column) -> bool {
        self.get(column).is_some_and(|(_, text)| parse_date_time(text).is_some())
    }
}

/// Returns the times of a job that ran and ended; counts the reason for any other.
pub(super) fn times(row: &Row<'_>, job: &JobId, tally: &mut Tally) -> Result<Option<JobTimes>, Box<FieldError>> {
    let state = row.get(Column::State).map_or(&b""[..], |(_, s)| s);
    let Some(start) = row.time(Column::Start)? else {
        tally.drop("never started");
        return Ok(None);
    };
    let end = row.time(Column::End)?;
    // In old versions, the start of a job that was cancelled while it waited is its end.
    let mut no_cpus = false;
    for column in [Column::AllocCPUS, Column::NCPUS] {
        no_cpus |= row.count(column)? == Some(0);
    }
    let held_nothing =
        no_cpus || row.columns.index(Column::AllocTRES).is_some() && row.get(Column::AllocTRES).is_none();
    if held_nothing && (state.starts_with(b"CANCELLED") || state.starts_with(b"PENDING")) {
        tally.drop("never started");
        return Ok(None);
    }
    const UNFINISHED: [&[u8]; 7] =
        [b"RUNNING", b"SUSPENDED", b"COMPLETING", b"RESIZING", b"STOPPED", b"SIGNALING", b"STAGE_OUT"];
    let no_end = row.columns.index(Column::End).is_some() && end.is_none();
    if no_end || UNFINISHED.contains(&state) {
        tally.drop("still running");
        return Ok(None);
    }
    let Some(submit) = row.time(Column::Submit)? else {
        tally.drop("no submit time");
        return Ok(None);
    };
    if tally.is_in_another_file(job, submit.min(start), Some(start)) {
        return Ok(None);
    }
    let elapsed = match (row.get(Column::ElapsedRaw), row.get(Column::Elapsed)) {
        (Some((at, text)), _) => Some((at, text, slurm_notation::seconds(text))),
        (None, Some((at, text))) => Some((at, text, duration(text))),
        (None, None) => None,
    };
    let length = match (elapsed, end) {
        (Some((at, text, length)), _) => {
            length.ok_or_else(|| FieldError::new(at, text, "an elapsed time such as 1-02:03:04, or seconds"))?
        }
        (None, Some(end)) if end < start => {
            let at = row.get(Column::End).map_or(0, |(at, _)| at);
            let found = format!("an end {} s before the start", start.since(end));
            return Err(FieldError::described(at, found, "an end that is not before the start").remedy(
                "add ElapsedRaw to the columns (daylight saving time changes clocks), or pass --lenient to skip such rows",
            ));
        }
        (None, Some(end)) => {
            tally.adjust(BY_DIFFERENCE);
            end.since(start)
        }
        (None, None) => {
            tally.drop("no end or elapsed time");
            return Ok(None);
        }
    };
    if end.is_none() && state.is_empty() {
        tally.adjust(ENDED);
    }
    let is_local = row.is_local(Column::Submit) || row.is_local(Column::Start);
    Ok(Some(JobTimes { submit, start, length, is_local }))
}
