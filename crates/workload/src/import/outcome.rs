//! The words for how jobs ended, the same for all formats.

pub(super) const COMPLETED: &str = "completed";
pub(super) const FAILED: &str = "failed";
pub(super) const CANCELLED: &str = "cancelled";
/// Ended by the limit of its wall time, or by a deadline.
const LIMIT: &str = "limit";
const NODE_FAILURE: &str = "node failure";
const PREEMPTED: &str = "preempted";

/// Returns the word for a state of Slurm; `None` for a job that has not ended.
pub(super) fn of_slurm(state: &str) -> Option<&'static str> {
    // A cancelled job names who did it: `CANCELLED by 1000`.
    Some(match state.split_whitespace().next()?.trim_end_matches('+') {
        "COMPLETED" => COMPLETED,
        "FAILED" | "OUT_OF_MEMORY" | "LAUNCH_FAILED" => FAILED,
        "CANCELLED" | "REVOKED" => CANCELLED,
        "TIMEOUT" | "DEADLINE" => LIMIT,
        "NODE_FAIL" | "BOOT_FAIL" => NODE_FAILURE,
        "PREEMPTED" => PREEMPTED,
        _ => return None,
    })
}
