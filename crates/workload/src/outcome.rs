//! The words for how jobs ended, the same for all formats.

pub(crate) const COMPLETED: &str = "completed";
pub(crate) const FAILED: &str = "failed";
pub(crate) const CANCELLED: &str = "cancelled";
/// Ended by the limit of its wall time, or by a deadline.
pub(crate) const LIMIT: &str = "limit";
pub(crate) const NODE_FAILURE: &str = "node failure";
pub(crate) const PREEMPTED: &str = "preempted";

/// Returns the word for a state of Slurm; `None` for a job that has not ended.
pub(crate) fn of_slurm(state: &str) -> Option<&'static str> {
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

/// Each state of a finished job in Batsim's `jobs.csv`, with its word.
const OF_BATSIM: [(&str, &str); 4] = [
    ("COMPLETED_SUCCESSFULLY", COMPLETED),
    ("COMPLETED_FAILED", FAILED),
    ("COMPLETED_WALLTIME_REACHED", LIMIT),
    ("COMPLETED_KILLED", CANCELLED),
];

/// Returns the word for a state of Batsim; `None` for a job that did not run.
pub(crate) fn of_batsim(state: &str) -> Option<&'static str> {
    OF_BATSIM.iter().find(|(name, _)| *name == state).map(|(_, word)| *word)
}

/// Returns the state in Batsim of a job that ended so; an end that Batsim does not know is a failure. A job of which a log says
/// nothing, or nothing known, ran to its end.
pub(crate) fn to_batsim(outcome: Option<&str>) -> &'static str {
    let word = match outcome {
        Some(NODE_FAILURE | PREEMPTED) => FAILED,
        other => other.unwrap_or(COMPLETED),
    };
    OF_BATSIM.iter().find(|(_, known)| *known == word).map_or(OF_BATSIM[0].0, |(name, _)| name)
}
