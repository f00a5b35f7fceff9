//! What Figures 5 and 6 share: red comes back to the CPU, where blue is all the time.

use std::ops::Range;

use evenhand_model::Span;
use evenhand_processes::{Parameters, Service};

use super::runs::Run;
use super::setup::{process, scenario, until};
use crate::ReproduceError;

/// What both want.
const CPU: &str = "CPU_CS";
/// How long the experiments last, and from when on shares are taken.
const LAST: u64 = 60;
pub(super) const LONG_RUN: Range<f64> = 10.0..60.0;

/// The red process, entitlement 70, alternates; blue, 30, wants nothing but the CPU.
pub(super) fn alternate(red: &'static str, grace: Option<Span>, seed: u64) -> Result<Run, ReproduceError> {
    let processes = [process("red", "70", red), process("blue", "30", "loop 1; CPU_CS 1000 0 NORM")];
    let rules = until(LAST, seed);
    let grace = grace.unwrap_or(rules.grace);
    Ok(Run::of(scenario(&processes, Parameters { grace, ..rules })?))
}

/// A return of red to the CPU, and how long red then has it to itself.
pub(super) struct Return {
    pub(super) at: f64,
    pub(super) exclusive: f64,
}

/// Every time that red comes back after having used another resource, or after having been away for longer
/// than a second.
pub(super) fn returns(run: &Run) -> Vec<Return> {
    let mut left: Option<(f64, &str)> = None;
    let mut found = Vec::new();
    let mut all: Vec<&Service> = run.recording.services.iter().filter(|s| run.is(s, "red")).collect();
    all.sort_by_key(|s| s.from);
    for service in all {
        let resource = run.scenario.resources()[service.resource as usize].name.as_str();
        let at = service.from.secs_f64();
        if resource == CPU && left.is_some_and(|(left, where_to)| where_to != CPU || at - left > 1.0) {
            let blue = run.services(CPU).find(|s| run.is(s, "blue") && s.from >= service.from);
            found.extend(blue.map(|s| Return { at, exclusive: s.from.secs_f64() - at }));
        }
        left = Some((service.to.secs_f64(), resource));
    }
    found
}

/// The mean; 0 of none.
pub(super) fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) = values.fold((0u32, 0.0), |(count, sum), value| (count + 1, sum + value));
    if count == 0 { 0.0 } else { sum / f64::from(count) }
}
