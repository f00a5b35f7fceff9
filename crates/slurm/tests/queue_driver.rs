//! The queue driver on a simulated controller: what it writes, what it does not change, and what remains after a crash.
#![allow(clippy::unwrap_used)]

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt::Write as _;

use evenhand_model::{Span, Time};
use evenhand_policies::{Decay, PolicySettings, Registry};
use evenhand_slurm::queue_driver::{DriveOptions, Driver, SavedState};
use evenhand_slurm::{Call, CommandError, Commands, FailureKind, PlanOptions};
use proptest::prelude::*;

/// A job of the simulated controller.
#[derive(Clone, Debug)]
struct Job {
    user: &'static str,
    cpus: u64,
    site_factor: i64,
    /// A priority that an administrator set.
    pinned: Option<u64>,
    held: bool,
    runs: bool,
}

impl Job {
    fn of(user: &'static str, cpus: u64) -> Job {
        Job { user, cpus, site_factor: 0, pinned: None, held: false, runs: false }
    }

    fn priority(&self) -> u64 {
        match (self.held, self.pinned) {
            (true, _) => 0,
            (_, Some(priority)) => priority,
            _ => self.site_factor.max(1) as u64,
        }
    }
}

#[derive(Default)]
struct Slurm {
    jobs: RefCell<BTreeMap<u64, Job>>,
    /// Crashes the process at this command, before or after it takes effect.
    dies_at: Cell<Option<(usize, bool)>>,
    commands_run: Cell<usize>,
    updates: Cell<usize>,
    denied: Cell<bool>,
    accounting: Cell<bool>,
    ended: RefCell<String>,
}

impl Slurm {
    fn with(jobs: impl IntoIterator<Item = Job>) -> Slurm {
        let slurm = Slurm::default();
        slurm.jobs.borrow_mut().extend((1..).zip(jobs));
        slurm
    }

    fn factors(&self) -> Vec<i64> {
        self.jobs.borrow().values().map(|j| j.site_factor).collect()
    }

    /// Returns the waiting jobs by decreasing priority.
    fn order(&self) -> Vec<u64> {
        let jobs = self.jobs.borrow();
        let mut waiting: Vec<u64> = jobs.iter().filter(|(_, j)| !j.runs && !j.held).map(|(id, _)| *id).collect();
        waiting.sort_by_key(|id| (std::cmp::Reverse(jobs[id].priority()), *id));
        waiting
    }

    fn answer(&self, call: &Call) -> Result<String, CommandError> {
        let jobs = self.jobs.borrow();
        let failed = |program, message: &str, kind| CommandError::Failed { program, message: message.into(), kind };
        let mut text = String::new();
        match (call.program, call.arguments.join(" ").as_str()) {
            ("squeue", _) => {
                text += "JOBID|USER|ACCOUNT|PARTITION|STATE|REASON|SUBMIT_TIME|ELIGIBLE_TIME|START_TIME|TIME_LIMIT|PRIORITY|NICE|TRES_ALLOC\n";
                for (id, job) in jobs.iter() {
                    let state = if job.runs { "RUNNING" } else { "PENDING" };
                    let reason = if job.held { "JobHeldUser" } else { "Priority" };
                    let start = if job.runs { "900" } else { "N/A" };
                    writeln!(
                        text,
                        "{id}|{}|a|main|{state}|{reason}|{id}|{id}|{start}|1:00:00|{}|0|cpu={},mem=100M,node=1",
                        job.user,
                        job.priority(),
                        job.cpus
                    )
                    .unwrap();
                }
            }
            ("sprio", _) => {
                text += "JOBID|PRIORITY|SITE\n";
                for (id, job) in jobs.iter().filter(|(_, j)| !j.runs && !j.held) {
                    writeln!(text, "{id}|{}|{}", job.priority(), job.site_factor).unwrap();
                }
            }
            ("sacct", _) if self.accounting.get() => {
                text = format!(
                    "JobIDRaw|User|Account|Partition|Submit|Start|End|Timelimit|AllocTRES\n{}",
                    self.ended.borrow()
                );
            }
            ("sacct" | "sacctmgr", _) => {
                return Err(failed("sacct", "Slurm accounting storage is disabled", FailureKind::NoAccounting));
            }
            ("scontrol", words) if words.contains("show node") => {
                text += "NodeName=n1 CPUTot=64 RealMemory=64000 Partitions=main State=IDLE\n";
            }
            ("scontrol", words) if words.contains("show partition") => {
                text += "PartitionName=main MaxTime=UNLIMITED\n";
            }
            ("scontrol", "") => {
                drop(jobs);
                if self.denied.get() {
                    return Err(failed("scontrol", "Access/permission denied", FailureKind::Denied));
                }
                let mut message = String::new();
                for line in call.input.as_deref().unwrap_or("").lines() {
                    let (id, value) = line.strip_prefix("update JobId=").unwrap().split_once(" SiteFactor=").unwrap();
                    self.updates.set(self.updates.get() + 1);
                    match self.jobs.borrow_mut().get_mut(&id.parse().unwrap()).filter(|j| !j.runs) {
                        Some(job) => job.site_factor = value.parse().unwrap(),
                        None => message = "Job has already finished".into(),
                    }
                }
                if !message.is_empty() {
                    return Err(failed("scontrol", &message, FailureKind::Other));
                }
            }
            other => panic!("unexpected command {other:?}"),
        }
        Ok(text)
    }
}

