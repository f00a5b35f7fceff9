//! A cancelled simulation ends before its next decision, under every rule and at every moment.
#![allow(clippy::unwrap_used)]

use std::sync::atomic::Ordering;

use evenhand_model::{Capacity, Rational, Resource, Span, Task, Time, UserId, Weights, Workload, WorkloadBuilder};
use evenhand_policies::{Job, Policy, PolicyContext, Registry, Standing};
use evenhand_simulator::{
    Backfill, JobOptions, Jobs, Layout, PlannedBackfill, PoolOptions, Progress, SimulationError, Site, UserTasks,
    simulate, simulate_jobs,
};

/// Cancels the simulation at a decision, and counts the decisions.
struct Cancelling<'a> {
    policy: Box<dyn Policy>,
    progress: &'a Progress,
    decisions: u64,
    cancel_at: u64,
}

impl Policy for Cancelling<'_> {
    fn set_first_pending(&mut self, user: UserId, job: Option<&Job<'_>>) {
        self.policy.set_first_pending(user, job);
    }

    fn started(&mut self, now: Time, job: &Job<'_>) {
        self.policy.started(now, job);
    }

    fn finished(&mut self, now: Time, job: &Job<'_>) {
        self.policy.finished(now, job);
    }

    fn next(&mut self, now: Time) -> Option<UserId> {
        self.decisions += 1;
        if self.decisions == self.cancel_at {
            self.progress.cancel.store(true, Ordering::Relaxed);
        }
        self.policy.next(now)
    }

    fn standing(&mut self, now: Time, user: UserId) -> Standing {
        self.policy.standing(now, user)
    }
}

/// Users whose jobs all wait at one instant, and finish before their estimates: the shape on which conservative
/// backfilling decides about all waiting jobs at each finish.
fn workload() -> Workload {
    let mut builder = WorkloadBuilder::new([Resource::new("cpu", "")]);
    for i in 0..40u64 {
        builder.push(&Task {
            submit: Time::ZERO,
            duration: Span::from_secs(10 + i % 3),
            requested: Some(Span::from_secs(100 + i % 7)),
            user: ["ann", "bob", "cid"][i as usize % 3],
            amounts: &[u128::from(1 + i % 2) * 1_000_000_000],
            ..Task::default()
        });
    }
    builder.finish().unwrap()
}

#[test]
fn a_cancelled_simulation_makes_no_further_decision() {
    let w = workload();
    let capacity = Capacity::new(w.resources(), vec![Rational::from(4)]).unwrap();
    let weights = Weights::equal(w.users().len());
    let (site, tasks) = (Site::pool(&capacity), UserTasks::new(&w));
    let jobs = Jobs::new(&w, &site, Layout::Auto);
    // The fast pool, and the engine of jobs under each rule.
    let planned = Backfill::Planned(PlannedBackfill::CONSERVATIVE);
    let backfills = [Backfill::None, Backfill::Easy, Backfill::Conservative, planned];
    for backfill in backfills.map(Some).into_iter().chain([None]) {
        let run = |cancel_at| {
            let progress = Progress::default();
            let policy = Registry::built_in().build("drf", &PolicyContext::new(&capacity, &weights)).unwrap();
            let mut policy = Cancelling { policy, progress: &progress, decisions: 0, cancel_at };
            let result = match backfill {
                None => simulate(&w, &tasks, &capacity, &mut policy, PoolOptions::default(), &progress),
                Some(backfill) => {
                    let options = JobOptions { backfill, ..JobOptions::default() };
                    simulate_jobs(&w, &tasks, &site, &jobs, &mut policy, options, &progress)
                }
            };
            (result, policy.decisions)
        };
        let (whole, decisions) = run(u64::MAX);
        assert!(whole.is_ok() && decisions > 20, "{backfill:?}: {decisions} decisions");
        for cancel_at in (1..decisions).step_by(7) {
            let (result, made) = run(cancel_at);
            assert_eq!((result, made), (Err(SimulationError::Cancelled), cancel_at), "{backfill:?}");
        }
    }
}
