//! Stateful DRF over time: commitments change, and the level with them.
//!
//! tau c' = overuse - c for every user and resource (the equation that Eq. 6 of Sadok et al., 2021, solves), with
//! overuse = max(o - entitlement, 0) and o from Eq. 5, which depends on c through every user's largest commitment.
//! While o is constant, Eq. 6 itself is the solution and is used as it is; this is detected by following it to the end
//! (or to the first corner) and checking whether o is the same there: between corners o is linear in the commitments,
//! and those lie on a straight line. Where o changes, the equation is integrated from corner to corner.
//!
//! A user who is absent uses nothing, so its commitments decay by Eq. 6 with overuse 0.

use evenhand_mechanisms::{Mechanism, MechanismOptions, Number, User};

use crate::divider::{Divider, Period, PresentUser, Segment, divide_now, until_done};
use crate::runge_kutta::{next_length, step};
use crate::{Scenario, TimelineError, TimelineOptions};

/// Duration, in time constants, below which a corner is not distinguished from the start of a step.
const SHORTEST: f64 = 1e-10;
/// Difference at which shares count as equal: the rounding of sums over users.
const NEAR: f64 = 1e-12;
/// Time constants after which a state that has not come to rest is taken for an error. It is at rest after some 25,
/// since every deviation decays at least as fast as an unused commitment.
const LONGEST: f64 = 1e4;

/// Divider by `sdrf` in `f64`.
pub(crate) struct StatefulDrf<'a> {
    scenario: &'a Scenario,
    mechanism: &'static dyn Mechanism,
    options: MechanismOptions,
    tau_s: f64,
    tolerance: f64,
    /// In time constants.
    resolution: f64,
    entitlements: Vec<f64>,
    /// Commitments of all users, user-major.
    commitments: Vec<f64>,
}

impl<'a> StatefulDrf<'a> {
    pub(crate) fn new(
        scenario: &'a Scenario,
        mechanism: &'static dyn Mechanism,
        options: &TimelineOptions,
    ) -> Result<Self, TimelineError> {
        let name = mechanism.name();
        if options.irrevocable {
            return Err(TimelineError::NotIrrevocable { mechanism: name });
        }
        let tau_s = options.decay.ok_or(TimelineError::NoDecay { mechanism: name })?.tau_s();
        let positive = |value: f64, what| match value > 0.0 && value.is_finite() {
            true => Ok(value),
            false => Err(TimelineError::InvalidOption { what }),
        };
        let tolerance = positive(options.tolerance, "the tolerance")?;
        let resolution_s = options.resolution_s.unwrap_or(tau_s * std::f64::consts::LN_2 / 8.0);
        let mut commitments = Vec::with_capacity(scenario.users().len() * scenario.resource_count());
        for user in scenario.users() {
            commitments.extend(user.commitment.iter().map(evenhand_model::to_f64));
            commitments.resize(commitments.len() + scenario.resource_count() - user.commitment.len(), 0.0);
        }
        Ok(StatefulDrf {
            scenario,
            mechanism,
            options: options.mechanism,
            tau_s,
            tolerance,
            resolution: positive(resolution_s, "the resolution")? / tau_s,
            entitlements: (0..scenario.users().len())
                .map(|i| evenhand_model::to_f64(&scenario.entitlement(i)))
                .collect(),
            commitments,
        })
    }
}

impl Divider<f64> for StatefulDrf<'_> {
    fn divide_until_event(
        &mut self,
        present: &[PresentUser<f64>],
        from: &f64,
        length: Option<&f64>,
    ) -> Result<Period<f64>, TimelineError> {
        let mut run = Run::new(self, present, *from, length.map(|l| l / self.tau_s));
        let mut segments = Vec::new();
        while !run.is_over() {
            let began = run.at;
            let commitments = run.all_commitments(&self.commitments);
            let moment = run.moment(&run.state)?;
            let constant = run.constant_for(&moment)?;
            let ending = match constant {
                Some(time) => {
                    run.pass_constant(&moment, time);
                    None
                }
                None => {
                    let end = run.end.map_or(run.at + self.resolution, |end| end.min(run.at + self.resolution));
                    let after = run.follow(&moment, end)?;
                    Some((after.tasks, after.loads, after.level))
                }
            };
            let length = (run.at - began) * self.tau_s;
            let segment = Segment {
                length: length.is_finite().then_some(length),
                tasks: moment.tasks,
                loads: moment.loads,
                level: moment.level,
                levels: Vec::new(),
                commitments,
                ending,
            };
            match segments.pop_if(|last| is_same_division(last, &segment, SHORTEST * self.tau_s)) {
                Some(last) => segments.push(Segment {
                    length: last.length.zip(segment.length).map(|(last, next)| last + next),
                    ending: segment.ending,
                    ..last
                }),
                None => segments.push(segment),
            }
        }
        let reached = run.end.is_some_and(|end| run.at >= end);
        let (commitments, left) = (run.all_commitments(&self.commitments), run.left());
        self.commitments = commitments;
        Ok(Period { segments, left, reached })
    }
}

