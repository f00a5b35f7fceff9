//! What is asked for.

use std::fmt;

/// What can be divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Control {
    /// Time on processors.
    Cpu,
    /// Memory that is not taken away while others have some to spare.
    Memory,
    /// Reading and writing of disks.
    Disk,
    /// Sending on a network.
    Network,
}

impl Control {
    /// All of them, in the order in which tables show them.
    pub const ALL: [Control; 4] = [Control::Cpu, Control::Memory, Control::Disk, Control::Network];

    /// The customary name of the resource: `cpu`, `mem`, `disk`, `net`.
    pub fn resource(self) -> &'static str {
        match self {
            Control::Cpu => "cpu",
            Control::Memory => "mem",
            Control::Disk => "disk",
            Control::Network => "net",
        }
    }
}

impl fmt::Display for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.resource())
    }
}

/// What a group is to have. `None` leaves that as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Levels {
    /// Its part of the processors in proportion to its siblings'. 1 is what a group has that nobody weighed.
    pub cpu: Option<f64>,
    /// Its part of the disks, likewise.
    pub disk: Option<f64>,
    /// Its part of what the machine sends, likewise.
    pub network: Option<f64>,
    /// Bytes of memory that are protected.
    pub memory: Option<u64>,
}

impl Levels {
    /// The same weight for all that is shared in time, and no word about memory.
    pub fn weight(weight: f64) -> Levels {
        Levels { cpu: Some(weight), disk: Some(weight), network: Some(weight), memory: None }
    }
}
