//! Arguments of `evenhand top`.

use std::path::PathBuf;

use clap::Args;

use super::agent::SOCKET;

#[derive(Args, Debug)]
pub(crate) struct TopArgs {
    /// Control socket of the running agent
    #[arg(long, default_value = SOCKET, value_name = "SOCKET")]
    pub(crate) socket: PathBuf,
    /// Print the view once as text and exit
    #[arg(long)]
    pub(crate) once: bool,
}
