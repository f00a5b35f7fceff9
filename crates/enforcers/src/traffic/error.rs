//! Errors of traffic control.

use std::io;

use crate::cgroups::{KernelError, Resource};
use thiserror::Error;

/// Why the traffic of a device cannot be divided.
#[derive(Debug, Error)]
pub enum TrafficError {
    /// There is no such device.
    #[error("there is no network device {0:?}")]
    NoDevice(String),
    /// The device has a queueing discipline that another program configured, and the settings do not allow replacing
    /// it.
    #[error(
        "{device} has a queueing discipline that another program configured ({found}); it is replaced only if the configuration permits it"
    )]
    Foreign {
        /// The name of the device.
        device: String,
        /// The queueing discipline that was found, such as `fq_codel 8001:`.
        found: String,
    },
    /// Another live process owns the rules.
    #[error("the nftables table {table:?} belongs to another process (netlink port {port})")]
    Taken {
        /// The name of the table.
        table: &'static str,
        /// The netlink port of the process, in most cases its process id.
        port: u32,
    },
    /// The device does not report its speed.
    #[error("{0} does not report its speed, and the configuration does not state it")]
    NoSpeed(String),
    /// The link is too slow or too fast to be divided.
    #[error("a link of {0} bytes a second cannot be divided; expected 10000 to 1e12")]
    Speed(u64),
    /// All class numbers are in use.
    #[error("a device can have {0} classes at most")]
    Full(usize),
    /// The kernel refused a request.
    #[error("{what}: {source}")]
    Netlink {
        /// The request.
        what: &'static str,
        /// The reason.
        source: io::Error,
    },
}

impl TrafficError {
    /// Converts to the error type that all enforcers share. The network of `group` can no longer be divided, unless
    /// only this call failed.
    pub(crate) fn into_kernel_error(self, group: &str) -> KernelError {
        match self {
            TrafficError::Netlink { what, source } if !is_permanent(&source) => {
                KernelError::Io { what: what.into(), source }
            }
            other => {
                KernelError::Withdrawn { resource: Resource::Network, group: group.into(), why: other.to_string() }
            }
        }
    }
}

/// Returns whether a retry would fail too: the object no longer exists, the right or the kernel feature is missing,
/// or another program's object is in its place.
fn is_permanent(source: &io::Error) -> bool {
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
