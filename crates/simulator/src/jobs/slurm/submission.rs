//! The submission of a job: its place in the queue, and the attempt to start it alone.

use evenhand_model::Time;
use evenhand_policies::Policy;

use super::super::pending_jobs::Entry;
use super::engine::Engine;
use super::queue::Order;
use super::results::Activity;
use crate::SimulationError;

impl Engine<'_> {
    /// A submission, and the attempt to start the job alone.
    pub(super) fn submit(&mut self, now: Time, policy: &mut dyn Policy) -> Result<(), SimulationError> {
        let Some(entry) = self.pending.submit(now) else {
            self.done += 1;
            return Ok(());
        };
        let row = entry.row;
        self.submitted.submit(row);
        self.enqueue(now, entry, policy);
        if !self.options.at_submission
            || self.options.defer
            || self.waits_for_completion(now)
            || self.limits.is_over(row)
        {
            return Ok(());
        }
        if !self.is_top(now, row, policy) {
            return Ok(());
        }
        let kind = self.kind(row);
        let held = (0..self.attempts_of(row)).find_map(|at| {
            let lenders = self.lenders(now.nanos(), row, at);
            self.choose_over(&self.nodes, &lenders, kind, &self.open_now(now, row, at), false)
        });
        if held.is_none() && self.preemption.is_on() {
            // It starts when what it preempts has ended.
            for at in 0..self.attempts_of(row) {
                let open = self.open_now(now, row, at);
                if self.preempt(now, row, at, &open).is_some() {
                    break;
                }
            }
        }
        if let Some(held) = held {
            self.start(now, row, held, Activity::Submit)?;
            self.notify(now, policy);
            if let Order::Users(users) = &mut self.order {
                users.started(entry.user);
                self.end_walk(policy);
            }
        }
        Ok(())
    }

    /// Puts a job into the queue.
    pub(super) fn enqueue(&mut self, now: Time, entry: Entry, policy: &mut dyn Policy) {
        let row = entry.row;
        for at in 0..self.attempts_of(row) {
            let (partition, _) = self.attempt(row, at);
            self.waiting[partition] += 1;
        }
        let (workload, jobs, times) = (self.workload, self.jobs, &self.submission_times);
        let job = |row| jobs.pending_job(workload, times.of(row), row);
        match &mut self.order {
            Order::Priorities(order) => {
                let priority = policy.job_priorities().map_or(0, |p| p.priority(now, &job(row)));
                order.insert(row, entry.class, priority, now);
            }
            Order::Users(users) => users.submitted(row, entry.class, entry.user, &mut self.pending, policy, job),
        }
        self.note_change(now);
        self.clocks.asked = self.clocks.asked.or(Some(now.nanos()));
    }

    /// Whether no job of higher precedence waits in a partition that shares nodes with the job's.
    fn is_top(&mut self, now: Time, row: u32, policy: &mut dyn Policy) -> bool {
        let blocks = |engine: &Engine<'_>, other: u32| {
            let young = now.since(engine.submission_times.of(other)) < engine.options.bf_min_age_reserve;
            !young && engine.share_nodes(other, row) && !engine.limits.is_over(other)
        };
        if let Order::Priorities(order) = &self.order {
            return !order.above(row).any(|other| blocks(self, other));
        }
        self.begin_walk_by_tiers(policy);
        let mut is_top = true;
        while let Some(other) = self.next_by_tiers(now, policy) {
            if other == row {
                break;
            }
            if blocks(self, other) {
                is_top = false;
                break;
            }
        }
        self.end_walk(policy);
        is_top
    }
}
