//! Arguments of `evenhand allocate`.

use std::path::PathBuf;

use clap::Args;

use super::MechanismArgs;

#[derive(Args, Debug)]
pub(crate) struct AllocateArgs {
    /// Problem: TOML or JSON with capacity and users; - for standard input
    pub(crate) problem: PathBuf,
    /// Mechanisms: max-min, drf, sdrf, asset, ceei, bbf, bmf, baa; if there are several, their results are compared
    #[arg(long, value_delimiter = ',', default_value = "drf", value_name = "NAME,…")]
    pub(crate) mechanism: Vec<String>,
    /// Compute with exact fractions
    #[arg(long)]
    pub(crate) exact: bool,
    #[command(flatten)]
    pub(crate) options: MechanismArgs,
}
