//! Readers of public traces that are not one flat table.

pub(super) mod alibaba_gpu_2020;
pub(super) mod frontier;
pub(super) mod philly;
pub(super) mod supercloud;
