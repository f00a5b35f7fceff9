//! Who goes next, on line.
//!
//! A [`Policy`] is told what happens (a user's first waiting task, a start, a finish) and answers
//! one question: whose first waiting task should start next? It does not know whether a simulator
//! or a live engine is asking, nor what fits where.
//!
//! | policy | key; the least goes first | source |
//! |---|---|---|
//! | `fifo` | submission time of the first waiting task | |
//! | `drf` | max_r o_r / w | Ghodsi et al. 2011, as Algorithm 1 of paper 001 without state |
//! | `asset` | sum_r o_r / w | Ghodsi et al. 2011, asset fairness |
//! | `sdrf` | max_r (o_r + c_r) / w | paper 001, Algorithm 1 |
//! | `sdrf-dominant` | (max_r o_r + max_r c_r) / w | paper 001, Eq. 5, and its authors' code |
//! | `sdrf-window` | max_r (o_r + c_r) / w, c_r the mean overuse of a sliding window | |
//! | `sdrf-tree` | max_r (o_r + c_r) / entitlement, level by level of the account tree | |
//! | `fair-tree` | decayed usage over share, level by level of the account tree | Slurm's Fair Tree |
//! | `half-life` | effective decayed usage over share | Slurm's classic fairshare |
//! | `multifactor` | priority, the largest first: age, fairshare, size, partition, resources | Slurm's multifactor priority |
//! | `penalty` | decayed penalties over entitlement: processor equivalents, time, speed, queue price | paper 004 |
//! | `cpu-time` | decayed processor time over entitlement | what paper 004 argues against |
//! | `usage-weighted` | (decayed usage + entry penalty) / w | Kueue's admission fair sharing |
//!
//! o_r is what the user holds of resource r over capacity, c_r its commitment (Eq. 6), w its weight
//! over the mean weight. **Ties** go to the user whose first waiting task was submitted earlier,
//! then to the smaller user number. Keys are compared as `f64`; where two are too close to be told
//! apart from rounding, they are compared exactly, so that a tie is a tie.
//!
//! A new policy is one file and one line in [`POLICIES`].
//!
//! ```
//! use evenhand_model::*;
//! use evenhand_policies::{Job, Setting, registration};
//!
//! let cpu = [Resource::new("cpu", "")];
//! let capacity = Capacity::new(&cpu, vec![Rational::from(4)]).unwrap();
//! let weights = Weights::equal(2);
//! let mut drf = (registration("drf").unwrap().build)(&Setting::new(&capacity, &weights).decay(None));
//!
//! let (alice, bob) = (UserId(0), UserId(1));
//! let demand = [Amount(1)];
//! drf.waiting(alice, Some(&Job::new(alice, &demand)));
//! drf.waiting(bob, Some(&Job::new(bob, &demand).at(Time::from_secs(1))));
//! assert_eq!(drf.next(Time::from_secs(1)), Some(alice)); // a tie: submitted earlier
//! drf.started(Time::from_secs(1), &Job::new(alice, &demand));
//! assert_eq!(drf.next(Time::from_secs(1)), Some(bob)); // alice holds more now
//! ```
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod account_usage;
mod asset;
mod billing;
mod commitment;
mod commitments;
mod contenders;
mod decay;
mod drf;
mod entitlement;
pub mod equivalents;
mod fair_tree;
mod fifo;
mod half_life;
mod holdings;
mod job;
pub mod kinetic;
pub mod multifactor;
mod penalty;
mod present;
pub mod queue_order;
mod sdrf;
mod sdrf_tree;
mod sdrf_window;
mod share_order;
mod usage;
mod usage_order;
mod usage_weighted;
mod wide;

pub use billing::{Billing, BillingRule};
pub use decay::{Decay, DecayError};
use equivalents::Equivalents;
use evenhand_model::{AccountTree, Capacity, Time, UserId, Weights};
pub use job::Job;
pub use kinetic::Order;

