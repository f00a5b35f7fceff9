//! Klusáček and Rudová (2013), "New Multi-resource Fairshare Prioritization Mechanisms for Heterogeneous Computing
//! Platforms" (minimum processor equivalents). The paper has no figures: these experiments test its statements.

pub(crate) mod gpus;
pub(crate) mod memory;
pub(crate) mod placement;
pub(crate) mod speed;
mod testbed;
