//! Parsers of option values.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::builder::{PathBufValueParser, TypedValueParser};
use evenhand_model::calendar::parse_date_time;
use evenhand_model::memory::parse_size;
#[cfg(feature = "analysis")]
use evenhand_policies::equivalents::Combine;
use evenhand_study::{ARRIVALS, Arrivals, BACKFILLS, Backfill, Layout, PLACEMENTS, Placement, VARIATIONS, Vary};

/// What a page has instead of a date.
pub(super) const UNDATED: &str = "undated";

/// Parses a number that is at least 1.
pub(super) fn at_least_one(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "expected a whole number, 1 or more".to_string())
}

/// Parses a number of bytes, with or without a unit.
pub(super) fn size(text: &str) -> Result<u64, String> {
    parse_size(text).ok_or_else(|| "expected a size such as 8Gi".to_string())
}

/// Parses the name of a file to write, which cannot be standard output: writing beside and renaming needs a name.
pub(super) fn file_to_write() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| {
        let error =
            "expected the name of a file: this cannot be written to standard output (./- is a file of that name)";
        if path.as_os_str() == "-" { Err(error) } else { Ok(path) }
    })
}

/// Parses a date, or `undated`.
pub(super) fn date_or_undated(text: &str) -> Result<String, String> {
    let is_date = || parse_date_time(format!("{text}T00:00:00").as_bytes()).is_some();
    let known = text == UNDATED || is_date();
    known.then(|| text.to_string()).ok_or_else(|| format!("expected a date such as 2026-11-25, or {UNDATED}"))
}

/// Parses the name of a kind of backfilling.
pub(super) fn backfill(text: &str) -> Result<Backfill, String> {
    named(&BACKFILLS, text)
}

/// Parses a layout of jobs.
pub(super) fn layout(text: &str) -> Result<Layout, String> {
    text.parse().map_err(|e: evenhand_study::LayoutError| e.to_string())
}

/// Parses the name of a scheduler, with its settings.
pub(super) fn scheduler(text: &str) -> Result<Backfill, String> {
    evenhand_study::parse_scheduler(text)
}

/// Parses the name of a rule that places tasks on machines.
pub(super) fn placement(text: &str) -> Result<Placement, String> {
    named(&PLACEMENTS, text)
}

/// Parses the name of what determines submissions.
pub(super) fn arrivals(text: &str) -> Result<Arrivals, String> {
    named(&ARRIVALS, text)
}

/// Parses the name of what varies between repeats.
pub(super) fn vary(text: &str) -> Result<Vary, String> {
    named(&VARIATIONS, text)
}

/// Parses the name of a rule that combines the processor equivalents of several resources.
#[cfg(feature = "analysis")]
pub(super) fn combine(text: &str) -> Result<Combine, String> {
    named(&Combine::ALL.map(|c| (c.name(), c)), text)
}

fn named<T: Copy>(list: &[(&str, T)], text: &str) -> Result<T, String> {
    let names = || list.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let found = list.iter().find(|(name, _)| *name == text);
    found.map(|(_, value)| *value).ok_or_else(|| format!("expected one of: {}", names()))
}
