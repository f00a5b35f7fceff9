//! Runs the grid of a study.

use std::path::Path;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

use evenhand_model::Workload;
use evenhand_simulator::{Arrivals, Progress, Simulated, SimulationError, UserTasks};
use rayon::prelude::*;

use crate::account_record::by_account;
use crate::class_results::{Classification, heavy_users};
use crate::compare_classes::compare_classes;
use crate::compare_runs::compare;
use crate::jobs_on_site::replay_on;
use crate::logged::{as_logged, has_starts};
use crate::plan::{Plan, RunPlan, Starts};
use crate::point::{measured, processors};
use crate::reacting::{Ran, window};
use crate::record::{ComparisonRecord, MethodRecord, RunRecord, StudyRecord, TrustRecord};
use crate::repeat::add_noise;
use crate::study_folder::{Folder, Stored, StudyError, TaskFormat};
use crate::trust::{TrustedSite, trust};
use crate::waste_record::waste_record;
use crate::work_done::work_done;

/// State of a run of a study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RunState {
    /// It has not begun.
    Waiting,
    /// It is being simulated.
    Running,
    /// It is simulated and stored.
    Done,
    /// It was found in the folder, for the same inputs.
    Reused,
}

/// Progress of one run.
#[derive(Debug)]
pub struct LiveRun {
    /// The run's id.
    pub id: String,
    /// The simulator's progress.
    pub progress: Progress,
    state: AtomicU8,
    damage: OnceLock<String>,
}

impl LiveRun {
    /// Returns the state of the run.
    pub fn state(&self) -> RunState {
        match self.state.load(Ordering::Relaxed) {
            0 => RunState::Waiting,
            1 => RunState::Running,
            2 => RunState::Done,
            _ => RunState::Reused,
        }
    }

    /// Returns why the result in the folder was not reused, if it was there but not as it was written.
    pub fn damage(&self) -> Option<&str> {
        self.damage.get().map(String::as_str)
    }

    fn set(&self, state: RunState) {
        self.state.store(state as u8, Ordering::Relaxed);
    }
}

/// Progress of a running study, and the way to stop it.
#[derive(Debug)]
pub struct Live {
    /// One entry per run, in the plan's order.
    pub runs: Vec<LiveRun>,
    /// The repeats, which follow the runs.
    pub repeats: LiveRepeats,
}

/// Progress of the repeats of a study, over all runs.
#[derive(Debug, Default)]
pub struct LiveRepeats {
    /// How many are to be made; 0 before they begin.
    pub planned: AtomicU64,
    /// How many are made.
    pub done: AtomicU64,
    /// What stops them.
    pub(crate) progress: Progress,
}

impl Live {
    /// Creates the progress of the runs of `plan`, none of which has begun.
    pub fn new(plan: &Plan) -> Live {
        let run = |r: &RunPlan| LiveRun {
            id: r.id.clone(),
            progress: Progress::default(),
            state: AtomicU8::new(RunState::Waiting as u8),
            damage: OnceLock::new(),
        };
        Live { runs: plan.runs.iter().map(run).collect(), repeats: LiveRepeats::default() }
    }

    /// Stops every run soon. Finished runs stay.
    pub fn cancel(&self) {
        let repeats = std::iter::once(&self.repeats.progress);
        self.runs.iter().map(|r| &r.progress).chain(repeats).for_each(|p| p.cancel.store(true, Ordering::Relaxed));
    }
}

impl Plan {
    /// Runs what the folder `dir` does not hold yet, on the threads of the current rayon pool, and
    /// writes `summary.json`, `users.csv` and the tasks of each run.
    ///
    /// Cancelled runs are listed in [`StudyRecord::missing`]; the rest is written all the same.
    ///
    /// # Errors
    /// Returns an error if a file cannot be written or a run passes the end of simulated time; finished runs stay in
    /// the folder.
    pub fn run(
        &self,
        dir: &Path,
        source: &str,
        method: MethodRecord,
        format: TaskFormat,
        live: &Live,
    ) -> Result<StudyRecord, StudyError> {
        let folder = Folder::open(dir, format)?;
        let tasks = UserTasks::new(&self.workload);
        let failed = Mutex::new(None);
        let records: Vec<Option<RunRecord>> = self
            .runs
            .par_iter()
            .zip(&live.runs)
            .map(|(run, live_run)| match self.run_one(run, &tasks, &folder, live_run) {
                Ok(record) => record,
                Err(error) => {
                    // The first error stops the others: a full disk will not get better.
                    failed.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert(error);
                    live.cancel();
                    None
                }
            })
            .collect();
        if let Some(error) = failed.into_inner().unwrap_or_else(|e| e.into_inner()) {
            return Err(error);
        }
        let mut record = self.record(source, method, records);
        if let Some(repeats) = &self.repeats {
            let measured = self.run_repeats(repeats, &record.runs, &folder, live)?;
            add_noise(&mut record, &self.workload, &self.heavy_users(), repeats, &measured);
        }
        folder.write_summary(&record, self.list_all_users)?;
        Ok(record)
    }

