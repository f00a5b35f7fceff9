//! Keeps a Slurm queue in a policy's order by writing site factors (`scontrol update SiteFactor`), and takes them back.

mod assign_site_factors;
mod driver;
mod saved_state;
mod write_site_factors;
mod written_factor;

pub use assign_site_factors::{RankedJob, SiteFactorChange, assign_site_factors};
pub use driver::{
    COMMAND_LIMIT, DriveError, DriveOptions, Driver, EXIT_LIMIT, ReleaseOutcome, TickOutcome, longest_silence,
};
pub use saved_state::{SavedState, SavedStateError};
pub use written_factor::WrittenFactor;
