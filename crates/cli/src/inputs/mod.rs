//! Reading of files that several verbs take.

pub(crate) mod capacity;
pub(crate) mod job_shape;
pub(crate) mod memory;
pub(crate) mod problems;
pub(crate) mod site_log;
pub(crate) mod times;
pub(crate) mod weights_and_accounts;
pub(crate) mod workloads;
