//! Generates synthetic workloads that resemble measured ones.
//!
//! Each generator is calibrated on a published trace. It reproduces the features that decide who waits for whom: a few
//! users with most of the tasks, few demand vectors, bursts, and run times over four orders of magnitude. The same
//! options give the same workload on every machine.

mod arrivals;
mod google;
mod metacentrum;
mod quantile_function;

use std::fmt;
use std::str::FromStr;

use evenhand_model::{Batch, Workload, WorkloadBuilder};
use thiserror::Error;

/// The trace on which a generator is calibrated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceModel {
    /// Google's ClusterData2011_2: jobs of many short tasks, with CPU and memory normalised to the largest machine.
    Google2011,
    /// MetaCentrum (CERIT-SC, server wagap, 2013): batch jobs with queues and requested wall times, with processors and
    /// KB of memory.
    MetaCentrum,
}

impl TraceModel {
    /// All models.
    pub const ALL: [TraceModel; 2] = [TraceModel::Google2011, TraceModel::MetaCentrum];

    /// Returns the name on the command line: `google2011`, `metacentrum`.
    pub fn name(self) -> &'static str {
        match self {
            TraceModel::Google2011 => "google2011",
            TraceModel::MetaCentrum => "metacentrum",
        }
    }
}

impl fmt::Display for TraceModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for TraceModel {
    type Err = GenerateError;

    fn from_str(text: &str) -> Result<TraceModel, GenerateError> {
        TraceModel::ALL
            .into_iter()
            .find(|l| l.name() == text)
            .ok_or_else(|| GenerateError::Unknown { found: text.to_string() })
    }
}

/// The options of a generator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GenerateOptions {
    /// The trace that the workload resembles.
    pub model: TraceModel,
    /// The exact number of tasks.
    pub tasks: u64,
    /// The exact number of users, each with at least one task.
    pub users: u32,
    /// The approximate period of submissions, in days.
    pub days: f64,
    /// The seed: other seeds give other workloads with the same statistics.
    pub seed: u64,
}

/// An error in the options of a generator.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum GenerateError {
    /// The model is unknown.
    #[error("found {found:?}, expected google2011 or metacentrum")]
    Unknown {
        /// The name.
        found: String,
    },
    /// The number of tasks is 0.
    #[error("found 0 tasks, expected at least 1")]
    NoTasks,
    /// The number of users is 0.
    #[error("found 0 users, expected at least 1")]
    NoUsers,
    /// There are more tasks than a row index holds.
    #[error("found {tasks} tasks, expected at most {}, which a workload in memory can have", u32::MAX)]
    TooManyTasks {
        /// The requested tasks.
        tasks: u64,
    },
    /// There are more users than tasks.
    #[error(
        "found {users} users and {tasks} tasks, expected at least one task for each user; give fewer users or more tasks"
    )]
    TooManyUsers {
        /// The requested users.
        users: u32,
        /// The requested tasks.
        tasks: u64,
    },
    /// The number of days is out of range.
    #[error("found {} days, expected a number greater than 0 and at most {MAX_DAYS}", shown(*days))]
    Days {
        /// The requested days.
        days: f64,
    },
}

/// Prints a number without hundreds of digits.
fn shown(days: f64) -> String {
    if days.abs() < 1e9 { days.to_string() } else { format!("{days:e}") }
}

/// A century, well within the range of a time.
const MAX_DAYS: f64 = 36_525.0;

impl GenerateOptions {
    fn check(&self) -> Result<(), GenerateError> {
        let &GenerateOptions { tasks, users, days, .. } = self;
        if tasks == 0 {
            return Err(GenerateError::NoTasks);
        }
        if users == 0 {
            return Err(GenerateError::NoUsers);
        }
        if tasks > u64::from(u32::MAX) {
            return Err(GenerateError::TooManyTasks { tasks });
        }
        if u64::from(users) > tasks {
            return Err(GenerateError::TooManyUsers { users, tasks });
        }
        if !(days > 0.0 && days <= MAX_DAYS) {
            return Err(GenerateError::Days { days });
        }
        Ok(())
    }

    fn horizon_us(&self) -> u64 {
        ((self.days * 86_400e6) as u64).max(1)
    }

    fn header(&self) -> [(&'static str, String); 2] {
        let description = format!(
            "like {}, {} tasks, {} users, {} days, seed {}",
            self.model, self.tasks, self.users, self.days, self.seed
        );
        [("Generator", concat!("evenhand ", env!("CARGO_PKG_VERSION")).to_string()), ("Generated", description)]
    }

    fn build(&self, mut builder: WorkloadBuilder, batch: Batch) -> Workload {
        builder.append_batch(batch);
        for (key, value) in self.header() {
            builder.add_header(key, &value);
        }
        builder.finish().expect("generated amounts have few digits and there is at least one task")
    }
}

/// Generates a workload. The result does not depend on the number of threads.
///
/// ```
/// use evenhand_workload::generate::{GenerateOptions, TraceModel, generate};
/// let options = GenerateOptions { model: TraceModel::Google2011, tasks: 1000, users: 20, days: 0.5, seed: 1 };
/// let w = generate(&options).unwrap();
/// assert_eq!((w.tasks(), w.users().len()), (1000, 20));
/// ```
///
/// # Errors
/// Returns an error if an option is out of range or two options contradict each other.
pub fn generate(options: &GenerateOptions) -> Result<Workload, GenerateError> {
    options.check()?;
    Ok(match options.model {
        TraceModel::Google2011 => google::generate(options),
        TraceModel::MetaCentrum => metacentrum::generate(options),
    })
}

/// Returns the names `user-001`, …, padded so that they sort by number.
fn names(what: &str, n: u32) -> Vec<String> {
    let width = n.to_string().len();
    (1..=n).map(|i| format!("{what}-{i:0width$}")).collect()
}
