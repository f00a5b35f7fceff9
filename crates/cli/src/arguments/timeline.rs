//! Arguments of `evenhand timeline`.

use std::path::PathBuf;

use clap::Args;

use super::MechanismArgs;
use super::named_value::file_to_write;

#[derive(Args, Debug)]
pub(crate) struct TimelineArgs {
    /// Scenario: a problem whose users may have arrive and leave, or phases; - for standard input
    pub(crate) scenario: PathBuf,
    /// Mechanism that divides capacity again at each event: max-min, drf, sdrf, asset, ceei, bbf, bmf, baa
    #[arg(long, default_value = "drf", value_name = "NAME")]
    pub(crate) mechanism: String,
    /// Compute with exact fractions
    #[arg(long)]
    pub(crate) exact: bool,
    /// sdrf: discount factor per second [default: 0.999999]
    #[arg(long, value_name = "NUMBER", conflicts_with = "half_life")]
    pub(crate) delta: Option<String>,
    /// sdrf: the same as a half-life: 8d, 12h
    #[arg(long, value_name = "TIME")]
    pub(crate) half_life: Option<String>,
    /// baa: each user brings a share of capacity, and no allocation is ever reduced
    #[arg(long)]
    pub(crate) irrevocable: bool,
    /// End of the timeline, in seconds or as 2d, 12h [default: when nothing more happens]
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// sdrf: longest interval while tasks change [default: an eighth of the half-life]
    #[arg(long, value_name = "TIME")]
    pub(crate) resolution: Option<String>,
    /// Draw the use of the resource; if there are several resources, the users' dominant shares
    #[arg(long, value_name = "FILE.svg", value_parser = file_to_write())]
    pub(crate) figure: Option<PathBuf>,
    /// Folder for all figures (SVG) and their data
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) options: MechanismArgs,
}
