//! Who is weighed.

/// What the kernel weighs as one against its siblings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Group {
    /// Where it is below the root of each hierarchy of control groups, without a leading slash:
    /// `machine.slice/machine-qemu\x2d1\x2da.scope`. Never empty: the root is nobody's.
    pub path: String,
    /// The unit of systemd that it is, if systemd is to write its attributes.
    pub unit: Option<String>,
    /// Network devices that carry its traffic and nobody else's, as the taps of a virtual machine.
    pub devices: Vec<String>,
}

/// The path of what a group of this path is weighed within; empty at the top.
pub fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// A group's number for as long as it is there; numbers are used again after [`dismiss`](crate::cgroups::Enforcer::dismiss).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupId(pub u32);
