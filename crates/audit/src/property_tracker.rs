//! Tracks from event to event which properties are violated, for how long, and by how much.
//!
//! At the majority of events, the violations of most waiting users do not change. To detect this quickly, two numbers per user and
//! resource decide them: the demand of the user's first waiting task, compared with the free amount, and the largest
//! sum of active weights at which the user is still entitled to it, compared with the current sum.

use crate::History;
use crate::compare_with_entitlement::ExactEntitlements;
use crate::condition_intervals::IntervalStatistics;
use crate::envy_tracker::EnvyTracker;
use crate::history_state::HistoryState;

/// The violations of one user.
#[derive(Clone, Debug, Default)]
pub(crate) struct UserViolations {
    pub(crate) waits: IntervalStatistics,
    pub(crate) pareto: IntervalStatistics,
    pub(crate) sharing_incentive: IntervalStatistics,
    /// Integral of 1 / (sum of active weights) while the sharing incentive was violated, in 2^-64 ns.
    pub(crate) incentive_per_weight: u128,
    /// Time with a justified complaint on any resource.
    pub(crate) complaint: IntervalStatistics,
}

/// The violations of one user on one resource.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResourceViolations {
    pub(crate) complaint: IntervalStatistics,
    /// Integrals, over the time of complaints on this resource, of the amount held (steps x ns) and of
    /// 1 / (sum of active weights) (2^-64 ns).
    pub(crate) complaint_held: u128,
    pub(crate) complaint_per_weight: u128,
    /// Integral of the amount held while the sharing incentive was violated (steps x ns).
    pub(crate) incentive_held: u128,
}

/// The conditions of one user as bits: the four below, then one bit for each resource with a justified complaint.
type Conditions = u64;
const WAITS: Conditions = 1;
const PARETO: Conditions = 1 << 1;
const INCENTIVE: Conditions = 1 << 2;
const COMPLAINT: Conditions = 1 << 3;
const FIRST_RESOURCE: usize = 4;

/// Maximum number of resources.
pub(crate) const MAX_RESOURCES: usize = Conditions::BITS as usize - FIRST_RESOURCE;

/// The time, and the integral of 1 / (sum of active weights), up to which a user's share-hours are accumulated.
#[derive(Clone, Copy, Debug, Default)]
struct Checkpoint {
    now: u64,
    per_weight: u128,
}

/// Tracks the violations of all properties; see the [module](self).
pub(crate) struct PropertyTracker<'a> {
    pub(crate) state: HistoryState<'a>,
    entitlements: &'a ExactEntitlements,
    pub(crate) users: Vec<UserViolations>,
    /// As `[user][resource]`.
    pub(crate) resources: Vec<ResourceViolations>,
    /// For each resource the time in which more than the capacity was held, and the integral of the amount held then
    /// (steps x ns).
    pub(crate) over_capacity: Vec<(IntervalStatistics, u128)>,
    pub(crate) envy: Option<EnvyTracker>,
    conditions: Vec<Conditions>,
    /// For each waiting user, the resources that block the first waiting task, and those on which the task would exceed
    /// the entitlement, as bits, at the last update.
    blocking: Vec<u64>,
    over_entitlement: Vec<u64>,
    /// As `[user][resource]`, the largest sum of active weights at which a waiting user is entitled to the holdings with
    /// the first waiting task.
    max_active_weight: Vec<u64>,
    /// Holdings at the last checkpoint, as `[user][resource]`.
    held: Vec<u64>,
    checkpoint: Vec<Checkpoint>,
    /// Integral of 1 / (sum of active weights) over time, in 2^-64 ns; an integer, so that its differences are exact.
    per_weight: u128,
    changed: Vec<u32>,
    free: Vec<u64>,
    /// Sum of active weights at the last update.
    active_weight: u64,
}

