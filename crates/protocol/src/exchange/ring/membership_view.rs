//! The membership of the ring: its members, their order, and the leader.

use std::fmt;

/// A member of the ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The name of the node.
    pub node: String,
    /// The number of its incarnation.
    pub incarnation: u64,
    /// The address for messages to it, in the notation of the transport.
    pub address: String,
}

/// Identifies a view. No two views have the same identifier.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ViewId {
    /// A number larger than that of any view known to the leader when it created this one.
    pub epoch: u64,
    /// The node that created the view.
    pub leader: String,
    /// The incarnation of the leader.
    pub incarnation: u64,
}

impl ViewId {
    /// Returns whether members of `other` should join this view: it has the higher epoch, then the smaller leader name, then
    /// the later incarnation of the leader.
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

/// The members of the ring in ascending order of their names. Each sends to the next, the last to the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The identifier of the view.
    pub id: ViewId,
    /// The members in ring order.
    pub members: Vec<Member>,
}

impl View {
    /// Sorts the members; of two with the same name the later incarnation stays.
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

    /// Returns the members after this position, around the ring, without the one at the position.
    pub(crate) fn after(&self, position: usize) -> impl Iterator<Item = &Member> {
        let (before, after) = self.members.split_at(position.min(self.members.len()));
        after.iter().skip(1).chain(before)
    }
}
