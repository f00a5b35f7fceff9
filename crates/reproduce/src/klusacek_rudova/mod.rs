//! Klusáček and Rudová, "New Multi-resource Fairshare Prioritization Mechanisms for Heterogeneous Computing
//! Platforms" (least processor equivalents). The paper has no figures: these are
//! experiments that try what it says.

pub(crate) mod gpus;
mod ground;
pub(crate) mod memory;
pub(crate) mod placement;
pub(crate) mod speed;
