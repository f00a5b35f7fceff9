//! The loop from event to event: arrivals, departures, changes of phase, and completed work.

use evenhand_mechanisms::Number;

use crate::divider::{Divider, PresentUser};
use crate::{Interval, IntervalEnd, Scenario, Timeline, TimelineError, TimelineOptions, UserShare};

/// Divides from the first arrival until no user is present, nothing more happens, or `options.until`.
pub(crate) fn run<N: Number>(
    scenario: &Scenario,
    mechanism: &'static str,
    options: &TimelineOptions,
    divider: &mut (impl Divider<N> + ?Sized),
) -> Result<Timeline<N>, TimelineError> {
    let stop = options.until.as_ref().map(N::from_exact);
    let mut users: Vec<UserProgress<N>> =
        (0..scenario.users().len()).map(|user| UserProgress::new(scenario, user)).collect();
    let mut timeline = Timeline { mechanism, intervals: Vec::new(), left: vec![None; users.len()] };
    let first = users.iter().filter_map(|user| user.phases.first().map(|phase| phase.from.clone()));
    let Some(mut now) = first.reduce(N::smaller) else { return Ok(timeline) };
    loop {
        let mut present = Vec::new();
        let mut next = stop.clone();
        for (user, user_progress) in users.iter_mut().enumerate() {
            if user_progress.advance(&now) {
                timeline.left[user] = Some(now.clone());
            }
            let Some(Times { from, until, .. }) = user_progress.phases.get(user_progress.phase) else { continue };
            let is_present = *from <= now;
            let event = if is_present { until.as_ref() } else { Some(from) };
            if let Some(event) = event.filter(|event| next.as_ref().is_none_or(|next| *event < next)) {
                next = Some(event.clone());
            }
            if is_present {
                present.push(PresentUser { user, phase: user_progress.phase, work: user_progress.work.clone() });
            }
        }
        if stop.as_ref().is_some_and(|stop| *stop <= now) || (present.is_empty() && next.is_none()) {
            return Ok(timeline);
        }
        let length = next.as_ref().map(|next| next.clone() - &now);
        let period = divider.divide_until_event(&present, &now, length.as_ref())?;
        for (p, left) in present.iter().zip(period.left) {
            users[p.user].work = left;
        }
        let last = period.segments.len().saturating_sub(1);
        let mut from = now.clone();
        let mut passed = N::zero();
        for (index, segment) in period.segments.into_iter().enumerate() {
            // The time of the event itself, without the rounding of a sum.
            let until = if index == last && period.reached {
                next.clone()
            } else {
                segment.length.map(|length| {
                    passed += &length;
                    now.clone() + &passed
                })
            };
            let mut shares = vec![None; users.len()];
            for (p, tasks) in present.iter().zip(segment.tasks) {
                shares[p.user] = Some(UserShare { phase: p.phase, tasks });
            }
            let ending = segment.ending.map(|(tasks, loads, level)| {
                let mut all = vec![None; users.len()];
                present.iter().zip(tasks).for_each(|(p, x)| all[p.user] = Some(x));
                IntervalEnd { tasks: all, loads, level }
            });
            // Durations below the resolution of time make no interval.
            if until.as_ref().is_none_or(|until| *until > from) {
                timeline.intervals.push(Interval {
                    from,
                    until: until.clone(),
                    users: shares,
                    loads: segment.loads,
                    level: segment.level,
                    levels: segment.levels,
                    commitments: segment.commitments,
                    ending,
                });
            }
            match until {
                Some(until) => from = until,
                None => return Ok(timeline),
            }
        }
        now = from;
    }
}

/// Times of a phase, and its work.
struct Times<N> {
    from: N,
    until: Option<N>,
    work: Option<N>,
}

/// Position of a user in its phases.
struct UserProgress<N> {
    phases: Vec<Times<N>>,
    /// Current phase, or the next one.
    phase: usize,
    /// Work left in it.
    work: Option<N>,
}

impl<N: Number> UserProgress<N> {
    fn new(scenario: &Scenario, user: usize) -> UserProgress<N> {
        let phases: Vec<Times<N>> = scenario.users()[user]
            .phases
            .iter()
            .map(|phase| Times {
                from: N::from_exact(&phase.from),
                until: phase.until.as_ref().map(N::from_exact),
                work: phase.work.as_ref().map(N::from_exact),
            })
            .collect();
        let work = phases.first().and_then(|phase| phase.work.clone());
        UserProgress { phases, phase: 0, work }
    }

    /// Leaves the phases that are over; returns whether the last one is among them.
    fn advance(&mut self, now: &N) -> bool {
        let before = self.phase;
        while let Some(phase) = self.phases.get(self.phase) {
            let is_done = phase.from <= *now && self.work.as_ref().is_some_and(|work| !work.is_positive());
            if !is_done && phase.until.as_ref().is_none_or(|until| until > now) {
                break;
            }
            self.phase += 1;
            self.work = self.phases.get(self.phase).and_then(|phase| phase.work.clone());
        }
        self.phase > before && self.phase == self.phases.len()
    }
}
