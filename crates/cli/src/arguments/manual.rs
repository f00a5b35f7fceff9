//! Arguments of `evenhand manual`.

use std::path::PathBuf;

use clap::Args;

use super::named_value::{UNDATED, date_or_undated};

#[derive(Args, Debug)]
pub(crate) struct ManualArgs {
    /// Folder for the pages, made if it is missing
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Date of the pages
    #[arg(long, value_name = "YYYY-MM-DD", default_value = UNDATED, value_parser = date_or_undated)]
    pub(crate) date: String,
}