    /// Returns the record of one run, found in the folder or simulated and stored; `None` if cancelled.
    fn run_one(
        &self,
        run: &RunPlan,
        tasks: &UserTasks,
        folder: &Folder<'_>,
        live: &LiveRun,
    ) -> Result<Option<RunRecord>, StudyError> {
        match folder.stored_run(run) {
            Stored::Nothing => {}
            Stored::Damaged(why) => drop(live.damage.set(why)),
            Stored::Result(record) => {
                live.progress.tasks.store(self.tasks(), Ordering::Relaxed);
                live.set(RunState::Reused);
                return Ok(Some(*record));
            }
        }
        if live.progress.cancel.load(Ordering::Relaxed) {
            return Ok(None);
        }
        live.set(RunState::Running);
        let begun = Instant::now();
        let on_site = run.on_site.as_deref();
        let ran = match &run.starts {
            Starts::Logged => {
                Ran::ByClock { workload: &self.workload, tasks, on_site, run: Box::new(as_logged(&self.workload)) }
            }
            Starts::Under(registration) => {
                let context = self.inputs.context(&self.workload, &run.capacity, run.equivalents.as_ref(), run.decay);
                let mut policy = registration.build(&context)?;
                let on = replay_on(on_site, &run.capacity, self.options);
                let (workload, reactions) = (&self.workload, self.reactions.as_ref());
                match Ran::replay(workload, tasks, reactions, on, on_site, policy.as_mut(), &live.progress) {
                    Ok(ran) => ran,
                    Err(SimulationError::Cancelled) => return Ok(None),
                    Err(source) => return Err(StudyError::Simulation { run: run.id.clone(), source }),
                }
            }
        };
        live.progress.tasks.store(self.tasks(), Ordering::Relaxed);
        let elapsed_s = begun.elapsed().as_secs_f64();
        let (workload, tasks, on_site, simulated) = (ran.workload(), ran.tasks(), ran.on_site(), ran.run());
        let processors = processors(workload, &run.capacity, on_site);
        let processors = processors.as_ref();
        let accounts = by_account(workload, tasks, self.inputs.accounts.as_ref(), simulated, processors);
        let record = RunRecord {
            id: run.id.clone(),
            policy: run.policy.clone(),
            capacity_factor: run.capacity_factor,
            capacity_name: run.capacity_name.clone(),
            delta: run.decay.map(|d| d.delta()),
            tau_s: run.decay.map(|d| d.tau_s()),
            half_life: run.half_life.clone(),
            scheduler: run.scheduler.clone(),
            elapsed_s,
            jobs: on_site.map(|on| on.record(workload, tasks, simulated)),
            // A log may hold more than the capacity; idle amounts are then not defined.
            waste: run.fits.then(|| waste_record(workload, &run.capacity, on_site, simulated)),
            accounts,
            classes: Classification::new(workload, &self.inputs.weights, &run.capacity).results(workload, simulated),
            trust: self.trust(run, simulated),
            ..measured(workload, tasks, &run.capacity, simulated, processors)
        };
        let record = self.with_work_done(record, &ran, &self.workload);
        folder.store_run(run, &ran, &record)?;
        live.set(RunState::Done);
        Ok(Some(record))
    }