impl Commands for Slurm {
    fn run(&self, call: &Call) -> Result<String, CommandError> {
        let commands_run = self.commands_run.get();
        self.commands_run.set(commands_run + 1);
        let dead = || CommandError::Absent { program: "the crashed process" };
        match self.dies_at.get() {
            Some((at, false)) if commands_run >= at => Err(dead()),
            Some((at, true)) if commands_run == at => {
                let _ = self.answer(call);
                Err(dead())
            }
            Some((at, true)) if commands_run > at => Err(dead()),
            _ => self.answer(call),
        }
    }
}

fn options(policy: &str, apply: bool) -> DriveOptions {
    DriveOptions {
        plan: PlanOptions {
            registry: Registry::built_in(),
            policy: policy.into(),
            settings: PolicySettings::default(),
            decay: Some(Decay::from_half_life(Span::from_secs(1000)).unwrap()),
            prices: BTreeMap::new(),
            speed_feature: None,
            depth: 60,
        },
        apply,
        max_changes: 1000,
        history: Span::from_secs(100_000),
        cluster: None,
        configuration: None,
    }
}

fn store() -> (tempfile::TempDir, SavedState) {
    let folder = tempfile::tempdir().unwrap();
    let store = SavedState::open(&folder.path().join("state")).unwrap();
    (folder, store)
}

const NOW: Time = Time::from_secs(1000);

#[test]
fn the_queue_gets_the_order_of_the_policy_and_only_changes_are_written() {
    let slurm = Slurm::with(["ann", "ann", "ann", "bob", "cid"].map(|u| Job::of(u, 2)));
    let (_folder, store) = store();
    let mut driver = Driver::new(&slurm, &store, options("drf", true)).unwrap();
    let tick = driver.tick(NOW).unwrap();
    // The first job of each user by submission, then Ann's others.
    assert_eq!(slurm.order(), [1, 4, 5, 2, 3]);
    assert_eq!((tick.changes.len(), tick.rejection, tick.deferred), (5, None, 0));
    assert!(tick.accounting_error.is_some());
    // Nothing has changed, so nothing is written.
    assert_eq!(driver.tick(NOW + Span::from_secs(1)).unwrap().changes, []);
    // Job 1 starts; Ann's others are last already. A new job of Dan's goes before them.
    slurm.jobs.borrow_mut().get_mut(&1).unwrap().runs = true;
    slurm.jobs.borrow_mut().insert(6, Job::of("dan", 2));
    let tick = driver.tick(NOW + Span::from_secs(2)).unwrap();
    assert_eq!(slurm.order(), [4, 5, 6, 2, 3]);
    assert_eq!(tick.changes.len(), 1);
    assert_eq!(driver.release().unwrap().jobs, 5);
    // A running job keeps its site factor, which no longer has an effect.
    assert_eq!(slurm.factors()[1..], [0; 5]);
    assert!(store.written().unwrap().is_empty());
}

#[test]
fn dry_runs_write_nothing() {
    let slurm = Slurm::with(["ann", "bob"].map(|u| Job::of(u, 2)));
    let (_folder, store) = store();
    let mut driver = Driver::new(&slurm, &store, options("drf", false)).unwrap();
    assert_eq!(driver.tick(NOW).unwrap().changes.len(), 2);
    assert_eq!((slurm.updates.get(), slurm.factors()), (0, vec![0, 0]));
    assert!(store.written().unwrap().is_empty());
}

#[test]
fn priorities_set_by_others_are_not_changed() {
    let jobs = [
        Job { site_factor: 77, ..Job::of("ann", 1) },
        Job { held: true, ..Job::of("ann", 1) },
        Job::of("bob", 1),
        Job { site_factor: -5, ..Job::of("bob", 1) },
        Job::of("cid", 1),
    ];
    let slurm = Slurm::with(jobs);
    let (_folder, store) = store();
    let mut driver = Driver::new(&slurm, &store, options("drf", true)).unwrap();
    let tick = driver.tick(NOW).unwrap();
    assert_eq!(tick.set_by_others, 2);
    let factors = slurm.factors();
    assert_eq!((factors[0], factors[1], factors[3]), (77, 0, -5));
    assert!(factors[2] > factors[4] && factors[4] > 0);
    // An administrator sets the whole priority of job 3, which then no longer follows its site factor.
    slurm.jobs.borrow_mut().get_mut(&3).unwrap().pinned = Some(500);
    slurm.jobs.borrow_mut().get_mut(&3).unwrap().site_factor = 0;
    let updates = slurm.updates.get();
    assert_eq!(driver.tick(NOW + Span::from_secs(1)).unwrap().set_by_others, 3);
    assert_eq!(slurm.updates.get(), updates);
    driver.release().unwrap();
    let factors = slurm.factors();
    assert_eq!((factors[0], factors[2], factors[3], factors[4]), (77, 0, -5, 0));
}

