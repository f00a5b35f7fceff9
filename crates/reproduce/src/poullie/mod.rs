//! Poullie, Mannhart and Stiller (2016), "Virtual Machine Priority Adaption to Enforce Fairness Among Cloud Users". The
//! paper's figures show measurements, so these are drawn from recordings of real runs, which `tests/agent` makes.

pub(crate) mod figure_2;
pub(crate) mod figure_4;
pub(crate) mod figure_5;
mod overhead_measurements;
mod recording;

pub use recording::{RecordingError, Recordings};
