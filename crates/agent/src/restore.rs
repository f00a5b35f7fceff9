//! Restores, without a configuration, what an agent wrote that runs no more: the journal has all that is needed.

use std::path::Path;

use evenhand_enforcers::cgroups::{
    CgroupEnforcer, CompositeEnforcer, DescriptorBudget, Enforcer, GroupFilter, Hierarchies, HostLock, KernelError,
    ProtectedCgroups, SystemRoot, parent,
};
use evenhand_enforcers::systemd::SystemdDbus;
use evenhand_enforcers::traffic::{TrafficEnforcer, TrafficLeftovers};
use thiserror::Error;

use crate::agent::{Released, restore_entry};
use crate::journal::{Entry, Journal, JournalError};
use crate::lock_folder::lock_folder;
use crate::other_devices::clear_other_devices;
use crate::trusted_files::{TrustError, folder_of};

/// Why nothing is restored.
#[derive(Debug, Error)]
pub enum RestoreError {
    /// The kernel's files are not as expected, or an agent manages the groups.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Another user could take the locks.
    #[error(transparent)]
    Trust(#[from] TrustError),
}

/// Restores the groups of a journal, which then contains only those that could not be restored.
///
/// # Errors
/// Returns an error if an agent is running with the journal or manages its groups, or if the journal cannot be read.
pub fn restore_journal(path: &Path, system: &SystemRoot) -> Result<Released, RestoreError> {
    let journal = Journal::open(path)?;
    let hierarchies = system.hierarchies()?;
    let entries = journal.entries()?;
    let _lock = lock_groups(&entries, &hierarchies, &lock_folder(system, folder_of(path))?)?;
    // Devices have classes also of groups that have ended. What is on a device keeps no group from being restored.
    let cleared =
        clear_other_devices(&journal, None, TrafficEnforcer::remove_leftovers).and_then(|()| journal.entries());
    let mut released = restore_each(cleared.as_ref().unwrap_or(&entries), &hierarchies)?;
    released.failed.extend(cleared.err().map(|error| error.to_string()));
    let done = entries.iter().map(|entry| entry.group.path.as_str()).filter(|path| !released.left.contains(*path));
    if let Err(error) = journal.forget(done) {
        released.failed.push(error.to_string());
    }
    Ok(released)
}

/// Restores groups by entries that were [salvaged](Journal::salvage) from this file.
///
/// # Errors
/// Returns an error if an agent manages the groups, or if the hierarchies cannot be determined.
pub fn restore_entries(entries: &[Entry], journal: &Path, system: &SystemRoot) -> Result<Released, RestoreError> {
    let hierarchies = system.hierarchies()?;
    let _lock = lock_groups(entries, &hierarchies, &lock_folder(system, folder_of(journal))?)?;
    Ok(restore_each(entries, &hierarchies)?)
}

/// Locks the innermost group above all groups of the entries that exist: an agent that manages any of them has a lock that
/// excludes this one, whatever its `under`. Returns `None` if no group exists.
fn lock_groups(entries: &[Entry], hierarchies: &Hierarchies, locks: &Path) -> Result<Option<HostLock>, KernelError> {
    let existing =
        entries.iter().map(|entry| entry.group.path.as_str()).filter(|path| hierarchies.identity(path).is_some());
    let common = existing.map(parent).reduce(common_ancestor);
    common.map(|common| HostLock::take(hierarchies, common, locks)).transpose()
}

/// Returns the innermost group that is, or contains, both.
fn common_ancestor<'p>(a: &'p str, b: &'p str) -> &'p str {
    let mut ancestor = a;
    while !ancestor.is_empty() {
        let is_above = b.strip_prefix(ancestor).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        if is_above {
            break;
        }
        ancestor = parent(ancestor);
    }
    ancestor
}

fn restore_each(entries: &[Entry], hierarchies: &Hierarchies) -> Result<Released, KernelError> {
    let protected = ProtectedCgroups::detect()?;
    let systemd = SystemdDbus::new(evenhand_enforcers::systemd::Settings::default(), protected.clone())?;
    let mut enforcer = CompositeEnforcer::new().with(GroupFilter::SystemdUnits, Box::new(systemd));
    for files in CgroupEnforcer::all_for_restoring(hierarchies, &protected, &DescriptorBudget::of_process()) {
        enforcer = enforcer.with(GroupFilter::All, Box::new(files));
    }
    enforcer = enforcer.with(GroupFilter::All, Box::new(TrafficLeftovers));
    let mut released = Released::default();
    for entry in entries {
        released.add(entry, restore_entry(&mut enforcer, |path| hierarchies.identity(path), entry));
    }
    if let Err(error) = enforcer.flush() {
        released.failed.push(error.to_string());
    }
    Ok(released)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_ancestor_contains_both_groups() {
        for (a, b, expected) in [
            ("machine.slice", "machine.slice", "machine.slice"),
            ("a/b", "a/bc", "a"),
            ("a", "a/b", "a"),
            ("a/b/c", "a", "a"),
            ("a", "b", ""),
            ("", "a", ""),
        ] {
            assert_eq!(common_ancestor(a, b), expected, "{a} {b}");
        }
    }
}
