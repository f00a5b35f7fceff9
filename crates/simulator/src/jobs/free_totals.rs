//! What is free on all machines of a group together, over future time: a bound on what a job of several chunks finds.

use super::kind::Kind;
use super::step_blocks::{Block, StepBlocks};

/// Total free amounts as a step function of time; after the last step all is free for ever.
///
/// A job fits on machines only where the machines that it may use have enough free together, throughout its estimate. That
/// is no proof that it fits: the minimum of a sum is at least the sum of the minima. But it excludes nearly all starts at
/// which a job does not fit, at the price of a step for each instant and not for each machine.
#[derive(Clone, Debug)]
pub(super) struct FreeTotals {
    /// Number of resources.
    width: usize,
    /// Free amounts: for each group, each resource; and how many jobs are expected to finish where a step begins.
    free: StepBlocks,
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
        FreeTotals { width, free: StepBlocks::new(has) }
    }

    /// Takes amounts, for each group each resource, for a job that is there from `from` until `to`.
    pub(super) fn take(&mut self, from: u64, to: u64, amounts: &[u64]) {
        if from < to {
            self.free.cut(from);
            self.free.cut(to);
            self.free.count(to, |finishes| finishes + 1);
            self.free.change(from, to, |free, at| free - amounts[at]);
        }
    }

    /// Gives back what was taken for a job that is expected to finish at `to`.
    pub(super) fn give(&mut self, from: u64, to: u64, amounts: &[u64]) {
        if from < to {
            self.free.cut(from);
            self.free.cut(to);
            self.free.count(to, |finishes| finishes - 1);
            self.free.change(from, to, |free, at| free + amounts[at]);
            self.free.join(to);
            self.free.join(from);
        }
    }

    /// Drops what was before `now`.
    pub(super) fn forget(&mut self, now: u64) {
        self.free.forget(now);
    }

    /// The first start in the window from which on enough is free together for all chunks of a job.
    ///
    /// It is the beginning of the window or a time at which a job is expected to finish. For starts that are left out
    /// because too little of a resource is free together, `most` is raised to the most that is.
    ///
    /// From a start at which enough is free, the last step with too little while the job would run excludes every start until that
    /// step's end: so many steps are never looked at, and few twice.
    pub(super) fn next_start(&self, kind: &Kind, window: Window, most: &mut [u64]) -> Option<u64> {
        let Window { from: mut start, before, length, until } = window;
        if start >= before {
            return None;
        }
        let totals: Vec<u64> = (0..self.width).map(|r| kind.total(r)).collect();
        // Enough is free from the start until then.
        let mut enough_until = start;
        loop {
            if start >= enough_until {
                start = self.first_with_enough(kind, &totals, start, most)?;
                if start >= before {
                    return None;
                }
                enough_until = start + 1;
            }
            let end = start.saturating_add(length).min(until);
            if end <= enough_until {
                return Some(start);
            }
            let may = |block: &Block| self.too_little(kind, &totals, |at| block.least(at)).is_some();
            let find = |block: &Block, step: usize| self.too_little(kind, &totals, |at| block.amount(step, at));
            let Some(((r, free), next)) = self.free.last(enough_until, end, may, find) else {
                return Some(start);
            };
            most[r] = most[r].max(free);
            start = next.filter(|next| *next < before)?;
            enough_until = end;
        }
    }

    /// The first instant from one on at which enough is free together.
    fn first_with_enough(&self, kind: &Kind, totals: &[u64], from: u64, most: &mut [u64]) -> Option<u64> {
        self.free.first(from, |block, step| {
            let too_little = match step {
                Some(step) => self.too_little(kind, totals, |at| block.amount(step, at)),
                None => self.too_little(kind, totals, |at| block.most(at)),
            };
            if let Some((r, free)) = too_little {
                most[r] = most[r].max(free);
            }
            too_little.is_none()
        })
    }

    /// The first resource of which the machines that a kind may use have too little together, and how much they have; `free` has
    /// the amount of a group at its place.
    #[inline]
    fn too_little(&self, kind: &Kind, totals: &[u64], free: impl Fn(usize) -> u64) -> Option<(usize, u64)> {
        totals.iter().enumerate().find_map(|(r, total)| {
            // At most what the site has, which is below 2^64.
            let together: u64 = kind.groups.iter().map(|group| free(usize::from(*group) * self.width + r)).sum();
            (together < *total).then_some((r, together))
        })
    }

    /// The first time after an instant at which a job is expected to finish.
    pub(super) fn next_finish(&self, after: u64) -> Option<u64> {
        self.free.next_counted(after)
    }
}
