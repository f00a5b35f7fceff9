//! Output that verbs share: printing, tables for people, numbers, progress, files, metrics.

#[cfg(feature = "analysis")]
pub(crate) mod bars;
pub(crate) mod console;
pub(crate) mod explain;
pub(crate) mod fold_lines;
pub(crate) mod human_units;
#[cfg(feature = "analysis")]
pub(crate) mod named_values;
pub(crate) mod numbers;
#[cfg(feature = "analysis")]
pub(crate) mod output_number;
pub(crate) mod progress;
#[cfg(any(feature = "agent", feature = "slurm"))]
pub(crate) mod serve_metrics;
pub(crate) mod table;
pub(crate) mod write_files;
