//! Reading of files that several verbs take.

pub(crate) mod capacity;
#[cfg(feature = "analysis")]
pub(crate) mod job_shape;
pub(crate) mod memory;
#[cfg(feature = "analysis")]
pub(crate) mod problems;
pub(crate) mod release;
#[cfg(feature = "analysis")]
pub(crate) mod site_log;
#[cfg(feature = "analysis")]
pub(crate) mod times;
pub(crate) mod weights_and_accounts;
pub(crate) mod workloads;
