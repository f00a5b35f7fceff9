//! Which running jobs have chunks on which node, and on which nodes that has changed.

use super::super::placements::Placements;
use super::node_set::{NodeSet, SparseNodes};

/// So many changes a node are kept, on average.
const MOST_CHANGED: usize = 8;

/// The running jobs of each node. Jobs that complete and suspended ones are among them.
#[derive(Clone, Debug)]
pub(super) struct JobsOnNodes {
    /// By node: the slots of its jobs, and how many chunks each has there.
    jobs: Vec<Vec<(u32, u32)>>,
    /// By slot: the nodes of its job.
    nodes: Vec<SparseNodes>,
    /// The nodes of the last changes, in the order of time.
    changed: Vec<u32>,
    /// How many changes came before these.
    before: u64,
}

impl JobsOnNodes {
    pub(super) fn new(nodes: usize) -> JobsOnNodes {
        JobsOnNodes { jobs: vec![Vec::new(); nodes], nodes: Vec::new(), changed: Vec::new(), before: 0 }
    }

    pub(super) fn add(&mut self, slot: u32, held: &Placements) {
        for (node, chunks) in held.iter() {
            self.jobs[node as usize].push((slot, chunks));
        }
        if self.nodes.len() <= slot as usize {
            self.nodes.resize_with(slot as usize + 1, SparseNodes::default);
        }
        self.nodes[slot as usize].set(held.iter().map(|(node, _)| node));
        self.note_change(held);
    }

    pub(super) fn remove(&mut self, slot: u32, held: &Placements) {
        for (node, _) in held.iter() {
            self.jobs[node as usize].retain(|(other, _)| *other != slot);
        }
        self.note_change(held);
    }

    /// Notes that jobs have come to a job's nodes or have left them, or that its expected end has changed.
    pub(super) fn note_change(&mut self, held: &Placements) {
        if self.changed.len() > MOST_CHANGED * self.jobs.len() {
            self.before += self.changed.len() as u64;
            self.changed.clear();
        }
        self.changed.extend(held.iter().map(|(node, _)| node));
    }

    /// The slots of a node's jobs, and how many chunks each has there.
    pub(super) fn on(&self, node: u32) -> &[(u32, u32)] {
        &self.jobs[node as usize]
    }

    /// The nodes of the job of a slot.
    pub(super) fn of(&self, slot: u32) -> &SparseNodes {
        &self.nodes[slot as usize]
    }

    /// How many changes there have been.
    pub(super) fn changes(&self) -> u64 {
        self.before + self.changed.len() as u64
    }

    /// The nodes of the changes after so many; `None` if they are no longer known.
    pub(super) fn changed_since(&self, changes: u64) -> Option<NodeSet> {
        let changed = self.changed.get(changes.checked_sub(self.before)? as usize..)?;
        let mut nodes = NodeSet::empty(self.jobs.len());
        changed.iter().for_each(|node| nodes.insert(*node));
        Some(nodes)
    }
}
