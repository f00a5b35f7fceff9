//! Arguments of `evenhand doctor`.

use std::path::PathBuf;

use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct InstallationArgs {
    /// Examine the installation below this folder, such as a mounted image; services are not asked
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
}
