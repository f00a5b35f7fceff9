//! Tracks which user envies which other user.
//!
//! Whether i envies k depends only on the holdings of the two and on i's first waiting task. So an event concerns only
//! the pairs with a changed user: their number is waiting + running users per changed user, not waiting x running.

use std::collections::HashMap;

use crate::compare_with_entitlement::ExactEntitlements;
use crate::condition_intervals::IntervalStatistics;
use crate::history_state::HistoryState;

/// The intervals of envy of all pairs of users so far.
#[derive(Debug)]
pub(crate) struct EnvyTracker {
    users: usize,
    /// For each waiting user, the users that they envy now, as bits; `None` for users who do not wait.
    envied: Vec<Option<Box<[u64]>>>,
    spare: Vec<Box<[u64]>>,
    /// Number of users that each user envies now.
    count: Vec<u32>,
    intervals: HashMap<(u32, u32), IntervalStatistics>,
    /// The time in which each user envied any other user. Only its total is meaningful: if envy of one user follows
    /// envy of another, one interval may count as two.
    any: Vec<IntervalStatistics>,
}

impl EnvyTracker {
    pub(crate) fn new(users: usize) -> EnvyTracker {
        EnvyTracker {
            users,
            envied: vec![None; users],
            spare: Vec::new(),
            count: vec![0; users],
            intervals: HashMap::new(),
            any: vec![IntervalStatistics::default(); users],
        }
    }

    /// Updates all pairs with a `changed` user at time `now`.
    pub(crate) fn update(
        &mut self,
        now: u64,
        state: &HistoryState<'_>,
        entitlements: &ExactEntitlements,
        changed: &[u32],
    ) {
        for &user in changed {
            if !state.waiting.contains(user) {
                self.stops_waiting(user, now);
            }
        }
        for &user in changed {
            if state.waiting.contains(user) {
                if self.envied[user as usize].is_none() {
                    let words = self.users.div_ceil(64);
                    self.envied[user as usize] = Some(self.spare.pop().unwrap_or_else(|| vec![0; words].into()));
                }
                for &other in state.running.members() {
                    self.set(user, other, envies(user, other, state, entitlements), now);
                }
            }
            let runs = state.running.contains(user);
            for &other in state.waiting.members() {
                // All pairs of a user who began to wait at this instant are updated with that user.
                if self.envied[other as usize].is_some() {
                    self.set(other, user, runs && envies(other, user, state, entitlements), now);
                }
            }
        }
    }

    /// Returns for each user the time in which the user envied any other user.
    pub(crate) fn any(&self) -> &[IntervalStatistics] {
        &self.any
    }

    /// Closes all open intervals.
    pub(crate) fn end(&mut self, now: u64) {
        (0..self.users as u32).for_each(|user| self.stops_waiting(user, now));
    }

    /// Iterates in no particular order over the pairs with envy at any time: (envious user, envied user) and intervals.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = ((u32, u32), &IntervalStatistics)> {
        self.intervals.iter().map(|(pair, intervals)| (*pair, intervals))
    }

    fn stops_waiting(&mut self, user: u32, now: u64) {
        let Some(mut bits) = self.envied[user as usize].take() else { return };
        for (word, set) in bits.iter_mut().enumerate() {
            while *set != 0 {
                let other = word as u32 * 64 + set.trailing_zeros();
                *set &= *set - 1;
                self.intervals.entry((user, other)).or_default().set(false, now);
            }
        }
        self.count[user as usize] = 0;
        self.any[user as usize].set(false, now);
        self.spare.push(bits);
    }

    #[inline]
    fn set(&mut self, user: u32, other: u32, envies: bool, now: u64) {
        let Some(bits) = &mut self.envied[user as usize] else { return };
        let (word, bit) = (&mut bits[other as usize / 64], 1u64 << (other % 64));
        if (*word & bit != 0) == envies {
            return;
        }
        *word ^= bit;
        let count = &mut self.count[user as usize];
        *count = if envies { *count + 1 } else { *count - 1 };
        // Each pair reaches its final state at this instant in one step, so no user is counted without envy.
        self.any[user as usize].set(*count > 0, now);
        self.intervals.entry((user, other)).or_default().set(envies, now);
    }
}

/// Returns whether the holdings of `other`, scaled to the weight of the waiting `user`, suffice for the user's running
/// tasks and first waiting task.
#[inline]
fn envies(user: u32, other: u32, state: &HistoryState<'_>, entitlements: &ExactEntitlements) -> bool {
    let (own, theirs) = (entitlements.weight(user as usize), entitlements.weight(other as usize));
    let mut pairs = state.held_with_next(user).iter().zip(state.held(other));
    user != other
        && if own == theirs {
            pairs.all(|(needed, held)| needed <= held)
        } else {
            pairs.all(|(&needed, &held)| u128::from(needed) * u128::from(theirs) <= u128::from(own) * u128::from(held))
        }
}
