//! How many chunks of a size fit on each node now, and how many more when each of its jobs has ended.
//!
//! A run of backfill tests dozens of jobs, and there is a run after nearly every end of a job, but between two runs little
//! changes: so this is kept, and only the nodes are computed anew whose jobs have changed.

use smallvec::SmallVec;

use super::super::kind::Kind;
use super::super::placements::Placements;
use super::choice::{Choice, Stretch};
use super::engine::Engine;
use super::node_set::{NodeSet, SparseNodes, bits, words};

/// What is free on the nodes for jobs of equal chunks.
pub(super) struct FreedChunks {
    /// By node: how many chunks fit now.
    now: Vec<u32>,
    /// Nodes on which a chunk fits now.
    fitting: NodeSet,
    /// By node: what the end of each of its jobs adds, in the order of their ends.
    added: Vec<SmallVec<[Added; 1]>>,
    /// The most frequent of what empty nodes hold: how many chunks, and their free processors.
    usual: (u32, u64),
    /// The weight of the nodes that hold so much.
    weight: u32,
    /// Nodes of that weight that hold so much when they are empty. None if jobs hold more than there is, as beside suspended ones.
    alike: NodeSet,
    /// Those of them that are empty.
    empty: NodeSet,
    /// Those of them on which no chunk fits beside their only job.
    filled: NodeSet,
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
    pub(super) fn new(engine: &Engine<'_>, kind: &Kind) -> FreedChunks {
        let nodes = &engine.nodes;
        let none = NodeSet::empty(nodes.len());
        let (usual, weight, alike) = nodes.alike_when_empty(kind);
        FreedChunks {
            now: vec![0; nodes.len()],
            fitting: none.clone(),
            added: vec![SmallVec::new(); nodes.len()],
            usual,
            weight,
            alike,
            empty: none.clone(),
            filled: none,
            seen: None,
        }
    }

    /// Computes anew what has changed.
    pub(super) fn update(&mut self, engine: &Engine<'_>, kind: &Kind) {
        let jobs = &engine.jobs_on_nodes;
        if self.seen == Some(jobs.changes()) {
            return;
        }
        let changed = self.seen.and_then(|seen| jobs.changed_since(seen));
        let changed = changed.unwrap_or_else(|| NodeSet::all(engine.nodes.len()));
        changed.iter().for_each(|node| self.update_node(engine, kind, node));
        self.seen = Some(jobs.changes());
    }

