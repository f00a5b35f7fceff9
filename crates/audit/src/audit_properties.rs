//! What an audit of a past finds.

use std::cmp::Reverse;

use evenhand_model::{Capacity, Rational, Span, Time, UserId, Weights};

use crate::envy::Envy;
use crate::episodes::Episodes;
use crate::scale::Scale;
use crate::walk::{UserTrack, Walk};
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
    /// `sharing_incentive` the one with the most share-hours (of equal ones, the first).
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
    /// use evenhand_audit::{Past, Property, Window};
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
        let mut walk = Walk::new(self, &scale, properties.contains(&Property::EnvyFree));
        let (mut from, mut until) = (None, window.from);
        while let Some(now) = walk.state.next_event() {
            walk.state.advance(now, &scale);
            let next = walk.state.next_event().unwrap_or(now);
            let (now, next) = (now.max(window.from.nanos()), next.min(window.until.nanos()));
            if now < next {
                from.get_or_insert(Time::from_nanos(now));
                until = Time::from_nanos(next);
                walk.look(now);
                walk.pass(next - now);
            }
            if next == window.until.nanos() {
                break;
            }
        }
        walk.end(until.nanos());
        Ok(results(walk, capacity, &scale, properties, (from.unwrap_or(until), until)))
    }
}

/// What a walk has seen, as findings.
fn results(walk: Walk<'_>, capacity: &Capacity, scale: &Scale, properties: &[Property], span: (Time, Time)) -> Audit {
    let width = capacity.width();
    let asked = |p: Property| properties.contains(&p);
    let waiting_ns: u128 = sum(walk.users.iter().map(|u| &u.waits));
    let mut findings = Vec::new();
    // Share-nanoseconds: what an entitlement came to, and what was held.
    let entitled = |user: usize, per_weight: u128| scale.weight(user) as f64 * (per_weight as f64 * 2f64.powi(-64));
    let share = |r: usize, held: u128| held as f64 / capacity.steps(r);
    if asked(Property::Feasible) {
        for (r, (episodes, held)) in walk.overfull.iter().enumerate() {
            let over = share(r, *held) - episodes.total().nanos() as f64;
            findings.extend(finding(Property::Feasible, (None, None, Some(r)), episodes, Some(over)));
        }
    }
    for (u, track) in walk.users.iter().enumerate() {
        let who = Some(UserId(u as u32));
        let on = &walk.resources[u * width..][..width];
        if asked(Property::Pareto) {
            findings.extend(finding(Property::Pareto, (who, None, None), &track.pareto, None));
        }
        if asked(Property::SharingIncentive) && track.sharing_incentive.count() > 0 {
            // His entitlement is the same share of every resource, so he lacked most of what he held least of.
            let share_held = |r: usize| Rational::from(on[r].incentive_held) / capacity.exact_steps(r);
            let worst = (0..width).reduce(|best, r| if share_held(r) < share_held(best) { r } else { best });
            let short = worst.map(|r| entitled(u, track.incentive_per_weight) - share(r, on[r].incentive_held));
            let about = (who, None, worst);
            findings.extend(finding(Property::SharingIncentive, about, &track.sharing_incentive, short));
        }
        if asked(Property::NoJustifiedComplaint) {
            for (r, on) in on.iter().enumerate() {
                let short = entitled(u, on.complaint_per_weight) - share(r, on.complaint_held);
                let about = (who, None, Some(r));
                findings.extend(finding(Property::NoJustifiedComplaint, about, &on.complaint, Some(short)));
            }
        }
    }
    for ((user, other), episodes) in walk.envy.iter().flat_map(Envy::pairs) {
        let about = (Some(UserId(user)), Some(UserId(other)), None);
        findings.extend(finding(Property::EnvyFree, about, episodes, None));
    }
    findings.sort_unstable_by_key(|f| (Reverse(f.duration), f.who, f.property, f.against, f.on));
    let asked = Property::ALL.into_iter().filter(|p| asked(*p));
    let summaries = asked.map(|p| summary(&walk, p, &findings, waiting_ns)).collect();
    Audit { findings, summaries, waiting_ns, from: span.0, until: span.1 }
}

fn summary(walk: &Walk<'_>, property: Property, findings: &[Finding], waiting_ns: u128) -> Summary {
    let of_each = |of: fn(&UserTrack) -> &Episodes| walk.users.iter().map(of).collect::<Vec<_>>();
    let subjects = match property {
        Property::Feasible => walk.overfull.iter().map(|(episodes, _)| episodes).collect(),
        Property::Pareto => of_each(|u| &u.pareto),
        Property::SharingIncentive => of_each(|u| &u.sharing_incentive),
        Property::EnvyFree => walk.envy.iter().flat_map(Envy::any).collect(),
        Property::NoJustifiedComplaint => of_each(|u| &u.complaint),
    };
    let complaint_ns = sum(subjects.iter().copied());
    let of_users = property != Property::Feasible;
    Summary {
        property,
        findings: findings.iter().filter(|f| f.property == property).count(),
        users: if of_users { subjects.iter().filter(|e| e.count() > 0).count() } else { 0 },
        complaint_ns,
        share_of_waiting: (of_users && waiting_ns > 0).then(|| complaint_ns as f64 / waiting_ns as f64),
    }
}

fn sum<'a>(episodes: impl Iterator<Item = &'a Episodes>) -> u128 {
    episodes.map(|e| u128::from(e.total().nanos())).sum()
}

fn finding(
    property: Property,
    (who, against, on): (Option<UserId>, Option<UserId>, Option<usize>),
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
