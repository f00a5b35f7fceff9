//! Results that only Slurm's scheduler has.

/// The activity of the scheduler that started a job: `SchedSubmit`, `SchedMain` and `SchedBackfill` of sacct(1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Activity {
    /// Its submission.
    Submit,
    /// A pass of the main scheduler.
    Main,
    /// A run of backfill.
    Backfill,
}

impl Activity {
    /// All activities.
    pub const ALL: [Activity; 3] = [Activity::Submit, Activity::Main, Activity::Backfill];

    /// Returns the name in results.
    pub fn name(self) -> &'static str {
        match self {
            Activity::Submit => "submit",
            Activity::Main => "main",
            Activity::Backfill => "backfill",
        }
    }
}

/// How often running jobs were preempted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Preemptions {
    /// And waited to run again; a job counts as often as that happened.
    pub requeued: u64,
    /// And ended.
    pub cancelled: u64,
    /// And stopped until they could go on; a job counts as often as that happened.
    pub suspended: u64,
}

/// Results that only Slurm's scheduler has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlurmResults {
    /// By row: what started it.
    pub started_by: Vec<Option<Activity>>,
    /// How many jobs were ended by their time limits.
    pub ended_by_limit: u64,
    /// How often running jobs were preempted; `None` if none was.
    pub preempted: Option<Preemptions>,
    /// How many jobs were submitted beyond a limit of submissions, which Slurm would have refused; `None` without such
    /// limits.
    pub beyond_submit_limits: Option<u64>,
    /// How many jobs were left when nothing but time could let them start, and did not for two weeks; `None` if none were.
    pub never_started: Option<u64>,
}