/// Returns whether a segment that is shorter than `shortest`, in seconds, divides as the next one does. It ends where another
/// commitment of a user becomes the largest, as after an instant at which all are 0; the tasks differ by rounding only.
fn is_same_division(segment: &Segment<f64>, next: &Segment<f64>, shortest: f64) -> bool {
    let is_near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * a.abs().max(b.abs());
    segment.length.is_some_and(|length| length <= shortest) && segment.tasks.iter().zip(&next.tasks).all(is_near)
}

/// Division among the users who are present at some instant.
struct Moment {
    tasks: Vec<f64>,
    loads: Vec<f64>,
    level: Option<f64>,
    /// max(o - entitlement, 0), user-major.
    overuse: Vec<f64>,
    /// For each user, whether it has nothing, something or all it wants, and which of its commitments is the largest;
    /// then which resources are saturated. While the regime is constant, tasks are linear in the commitments.
    regime: Vec<usize>,
}

/// Time from one event to the next. Times are in time constants since the first event.
struct Run<'a> {
    divider: &'a StatefulDrf<'a>,
    present: &'a [PresentUser<f64>],
    users: Vec<User<f64>>,
    from_s: f64,
    at: f64,
    end: Option<f64>,
    /// Commitments of the users who are present, user-major; then the work that each has done.
    state: Vec<f64>,
    /// Work of each in this phase, in tasks times time constants.
    work: Vec<Option<f64>>,
    is_done: bool,
    /// Length to try next.
    step: f64,
}

