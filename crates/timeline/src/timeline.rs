//! Timelines, and the function that computes them.

use evenhand_mechanisms::{Mechanism, MechanismError, MechanismOptions, Number, ProblemError};
use evenhand_model::Rational;
use evenhand_policies::Decay;
use thiserror::Error;

use crate::Scenario;
use crate::divider::{Divider, Memoryless};
use crate::event_loop;
use crate::irrevocable_baa::IrrevocableBaa;
use crate::stateful_drf::{ExactStatefulDrf, StatefulDrf};

/// Division's result for one user during an interval.
#[derive(Clone, Debug, PartialEq)]
pub struct UserShare<N> {
    /// Index of the user's phase.
    pub phase: usize,
    /// Number of tasks at the start of the interval.
    pub tasks: N,
}

/// State at the end of an interval during which tasks change.
#[derive(Clone, Debug, PartialEq)]
pub struct IntervalEnd<N> {
    /// Tasks of each user; `None` for users who are absent.
    pub tasks: Vec<Option<N>>,
    /// Share of each resource that is allocated.
    pub loads: Vec<N>,
    /// Level, for mechanisms that have one.
    pub level: Option<N>,
}

/// Time during which no user arrives, leaves or changes phase.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval<N> {
    /// Start, in seconds.
    pub from: N,
    /// End, in seconds; `None` if it does not end.
    pub until: Option<N>,
    /// Share of each user; `None` for users who are absent.
    pub users: Vec<Option<UserShare<N>>>,
    /// Share of each resource that is allocated at the start.
    pub loads: Vec<N>,
    /// Level at the start, for mechanisms that have one; see
    /// [`Allocation::level`](evenhand_mechanisms::Allocation::level).
    pub level: Option<N>,
    /// Level of each resource, for mechanisms that have such levels.
    pub levels: Vec<Option<N>>,
    /// Commitments at the start, user-major; empty if the mechanism keeps none.
    pub commitments: Vec<N>,
    /// State at the end, if tasks change in between. They change smoothly; an interval ends wherever they have a
    /// corner.
    pub ending: Option<IntervalEnd<N>>,
}

impl<N: Number> Interval<N> {
    /// Returns the duration in seconds; `None` if the interval does not end.
    pub fn length(&self) -> Option<N> {
        self.until.as_ref().map(|until| until.clone() - &self.from)
    }

    /// Returns the share of each resource that the user holds at the start; 0 while absent.
    pub fn held(&self, scenario: &Scenario, user: usize) -> Vec<N> {
        let tasks = self.users[user].as_ref().map(|share| &share.tasks);
        self.shares(scenario, user, tasks)
    }

    /// Returns the share of each resource that the user holds just before the end.
    pub fn held_at_end(&self, scenario: &Scenario, user: usize) -> Vec<N> {
        match &self.ending {
            Some(ending) => self.shares(scenario, user, ending.tasks[user].as_ref()),
            None => self.held(scenario, user),
        }
    }

    fn shares(&self, scenario: &Scenario, user: usize, tasks: Option<&N>) -> Vec<N> {
        match (&self.users[user], tasks) {
            (Some(share), Some(tasks)) => {
                let demand = &scenario.users()[user].phases[share.phase].demand;
                demand.iter().map(|d| N::from_exact(d) * tasks).collect()
            }
            _ => vec![N::zero(); scenario.resource_count()],
        }
    }
}

/// Division over time: contiguous intervals from the first arrival on.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline<N> {
    /// Name of the mechanism.
    pub mechanism: &'static str,
    /// Intervals in order of time, none of them empty.
    pub intervals: Vec<Interval<N>>,
    /// End of each user's last phase, in seconds; `None` if it did not end.
    pub left: Vec<Option<N>>,
}

impl Timeline<f64> {
    /// Converts every number; the identity where `N` is `f64`.
    fn convert<N: Number>(self) -> Timeline<N> {
        let all = |numbers: Vec<f64>| numbers.into_iter().map(N::from_f64).collect::<Vec<N>>();
        let options = |numbers: Vec<Option<f64>>| numbers.into_iter().map(|n| n.map(N::from_f64)).collect::<Vec<_>>();
        let share = |share: UserShare<f64>| UserShare { phase: share.phase, tasks: N::from_f64(share.tasks) };
        let interval = |interval: Interval<f64>| Interval {
            from: N::from_f64(interval.from),
            until: interval.until.map(N::from_f64),
            users: interval.users.into_iter().map(|user| user.map(share)).collect(),
            loads: all(interval.loads),
            level: interval.level.map(N::from_f64),
            levels: options(interval.levels),
            commitments: all(interval.commitments),
            ending: interval.ending.map(|ending| IntervalEnd {
                tasks: options(ending.tasks),
                loads: all(ending.loads),
                level: ending.level.map(N::from_f64),
            }),
        };
        Timeline {
            mechanism: self.mechanism,
            intervals: self.intervals.into_iter().map(interval).collect(),
            left: options(self.left),
        }
    }
}

/// Options of [`divide_over_time`].
#[derive(Clone, Debug, PartialEq)]
pub struct TimelineOptions {
    /// Options of the mechanism.
    pub mechanism: MechanismOptions,
    /// Decay of commitments; required by `sdrf`, ignored by the others.
    pub decay: Option<Decay>,
    /// `baa` of two resources: each user brings its share of capacity, and no user ever gets less than it had (Bao,
    /// 2015) nor, unless the sharing incentive is given up, than it brought. By default every interval is divided
    /// independently.
    pub irrevocable: bool,
    /// Second at which to stop, even if users are present.
    pub until: Option<Rational>,
    /// Allowed error of commitments (shares of capacity) and of work done (relative) per time constant of integration.
    pub tolerance: f64,
    /// Longest interval where tasks change smoothly, in seconds; the default is an eighth of a half-life.
    pub resolution_s: Option<f64>,
}

