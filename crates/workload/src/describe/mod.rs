//! Descriptive statistics of a workload.

mod compute;
mod plot_data;
mod statistics;

use serde::Serialize;

pub use compute::describe;
pub use plot_data::{DescriptionPlots, VectorPoint, describe_plots};

/// The statistics of a workload.
///
/// Times are in seconds, amounts in the workload's own units. Statistics over tasks weight each row with its count.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Description {
    /// The number of tasks.
    pub tasks: u64,
    /// The number of rows.
    pub rows: u64,
    /// The number of users.
    pub users: u64,
    /// The number of accounts; 0 if the trace has none.
    pub accounts: u64,
    /// The number of queues; 0 if the trace has none.
    pub queues: u64,
    /// The number of distinct demand vectors.
    pub demand_vectors: u64,
    /// The time of the first submission.
    pub first_submit_s: f64,
    /// The time from the first submission to the last original event.
    pub span_s: f64,
    /// Whether original starts are known. If not, use is computed as if each task had started at its submission.
    pub starts_known: bool,
    /// One entry per resource, in the order of the workload.
    pub resources: Vec<ResourceDescription>,
    /// Spearman's rank correlation, over tasks, between the demands for the first two resources.
    pub demand_correlation: Option<f64>,
    /// The most common demand vectors, at most ten.
    pub common_vectors: Vec<CommonVector>,
    /// The distribution of tasks per user.
    pub tasks_per_user: Tail,
    /// The concentration of tasks on users.
    pub task_shares: Concentration,
    /// The concentration of use on users. The use of a user is the largest of its fractions of the resource-time, over
    /// all resources.
    pub use_shares: Concentration,
    /// The run times.
    pub duration_s: Distribution,
    /// The original waits of the tasks whose start is known.
    pub wait_s: Option<Distribution>,
    /// The requested wall times of the tasks that have one.
    pub requested_s: Option<Distribution>,
    /// The time between consecutive submissions of tasks.
    pub task_interarrival: Option<Interarrival>,
    /// The bursts: tasks of one user with one demand vector, each submitted at most a millisecond after the one before.
    pub bursts: Bursts,
}

/// The statistics of one resource.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResourceDescription {
    /// The name.
    pub name: String,
    /// The unit; empty if there is none.
    pub unit: String,
    /// R: the time mean of the amount held by all tasks.
    pub mean_use: f64,
    /// The largest amount held at one time.
    pub peak_use: f64,
    /// The demands of tasks.
    pub demand: Distribution,
    /// The fraction of tasks whose dominant resource this is: their demand relative to R is larger than for others.
    pub dominant_tasks: f64,
    /// The fraction of users whose dominant resource this is, by their use over time relative to R.
    pub dominant_users: f64,
}

/// Quantiles and mean of a distribution. The quantile for a fraction p is the smallest value that at least the fraction
/// p of the tasks does not exceed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[allow(missing_docs, reason = "qNN is the quantile for NN per cent")]
pub struct Distribution {
    pub q05: f64,
    pub q25: f64,
    pub q50: f64,
    pub q75: f64,
    pub q90: f64,
    pub q95: f64,
    pub q99: f64,
    pub max: f64,
    pub mean: f64,
}

/// A distribution with parameters of its tail.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Tail {
    /// The quantiles and the mean.
    #[serde(flatten)]
    pub distribution: Distribution,
    /// The slope of log value over log rank, by least squares over the 200 largest values.
    pub rank_slope: Option<f64>,
    /// Hill's tail index of the largest tenth of the values.
    pub hill: Option<f64>,
}

/// The concentration of a quantity on users.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Concentration {
    /// The Gini coefficient: 0 if all users have the same, close to 1 if one user has everything.
    pub gini: f64,
    /// The fraction of the largest user.
    pub top1: f64,
    /// The fraction of the 5 largest users.
    pub top5: f64,
    /// The fraction of the 10 largest users.
    pub top10: f64,
    /// The fraction of the 50 largest users.
    pub top50: f64,
}

/// The time between consecutive events.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interarrival {
    /// The mean, in seconds.
    pub mean_s: f64,
    /// The coefficient of variation (standard deviation over mean): 1 for a Poisson process.
    pub variation: f64,
}

/// Bursts of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bursts {
    /// The number of bursts.
    pub bursts: u64,
    /// The fraction of bursts with one task.
    pub single: f64,
    /// The tasks per burst.
    pub tasks: Distribution,
    /// The time between the starts of consecutive bursts.
    pub interarrival: Option<Interarrival>,
}

/// A common demand vector.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CommonVector {
    /// The amounts, in the order of the resources.
    pub amounts: Vec<f64>,
    /// The fraction of tasks with this vector.
    pub share: f64,
}
