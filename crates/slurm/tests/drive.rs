//! A queue kept in order on a made-up controller: what is written, what is left alone, and what a crash leaves.
#![allow(clippy::unwrap_used)]

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt::Write as _;

use evenhand_model::{Span, Time};
use evenhand_policies::{Decay, PolicySettings, Registry};
use evenhand_slurm::drive::{DriveOptions, Driver, Store};
use evenhand_slurm::{Call, CommandError, Commands, Complaint, PlanOptions};
use proptest::prelude::*;

/// One job of the made-up controller.
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
    /// Ends the process at this command, before or after it did its work.
    dies_at: Cell<Option<(usize, bool)>>,
    asked: Cell<usize>,
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

    /// The jobs that wait, by falling priority.
    fn order(&self) -> Vec<u64> {
        let jobs = self.jobs.borrow();
        let mut waiting: Vec<u64> = jobs.iter().filter(|(_, j)| !j.runs && !j.held).map(|(id, _)| *id).collect();
        waiting.sort_by_key(|id| (std::cmp::Reverse(jobs[id].priority()), *id));
        waiting
    }

    fn answer(&self, call: &Call) -> Result<String, CommandError> {
        let jobs = self.jobs.borrow();
        let failed = |program, said: &str, complaint| CommandError::Failed { program, said: said.into(), complaint };
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
                return Err(failed("sacct", "Slurm accounting storage is disabled", Complaint::NoAccounting));
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
                    return Err(failed("scontrol", "Access/permission denied", Complaint::Denied));
                }
                let mut said = String::new();
                for line in call.input.as_deref().unwrap_or("").lines() {
                    let (id, value) = line.strip_prefix("update JobId=").unwrap().split_once(" SiteFactor=").unwrap();
                    self.updates.set(self.updates.get() + 1);
                    match self.jobs.borrow_mut().get_mut(&id.parse().unwrap()).filter(|j| !j.runs) {
                        Some(job) => job.site_factor = value.parse().unwrap(),
                        None => said = "Job has already finished".into(),
                    }
                }
                if !said.is_empty() {
                    return Err(failed("scontrol", &said, Complaint::Other));
                }
            }
            other => panic!("nobody answers {other:?}"),
        }
        Ok(text)
    }
}

impl Commands for Slurm {
    fn run(&self, call: &Call) -> Result<String, CommandError> {
        let asked = self.asked.get();
        self.asked.set(asked + 1);
        let dead = || CommandError::Absent { program: "the process, which has died" };
        match self.dies_at.get() {
            Some((at, false)) if asked >= at => Err(dead()),
            Some((at, true)) if asked == at => {
                let _ = self.answer(call);
                Err(dead())
            }
            Some((at, true)) if asked > at => Err(dead()),
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
        most_changes: 1000,
        memory: Span::from_secs(100_000),
        cluster: None,
        configuration: None,
    }
}

fn store() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("state")).unwrap();
    (folder, store)
}

const NOW: Time = Time::from_secs(1000);

