//! Runs in which users react to the ends of their tasks instead of submitting at the times of the log.

use evenhand_model::{Time, Workload};
use evenhand_policies::Policy;
use evenhand_simulator::{
    Arrivals, JobOptions, Jobs, Layout, Progress, Reacted, Reactions, Simulated, SimulationError, Site, UserTasks,
    simulate_reactions,
};
use thiserror::Error;

use crate::digest::Digest;
use crate::jobs_on_site::OnSite;
use crate::logged::has_starts;
use crate::plan::{Plan, RunPlan, Starts};
use crate::replay::{ReplayOn, replay};

/// Changes when the same inputs give other results.
const SIMULATION: &str = "arrivals 1";

/// Why users of a workload cannot react.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ArrivalsError {
    /// Without starts nothing is known of what users waited for.
    #[error(
        "--arrivals {name}: the workload has no original starts, so what its users waited for is not known; expected a \
         log with starts, or --arrivals clock"
    )]
    NoStarts {
        /// What was asked for.
        name: &'static str,
    },
}

impl Plan {
    /// Determines when tasks are submitted.
    ///
    /// # Errors
    /// Returns an error if users are to react, and the workload has no original starts.
    pub fn with_arrivals(mut self, arrivals: Arrivals) -> Result<Plan, ArrivalsError> {
        if arrivals == Arrivals::Clock {
            return Ok(self);
        }
        if !has_starts(&self.workload) {
            return Err(ArrivalsError::NoStarts { name: arrivals.name() });
        }
        // What happened has the measurements of work, too.
        for run in &mut self.runs {
            run.digest = Digest::new().text(&run.digest).text(SIMULATION).text(arrivals.name()).hex();
        }
        self.reactions = Some(Reactions::new(&self.workload, UserTasks::new(&self.workload), arrivals));
        Ok(self)
    }

    /// Returns what determines when tasks are submitted.
    pub(crate) fn arrivals(&self) -> Arrivals {
        self.reactions.as_ref().map_or(Arrivals::Clock, Reactions::arrivals)
    }
}

/// Replays a workload under a policy with users who react.
///
/// `reactions` are those of `workload`, and `policy` is newly built.
///
/// # Errors
/// Returns an error if simulated time would pass its end, or `progress` was cancelled.
///
/// # Panics
/// If the workload has rows with a count (see [`Workload::expanded`]).
pub fn replay_reactions(
    workload: &Workload,
    reactions: &Reactions,
    on: ReplayOn<'_>,
    policy: &mut dyn Policy,
    progress: &Progress,
) -> Result<Reacted, SimulationError> {
    let run = match on {
        ReplayOn::Pool { capacity, options } => {
            let site = Site::pool(capacity);
            let jobs = Jobs::new(workload, &site, Layout::Auto);
            let options = JobOptions { blocking: options.blocking, until: options.until, ..JobOptions::default() };
            let run = simulate_reactions(workload, reactions, &site, &jobs, policy, options, progress)?;
            // As the pool's own simulation has it.
            Simulated { machines: None, ..run }
        }
        ReplayOn::Site { site, jobs, options } => {
            simulate_reactions(workload, reactions, site, jobs, policy, options, progress)?
        }
    };
    Ok(Reacted::new(workload, run))
}

/// A run, and the workload as it was submitted.
pub(crate) enum Ran<'a> {
    /// At the times of the workload.
    ByClock { workload: &'a Workload, tasks: &'a UserTasks, on_site: Option<&'a OnSite>, run: Box<Simulated> },
    /// By users who react.
    ByReactions { reacted: Box<Reacted>, on_site: Option<Box<OnSite>> },
}

impl<'a> Ran<'a> {
    /// Replays a workload on a site or pool, with users who react if there are `reactions`.
    pub(crate) fn replay(
        workload: &'a Workload,
        tasks: &'a UserTasks,
        reactions: Option<&Reactions>,
        on: ReplayOn<'_>,
        on_site: Option<&'a OnSite>,
        policy: &mut dyn Policy,
        progress: &Progress,
    ) -> Result<Ran<'a>, SimulationError> {
        let Some(reactions) = reactions else {
            let run = Box::new(replay(workload, tasks, on, policy, progress)?);
            return Ok(Ran::ByClock { workload, tasks, on_site, run });
        };
        let reacted = Box::new(replay_reactions(workload, reactions, on, policy, progress)?);
        let on_site = on_site.map(|on| Box::new(on.for_workload(&reacted.workload)));
        Ok(Ran::ByReactions { reacted, on_site })
    }

    /// The workload with the submissions of the run.
    pub(crate) fn workload(&self) -> &Workload {
        match self {
            Ran::ByClock { workload, .. } => workload,
            Ran::ByReactions { reacted, .. } => &reacted.workload,
        }
    }

    /// The tasks of its users.
    pub(crate) fn tasks(&self) -> &UserTasks {
        match self {
            Ran::ByClock { tasks, .. } => tasks,
            Ran::ByReactions { reacted, .. } => &reacted.tasks,
        }
    }

    /// The run, by rows of that workload.
    pub(crate) fn run(&self) -> &Simulated {
        match self {
            Ran::ByClock { run, .. } => run,
            Ran::ByReactions { reacted, .. } => &reacted.run,
        }
    }

    /// The site with the jobs of that workload.
    pub(crate) fn on_site(&self) -> Option<&OnSite> {
        match self {
            Ran::ByClock { on_site, .. } => *on_site,
            Ran::ByReactions { on_site, .. } => on_site.as_deref(),
        }
    }

    /// The row of the log of a row of that workload.
    pub(crate) fn row_of_log(&self, row: u32) -> u32 {
        match self {
            Ran::ByClock { .. } => row,
            Ran::ByReactions { reacted, .. } => reacted.rows[row as usize],
        }
    }
}

impl RunPlan {
    /// Returns whether its submissions depend on the run.
    pub(crate) fn is_simulated(&self) -> bool {
        matches!(self.starts, Starts::Under(_))
    }
}

/// Returns the time in which work done is compared: from the first submission of a log to its last.
pub(crate) fn window(workload: &Workload) -> (Time, Time) {
    let submit = &workload.columns().submit;
    let ends = submit.first().zip(submit.last()).map(|(first, last)| (*first, *last));
    ends.unwrap_or_default()
}
