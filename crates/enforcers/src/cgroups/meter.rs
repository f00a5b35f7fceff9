//! The interface to everything that measures groups.

use crate::cgroups::{Group, GroupId, KernelError, Pressure, Usage};

/// Reads the resource use of groups.
pub trait Meter: Send {
    /// Admits a group, so that reading it is cheap from now on.
    ///
    /// # Errors
    /// Returns an error if the group does not exist or cannot be read.
    fn admit(&mut self, id: GroupId, group: &Group) -> Result<(), KernelError>;

    /// Reads what the group has used up to now.
    ///
    /// # Errors
    /// Returns [`KernelError::Gone`] if the group no longer exists, and [`KernelError::Withdrawn`] once if one of its
    /// counters is no longer available; later calls return the other counters without it.
    fn read(&mut self, id: GroupId) -> Result<Usage, KernelError>;

    /// Reads how long the group has waited up to now. The default implementation returns no values.
    ///
    /// # Errors
    /// As [`read`](Meter::read).
    fn pressure(&mut self, _: GroupId) -> Result<Pressure, KernelError> {
        Ok(Pressure::default())
    }

    /// Releases a group. Does nothing if it was not admitted.
    fn dismiss(&mut self, id: GroupId);
}
