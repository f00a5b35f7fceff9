//! The walk through a past, and what it finds.

use std::cmp::Reverse;

use evenhand_model::{Capacity, Span, Time, UserId, Weights};

use crate::envy::Envy;
use crate::episodes::Episodes;
use crate::instant::Instant;
use crate::scale::Scale;
use crate::{Past, PastError, Property};

/// Nanoseconds of an hour.
const HOUR: f64 = 3.6e12;

/// Which part of a past is looked at: from the one instant, up to but without the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// From here.
    pub from: Time,
    /// Up to here.
    pub until: Time,
}

impl Default for Window {
    fn default() -> Self {
        Window { from: Time::ZERO, until: Time::MAX }
    }
}

/// Something that did not hold for some time.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The property.
    pub property: Property,
    /// Who can complain; `None` for `feasible`.
    pub who: Option<UserId>,
    /// About whom, for `envy_free`.
    pub against: Option<UserId>,
    /// On which resource: of `feasible` and `no_justified_complaint` the one it is about, of
    /// `sharing_incentive` the one with the most share-hours (of several within one in a billion, the first).
    pub on: Option<usize>,
    /// For how long, in all.
    pub duration: Span,
    /// In how many separate intervals.
    pub intervals: u64,
    /// The longest of them.
    pub longest: Span,
    /// When it first was so.
    pub first: Time,
    /// On that resource, over those intervals: how far the user was below his entitlement, or for
    /// `feasible` how far above capacity was held, as a share of capacity, times hours.
    pub share_hours: Option<f64>,
}

/// One property over the whole past.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The property.
    pub property: Property,
    /// How many findings there are.
    pub findings: usize,
    /// How many users can complain.
    pub users: usize,
    /// The time each user had something to complain about, summed over users, in nanoseconds; for
    /// `feasible` the time each resource was held beyond capacity, summed over resources.
    pub complaint_ns: u128,
    /// That time as a part of the time users waited; `None` for `feasible` and if nobody waited.
    pub share_of_waiting: Option<f64>,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Audit {
    /// The worst first: the longest, then the smaller numbers of user, property, other user, resource.
    pub findings: Vec<Finding>,
    /// A line a property asked for, in the order of [`Property::ALL`].
    pub summaries: Vec<Summary>,
    /// The time each user had a waiting task, summed over users, in nanoseconds.
    pub waiting_ns: u128,
    /// From the first event to the last, within the window.
    pub from: Time,
    /// See `from`.
    pub until: Time,
}

impl Past<'_> {
    /// Holds this past against `properties`.
    ///
    /// # Errors
    /// If the weights cannot be written as whole numbers of a common size.
    ///
    /// # Panics
    /// If `capacity` and `weights` are not for this workload's resources and users.
    ///
    /// ```
    /// use evenhand_history::{Past, Property, Window};
    /// use evenhand_model::*;
    ///
    /// let mut w = WorkloadBuilder::new([Resource::new("cpu", "")]);
    /// for (user, submit, start) in [("ann", 0, 0), ("ann", 0, 0), ("bob", 10, 60)] {
    ///     let (submit, start) = (Time::from_secs(submit), Some(Time::from_secs(start)));
    ///     w.push(&Task { submit, start, duration: Span::from_secs(60), user, amounts: &[4_000_000_000], ..Task::default() });
    /// }
    /// let w = w.finish().unwrap();
    /// let past = Past::original(&w).unwrap();
    /// let audit = past
    ///     .audit(&past.peak_capacity().unwrap(), &Weights::equal(2), &Property::ALL, Window::default())
    ///     .unwrap();
    /// // bob waits 50 s for 4 of the 8 processors, half of which are his
    /// let worst = &audit.findings[0];
    /// assert_eq!((worst.who, worst.duration), (Some(UserId(1)), Span::from_secs(50)));
    /// ```
    pub fn audit(
        &self,
        capacity: &Capacity,
        weights: &Weights,
        properties: &[Property],
        window: Window,
    ) -> Result<Audit, PastError> {
        assert_eq!(capacity.width(), self.workload().resources().len(), "one capacity a resource");
        assert_eq!(weights.len(), self.workload().users().len(), "one weight a user");
        let scale = Scale::new(capacity, weights)?;
        let mut walk = Walk::new(self, &scale, properties);
        let (mut from, mut until) = (None, window.from);
        while let Some(now) = walk.state.next_event() {
            walk.state.advance(now, &scale);
            let next = walk.state.next_event().unwrap_or(now);
            let (now, next) = (now.max(window.from.nanos()), next.min(window.until.nanos()));
            if now < next {
                from.get_or_insert(Time::from_nanos(now));
                until = Time::from_nanos(next);
                walk.look(now);
                walk.integrate(next - now);
            }
            if next == window.until.nanos() {
                break;
            }
        }
        Ok(walk.end(from.unwrap_or(until), until))
    }
}

