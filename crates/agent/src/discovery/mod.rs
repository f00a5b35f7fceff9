//! Which guests run on this machine, whose they are, and how large they were sized.
//!
//! A [`Source`] knows one way of finding that out; each is a file of its own and one line in [`SOURCES`].
//! What it needs to know comes from a table of the agent's configuration, which it reads itself.
//! [`Guests`] is several sources as one: it is asked at every update who is here, and says what changed.
//!
//! ```
//! use evenhand_documents::{Document, Format};
//! use evenhand_agent::discovery::{Guests, Own};
//! use evenhand_enforcers::cgroups::Hierarchies;
//!
//! // A folder like that of control groups.
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
//! let mut guests = Guests::read(tables, &hierarchies, Own::detect()?)?;
//!
//! let seen = guests.look();
//! assert_eq!((seen.guests[0].owner.as_str(), seen.guests[0].name.as_str()), ("alice", "web"));
//! assert_eq!((seen.guests[0].processors, seen.added.len()), (Some(2.0), 1));
//!
//! std::fs::remove_dir(group)?;
//! assert_eq!(guests.look().removed[0].name, "web");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What a user is due in the whole cloud is in [`Quotas`]. `docs/src/reference/workload-sources.md` has an example of each source.
//!
//! This room changes nothing on the machine.
mod guest;
mod guests;
mod limits;
mod lines;
mod own;
mod owners;
mod paths;
mod quotas;
mod roll;
mod source;
mod sources;
mod users;
mod watched;

pub use guest::{Guest, GuestError};
pub use guests::{Guests, Refusal, Remark, Seen};
pub use own::Own;
pub use quotas::Quotas;
pub use source::{Build, Registration, SOURCES, Source, source_named};
