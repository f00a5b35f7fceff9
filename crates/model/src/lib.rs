//! The data model that all other crates share: times, amounts, resources, users, accounts, weights, tasks, workloads,
//! capacities, machines and queues. Also [seeded random numbers](random), [durable writes](files),
//! [text that is safe to print](printable), [limits on memory](memory) and the [`calendar`].
//!
//! The crate knows no policy and no file format. One rule makes everything above it reproducible: **amounts and times
//! are integers**. Shares and priorities are derived from them, as `f64`, or exactly as [`Rational`] where a tie must
//! be distinguished from rounding; they are never accumulated.
//!
//! ```
//! use evenhand_model::{Quantity, Resource, Task, Time, Span, WorkloadBuilder};
//!
//! let mut w = WorkloadBuilder::new([Resource::new("cpu", ""), Resource::new("mem", "")]);
//! w.push(&Task {
//!     submit: Time::from_secs(10),
//!     duration: Span::from_secs(60),
//!     user: "alice",
//!     // 0.0125 CPU and 0.5 of memory, exactly: amounts have up to nine decimals
//!     amounts: &[Quantity::parse("0.0125").unwrap().nano().unwrap(), 500_000_000],
//!     ..Task::default()
//! });
//! let w = w.finish().unwrap();
//! assert_eq!(w.len(), 1);
//! assert_eq!(w.resources()[0].decimals, 4); // the fewest decimals that hold every amount
//! ```
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod accounts;
pub mod calendar;
mod capacity;
mod chunk;
mod cluster;
mod counted;
mod demand;
pub mod duration_text;
pub mod files;
mod hostlist;
mod job_array;
mod licences;
mod mean_use;
pub mod memory;
mod names;
mod peak_use;
pub mod printable;
mod quantity;
pub mod random;
mod resource;
mod resource_quantity;
pub mod size_units;
mod time;
mod weights;
mod workload;

pub use accounts::{Account, AccountTree, AccountsError, AssociationPriority, ListedAccount, Members};
pub use capacity::{Capacity, CapacityError};
pub use chunk::{Chunk, ChunkError};
pub use cluster::{
    Closure, Cluster, ClusterError, Limit, MachineGroup, MachineNames, PreemptMode, QualityOfService, Queue, SiteTime,
    preempted_by_themselves, queue_names, whole_steps,
};
pub use counted::counted;
pub use dashu_int::{IBig, UBig};
pub use dashu_ratio::RBig as Rational;
pub use demand::{DemandId, DemandTable};
pub use hostlist::expand_hostlist;
pub use job_array::JobArray;
pub use licences::{Licence, parse_licences};
pub use mean_use::{MeanUse, mean_use};
pub use names::Names;
pub use peak_use::{PeakUse, peak_use};
pub use quantity::{Quantity, QuantityError};
pub use resource::{Amount, Resource};
pub use resource_quantity::ResourceQuantity;
pub use time::{Span, Time};
pub use weights::{Weights, WeightsError};
pub use workload::{
    Batch, Columns, Detail, Details, JobTasks, LargeWorkload, NO_ID, NO_NODES, NO_TIME, Nano, Overflow, Requirements,
    Task, UserId, Workload, WorkloadBuilder, WorkloadError,
};

/// Returns the `f64` nearest to an exact rational.
///
/// ```
/// use evenhand_model::{Rational, to_f64};
/// assert_eq!(to_f64(&Rational::from_parts(1.into(), 3u8.into())), 1.0 / 3.0);
/// ```
pub fn to_f64(r: &Rational) -> f64 {
    r.to_f64().value()
}
