//! The groups that are measured and given weights.

/// A control group: what the kernel schedules as one unit against its siblings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Group {
    /// The path below the root of each cgroup hierarchy, without a leading slash:
    /// `machine.slice/machine-qemu\x2d1\x2da.scope`. Never empty: the root belongs to no user.
    pub path: String,
    /// The systemd unit of the group, if systemd is to write its attributes.
    pub unit: Option<String>,
    /// Network devices that carry the traffic of this group alone, such as the TAP devices of a virtual machine.
    pub devices: Vec<String>,
}

/// Returns the path of the parent group; empty at the top level.
pub fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// Identifies an admitted group. A number may be reused after [`dismiss`](crate::cgroups::Enforcer::dismiss).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupId(pub u32);
