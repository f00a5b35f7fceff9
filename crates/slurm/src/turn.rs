//! Whether a waiting job waits for its turn in the queue, or for something that no order of the queue brings.

use evenhand_model::Time;

use crate::queue::{Job, JobState, Queue};
use crate::waiting_reasons::{ReasonKind, explain_reason};

/// Why a job waits for something else than its turn, so that no start can be forecast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoTurn {
    /// What the job waits for, as a predicate of the job: "is held".
    pub why: String,
    /// What lets it start.
    pub remedy: &'static str,
}

impl Job {
    /// Returns Slurm's reason for waiting, `None` in words if it gave none.
    pub fn reason(&self) -> &str {
        self.reason.as_deref().unwrap_or("None")
    }

    /// Returns whether its request or a limit bars it: it neither starts nor makes others wait, whatever the order of the queue is.
    /// Slurm passes over such jobs (slurm.conf(5), SchedulerParameters: unless assoc_limit_stop is set).
    pub fn is_barred(&self) -> bool {
        let kind = explain_reason(self.reason()).0;
        let of_site = ["Partition", "Cleaning"].iter().any(|word| self.reason().starts_with(word));
        matches!(kind, ReasonKind::Limit | ReasonKind::Never) || of_site
    }

    /// Returns the time before which it does not start (`sbatch --begin`, or the pause after a requeue), if it is to come.
    pub fn begins(&self, now: Time) -> Option<Time> {
        self.eligible.filter(|begin| self.state == JobState::Pending && *begin > now)
    }

    /// Returns where Slurm's backfill plans the start of a waiting job, if it plans one that is to come.
    pub fn planned_start(&self, now: Time) -> Option<Time> {
        self.start.filter(|start| self.state == JobState::Pending && *start > now)
    }

    /// Returns why no start can be forecast, if the job waits for something else than its turn.
    pub fn no_turn(&self) -> Option<NoTurn> {
        let reason = self.reason();
        let (kind, means) = explain_reason(reason);
        let slurm = |why: &str| format!("{why} (Slurm's reason is {reason}: {means})");
        // Slurm also gives a job that it can never start the priority 0, as if it were held.
        if kind == ReasonKind::Never {
            let remedy = "change what it asks for (scontrol update), or cancel it";
            return Some(NoTurn { why: slurm("cannot start as it was submitted"), remedy });
        }
        if self.held().is_some() {
            return Some(NoTurn {
                why: "is held".into(),
                remedy: "it has a turn once it is released (scontrol release)",
            });
        }
        if let Some(dependency) = self.waits_for() {
            let why = format!("waits for other jobs ({dependency})");
            return Some(NoTurn { why, remedy: "ask again when they have ended" });
        }
        if self.is_barred() {
            return Some(match kind {
                ReasonKind::Limit => NoTurn {
                    why: slurm("waits for a limit"),
                    remedy: "ask again when jobs under that limit have ended",
                },
                _ => NoTurn { why: slurm("waits for the site"), remedy: "ask again when that is over" },
            });
        }
        // Without nodes that are away Slurm plans no start; those that are reserved or busy it plans with.
        let away = kind == ReasonKind::Site && !["Reservation", "Prolog"].contains(&reason);
        (away && (self.start.is_none() || names_unavailable_nodes(reason))).then(|| NoTurn {
            why: slurm("waits for nodes that are not available"),
            remedy: "ask again when they are (sinfo --list-reasons), or let it run on others (scontrol update)",
        })
    }
}

/// Whether a reason has a list of nodes that are away: `ReqNodeNotAvail, UnavailableNodes:n[1-3]`.
fn names_unavailable_nodes(reason: &str) -> bool {
    reason.split_once("UnavailableNodes:").is_some_and(|(_, nodes)| !nodes.trim_matches([' ', ')']).is_empty())
}

