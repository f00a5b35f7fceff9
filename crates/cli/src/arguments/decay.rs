//! Parsing of `--delta` and `--half-life`: how fast a stateful policy discounts past use.

use evenhand_model::{Quantity, Span};
use evenhand_policies::Decay;

use crate::failure::Failure;

/// Default discount per second.
pub(crate) const DEFAULT_DELTA: &str = Decay::DEFAULT_DELTA;

/// Parses `--delta`, a discount per second.
pub(crate) fn parse_delta(text: &str) -> Result<Decay, Failure> {
    let delta = Quantity::parse(text).ok().and_then(|delta| Decay::from_delta(&delta).ok());
    delta.ok_or_else(|| {
        let expected = "a number greater than 0 and less than 1 (the nearer to 1, the longer the memory)";
        Failure::Input(format!("--delta: found {text:?}, expected {expected}"))
    })
}

/// Parses `--half-life`.
pub(crate) fn parse_half_life(text: &str) -> Result<Decay, Failure> {
    let named = |e: &dyn std::fmt::Display| Failure::Input(format!("--half-life {text}: {e}"));
    let span = Span::parse(text).map_err(|e| named(&e))?;
    Decay::from_half_life(span).map_err(|e| named(&e))
}

/// Parses the option that is given, or returns the default.
#[cfg(feature = "analysis")]
pub(crate) fn parse_decay(delta: Option<&str>, half_life: Option<&str>) -> Result<Decay, Failure> {
    match half_life {
        Some(text) => parse_half_life(text),
        None => parse_delta(delta.unwrap_or(DEFAULT_DELTA)),
    }
}
