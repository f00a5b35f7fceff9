//! What groups have used.

use crate::cgroups::{Group, GroupId, KernelError, Pressure};

/// What a group has used. `None` where the kernel does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Nanoseconds on processors, since the group was made.
    pub cpu_ns: Option<u64>,
    /// Bytes of memory held now.
    pub memory_bytes: Option<u64>,
    /// Bytes read from and written to disks, since the group was made.
    pub disk_bytes: Option<u64>,
    /// Bytes sent and received, since the group was made.
    pub network_bytes: Option<u64>,
}

impl Usage {
    /// With what `other` says and this does not.
    #[must_use]
    pub fn or(self, other: Usage) -> Usage {
        Usage {
            cpu_ns: self.cpu_ns.or(other.cpu_ns),
            memory_bytes: self.memory_bytes.or(other.memory_bytes),
            disk_bytes: self.disk_bytes.or(other.disk_bytes),
            network_bytes: self.network_bytes.or(other.network_bytes),
        }
    }
}

/// Reads what groups have used.
pub trait Meter: Send {
    /// Takes a group in, so that reading it is cheap from now on.
    ///
    /// # Errors
    /// If the group is not there.
    fn admit(&mut self, id: GroupId, group: &Group) -> Result<(), KernelError>;

    /// What it has used up to now.
    ///
    /// # Errors
    /// [`KernelError::Gone`] if it is not there any more. [`KernelError::Withdrawn`] once if one of the numbers
    /// is no longer to be had; after that the others are read without it.
    fn read(&mut self, id: GroupId) -> Result<Usage, KernelError>;

    /// How long it waited up to now; nothing if this meter cannot say.
    ///
    /// # Errors
    /// As [`read`](Meter::read).
    fn pressure(&mut self, _: GroupId) -> Result<Pressure, KernelError> {
        Ok(Pressure::default())
    }

    /// Lets go of it. Nothing happens if it was not admitted.
    fn dismiss(&mut self, id: GroupId);
}
