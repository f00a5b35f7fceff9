//! The audit of a history against the fairness properties, and its findings.

use std::cmp::Reverse;

use evenhand_model::{Capacity, Rational, Span, Time, UserId, Weights};

use crate::compare_with_entitlement::ExactEntitlements;
use crate::condition_intervals::IntervalStatistics;
use crate::envy_tracker::EnvyTracker;
use crate::property_tracker::{PropertyTracker, UserViolations};
use crate::{AuditError, History, Property};

/// Nanoseconds of an hour.
const HOUR: f64 = 3.6e12;

/// The part of a history to audit: `from <= t < until`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Beginning.
    pub from: Time,
    /// End (exclusive).
    pub until: Time,
}

/// The whole history.
impl Default for Window {
    fn default() -> Self {
        Window { from: Time::ZERO, until: Time::MAX }
    }
}

/// A violation of a property, summed over the time in which it lasted.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The property.
    pub property: Property,
    /// The disadvantaged user; `None` for `feasible`.
    pub who: Option<UserId>,
    /// The envied user, for `envy_free`.
    pub against: Option<UserId>,
    /// Index of the resource: for `feasible` and `no_justified_complaint` the resource concerned, for
    /// `sharing_incentive` the one with the most share-hours (ties go to the first).
    pub on: Option<usize>,
    /// Total duration.
    pub duration: Span,
    /// Number of separate intervals.
    pub intervals: u64,
    /// Duration of the longest interval.
    pub longest: Span,
    /// Beginning of the first interval.
    pub first: Time,
    /// Integral over those intervals of the user's distance below the entitlement on that resource (for `feasible`, of
    /// the excess over the capacity), in hours times a fraction of the capacity. `None` if there is no resource.
    pub share_hours: Option<f64>,
}

/// The totals of one property over the audited time.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The property.
    pub property: Property,
    /// Number of findings.
    pub findings: usize,
    /// Number of disadvantaged users; 0 for `feasible`.
    pub users: usize,
    /// Time in which a user was disadvantaged, summed over users, in nanoseconds; for `feasible` the time in which the
    /// capacity of a resource was exceeded, summed over resources.
    pub complaint_ns: u128,
    /// That time as a fraction of the users' waiting time; `None` for `feasible`, and if no user waited.
    pub share_of_waiting: Option<f64>,
}

/// The result of an audit.
#[derive(Clone, Debug, PartialEq)]
pub struct Audit {
    /// The findings by decreasing duration, ties by user, property, other user, resource.
    pub findings: Vec<Finding>,
    /// One entry per audited property, in the order of [`Property::ALL`].
    pub summaries: Vec<Summary>,
    /// Time in which a user had a waiting task, summed over users, in nanoseconds.
    pub waiting_ns: u128,
    /// The first event within the window, or the beginning of the window if that is later.
    pub from: Time,
    /// The last event within the window, or the end of the window if that is earlier.
    pub until: Time,
}

impl History<'_> {
    /// Audits this history against `properties`.
    ///
    /// At each event the audit considers every waiting user, and with [`Property::EnvyFree`] also every running user for
    /// each user whose state changed.
    ///
    /// # Errors
    /// Returns an error if the weights, written as integers over a common denominator, are too large.
    ///
    /// # Panics
    /// Panics if `capacity` and `weights` do not match the workload's resources and users.
    ///
    /// ```
    /// use evenhand_audit::{History, Property, Window};
    /// use evenhand_model::*;
    ///
    /// let mut w = WorkloadBuilder::new([Resource::new("cpu", "")]);
    /// for (user, submit, start) in [("ann", 0, 0), ("ann", 0, 0), ("bob", 10, 60)] {
    ///     let (submit, start) = (Time::from_secs(submit), Some(Time::from_secs(start)));
    ///     w.push(&Task { submit, start, duration: Span::from_secs(60), user, amounts: &[4_000_000_000], ..Task::default() });
    /// }
    /// let w = w.finish().unwrap();
    /// let history = History::original(&w).unwrap();
    /// let audit = history
    ///     .audit(&history.peak_capacity().unwrap(), &Weights::equal(2), &Property::ALL, Window::default())
    ///     .unwrap();
    /// // bob is entitled to 4 of the 8 processors and waits 50 s for them
    /// let worst = &audit.findings[0];
    /// assert_eq!((worst.who, worst.duration), (Some(UserId(1)), Span::from_secs(50)));
    /// ```
    pub fn audit(
        &self,
        capacity: &Capacity,
        weights: &Weights,
        properties: &[Property],
        window: Window,
    ) -> Result<Audit, AuditError> {
        assert_eq!(capacity.width(), self.workload().resources().len(), "one capacity per resource");
        assert_eq!(weights.len(), self.workload().users().len(), "one weight per user");
        let exact = ExactEntitlements::new(capacity, weights)?;
        let mut tracker = PropertyTracker::new(self, &exact, properties.contains(&Property::EnvyFree));
        let (mut from, mut until) = (None, window.from);
        while let Some(now) = tracker.state.next_event() {
            tracker.state.advance(now, &exact);
            let next = tracker.state.next_event().unwrap_or(now);
            let (now, next) = (now.max(window.from.nanos()), next.min(window.until.nanos()));
            if now < next {
                from.get_or_insert(Time::from_nanos(now));
                until = Time::from_nanos(next);
                tracker.evaluate(now);
                tracker.advance_time(next - now);
            }
            if next == window.until.nanos() {
                break;
            }
        }
        tracker.end(until.nanos());
        Ok(results(tracker, capacity, &exact, properties, (from.unwrap_or(until), until)))
    }
}

