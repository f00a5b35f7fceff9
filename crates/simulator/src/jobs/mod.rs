//! Jobs that ask for a wall time, on a pool or on machines: strict order and backfilling.
//!
//! docs/src/reference/backfilling.md defines the behaviour exactly, including tie rules.

mod availability_profile;
mod best_machine;
mod chunk_choice;
mod class_buckets;
mod conservative_backfill;
mod earlier_starts;
mod easy_backfill;
mod easy_turns;
mod engine;
mod fitting_chunks;
mod free_capacity_tree;
mod free_machines;
mod free_totals;
mod head_reservation;
mod job_arrays;
mod job_limits;
mod kind;
mod lay_out;
mod layout;
mod least_levels;
mod licences;
mod machine_classes;
mod machine_profiles;
mod machine_set;
mod machine_state;
mod occupied_classes;
mod pending_jobs;
mod pending_kinds;
mod placement;
mod placements;
mod planned_backfill;
mod planned_placement;
mod planned_settings;
mod prepared_jobs;
mod queue_choices;
mod release_log;
mod requirements;
mod reservation_plan;
mod shortfall;
mod site;
mod slurm;
mod start_search;
mod step_blocks;
mod step_function;
mod uneven_chunks;
mod waiting_groups;

use evenhand_model::{Resource, Span, Time, Workload};
use evenhand_policies::Policy;
pub(crate) use kind::Kind;
pub use layout::{Layout, LayoutError, LayoutRule};
pub use placement::{PLACEMENTS, Placement};
pub use planned_settings::{
    BackfillOrder, Events, Passing, PlanReservations, PlannedBackfill, PlannedLength, Processors, Reserve,
    ReservedStart,
};
pub use prepared_jobs::{Jobs, Rejection, ZeroLimit};
pub use site::{Site, SiteError};
pub use slurm::{Activity, PreemptType, Preemptions, SlurmOptions, SlurmResults};

use pending_jobs::PendingJobs;

use crate::arrivals::Reactions;
use crate::{Progress, Simulated, SimulationError, UserTasks};

/// Which jobs may start before the head of the queue, which does not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backfill {
    /// No backfilling.
    #[default]
    None,
    /// Those that do not delay the head, by estimates (Lifka, The ANL/IBM SP Scheduling System,
    /// JSSPP 1995).
    Easy,
    /// Those that delay no job submitted before them, by estimates (Mu'alem and Feitelson, IEEE
    /// TPDS 12(6), 2001).
    Conservative,
    /// Those that leave reservations as they are, by settings; those of EASY and of conservative backfilling are among
    /// them.
    Planned(PlannedBackfill),
    /// Those that Slurm starts, by [`SlurmOptions`].
    Slurm,
}

impl Backfill {
    /// Returns whether jobs keep reservations that were planned before.
    pub fn keeps_reservations(self) -> bool {
        match self {
            Backfill::Planned(settings) => settings.plan != PlanReservations::Anew,
            backfill => backfill == Backfill::Conservative,
        }
    }
}

/// Every kind of backfilling on its own, and its name.
pub const BACKFILLS: [(&str, Backfill); 3] =
    [("none", Backfill::None), ("easy", Backfill::Easy), ("conservative", Backfill::Conservative)];

/// How jobs are simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobOptions {
    /// Where a chunk is put.
    pub placement: Placement,
    /// The rule for jobs that start before the head of the queue.
    pub backfill: Backfill,
    /// Without backfilling: whether a job that does not fit stops all scheduling, or only sets its
    /// user aside until the next finish or submission.
    pub blocking: bool,
    /// The settings of [`Backfill::Slurm`].
    pub slurm: SlurmOptions,
    /// Stop after this instant; `None`: when every accepted job has finished.
    pub until: Option<Time>,
}

impl Default for JobOptions {
    fn default() -> Self {
        JobOptions {
            placement: Placement::default(),
            backfill: Backfill::default(),
            blocking: true,
            slurm: SlurmOptions::default(),
            until: None,
        }
    }
}

