//! The walk through a past: what holds from event to event, for how long, and how far.
//!
//! At an event most waiting users' complaints stay as they were. To see that quickly, what decides them is
//! kept in two numbers a user and resource: what his first waiting task asks for, held against what is free,
//! and the largest sum of active weights at which he is still entitled to it, held against that sum.

use crate::Past;
use crate::envy::Envy;
use crate::episodes::Episodes;
use crate::instant::Instant;
use crate::scale::Scale;

/// What is kept of one user.
#[derive(Clone, Debug, Default)]
pub(crate) struct UserTrack {
    pub(crate) waits: Episodes,
    pub(crate) pareto: Episodes,
    pub(crate) sharing_incentive: Episodes,
    /// The integral of one over the sum of active weights while the sharing incentive did not hold (2^-64 ns).
    pub(crate) incentive_per_weight: u128,
    /// Any justified complaint, on whatever.
    pub(crate) complaint: Episodes,
}

/// What is kept of one user and resource.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResourceTrack {
    pub(crate) complaint: Episodes,
    /// The integrals, over the time of complaints on this resource, of what he held (steps x ns) and of one
    /// over the sum of active weights (2^-64 ns).
    pub(crate) complaint_held: u128,
    pub(crate) complaint_per_weight: u128,
    /// What he held while the sharing incentive did not hold (steps x ns).
    pub(crate) incentive_held: u128,
}

/// What holds for one user, as bits: those below, then a bit a resource on which he has a justified complaint.
type Seen = u64;
const WAITS: Seen = 1;
const PARETO: Seen = 1 << 1;
const INCENTIVE: Seen = 1 << 2;
const COMPLAINT: Seen = 1 << 3;
const FIRST_RESOURCE: usize = 4;

/// How many resources there may be.
pub(crate) const MOST_RESOURCES: usize = Seen::BITS as usize - FIRST_RESOURCE;

/// Where a user's share-hours have been counted up to.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    now: u64,
    per_weight: u128,
}

