//! What a division over time looks like, and how to ask for one.

use evenhand_mechanisms::{Mechanism, MechanismError, Number, Options, ProblemError};
use evenhand_model::Rational;
use evenhand_policies::Decay;
use thiserror::Error;

use crate::Scenario;
use crate::commitments::{Committed, CommittedExactly};
use crate::divider::{AtEvents, Divider, Quotient};
use crate::irrevocable::Irrevocable;
use crate::walk::walk;

/// What one user has during an interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Share<N> {
    /// Which of the user's phases it is, from 0.
    pub phase: usize,
    /// Tasks at the interval's begin.
    pub tasks: N,
}

/// What an interval over which tasks move ends with.
#[derive(Clone, Debug, PartialEq)]
pub struct Ending<N> {
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
    pub users: Vec<Option<Share<N>>>,
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
    pub ending: Option<Ending<N>>,
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
            _ => vec![N::zero(); scenario.width()],
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

/// How to divide over time.
#[derive(Clone, Debug, PartialEq)]
pub struct TimelineOptions {
    /// What can be chosen about some mechanisms.
    pub mechanism: Options,
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
            mechanism: Options::default(),
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
    NotOpen {
        /// The first such user, by number.
        user: usize,
    },
    /// A number among the options that is none.
    #[error("{what} must be a number above 0")]
    Option {
        /// Which one.
        what: &'static str,
    },
    /// The integration made no headway.
    #[error("the commitments cannot be followed from second {from} on: steps get too short at tolerance {tolerance}")]
    Stuck {
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

/// Divides over time in `f64`.
///
/// ```
/// use evenhand_mechanisms::mechanism_named;
/// use evenhand_model::Quantity;
/// use evenhand_timeline::{Participant, Phase, Scenario, TimelineOptions, divide_over_time};
/// let q = |text: &str| Quantity::parse(text).unwrap().exact().clone();
/// // One is there all the time; another comes at second 10 and goes when 2 task-seconds are done.
/// let a = Participant::new([Phase::new(q("0"), [q("1")])]);
/// let b = Participant::new([Phase::new(q("10"), [q("1")]).work(q("2"))]);
/// let scenario = Scenario::new(1, [a, b]).unwrap();
/// let drf = mechanism_named("drf").unwrap();
/// let timeline = divide_over_time(&scenario, drf, &TimelineOptions::default()).unwrap();
/// let begins: Vec<f64> = timeline.intervals.iter().map(|i| i.from).collect();
/// assert_eq!(begins, [0.0, 10.0, 14.0]);
/// assert_eq!(timeline.intervals[1].users[1].as_ref().unwrap().tasks, 0.5);
/// ```
///
/// # Errors
/// If the mechanism refuses an interval, or an option it needs is missing or no number.
pub fn divide_over_time(
    scenario: &Scenario,
    mechanism: &'static dyn Mechanism,
    options: &TimelineOptions,
) -> Result<Timeline<f64>, TimelineError> {
    if mechanism.name() == STATEFUL {
        let mut divider = Committed::new(scenario, mechanism, options)?;
        return walk(scenario, mechanism.name(), options, &mut divider);
    }
    divide(scenario, mechanism, options)
}

/// Divides over time exactly.
///
/// # Errors
/// Likewise; and if an answer can be irrational, as `sdrf`'s is once commitments move.
pub fn divide_over_time_exact(
    scenario: &Scenario,
    mechanism: &'static dyn Mechanism,
    options: &TimelineOptions,
) -> Result<Timeline<Rational>, TimelineError> {
    if mechanism.name() == STATEFUL {
        let mut divider = CommittedExactly::new(scenario, mechanism, options)?;
        return walk(scenario, mechanism.name(), options, &mut divider);
    }
    divide(scenario, mechanism, options)
}

/// The mechanisms without commitments.
fn divide<N: Quotient>(
    scenario: &Scenario,
    mechanism: &'static dyn Mechanism,
    options: &TimelineOptions,
) -> Result<Timeline<N>, TimelineError> {
    let mut divider: Box<dyn Divider<N> + '_> = match (options.irrevocable, mechanism.name()) {
        (false, _) => Box::new(AtEvents::new(scenario, mechanism, options)),
        (true, BAA) => Box::new(Irrevocable::new(scenario, &options.mechanism)?),
        (true, mechanism) => return Err(TimelineError::NotIrrevocable { mechanism }),
    };
    walk(scenario, mechanism.name(), options, divider.as_mut())
}
