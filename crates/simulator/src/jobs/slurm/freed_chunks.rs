//! How many chunks of a size fit on each node now, and how many more when each of its jobs has ended.
//!
//! A run of backfill tests dozens of jobs, and there is a run after nearly every end of a job, but between two runs little
//! changes: so this is kept, and only the nodes are computed anew whose jobs have changed.

use smallvec::SmallVec;

use super::super::kind::Kind;
use super::super::machine_state::Placements;
use super::choice::{Candidate, choose};
use super::engine::Engine;
use super::node_set::NodeSet;

/// What is free on the nodes for jobs of equal chunks.
pub(super) struct FreedChunks {
    /// By node: how many chunks fit now.
    now: Vec<u32>,
    /// Nodes on which a chunk fits now.
    with_room: NodeSet,
    /// By node: what the end of each of its jobs adds, in the order of their ends.
    added: Vec<SmallVec<[Added; 1]>>,
    /// How many changes of the nodes' jobs are in this; `None` if it is not computed yet.
    seen: Option<u64>,
}

/// What the end of a job adds on a node.
#[derive(Clone, Copy)]
pub(super) struct Added {
    pub(super) slot: u32,
    pub(super) chunks: u32,
    pub(super) processors: u64,
}

impl FreedChunks {
    pub(super) fn new(nodes: usize) -> FreedChunks {
        FreedChunks {
            now: vec![0; nodes],
            with_room: NodeSet::empty(nodes),
            added: vec![SmallVec::new(); nodes],
            seen: None,
        }
    }

    /// Computes anew what has changed.
    pub(super) fn update(&mut self, engine: &Engine<'_>, kind: &Kind, now: u64) {
        let jobs = &engine.jobs_on_nodes;
        if self.seen == Some(jobs.changes()) {
            return;
        }
        let changed = self.seen.and_then(|seen| jobs.changed_since(seen));
        let changed = changed.unwrap_or_else(|| NodeSet::all(engine.nodes.len()));
        changed.iter().for_each(|node| self.update_node(engine, kind, now, node));
        self.seen = Some(jobs.changes());
    }

    fn update_node(&mut self, engine: &Engine<'_>, kind: &Kind, now: u64, node: u32) {
        let nodes = &engine.nodes;
        let mut chunks = nodes.any_chunks_on(kind, node);
        let mut processors = nodes.processors_on(node);
        self.now[node as usize] = chunks;
        match chunks > 0 {
            true => self.with_room.insert(node),
            false => self.with_room.remove(node),
        }
        let added = &mut self.added[node as usize];
        added.clear();
        added.extend(engine.jobs_on_nodes.on(node).iter().map(|&(slot, chunks)| Added { slot, chunks, processors: 0 }));
        if added.len() > 1 {
            added.sort_by_cached_key(|job| engine.expected_end(job.slot, now));
        }
        let mut free: SmallVec<[u64; 4]> = SmallVec::from_slice(nodes.free_on(node));
        let mut owed: SmallVec<[u64; 4]> = SmallVec::from_slice(nodes.owed_on(node));
        let mut left = nodes.jobs_on(node);
        // Their own chunks become those that they leave to others.
        for job in added {
            left -= 1;
            let own = engine.kind(engine.running[job.slot as usize].row);
            nodes.held(own, node, job.chunks, |resource, amount| free[resource] += amount);
            for (owed, free) in owed.iter_mut().zip(&mut free) {
                let settled = (*owed).min(*free);
                (*owed, *free) = (*owed - settled, *free - settled);
            }
            let (chunks_then, processors_then) = (nodes.chunks_in_free(kind, &free, left), free[nodes.processors]);
            (job.chunks, job.processors) = (chunks_then - chunks, processors_then - processors);
            (chunks, processors) = (chunks_then, processors_then);
        }
    }

    /// Whether a job fits on these nodes now.
    fn fits_now(&self, kind: &Kind, nodes: &NodeSet) -> bool {
        let mut chunks = 0;
        nodes.iter_both(&self.with_room).any(|node| {
            chunks += u64::from(self.now[node as usize]);
            chunks >= u64::from(kind.copies)
        })
    }

    /// How many chunks fit on these nodes now.
    pub(super) fn now_on(&self, nodes: &NodeSet) -> u64 {
        nodes.iter_both(&self.with_room).map(|node| u64::from(self.now[node as usize])).sum()
    }

    /// How many chunks fit on a node now.
    pub(super) fn now(&self, node: u32) -> u32 {
        self.now[node as usize]
    }

    /// Nodes on which a chunk fits now.
    pub(super) fn with_room(&self) -> &NodeSet {
        &self.with_room
    }

    /// On which of these nodes Slurm puts a job now, if it fits.
    pub(super) fn choose_now(&self, engine: &Engine<'_>, kind: &Kind, nodes: &NodeSet) -> Option<Placements> {
        if !self.fits_now(kind, nodes) {
            return None;
        }
        let candidate = |node: u32| Candidate {
            node,
            chunks: self.now(node),
            processors: engine.nodes.processors_on(node),
            weight: 0,
        };
        choose(kind, nodes.iter_both(&self.with_room), candidate, engine.nodes.least_loaded)
    }

    /// What the end of each job of a node adds, in the order of their ends.
    pub(super) fn added(&self, node: u32) -> &[Added] {
        &self.added[node as usize]
    }
}
