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
    /// Any envy, any justified complaint: for the time, whatever it was about.
    pub(crate) envy: Episodes,
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
type Seen = u128;
const WAITS: Seen = 1;
const PARETO: Seen = 1 << 1;
const INCENTIVE: Seen = 1 << 2;
const ENVY: Seen = 1 << 3;
const COMPLAINT: Seen = 1 << 4;
const FIRST_RESOURCE: usize = 5;

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
            most_weight: vec![0; n * width],
            held: vec![0; n * width],
            counted: vec![Counted::default(); n],
            per_weight: 0,
            touched: Vec::new(),
            free: vec![0; width],
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
        for (r, (episodes, _)) in self.overfull.iter_mut().enumerate() {
            let total = self.state.total[r];
            episodes.set(!self.scale.fits(r, total), now);
            self.free[r] = self.scale.free(r, total);
        }
        for at in 0..self.state.waiting.members().len() {
            let user = self.state.waiting.members()[at];
            let seen = self.sees(user);
            if seen != self.seen[user as usize] {
                self.count(user, now);
                self.now_sees(user, seen, now);
            }
        }
    }

    /// What holds for a waiting user.
    #[inline]
    fn sees(&self, user: u32) -> Seen {
        let width = self.scale.width();
        let most_weight = &self.most_weight[user as usize * width..][..width];
        let asked = self.state.asked(user);
        // Bits of resources: those that stand in his way, those beyond his entitlement.
        let (mut in_the_way, mut beyond): (Seen, Seen) = (0, 0);
        for (r, ((asked, free), most)) in asked.iter().zip(&self.free).zip(most_weight).enumerate() {
            in_the_way |= Seen::from(asked > free) << r;
            beyond |= Seen::from(self.state.active_weight > *most) << r;
        }
        let mut seen = WAITS;
        if beyond == 0 {
            seen |= INCENTIVE;
        }
        if in_the_way == 0 {
            seen |= PARETO;
        } else if in_the_way & beyond == 0 {
            seen |= COMPLAINT | in_the_way << FIRST_RESOURCE;
        }
        if self.envy.as_ref().is_some_and(|envy| envy.envies_any(user)) {
            seen |= ENVY;
        }
        seen
    }

    fn now_sees(&mut self, user: u32, seen: Seen, now: u64) {
        let changed = std::mem::replace(&mut self.seen[user as usize], seen) ^ seen;
        let track = &mut self.users[user as usize];
        for (episodes, bit) in [
            (&mut track.waits, WAITS),
            (&mut track.pareto, PARETO),
            (&mut track.sharing_incentive, INCENTIVE),
            (&mut track.envy, ENVY),
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
