//! The queue driver on a simulated controller: what it writes, what it does not change, and what remains after a crash.
#![allow(clippy::unwrap_used)]

mod simulated_slurm;

use std::collections::BTreeMap;

use evenhand_model::{Span, Time};
use evenhand_policies::{Decay, PolicySettings, Registry};
use evenhand_slurm::PlanOptions;
use evenhand_slurm::queue_driver::{DriveOptions, Driver, SavedState};
use proptest::prelude::*;

use crate::simulated_slurm::{Job, Slurm};

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
    // Job 1 was put back when it started, so that a requeue does not bring its site factor back.
    assert_eq!((tick.put_back, slurm.factors()[0]), (1, 0));
    assert_eq!(driver.release().unwrap().jobs, 5);
    assert_eq!(slurm.factors(), [0; 6]);
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
fn a_restart_after_accounting_failed_reads_all_of_it() {
    let slurm = Slurm::with([Job::of("ann", 2)]);
    let (folder, store) = store();
    slurm.accounting.set(true);
    Driver::new(&slurm, &store, options("sdrf", true)).unwrap().tick(NOW).unwrap();
    let whole = slurm.asked_from.borrow().clone();
    drop((store, folder));
    let (folder, store) = self::store();
    slurm.accounting.set(false);
    assert!(Driver::new(&slurm, &store, options("sdrf", true)).unwrap().tick(NOW).unwrap().accounting_error.is_some());
    drop(store);
    let store = SavedState::open(&folder.path().join("state")).unwrap();
    slurm.accounting.set(true);
    Driver::new(&slurm, &store, options("sdrf", true)).unwrap().tick(NOW).unwrap();
    assert_eq!(*slurm.asked_from.borrow(), whole);
}

#[test]
fn an_end_that_accounting_knows_is_not_guessed_when_it_fails_again() {
    let slurm = Slurm::with([Job { runs: true, ..Job::of("ann", 64) }, Job::of("bob", 2)]);
    let (_folder, store) = store();
    let mut driver = Driver::new(&slurm, &store, options("sdrf", true)).unwrap();
    let minute = Span::from_secs(60);
    assert!(driver.tick(NOW).unwrap().accounting_error.is_some());
    slurm.jobs.borrow_mut().remove(&1);
    slurm.accounting.set(true);
    *slurm.ended.borrow_mut() = "1|ann|a|main|1|900|1010|1:00:00|cpu=64,mem=100M,node=1\n".into();
    assert_eq!(driver.tick(NOW + minute).unwrap().accounting_error, None);
    slurm.accounting.set(false);
    assert!(driver.tick(NOW + minute + minute).unwrap().accounting_error.is_some());
    let ends: Vec<Time> = store.finished_jobs().unwrap().iter().map(|job| job.end).collect();
    assert_eq!(ends, [Time::from_secs(1010)]);
}

