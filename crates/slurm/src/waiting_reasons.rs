//! Why a job waits, in Slurm's one word, and what the word means.

/// What a user can do about a reason to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReasonKind {
    /// Others stand before the job.
    Priority,
    /// Too little of what it needs is free.
    Resources,
    /// A limit of the job's user, account, QOS or partition is reached.
    Limit,
    /// Another job, a licence or a time has to come first.
    Dependency,
    /// The job is held.
    Held,
    /// A reservation, or nodes that are down.
    Site,
    /// The job cannot start as it was submitted.
    Never,
    /// Slurm has not looked at it yet, or the reason is of another release.
    Unknown,
}

impl ReasonKind {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            ReasonKind::Priority => "priority",
            ReasonKind::Resources => "resource",
            ReasonKind::Limit => "limit",
            ReasonKind::Dependency => "dependency",
            ReasonKind::Held => "held",
            ReasonKind::Site => "site",
            ReasonKind::Never => "never",
            ReasonKind::Unknown => "unknown",
        }
    }
}

/// Returns what Slurm's reason means (JOB REASON CODES of squeue(1)).
///
/// ```
/// use evenhand_slurm::{ReasonKind, explain_reason};
/// assert_eq!(explain_reason("Priority").0, ReasonKind::Priority);
/// assert_eq!(explain_reason("QOSMaxCpuPerUserLimit").0, ReasonKind::Limit);
/// ```
pub fn explain_reason(reason: &str) -> (ReasonKind, &'static str) {
    use ReasonKind::*;
    let known: &[(&str, ReasonKind, &str)] = &[
        ("Priority", Priority, "jobs with a higher priority wait for the same nodes and come first"),
        ("Resources", Resources, "it waits until enough nodes, CPUs, memory or GPUs that it can use are free"),
        ("Dependency", Dependency, "it waits for another job, as it was submitted with a dependency"),
        (
            "DependencyNeverSatisfied",
            Never,
            "the job on which it depends ended in a way that never lets it start; cancel it",
        ),
        ("BeginTime", Dependency, "it was submitted for a later time"),
        ("Licenses", Resources, "it waits for a licence that is in use"),
        ("JobArrayTaskLimit", Limit, "as many tasks of its array run as the array allows at once"),
        ("JobHeldUser", Held, "its user, or a coordinator of the account, holds it; scontrol release lets it go"),
        ("JobHeldAdmin", Held, "an administrator holds it; only an administrator can release it"),
        ("Reservation", Site, "it waits for its reservation to begin"),
        ("ReqNodeNotAvail", Site, "nodes that it needs are down, drained or reserved for something else"),
        ("NodeDown", Site, "a node that it requested is down"),
        ("PartitionDown", Site, "its partition is down"),
        ("PartitionInactive", Site, "its partition is inactive and starts no job"),
        ("PartitionNodeLimit", Never, "it asks for more nodes, or fewer, than its partition allows"),
        ("PartitionTimeLimit", Never, "it asks for more time than its partition allows"),
        ("BadConstraints", Never, "no node has what it asks for"),
        (
            "Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher_priority_partitions",
            Site,
            "nodes that it needs are down, drained, or reserved for partitions of higher priority",
        ),
        ("InvalidAccount", Never, "its account is invalid"),
        ("InvalidQOS", Never, "its quality of service is invalid"),
        ("AccountNotAllowed", Never, "its account may not use the partition"),
        ("Prolog", Site, "the nodes are being prepared for it"),
        ("Cleaning", Site, "it was requeued, and its nodes are still being cleaned up"),
        ("None", Unknown, "Slurm has not looked at it yet"),
    ];
    let word = reason.trim_start_matches('(').trim_end_matches(')');
    let first = word.split([',', ':', ' ']).next().unwrap_or(word);
    // `squeue --Format` writes spaces where the list of squeue(1) has underscores.
    let joined = word.replace(' ', "_");
    if let Some((_, kind, text)) = known.iter().find(|(name, ..)| *name == joined || *name == first) {
        return (*kind, text);
    }
    if word.starts_with("ReqNodeNotAvail") {
        return (Site, "nodes that it needs are down, drained or reserved for something else");
    }
    let (of_qos, of_association) = (word.starts_with("QOS"), word.starts_with("Assoc"));
    if of_qos || of_association || word.contains("Limit") {
        if word.contains("PerJob") || word.contains("MaxWall") || word.contains("TimeLimit") {
            return (Never, "it asks for more than a limit of its user, account or quality of service allows one job");
        }
        let text = if of_qos {
            "a limit of its quality of service is reached; it waits until jobs under that limit end"
        } else {
            "a limit of its user or account is reached; it waits until jobs under that limit end"
        };
        return (Limit, text);
    }
    (Unknown, "a reason that is not in the list of this program; see squeue(1) of your release")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_explained_by_name_by_prefix_or_not_at_all() {
        let kind = |reason| explain_reason(reason).0;
        assert_eq!(kind("(Resources)"), ReasonKind::Resources);
        assert_eq!(kind("ReqNodeNotAvail, UnavailableNodes:n[1-3]"), ReasonKind::Site);
        let away = "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions";
        assert_eq!(kind(away), ReasonKind::Site);
        assert_eq!(kind("AssocGrpCpuLimit"), ReasonKind::Limit);
        assert_eq!(kind("QOSMaxWallDurationPerJobLimit"), ReasonKind::Never);
        assert_eq!(kind("JobHeldUser"), ReasonKind::Held);
        assert_eq!(kind("SomethingNew"), ReasonKind::Unknown);
    }
}
