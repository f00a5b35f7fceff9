//! Workloads in the formats of other tools.

pub(crate) mod text;
