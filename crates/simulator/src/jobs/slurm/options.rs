//! Settings of Slurm's scheduler.

use evenhand_model::{PreemptMode, Span};

/// Who may preempt whom (`PreemptType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreemptType {
    /// `preempt/partition_prio`: jobs of partitions of a higher tier those of a lower one.
    Partition,
    /// `preempt/qos`: jobs of a QOS those of the QOS that it names.
    Qos,
}

/// Settings of Slurm's scheduler; the default is that of release 22.05 with sched/backfill.
///
/// Names are those of slurm.conf(5); 0 means no limit where a number limits something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlurmOptions {
    /// Whether jobs are tried at their submission, as those of `salloc` and `srun`; batch jobs never are.
    pub at_submission: bool,
    /// `defer`: no job is tried at its submission, and the end of a job never starts a pass at once.
    pub defer: bool,
    /// `sched_interval`: time between passes over the whole queue; `None`: there are none.
    pub sched_interval: Option<Span>,
    /// `batch_sched_delay`: shortest time from a periodic pass to the next one that a submission causes.
    pub batch_sched_delay: Span,
    /// `default_queue_depth`: how many jobs a pass looks at that is not over the whole queue.
    pub default_queue_depth: u32,
    /// `partition_job_depth`: how many jobs of a partition a pass looks at.
    pub partition_job_depth: u32,
    /// `sched_max_job_start`: how many jobs a pass starts.
    pub sched_max_job_start: u32,
    /// `SchedulerType`: whether it is sched/backfill, not sched/builtin.
    pub backfill: bool,
    /// `bf_interval`: time from one run of backfill to the next.
    pub bf_interval: Span,
    /// `bf_window`: how far ahead backfill plans.
    pub bf_window: Span,
    /// `bf_resolution`: the grain of planned times.
    pub bf_resolution: Span,
    /// `bf_max_job_test`: how many jobs a run tests.
    pub bf_max_job_test: u32,
    /// `bf_max_job_start`: how many jobs a run starts.
    pub bf_max_job_start: u32,
    /// `bf_max_job_array_resv`: for how many tasks of an array a run reserves nodes.
    pub bf_max_job_array_resv: u32,
    /// `bf_max_job_user`: how many jobs of a user a run looks at.
    pub bf_max_job_user: u32,
    /// `bf_max_job_part`: how many jobs of a partition a run looks at.
    pub bf_max_job_part: u32,
    /// `bf_max_job_user_part`: how many jobs of a user in a partition a run looks at.
    pub bf_max_job_user_part: u32,
    /// `bf_max_job_assoc`: how many jobs of a user in an account a run looks at.
    pub bf_max_job_assoc: u32,
    /// `bf_min_age_reserve`: younger jobs reserve nothing and block no partition.
    pub bf_min_age_reserve: Span,
    /// `bf_min_prio_reserve`: jobs of a lower priority reserve nothing and block no partition; has no effect under
    /// policies that give jobs no priority.
    pub bf_min_prio_reserve: u32,
    /// `bf_job_part_count_reserve`: how many jobs of a partition have a reservation.
    pub bf_job_part_count_reserve: u32,
    /// `bf_busy_nodes`: whether planned jobs are put on nodes that are in use, if they can.
    pub bf_busy_nodes: bool,
    /// `bf_licenses`: whether backfill plans with licences, and a pass ends at a job that lacks some.
    pub bf_licenses: bool,
    /// `bf_window_linear`: by how much the groups of ends grow that a test takes together; `None`: they double.
    pub bf_window_linear: Option<Span>,
    /// Whether backfill tests a later start for itself, as from Slurm 24.11 on: what ends before it is gone, and the test
    /// goes no further than the next one. Else each test begins now and ends with the last running job.
    pub tests_by_interval: bool,
    /// `assoc_limit_stop`: whether a job that a limit holds back blocks its partition.
    pub assoc_limit_stop: bool,
    /// `CR_LLN`: whether a job is put on the least loaded nodes.
    pub least_loaded: bool,
    /// `SelectType=select/linear`: whether every job has whole nodes.
    pub whole_nodes: bool,
    /// `PriorityCalcPeriod`: time from one computation of priorities to the next.
    pub priority_calc_period: Span,
    /// `AccountingStorageEnforce` with limits: whether the end of a job charges what it used since priorities were last
    /// computed. Else that is never charged.
    pub charge_ends: bool,
    /// `OverTimeLimit`: by how much jobs may exceed their limits; `None`: by any amount.
    pub over_time_limit: Option<Span>,
    /// `KillWait`: time from the first signal to a job beyond its limit to the last.
    pub kill_wait: Span,
    /// `CompleteWait`: while a job completes, up to this time no other starts.
    pub complete_wait: Span,
    /// `Epilog`: whether nodes run a program at the end of a job. Then the last node's report starts a pass at once;
    /// else nodes answer the request to end the job with that report, which only asks for a pass.
    pub epilog: bool,
    /// Time from the end of a job to the instant at which its nodes are free; slurm.conf does not set it.
    pub completing: Span,
    /// `PreemptType`: who may preempt whom; `None`: nobody.
    pub preempt_type: Option<PreemptType>,
    /// `PreemptMode`: what becomes of preempted jobs of partitions and QOS that set nothing; `Off`: no job is preempted.
    pub preempt_mode: PreemptMode,
    /// `GANG` of `PreemptMode`: whether jobs can be suspended; without it those of that mode are not preempted.
    pub preempt_gang: bool,
    /// `SchedulerTimeSlice`: how long the turns are that jobs of a partition take of which some are suspended.
    pub scheduler_time_slice: Span,
    /// `WITHIN` of `PreemptMode`: whether with preempt/qos jobs preempt others of their own QOS that have a lower priority,
    /// under policies that give jobs priorities.
    pub preempt_within: bool,
    /// `PRIORITY` of `PreemptMode`: whether jobs preempt only others of a lower priority.
    pub preempt_priority: bool,
    /// `PreemptExemptTime`: how long jobs run before they can be preempted.
    pub preempt_exempt_time: Span,
    /// `preempt_youngest_first`: whether the jobs that started last are preempted first.
    pub preempt_youngest_first: bool,
    /// `preempt_strict_order`: whether the order of preempted jobs is changed as little as possible.
    pub preempt_strict_order: bool,
    /// `preempt_reorder_count`: how often the order of preempted jobs is changed.
    pub preempt_reorder_count: u32,
}

