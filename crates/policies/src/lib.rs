//! Which user's first pending task should start next: policies that decide on line.
//!
//! A [`Policy`] is notified of what happens (a user's first pending task, a start, a finish) and answers one question:
//! whose first pending task should start next? It does not know whether a simulator or a live engine calls it, nor what
//! fits on which machine.
//!
//! | policy | key; the lowest goes first | source |
//! |---|---|---|
//! | `fifo` | submission time of the first pending task | |
//! | `drf` | max_r o_r / w | Ghodsi et al. (2011); Algorithm 1 of Sadok et al. (2021) without state |
//! | `asset` | sum_r o_r / w | Ghodsi et al. (2011), asset fairness |
//! | `sdrf` | max_r (o_r + c_r) / w | Sadok et al. (2021), Algorithm 1 |
//! | `sdrf-dominant` | (max_r o_r + max_r c_r) / w | Sadok et al. (2021), Eq. 5, and their code |
//! | `sdrf-window` | max_r (o_r + c_r) / w, c_r the mean overuse of a sliding window | |
//! | `sdrf-tree` | max_r (o_r + c_r) / entitlement, level by level of the account tree | |
//! | `fair-tree` | decayed usage over share, level by level of the account tree | Slurm's Fair Tree |
//! | `half-life` | effective decayed usage over share | Slurm's classic fairshare |
//! | `multifactor` | priority, the highest first: age, fairshare, size, partition, resources | Slurm's multifactor priority |
//! | `penalty` | decayed penalties over entitlement: processor equivalents, time, speed, queue price | Klusáček & Rudová (2013) |
//! | `cpu-time` | decayed processor time over entitlement | what Klusáček & Rudová (2013) argue against |
//! | `usage-weighted` | (decayed usage + entry penalty) / w | Kueue's admission fair sharing |
//!
//! o_r is what the user holds of resource r over capacity, c_r its commitment (Sadok et al., Eq. 6), w its weight over
//! the mean weight. **Ties** go to the user whose first pending task stands earlier in the log: by submission, then by
//! position ([`TieRule`]). Keys are compared as `f64`; where rounding could decide, they are compared exactly, so that a tie is a tie.
//!
//! # Building a policy
//!
//! A [`Registry`] holds the policies of a program. [`Registry::build`] builds any of them from a [`PolicyContext`], which
//! has everything that a policy may be built from, and is the same for a study, an audit and a live engine.
//!
//! ```
//! use evenhand_model::*;
//! use evenhand_policies::{Job, PolicyContext, Registry};
//!
//! let cpu = [Resource::new("cpu", "")];
//! let capacity = Capacity::new(&cpu, vec![Rational::from(4)]).unwrap();
//! let weights = Weights::equal(2);
//! let mut drf = Registry::built_in().build("drf", &PolicyContext::new(&capacity, &weights)).unwrap();
//!
//! let (alice, bob) = (UserId(0), UserId(1));
//! let demand = [Amount(1)];
//! drf.set_first_pending(alice, Some(&Job::new(alice, &demand)));
//! drf.set_first_pending(bob, Some(&Job::new(bob, &demand).at(Time::from_secs(1), 0)));
//! assert_eq!(drf.next(Time::from_secs(1)), Some(alice)); // a tie: submitted earlier
//! drf.started(Time::from_secs(1), &Job::new(alice, &demand));
//! assert_eq!(drf.next(Time::from_secs(1)), Some(bob)); // alice holds more now
//! ```
//!
//! # Writing a policy
//!
//! A policy is one file, in this crate or in a crate of its own: a type that implements [`Policy`], a [`Registration`],
//! and, if it has settings, a type that implements [`ReadSettings`]. What most policies need is public:
//!
//! | a policy that orders users by | builds on |
//! |---|---|
//! | a function of current shares | [`ShareKey`] and [`ShareOrder`]: the whole policy is the key |
//! | current holdings, otherwise | [`Holdings`], [`RelativeWeights`], [`TieRule`] and [`kinetic::WinnerTree`] |
//! | priorities that decay | [`Decay`], [`Clock`] and [`kinetic::LineOrder`]: straight lines in s = 2^(-t/half-life) |
//!
//! `examples/my_policy` in the repository is such a crate; the tutorial `docs/src/tutorials/first-policy.md` walks through it.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod account_usage;
mod asset;
mod billing;
mod commitment;
mod commitments;
mod context;
mod decay;
mod drawn_ties;
mod drf;
mod entitlement;
pub mod equivalents;
mod extended_precision;
mod fair_tree;
mod fifo;
mod half_life;
mod holdings;
mod job;
pub mod kinetic;
mod lowest_candidates;
pub mod multifactor;
mod penalty;
pub mod queue_order;
mod registry;
mod sdrf;
mod sdrf_tree;
mod sdrf_window;
mod settings;
mod share_order;
mod site_billing;
mod site_rule;
mod tie_rule;
mod usage;
mod usage_order;
mod usage_weighted;
mod user_set;

