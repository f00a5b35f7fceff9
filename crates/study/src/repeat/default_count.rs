//! How often a study repeats its runs if no number is asked for.

use evenhand_simulator::Backfill;

use crate::jobs_on_site::OnSite;
use crate::plan::{Plan, RunPlan, Starts};

/// The repeats of a study that can afford them: their intervals are reasonable, and more cost more than they tell.
pub const DEFAULT_REPEATS: u32 = 10;

/// What repeats may cost by default, in tasks simulated on a pool in strict order: a few seconds on two cores.
///
/// The limit counts tasks and not seconds, so that the same command gives the same results on every machine.
const AFFORDABLE: u64 = 20_000_000;

impl Plan {
    /// Returns how often to repeat the runs if no number is asked for: [`DEFAULT_REPEATS`] where that takes seconds, and
    /// otherwise 1, the log itself. It depends on the plan alone, not on the machine.
    pub fn default_repeats(&self) -> u32 {
        // A study without a comparison has no difference that could be luck.
        if self.runs.iter().all(|run| run.policy == self.against) {
            return 1;
        }
        let simulated = self.runs.iter().filter(|run| run.scheduler.is_some());
        let once: u64 = simulated.map(|run| self.cost_of_a_task(run)).sum::<u64>().saturating_mul(self.tasks());
        match once.saturating_mul(u64::from(DEFAULT_REPEATS)) <= AFFORDABLE {
            true => DEFAULT_REPEATS,
            false => 1,
        }
    }

    /// Returns about how many times as long as on a pool in strict order a task takes, as measured on the logs of KTH and
    /// CEA-Curie (`docs/src/explanation/performance.md`).
    fn cost_of_a_task(&self, run: &RunPlan) -> u64 {
        let site = |site: &OnSite| {
            let scheduler = match site.rules.backfill {
                Backfill::None => 1,
                Backfill::Easy => 6,
                Backfill::Conservative | Backfill::Planned(_) => 30,
                Backfill::Slurm => return 300,
            };
            scheduler * if site.cluster.is_some() { 4 } else { 1 }
        };
        let reacting = if self.reactions.is_some() { 4 } else { 1 };
        // A policy of a host's language, whose decisions take most of the time.
        let deciding = match &run.starts {
            Starts::Under(registration) => u64::from(registration.relative_cost),
            Starts::Logged => 1,
        };
        deciding * reacting * run.on_site.as_deref().map_or(1, site)
    }
}
