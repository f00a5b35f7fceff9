//! The interface to everything that divides resources among groups.

use std::collections::BTreeMap;

use crate::cgroups::{Group, GroupId, KernelError, Resource, Targets};

/// The settings of a group before the first change, as names and values of the enforcer's own: a form that can be kept in
/// a file and restored by another process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavedState(pub BTreeMap<String, String>);

/// What follows the name of a setting in the name under which the identity of its group is saved, where the setting lies in
/// another hierarchy than the [main](crate::cgroups::Hierarchies::main) one: there a group of the same path may outlive that
/// of the main hierarchy, or be replaced alone.
pub(crate) const IDENTITY: &str = " inode";

impl SavedState {
    /// Returns these present settings, replaced by those of an earlier process as far as that process saved them of the same
    /// group: what it did not divide, it did not change.
    #[must_use]
    pub fn before(mut self, earlier: SavedState) -> SavedState {
        let identity = |state: &SavedState, name: &str| state.0.get(&format!("{name}{IDENTITY}")).cloned();
        let of_other_group = |name: &str| match (identity(&self, name), identity(&earlier, name)) {
            (Some(now), Some(then)) => now != then,
            _ => false,
        };
        let same = |name: &str| !of_other_group(name.strip_suffix(IDENTITY).unwrap_or(name));
        let kept: Vec<(String, String)> = earlier
            .0
            .iter()
            .filter(|(name, _)| same(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        self.0.extend(kept);
        self
    }
}

/// One value that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The group.
    pub group: GroupId,
    /// The resource.
    pub resource: Resource,
    /// The value on the scale of the file or call: a weight, a quantum in bytes, or bytes of memory.
    pub value: u64,
}

/// A mechanism that divides resources among groups by weights.
///
/// A group is [admitted](Enforcer::admit) once and given [targets](Enforcer::apply) at each update. At the end it is either
/// [dismissed](Enforcer::dismiss), because it no longer exists, or [restored](Enforcer::restore).
pub trait Enforcer: Send {
    /// Returns the name for reports and for the keys of saved states.
    fn name(&self) -> &'static str;

    /// Returns the resources that it can divide on this machine. [`Targets`] of other resources are ignored.
    fn resources(&self) -> &[Resource];

    /// Admits a group and returns its present settings. Writes nothing.
    ///
    /// # Errors
    /// Returns an error if the group does not exist or cannot be read.
    fn admit(&mut self, id: GroupId, group: &Group) -> Result<SavedState, KernelError>;

    /// Sets the targets of a group and appends what was written to `changes`. A value that equals the last one on the
    /// kernel's scale is not written.
    ///
    /// # Errors
    /// Returns [`KernelError::Gone`] if the group no longer exists, and [`KernelError::Withdrawn`] if a resource can no
    /// longer be divided. The other values have been written.
    fn apply(&mut self, id: GroupId, targets: &Targets, changes: &mut Vec<Change>) -> Result<(), KernelError>;

    /// Sends what [`apply`](Enforcer::apply) collected, if the enforcer batches its writes.
    ///
    /// # Errors
    /// As [`apply`](Enforcer::apply).
    fn flush(&mut self) -> Result<(), KernelError> {
        Ok(())
    }

    /// Releases a group without writing. Does nothing if it was not admitted.
    fn dismiss(&mut self, id: GroupId);

    /// Restores the saved settings of a group, which need not be admitted. Succeeds if the group no longer exists.
    ///
    /// # Errors
    /// Returns the first setting that could not be restored. The others have been.
    fn restore(&mut self, group: &Group, saved: &SavedState) -> Result<(), KernelError>;

    /// Restores what is left of a group that no longer exists in the main hierarchy, in others where the same group still does.
    /// Does nothing for an enforcer whose settings end with the group.
    ///
    /// # Errors
    /// As [`restore`](Enforcer::restore).
    fn restore_remains(&mut self, _group: &Group, _saved: &SavedState) -> Result<(), KernelError> {
        Ok(())
    }
}