pub use billing::{BILLING_KEY, BILLING_OPTION, Billing, BillingRule, BillingSettings};
pub use context::{PolicyContext, SiteConfiguration};
pub use decay::{Clock, Decay, DecayError};
pub use drawn_ties::DrawnTies;
use evenhand_model::{Time, UserId};
pub use holdings::{Holdings, RelativeWeights};
pub use job::Job;
pub use kinetic::Order;
pub use registry::{Build, PolicyError, Registration, Registry, SharedBuild};
pub use settings::{Listed, PolicySettings, ReadSettings, Section, SettingKey, SettingOption, choice};
pub use share_order::{ShareKey, ShareOrder};
pub use site_billing::{BILLING_WEIGHTS, TresWeight};
pub use site_rule::SITE_RULE;
pub use tie_rule::{LogPlace, TieRule};
pub use user_set::UserSet;

/// An order of the users who have pending tasks.
///
/// Users are numbered from 0. Times never decrease from call to call. A caller notifies the policy of every start and
/// finish, and of every change of a user's first pending task.
pub trait Policy: Send {
    /// Sets the first pending task of `user`; `None`: the user has no pending task, or the caller sets the user aside
    /// for now.
    fn set_first_pending(&mut self, user: UserId, first: Option<&Job<'_>>);

    /// Notifies of the start of a task. Its user's first pending task is set by another call.
    fn started(&mut self, now: Time, job: &Job<'_>);

    /// Notifies of the end of a task that started before.
    fn finished(&mut self, now: Time, job: &Job<'_>);

    /// Returns the user with a pending task whose key is lowest at `now`, by the tie rule of this crate; `None`: no
    /// user has a pending task.
    fn next(&mut self, now: Time) -> Option<UserId>;

    /// Returns the numbers behind the decisions about `user` at `now`.
    fn standing(&mut self, now: Time, user: UserId) -> Standing;

    /// Returns the priorities of single jobs, if the policy has them: a caller may then order jobs rather than users.
    fn job_priorities(&mut self) -> Option<&mut dyn JobPriorities> {
        None
    }

    /// Returns whether the policy depends on more of a [`Job`] than user, submission and demand.
    fn depends_on_job_details(&self) -> bool {
        false
    }

    /// Returns whether a user's later job may come before others that the user's earlier job came after: whether the key
    /// is of the first pending job (its demand, its queue) rather than of its user and its place in the log.
    ///
    /// Where it is not, a scheduler that backfills need not show the jobs that cannot start now.
    fn key_depends_on_job(&self) -> bool {
        true
    }

    /// Returns how often the passing of time alone changed the order so far: with the live tree as Sadok et al. (2021)
    /// count it ([`kinetic::LineOrder::order_events`]); 0 for structures that do not count.
    fn order_events(&self) -> u64 {
        0
    }
}

/// Priorities of single jobs, the highest first.
///
/// A scheduler that orders jobs computes them at submission and from time to time, as Slurm does each
/// `PriorityCalcPeriod`. The policy needs no call of [`Policy::set_first_pending`] for them.
pub trait JobPriorities {
    /// Updates what depends on past use to `now`.
    fn update(&mut self, now: Time);

    /// Returns the priority of a waiting job at `now`, with past use as of the last update.
    fn priority(&mut self, now: Time, job: &Job<'_>) -> u32;

    /// Returns the number of the job's group: the priorities of a user's jobs of one group differ only by how long the jobs have
    /// waited, so that none is above that of a job submitted before it, and within an instant no start or end of a job changes
    /// how the user's jobs compare. `None`: the policy does not group jobs.
    ///
    /// A scheduler that backfills then looks at one job a group rather than at every waiting job.
    fn group(&mut self, job: &Job<'_>) -> Option<u64> {
        let _ = job;
        None
    }
}

/// The numbers behind a decision.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Standing {
    /// Current holdings over capacity, by resource; empty for policies that do not use them.
    pub shares: Vec<f64>,
    /// Commitments over capacity, by resource; empty for policies without memory.
    pub commitments: Vec<f64>,
    /// The key: the lowest goes first.
    pub key: f64,
}

/// Every policy of this crate, in the order in which they are listed.
const BUILT_IN: &[Registration] = &[
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

/// The policy that orders a queue where a command line names none.
pub const DEFAULT_POLICY: &str = "drf";

/// The policies that a study compares where a command line names none, separated by commas.
pub const COMPARED_POLICIES: &str = "fifo,drf,sdrf";

/// The policies that a study of a site's own log compares where a command line names none, separated by commas.
pub const SITE_POLICIES: &str = "fifo,fair-tree,sdrf";
