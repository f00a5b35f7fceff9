//! The nodes' free amounts, and the choice of nodes for a job (select/cons_tres and select/linear).

use super::super::kind::{Kind, copies};
use super::super::machine_state::Placements;
use super::super::site::Site;
use super::node_set::NodeSet;

/// What is free on each node.
#[derive(Clone, Debug)]
pub(super) struct Nodes<'a> {
    pub(super) site: &'a Site,
    width: usize,
    free: Vec<u64>,
    /// How many jobs a node has.
    jobs: Vec<u32>,
    /// The resource that is processors, or else the first.
    processors: usize,
    /// Whether every job has whole nodes.
    whole: bool,
    /// Whether the least loaded nodes are chosen.
    least_loaded: bool,
}

/// A node on which some of the job fits.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    node: u32,
    /// How many chunks fit.
    chunks: u32,
    /// Its free processors.
    processors: u64,
}

/// Consecutive candidates of equal weight.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Nodes of a lower weight are taken first.
    weight: u8,
    from: usize,
    to: usize,
    chunks: u64,
    processors: u64,
}

impl<'a> Nodes<'a> {
    pub(super) fn new(site: &'a Site, width: usize, whole: bool, least_loaded: bool) -> Nodes<'a> {
        let free = site.groups.iter().flat_map(|g| (0..g.count).flat_map(|_| g.has.iter().copied())).collect();
        let processors = site.cpu.map_or(0, |(resource, _)| resource);
        Nodes { site, width, free, jobs: vec![0; site.len()], processors, whole, least_loaded }
    }

    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    #[inline]
    fn free_on(&self, node: u32) -> &[u64] {
        &self.free[node as usize * self.width..][..self.width]
    }

    /// What a job holds on a node.
    pub(super) fn held(&self, kind: &Kind, node: u32, chunks: u32, mut each: impl FnMut(usize, u64)) {
        match self.whole {
            true => self.site.groups[self.site.group_of(node)].has.iter().enumerate().for_each(|(r, a)| each(r, *a)),
            false => kind.chunk.iter().enumerate().for_each(|(r, c)| each(r, c * u64::from(chunks))),
        }
    }

    pub(super) fn take(&mut self, kind: &Kind, held: &Placements) {
        for (node, chunks) in held.iter() {
            self.jobs[node as usize] += 1;
            self.change(kind, node, chunks, |free, amount| free - amount);
        }
    }

    pub(super) fn give(&mut self, kind: &Kind, held: &Placements) {
        for (node, chunks) in held.iter() {
            self.give_on(kind, node, chunks);
        }
    }

    /// Gives back what a job holds on one of its nodes.
    pub(super) fn give_on(&mut self, kind: &Kind, node: u32, chunks: u32) {
        self.jobs[node as usize] -= 1;
        self.change(kind, node, chunks, |free, amount| free + amount);
    }

    fn change(&mut self, kind: &Kind, node: u32, chunks: u32, new: impl Fn(u64, u64) -> u64) {
        let at = node as usize * self.width;
        let site = self.site;
        match self.whole {
            true => {
                let has = &site.groups[site.group_of(node)].has;
                self.free[at..].iter_mut().zip(has).for_each(|(f, a)| *f = new(*f, *a));
            }
            false => {
                let amounts = kind.chunk.iter().map(|c| c * u64::from(chunks));
                self.free[at..].iter_mut().zip(amounts).for_each(|(f, a)| *f = new(*f, a));
            }
        }
    }

    /// The smallest number of nodes on which a job can run.
    pub(super) fn nodes_at_least(&self, kind: &Kind) -> usize {
        if kind.is_by_nodes { kind.copies as usize } else { 1 }
    }

    /// How many chunks of a job fit on a node now.
    #[inline]
    pub(super) fn chunks_on(&self, kind: &Kind, node: u32) -> u32 {
        if self.whole && self.jobs[node as usize] > 0 {
            return 0;
        }
        let most = if kind.is_by_nodes { 1 } else { kind.copies };
        copies(&kind.chunk, self.free_on(node)).min(u128::from(most)) as u32
    }

    /// How many chunks fit on these nodes, counted up to the number of chunks that the job has.
    pub(super) fn chunks_in(&self, kind: &Kind, nodes: &NodeSet) -> u64 {
        let enough = u64::from(kind.copies);
        let mut found = 0;
        for node in nodes.iter() {
            found += u64::from(self.chunks_on(kind, node));
            if found >= enough {
                break;
            }
        }
        found
    }

    /// Returns on which of these nodes Slurm puts a job, if it fits.
    ///
    /// Nodes are taken from runs of consecutive candidates: of the sufficient runs the one with the fewest free
    /// processors, or if none suffices the one with the most. In a run nodes are taken in their order, but the only or
    /// last one is the node with the fewest free processors. `prefer_busy`: nodes in use first.
    pub(super) fn choose(&self, kind: &Kind, nodes: &NodeSet, prefer_busy: bool) -> Option<Placements> {
        let mut candidates: Vec<Candidate> = Vec::new();
        let mut runs: Vec<Run> = Vec::new();
        let mut all = 0u64;
        for node in nodes.iter() {
            let chunks = self.chunks_on(kind, node);
            if chunks == 0 {
                continue;
            }
            let processors = self.free_on(node)[self.processors];
            let weight = u8::from(prefer_busy && self.jobs[node as usize] == 0);
            all += u64::from(chunks);
            let at = candidates.len();
            let follows = candidates.last().is_some_and(|last| last.node + 1 == node);
            candidates.push(Candidate { node, chunks, processors });
            match runs.last_mut().filter(|run| follows && run.weight == weight) {
                Some(run) => {
                    run.to = at + 1;
                    run.chunks += u64::from(chunks);
                    run.processors += processors;
                }
                None => runs.push(Run { weight, from: at, to: at + 1, chunks: u64::from(chunks), processors }),
            }
        }
        if all < u64::from(kind.copies) {
            return None;
        }
        let mut held = Placements::default();
        let mut left = kind.copies;
        if self.least_loaded {
            candidates.sort_by_key(|c| std::cmp::Reverse(c.processors));
            for c in candidates {
                let chunks = c.chunks.min(left);
                held.add(c.node, chunks);
                left -= chunks;
                if left == 0 {
                    break;
                }
            }
            return Some(held);
        }
        let apart = kind.is_by_nodes;
        while left > 0 {
            let key = |run: &Run| match run.chunks >= u64::from(left) {
                true => (run.weight, false, run.processors),
                false => (run.weight, true, u64::MAX - run.processors),
            };
            let at = (0..runs.len()).min_by_key(|&at| key(&runs[at]))?;
            let run = runs.remove(at);
            let mut rest = &candidates[run.from..run.to];
            while let [node, others @ ..] = rest {
                // Without a number of nodes Slurm looks for one node, and then for more processors.
                let is_last = if apart { left == 1 } else { left == kind.copies };
                let sufficient = rest.iter().filter(|c| is_last && c.chunks >= left);
                let c = sufficient.min_by_key(|c| c.processors).unwrap_or(node);
                let chunks = c.chunks.min(left);
                held.add(c.node, chunks);
                left -= chunks;
                if left == 0 {
                    break;
                }
                rest = others;
            }
        }
        held.merge();
        Some(held)
    }
}