/// What is kept of one user.
#[derive(Clone, Debug, Default)]
struct UserTrack {
    waits: Episodes,
    pareto: Episodes,
    sharing_incentive: Episodes,
    /// Any envy, any justified complaint: for the time, whatever it was about.
    envy: Episodes,
    complaint: Episodes,
}

/// What is kept of one user and resource.
#[derive(Clone, Debug, Default)]
struct ResourceTrack {
    complaint: Episodes,
    /// Share-nanoseconds below entitlement while there was a complaint on this resource.
    complaint_short: f64,
    /// The same while the sharing incentive did not hold.
    incentive_short: f64,
}

struct Walk<'a> {
    state: Instant<'a>,
    scale: &'a Scale,
    asked: [bool; Property::ALL.len()],
    users: Vec<UserTrack>,
    /// User by user.
    resources: Vec<ResourceTrack>,
    overfull: Vec<(Episodes, f64)>,
    envy: Option<Envy>,
    touched: Vec<u32>,
}

impl<'a> Walk<'a> {
    fn new(past: &'a Past<'a>, scale: &'a Scale, properties: &[Property]) -> Walk<'a> {
        let n = past.workload().users().len();
        Walk {
            state: Instant::new(past),
            scale,
            asked: Property::ALL.map(|p| properties.contains(&p)),
            users: vec![UserTrack::default(); n],
            resources: vec![ResourceTrack::default(); n * scale.width()],
            overfull: vec![Default::default(); scale.width()],
            envy: properties.contains(&Property::EnvyFree).then(|| Envy::new(n)),
            touched: Vec::new(),
        }
    }

    /// Sees what holds from `now` on.
    fn look(&mut self, now: u64) {
        self.state.take_touched(&mut self.touched);
        for at in 0..self.touched.len() {
            let user = self.touched[at];
            if !self.state.waiting.has(user) {
                self.close(user, now);
            }
        }
        if let Some(envy) = &mut self.envy {
            envy.update(now, &self.state, self.scale, &self.touched);
        }
        for (r, (episodes, _)) in self.overfull.iter_mut().enumerate() {
            episodes.set(!self.scale.fits(r, self.state.total[r].into()), now);
        }
        let width = self.scale.width();
        for &user in self.state.waiting.members() {
            let u = user as usize;
            let (wanted, asked) = (self.state.wanted(user), self.state.asked(user));
            let (mut blocked, mut within, mut within_blocked) = (false, true, true);
            for (r, &with_it) in wanted.iter().enumerate() {
                let entitled = self.scale.entitles(u, r, with_it, self.state.active_weight);
                let in_the_way = stands_in_the_way(self.scale, &self.state.total, asked, r);
                within &= entitled;
                blocked |= in_the_way;
                within_blocked &= entitled || !in_the_way;
            }
            let track = &mut self.users[u];
            track.waits.set(true, now);
            track.pareto.set(!blocked, now);
            track.sharing_incentive.set(within, now);
            let complains = blocked && within_blocked;
            if let Some(envy) = &self.envy {
                track.envy.set(envy.envies_any(user), now);
            }
            if complains || track.complaint.is_open() {
                track.complaint.set(complains, now);
                for (r, on) in self.resources[u * width..][..width].iter_mut().enumerate() {
                    on.complaint.set(complains && stands_in_the_way(self.scale, &self.state.total, asked, r), now);
                }
            }
        }
    }

    /// What was seen last holds for `length` nanoseconds.
    fn integrate(&mut self, length: u64) {
        let width = self.scale.width();
        let length = length as f64;
        for (r, (episodes, over)) in self.overfull.iter_mut().enumerate() {
            if episodes.is_open() {
                *over += (self.state.total[r] as f64 * self.scale.per_step[r] - 1.0) * length;
            }
        }
        for &user in self.state.waiting.members() {
            let u = user as usize;
            let track = &self.users[u];
            let (incentive, complaint) = (track.sharing_incentive.is_open(), track.complaint.is_open());
            if !incentive && !complaint {
                continue;
            }
            let entitlement = self.scale.weight(u) as f64 / self.state.active_weight as f64;
            let held = self.state.held(user);
            for (r, on) in self.resources[u * width..][..width].iter_mut().enumerate() {
                let short = (entitlement - held[r] as f64 * self.scale.per_step[r]) * length;
                if incentive {
                    on.incentive_short += short;
                }
                if on.complaint.is_open() {
                    on.complaint_short += short;
                }
            }
        }
    }

    /// `user` waits no longer.
    fn close(&mut self, user: u32, now: u64) {
        let width = self.scale.width();
        let track = &mut self.users[user as usize];
        for episodes in
            [&mut track.waits, &mut track.pareto, &mut track.sharing_incentive, &mut track.envy, &mut track.complaint]
        {
            episodes.set(false, now);
        }
        for on in &mut self.resources[user as usize * width..][..width] {
            on.complaint.set(false, now);
        }
    }

    fn end(mut self, from: Time, until: Time) -> Audit {
        let now = until.nanos();
        (0..self.users.len() as u32).for_each(|user| self.close(user, now));
        self.overfull.iter_mut().for_each(|(episodes, _)| episodes.set(false, now));
        let waiting_ns: u128 = sum(self.users.iter().map(|u| &u.waits));
        let mut findings = Vec::new();
        let envy = self.envy.take();
        let asked = |p: Property| self.asked[p as usize];
        if asked(Property::Feasible) {
            for (r, (episodes, over)) in self.overfull.iter().enumerate() {
                findings.extend(finding(Property::Feasible, None, None, Some(r), episodes, Some(*over)));
            }
        }
        let width = self.scale.width();
        for (u, track) in self.users.iter().enumerate() {
            let who = Some(UserId(u as u32));
            let on = &self.resources[u * width..][..width];
            if asked(Property::Pareto) {
                findings.extend(finding(Property::Pareto, who, None, None, &track.pareto, None));
            }
            if asked(Property::SharingIncentive) {
                let worst = worst(on.iter().map(|on| on.incentive_short));
                let short = worst.map(|r| on[r].incentive_short);
                let episodes = &track.sharing_incentive;
                findings.extend(finding(Property::SharingIncentive, who, None, worst, episodes, short));
            }
            if asked(Property::NoJustifiedComplaint) {
                for (r, on) in on.iter().enumerate() {
                    let short = Some(on.complaint_short);
                    findings.extend(finding(Property::NoJustifiedComplaint, who, None, Some(r), &on.complaint, short));
                }
            }
        }
        if let Some(mut envy) = envy {
            envy.end(now);
            for ((user, other), episodes) in envy.into_pairs() {
                let (who, against) = (Some(UserId(user)), Some(UserId(other)));
                findings.extend(finding(Property::EnvyFree, who, against, None, &episodes, None));
            }
        }
        findings.sort_unstable_by_key(|f| (Reverse(f.duration), f.who, f.property, f.against, f.on));
        let summaries =
            Property::ALL.into_iter().filter(|p| asked(*p)).map(|p| self.summary(p, &findings, waiting_ns)).collect();
        Audit { findings, summaries, waiting_ns, from, until }
    }

    fn summary(&self, property: Property, findings: &[Finding], waiting_ns: u128) -> Summary {
        let episodes = |of: fn(&UserTrack) -> &Episodes| self.users.iter().map(of).collect::<Vec<_>>();
        let per_user = match property {
            Property::Feasible => self.overfull.iter().map(|(episodes, _)| episodes).collect(),
            Property::Pareto => episodes(|u| &u.pareto),
            Property::SharingIncentive => episodes(|u| &u.sharing_incentive),
            Property::EnvyFree => episodes(|u| &u.envy),
            Property::NoJustifiedComplaint => episodes(|u| &u.complaint),
        };
        let complaint_ns = sum(per_user.iter().copied());
        let of_users = property != Property::Feasible;
        Summary {
            property,
            findings: findings.iter().filter(|f| f.property == property).count(),
            users: if of_users { per_user.iter().filter(|e| e.count() > 0).count() } else { 0 },
            complaint_ns,
            share_of_waiting: (of_users && waiting_ns > 0).then(|| complaint_ns as f64 / waiting_ns as f64),
        }
    }
}

/// Whether resource `r` keeps a task that asks for `asked` from running.
#[inline]
fn stands_in_the_way(scale: &Scale, total: &[u64], asked: &[u64], r: usize) -> bool {
    asked[r] > 0 && !scale.fits(r, u128::from(total[r]) + u128::from(asked[r]))
}

fn sum<'a>(episodes: impl Iterator<Item = &'a Episodes>) -> u128 {
    episodes.map(|e| u128::from(e.total().nanos())).sum()
}

/// The place of the largest; of several as good as equal, the first.
fn worst(values: impl Iterator<Item = f64>) -> Option<usize> {
    let mut best: Option<(usize, f64)> = None;
    for (at, value) in values.enumerate() {
        if best.is_none_or(|(_, most)| value > most + 1e-9 * most.abs()) {
            best = Some((at, value));
        }
    }
    best.map(|(at, _)| at)
}

fn finding(
    property: Property,
    who: Option<UserId>,
    against: Option<UserId>,
    on: Option<usize>,
    episodes: &Episodes,
    share_ns: Option<f64>,
) -> Option<Finding> {
    (episodes.count() > 0).then(|| Finding {
        property,
        who,
        against,
        on,
        duration: episodes.total(),
        intervals: episodes.count(),
        longest: episodes.longest(),
        first: episodes.first(),
        share_hours: share_ns.map(|ns| ns / HOUR),
    })
}
