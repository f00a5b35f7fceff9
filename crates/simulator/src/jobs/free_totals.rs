//! What is free on all machines of a group together, over future time: a bound on what a job of several chunks finds.

use super::kind::Kind;
use super::step_function::StepFunction;

/// Total free amounts as a step function of time; after the last step all is free for ever.
///
/// A job fits on machines only where the machines that it may use have enough free together, throughout its estimate. That
/// is no proof that it fits: the minimum of a sum is at least the sum of the minima. But it excludes nearly all starts at
/// which a job does not fit, at the price of a step for each instant and not for each machine.
#[derive(Clone, Debug)]
pub(super) struct FreeTotals {
    /// Number of resources.
    width: usize,
    /// Free amounts: for each group, each resource.
    free: StepFunction,
    /// How many jobs are expected to finish where a step begins.
    finishes: Vec<u32>,
}

/// For how long, and from where on, enough must be free together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// The job may start from then on,
    pub(super) from: u64,
    /// before that,
    pub(super) before: u64,
    /// and takes so long;
    pub(super) length: u64,
    /// from then on enough is free anyway.
    pub(super) until: u64,
}

impl FreeTotals {
    /// All machines empty; `has`: what each group has together, group by group.
    pub(super) fn new(has: Vec<u64>, width: usize) -> FreeTotals {
        FreeTotals { width, free: StepFunction::new(has), finishes: vec![0] }
    }

    /// Makes a step begin at an instant; returns which.
    fn cut(&mut self, time: u64) -> usize {
        let at = self.free.cut(time);
        if self.finishes.len() < self.free.times().len() {
            self.finishes.insert(at, 0);
        }
        at
    }

    /// Removes a step that differs in nothing from the one before.
    fn join(&mut self, i: usize) {
        if self.finishes[i] == 0 && self.free.join(i) {
            self.finishes.remove(i);
        }
    }

    /// Takes amounts, for each group each resource, for a job that is there from `from` until `to`.
    pub(super) fn take(&mut self, from: u64, to: u64, amounts: &[u64]) {
        if from < to {
            let (first, end) = (self.cut(from), self.cut(to));
            self.finishes[end] += 1;
            self.free.change(first, end, |free, at| free - amounts[at]);
        }
    }

    /// Gives back what was taken for a job that is expected to finish at `to`.
    pub(super) fn give(&mut self, from: u64, to: u64, amounts: &[u64]) {
        if from < to {
            let (first, end) = (self.cut(from), self.cut(to));
            self.finishes[end] -= 1;
            self.free.change(first, end, |free, at| free + amounts[at]);
            self.join(end);
            self.join(first);
        }
    }

    /// Drops the steps before `now`.
    pub(super) fn forget(&mut self, now: u64) {
        let past = self.free.at(now);
        if past > 8 {
            self.free.drop_before(past);
            self.finishes.drain(..past);
        }
    }

    /// The first start in the window from which on enough is free together for all chunks of a job.
    ///
    /// It is the beginning of the window or a time at which a job is expected to finish. For starts that are left out
    /// because too little of a resource is free together, `most` is raised to the most that is.
    pub(super) fn next_start(&self, kind: &Kind, window: Window, most: &mut [u64]) -> Option<u64> {
        if window.from >= window.before {
            return None;
        }
        let mut start = window.from;
        let mut end = start.saturating_add(window.length).min(window.until);
        let first = self.free.at(start);
        let times = self.free.times();
        let totals: Vec<u64> = (0..self.width).map(|r| kind.total(r)).collect();
        for (i, &time) in times.iter().enumerate().skip(first) {
            let free = self.free.step(i);
            if time >= end && time > start {
                break;
            }
            let of_resource =
                |r: usize| kind.groups.iter().map(|group| free[usize::from(*group) * self.width + r]).sum::<u64>();
            let mut amounts = totals.iter().enumerate().map(|(r, total)| (r, of_resource(r), *total));
            if let Some((r, free, _)) = amounts.find(|(_, free, total)| free < total) {
                most[r] = most[r].max(free);
                start = *times.get(i + 1)?;
                if start >= window.before {
                    return None;
                }
                end = start.saturating_add(window.length).min(window.until);
            }
        }
        Some(start)
    }

    /// The first time after an instant at which a job is expected to finish.
    pub(super) fn next_finish(&self, after: u64) -> Option<u64> {
        let mut steps = self.free.times().iter().zip(&self.finishes).skip(self.free.at(after) + 1);
        steps.find(|(_, finishes)| **finishes > 0).map(|(time, _)| *time)
    }
}
