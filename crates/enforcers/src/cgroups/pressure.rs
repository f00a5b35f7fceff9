//! How long a group waited for what it wanted (PSI, pressure stall information).

/// Time in which tasks stood still, since the group was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stall {
    /// Microseconds in which at least one task waited.
    pub some_us: u64,
    /// Microseconds in which all tasks that were not idle waited. 0 where the kernel does not say.
    pub full_us: u64,
}

impl Stall {
    /// From the text of a `.pressure` file, or of one in `/proc/pressure`.
    pub fn parse(text: &[u8]) -> Option<Stall> {
        let (some_us, full_us) = crate::cgroups::counters::pressure(text)?;
        Some(Stall { some_us, full_us: full_us.unwrap_or(0) })
    }
}

/// What a group waited for. `None` where the kernel does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// Processors.
    pub cpu: Option<Stall>,
    /// Memory.
    pub memory: Option<Stall>,
    /// Disks.
    pub disk: Option<Stall>,
}

impl Pressure {
    /// With what `other` says and this does not.
    #[must_use]
    pub fn or(self, other: Pressure) -> Pressure {
        Pressure { cpu: self.cpu.or(other.cpu), memory: self.memory.or(other.memory), disk: self.disk.or(other.disk) }
    }
}