    fn update_node(&mut self, engine: &Engine<'_>, kind: &Kind, node: u32) {
        let nodes = &engine.nodes;
        let jobs = engine.jobs_on_nodes.on(node);
        let mut chunks = nodes.any_chunks_on(kind, node);
        let mut processors = nodes.processors_on(node);
        let is_alike = self.alike.contains(node);
        self.now[node as usize] = chunks;
        self.fitting.set(node, chunks > 0);
        self.empty.set(node, is_alike && jobs.is_empty());
        self.filled.set(node, is_alike && jobs.len() == 1 && chunks == 0);
        let added = &mut self.added[node as usize];
        added.clear();
        if is_alike && let [] | [_] = jobs {
            let all = |&(slot, _): &(u32, u32)| Added {
                slot,
                chunks: self.usual.0 - chunks,
                processors: self.usual.1 - processors,
            };
            added.extend(jobs.first().map(all));
            return;
        }
        added.extend(jobs.iter().map(|&(slot, chunks)| Added { slot, chunks, processors: 0 }));
        if added.len() > 1 {
            added.sort_by_cached_key(|job| engine.end_of(job.slot));
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

    /// How many chunks fit on these nodes now.
    pub(super) fn now_on(&self, nodes: &NodeSet) -> u64 {
        let each = words([nodes, &self.fitting, &self.empty]).enumerate();
        each.map(|(at, [nodes, fitting, empty])| {
            let others = bits(at, nodes & fitting & !empty);
            self.of_usual(nodes & empty) + others.map(|node| u64::from(self.now[node as usize])).sum::<u64>()
        })
        .sum()
    }

    /// How many chunks so many nodes hold that are like most when they are empty.
    fn of_usual(&self, word: u64) -> u64 {
        u64::from(word.count_ones()) * u64::from(self.usual.0)
    }

    /// How many chunks the end of a job adds on these nodes, after the ends before it; `None` if it has none of them.
    #[inline]
    pub(super) fn added_by(&self, slot: u32, held: &SparseNodes, nodes: &NodeSet) -> Option<u64> {
        let (mut met, mut chunks) = (false, 0);
        for (at, word, filled) in held.words_of(nodes, &self.filled) {
            met = true;
            chunks += self.of_usual(word & filled);
            let others = bits(at, word & !filled);
            let own = |node: u32| self.added(node).iter().find(|added| added.slot == slot);
            chunks += others.filter_map(own).map(|own| u64::from(own.chunks)).sum::<u64>();
        }
        met.then_some(chunks)
    }

    /// On which of these nodes Slurm puts a job now, if it fits.
    pub(super) fn choose_now(&self, engine: &Engine<'_>, kind: &Kind, nodes: &NodeSet) -> Option<Placements> {
        let mut choice = Choice::default();
        for (at, [nodes, fitting, empty]) in words([nodes, &self.fitting, &self.empty]).enumerate() {
            let now = |node: u32| {
                (self.now[node as usize], engine.nodes.processors_on(node), engine.nodes.weight_of(node, false))
            };
            self.add_word(&mut choice, (at, nodes & fitting, empty), u64::from(self.weight), now);
        }
        choice.choose(kind, &engine.nodes)
    }

    /// On which of these nodes Slurm puts a job after the ends that `has_ended` tells by slot, which had the nodes `ended`.
    /// `busy_first`: nodes with jobs are taken first.
    pub(super) fn choose_after(
        &self,
        engine: &Engine<'_>,
        kind: &Kind,
        nodes: &NodeSet,
        (ended, has_ended): (&NodeSet, impl Fn(u32) -> bool),
        busy_first: bool,
    ) -> Option<Placements> {
        let mut choice = Choice::default();
        let sets = [nodes, ended, &self.fitting, &self.empty, &self.filled];
        for (at, [nodes, ended, fitting, empty, filled]) in words(sets).enumerate() {
            let then = |node: u32| {
                let (mut chunks, mut processors) = (self.now[node as usize], engine.nodes.processors_on(node));
                let mut jobs = engine.nodes.jobs_on(node);
                let added = if ended >> (node % 64) & 1 == 1 { self.added(node) } else { &[] };
                for added in added.iter().filter(|added| has_ended(added.slot)) {
                    chunks += added.chunks;
                    processors += added.processors;
                    jobs -= 1;
                }
                (chunks, processors, engine.nodes.weight_of(node, busy_first && jobs == 0))
            };
            let are_empty = empty | filled & ended;
            let of_empty = u64::from(busy_first) << 32 | u64::from(self.weight);
            self.add_word(&mut choice, (at, nodes & (fitting | ended), are_empty), of_empty, then);
        }
        choice.choose(kind, &engine.nodes)
    }

    /// Adds nodes of a word: those that are like most and are empty together, others each with its chunks, processors and
    /// weight.
    #[inline]
    fn add_word(
        &self,
        choice: &mut Choice,
        (at, mut word, empty): (usize, u64, u64),
        weight_of_empty: u64,
        of: impl Fn(u32) -> (u32, u64, u64),
    ) {
        let (chunks, processors) = self.usual;
        while word != 0 {
            let first = word.trailing_zeros();
            let node = at as u32 * 64 + first;
            let len = ((word & empty) >> first).trailing_ones();
            if len == 0 {
                let (chunks, processors, weight) = of(node);
                choice.add(Stretch::of(node, chunks, processors, weight));
                word &= word - 1;
                continue;
            }
            choice.add(Stretch { first: node, end: node + len, chunks, processors, weight: weight_of_empty });
            word &= u64::MAX.checked_shl(first + len).unwrap_or(0);
        }
    }

    /// What the end of each job of a node adds, in the order of their ends.
    pub(super) fn added(&self, node: u32) -> &[Added] {
        &self.added[node as usize]
    }
}
