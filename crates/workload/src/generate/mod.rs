//! Workloads made to look like measured ones.
//!
//! A generator is calibrated on published traces and keeps the features that decide who waits for
//! whom: a few users with most of the tasks, few demand vectors, bursts, and run times over four
//! orders of magnitude. The same options give the same workload on every machine.

mod arrivals;
mod google;
mod law;
mod metacentrum;

use std::fmt;
use std::str::FromStr;

use evenhand_model::{Batch, Workload, WorkloadBuilder};
use thiserror::Error;

/// Which trace the workload should look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Like {
    /// Google's ClusterData2011_2: jobs of many short tasks, CPU and memory normalised to the
    /// largest machine.
    Google2011,
    /// MetaCentrum (CERIT-SC, server wagap, 2013): batch jobs with queues and requested wall
    /// times, processors and KB of memory.
    MetaCentrum,
}

impl Like {
    /// Every choice.
    pub const ALL: [Like; 2] = [Like::Google2011, Like::MetaCentrum];

    /// As typed: `google2011`, `metacentrum`.
    pub fn name(self) -> &'static str {
        match self {
            Like::Google2011 => "google2011",
            Like::MetaCentrum => "metacentrum",
        }
    }
}

impl fmt::Display for Like {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Like {
    type Err = GenerateError;

    fn from_str(text: &str) -> Result<Like, GenerateError> {
        Like::ALL
            .into_iter()
            .find(|l| l.name() == text)
            .ok_or_else(|| GenerateError::Unknown { found: text.to_string() })
    }
}

/// What to generate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GenerateOptions {
    /// Which trace it should look like.
    pub like: Like,
    /// Exactly so many tasks.
    pub tasks: u64,
    /// Exactly so many users, each with at least one task.
    pub users: u32,
    /// Tasks are submitted over about so many days.
    pub days: f64,
    /// Other seeds give other workloads of the same kind.
    pub seed: u64,
}

/// Why a workload cannot be generated.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum GenerateError {
    /// There is no such trace to look like.
    #[error("found {found:?}, expected google2011 or metacentrum")]
    Unknown {
        /// The name as found.
        found: String,
    },
    /// No tasks.
    #[error("a workload has at least 1 task; ask for more than 0")]
    NoTasks,
    /// No users.
    #[error("a workload has at least 1 user; ask for more than 0")]
    NoUsers,
    /// More rows than a row number holds.
    #[error("{tasks} tasks are too many; a workload in memory has at most {}", u32::MAX)]
    TooManyTasks {
        /// The tasks asked for.
        tasks: u64,
    },
    /// More users than tasks.
    #[error("{users} users cannot each have a task when there are {tasks}; ask for fewer users or more tasks")]
    TooManyUsers {
        /// The users asked for.
        users: u32,
        /// The tasks asked for.
        tasks: u64,
    },
    /// A span that is not a span.
    #[error("found {days} days, expected a number greater than 0 and at most {MAX_DAYS}")]
    Days {
        /// The days asked for.
        days: f64,
    },
}

/// A century: far inside what a time holds.
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
        let what = format!(
            "like {}, {} tasks, {} users, {} days, seed {}",
            self.like, self.tasks, self.users, self.days, self.seed
        );
        [("Generator", concat!("evenhand ", env!("CARGO_PKG_VERSION")).to_string()), ("Generated", what)]
    }

    fn build(&self, mut builder: WorkloadBuilder, batch: Batch) -> Workload {
        builder.append_batch(batch);
        for (key, value) in self.header() {
            builder.add_header(key, &value);
        }
        builder.finish().expect("generated amounts have few digits and there is at least one task")
    }
}

/// Generates a workload.
///
/// The same options give the same workload, whatever the number of threads.
///
/// ```
/// use evenhand_workload::generate::{GenerateOptions, Like, generate};
/// let options = GenerateOptions { like: Like::Google2011, tasks: 1000, users: 20, days: 0.5, seed: 1 };
/// let w = generate(&options).unwrap();
/// assert_eq!((w.tasks(), w.users().len()), (1000, 20));
/// ```
///
/// # Errors
/// If the options contradict each other.
pub fn generate(options: &GenerateOptions) -> Result<Workload, GenerateError> {
    options.check()?;
    Ok(match options.like {
        Like::Google2011 => google::generate(options),
        Like::MetaCentrum => metacentrum::generate(options),
    })
}

/// The names `user-001`, …: as many digits as the largest number needs, so that they sort.
fn names(what: &str, n: u32) -> Vec<String> {
    let width = n.to_string().len();
    (1..=n).map(|i| format!("{what}-{i:0width$}")).collect()
}
