//! The systemd units of the packages.

use std::path::Path;
use std::time::Duration;

use evenhand_agent::EXIT_LIMIT as AGENT_EXIT_LIMIT;
use evenhand_serve::EXIT_LIMIT as SERVE_EXIT_LIMIT;
use evenhand_slurm::queue_driver::EXIT_LIMIT as SLURM_EXIT_LIMIT;

/// The time that systemd waits after SIGTERM before it kills the service.
fn stop_timeout(unit: &str) -> Duration {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/systemd").join(unit);
    let text = std::fs::read_to_string(path).unwrap();
    let value = text.lines().find_map(|line| line.strip_prefix("TimeoutStopSec=")).unwrap();
    Duration::from_secs(value.parse().unwrap())
}

#[test]
fn a_service_has_more_time_to_end_than_it_may_take() {
    assert!(stop_timeout("evenhand-agent.service") >= 2 * AGENT_EXIT_LIMIT);
    assert!(stop_timeout("evenhand-serve.service") >= 2 * SERVE_EXIT_LIMIT);
    assert!(stop_timeout("evenhand-slurm.service") >= 2 * SLURM_EXIT_LIMIT);
}
