//! Pending jobs by kind and user: finds those that may start without going through all others.

use std::collections::BTreeMap;

use super::least_levels::LeastLevels;

/// Fewer started jobs than this stay among the pending ones.
const FEW: usize = 64;

/// The estimate of a job that no longer waits.
const STARTED: u64 = u64::MAX;

/// Not among the possible kinds.
const NOWHERE: u32 = u32::MAX;

/// Pending jobs of one kind and user, in the order of their rows.
#[derive(Clone, Debug)]
struct OfUser {
    /// The least estimate of those that wait, and the first of them with its estimate: most searches end here.
    least: u64,
    first: (u32, u64),
    /// Ascending, those of started jobs among them.
    rows: Vec<u32>,
    /// By place among the rows: the estimate, or [`STARTED`].
    estimates: LeastLevels,
    started: usize,
}

/// Pending jobs of one kind.
#[derive(Clone, Debug)]
struct OfKind {
    /// By user with a pending job.
    users: BTreeMap<u32, OfUser>,
    lacks_capacity: bool,
    /// Its place among the possible kinds, or [`NOWHERE`].
    place: u32,
}

/// The pending jobs of every kind.
///
/// Jobs of a kind and user differ for a scheduler only in their estimates. Adding a job, removing it and finding the
/// user's next of a kind with a short enough estimate take as many steps as the logarithm of their number.
#[derive(Clone, Debug)]
pub(crate) struct PendingKinds {
    kinds: Vec<OfKind>,
    /// Kinds of which a job waits and that are not known to lack capacity, in no order.
    possible: Vec<u32>,
}

impl Default for OfUser {
    fn default() -> OfUser {
        let (rows, estimates) = (Vec::new(), LeastLevels::default());
        OfUser { least: STARTED, first: (u32::MAX, STARTED), rows, estimates, started: 0 }
    }
}

impl OfUser {
    fn submit(&mut self, row: u32, estimate: u64) {
        self.least = self.least.min(estimate);
        self.first = self.first.min((row, estimate));
        if self.rows.last().is_none_or(|last| *last < row) {
            self.rows.push(row);
            self.estimates.push(estimate);
            return;
        }
        let at = self.rows.partition_point(|other| *other < row);
        if self.rows.get(at) == Some(&row) {
            // It has started and waits again.
            self.estimates.replace(at, estimate);
            self.started -= 1;
            return;
        }
        self.rows.insert(at, row);
        let mut estimates = self.estimates.numbers().to_vec();
        estimates.insert(at, estimate);
        self.estimates = LeastLevels::new(estimates);
    }

    /// Removes a job, which starts. Returns whether none is left.
    fn start(&mut self, row: u32) -> bool {
        let Ok(at) = self.rows.binary_search(&row) else { return false };
        self.estimates.replace(at, STARTED);
        self.least = self.estimates.least();
        if row == self.first.0 {
            let next = self.estimates.next(at, STARTED);
            self.first = next.map_or((u32::MAX, STARTED), |at| (self.rows[at], self.estimates.numbers()[at]));
        }
        self.started += 1;
        if self.started > FEW && self.started > self.rows.len() / 2 {
            let mut estimates = self.estimates.numbers().iter();
            self.rows.retain(|_| estimates.next().is_some_and(|estimate| *estimate != STARTED));
            let waiting = self.estimates.numbers().iter().copied().filter(|estimate| *estimate != STARTED);
            self.estimates = LeastLevels::new(waiting.collect());
            self.started = 0;
        }
        self.started == self.rows.len()
    }

    /// The first job from row `from` on whose estimate is below `below`.
    fn next(&self, from: u32, below: u64) -> Option<u32> {
        let (first, estimate) = self.first;
        if self.least >= below {
            return None;
        }
        if from <= first && estimate < below {
            return Some(first);
        }
        if self.rows.last().is_none_or(|last| *last < from) {
            return None;
        }
        let at = if from <= first { 0 } else { self.rows.partition_point(|row| *row < from) };
        self.estimates.next(at, below).map(|at| self.rows[at])
    }
}

impl PendingKinds {
    /// No job waits; no kind is known to lack capacity.
    pub(crate) fn new(kinds: usize) -> PendingKinds {
        let none = OfKind { users: BTreeMap::new(), lacks_capacity: false, place: NOWHERE };
        PendingKinds { kinds: vec![none; kinds], possible: Vec::new() }
    }

