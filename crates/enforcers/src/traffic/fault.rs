//! What can go wrong between here and the kernel's network.

use std::io;

use crate::cgroups::{Control, KernelError};
use thiserror::Error;

/// What went wrong.
#[derive(Debug, Error)]
pub enum TrafficError {
    /// The device is not there.
    #[error("there is no network device {0:?}")]
    NoDevice(String),
    /// Somebody set up a queue on the device, and the settings do not allow to replace it.
    #[error("{device} has a queue that somebody set up ({found}); it is replaced only where the configuration says so")]
    Foreign {
        /// The device.
        device: String,
        /// What stands there, as `fq_codel 8001:`.
        found: String,
    },
    /// Another process that is alive has the rules.
    #[error("the nftables table {table:?} belongs to another process (netlink port {port})")]
    Taken {
        /// The table.
        table: &'static str,
        /// The process's number in netlink, in most cases its process id.
        port: u32,
    },
    /// The device does not say how fast it is.
    #[error("{0} does not say how fast it is, and the configuration does not either")]
    NoSpeed(String),
    /// A link that is too slow or too fast to be divided.
    #[error("a link of {0} bytes a second cannot be divided; expected 10000 to 1e12")]
    Speed(u64),
    /// There is no more room for classes.
    #[error("{0} classes are all that a device can have")]
    Full(usize),
    /// The kernel refused.
    #[error("{what}: {source}")]
    Netlink {
        /// What was asked of it.
        what: &'static str,
        /// How it refused.
        source: io::Error,
    },
}

impl TrafficError {
    /// In the words that all enforcers share: for `group` the network can no longer be divided, unless it is
    /// a fault of the call alone.
    pub(crate) fn of(self, group: &str) -> KernelError {
        match self {
            TrafficError::Netlink { what, source } if !withdrawn(&source) => {
                KernelError::Io { what: what.into(), source }
            }
            other => KernelError::Withdrawn { control: Control::Network, group: group.into(), why: other.to_string() },
        }
    }
}

/// Refusals that will not go away by asking again: no such object any more, no right, no such thing in this kernel,
/// or somebody else's thing in the place.
fn withdrawn(source: &io::Error) -> bool {
    use nix::errno::Errno;
    let errno = Errno::from_raw(source.raw_os_error().unwrap_or(0));
    matches!(
        errno,
        Errno::ENOENT
            | Errno::ENODEV
            | Errno::ENXIO
            | Errno::EPERM
            | Errno::EACCES
            | Errno::EOPNOTSUPP
            | Errno::EPROTONOSUPPORT
            | Errno::EEXIST
            | Errno::EINVAL
    )
}
