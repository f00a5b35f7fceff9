//! Arguments of `evenhand price`.

use std::path::PathBuf;

use clap::Args;
use evenhand_policies::equivalents::Combine;

use super::named_value::combine;

#[derive(Args, Debug)]
pub(crate) struct PriceArgs {
    /// What the job requests, as PBS users write it: cpu=4:mem=8Gi, or 2:cpu=4:mem=8Gi+cpu=1:gpu=1 for chunks
    #[arg(value_name = "JOB")]
    pub(crate) job: String,
    /// Machines and queues: a file with [[machines]]
    #[arg(long, value_name = "FILE")]
    pub(crate) cluster: PathBuf,
    /// Queue whose price, limits and properties apply
    #[arg(long, value_name = "NAME")]
    pub(crate) queue: Option<String>,
    /// Run time of the job: 90m, 1.5d
    #[arg(long, value_name = "TIME", default_value = "1h")]
    pub(crate) walltime: String,
    /// Rule that combines the resources' processor equivalents: max, sum or max-plus-optional
    #[arg(long, value_name = "HOW", default_value = Combine::default().name(), value_parser = combine)]
    pub(crate) combine: Combine,
    /// Properties that the job's machines must have
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    pub(crate) property: Vec<String>,
}