impl Default for SlurmOptions {
    fn default() -> SlurmOptions {
        SlurmOptions {
            at_submission: false,
            defer: false,
            sched_interval: Some(Span::from_secs(60)),
            batch_sched_delay: Span::from_secs(3),
            default_queue_depth: 100,
            partition_job_depth: 0,
            sched_max_job_start: 0,
            backfill: true,
            bf_interval: Span::from_secs(30),
            bf_window: Span::from_secs(86_400),
            bf_resolution: Span::from_secs(60),
            bf_max_job_test: 500,
            bf_max_job_start: 0,
            bf_max_job_array_resv: 20,
            bf_max_job_user: 0,
            bf_max_job_part: 0,
            bf_max_job_user_part: 0,
            bf_max_job_assoc: 0,
            bf_min_age_reserve: Span::ZERO,
            bf_min_prio_reserve: 0,
            bf_job_part_count_reserve: 0,
            bf_busy_nodes: false,
            bf_licenses: false,
            bf_window_linear: None,
            tests_by_interval: false,
            assoc_limit_stop: false,
            least_loaded: false,
            whole_nodes: false,
            priority_calc_period: Span::from_secs(300),
            charge_ends: false,
            over_time_limit: Some(Span::ZERO),
            kill_wait: Span::from_secs(30),
            complete_wait: Span::ZERO,
            epilog: false,
            completing: Span::ZERO,
            preempt_type: None,
            preempt_mode: PreemptMode::Off,
            preempt_gang: false,
            scheduler_time_slice: Span::from_secs(30),
            preempt_within: false,
            preempt_priority: false,
            preempt_exempt_time: Span::ZERO,
            preempt_youngest_first: false,
            preempt_strict_order: false,
            preempt_reorder_count: 1,
        }
    }
}
