//! Poullie, Mannhart and Stiller, "Virtual Machine Priority Adaption to Enforce Fairness Among Cloud Users". Its figures show measurements, so ours are drawn from recordings of real runs, which `tests/agent` makes.

pub(crate) mod figure_2;
pub(crate) mod figure_4;
pub(crate) mod figure_5;
mod overhead;
mod recording;

pub use recording::{RecordingError, Recordings};