#[test]
fn without_accounting_a_job_that_is_being_completed_ended_when_the_queue_says_so() {
    let runs = Job { runs: true, ..Job::of("ann", 64) };
    let slurm =
        Slurm::with([runs.clone(), Job::of("bob", 2), Job { completing_since: Some(990), ..runs.clone() }, runs]);
    let (_folder, store) = store();
    let mut driver = Driver::new(&slurm, &store, options("sdrf", true)).unwrap();
    let minute = Span::from_secs(60);
    driver.tick(NOW).unwrap();
    slurm.jobs.borrow_mut().get_mut(&1).unwrap().completing_since = Some(1020);
    driver.tick(NOW + minute).unwrap();
    // Job 3 was completing in two looks, job 1 in one, and job 4 is gone without having been seen so.
    slurm.jobs.borrow_mut().retain(|id, _| *id == 2);
    driver.tick(NOW + minute + minute).unwrap();
    let ends = store.finished_jobs().unwrap().into_iter().map(|job| (job.id, job.end.whole_secs()));
    let mut ends: Vec<(u64, i64)> = ends.collect();
    ends.sort_unstable();
    assert_eq!(ends, [(1, 1020), (3, 990), (4, 1120)]);
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

#[test]
fn a_requeued_job_is_ours_whatever_happened_in_between() {
    let slurm = Slurm::with(["ann", "bob", "cid"].map(|u| Job::of(u, 2)));
    let (folder, store) = store();
    let mut driver = Driver::new(&slurm, &store, options("drf", true)).unwrap();
    driver.tick(NOW).unwrap();
    let given = slurm.factors();
    assert!(given.iter().all(|factor| *factor > 0), "{given:?}");
    // Job 1 starts and ends between two looks, job 2 is missing in a look, and then the process crashes.
    slurm.jobs.borrow_mut().get_mut(&1).unwrap().ended = true;
    slurm.jobs.borrow_mut().get_mut(&2).unwrap().hidden = true;
    let tick = driver.tick(NOW + Span::from_secs(10)).unwrap();
    assert_eq!((tick.put_back, tick.rejection), (1, None), "the missing job");
    assert_eq!(slurm.factors()[..2], [given[0], 0]);
    drop(driver);
    drop(store);
    // Its owner requeues job 1: it is not another program's, and gets a place.
    slurm.jobs.borrow_mut().get_mut(&1).unwrap().ended = false;
    slurm.jobs.borrow_mut().get_mut(&2).unwrap().hidden = false;
    let store = SavedState::open(&folder.path().join("state")).unwrap();
    let mut driver = Driver::new(&slurm, &store, options("drf", true)).unwrap();
    let tick = driver.tick(NOW + Span::from_secs(20)).unwrap();
    assert_eq!((tick.set_by_others, slurm.order()), (0, vec![1, 2, 3]));
    // At the end one has ended, and one is unknown to Slurm.
    slurm.jobs.borrow_mut().get_mut(&1).unwrap().ended = true;
    slurm.jobs.borrow_mut().remove(&2);
    let outcome = driver.release().unwrap();
    assert_eq!((outcome.jobs, outcome.ended, outcome.rejection), (1, 1, None));
    assert_eq!(store.written().unwrap().into_keys().collect::<Vec<_>>(), [1]);
    slurm.jobs.borrow_mut().get_mut(&1).unwrap().ended = false;
    assert_eq!(driver.release().unwrap().jobs, 1);
    assert_eq!((slurm.factors(), store.written().unwrap().len()), (vec![0, 0], 0));
}

#[test]
fn steps_of_the_clock_in_either_direction_stop_nothing() {
    let slurm = Slurm::with(["ann", "bob", "cid"].map(|u| Job::of(u, 2)));
    slurm.accounting.set(true);
    *slurm.ended.borrow_mut() = "90|ann|a|main|700|700|900|1:00:00|cpu=64,mem=100M,node=1\n".into();
    let (_folder, store) = store();
    let mut driver = Driver::new(&slurm, &store, options("sdrf", true)).unwrap();
    let hour = Span::from_secs(3600);
    let start = NOW + hour;
    driver.tick(start).unwrap();
    // Job 1 ends between two looks and cannot be put back.
    slurm.jobs.borrow_mut().get_mut(&1).unwrap().ended = true;
    driver.tick(start).unwrap();
    for (step, now) in [start.saturating_sub(hour), start + hour, start].into_iter().enumerate() {
        // Its owner requeues and cancels it again; a look that misses it in between puts it back all the same.
        slurm.jobs.borrow_mut().get_mut(&1).unwrap().ended = false;
        slurm.jobs.borrow_mut().get_mut(&1).unwrap().hidden = true;
        let tick = driver.tick(now).unwrap();
        assert_eq!((tick.accounting_error, tick.rejection), (None, None));
        assert_eq!((tick.put_back, slurm.factors()[0]), (usize::from(step == 0), 0), "after step {step}");
        assert_eq!(slurm.order().len(), 3);
    }
    assert_eq!(driver.release().unwrap().rejection, None);
    assert_eq!(slurm.factors(), [0, 0, 0]);
}

#[test]
fn everything_is_restored_at_the_end_also_if_queries_hang() {
    let jobs = ["ann", "bob", "cid"].map(|u| Job::of(u, 2));
    let slurm = Slurm::with(jobs);
    let (_folder, store) = store();
    let mut driver = Driver::new(&slurm, &store, options("drf", true)).unwrap();
    driver.tick(NOW).unwrap();
    // Before the last look an administrator sets another site factor of a running job, which its priority shows.
    slurm.jobs.borrow_mut().get_mut(&1).unwrap().runs = true;
    slurm.jobs.borrow_mut().get_mut(&1).unwrap().site_factor = -7;
    slurm.jobs.borrow_mut().get_mut(&2).unwrap().runs = true;
    driver.tick(NOW + Span::from_secs(10)).unwrap();
    assert_eq!(slurm.factors()[..2], [-7, 0]);
    slurm.is_silent.set(true);
    assert!(driver.tick(NOW + Span::from_secs(20)).unwrap_err().is_transient());
    assert_eq!(driver.release().unwrap().jobs, 1);
    assert_eq!(slurm.factors(), [-7, 0, 0]);
    // Job 1 is remembered, because its site factor was not shown, until Slurm has forgotten it.
    slurm.is_silent.set(false);
    assert_eq!(store.written().unwrap().into_keys().collect::<Vec<_>>(), [1]);
    slurm.jobs.borrow_mut().remove(&1);
    driver.tick(NOW + Span::from_secs(100)).unwrap();
    driver.release().unwrap();
    assert!(store.written().unwrap().is_empty());
}

/// What happens to jobs between two steps.
#[derive(Clone, Copy, Debug)]
enum Event {
    Tick,
    Start(u64),
    End(u64),
    /// By its owner, a preemption, or a failure of its node.
    Requeue(u64),
    FailAllNodes,
    /// The controller forgets an ended job.
    Forget(u64),
    /// A valid but shortened look.
    Hide(u64),
    Hold(u64),
    Unhold(u64),
    /// An administrator sets a site factor.
    Set(u64),
    /// The process is killed at a command from now, before or after it takes effect, and started again.
    KillAt(usize, bool),
    /// The process is stopped in an orderly way and started again.
    Restart,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let id = || 1u64..7;
    let event = prop_oneof![
        6 => Just(Event::Tick),
        3 => id().prop_map(Event::Start),
        2 => id().prop_map(Event::End),
        3 => id().prop_map(Event::Requeue),
        1 => Just(Event::FailAllNodes),
        1 => id().prop_map(Event::Forget),
        2 => id().prop_map(Event::Hide),
        1 => id().prop_map(Event::Hold),
        1 => id().prop_map(Event::Unhold),
        1 => id().prop_map(Event::Set),
        2 => (0usize..9, any::<bool>()).prop_map(|(at, after)| Event::KillAt(at, after)),
        1 => Just(Event::Restart),
    ];
    prop::collection::vec(event, 1..40)
}

impl Slurm {
    /// Changes the controller; `expected` are the site factors that jobs have to have in the end.
    fn change(&self, event: Event, expected: &mut BTreeMap<u64, i64>) {
        let mut jobs = self.jobs.borrow_mut();
        jobs.values_mut().for_each(|job| job.hidden = false);
        match event {
            Event::FailAllNodes => jobs.values_mut().for_each(|job| job.runs = false),
            Event::Forget(id) if jobs.get(&id).is_some_and(|job| job.ended) => {
                jobs.remove(&id);
                expected.remove(&id);
            }
            Event::Start(id)
            | Event::End(id)
            | Event::Requeue(id)
            | Event::Hide(id)
            | Event::Hold(id)
            | Event::Unhold(id)
            | Event::Set(id) => {
                let Some(job) = jobs.get_mut(&id) else { return };
                match event {
                    Event::Start(_) if job.waits() && !job.held => job.runs = true,
                    Event::End(_) if job.runs => (job.runs, job.ended) = (false, true),
                    Event::Requeue(_) => (job.runs, job.ended) = (false, false),
                    // What is set while nothing shows it looks as what was there.
                    Event::Hide(_) => job.hidden = expected[&id] == 0,
                    Event::Hold(_) if job.waits() && expected[&id] == 0 => job.held = true,
                    Event::Unhold(_) => job.held = false,
                    Event::Set(_) if !job.held && !job.ended => {
                        job.site_factor = 77;
                        expected.insert(id, 77);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
}

#[test]
fn after_a_failure_of_sacctmgr_shares_are_asked_for_again_soon_and_ever_more_seldom() {
    let slurm = Slurm::with(["ann", "bob"].map(|u| Job::of(u, 2)));
    let (_folder, store) = store();
    let mut driver = Driver::new(&slurm, &store, options("drf", true)).unwrap();
    let mut asked_after = |second: u64| {
        driver.tick(NOW + Span::from_secs(second)).unwrap();
        slurm.associations_asked.get()
    };
    // After 5 s, then after 10 s more, and so on.
    assert_eq!([0, 4, 5, 14, 15, 34, 35].map(&mut asked_after), [1, 1, 2, 2, 3, 3, 4]);
    *slurm.associations.borrow_mut() =
        Some("Account|User|ParentName|Share\nroot|||1\na||root|1\na|ann||3\na|bob||1\n".into());
    // It responds, so that they are asked for again after five minutes.
    assert_eq!([75, 374, 375].map(&mut asked_after), [5, 5, 6]);
    *slurm.associations.borrow_mut() = None;
    assert_eq!([675, 679, 680].map(&mut asked_after), [7, 7, 8]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever happens to jobs, and at whichever commands the process is killed: in the end every job that Slurm knows has
    /// the site factor that it had before, or that an administrator gave it.
    #[test]
    fn every_site_factor_is_what_it_was_after_requeues_failures_and_crashes(
        events in events(), depth in 1usize..7,
    ) {
        let users = ["ann", "ann", "bob", "cid", "cid", "bob"];
        let slurm = Slurm::with(users.map(|u| Job::of(u, 3)));
        slurm.jobs.borrow_mut().insert(7, Job { site_factor: 42, ..Job::of("eve", 1) });
        let mut expected: BTreeMap<u64, i64> = slurm.jobs.borrow().iter().map(|(id, j)| (*id, j.site_factor)).collect();
        let folder = tempfile::tempdir().unwrap();
        let mut options = options("drf", true);
        options.plan.depth = depth;
        let mut now = NOW;
        let mut events = events.into_iter().peekable();
        while events.peek().is_some() {
            let store = SavedState::open(&folder.path().join("state")).unwrap();
            let mut driver = Driver::new(&slurm, &store, options.clone()).unwrap();
            for event in events.by_ref() {
                now = now + Span::from_secs(10);
                match event {
                    Event::Tick => _ = driver.tick(now),
                    Event::KillAt(at, after) => {
                        slurm.dies_at.set(Some((slurm.commands_run.get() + at, after)));
                        let _ = driver.tick(now);
                        break;
                    }
                    Event::Restart => {
                        let _ = driver.release();
                        break;
                    }
                    event => slurm.change(event, &mut expected),
                }
            }
            slurm.dies_at.set(None);
        }
        // The end: ended jobs cannot be changed until they are requeued, so they are.
        slurm.change(Event::Tick, &mut expected);
        slurm.jobs.borrow_mut().values_mut().for_each(|job| job.ended = false);
        let store = SavedState::open(&folder.path().join("state")).unwrap();
        let outcome = Driver::new(&slurm, &store, options).unwrap().release().unwrap();
        prop_assert_eq!(outcome.rejection, None);
        let found: BTreeMap<u64, i64> = slurm.jobs.borrow().iter().map(|(id, j)| (*id, j.site_factor)).collect();
        prop_assert_eq!(found, expected);
        // A job that ran before the first look after a crash may have another's factor, for all that Slurm shows: it is kept.
        let runs = |id: &u64| slurm.jobs.borrow().get(id).is_some_and(|job| job.runs);
        prop_assert!(store.written().unwrap().keys().all(runs));
    }

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
            prop_assert!(job.site_factor == if *id == 7 { 42 } else { 0 }, "{id} {job:?}");
        }
    }
}
