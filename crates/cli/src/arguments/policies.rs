//! Arguments of `evenhand policies`.

use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct PoliciesArgs {
    /// Policies whose settings to print as TOML [default: a table of all]
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
}
