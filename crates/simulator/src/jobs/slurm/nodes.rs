//! The nodes' free amounts (select/cons_tres and select/linear).

use super::super::kind::{Kind, copies};
use super::super::placements::Placements;
use super::super::site::{Group, Site};
use super::choice::{Choice, Stretch};
use super::node_set::NodeSet;

/// What is free on each node.
#[derive(Clone, Debug)]
pub(super) struct Nodes<'a> {
    pub(super) site: &'a Site,
    pub(super) width: usize,
    pub(super) free: Vec<u64>,
    /// How much more jobs hold than there is: what jobs use that suspended ones hold. Empty if no job can be suspended.
    pub(super) owed: Vec<u64>,
    /// By node: of a lower weight they are taken first.
    weights: Vec<u32>,
    /// How many jobs a node has.
    jobs: Vec<u32>,
    /// The free processors of all nodes.
    free_processors: u64,
    /// How often something has become free.
    releases: u64,
    /// Nodes with a free processor; where jobs have whole nodes, those without a job.
    with_free: NodeSet,
    /// The resource that is processors, or else the first.
    pub(super) processors: usize,
    /// Whether every job has whole nodes.
    whole: bool,
    /// Nodes with a job that has them whole, where others may share one.
    exclusive: NodeSet,
    /// Whether the least loaded nodes are chosen.
    pub(super) least_loaded: bool,
}

