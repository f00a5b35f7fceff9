//! A site from its files: slurm.conf and texts of `sacctmgr` and `scontrol`, without a running Slurm.

mod association_limits;
mod closures;
mod effect;
mod licences;
mod partition_limits;
mod qos;
mod qos_limits;
mod qos_preemption;
mod resources_without_effect;
mod sacctmgr_dump;
mod scheduler_settings;
mod scontrol_options;
mod slurm_conf;
mod statements;
mod text_file;

use std::fmt;
use std::path::{Path, PathBuf};

use thiserror::Error;

pub use association_limits::limit_associations;
pub use closures::{SiteClosure, parse_events, parse_reservations};
pub use effect::{TextFiles, Unmodelled, gang_with_other_modes, unmodelled_settings, weights_without_priorities};
pub use licences::licences_of_conf;
pub use partition_limits::limit_partitions;
pub use qos::{Qos, inconsistent_qos, parse_qos};
pub use qos_limits::limit_jobs_of_qos;
pub use qos_preemption::priorities_and_preemption_of_qos;
pub use resources_without_effect::memory_without_effect;
pub use sacctmgr_dump::{Dump, parse_dump};
pub(crate) use scheduler_settings::PreemptModes;
pub use scheduler_settings::{SIMULATED_SETTINGS, SchedulerSettings, scheduler_settings, simulated_settings_text};
pub use slurm_conf::{SlurmConf, read_slurm_conf, slurm_conf_names};
pub use text_file::{read_command_text, some_records};

use crate::error::TextError;

/// Why a file of a site cannot be used.
#[derive(Debug, Error)]
pub enum SiteFileError {
    /// The file cannot be read.
    #[error("{place}cannot read {}: {source}", path.display())]
    Read {
        /// Where it is included from, followed by a blank; empty for a file that was named by the user.
        place: String,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// Something in the file is invalid.
    #[error("{place}: found {found}, expected {expected}")]
    Invalid {
        /// The place.
        place: Position,
        /// The text at this position, shortened.
        found: String,
        /// The expected text, in words, with a remedy where there is one.
        expected: String,
    },
}

impl SiteFileError {
    /// Returns the error of a text that was read from a file.
    pub fn in_file(path: &Path, error: TextError) -> SiteFileError {
        let TextError { line, column, found, expected, .. } = error;
        SiteFileError::Invalid { place: Position { file: path.to_owned(), line, column }, found, expected }
    }

    /// Returns whether the environment failed rather than the input.
    pub fn is_environment(&self) -> bool {
        match self {
            SiteFileError::Read { source, .. } => !evenhand_model::files::is_error_of_input(source),
            SiteFileError::Invalid { .. } => false,
        }
    }
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The file.
    pub file: PathBuf,
    /// The line, counted from 1.
    pub line: usize,
    /// The byte in the line, counted from 1.
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file.display(), self.line, self.column)
    }
}
