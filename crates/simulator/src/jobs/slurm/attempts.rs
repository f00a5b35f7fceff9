//! In which partitions a job is tried, and on which nodes.

use evenhand_model::Time;

use super::super::kind::Kind;
use super::engine::Engine;
use super::node_set::NodeSet;
use super::nodes::Nodes;

impl Engine<'_> {
    /// The nodes without an outage on which a chunk of a kind fits when they are empty.
    pub(super) fn able_now(&self, kind: usize) -> NodeSet {
        let mut nodes = self.able[kind].clone();
        nodes.keep(self.closed.up());
        nodes
    }

    /// The nodes on which a job may start now in the partition at a place of its list, whatever is free on them.
    pub(super) fn open_now(&self, now: Time, row: u32, place: usize) -> NodeSet {
        let mut nodes = self.attempt(row, place).1.clone();
        nodes.keep(self.closed.up());
        let latest = now.nanos().saturating_add(self.planned_length(row));
        self.closed.keep_open(row, now.nanos(), latest, &mut nodes);
        nodes
    }

    /// The number of the array of which a job is a task.
    pub(super) fn array_of(&self, row: u32) -> Option<u32> {
        self.jobs.limits.arrays.number_of(self.workload, row)
    }

    /// In how many partitions a job is tried, one after the other.
    pub(super) fn attempts_of(&self, row: u32) -> usize {
        self.attempts[self.jobs.kind[row as usize] as usize].len().max(1)
    }

    /// The partition in which a job is tried at a place of its list, and the nodes on which it is.
    pub(super) fn attempt(&self, row: u32, at: usize) -> (usize, &NodeSet) {
        let kind = self.jobs.kind[row as usize] as usize;
        match self.attempts[kind].get(at) {
            Some((partition, able)) => (*partition, able),
            None => (partition_of(&self.jobs.kinds[kind]), &self.able[kind]),
        }
    }

    /// Whether partitions of two jobs share nodes.
    pub(super) fn share_nodes(&self, a: u32, b: u32) -> bool {
        let of = |row: u32| (0..self.attempts_of(row)).map(move |at| &self.partitions[self.attempt(row, at).0]);
        of(a).any(|a| of(b).any(|b| a.meets(b)))
    }
}

/// The partition of jobs of a kind, of several the first; 0 for jobs in none.
fn partition_of(kind: &Kind) -> usize {
    kind.queue.map_or(0, |q| usize::from(q) + 1)
}

/// The partitions in which a kind is tried that names several, with their nodes.
pub(super) fn attempts(
    kind: &Kind,
    able: &NodeSet,
    partitions: &[NodeSet],
    nodes: &Nodes<'_>,
) -> Vec<(usize, NodeSet)> {
    if kind.other_queues.is_empty() {
        return Vec::new();
    }
    let all = kind.queue.iter().chain(&kind.other_queues).map(|queue| usize::from(*queue) + 1);
    let on = |partition: usize| {
        let mut own = able.clone();
        own.keep(&partitions[partition]);
        nodes.hold_when_empty(kind, &own).then_some((partition, own))
    };
    all.filter_map(on).collect()
}