    /// Adds what users get done, where they react, to the record of a run. `log`: the workload of which the run is one.
    pub(crate) fn with_work_done(&self, mut record: RunRecord, ran: &Ran<'_>, log: &Workload) -> RunRecord {
        let arrivals = self.arrivals();
        if arrivals == Arrivals::Clock {
            return record;
        }
        let (work, finishes) = work_done(ran.workload(), ran.tasks(), ran.run(), arrivals.name(), window(log));
        record.work = Some(work);
        for (user, finish) in record.users.iter_mut().zip(finishes) {
            user.finish_s = finish;
        }
        record
    }

    /// Compares a simulated run with the log. On a multiple of R the machine is another than the log's; users who react
    /// submit other than in the log.
    fn trust(&self, run: &RunPlan, simulated: &Simulated) -> Option<TrustRecord> {
        if !run.is_simulated()
            || self.reactions.is_some()
            || run.capacity_factor.is_some()
            || !has_starts(&self.workload)
        {
            return None;
        }
        let on_site = run.on_site.as_ref();
        let site = TrustedSite {
            cluster: on_site.and_then(|on_site| on_site.cluster.as_ref()),
            follows_closures: on_site
                .is_some_and(|on_site| on_site.rules.backfill == evenhand_simulator::Backfill::Slurm),
        };
        let trust = trust(&self.workload, &run.capacity, &as_logged(&self.workload), simulated, site)?;
        Some(TrustRecord { policy: run.policy.clone(), run: run.id.clone(), ..trust })
    }

    /// Returns by user whether it is in the class of heavy users.
    fn heavy_users(&self) -> Vec<bool> {
        heavy_users(&self.workload, &self.inputs.weights)
    }

    fn record(&self, source: &str, method: MethodRecord, records: Vec<Option<RunRecord>>) -> StudyRecord {
        let missing =
            self.runs.iter().zip(&records).filter(|(_, r)| r.is_none()).map(|(run, _)| run.id.clone()).collect();
        let runs: Vec<RunRecord> = records.into_iter().flatten().collect();
        let heavy = self.heavy_users();
        let compared = |run: &RunRecord, base: &RunRecord| ComparisonRecord {
            classes: compare_classes(run, base, &heavy),
            ..compare(run, base)
        };
        let comparisons = runs
            .iter()
            .filter_map(|run| {
                let base = runs.iter().find(|b| b.capacity_name == run.capacity_name && b.policy == self.against)?;
                (base.id != run.id).then(|| compared(run, base))
            })
            .collect();
        let with_trust = || runs.iter().filter(|run| run.trust.is_some());
        let trusted = with_trust().find(|run| run.policy == self.against).or_else(|| with_trust().next());
        let trust = trusted.and_then(|run| run.trust.clone());
        StudyRecord { workload: self.workload_record(source), method, runs, comparisons, trust, repeats: None, missing }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PolicyInputs, RequestedCapacity, StudyRequest};
    use evenhand_model::{Quantity, Resource, Span, Task, Time, Weights, Workload, WorkloadBuilder};

    /// Two users whose tasks overlap, so that half of R makes them wait.
    fn workload() -> Workload {
        let mut b = WorkloadBuilder::new([Resource::new("cpu", "")]);
        for i in 0..200u64 {
            b.push(&Task {
                submit: Time::from_secs(i / 3),
                duration: Span::from_secs(5 + i % 7),
                user: if i % 5 == 0 { "light" } else { "heavy" },
                amounts: &[1_000_000_000],
                ..Task::default()
            });
        }
        b.finish().unwrap()
    }

    fn plan() -> Plan {
        let multiple = |c: &str| RequestedCapacity::Multiple(c.into(), Quantity::parse(c).unwrap());
        let request = StudyRequest {
            policies: ["fifo", "drf"].map(String::from).into(),
            against: None,
            capacities: vec![multiple("0.5"), multiple("0.8")],
            decays: vec![],
            inputs: PolicyInputs::new(Weights::equal(2)),
            blocking: true,
            until_trace_end: false,
            jobs: crate::JobRules::default(),
        };
        Plan::new(workload(), &request).unwrap()
    }

    fn run(plan: &Plan, dir: &Path, live: &Live) -> StudyRecord {
        plan.run(dir, "a test", MethodRecord::default(), TaskFormat::Parquet, live).unwrap()
    }

