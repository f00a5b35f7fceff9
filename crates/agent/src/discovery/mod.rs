//! Discovers the running workloads of this machine: their control groups, owners and sizes.
//!
//! A [`WorkloadSource`] is one way to find workloads; each is a file of its own and one line in [`SOURCES`], and reads its
//! settings from its table `[[guests]]` of the agent's configuration. [`Discovery`] combines several sources: at every
//! update it returns a [`Snapshot`] of the workloads and of what changed.
//!
//! ```
//! use evenhand_documents::{Document, Format};
//! use evenhand_agent::discovery::Discovery;
//! use evenhand_enforcers::cgroups::{Hierarchies, ProtectedCgroups};
//!
//! // A directory with the layout of control groups.
//! let folder = tempfile::tempdir()?;
//! let group = folder.path().join("tenants.slice/alice-web.service");
//! std::fs::create_dir_all(&group)?;
//! let hierarchies = Hierarchies { unified: Some(folder.path().into()), ..Hierarchies::default() };
//!
//! let text = r"
//!     [[guests]]
//!     from = 'pattern'
//!     pattern = 'tenants\.slice/(?<owner>[a-z]+)-(?<name>.*)\.service'
//!     processors = 2
//! ";
//! let document = Document::parse("agent.toml", text, Some(Format::Toml))?;
//! let tables: Vec<_> = document.root()?.required("guests", "[[guests]]")?.list()?.collect();
//! let tables = tables.iter().map(|node| node.table()).collect::<Result<Vec<_>, _>>()?;
//! let mut discovery = Discovery::read(tables, &hierarchies, ProtectedCgroups::detect()?)?;
//!
//! let snapshot = discovery.refresh();
//! let web = &snapshot.workloads[0];
//! assert_eq!((web.owner.as_str(), web.name.as_str(), web.processors), ("alice", "web", Some(2.0)));
//! assert_eq!(snapshot.added.len(), 1);
//!
//! std::fs::remove_dir(group)?;
//! assert_eq!(discovery.refresh().removed[0].name, "web");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The entitlement of each user in the whole cloud is in [`Quotas`](crate::Quotas). `docs/src/reference/workload-sources.md` has an example of each source.
//!
//! This module changes nothing on the machine.
mod combine_sources;
mod group_paths;
mod owner_map;
mod read_limits;
mod running_workload;
mod sources;
pub(crate) mod split_fields;
mod user_names;
mod watched_file;
mod workload_cache;
mod workload_source;

pub use combine_sources::{Discovery, DiscoveryWarning, ExclusionReason, Snapshot};
pub use running_workload::{DiscoveryError, RunningWorkload};
pub use workload_source::{Build, Registration, SOURCES, WorkloadSource, source_named};