impl<'a> PropertyTracker<'a> {
    /// Creates a tracker before the first event; `envy` enables the tracking of envy.
    pub(crate) fn new(
        history: &'a History<'a>,
        entitlements: &'a ExactEntitlements,
        envy: bool,
    ) -> PropertyTracker<'a> {
        let (n, width) = (history.workload().users().len(), entitlements.width());
        PropertyTracker {
            state: HistoryState::new(history),
            entitlements,
            users: vec![UserViolations::default(); n],
            resources: vec![ResourceViolations::default(); n * width],
            over_capacity: vec![Default::default(); width],
            envy: envy.then(|| EnvyTracker::new(n)),
            conditions: vec![0; n],
            blocking: vec![0; n],
            over_entitlement: vec![0; n],
            max_active_weight: vec![0; n * width],
            held: vec![0; n * width],
            checkpoint: vec![Checkpoint::default(); n],
            per_weight: 0,
            changed: Vec::new(),
            free: vec![0; width],
            active_weight: 0,
        }
    }

    /// Evaluates the properties of the state that begins at `now`.
    pub(crate) fn evaluate(&mut self, now: u64) {
        let width = self.entitlements.width();
        self.state.take_changed(&mut self.changed);
        for at in 0..self.changed.len() {
            let user = self.changed[at];
            self.accumulate(user, now);
            let of = user as usize * width..(user as usize + 1) * width;
            self.held[of.clone()].copy_from_slice(self.state.held(user));
            if self.state.waiting.contains(user) {
                let amounts = self.state.held_with_next(user).iter().enumerate();
                for (max, (r, &amount)) in self.max_active_weight[of].iter_mut().zip(amounts) {
                    *max = self.entitlements.max_active_weight(user as usize, r, amount);
                }
            } else {
                self.set_conditions(user, 0, now);
            }
        }
        if let Some(envy) = &mut self.envy {
            envy.update(now, &self.state, self.entitlements, &self.changed);
        }
        let mut free_changed = false;
        for (r, (intervals, _)) in self.over_capacity.iter_mut().enumerate() {
            let total = self.state.total[r];
            intervals.set(!self.entitlements.fits(r, total), now);
            let free = self.entitlements.free(r, total);
            free_changed |= std::mem::replace(&mut self.free[r], free) != free;
        }
        let weight = self.state.active_weight;
        let weight_changed = std::mem::replace(&mut self.active_weight, weight) != weight;
        for at in 0..self.changed.len() {
            let user = self.changed[at];
            if self.state.waiting.contains(user) {
                self.blocking[user as usize] = self.blocking_resources(user);
                self.over_entitlement[user as usize] = self.resources_over_entitlement(user);
                self.evaluate_user(user, now);
            }
        }
        if !free_changed && !weight_changed {
            return;
        }
        for at in 0..self.state.waiting.members().len() {
            let user = self.state.waiting.members()[at];
            let blocking = self.blocking_resources(user);
            let mut changed = std::mem::replace(&mut self.blocking[user as usize], blocking) != blocking;
            if weight_changed {
                let over = self.resources_over_entitlement(user);
                changed |= std::mem::replace(&mut self.over_entitlement[user as usize], over) != over;
            }
            if changed {
                self.evaluate_user(user, now);
            }
        }
    }

    /// Returns the resources that block the user's first waiting task, as bits.
    #[inline]
    fn blocking_resources(&self, user: u32) -> u64 {
        let demands = self.state.next_demand(user).iter().zip(&self.free).enumerate();
        demands.fold(0, |bits, (r, (demand, free))| bits | u64::from(demand > free) << r)
    }

    /// Returns the resources on which the user's first waiting task would exceed the entitlement, as bits.
    #[inline]
    fn resources_over_entitlement(&self, user: u32) -> u64 {
        let width = self.entitlements.width();
        let limits = self.max_active_weight[user as usize * width..][..width].iter().enumerate();
        limits.fold(0, |bits, (r, max)| bits | u64::from(self.active_weight > *max) << r)
    }

    /// Derives the conditions of a waiting user.
    fn evaluate_user(&mut self, user: u32, now: u64) {
        let (blocking, over) = (self.blocking[user as usize], self.over_entitlement[user as usize]);
        let mut conditions = WAITS;
        if over == 0 {
            conditions |= INCENTIVE;
        }
        if blocking == 0 {
            conditions |= PARETO;
        } else if blocking & over == 0 {
            conditions |= COMPLAINT | blocking << FIRST_RESOURCE;
        }
        if conditions != self.conditions[user as usize] {
            self.accumulate(user, now);
            self.set_conditions(user, conditions, now);
        }
    }

    fn set_conditions(&mut self, user: u32, conditions: Conditions, now: u64) {
        let changed = std::mem::replace(&mut self.conditions[user as usize], conditions) ^ conditions;
        let violations = &mut self.users[user as usize];
        for (intervals, bit) in [
            (&mut violations.waits, WAITS),
            (&mut violations.pareto, PARETO),
            (&mut violations.sharing_incentive, INCENTIVE),
            (&mut violations.complaint, COMPLAINT),
        ] {
            intervals.set(conditions & bit != 0, now);
        }
        if changed >> FIRST_RESOURCE != 0 {
            let width = self.entitlements.width();
            for (r, on) in self.resources[user as usize * width..][..width].iter_mut().enumerate() {
                on.complaint.set(conditions >> (FIRST_RESOURCE + r) & 1 != 0, now);
            }
        }
    }

    /// Advances the time by `length` nanoseconds in the state of the last [`evaluate`](Self::evaluate).
    pub(crate) fn advance_time(&mut self, length: u64) {
        if self.state.active_weight > 0 {
            // A length is at most 2^62.
            self.per_weight += (u128::from(length) << 64) / u128::from(self.state.active_weight);
        }
        for ((intervals, held), total) in self.over_capacity.iter_mut().zip(&self.state.total) {
            if intervals.is_open() {
                *held += u128::from(*total) * u128::from(length);
            }
        }
    }

    /// Accumulates a user's share-hours up to `now`, with the holdings and conditions since the last checkpoint.
    fn accumulate(&mut self, user: u32, now: u64) {
        let u = user as usize;
        let since = std::mem::replace(&mut self.checkpoint[u], Checkpoint { now, per_weight: self.per_weight });
        let conditions = self.conditions[u];
        if conditions & (INCENTIVE | COMPLAINT) == 0 {
            return;
        }
        // Integers, so that the sum does not depend on how the time is divided. Amounts are below 2^64 and all time is
        // below 2^62.
        let length = u128::from(now - since.now);
        let per_weight = self.per_weight - since.per_weight;
        if conditions & INCENTIVE != 0 {
            self.users[u].incentive_per_weight += per_weight;
        }
        let width = self.entitlements.width();
        let held = &self.held[u * width..][..width];
        for (r, (on, held)) in self.resources[u * width..][..width].iter_mut().zip(held).enumerate() {
            let held = u128::from(*held) * length;
            if conditions & INCENTIVE != 0 {
                on.incentive_held += held;
            }
            if conditions >> (FIRST_RESOURCE + r) & 1 != 0 {
                on.complaint_held += held;
                on.complaint_per_weight += per_weight;
            }
        }
    }

    /// Closes all open intervals at `now`.
    pub(crate) fn end(&mut self, now: u64) {
        for user in 0..self.users.len() as u32 {
            self.accumulate(user, now);
            self.set_conditions(user, 0, now);
        }
        self.over_capacity.iter_mut().for_each(|(intervals, _)| intervals.set(false, now));
        if let Some(envy) = &mut self.envy {
            envy.end(now);
        }
    }
}
