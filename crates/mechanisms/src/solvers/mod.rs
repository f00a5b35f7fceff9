//! Algorithms that the mechanisms are built on.

pub(crate) mod eisenberg_gale;
pub(crate) mod hierarchical_filling;
pub(crate) mod progressive_filling;
pub(crate) mod simplex;
