//! What every way of weighing groups looks like from outside.

use std::collections::BTreeMap;

use crate::cgroups::{Control, Group, GroupId, KernelError, Levels};

/// What a group had before anything was written, in the enforcer's own words: so that it can be kept in a
/// file and put back by another process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Before(pub BTreeMap<String, String>);

/// Something that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Of whom.
    pub group: GroupId,
    /// Of what.
    pub control: Control,
    /// On the scale of the file or call: a weight, a quantum, or bytes.
    pub value: u64,
}

/// One way of giving groups weights.
///
/// A group is [admitted](Enforcer::admit) once, then [applied](Enforcer::apply) to at each update, and at the
/// end either [dismissed](Enforcer::dismiss) because it is gone, or [restored](Enforcer::restore).
pub trait Enforcer: Send {
    /// What reports call it.
    fn name(&self) -> &'static str;

    /// What it can divide here. What [`Levels`] say of anything else is left alone.
    fn controls(&self) -> &[Control];

    /// Takes a group in. Nothing is written; the answer is what it has now.
    ///
    /// # Errors
    /// If the group is not there or cannot be read.
    fn admit(&mut self, id: GroupId, group: &Group) -> Result<Before, KernelError>;

    /// Gives the group these levels, and adds what was really written to `changes`: nothing where the value
    /// on the kernel's own scale is what was written last.
    ///
    /// # Errors
    /// [`KernelError::Gone`] if the group is not there any more, [`KernelError::Withdrawn`] if this can no
    /// longer be divided. What could be written has been.
    fn apply(&mut self, id: GroupId, levels: &Levels, changes: &mut Vec<Change>) -> Result<(), KernelError>;

    /// Sends what [`apply`](Enforcer::apply) only collected, for those that collect.
    ///
    /// # Errors
    /// As [`apply`](Enforcer::apply).
    fn flush(&mut self) -> Result<(), KernelError> {
        Ok(())
    }

    /// Lets go of a group without writing. Nothing happens if it was not admitted.
    fn dismiss(&mut self, id: GroupId);

    /// Puts back what the group had; it need not be admitted. Done if the group is not there any more.
    ///
    /// # Errors
    /// If something could not be put back. The rest has been.
    fn restore(&mut self, group: &Group, before: &Before) -> Result<(), KernelError>;
}
