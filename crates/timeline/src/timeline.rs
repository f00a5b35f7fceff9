//! What a division over time looks like, and how to ask for one.

use evenhand_mechanisms::{Mechanism, MechanismError, MechanismOptions, Number, ProblemError};
use evenhand_model::Rational;
use evenhand_policies::Decay;
use thiserror::Error;

use crate::Scenario;
use crate::divider::{Divider, Memoryless};
use crate::event_loop;
use crate::irrevocable_baa::IrrevocableBaa;
use crate::stateful_drf::{ExactStatefulDrf, StatefulDrf};

/// What one user has during an interval.
#[derive(Clone, Debug, PartialEq)]
pub struct UserShare<N> {
    /// Which of the user's phases it is, from 0.
    pub phase: usize,
    /// Tasks at the interval's begin.
    pub tasks: N,
}

/// What an interval over which tasks move ends with.
#[derive(Clone, Debug, PartialEq)]
pub struct IntervalEnd<N> {
    /// Tasks of each user; `None` for those away.
    pub tasks: Vec<Option<N>>,
    /// The share of each resource that is given away.
    pub loads: Vec<N>,
    /// The water level.
    pub level: Option<N>,
}

/// A time over which nobody comes, goes or changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval<N> {
    /// Its begin, in seconds.
    pub from: N,
    /// Its end, in seconds; `None` if nothing happens any more.
    pub until: Option<N>,
    /// What each user has; `None` for those away.
    pub users: Vec<Option<UserShare<N>>>,
    /// The share of each resource that is given away.
    pub loads: Vec<N>,
    /// The level, of mechanisms that have one; see [`Allocation::level`](evenhand_mechanisms::Allocation).
    pub level: Option<N>,
    /// The level of those whose bottleneck each resource is, of mechanisms that have such levels.
    pub levels: Vec<Option<N>>,
    /// Commitments at the begin, user after user; empty where the mechanism keeps none.
    pub commitments: Vec<N>,
    /// If tasks move between begin and end: what they have come to. They move smoothly; an interval ends
    /// wherever they have a corner.
    pub ending: Option<IntervalEnd<N>>,
}

impl<N: Number> Interval<N> {
    /// How long it lasts, in seconds; `None` if it does not end.
    pub fn length(&self) -> Option<N> {
        self.until.as_ref().map(|until| until.clone() - &self.from)
    }

    /// What the user has of each resource at the begin; nothing while away.
    pub fn held(&self, scenario: &Scenario, user: usize) -> Vec<N> {
        let tasks = self.users[user].as_ref().map(|share| &share.tasks);
        self.shares(scenario, user, tasks)
    }

    /// What the user has of each resource just before the end.
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

/// A division over time: intervals that follow each other without a gap from the first arrival.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline<N> {
    /// The mechanism that divided.
    pub mechanism: &'static str,
    /// In order of time, none of them empty.
    pub intervals: Vec<Interval<N>>,
    /// When each user's last phase ended; `None` if it did not.
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

/// How to divide over time.
#[derive(Clone, Debug, PartialEq)]
pub struct TimelineOptions {
    /// What can be chosen about some mechanisms.
    pub mechanism: MechanismOptions,
    /// How fast commitments fade; `sdrf` needs it, no other heeds it.
    pub decay: Option<Decay>,
    /// `baa` of two resources: each user brings his share of capacity, and nobody ever gets less than he
    /// had (reference: T3) nor, unless the sharing incentive is given up, than he brought. Unless asked
    /// for, every interval is divided for itself (T1).
    pub irrevocable: bool,
    /// Stop at this second, whoever is still there.
    pub until: Option<Rational>,
    /// How far commitments (shares of capacity) and work done (relative) may be off for each time
    /// constant integrated over.
    pub tolerance: f64,
    /// Where tasks move smoothly, an interval at least every so many seconds; unless said, every eighth
    /// of a half-life.
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

/// Why there is no timeline.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum TimelineError {
    /// The mechanism gave nothing.
    #[error("from second {from} on: {source}")]
    Mechanism {
        /// The begin of the interval, in seconds.
        from: f64,
        /// Why.
        source: MechanismError,
    },
    /// Users who make no problem, in the kind of number asked for.
    #[error("from second {from} on: {source}")]
    Problem {
        /// The begin of the interval, in seconds.
        from: f64,
        /// Why.
        source: ProblemError,
    },
    /// `sdrf` without a memory span.
    #[error("{mechanism} needs to know how fast commitments fade: a delta or a half-life")]
    NoDecay {
        /// Which one.
        mechanism: &'static str,
    },
    /// Commitments are exponentials of time.
    #[error(
        "from second {from} on, commitments of user {user} move, and the answer of {mechanism} is irrational; \
             there is an exact one only while nobody has a commitment or takes more than his entitlement"
    )]
    CommitmentsMove {
        /// Which one.
        mechanism: &'static str,
        /// The first such user, by number.
        user: usize,
        /// The begin of the interval, in seconds.
        from: f64,
    },
    /// The irrevocable division of anything but `baa`.
    #[error("only baa can be irrevocable, found {mechanism}")]
    NotIrrevocable {
        /// Which one.
        mechanism: &'static str,
    },
    /// The irrevocable division of other than two resources.
    #[error("the irrevocable division is of two resources, as in paper 002, found {found}")]
    TwoResources {
        /// How many.
        found: usize,
    },
    /// The irrevocable division among users who go, change or have enough.
    #[error("the irrevocable division is among users who come once, stay, and want no limit; user {user} does not")]
    NotPermanent {
        /// The first such user, by number.
        user: usize,
    },
    /// A number among the options that is none.
    #[error("{what} must be a number above 0")]
    InvalidOption {
        /// Which one.
        what: &'static str,
    },
    /// The integration made no headway.
    #[error("the commitments cannot be followed from second {from} on: steps get too short at tolerance {tolerance}")]
    NoProgress {
        /// Where, in seconds.
        from: f64,
        /// The tolerance asked for.
        tolerance: f64,
    },
}

/// The rule of `sdrf`, which has a past.
const STATEFUL: &str = "sdrf";
/// The rule that can be irrevocable.
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