    #[test]
    fn a_second_run_reuses_the_first_and_says_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let plan = plan();
        let first = run(&plan, dir.path(), &Live::new(&plan));
        let live = Live::new(&plan);
        let second = run(&plan, dir.path(), &live);
        assert_eq!(first, second);
        assert!(live.runs.iter().all(|r| r.state() == RunState::Reused));
        assert_eq!(first.comparisons.len(), 2);
        assert!(first.missing.is_empty());
        assert!(dir.path().join("tasks-drf-0.8.parquet").exists());
        // A run whose tasks are gone is run again; so is one that cannot be read.
        std::fs::remove_file(dir.path().join("tasks-drf-0.8.parquet")).unwrap();
        std::fs::write(dir.path().join("runs/fifo-0.5.json"), "{").unwrap();
        let live = Live::new(&plan);
        run(&plan, dir.path(), &live);
        let states: Vec<RunState> = live.runs.iter().map(LiveRun::state).collect();
        assert_eq!(states, [RunState::Done, RunState::Reused, RunState::Reused, RunState::Done]);
        assert!(live.runs[0].damage().unwrap().contains("fifo-0.5.json is damaged"));
        assert_eq!(live.runs[1].damage(), None);
    }

    #[test]
    fn a_result_that_was_changed_is_computed_again() {
        let dir = tempfile::tempdir().unwrap();
        let plan = plan();
        let first = run(&plan, dir.path(), &Live::new(&plan));
        let bytes = |name: &str| std::fs::read(dir.path().join(name)).unwrap();
        let (tasks, record) = (bytes("tasks-fifo-0.5.parquet"), bytes("runs/drf-0.5.json"));
        std::fs::write(dir.path().join("tasks-fifo-0.5.parquet"), "").unwrap();
        let edited = String::from_utf8(record).unwrap().replacen("\"submitted\": 4", "\"submitted\": 5", 1);
        std::fs::write(dir.path().join("runs/drf-0.5.json"), edited).unwrap();
        let live = Live::new(&plan);
        let second = run(&plan, dir.path(), &live);
        let states: Vec<RunState> = live.runs.iter().map(LiveRun::state).collect();
        assert_eq!(states, [RunState::Done, RunState::Done, RunState::Reused, RunState::Reused]);
        assert!(live.runs[0].damage().unwrap().contains("tasks-fifo-0.5.parquet is not as it was written"));
        assert!(live.runs[1].damage().unwrap().contains("runs/drf-0.5.json is damaged"));
        assert_eq!(bytes("tasks-fifo-0.5.parquet"), tasks);
        assert_eq!(first.runs[1].totals, second.runs[1].totals);
    }

    #[test]
    fn a_cancelled_study_says_what_is_missing_and_keeps_the_rest() {
        let dir = tempfile::tempdir().unwrap();
        let plan = plan();
        let live = Live::new(&plan);
        // The first two runs are in the folder already; the others never begin.
        run(&plan, dir.path(), &Live::new(&plan));
        for id in ["fifo-0.8", "drf-0.8"] {
            std::fs::remove_file(dir.path().join(format!("runs/{id}.json"))).unwrap();
        }
        live.cancel();
        let record = run(&plan, dir.path(), &live);
        assert_eq!(record.missing, ["fifo-0.8", "drf-0.8"]);
        assert_eq!(record.runs.iter().map(|r| r.id.as_str()).collect::<Vec<_>>(), ["fifo-0.5", "drf-0.5"]);
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_the_environment_s_fault() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let plan = plan();
        let result = plan.run(&file.join("x"), "", MethodRecord::default(), TaskFormat::None, &Live::new(&plan));
        assert!(result.unwrap_err().is_environment());
    }

    #[test]
    fn summaries_leave_out_the_curves_and_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let plan = plan();
        let record = run(&plan, dir.path(), &Live::new(&plan));
        let text = std::fs::read_to_string(dir.path().join("summary.json")).unwrap();
        let summary: StudyRecord = serde_json::from_str(&text).unwrap();
        assert_eq!(summary, record.summary(false));
        assert!(!text.contains("\"series\""));
        let users = std::fs::read_to_string(dir.path().join("users.csv")).unwrap();
        assert_eq!(users.lines().count(), 1 + 4 * 2);
        assert!(users.contains("\ndrf-0.8,drf,0.8,light,40,0,40,40,"));
    }
}
