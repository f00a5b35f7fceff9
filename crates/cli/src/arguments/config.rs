//! Arguments of `evenhand config`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigVerb {
    /// Check configurations of the agent without running it, with file, line and column of an error
    Check(ConfigCheckArgs),
    /// Print the JSON Schema of the agent's configuration, for editors
    Schema,
}

#[derive(Args, Debug)]
pub(crate) struct ConfigCheckArgs {
    /// Configurations
    #[arg(value_name = "FILE", default_value = super::agent::CONFIGURATION)]
    pub(crate) files: Vec<PathBuf>,
}
