//! What is free on all machines of a group together, over future time: a bound on what a job of several chunks finds.

use super::kind::Kind;

/// Total free amounts as a step function of time; after the last step all is free for ever.
///
/// A job fits on machines only where the machines that it may use have enough free together, throughout its estimate. That
/// is no proof that it fits: the minimum of a sum is at least the sum of the minima. But it excludes nearly all starts at
/// which a job does not fit, at the price of a step for each instant and not for each machine.
#[derive(Clone, Debug)]
pub(super) struct FreeTotals {
    /// Number of resources.
    width: usize,
    /// Number of amounts in a step: for each group, each resource.
    row: usize,
    /// Where steps begin, increasing.
    times: Vec<u64>,
    /// How many jobs are expected to finish where the step begins.
    finishes: Vec<u32>,
    /// Free amounts, step by step.
    free: Vec<u64>,
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
        FreeTotals { width, row: has.len(), times: vec![0], finishes: vec![0], free: has }
    }

    /// The step in which an instant lies.
    fn at(&self, time: u64) -> usize {
        self.times.partition_point(|t| *t <= time) - 1
    }

    /// Makes a step begin at an instant; returns which.
    fn cut(&mut self, time: u64) -> usize {
        let i = self.at(time);
        if self.times[i] == time {
            return i;
        }
        self.times.insert(i + 1, time);
        self.finishes.insert(i + 1, 0);
        let from = i * self.row;
        let end = self.free.len();
        self.free.resize(end + self.row, 0);
        self.free.copy_within(from..end, from + self.row);
        i + 1
    }

    /// Removes a step that differs in nothing from the one before.
    fn join(&mut self, i: usize) {
        let from = i * self.row;
        let Some(before) = from.checked_sub(self.row).filter(|_| self.finishes[i] == 0) else { return };
        if self.free[before..from] == self.free[from..from + self.row] {
            self.times.remove(i);
            self.finishes.remove(i);
            self.free.drain(from..from + self.row);
        }
    }

    /// Takes amounts, for each group each resource, for a job that is there from `from` until `to`.
    pub(super) fn take(&mut self, from: u64, to: u64, amounts: &[u64]) {
        if from < to {
            let (first, end) = (self.cut(from), self.cut(to));
            self.finishes[end] += 1;
            let steps = self.free[first * self.row..end * self.row].chunks_exact_mut(self.row);
            steps.for_each(|step| step.iter_mut().zip(amounts).for_each(|(free, amount)| *free -= amount));
        }
    }

    /// Gives back what was taken for a job that is expected to finish at `to`.
    pub(super) fn give(&mut self, from: u64, to: u64, amounts: &[u64]) {
        if from < to {
            let (first, end) = (self.cut(from), self.cut(to));
            self.finishes[end] -= 1;
            let steps = self.free[first * self.row..end * self.row].chunks_exact_mut(self.row);
            steps.for_each(|step| step.iter_mut().zip(amounts).for_each(|(free, amount)| *free += amount));
            self.join(end);
            self.join(first);
        }
    }

    /// Drops the steps before `now`.
    pub(super) fn forget(&mut self, now: u64) {
        let past = self.at(now);
        if past > 8 {
            self.times.drain(..past);
            self.finishes.drain(..past);
            self.free.drain(..past * self.row);
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
        let first = self.at(start);
        let totals: Vec<u64> = (0..self.width).map(|r| kind.total(r)).collect();
        let steps = self.times[first..].iter().zip(self.free[first * self.row..].chunks_exact(self.row));
        for (i, (&time, free)) in (first..).zip(steps) {
            if time >= end && time > start {
                break;
            }
            let of_resource =
                |r: usize| kind.groups.iter().map(|group| free[usize::from(*group) * self.width + r]).sum::<u64>();
            let mut amounts = totals.iter().enumerate().map(|(r, total)| (r, of_resource(r), *total));
            if let Some((r, free, _)) = amounts.find(|(_, free, total)| free < total) {
                most[r] = most[r].max(free);
                start = *self.times.get(i + 1)?;
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
        let mut steps = self.times.iter().zip(&self.finishes).skip(self.at(after) + 1);
        steps.find(|(_, finishes)| **finishes > 0).map(|(time, _)| *time)
    }
}
