//! Runs the repeats of a study.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use evenhand_simulator::{Arrivals, Reactions, SimulationError, UserTasks};
use rayon::prelude::*;

use super::measurements::Measured;
use super::{Repeats, Variation};
use crate::class_results::Classification;
use crate::jobs_on_site::{OnSite, replay_on};
use crate::logged::as_logged;
use crate::plan::{Plan, RunPlan, Starts};
use crate::point::measured;
use crate::reacting::Ran;
use crate::record::RunRecord;
use crate::run::Live;
use crate::study_folder::{Folder, StudyError};

/// The measurements of each repeat of a run, by the run's id; the first is that of the log itself.
pub(crate) type MeasuredRuns = BTreeMap<String, Vec<Measured>>;

impl Plan {
    /// Repeats the runs of which there are records, on the threads of the current rayon pool. What the folder holds of
    /// the same inputs is not done again. If cancelled, returns the repeats that every run has.
    pub(crate) fn run_repeats(
        &self,
        repeats: &Repeats,
        records: &[RunRecord],
        folder: &Folder<'_>,
        live: &Live,
    ) -> Result<MeasuredRuns, StudyError> {
        let runs: Vec<(&RunPlan, &RunRecord)> =
            records.iter().filter_map(|record| Some((self.runs.iter().find(|r| r.id == record.id)?, record))).collect();
        let mut measured: Vec<Vec<Measured>> = runs
            .iter()
            .map(|(run, record)| {
                let mut all = vec![Measured::of(record)];
                all.extend(folder.stored_repeats(run, repeats));
                all.truncate(repeats.count as usize);
                all
            })
            .collect();
        let classification = |run: &RunPlan| Classification::new(&self.workload, &self.inputs.weights, &run.capacity);
        let classifications: Vec<Classification> = runs.iter().map(|(run, _)| classification(run)).collect();
        let stored: Vec<usize> = measured.iter().map(Vec::len).collect();
        let missing: usize = stored.iter().map(|n| repeats.count as usize - n).sum();
        live.repeats.planned.store(missing as u64, Ordering::Relaxed);
        // As many workloads at a time as keep all threads busy.
        let at_a_time = rayon::current_num_threads().div_ceil(runs.len().max(1));
        let numbers: Vec<u32> = (1..repeats.count).collect();
        for numbers in numbers.chunks(at_a_time) {
            let needed = |number: u32| stored.iter().any(|n| *n <= number as usize);
            let varied: Vec<Varied> = numbers
                .par_iter()
                .filter(|number| needed(**number))
                .map(|number| Varied::new(self, &runs, repeats, *number))
                .collect();
            let cells: Vec<(usize, &Varied)> = varied
                .iter()
                .flat_map(|varied| (0..runs.len()).map(move |run| (run, varied)))
                .filter(|(run, varied)| stored[*run] <= varied.number as usize)
                .collect();
            let results: Vec<Option<Measured>> = cells
                .par_iter()
                .map(|(run, varied)| self.run_varied(runs[*run].0, &classifications[*run], varied, live))
                .collect::<Result<_, _>>()?;
            let cancelled = results.iter().any(Option::is_none);
            for ((run, varied), result) in cells.into_iter().zip(results) {
                // Without gaps: what follows a repeat that was cancelled is done again.
                if let Some(result) = result.filter(|_| measured[run].len() == varied.number as usize) {
                    measured[run].push(result);
                }
            }
            if cancelled {
                break;
            }
        }
        for (((run, _), measured), stored) in runs.iter().zip(&measured).zip(stored) {
            if measured.len() > stored {
                folder.store_repeats(run, repeats, &measured[1..])?;
            }
        }
        Ok(runs.iter().map(|(run, _)| run.id.clone()).zip(measured).collect())
    }

    /// Returns the measurements of a run on a variation; `None` if cancelled.
    fn run_varied(
        &self,
        run: &RunPlan,
        classification: &Classification,
        varied: &Varied,
        live: &Live,
    ) -> Result<Option<Measured>, StudyError> {
        let (workload, progress) = (&varied.variation.workload, &live.repeats.progress);
        let on_site = varied.on_site(run);
        let ran = match &run.starts {
            // Its starts moved with its submissions.
            Starts::Logged => {
                Ran::ByClock { workload, tasks: &varied.tasks, on_site, run: Box::new(as_logged(workload)) }
            }
            Starts::Under(registration) => {
                let context = self.inputs.context(workload, &run.capacity, run.equivalents.as_ref(), run.decay);
                let mut policy = varied.variation.with_ties(registration.build(&context)?);
                let on = replay_on(on_site, &run.capacity, self.options);
                let reactions = varied.reactions.as_ref();
                match Ran::replay(workload, &varied.tasks, reactions, on, on_site, policy.as_mut(), progress) {
                    Ok(ran) => ran,
                    Err(SimulationError::Cancelled) => return Ok(None),
                    Err(source) => return Err(StudyError::Simulation { run: run.id.clone(), source }),
                }
            }
        };
        live.repeats.done.fetch_add(1, Ordering::Relaxed);
        let classes = classification.results(ran.workload(), ran.run());
        let record = measured(ran.workload(), ran.tasks(), &run.capacity, ran.run(), None);
        let record = RunRecord { classes, ..record };
        Ok(Some(Measured::of(&self.with_work_done(record, &ran, workload))))
    }
}

/// A variation with everything that its runs share.
struct Varied {
    number: u32,
    variation: Variation,
    tasks: UserTasks,
    /// What its users react to, if they do.
    reactions: Option<Reactions>,
    /// Each site of the study, and the jobs of the variation on it.
    sites: Vec<(Arc<OnSite>, OnSite)>,
}

impl Varied {
    fn new(plan: &Plan, runs: &[(&RunPlan, &RunRecord)], repeats: &Repeats, number: u32) -> Varied {
        let variation = Variation::new(&plan.workload, repeats, number);
        let mut sites: Vec<(Arc<OnSite>, OnSite)> = Vec::new();
        for original in runs.iter().filter_map(|(run, _)| run.on_site.as_ref()) {
            if !sites.iter().any(|(known, _)| Arc::ptr_eq(known, original)) {
                sites.push((Arc::clone(original), original.for_workload(&variation.workload)));
            }
        }
        let tasks = UserTasks::new(&variation.workload);
        let reactions = match plan.arrivals() {
            Arrivals::Clock => None,
            arrivals => Some(Reactions::new(&variation.workload, tasks.clone(), arrivals)),
        };
        Varied { number, tasks, reactions, variation, sites }
    }

    fn on_site(&self, run: &RunPlan) -> Option<&OnSite> {
        let original = run.on_site.as_ref()?;
        self.sites.iter().find(|(known, _)| Arc::ptr_eq(known, original)).map(|(_, on)| on)
    }
}
