//! Refuses scenarios whose runs would take hours, or more memory than machines have, before they begin.

use evenhand_processes::Scenario;

use super::CURVE_POINTS;
use crate::failure::Failure;

/// The most services and delays of all runs together: about a minute.
const MOST: f64 = 1e8;
/// The most in the run that `--out` writes, one row each.
const MOST_WRITTEN: f64 = 1e7;
/// The most values that `--out` keeps in memory: priorities of processes over time, and points of curves.
const MOST_VALUES: f64 = 1e8;

const REMEDY: &str =
    "choose a longer quantum, fewer iterations or a lower --runs, or cut the runs off earlier with --horizon";

/// Checks the length of the runs of a scenario under so many schedulers.
pub(super) fn check_length(scenario: &Scenario, schedulers: usize, runs: u32, is_written: bool) -> Result<(), Failure> {
    let services = scenario.expected_services() * schedulers as f64;
    let all = services * f64::from(runs);
    let refuse =
        |found: String, expected: String| Err(Failure::Input(format!("{found}, expected {expected}; {REMEDY}")));
    if all > MOST {
        let found = format!("found a scenario of about {} services and delays in all its runs", about(all));
        return refuse(found, format!("at most {}", about(MOST)));
    }
    if !is_written {
        return Ok(());
    }
    if services > MOST_WRITTEN {
        let found = format!("found a scenario of about {} services and delays", about(services));
        return refuse(found, format!("at most {} with --out, which writes a row for each", about(MOST_WRITTEN)));
    }
    let clients = scenario.clients().len() as f64;
    let points = f64::from(runs) * CURVE_POINTS as f64 * scenario.resources().len() as f64;
    let values = clients * services.max(points * schedulers as f64);
    if values > MOST_VALUES {
        let found = format!("found about {} values of processes over time", about(values));
        return refuse(found, format!("at most {} with --out, which keeps them for figures", about(MOST_VALUES)));
    }
    Ok(())
}

/// Formats a large number: `3600000`, `4.2e12`.
fn about(number: f64) -> String {
    if number < 1e9 { format!("{number:.0}") } else { format!("{number:.1e}") }
}
