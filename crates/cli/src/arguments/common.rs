//! Options that all verbs share.

use std::num::NonZeroUsize;

use clap::{Args, ValueEnum};

use super::named_value::at_least_one;

/// Options that all verbs share.
#[derive(Args, Debug)]
pub(crate) struct Common {
    /// Format of results on standard output [default: table]
    #[arg(long, global = true, value_enum)]
    pub(crate) format: Option<Format>,
    /// Seed of everything random, a whole number; the same seed gives the same result [default: 1]
    #[arg(long, global = true)]
    seed: Option<u64>,
    /// Number of threads [default: one per core]; results do not depend on it
    #[arg(long, global = true, value_parser = at_least_one)]
    pub(crate) threads: Option<NonZeroUsize>,
    /// Print no progress and no notes on standard error
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Explain the columns of printed tables below them
    #[arg(long, global = true)]
    pub(crate) explain: bool,
    /// Write texts in CSV results as they are: by default control characters appear as escapes, and a text that a
    /// spreadsheet takes for a formula follows an apostrophe
    #[arg(long, global = true)]
    pub(crate) raw_csv: bool,
}

impl Common {
    /// Returns the seed; 1 if none is given.
    pub(crate) fn seed(&self) -> u64 {
        self.seed.unwrap_or(1)
    }

    /// Returns the seed if one is given: a file may have its own.
    #[cfg(feature = "analysis")]
    pub(crate) fn seed_given(&self) -> Option<u64> {
        self.seed
    }

    /// Returns these options as arguments that parse to the same.
    #[cfg(feature = "slurm")]
    pub(crate) fn to_arguments(&self) -> Vec<String> {
        let mut arguments = Vec::new();
        if let Some(format) = self.format.and_then(|f| f.to_possible_value()) {
            arguments.extend(["--format".to_string(), format.get_name().to_string()]);
        }
        arguments.extend(self.seed.map(|seed| format!("--seed={seed}")));
        arguments.extend(self.threads.map(|threads| format!("--threads={threads}")));
        arguments.extend(self.quiet.then(|| "--quiet".to_string()));
        arguments.extend(self.explain.then(|| "--explain".to_string()));
        arguments.extend(self.raw_csv.then(|| "--raw-csv".to_string()));
        arguments
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Tables for people
    Table,
    /// One JSON document and nothing else
    Json,
}
