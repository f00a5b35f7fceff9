//! How fast a policy with a memory forgets, as typed.

use evenhand_model::{Quantity, Span};
use evenhand_policies::Decay;

use crate::failure::Failure;

/// Paper 001 finds it best at every load.
pub(crate) const DEFAULT_DELTA: &str = "0.999999";

/// From `--delta`, a discount factor a second.
pub(crate) fn of_delta(text: &str) -> Result<Decay, Failure> {
    let delta = Quantity::parse(text).ok().and_then(|delta| Decay::from_delta(&delta).ok());
    delta.ok_or_else(|| {
        let expected = "a number greater than 0 and less than 1 (the nearer to 1, the longer the memory)";
        Failure::Input(format!("--delta: found {text:?}, expected {expected}"))
    })
}

/// From `--half-life`.
pub(crate) fn of_half_life(text: &str) -> Result<Decay, Failure> {
    let named = |e: &dyn std::fmt::Display| Failure::Input(format!("--half-life {text}: {e}"));
    let span = Span::parse(text).map_err(|e| named(&e))?;
    Decay::from_half_life(span).map_err(|e| named(&e))
}

/// From whichever of them was typed, or the default.
pub(crate) fn of_either(delta: Option<&str>, half_life: Option<&str>) -> Result<Decay, Failure> {
    match half_life {
        Some(text) => of_half_life(text),
        None => of_delta(delta.unwrap_or(DEFAULT_DELTA)),
    }
}