pub(crate) struct Walk<'a> {
    pub(crate) state: Instant<'a>,
    scale: &'a Scale,
    pub(crate) users: Vec<UserTrack>,
    /// User by user.
    pub(crate) resources: Vec<ResourceTrack>,
    /// When each resource was held beyond capacity, and how much was held then (steps x ns).
    pub(crate) overfull: Vec<(Episodes, u128)>,
    pub(crate) envy: Option<Envy>,
    seen: Vec<Seen>,
    /// The resources that stand in each waiting user's way, and those of which he would hold more than his
    /// entitlement, as bits; as they were last seen.
    in_the_way: Vec<u64>,
    beyond: Vec<u64>,
    /// The largest sum of active weights at which a waiting user is entitled to what he would hold with his
    /// first waiting task; user by user.
    most_weight: Vec<u64>,
    /// What each user held when last counted; user by user.
    held: Vec<u64>,
    counted: Vec<Counted>,
    /// The integral of 1 / (sum of active weights) over time, in 2^-64 ns: differences of it are exact.
    per_weight: u128,
    touched: Vec<u32>,
    free: Vec<u64>,
    /// The sum of active weights when last seen.
    active_weight: u64,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(past: &'a Past<'a>, scale: &'a Scale, envy: bool) -> Walk<'a> {
        let (n, width) = (past.workload().users().len(), scale.width());
        Walk {
            state: Instant::new(past),
            scale,
            users: vec![UserTrack::default(); n],
            resources: vec![ResourceTrack::default(); n * width],
            overfull: vec![Default::default(); width],
            envy: envy.then(|| Envy::new(n)),
            seen: vec![0; n],
            in_the_way: vec![0; n],
            beyond: vec![0; n],
            most_weight: vec![0; n * width],
            held: vec![0; n * width],
            counted: vec![Counted::default(); n],
            per_weight: 0,
            touched: Vec::new(),
            free: vec![0; width],
            active_weight: 0,
        }
    }

    /// Sees what holds from `now` on.
    pub(crate) fn look(&mut self, now: u64) {
        let width = self.scale.width();
        self.state.take_touched(&mut self.touched);
        for at in 0..self.touched.len() {
            let user = self.touched[at];
            self.count(user, now);
            let of = user as usize * width..(user as usize + 1) * width;
            self.held[of.clone()].copy_from_slice(self.state.held(user));
            if self.state.waiting.has(user) {
                let wanted = self.state.wanted(user).iter().enumerate();
                for (most, (r, &wanted)) in self.most_weight[of].iter_mut().zip(wanted) {
                    *most = self.scale.most_weight(user as usize, r, wanted);
                }
            } else {
                self.now_sees(user, 0, now);
            }
        }
        if let Some(envy) = &mut self.envy {
            envy.update(now, &self.state, self.scale, &self.touched);
        }
        let mut free_changed = false;
        for (r, (episodes, _)) in self.overfull.iter_mut().enumerate() {
            let total = self.state.total[r];
            episodes.set(!self.scale.fits(r, total), now);
            let free = self.scale.free(r, total);
            free_changed |= std::mem::replace(&mut self.free[r], free) != free;
        }
        let weight = self.state.active_weight;
        let weight_changed = std::mem::replace(&mut self.active_weight, weight) != weight;
        for at in 0..self.touched.len() {
            let user = self.touched[at];
            if self.state.waiting.has(user) {
                self.in_the_way[user as usize] = self.finds_in_the_way(user);
                self.beyond[user as usize] = self.finds_beyond(user);
                self.see(user, now);
            }
        }
        if !free_changed && !weight_changed {
            return;
        }
        for at in 0..self.state.waiting.members().len() {
            let user = self.state.waiting.members()[at];
            let in_the_way = self.finds_in_the_way(user);
            let mut changed = std::mem::replace(&mut self.in_the_way[user as usize], in_the_way) != in_the_way;
            if weight_changed {
                let beyond = self.finds_beyond(user);
                changed |= std::mem::replace(&mut self.beyond[user as usize], beyond) != beyond;
            }
            if changed {
                self.see(user, now);
            }
        }
    }

    #[inline]
    fn finds_in_the_way(&self, user: u32) -> u64 {
        let bits = self.state.asked(user).iter().zip(&self.free).enumerate();
        bits.fold(0, |bits, (r, (asked, free))| bits | u64::from(asked > free) << r)
    }

    #[inline]
    fn finds_beyond(&self, user: u32) -> u64 {
        let width = self.scale.width();
        let most_weight = self.most_weight[user as usize * width..][..width].iter().enumerate();
        most_weight.fold(0, |bits, (r, most)| bits | u64::from(self.active_weight > *most) << r)
    }

    /// Draws the conclusions for a waiting user.
    fn see(&mut self, user: u32, now: u64) {
        let (in_the_way, beyond) = (self.in_the_way[user as usize], self.beyond[user as usize]);
        let mut seen = WAITS;
        if beyond == 0 {
            seen |= INCENTIVE;
        }
        if in_the_way == 0 {
            seen |= PARETO;
        } else if in_the_way & beyond == 0 {
            seen |= COMPLAINT | in_the_way << FIRST_RESOURCE;
        }
        if seen != self.seen[user as usize] {
            self.count(user, now);
            self.now_sees(user, seen, now);
        }
    }

    fn now_sees(&mut self, user: u32, seen: Seen, now: u64) {
        let changed = std::mem::replace(&mut self.seen[user as usize], seen) ^ seen;
        let track = &mut self.users[user as usize];
        for (episodes, bit) in [
            (&mut track.waits, WAITS),
            (&mut track.pareto, PARETO),
            (&mut track.sharing_incentive, INCENTIVE),
            (&mut track.complaint, COMPLAINT),
        ] {
            episodes.set(seen & bit != 0, now);
        }
        if changed >> FIRST_RESOURCE != 0 {
            let width = self.scale.width();
            for (r, on) in self.resources[user as usize * width..][..width].iter_mut().enumerate() {
                on.complaint.set(seen >> (FIRST_RESOURCE + r) & 1 != 0, now);
            }
        }
    }

    /// What was seen last holds for `length` nanoseconds.
    pub(crate) fn pass(&mut self, length: u64) {
        if self.state.active_weight > 0 {
            // A length is at most 2^62.
            self.per_weight += (u128::from(length) << 64) / u128::from(self.state.active_weight);
        }
        for ((episodes, held), total) in self.overfull.iter_mut().zip(&self.state.total) {
            if episodes.is_open() {
                *held += u128::from(*total) * u128::from(length);
            }
        }
    }

    /// Counts a user's share-hours up to `now`, at what he held and saw until then.
    fn count(&mut self, user: u32, now: u64) {
        let u = user as usize;
        let since = std::mem::replace(&mut self.counted[u], Counted { now, per_weight: self.per_weight });
        let seen = self.seen[u];
        if seen & (INCENTIVE | COMPLAINT) == 0 {
            return;
        }
        // Integers, so that it does not matter in how many pieces a time is counted. Amounts are below 2^64
        // and all time is below 2^62.
        let length = u128::from(now - since.now);
        let per_weight = self.per_weight - since.per_weight;
        if seen & INCENTIVE != 0 {
            self.users[u].incentive_per_weight += per_weight;
        }
        let width = self.scale.width();
        let held = &self.held[u * width..][..width];
        for (r, (on, held)) in self.resources[u * width..][..width].iter_mut().zip(held).enumerate() {
            let held = u128::from(*held) * length;
            if seen & INCENTIVE != 0 {
                on.incentive_held += held;
            }
            if seen >> (FIRST_RESOURCE + r) & 1 != 0 {
                on.complaint_held += held;
                on.complaint_per_weight += per_weight;
            }
        }
    }

    /// Ends what still lasts.
    pub(crate) fn end(&mut self, now: u64) {
        for user in 0..self.users.len() as u32 {
            self.count(user, now);
            self.now_sees(user, 0, now);
        }
        self.overfull.iter_mut().for_each(|(episodes, _)| episodes.set(false, now));
        if let Some(envy) = &mut self.envy {
            envy.end(now);
        }
    }
}