#[test]
fn the_queue_gets_the_order_of_the_policy_and_only_what_changed_is_written() {
    let slurm = Slurm::with(["ann", "ann", "ann", "bob", "cid"].map(|u| Job::of(u, 2)));
    let (_folder, store) = store();
    let mut driver = Driver::new(&slurm, &store, options("drf", true)).unwrap();
    let tick = driver.tick(NOW).unwrap();
    // One each, by submission, then Ann's others.
    assert_eq!(slurm.order(), [1, 4, 5, 2, 3]);
    assert_eq!((tick.changes.len(), tick.refused, tick.left), (5, None, 0));
    assert!(tick.without_accounting.is_some());
    // Nothing happened: nothing is written.
    assert_eq!(driver.tick(NOW + Span::from_secs(1)).unwrap().changes, []);
    // Job 1 starts; Ann's others are behind already. A new one of Dan's goes between.
    slurm.jobs.borrow_mut().get_mut(&1).unwrap().runs = true;
    slurm.jobs.borrow_mut().insert(6, Job::of("dan", 2));
    let tick = driver.tick(NOW + Span::from_secs(2)).unwrap();
    assert_eq!(slurm.order(), [4, 5, 6, 2, 3]);
    assert_eq!(tick.changes.len(), 1);
    assert_eq!(driver.release().unwrap().jobs, 5);
    // What runs keeps a factor that has no meaning any more.
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
fn what_others_set_is_left_alone() {
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
    assert_eq!(tick.left_alone, 2);
    let factors = slurm.factors();
    assert_eq!((factors[0], factors[1], factors[3]), (77, 0, -5));
    assert!(factors[2] > factors[4] && factors[4] > 0);
    // An administrator sets the whole priority of job 3, which then does not follow its factor.
    slurm.jobs.borrow_mut().get_mut(&3).unwrap().pinned = Some(500);
    slurm.jobs.borrow_mut().get_mut(&3).unwrap().site_factor = 0;
    let updates = slurm.updates.get();
    assert_eq!(driver.tick(NOW + Span::from_secs(1)).unwrap().left_alone, 3);
    assert_eq!(slurm.updates.get(), updates);
    driver.release().unwrap();
    let factors = slurm.factors();
    assert_eq!((factors[0], factors[2], factors[3], factors[4]), (77, 0, -5, 0));
}

#[test]
fn changes_are_written_at_a_bounded_rate_from_the_front_on() {
    let slurm = Slurm::with((0..30).map(|_| Job::of("ann", 1)));
    let (_folder, store) = store();
    let mut driver = Driver::new(&slurm, &store, DriveOptions { most_changes: 10, ..options("fifo", true) }).unwrap();
    let tick = driver.tick(NOW).unwrap();
    assert_eq!((tick.changes.len(), tick.left), (10, 20));
    assert_eq!(slurm.order()[..10], (1..=10).collect::<Vec<u64>>());
    for second in 1..3 {
        driver.tick(NOW + Span::from_secs(second)).unwrap();
    }
    assert_eq!(slurm.order(), (1..=30).collect::<Vec<u64>>());
    assert_eq!(driver.tick(NOW + Span::from_secs(9)).unwrap().changes, []);
}

#[test]
fn who_leaves_the_head_of_the_queue_has_no_factor_any_more() {
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
fn short_jobs_are_charged_by_accounting_and_survive_a_restart() {
    let slurm = Slurm::with(["ann", "bob"].map(|u| Job::of(u, 2)));
    slurm.accounting.set(true);
    // Ann had everything for 200 s, between two looks.
    *slurm.ended.borrow_mut() = "90|ann|a|main|700|700|900|1:00:00|cpu=64,mem=100M,node=1\n".into();
    let (folder, store) = store();
    let mut driver = Driver::new(&slurm, &store, options("sdrf", true)).unwrap();
    assert_eq!(driver.tick(NOW).unwrap().without_accounting, None);
    assert_eq!(slurm.order(), [2, 1]);
    // Accounting is gone, and so is the process: what was read is kept.
    drop(driver);
    drop(store);
    slurm.accounting.set(false);
    let store = Store::open(&folder.path().join("state")).unwrap();
    let mut driver = Driver::new(&slurm, &store, options("sdrf", true)).unwrap();
    driver.release().unwrap();
    driver.tick(NOW + Span::from_secs(60)).unwrap();
    assert_eq!(slurm.order(), [2, 1]);
}

#[test]
fn a_second_process_is_refused_and_rights_are_asked_for() {
    let (folder, open) = store();
    let second = Store::open(&folder.path().join("state")).unwrap_err().to_string();
    assert!(second.contains("another process keeps this queue in order"), "{second}");
    let slurm = Slurm::with([Job::of("ann", 1)]);
    slurm.denied.set(true);
    let error = Driver::new(&slurm, &open, options("drf", true)).unwrap().tick(NOW).unwrap_err();
    assert!(error.to_string().contains("AdminLevel Operator") && !error.may_pass(), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Killed at any command, before or after it did its work: a new process puts everything back.
    #[test]
    fn whatever_the_moment_of_death_everything_is_put_back(
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
        let store = Store::open(&folder.path().join("state")).unwrap();
        let mut driver = Driver::new(&slurm, &store, options).unwrap();
        driver.release().unwrap();
        for (id, job) in slurm.jobs.borrow().iter() {
            prop_assert!(job.runs || job.site_factor == if *id == 7 { 42 } else { 0 }, "{id} {job:?}");
        }
    }
}
