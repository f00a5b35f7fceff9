//! Arguments of `evenhand config`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigVerb {
    /// Check configurations of the agent, and options of the services (*.env), without running them, with file, line and
    /// column of an error
    Check(ConfigCheckArgs),
    /// Print the JSON Schema of the agent's configuration, for editors
    Schema,
}

#[derive(Args, Debug)]
pub(crate) struct ConfigCheckArgs {
    /// Configurations of the agent (TOML), and options of the services (.env)
    #[arg(value_name = "FILE", default_value = super::agent::CONFIGURATION)]
    pub(crate) files: Vec<PathBuf>,
    /// Also list the settings that the files leave to a default which was different in earlier versions
    #[arg(long)]
    pub(crate) changes: bool,
}
