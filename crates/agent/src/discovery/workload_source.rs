//! The interface to everything that finds running workloads.

use std::path::Path;
use std::sync::Arc;

use evenhand_documents::{DocumentError, Table};
use evenhand_enforcers::cgroups::Hierarchies;

use crate::discovery::{DiscoveryError, RunningWorkload, sources};

/// A way to find running workloads.
pub trait WorkloadSource: Send {
    /// Lists the workloads that run now, sorted by the paths of their groups. Called at every update: what is expensive
    /// (a request to a daemon for each workload) is cached while the group's identity stays the same.
    ///
    /// # Errors
    /// Returns an error if a program that has to be asked does not answer. The workloads found last are then kept.
    fn list(&mut self) -> Result<Vec<Arc<RunningWorkload>>, DiscoveryError>;

    /// Returns the warnings of the last listing: files that cannot be read at present, groups without a known owner. A
    /// warning that persists is repeated in the same words.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the files that its table of the configuration names.
    fn files(&self) -> Vec<&Path> {
        Vec::new()
    }

    /// Returns where it looked and what was there, in a sentence without a stop, for a node without any workload.
    fn looked_for(&self) -> String {
        "found none".to_string()
    }
}

/// Creates a source from its table in the configuration.
pub type Build = fn(&Table, &Hierarchies) -> Result<Box<dyn WorkloadSource>, DocumentError>;

/// A registered kind of source.
pub struct Registration {
    /// The value of `from` in the configuration.
    pub name: &'static str,
    /// What it finds, in one line.
    pub about: &'static str,
    /// Creates the source. The table contains `from` too, which must not be rejected.
    pub build: Build,
}

/// All kinds of sources.
pub const SOURCES: &[Registration] = &[
    sources::user_slices::SOURCE,
    sources::libvirt::SOURCE,
    sources::slurm::SOURCE,
    sources::containers::SOURCE,
    sources::pattern::SOURCE,
    sources::table::SOURCE,
];

/// Returns the kind of source with this name. `docker` and `podman` name the source of containers, which finds both.
pub fn source_named(name: &str) -> Option<&'static Registration> {
    let name = if matches!(name, "docker" | "podman") { "containers" } else { name };
    SOURCES.iter().find(|source| source.name == name)
}
