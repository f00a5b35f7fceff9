//! What every source looks like from outside.

use std::sync::Arc;

use evenhand_documents::{DocumentError, Table};
use evenhand_enforcers::cgroups::Hierarchies;

use crate::discovery::{Guest, GuestError, sources};

/// One way of finding guests.
pub trait Source: Send {
    /// Who is here now, in order of the groups' paths. Called at every update: what costs much (asking a
    /// daemon about each guest) is kept for as long as a group's identity stays the same.
    ///
    /// # Errors
    /// If somebody who has to be asked does not answer. Those found last then stay what they were.
    fn look(&mut self) -> Result<Vec<Arc<Guest>>, GuestError>;

    /// What an operator should hear of the last look: files that cannot be read just now, groups that nobody is
    /// known to own. What still holds is said again, in the same words.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Makes a source from its table in the configuration.
pub type Build = fn(&Table, &Hierarchies) -> Result<Box<dyn Source>, DocumentError>;

/// A source as it is registered.
pub struct Registration {
    /// What `from` says in the configuration.
    pub name: &'static str,
    /// What it finds, in one line.
    pub about: &'static str,
    /// Makes it. `from` itself is in the table and not to be refused.
    pub build: Build,
}

/// All of them.
pub const SOURCES: &[Registration] = &[
    sources::user_slices::SOURCE,
    sources::libvirt::SOURCE,
    sources::slurm::SOURCE,
    sources::containers::SOURCE,
    sources::pattern::SOURCE,
    sources::table::SOURCE,
];

/// The one of this name.
pub fn source_named(name: &str) -> Option<&'static Registration> {
    SOURCES.iter().find(|source| source.name == name)
}
