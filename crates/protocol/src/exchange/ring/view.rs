//! Who is in the ring, in which order, and under whom.

use std::fmt;

/// A node of the ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub node: String,
    /// Which life of it.
    pub incarnation: u64,
    /// Where its messages go; what that means is the transport's matter.
    pub address: String,
}

/// Which view: no two views have the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ViewId {
    /// Larger than that of any view its leader knew.
    pub epoch: u64,
    /// Who made it.
    pub leader: String,
    /// Which life of the leader.
    pub incarnation: u64,
}

impl ViewId {
    /// Whether whoever is in `other` should rather be in this: the higher epoch, then the leader whose name
    /// is less, then its later life.
    #[must_use]
    pub fn supersedes(&self, other: &ViewId) -> bool {
        (self.epoch, &other.leader, self.incarnation) > (other.epoch, &self.leader, other.incarnation)
    }
}

impl fmt::Display for ViewId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.epoch, self.leader)
    }
}

/// The ring: its members ascend by name, and each sends to the next, the last to the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Which.
    pub id: ViewId,
    /// In the order of the ring.
    pub members: Vec<Member>,
}

impl View {
    /// Puts the members into order; of two of the same name the later life stays.
    pub(crate) fn new(id: ViewId, mut members: Vec<Member>) -> View {
        members.sort_by(|a, b| a.node.cmp(&b.node).then(b.incarnation.cmp(&a.incarnation)));
        members.dedup_by(|a, b| a.node == b.node);
        View { id, members }
    }

    pub(crate) fn position(&self, node: &str) -> Option<usize> {
        self.members.binary_search_by(|member| member.node.as_str().cmp(node)).ok()
    }

    pub(crate) fn member(&self, node: &str) -> Option<&Member> {
        self.position(node).and_then(|at| self.members.get(at))
    }

    pub(crate) fn leader(&self) -> Option<&Member> {
        self.member(&self.id.leader)
    }

    /// The members after this position, around the ring, without it.
    pub(crate) fn after(&self, position: usize) -> impl Iterator<Item = &Member> {
        let (before, after) = self.members.split_at(position.min(self.members.len()));
        after.iter().skip(1).chain(before)
    }
}
