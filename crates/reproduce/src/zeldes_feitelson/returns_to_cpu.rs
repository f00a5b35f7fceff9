//! The scenario of Figures 5 and 6: red returns to the CPU, which blue always uses.

use std::ops::Range;

use evenhand_model::Span;
use evenhand_processes::{Parameters, Service};

use super::process_scenarios::{process, scenario, until};
use super::recorded_runs::Run;
use crate::ReproduceError;

/// The resource that both processes use.
const CPU: &str = "CPU_CS";
/// The length of the experiments, and the time over which shares are measured; in seconds.
const LENGTH: u64 = 60;
pub(super) const LONG_RUN: Range<f64> = 10.0..60.0;

/// Runs the red process, entitlement 70, with this program, and blue, 30, which uses only the CPU.
pub(super) fn alternate(red: &'static str, grace: Option<Span>, seed: u64) -> Result<Run, ReproduceError> {
    let processes = [process("red", "70", red), process("blue", "30", "loop 1; CPU_CS 1000 0 NORM")];
    let parameters = until(LENGTH, seed);
    let grace = grace.unwrap_or(parameters.grace);
    Ok(Run::of(scenario(&processes, Parameters { grace, ..parameters })?))
}

/// The time of a return of red to the CPU, and the time for which red then has exclusive access; in seconds.
pub(super) struct Return {
    pub(super) at: f64,
    pub(super) exclusive: f64,
}

/// Returns every return of red to the CPU after the use of another resource or an absence of more than a second.
pub(super) fn returns(run: &Run) -> Vec<Return> {
    let mut left: Option<(f64, &str)> = None;
    let mut found = Vec::new();
    let mut all: Vec<&Service> = run.recording.services.iter().filter(|s| run.is_of(s, "red")).collect();
    all.sort_by_key(|s| s.from);
    for service in all {
        let resource = run.scenario.resources()[service.resource as usize].name.as_str();
        let at = service.from.secs_f64();
        if resource == CPU && left.is_some_and(|(left, where_to)| where_to != CPU || at - left > 1.0) {
            let blue = run.services(CPU).find(|s| run.is_of(s, "blue") && s.from >= service.from);
            found.extend(blue.map(|s| Return { at, exclusive: s.from.secs_f64() - at }));
        }
        left = Some((service.to.secs_f64(), resource));
    }
    found
}

/// Returns the mean; 0 without values.
pub(super) fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) = values.fold((0u32, 0.0), |(count, sum), value| (count + 1, sum + value));
    if count == 0 { 0.0 } else { sum / f64::from(count) }
}