    /// Adds a job. Where users react, its row may be below that of a job submitted before it: that takes as many steps as
    /// the user has jobs of the kind.
    pub(crate) fn submit(&mut self, kind: u32, user: u32, row: u32, estimate: u64) {
        self.kinds[kind as usize].users.entry(user).or_default().submit(row, estimate);
        self.list(kind);
    }

    /// Removes a job, which starts.
    pub(crate) fn start(&mut self, kind: u32, user: u32, row: u32) {
        let users = &mut self.kinds[kind as usize].users;
        if users.get_mut(&user).is_some_and(|of| of.start(row)) {
            users.remove(&user);
        }
        self.list(kind);
    }

    /// Notes whether no machine has capacity for a kind.
    pub(crate) fn set_lacks_capacity(&mut self, kind: u32, lacks: bool) {
        self.kinds[kind as usize].lacks_capacity = lacks;
        self.list(kind);
    }

    /// Whether no machine is known to have capacity for a kind.
    #[inline]
    pub(crate) fn lacks_capacity(&self, kind: u32) -> bool {
        self.kinds[kind as usize].lacks_capacity
    }

    /// Kinds of which a job waits and that are not known to lack capacity, in no order.
    pub(crate) fn possible(&self) -> &[u32] {
        &self.possible
    }

    /// Each user's first job of a kind from row `from` on whose estimate is below `below`, by user.
    pub(crate) fn first_of_users(&self, kind: u32, from: u32, below: u64) -> impl Iterator<Item = (u32, u32)> {
        let users = self.kinds[kind as usize].users.iter();
        users.filter_map(move |(user, of)| Some((*user, of.next(from, below)?)))
    }

    /// The user's first job of a kind from row `from` on whose estimate is below `below`.
    pub(crate) fn next(&self, kind: u32, user: u32, from: u32, below: u64) -> Option<u32> {
        self.kinds[kind as usize].users.get(&user)?.next(from, below)
    }

    /// Adds a kind to the possible ones, or takes it out.
    fn list(&mut self, kind: u32) {
        let of = &mut self.kinds[kind as usize];
        match (!of.users.is_empty() && !of.lacks_capacity, of.place) {
            (true, NOWHERE) => {
                of.place = self.possible.len() as u32;
                self.possible.push(kind);
            }
            (false, place) if place != NOWHERE => {
                of.place = NOWHERE;
                self.possible.swap_remove(place as usize);
                if let Some(moved) = self.possible.get(place as usize) {
                    self.kinds[*moved as usize].place = place;
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a list of all jobs, across many blocks.
        #[test]
        fn the_next_job_is_that_of_a_plain_list(
            ops in prop::collection::vec((0u32..3, 0u32..2, 0u64..50, any::<bool>(), 0usize..400), 1..400),
            asks in prop::collection::vec((0u32..3, 0u32..3, 0u32..400, 0u64..60), 1..30),
            in_order in any::<bool>(),
        ) {
            let mut pending = PendingKinds::new(3);
            let mut plain: Vec<(u32, u32, u32, u64)> = Vec::new();
            let mut lacks = [false; 3];
            for (row, (kind, user, estimate, add, which)) in ops.into_iter().enumerate() {
                // Different rows, as 401 is a prime number.
                let row = if in_order { row as u32 } else { row as u32 * 173 % 401 };
                if add || plain.is_empty() {
                    pending.submit(kind, user, row, estimate);
                    plain.push((kind, user, row, estimate));
                } else if which % 7 == 0 {
                    lacks[kind as usize] = !lacks[kind as usize];
                    pending.set_lacks_capacity(kind, lacks[kind as usize]);
                } else {
                    let (kind, user, row, _) = plain.remove(which % plain.len());
                    pending.start(kind, user, row);
                }
                let mut possible = pending.possible().to_vec();
                possible.sort_unstable();
                let waits = |kind: &u32| plain.iter().any(|job| job.0 == *kind) && !lacks[*kind as usize];
                prop_assert_eq!(possible, (0..3).filter(waits).collect::<Vec<u32>>());
            }
            for (kind, user, from, below) in asks {
                let of_kind = || plain.iter().filter(|job| job.0 == kind);
                let after = of_kind().filter(|job| job.1 == user && job.2 >= from && job.3 < below);
                prop_assert_eq!(pending.next(kind, user, from, below), after.map(|job| job.2).min());
                let firsts: Vec<(u32, u32)> = pending.first_of_users(kind, from, below).collect();
                let expected = (0..2).filter_map(|user| Some((user, pending.next(kind, user, from, below)?)));
                prop_assert_eq!(firsts, expected.collect::<Vec<_>>());
            }
        }
    }
}
