//! Slurm's multifactor priority: a weighted sum of factors, the largest first.
//!
//! From its documentation (slurm.schedmd.com/priority_multifactor.html):
//!
//! priority = site + age + association + fairshare + job size + partition + QOS + sum of TRES - nice
//!
//! each of those in the middle a weight times a factor from 0 to 1. [`FactorWeights::priority`] is that formula;
//! the functions of this module are the factors. The policy `multifactor` orders users by the priority of what
//! waits first of each, under [`Settings`].

mod exact_sum;
mod factors;
mod fairshare;
mod of_site;
mod policy;
mod read;
mod settings;

pub use factors::{FactorWeights, Factors, Size, age, in_minutes, normalised, tres};
pub use fairshare::{Fairshare, depth_oblivious_ratio, fairshare_factor};
pub(crate) use of_site::days_and_time;
pub(crate) use policy::{REGISTRATION, policy_of_site};
pub use settings::{NoNormal, Settings};