/// Results of a job simulation beside the start times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineResults {
    /// By row: when it finishes, in nanoseconds, or [`NO_TIME`](evenhand_model::NO_TIME).
    pub finishes: Vec<u64>,
    /// By row: the first start reserved for it, in nanoseconds, or `NO_TIME`. EASY reserves the first
    /// time a job reaches the head of the queue and does not fit, conservative backfilling at submission. Empty
    /// without backfilling.
    pub first_reservation: Vec<u64>,
    /// By machine and resource: amount times nanoseconds held.
    pub busy: Vec<u128>,
    /// Where each job ran, in order of start: one entry a job, machine and size of chunks.
    pub placed: Vec<Assignment>,
    /// Results of Slurm's scheduler; `None` of another.
    pub slurm: Option<SlurmResults>,
}

/// Chunks of a job on a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The job.
    pub row: u32,
    /// The machine's number.
    pub machine: u32,
    /// How many of its chunks.
    pub chunks: u32,
    /// Their size: 0 for the first of the job's sizes, of which there is more than one where the last chunk is smaller
    /// than the others, or where the source says so.
    pub size: u16,
}

/// Replays `workload` on a site under `policy`; `jobs` are the workload's on that site.
///
/// # Errors
/// If cancelled, or if simulated time would pass [`Time::MAX`].
pub fn simulate_jobs(
    workload: &Workload,
    tasks: &UserTasks,
    site: &Site,
    jobs: &Jobs,
    policy: &mut dyn Policy,
    options: JobOptions,
    progress: &Progress,
) -> Result<Simulated, SimulationError> {
    let pending = PendingJobs::new(workload, tasks, jobs, None);
    run(workload, pending, site, jobs, policy, options, progress)
}

/// Replays `workload` on a site under `policy`, submitting tasks as `reactions`, which are the workload's, determine.
///
/// # Errors
/// If cancelled, or if simulated time would pass [`Time::MAX`].
pub fn simulate_reactions(
    workload: &Workload,
    reactions: &Reactions,
    site: &Site,
    jobs: &Jobs,
    policy: &mut dyn Policy,
    options: JobOptions,
    progress: &Progress,
) -> Result<Simulated, SimulationError> {
    let pending = PendingJobs::new(workload, reactions.tasks_of_users(), jobs, Some(reactions));
    run(workload, pending, site, jobs, policy, options, progress)
}

fn run<'a>(
    workload: &'a Workload,
    pending: PendingJobs<'a>,
    site: &'a Site,
    jobs: &'a Jobs,
    policy: &mut dyn Policy,
    options: JobOptions,
    progress: &'a Progress,
) -> Result<Simulated, SimulationError> {
    if options.backfill == Backfill::Slurm {
        return slurm::Engine::new(workload, pending, site, jobs, options.slurm, options.until, progress).run(policy);
    }
    engine::Engine::new(workload, pending, site, jobs, options, progress).run(policy)
}

impl MachineResults {
    /// Returns the time mean of amount held over amount present, by group of machines and resource, over
    /// `span`; `None` for resources that a group does not have.
    pub fn group_utilization(&self, site: &Site, span: Span) -> Vec<Vec<Option<f64>>> {
        let width = site.groups.first().map_or(0, |g| g.has.len());
        let of = |group: &site::Group, r: usize| {
            let numbers = group.first as usize..(group.first + group.count) as usize;
            let held: u128 = numbers.map(|m| self.busy[m * width + r]).sum();
            let there = group.has[r] as f64 * f64::from(group.count);
            let is_there = site.whole_machine(site.group_of(group.first) as u16)[r] > 0;
            is_there.then(|| if span == Span::ZERO { 0.0 } else { held as f64 / there / span.nanos() as f64 })
        };
        site.groups.iter().map(|group| (0..width).map(|r| of(group, r)).collect()).collect()
    }
}

impl Rejection {
    fn describe(self, resources: &[Resource]) -> String {
        let name = |r: u8| resources.get(usize::from(r)).map_or("a resource", |r| r.name.as_str());
        match self {
            Rejection::Resource(r) => format!("no machine it may use has so much {}", name(r)),
            Rejection::Together => "no machine it may use has enough of all it asks for at once".into(),
            Rejection::Wall => "its queue allows less wall time".into(),
            Rejection::JobLimit(r) => format!("its queue allows a job less {}", name(r)),
            Rejection::LimitedAmount(r) => format!("a limit of its account, user or QOS allows less {}", name(r)),
            Rejection::Licences => "there are not so many licences as it asks for".into(),
            Rejection::LimitedWall => "a limit of its account, user or QOS allows less wall time".into(),
            Rejection::UserLimit(r) => format!("its queue allows a user less {}", name(r)),
            Rejection::Held(..) => "held by a limit of 0".into(),
        }
    }
}