impl Default for TimelineOptions {
    fn default() -> TimelineOptions {
        TimelineOptions {
            mechanism: MechanismOptions::default(),
            decay: None,
            irrevocable: false,
            until: None,
            tolerance: 1e-9,
            resolution_s: None,
        }
    }
}

/// Reason why there is no timeline.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum TimelineError {
    /// The mechanism returned an error.
    #[error("from second {from} on: {source}")]
    Mechanism {
        /// Start of the interval, in seconds.
        from: f64,
        /// Its error.
        source: MechanismError,
    },
    /// The users do not form a valid problem in the arithmetic chosen.
    #[error("from second {from} on: {source}")]
    Problem {
        /// Start of the interval, in seconds.
        from: f64,
        /// The problem's error.
        source: ProblemError,
    },
    /// `sdrf` without a decay of commitments.
    #[error("{mechanism} needs the decay of commitments: a delta or a half-life")]
    NoDecay {
        /// Name of the mechanism.
        mechanism: &'static str,
    },
    /// Commitments are exponential functions of time, so that the exact answer is irrational.
    #[error(
        "from second {from} on, commitments of user {user} change, and the answer of {mechanism} is irrational; it is \
             exact only while no user has a commitment or holds more than its entitlement"
    )]
    CommitmentsMove {
        /// Name of the mechanism.
        mechanism: &'static str,
        /// First such user.
        user: usize,
        /// Start of the interval, in seconds.
        from: f64,
    },
    /// Irrevocable division by another mechanism than `baa`.
    #[error("irrevocable division is available for baa only, found {mechanism}")]
    NotIrrevocable {
        /// Name of the mechanism.
        mechanism: &'static str,
    },
    /// Irrevocable division of other than two resources.
    #[error("irrevocable division is defined for two resources (Bao, 2015), found {found}")]
    TwoResources {
        /// Number of resources.
        found: usize,
    },
    /// Irrevocable division among users who leave, change or have a limit.
    #[error("irrevocable division is defined for users who arrive once, stay, and have no limit; user {user} does not")]
    NotPermanent {
        /// First such user.
        user: usize,
    },
    /// A number among the options is not positive and finite.
    #[error("{what} must be a number above 0")]
    InvalidOption {
        /// Name of the option.
        what: &'static str,
    },
    /// The integration made no progress.
    #[error(
        "integration of commitments makes no progress from second {from} on: steps get too short at tolerance {tolerance}"
    )]
    NoProgress {
        /// Time, in seconds.
        from: f64,
        /// Tolerance requested.
        tolerance: f64,
    },
}

/// Name of the mechanism that keeps commitments.
const STATEFUL: &str = "sdrf";
/// Name of the mechanism with an irrevocable form.
const BAA: &str = "baa";

/// Divides capacity over time among the users of a scenario.
///
/// In `f64`, the answer of every mechanism is computed. In exact numbers a mechanism whose answer can be irrational
/// is refused, and so is `sdrf` once commitments change.
///
/// ```
/// use evenhand_mechanisms::mechanism_named;
/// use evenhand_model::Quantity;
/// use evenhand_timeline::{Participant, Phase, Scenario, Timeline, TimelineOptions, divide_over_time};
/// let q = |text: &str| Quantity::parse(text).unwrap().exact().clone();
/// // One user is present all the time; another arrives at second 10 and leaves when 2 task-seconds are done.
/// let a = Participant::new([Phase::new(q("0"), [q("1")])]);
/// let b = Participant::new([Phase::new(q("10"), [q("1")]).work(q("2"))]);
/// let scenario = Scenario::new(1, [a, b]).unwrap();
/// let drf = mechanism_named("drf").unwrap();
/// let timeline: Timeline<f64> = divide_over_time(&scenario, drf, &TimelineOptions::default()).unwrap();
/// let starts: Vec<f64> = timeline.intervals.iter().map(|i| i.from).collect();
/// assert_eq!(starts, [0.0, 10.0, 14.0]);
/// assert_eq!(timeline.intervals[1].users[1].as_ref().unwrap().tasks, 0.5);
/// ```
///
/// # Errors
/// Returns an error if the mechanism refuses the problem of an interval, if an option that it needs is missing or
/// out of range, or, in exact numbers, if the answer can be irrational.
pub fn divide_over_time<N: Number>(
    scenario: &Scenario,
    mechanism: &'static dyn Mechanism,
    options: &TimelineOptions,
) -> Result<Timeline<N>, TimelineError> {
    let name = mechanism.name();
    let mut divider: Box<dyn Divider<N> + '_> = match (name, options.irrevocable) {
        (STATEFUL, _) if N::EXACT => Box::new(ExactStatefulDrf::new(scenario, mechanism, options)?),
        (STATEFUL, _) => {
            let mut divider = StatefulDrf::new(scenario, mechanism, options)?;
            return Ok(event_loop::run::<f64>(scenario, name, options, &mut divider)?.convert());
        }
        (BAA, true) => Box::new(IrrevocableBaa::new(scenario, &options.mechanism)?),
        (mechanism, true) => return Err(TimelineError::NotIrrevocable { mechanism }),
        (_, false) => Box::new(Memoryless::new(scenario, mechanism, options)),
    };
    event_loop::run(scenario, name, options, divider.as_mut())
}
