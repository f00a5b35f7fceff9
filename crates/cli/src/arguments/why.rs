//! Arguments of `evenhand why`.

use clap::Args;

use super::LogArgs;

#[derive(Args, Debug)]
pub(crate) struct WhyArgs {
    /// Job, by its id in the log (4711, a task 100_2 of an array, 4711.server of PBS), or user:NAME for all jobs of a user
    pub(crate) who: String,
    #[command(flatten)]
    pub(crate) log: LogArgs,
    /// With user:NAME: first submission, in seconds of the log, as a date or time in UTC, or as a time before the last
    /// submission (30d) [default: the first]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) from: Option<String>,
    /// With user:NAME: end of the period, in the same forms [default: after the last submission]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) to: Option<String>,
    /// How much of the first resource the site has [default: MaxProcs of the log's header, else MaxNodes, else the most in
    /// use at once]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) capacity: Option<u32>,
}
