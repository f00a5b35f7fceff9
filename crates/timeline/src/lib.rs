//! Division of capacity over time: users arrive, change what they want, and leave; at each such event a mechanism
//! divides anew among the users who are present.
//!
//! A [`Scenario`] describes who wants what and when. [`divide_over_time`] returns a [`Timeline`]: intervals during
//! which the division stands, in `f64` or exactly. Times are in seconds.
//!
//! Two mechanisms have a state. `sdrf` (Sadok et al., 2021, Eq. 5 and 6) keeps a commitment for every user and
//! resource, which changes between events too and moves the level with it; where it does, it is integrated to a given
//! tolerance. `baa` has an irrevocable form that never takes back what it gave ([`TimelineOptions::irrevocable`]; the
//! experiment of Bao, 2015).
//!
//! The crate reads no files and draws nothing; the division at one instant is that of `evenhand_mechanisms`.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod divider;
mod event_loop;
mod irrevocable_baa;
mod runge_kutta;
mod scenario;
mod stateful_drf;
mod timeline;

pub use scenario::{Participant, Phase, Scenario, ScenarioError};
pub use timeline::{Interval, IntervalEnd, Timeline, TimelineError, TimelineOptions, UserShare, divide_over_time};