#[test]
fn the_number_of_changes_in_a_step_is_bounded_and_the_first_places_have_precedence() {
    let slurm = Slurm::with((0..30).map(|_| Job::of("ann", 1)));
    let (_folder, store) = store();
    let mut driver = Driver::new(&slurm, &store, DriveOptions { max_changes: 10, ..options("fifo", true) }).unwrap();
    let tick = driver.tick(NOW).unwrap();
    assert_eq!((tick.changes.len(), tick.deferred), (10, 20));
    assert_eq!(slurm.order()[..10], (1..=10).collect::<Vec<u64>>());
    for second in 1..3 {
        driver.tick(NOW + Span::from_secs(second)).unwrap();
    }
    assert_eq!(slurm.order(), (1..=30).collect::<Vec<u64>>());
    assert_eq!(driver.tick(NOW + Span::from_secs(9)).unwrap().changes, []);
}

#[test]
fn a_job_that_leaves_the_head_of_the_queue_loses_its_site_factor() {
    let slurm = Slurm::with((0..5).map(|_| Job::of("ann", 1)));
    let (_folder, store) = store();
    let mut wide = options("fifo", true);
    wide.plan.depth = 5;
    Driver::new(&slurm, &store, wide).unwrap().tick(NOW).unwrap();
    let mut narrow = options("fifo", true);
    narrow.plan.depth = 2;
    Driver::new(&slurm, &store, narrow).unwrap().tick(NOW).unwrap();
    let factors = slurm.factors();
    assert!(factors[..2].iter().all(|f| *f > 0) && factors[2..].iter().all(|f| *f == 0), "{factors:?}");
}

#[test]
fn short_jobs_are_charged_from_accounting_and_saved_across_a_restart() {
    let slurm = Slurm::with(["ann", "bob"].map(|u| Job::of(u, 2)));
    slurm.accounting.set(true);
    // Ann had everything for 200 s, between two steps.
    *slurm.ended.borrow_mut() = "90|ann|a|main|700|700|900|1:00:00|cpu=64,mem=100M,node=1\n".into();
    let (folder, store) = store();
    let mut driver = Driver::new(&slurm, &store, options("sdrf", true)).unwrap();
    assert_eq!(driver.tick(NOW).unwrap().accounting_error, None);
    assert_eq!(slurm.order(), [2, 1]);
    // Accounting is no longer available and the process has restarted: the saved jobs still count.
    drop(driver);
    drop(store);
    slurm.accounting.set(false);
    let store = SavedState::open(&folder.path().join("state")).unwrap();
    let mut driver = Driver::new(&slurm, &store, options("sdrf", true)).unwrap();
    driver.release().unwrap();
    driver.tick(NOW + Span::from_secs(60)).unwrap();
    assert_eq!(slurm.order(), [2, 1]);
}

#[test]
fn a_second_process_and_missing_permissions_are_errors() {
    let (folder, open) = store();
    let second = SavedState::open(&folder.path().join("state")).unwrap_err().to_string();
    assert!(second.contains("another process keeps this queue in order"), "{second}");
    let slurm = Slurm::with([Job::of("ann", 1)]);
    slurm.denied.set(true);
    let error = Driver::new(&slurm, &open, options("drf", true)).unwrap().tick(NOW).unwrap_err();
    assert!(error.to_string().contains("AdminLevel Operator") && !error.is_transient(), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The process is killed at any command, before or after it takes effect; a new process restores everything.
    #[test]
    fn everything_is_restored_after_a_crash_at_any_time(
        at in 0usize..24, after: bool, starts in prop::collection::vec(1u64..7, 0..3), depth in 1usize..7,
    ) {
        let users = ["ann", "ann", "bob", "cid", "cid", "bob"];
        let slurm = Slurm::with(users.map(|u| Job::of(u, 3)));
        slurm.jobs.borrow_mut().insert(7, Job { site_factor: 42, ..Job::of("eve", 1) });
        let (folder, store) = store();
        slurm.dies_at.set(Some((at, after)));
        let mut options = options("drf", true);
        options.plan.depth = depth;
        let mut driver = Driver::new(&slurm, &store, options.clone()).unwrap();
        for (second, start) in std::iter::once(0).chain(starts).enumerate() {
            if let Some(job) = slurm.jobs.borrow_mut().get_mut(&start) {
                job.runs = true;
            }
            let _ = driver.tick(NOW + Span::from_secs(second as u64));
        }
        drop(driver);
        drop(store);
        slurm.dies_at.set(None);
        let store = SavedState::open(&folder.path().join("state")).unwrap();
        let mut driver = Driver::new(&slurm, &store, options).unwrap();
        driver.release().unwrap();
        for (id, job) in slurm.jobs.borrow().iter() {
            prop_assert!(job.runs || job.site_factor == if *id == 7 { 42 } else { 0 }, "{id} {job:?}");
        }
    }
}