/// Converts the tracked violations to findings.
fn results(
    tracker: PropertyTracker<'_>,
    capacity: &Capacity,
    exact: &ExactEntitlements,
    properties: &[Property],
    span: (Time, Time),
) -> Audit {
    let width = capacity.width();
    let requested = |p: Property| properties.contains(&p);
    let waiting_ns: u128 = sum(tracker.users.iter().map(|u| &u.waits));
    let mut findings = Vec::new();
    // Integrals of the entitlement and of the amount held, in nanoseconds times a fraction of the capacity.
    let entitled = |user: usize, per_weight: u128| exact.weight(user) as f64 * (per_weight as f64 * 2f64.powi(-64));
    let share = |r: usize, held: u128| held as f64 / capacity.steps(r);
    if requested(Property::Feasible) {
        for (r, (intervals, held)) in tracker.over_capacity.iter().enumerate() {
            let over = share(r, *held) - intervals.total().nanos() as f64;
            findings.extend(finding(Property::Feasible, (None, None, Some(r)), intervals, Some(over)));
        }
    }
    for (u, violations) in tracker.users.iter().enumerate() {
        let who = Some(UserId(u as u32));
        let on = &tracker.resources[u * width..][..width];
        if requested(Property::Pareto) {
            findings.extend(finding(Property::Pareto, (who, None, None), &violations.pareto, None));
        }
        if requested(Property::SharingIncentive) && violations.sharing_incentive.count() > 0 {
            // The entitlement is the same fraction of every resource, so the shortfall is largest where the user held
            // the smallest fraction.
            let share_held = |r: usize| Rational::from(on[r].incentive_held) / capacity.exact_steps(r);
            let worst = (0..width).reduce(|best, r| if share_held(r) < share_held(best) { r } else { best });
            let short = worst.map(|r| entitled(u, violations.incentive_per_weight) - share(r, on[r].incentive_held));
            let about = (who, None, worst);
            findings.extend(finding(Property::SharingIncentive, about, &violations.sharing_incentive, short));
        }
        if requested(Property::NoJustifiedComplaint) {
            for (r, on) in on.iter().enumerate() {
                let short = entitled(u, on.complaint_per_weight) - share(r, on.complaint_held);
                let about = (who, None, Some(r));
                findings.extend(finding(Property::NoJustifiedComplaint, about, &on.complaint, Some(short)));
            }
        }
    }
    for ((user, other), intervals) in tracker.envy.iter().flat_map(EnvyTracker::pairs) {
        let about = (Some(UserId(user)), Some(UserId(other)), None);
        findings.extend(finding(Property::EnvyFree, about, intervals, None));
    }
    findings.sort_unstable_by_key(|f| (Reverse(f.duration), f.who, f.property, f.against, f.on));
    let requested = Property::ALL.into_iter().filter(|p| requested(*p));
    let summaries = requested.map(|p| summary(&tracker, p, &findings, waiting_ns)).collect();
    Audit { findings, summaries, waiting_ns, from: span.0, until: span.1 }
}

fn summary(tracker: &PropertyTracker<'_>, property: Property, findings: &[Finding], waiting_ns: u128) -> Summary {
    let of_each = |of: fn(&UserViolations) -> &IntervalStatistics| tracker.users.iter().map(of).collect::<Vec<_>>();
    let subjects = match property {
        Property::Feasible => tracker.over_capacity.iter().map(|(intervals, _)| intervals).collect(),
        Property::Pareto => of_each(|u| &u.pareto),
        Property::SharingIncentive => of_each(|u| &u.sharing_incentive),
        Property::EnvyFree => tracker.envy.iter().flat_map(EnvyTracker::any).collect(),
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

fn sum<'a>(intervals: impl Iterator<Item = &'a IntervalStatistics>) -> u128 {
    intervals.map(|e| u128::from(e.total().nanos())).sum()
}

fn finding(
    property: Property,
    (who, against, on): (Option<UserId>, Option<UserId>, Option<usize>),
    intervals: &IntervalStatistics,
    share_ns: Option<f64>,
) -> Option<Finding> {
    (intervals.count() > 0).then(|| Finding {
        property,
        who,
        against,
        on,
        duration: intervals.total(),
        intervals: intervals.count(),
        longest: intervals.longest(),
        first: intervals.first(),
        share_hours: share_ns.map(|ns| ns / HOUR),
    })
}
