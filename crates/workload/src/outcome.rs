//! The words for how jobs ended, the same for all formats.

pub(crate) const COMPLETED: &str = "completed";
pub(crate) const FAILED: &str = "failed";
pub(crate) const CANCELLED: &str = "cancelled";
/// Ended by the limit of its wall time, or by a deadline.
pub(crate) const LIMIT: &str = "limit";
pub(crate) const NODE_FAILURE: &str = "node failure";
pub(crate) const PREEMPTED: &str = "preempted";
/// Ended in a way that the source states by a word of its own.
pub(crate) const UNKNOWN: &str = "unknown";

/// The words of a workload for known ends.
const KNOWN: [&str; 6] = [COMPLETED, FAILED, CANCELLED, LIMIT, NODE_FAILURE, PREEMPTED];

/// Returns whether a workload states how a job ended, but by none of the known words.
pub(crate) fn is_unknown(outcome: Option<&str>) -> bool {
    outcome.is_some_and(|word| !KNOWN.contains(&word))
}

/// The states of jobs in Slurm, up to 25.11: of those that ended, and of others.
const OF_SLURM: [&str; 29] = [
    "COMPLETED",
    "FAILED",
    "OUT_OF_MEMORY",
    "LAUNCH_FAILED",
    "CANCELLED",
    "REVOKED",
    "TIMEOUT",
    "DEADLINE",
    "NODE_FAIL",
    "BOOT_FAIL",
    "PREEMPTED",
    "PENDING",
    "RUNNING",
    "SUSPENDED",
    "CONFIGURING",
    "COMPLETING",
    "RESIZING",
    "REQUEUED",
    "REQUEUE_FED",
    "REQUEUE_HOLD",
    "RESV_DEL_HOLD",
    "SPECIAL_EXIT",
    "SIGNALING",
    "STAGE_OUT",
    "STOPPED",
    "RECONFIG_FAIL",
    "POWER_UP_NODE",
    "UPDATE_DB",
    "EXPEDITING",
];

/// Returns the state of Slurm that a text names; `None` if it names none.
pub(crate) fn state_of_slurm(text: &str) -> Option<&'static str> {
    // A cancelled job names who did it: `CANCELLED by 1000`.
    let word = text.split_whitespace().next()?;
    match word.strip_suffix('+') {
        // sacct cuts a column that is too narrow: `OUT_OF_ME+`.
        Some(cut) if !cut.is_empty() => OF_SLURM.into_iter().find(|state| state.starts_with(cut)),
        _ => OF_SLURM.into_iter().find(|state| *state == word),
    }
}

/// Returns the word for a state of Slurm; `None` for a job that has not ended, and for a state that is not Slurm's.
pub(crate) fn of_slurm(state: &str) -> Option<&'static str> {
    Some(match state_of_slurm(state)? {
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
/// nothing ran to its end; so does one of which it says nothing known, since Batsim has no state for that.
pub(crate) fn to_batsim(outcome: Option<&str>) -> &'static str {
    let word = match outcome {
        Some(NODE_FAILURE | PREEMPTED) => FAILED,
        other => other.unwrap_or(COMPLETED),
    };
    OF_BATSIM.iter().find(|(_, known)| *known == word).map_or(OF_BATSIM[0].0, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_of_slurm_may_be_cut_or_name_who_cancelled() {
        let cases = [
            ("COMPLETED", Some(COMPLETED)),
            ("CANCELLED by 1000", Some(CANCELLED)),
            ("CANCELLED+", Some(CANCELLED)),
            ("OUT_OF_ME+", Some(FAILED)),
            ("REQUEUED", None),
            ("COMPLETE", None),
            ("+", None),
            ("", None),
        ];
        for (state, expected) in cases {
            assert_eq!(of_slurm(state), expected, "{state}");
        }
        assert!(state_of_slurm("REQUEUED").is_some() && state_of_slurm("COMPLETE").is_none());
    }
}
