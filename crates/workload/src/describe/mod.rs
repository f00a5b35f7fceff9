//! What a workload looks like: the figures that tell a real trace from a toy.

mod measure;
mod plots;
mod statistics;
mod table;

use serde::Serialize;

pub use measure::describe;
pub use plots::{DescriptionPlots, VectorPoint, describe_plots};

/// A workload in figures. `Display` prints it as a table for people; as JSON it is one object.
///
/// Times are in seconds, amounts in the workload's own units. Figures of tasks count a row with a
/// count as so many tasks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Description {
    /// How many tasks there are.
    pub tasks: u64,
    /// How many rows hold them.
    pub rows: u64,
    /// How many users.
    pub users: u64,
    /// How many accounts; 0 if the trace has none.
    pub accounts: u64,
    /// How many queues; 0 if the trace has none.
    pub queues: u64,
    /// How many distinct demand vectors.
    pub demand_vectors: u64,
    /// When the first task was submitted.
    pub first_submit_s: f64,
    /// From the first submission to the last original event.
    pub span_s: f64,
    /// Whether the trace knows when tasks originally started. If not, use is measured as if each
    /// started when submitted.
    pub starts_known: bool,
    /// One entry a resource, in the workload's order.
    pub resources: Vec<ResourceDescription>,
    /// Spearman's rank correlation, over tasks, between the demands for the first two resources.
    pub demand_correlation: Option<f64>,
    /// The most common demand vectors, at most ten.
    pub common_vectors: Vec<CommonVector>,
    /// Tasks per user.
    pub tasks_per_user: Tail,
    /// How unequal users are in tasks.
    pub task_shares: Concentration,
    /// How unequal users are in what they hold over time: of each user the largest of its shares
    /// of all resource-time of a resource.
    pub use_shares: Concentration,
    /// Run times.
    pub duration_s: Distribution,
    /// Original waits, over the tasks whose start is known.
    pub wait_s: Option<Distribution>,
    /// Requested wall times, over the tasks that have one.
    pub requested_s: Option<Distribution>,
    /// Time from one task's submission to the next.
    pub task_interarrival: Option<Interarrival>,
    /// Bursts: tasks of one user with one demand vector, each at most a millisecond after the last.
    pub bursts: Bursts,
}

/// One resource of a workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResourceDescription {
    /// Its name.
    pub name: String,
    /// Its unit; empty if it has none.
    pub unit: String,
    /// R: the time mean of what tasks hold.
    pub mean_use: f64,
    /// The most that tasks hold at once.
    pub peak_use: f64,
    /// What tasks demand.
    pub demand: Distribution,
    /// The share of tasks whose demand is larger relative to R for this resource than for others.
    pub dominant_tasks: f64,
    /// The share of users whose use over time is larger relative to R for this resource.
    pub dominant_users: f64,
}

/// Quantiles (the least value that at least so many per cent do not exceed) and mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[allow(missing_docs, reason = "qNN is the NN per cent quantile")]
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

/// A distribution whose tail matters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Tail {
    /// Its quantiles.
    #[serde(flatten)]
    pub distribution: Distribution,
    /// Slope of log value over log rank, by least squares over the 200 largest.
    pub rank_slope: Option<f64>,
    /// Hill's tail index of the largest tenth.
    pub hill: Option<f64>,
}

/// How unequally something is shared among users.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Concentration {
    /// Gini's coefficient: 0 is equal, near 1 is one user with everything.
    pub gini: f64,
    /// The share of the largest user.
    pub top1: f64,
    /// The share of the 5 largest users.
    pub top5: f64,
    /// The share of the 10 largest users.
    pub top10: f64,
    /// The share of the 50 largest users.
    pub top50: f64,
}

/// Time between events.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interarrival {
    /// The mean, in seconds.
    pub mean_s: f64,
    /// Standard deviation over mean: 1 for a Poisson process.
    pub variation: f64,
}

/// Tasks submitted together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bursts {
    /// How many bursts.
    pub bursts: u64,
    /// The share of bursts of one task.
    pub single: f64,
    /// Tasks per burst.
    pub tasks: Distribution,
    /// Time from the start of one burst to the start of the next.
    pub interarrival: Option<Interarrival>,
}

/// A demand vector that many tasks have.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CommonVector {
    /// The amounts, in the order of the resources.
    pub amounts: Vec<f64>,
    /// The share of tasks.
    pub share: f64,
}