/// Who goes next among users with waiting tasks.
///
/// Times never decrease from call to call.
pub trait Policy: Send {
    /// `first` is what waits first of `user`'s; `None`: nothing does (or the caller sets the user aside
    /// for now).
    fn waiting(&mut self, user: UserId, first: Option<&Job<'_>>);

    /// A task started.
    fn started(&mut self, now: Time, job: &Job<'_>);

    /// A task finished.
    fn finished(&mut self, now: Time, job: &Job<'_>);

    /// The waiting user whose key is least at `now`, by the tie rule of this crate.
    fn next(&mut self, now: Time) -> Option<UserId>;

    /// What the policy knows of `user` at `now`: the numbers behind its decisions.
    fn standing(&mut self, now: Time, user: UserId) -> Standing;

    /// Whether it looks at more of a [`Job`] than user, submission and demand.
    fn goes_by_jobs(&self) -> bool {
        false
    }

    /// What the passing of time alone changed in the ordering structure: with the live tree as paper
    /// 001 counts it ([`kinetic::LineOrder::order_events`]); 0 for structures that have none (a scan).
    fn order_events(&self) -> u64 {
        0
    }
}

/// The numbers behind a decision.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Standing {
    /// What the user holds over capacity, by resource; empty for policies that do not look at it.
    pub shares: Vec<f64>,
    /// Its commitments, by resource; empty for policies without memory.
    pub commitments: Vec<f64>,
    /// Its key: the least goes first.
    pub key: f64,
}

/// What a policy is built from.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// The pool.
    pub capacity: &'a Capacity,
    /// One weight a user.
    pub weights: &'a Weights,
    /// How fast the past is forgotten; policies that [`need it`](Registration::needs_decay) panic
    /// without.
    pub decay: Option<Decay>,
    /// Which structure keeps users ordered where priorities move; decisions do not depend on it.
    pub order: Order,
    /// The users' accounts, for policies that go by them; the others go by `weights`.
    pub accounts: Option<&'a AccountTree>,
    /// How use is charged, for policies that remember it; `None`: each in its own way.
    pub billing: Option<&'a Billing>,
    /// What a job holds in processors, for policies that charge by it; `None`: its dominant share of the
    /// pool, and the first resource is processors.
    pub prices: Option<&'a Equivalents>,
    /// The weights and settings of `multifactor`; `None`: those of Slurm's own example.
    pub multifactor: Option<&'a multifactor::Settings>,
}

impl<'a> Setting<'a> {
    /// Of what every policy needs. The rest has defaults.
    pub fn new(capacity: &'a Capacity, weights: &'a Weights) -> Setting<'a> {
        Setting {
            capacity,
            weights,
            decay: None,
            order: Order::Auto,
            accounts: None,
            billing: None,
            prices: None,
            multifactor: None,
        }
    }

    /// With a decay, or without one.
    pub fn decay(self, decay: Option<Decay>) -> Setting<'a> {
        Setting { decay, ..self }
    }

    /// With this structure in place of the one that suits the number of users.
    pub fn order(self, order: Order) -> Setting<'a> {
        Setting { order, ..self }
    }

    /// With a tree of accounts, or without one.
    pub fn accounts(self, accounts: Option<&'a AccountTree>) -> Setting<'a> {
        Setting { accounts, ..self }
    }

    /// With processor equivalents, or without.
    pub fn prices(self, prices: Option<&'a Equivalents>) -> Setting<'a> {
        Setting { prices, ..self }
    }

    /// With these settings of `multifactor`, or with its own.
    pub fn multifactor(self, settings: Option<&'a multifactor::Settings>) -> Setting<'a> {
        Setting { multifactor: settings, ..self }
    }

    /// With another billing than a policy's own, or without one.
    pub fn billing(self, billing: Option<&'a Billing>) -> Setting<'a> {
        Setting { billing, ..self }
    }
}

/// How a policy is found and built.
#[derive(Clone, Copy, Debug)]
pub struct Registration {
    /// What users type.
    pub name: &'static str,
    /// One line for `--help`.
    pub summary: &'static str,
    /// Whether [`Setting::decay`] must be given.
    pub needs_decay: bool,
    /// Builds it.
    pub build: fn(&Setting<'_>) -> Box<dyn Policy>,
}

/// Every policy.
pub const POLICIES: &[Registration] = &[
    fifo::REGISTRATION,
    drf::REGISTRATION,
    asset::REGISTRATION,
    sdrf::REGISTRATION,
    sdrf::DOMINANT_REGISTRATION,
    fair_tree::REGISTRATION,
    half_life::REGISTRATION,
    usage_weighted::REGISTRATION,
    multifactor::REGISTRATION,
    penalty::REGISTRATION,
    penalty::CPU_TIME_REGISTRATION,
    sdrf_window::REGISTRATION,
    sdrf_tree::REGISTRATION,
];

/// The policy called `name`.
pub fn registration(name: &str) -> Option<&'static Registration> {
    POLICIES.iter().find(|r| r.name == name)
}