impl<'a> Run<'a> {
    fn new(divider: &'a StatefulDrf<'_>, present: &'a [PresentUser<f64>], from_s: f64, end: Option<f64>) -> Run<'a> {
        let width = divider.scenario.resource_count();
        let mut state: Vec<f64> =
            present.iter().flat_map(|p| &divider.commitments[p.user * width..][..width]).copied().collect();
        state.resize(state.len() + present.len(), 0.0);
        Run {
            divider,
            present,
            users: present.iter().map(|p| divider.scenario.user_in_phase(p.user, p.phase)).collect(),
            from_s,
            at: 0.0,
            end,
            state,
            work: present.iter().map(|p| p.work.map(|w| w / divider.tau_s)).collect(),
            is_done: false,
            step: 0.01,
        }
    }

    fn is_over(&self) -> bool {
        self.is_done || self.at.is_infinite() || self.end.is_some_and(|end| self.at >= end)
    }

    /// Returns the current commitments of all users: of those present from the state, of the others decayed since the
    /// start.
    fn all_commitments(&self, at_start: &[f64]) -> Vec<f64> {
        let width = self.divider.scenario.resource_count();
        let kept = libm::exp(-self.at);
        let mut all: Vec<f64> = at_start.iter().map(|c| c * kept).collect();
        for (p, own) in self.present.iter().zip(self.state.chunks_exact(width)) {
            all[p.user * width..][..width].copy_from_slice(own);
        }
        all
    }

    fn left(&self) -> Vec<Option<f64>> {
        let done = &self.state[self.present.len() * self.divider.scenario.resource_count()..];
        let left = |work: f64, done: f64| if is_done(work, done) { 0.0 } else { (work - done) * self.divider.tau_s };
        self.work.iter().zip(done).map(|(work, done)| work.map(|work| left(work, *done))).collect()
    }

    fn moment(&self, state: &[f64]) -> Result<Moment, TimelineError> {
        let StatefulDrf { scenario, mechanism, options, entitlements, tau_s, .. } = self.divider;
        let width = scenario.resource_count();
        let commitments = || state.chunks_exact(width).take(self.users.len());
        // A stage of a step may be slightly below zero.
        let users = self
            .users
            .iter()
            .zip(commitments())
            .map(|(user, own)| User { commitment: own.iter().map(|c| c.max(0.0)).collect(), ..user.clone() });
        let now_s = self.from_s + self.at * tau_s;
        let (problem, allocation) = divide_now(scenario, self.present, users, *mechanism, options, &now_s)?;
        let loads = problem.loads(&allocation.tasks);
        let mut regime = Vec::with_capacity(self.users.len() + width);
        let mut overuse = Vec::with_capacity(self.users.len() * width);
        for (i, (own, x)) in commitments().zip(&allocation.tasks).enumerate() {
            let largest = own.iter().copied().fold(0.0, f64::max);
            let which = own.iter().position(|c| *c >= largest - NEAR).unwrap_or(0);
            let has = if *x == 0.0 { 0 } else { 1 + usize::from(problem.is_satisfied(i, x)) };
            regime.push(3 * which + has);
            let entitlement = entitlements[self.present[i].user];
            overuse.extend(problem.demand(i).iter().map(|d| (x * d - entitlement).max(0.0)));
        }
        regime.extend(loads.iter().map(|load| usize::from(*load >= 1.0 - 1e3 * NEAR)));
        Ok(Moment { tasks: allocation.tasks, loads, level: allocation.level, overuse, regime })
    }

    /// Returns the state after some time with the division of `moment` (Eq. 6).
    fn decayed(&self, moment: &Moment, time: f64) -> Vec<f64> {
        let (kept, lost) = (libm::exp(-time), -libm::expm1(-time));
        let (commitments, done) = self.state.split_at(moment.overuse.len());
        let commitments = commitments.iter().zip(&moment.overuse).map(|(c, overuse)| c * kept + overuse * lost);
        commitments.chain(done.iter().zip(&moment.tasks).map(|(done, x)| done + x * time)).collect()
    }

    /// Returns how long tasks remain constant, possibly infinite; `None` if they change.
    fn constant_for(&self, moment: &Moment) -> Result<Option<f64>, TimelineError> {
        let left = self.end.map_or(f64::INFINITY, |end| end - self.at);
        let gaps = self.state.iter().zip(&moment.overuse).map(|(c, overuse)| (c - overuse).abs());
        if gaps.fold(0.0, f64::max) <= self.divider.tolerance / 10.0 {
            return Ok(Some(left));
        }
        // Past this, what remains of a commitment is below the precision of an f64.
        let far = left.min(50.0);
        let later = |time: f64| self.moment(&self.decayed(moment, time));
        let is_same = |later: &Moment| {
            let pairs = later.tasks.iter().zip(&moment.tasks);
            pairs.into_iter().all(|(a, b)| (a - b).abs() <= NEAR * (1.0 + b))
        };
        let last = later(far)?;
        if last.regime == moment.regime {
            return Ok((is_same(&last) && is_same(&later(far / 2.0)?)).then_some(left));
        }
        // A regime is bounded by hyperplanes, so the time within it is one interval.
        let (mut within, mut beyond) = (0.0, far);
        while beyond - within > 1e-15 * beyond {
            let middle = within + (beyond - within) / 2.0;
            if middle <= within || middle >= beyond {
                break;
            }
            let is_within = later(middle)?.regime == moment.regime;
            *(if is_within { &mut within } else { &mut beyond }) = middle;
        }
        if within < SHORTEST || !is_same(&later(within)?) || !is_same(&later(within / 2.0)?) {
            return Ok(None);
        }
        Ok(Some(beyond))
    }

    /// Passes time during which only commitments change.
    fn pass_constant(&mut self, moment: &Moment, time: f64) {
        let done = &self.state[moment.overuse.len()..];
        let left: Vec<PresentUser<f64>> = self
            .present
            .iter()
            .zip(self.work.iter().zip(done))
            .map(|(p, (work, done))| PresentUser { work: work.map(|w| w - done), ..p.clone() })
            .collect();
        let (until, rest) = until_done(&left, &moment.tasks, Some(&time));
        let until = until.unwrap_or(time);
        self.is_done = rest.contains(&Some(0.0));
        if until.is_infinite() {
            self.state[..moment.overuse.len()].copy_from_slice(&moment.overuse);
        } else {
            self.state = self.decayed(moment, until);
        }
        self.at = if !self.is_done && self.end.is_some_and(|end| until >= end - self.at) {
            self.end.unwrap_or(f64::INFINITY)
        } else {
            self.at + until
        };
    }

    /// Passes time during which tasks change: to `end`, to a corner, or until work is complete.
    fn follow(&mut self, moment: &Moment, end: f64) -> Result<Moment, TimelineError> {
        let tolerance = self.divider.tolerance;
        let stuck =
            |run: &Run<'_>| TimelineError::NoProgress { from: run.from_s + run.at * run.divider.tau_s, tolerance };
        if self.at > LONGEST && self.end.is_none() {
            return Err(stuck(self));
        }
        let mut slope = self.slope(&self.state, moment);
        loop {
            let h = self.step.min(end - self.at);
            let to = |run: &Run<'_>, h: f64| {
                step(&run.state, &slope, h, |state| run.moment(state).map(|m| run.slope(state, &m)))
            };
            let mut next = to(self, h)?;
            let error = next.error / (tolerance * h);
            if error > 1.0 && h > SHORTEST {
                self.step = next_length(h, error).min(h / 2.0);
                continue;
            }
            self.step = next_length(h, error);
            let mut after = self.moment(&next.state)?;
            let mut taken = h;
            let is_beyond = |after: &Moment, state: &[f64]| after.regime != moment.regime || self.has_done(state);
            let mut ends = is_beyond(&after, &next.state);
            if ends && h > SHORTEST {
                let (mut within, mut beyond) = (0.0, h);
                while beyond - within > SHORTEST / 1e3 {
                    let middle = within + (beyond - within) / 2.0;
                    let tried = to(self, middle)?;
                    let there = self.moment(&tried.state)?;
                    if is_beyond(&there, &tried.state) {
                        (beyond, next, after, taken) = (middle, tried, there, middle);
                    } else {
                        within = middle;
                    }
                }
            } else if ends {
                // A corner no farther than this from the start of the step is the previous one.
                ends = self.has_done(&next.state);
            }
            self.is_done = self.has_done(&next.state);
            self.at = if taken >= end - self.at { end } else { self.at + taken };
            self.state = next.state;
            let width = self.users.len() * self.divider.scenario.resource_count();
            self.state[..width].iter_mut().for_each(|c| *c = c.max(0.0));
            slope = next.slope;
            if ends || self.at >= end {
                return Ok(after);
            }
        }
    }

