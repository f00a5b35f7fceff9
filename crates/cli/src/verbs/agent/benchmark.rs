//! `evenhand agent benchmark`

use std::time::Duration;

use crate::failure::Failure;
use crate::output::console::Console;

/// Prints the speed of a processor of this machine, in millions of rounds per second.
pub(super) fn run(console: &Console) -> Result<(), Failure> {
    let result = evenhand_agent::benchmark(Duration::from_secs(1));
    if console.is_json() {
        return console.json(&serde_json::json!({ "millions_of_rounds_per_s": result }));
    }
    console.result(&format!("{result:.1}"))
}
