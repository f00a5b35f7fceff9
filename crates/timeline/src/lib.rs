//! Dividing capacity over time: users come, change what they want, and go; at each such event a
//! mechanism divides anew among those who are there.
//!
//! A [`Scenario`] says who wants what and when. [`divide_over_time`] answers with a [`Timeline`]: intervals
//! over which the division stands. Times are seconds, and exact until somebody asks for `f64`.
//!
//! Two mechanisms have a past. `sdrf` (paper 001, Eq. 5 and 6) keeps a commitment for every user and
//! resource, which moves between events too and carries the water level with it; where it does, it is
//! integrated to a stated tolerance. `baa` can be asked never to take back what it gave
//! ([`TimelineOptions::irrevocable`]; the experiment of paper 002).
//!
//! This room knows no files and draws nothing; what is divided at one instant is `mechanisms`' affair.
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