/// Whether a record of the queue waits for its turn at `now`, not for something else. Others neither make jobs wait nor count.
pub(crate) fn waits(job: &Job, now: Time) -> bool {
    job.state == JobState::Pending && job.no_turn().is_none() && job.begins(now).is_none()
}

/// Returns how many tasks of a waiting record can start as the queue is: of an array with a throttle (`%2`) as many as it lets run at
/// once, without those that run.
pub(crate) fn tasks_at_once(queue: &Queue, job: &Job) -> u64 {
    let throttle = job.array.as_ref().and_then(|array| Some((array.job, array.tasks.max_running?)));
    let Some((array, most)) = throttle else { return job.tasks() };
    let of_array = |other: &&Job| other.array.as_ref().is_some_and(|a| a.job == array);
    let running: u64 = queue.running().filter(of_array).map(Job::tasks).sum();
    // Those that wait have at least one place: what Slurm shows may be a moment apart.
    job.tasks().min(most.saturating_sub(running).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(reason: &str, priority: u64, start: &str, eligible: &str) -> Job {
        let text = format!(
            "JOBID|USER|STATE|REASON|PRIORITY|START_TIME|ELIGIBLE_TIME\n1|ann|PENDING|{reason}|{priority}|{start}|{eligible}\n"
        );
        Queue::parse(&text).unwrap().jobs.remove(0)
    }

    #[test]
    fn what_no_time_or_order_brings_is_no_turn() {
        let why = |reason: &str| job(reason, 7, "N/A", "1").no_turn().map(|no| no.why);
        assert_eq!(why("Resources"), None);
        assert_eq!(why("Priority"), None);
        assert_eq!(why("BeginTime"), None, "time brings it");
        assert_eq!(
            why("PartitionTimeLimit").unwrap(),
            "cannot start as it was submitted (Slurm's reason is PartitionTimeLimit: it asks for more time than its partition allows)"
        );
        assert!(
            why("JobArrayTaskLimit").unwrap().starts_with("waits for a limit (Slurm's reason is JobArrayTaskLimit")
        );
        assert!(why("QOSMaxJobsPerUserLimit").unwrap().starts_with("waits for a limit"));
        assert!(
            why("ReqNodeNotAvail, UnavailableNodes:n2").unwrap().starts_with("waits for nodes that are not available")
        );
        let reserved = "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions";
        assert!(why(reserved).unwrap().starts_with("waits for nodes that are not available"));
        assert!(why("PartitionDown").unwrap().starts_with("waits for the site"));
        // Slurm holds what it can never start, and plans with nodes that are only busy or reserved.
        let never = job("BadConstraints", 0, "N/A", "1").no_turn().unwrap().why;
        assert!(never.starts_with("cannot start as it was submitted"), "{never}");
        assert_eq!(job("ReqNodeNotAvail, May be reserved for other job", 7, "5000", "1").no_turn(), None);
        assert!(job("ReqNodeNotAvail, UnavailableNodes:n2", 7, "5000", "1").no_turn().is_some());
    }

    #[test]
    fn a_job_has_its_turn_from_its_begin_time_on() {
        let later = job("BeginTime", 7, "5000", "5000");
        let now = Time::from_secs(1000);
        assert_eq!((later.begins(now), later.planned_start(now)), (Some(Time::from_secs(5000)), later.start));
        assert!(!waits(&later, now) && waits(&later, Time::from_secs(5000)));
        assert!(!waits(&job("JobArrayTaskLimit", 7, "N/A", "1"), now));
    }

    #[test]
    fn a_throttled_array_counts_as_many_tasks_as_may_start() {
        let text = "JOBID|USER|STATE|REASON|ARRAY_JOB_ID|ARRAY_TASK_ID\n\
            9|ann|RUNNING|None|7|1\n7|ann|PENDING|Priority|7|2-50%3\n8|bob|PENDING|Priority|8|1-9\n";
        let queue = Queue::parse(text).unwrap();
        assert_eq!([1, 2].map(|at| tasks_at_once(&queue, &queue.jobs[at])), [2, 9]);
    }
}
