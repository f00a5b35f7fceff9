//! Arguments of `evenhand processes`.

use std::path::PathBuf;

use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct ProcessesArgs {
    /// Programs (.prog; - for standard input), or one scenario (.toml)
    #[arg(required = true, value_name = "FILE")]
    pub(crate) inputs: Vec<PathBuf>,
    /// Describe the programs in words and run nothing
    #[arg(long, conflicts_with_all = ["runs", "out"])]
    pub(crate) check: bool,
    /// Number of runs, in parallel, each with its own seed
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) runs: u32,
    /// Interpretation of the priorities' formula: per-resource, global or normalized [default: per-resource]
    #[arg(long, value_name = "NAME")]
    pub(crate) reading: Option<String>,
    /// Schedulers; several are compared: bottleneck (Zeldes & Feitelson, default), round-robin, lottery, stride, least-use,
    /// dominant-share
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    pub(crate) scheduler: Vec<String>,
    /// Time at which to cut the run off, in seconds or as 2h [default: the scenario's, else when all processes have ended]
    #[arg(long, value_name = "TIME")]
    pub(crate) horizon: Option<String>,
    /// Folder for a page, figures and their data; with several schedulers, one folder for each
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}