impl<'a> Nodes<'a> {
    pub(super) fn new(site: &'a Site, width: usize, whole: bool, least_loaded: bool) -> Nodes<'a> {
        let free: Vec<u64> =
            site.groups.iter().flat_map(|g| (0..g.count).flat_map(|_| g.has.iter().copied())).collect();
        let processors = site.cpu.map_or(0, |(resource, _)| resource);
        let (jobs, with_free) = (vec![0; site.len()], NodeSet::empty(site.len()));
        let free_processors = free.iter().skip(processors).step_by(width).sum();
        let weights = site.groups.iter().flat_map(|group| (0..group.count).map(|_| group.weight)).collect();
        let mut nodes = Nodes {
            site,
            width,
            free,
            owed: Vec::new(),
            weights,
            jobs,
            free_processors,
            releases: 1,
            with_free,
            processors,
            whole,
            exclusive: NodeSet::empty(site.len()),
            least_loaded,
        };
        (0..nodes.len() as u32).for_each(|node| nodes.note_free(node));
        nodes
    }

    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    #[inline]
    pub(super) fn free_on(&self, node: u32) -> &[u64] {
        &self.free[node as usize * self.width..][..self.width]
    }

    /// Whether a job has whole nodes.
    pub(super) fn is_whole(&self, kind: &Kind) -> bool {
        self.whole || kind.is_exclusive()
    }

    /// Whether a node has a job beside which others have no place: any for one that has whole nodes.
    pub(super) fn is_busy(&self, kind: &Kind, node: u32) -> bool {
        if self.is_whole(kind) { self.jobs_on(node) > 0 } else { self.exclusive.contains(node) }
    }

    /// What a job holds on a node.
    pub(super) fn held(&self, kind: &Kind, node: u32, chunks: u32, mut each: impl FnMut(usize, u64)) {
        match self.is_whole(kind) {
            true => self.site.groups[self.site.group_of(node)].has.iter().enumerate().for_each(|(r, a)| each(r, *a)),
            false => kind.chunk.iter().enumerate().for_each(|(r, c)| each(r, c * u64::from(chunks))),
        }
    }

    pub(super) fn take(&mut self, kind: &Kind, held: &Placements) {
        for (node, chunks) in held.iter() {
            self.jobs[node as usize] += 1;
            if kind.is_exclusive() {
                self.exclusive.insert(node);
            }
            self.change(kind, node, chunks, |free, amount| free - amount);
        }
    }

    pub(super) fn give(&mut self, kind: &Kind, held: &Placements) {
        self.releases += 1;
        for (node, chunks) in held.iter() {
            self.give_on(kind, node, chunks);
        }
    }

    /// Gives back what a job holds on one of its nodes.
    pub(super) fn give_on(&mut self, kind: &Kind, node: u32, chunks: u32) {
        self.jobs[node as usize] -= 1;
        if kind.is_exclusive() {
            self.exclusive.set(node, false);
        }
        self.change(kind, node, chunks, |free, amount| free + amount);
        self.settle(node);
    }

    fn change(&mut self, kind: &Kind, node: u32, chunks: u32, new: impl Fn(u64, u64) -> u64) {
        let at = node as usize * self.width;
        let site = self.site;
        self.free_processors -= self.processors_on(node);
        match self.is_whole(kind) {
            true => {
                let has = &site.groups[site.group_of(node)].has;
                self.free[at..].iter_mut().zip(has).for_each(|(f, a)| *f = new(*f, *a));
            }
            false => {
                let amounts = kind.chunk.iter().map(|c| c * u64::from(chunks));
                self.free[at..].iter_mut().zip(amounts).for_each(|(f, a)| *f = new(*f, a));
            }
        }
        self.free_processors += self.processors_on(node);
        self.note_free(node);
    }

    /// Sets how much of a resource is free on a node.
    pub(super) fn set_free(&mut self, node: u32, resource: usize, amount: u64) {
        self.free_processors -= self.processors_on(node);
        self.free[node as usize * self.width + resource] = amount;
        self.free_processors += self.processors_on(node);
        self.note_free(node);
    }

    /// How often something has become free, from 1. What does not fit fits no earlier than at the next time.
    pub(super) fn releases(&self) -> u64 {
        self.releases
    }

    /// Notes that something may fit that did not, though no job has ended.
    pub(super) fn note_release(&mut self) {
        self.releases += 1;
    }

    /// Whether there are as many free processors as a job needs, wherever they are.
    pub(super) fn has_processors(&self, kind: &Kind) -> bool {
        kind.chunk[self.processors].saturating_mul(u64::from(kind.copies)) <= self.free_processors
    }

    fn note_free(&mut self, node: u32) {
        let has_free = if self.whole { self.jobs[node as usize] == 0 } else { self.processors_on(node) > 0 };
        self.with_free.set(node, has_free);
    }

    /// The free processors of a node.
    #[inline]
    pub(super) fn processors_on(&self, node: u32) -> u64 {
        self.free_on(node)[self.processors]
    }

    /// The amount that is one processor.
    pub(super) fn one_processor(&self) -> i64 {
        self.site.cpu.map_or(1, |(_, steps)| steps as i64)
    }

    /// How many jobs a node has.
    pub(super) fn jobs_on(&self, node: u32) -> u32 {
        self.jobs[node as usize]
    }

    /// The smallest number of nodes on which a job can run.
    pub(super) fn nodes_at_least(&self, kind: &Kind) -> usize {
        if kind.is_by_nodes { kind.copies as usize } else { kind.machines_of_tasks.unwrap_or(1) as usize }
    }

    /// How many chunks of a job fit on a node now, counted up to the number of chunks that the job has.
    #[inline]
    pub(super) fn chunks_on(&self, kind: &Kind, node: u32) -> u32 {
        self.any_chunks_on(kind, node).min(kind.copies)
    }

    /// How many chunks of jobs like this one fit on a node now.
    #[inline]
    pub(super) fn any_chunks_on(&self, kind: &Kind, node: u32) -> u32 {
        self.chunks_in_free(kind, self.free_on(node), self.jobs_on(node))
    }

    /// How many chunks of jobs like this one fit on a node with these free amounts and so many jobs.
    #[inline]
    pub(super) fn chunks_in_free(&self, kind: &Kind, free: &[u64], jobs: u32) -> u32 {
        if self.is_whole(kind) && jobs > 0 {
            return 0;
        }
        let most = if kind.is_by_nodes { 1 } else { u32::MAX };
        copies(&kind.chunk, free).min(u128::from(most)) as u32
    }

    /// The smallest number of empty nodes that can hold a job.
    pub(super) fn fewest_when_empty(&self, kind: &Kind) -> usize {
        let groups = kind.groups.iter().map(|group| &self.site.groups[usize::from(*group)]);
        let on_one = groups.map(|group| copies(&kind.chunk, &group.has)).max().unwrap_or(1).max(1);
        let by_size = u128::from(kind.copies).div_ceil(on_one) as usize;
        by_size.max(self.nodes_at_least(kind))
    }

    /// How many chunks of jobs like this one the empty nodes among these hold.
    pub(super) fn chunks_when_empty(&self, kind: &Kind, nodes: &NodeSet) -> u128 {
        let most = if kind.is_by_nodes { 1 } else { u128::from(u32::MAX) };
        let in_group =
            |g: &Group| nodes.len_in(g.first, g.first + g.count) as u128 * copies(&kind.chunk, &g.has).min(most);
        self.site.groups.iter().map(in_group).sum()
    }

    /// Whether the empty nodes among these hold a job.
    pub(super) fn hold_when_empty(&self, kind: &Kind, nodes: &NodeSet) -> bool {
        if kind.machines_of_tasks.is_none() {
            return self.chunks_when_empty(kind, nodes) >= u128::from(kind.copies);
        }
        let mut choice = Choice::default();
        for group in &self.site.groups {
            let (chunks, processors) = (self.chunks_in_free(kind, &group.has, 0), group.has[self.processors]);
            for node in (group.first..group.first + group.count).filter(|node| nodes.contains(*node)) {
                choice.add(Stretch::of(node, chunks, processors, self.weight_of(node, false)));
            }
        }
        choice.choose(kind, self).is_some()
    }

    /// The weight of a node; those that come last come behind all others.
    #[inline]
    pub(super) fn weight_of(&self, node: u32, is_last: bool) -> u64 {
        u64::from(is_last) << 32 | u64::from(self.weights[node as usize])
    }

    /// What most of the nodes hold on which jobs like this one fit when they are empty, as chunks and processors, and which
    /// nodes these are, all of one weight: none if a node may have less than what its jobs leave free.
    pub(super) fn alike_when_empty(&self, kind: &Kind) -> ((u32, u64), u32, NodeSet) {
        let mut alike = NodeSet::empty(self.len());
        let holds =
            |group: &Group| (self.chunks_in_free(kind, &group.has, 0), group.has[self.processors], group.weight);
        let len_of =
            |of: (u32, u64, u32)| self.site.groups.iter().filter(|g| holds(g) == of).map(|g| g.count).sum::<u32>();
        let held = self.site.groups.iter().map(holds).filter(|(chunks, ..)| *chunks > 0);
        let Some(usual) = held.max_by_key(|of| len_of(*of)).filter(|_| self.owed.is_empty()) else {
            return ((0, 0), 0, alike);
        };
        for group in self.site.groups.iter().filter(|group| holds(group) == usual) {
            (group.first..group.first + group.count).for_each(|node| alike.insert(node));
        }
        ((usual.0, usual.1), usual.2, alike)
    }

    /// How many chunks fit on these nodes, counted up to the number of chunks that the job has.
    pub(super) fn chunks_in(&self, kind: &Kind, nodes: &NodeSet) -> u64 {
        let enough = u64::from(kind.copies);
        let mut found = 0;
        for node in self.may_fit_on(kind, nodes) {
            found += u64::from(self.chunks_on(kind, node));
            if found >= enough {
                break;
            }
        }
        found
    }

    /// The nodes among these on which a chunk of the kind may fit: one that needs processors needs a free one.
    fn may_fit_on<'s>(&'s self, kind: &Kind, nodes: &'s NodeSet) -> impl Iterator<Item = u32> + 's {
        let can_be_full = self.whole || kind.chunk[self.processors] > 0;
        nodes.iter_both(if can_be_full { &self.with_free } else { nodes })
    }

    /// Returns on which of these nodes Slurm puts a job now, if it fits.
    pub(super) fn choose(&self, kind: &Kind, nodes: &NodeSet) -> Option<Placements> {
        self.choose_busy_first(kind, nodes, false)
    }

    /// The same, and whether nodes with jobs are taken first.
    pub(super) fn choose_busy_first(&self, kind: &Kind, nodes: &NodeSet, busy_first: bool) -> Option<Placements> {
        if !self.has_processors(kind) {
            return None;
        }
        let mut choice = Choice::default();
        for node in self.may_fit_on(kind, nodes) {
            let is_last = busy_first && self.jobs_on(node) == 0;
            let weight = self.weight_of(node, is_last);
            choice.add(Stretch::of(node, self.any_chunks_on(kind, node), self.processors_on(node), weight));
        }
        choice.choose(kind, self)
    }
}