    fn slope(&self, state: &[f64], moment: &Moment) -> Vec<f64> {
        let commitments = moment.overuse.iter().zip(state).map(|(overuse, c)| overuse - c);
        commitments.chain(moment.tasks.iter().copied()).collect()
    }

    fn has_done(&self, state: &[f64]) -> bool {
        let done = &state[self.users.len() * self.divider.scenario.resource_count()..];
        self.work.iter().zip(done).any(|(work, done)| work.is_some_and(|work| is_done(work, *done)))
    }
}

/// Returns whether `done` is all of the work, up to rounding.
fn is_done(work: f64, done: f64) -> bool {
    done >= work * (1.0 - NEAR)
}

/// Divider by `sdrf` in exact numbers, as long as commitments do not change.
pub(crate) struct ExactStatefulDrf<'a> {
    scenario: &'a Scenario,
    mechanism: &'static dyn Mechanism,
    options: MechanismOptions,
}

impl<'a> ExactStatefulDrf<'a> {
    pub(crate) fn new(
        scenario: &'a Scenario,
        mechanism: &'static dyn Mechanism,
        options: &TimelineOptions,
    ) -> Result<Self, TimelineError> {
        if options.irrevocable {
            return Err(TimelineError::NotIrrevocable { mechanism: mechanism.name() });
        }
        Ok(ExactStatefulDrf { scenario, mechanism, options: options.mechanism })
    }
}

impl<N: Number> Divider<N> for ExactStatefulDrf<'_> {
    fn divide_until_event(
        &mut self,
        present: &[PresentUser<N>],
        from: &N,
        length: Option<&N>,
    ) -> Result<Period<N>, TimelineError> {
        let moves =
            |user| TimelineError::CommitmentsMove { mechanism: self.mechanism.name(), user, from: from.to_f64() };
        let committed = |user: &crate::Participant| user.commitment.iter().any(|c| !c.is_zero());
        if let Some(user) = self.scenario.users().iter().position(committed) {
            return Err(moves(user));
        }
        let users = present.iter().map(|p| self.scenario.user_in_phase(p.user, p.phase));
        let (problem, allocation) = divide_now(self.scenario, present, users, self.mechanism, &self.options, from)?;
        for (i, (p, x)) in present.iter().zip(&allocation.tasks).enumerate() {
            let entitlement = N::from_exact(&self.scenario.entitlement(p.user));
            if problem.demand(i).iter().any(|d| d.clone() * x > entitlement) {
                return Err(moves(p.user));
            }
        }
        let mut period = Period::constant(present, &problem, allocation, length);
        let none = vec![N::zero(); self.scenario.users().len() * self.scenario.resource_count()];
        period.segments.iter_mut().for_each(|segment| segment.commitments.clone_from(&none));
        Ok(period)
    }
}
