//! Zeldes and Feitelson (2013), "On-Line Fair Allocations Based on Bottlenecks and Global Priorities".

pub(crate) mod figure_10;
pub(crate) mod figure_11;
pub(crate) mod figure_12;
pub(crate) mod figure_13;
pub(crate) mod figure_14;
pub(crate) mod figure_2;
pub(crate) mod figure_3;
pub(crate) mod figure_4;
pub(crate) mod figure_5;
pub(crate) mod figure_6;
pub(crate) mod figure_7;
pub(crate) mod figure_8;
pub(crate) mod figure_9;
mod process_scenarios;
mod recorded_runs;
mod returns_to_cpu;
pub(crate) mod schedulers;
