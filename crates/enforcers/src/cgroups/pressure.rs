//! Pressure stall information (PSI): how long groups waited for resources.

use crate::cgroups::PerResource;

/// The time that tasks of a group were stalled, since the group was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stall {
    /// Microseconds in which at least one task waited.
    pub some_us: u64,
    /// Microseconds in which all non-idle tasks waited at once. 0 where the kernel does not count it.
    pub full_us: u64,
}

impl Stall {
    /// Parses a `.pressure` file, or one of `/proc/pressure`. Returns `None` if the text has another form.
    pub fn parse(text: &[u8]) -> Option<Stall> {
        let (some_us, full_us) = crate::cgroups::parse_counters::pressure(text)?;
        Some(Stall { some_us, full_us: full_us.unwrap_or(0) })
    }
}

/// The stall times of a group. `None` where the kernel does not count them; it never does for the network.
pub type Pressure = PerResource<Option<Stall>>;
