//! When a job can start on given nodes if running jobs end at their limits: the will-run test of select/cons_tres.
//!
//! Ends are taken in groups: those of 30 s, then of twice the time, and so on. After each group a job is tried. A run of
//! backfill tests hundreds of jobs against the same ends, and most of them differ only in how many chunks they have or
//! which nodes are reserved. So what each end adds, node by node, is computed once for all jobs of equal chunks
//! ([`Future`]), and a test adds up what lies on its nodes.

use std::collections::HashMap;

use super::super::kind::Kind;
use super::super::machine_state::Placements;
use super::choice::{Candidate, choose};
use super::engine::{Engine, SECOND};
use super::node_set::NodeSet;
use super::nodes::Nodes;
use super::options::SlurmOptions;

/// The first groups of ends span so much time.
pub(super) const FIRST_GROUP: u64 = 30 * SECOND;
/// How many ends a group has at most.
pub(super) const LARGEST_GROUP: usize = 200;

/// A running job's end as a plan expects it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct End {
    pub(super) at: u64,
    row: u32,
    pub(super) slot: u32,
}

/// The ends of running jobs in the order of time, and what they leave free.
///
/// It is kept from one run of backfill to the next if no job has started or ended between them.
pub(super) struct Outlook<'a> {
    now: u64,
    /// Of what it was made: how often jobs had started and ended.
    changes: u64,
    /// Made when first asked for.
    ends: Option<Vec<End>>,
    /// By number of equal chunks, if asked for.
    futures: Vec<Option<Future<'a>>>,
    /// The nodes of the job that is tested.
    chosen: NodeSet,
    /// Results of tests.
    known: HashMap<Test, Option<LaterStart>>,
}

/// What the result of a test depends on: the number of equal chunks, how many there are, and the nodes.
type Test = (u32, u32, NodeSet);

/// When a job can start, and where.
type LaterStart = (u64, Placements);

/// So many results are kept at most.
const MOST_KNOWN: usize = 1 << 12;

/// What ends add for jobs of equal chunks.
struct Future<'a> {
    /// The nodes after as many ends as `until` has entries.
    nodes: Nodes<'a>,
    now: NodeStates,
    gains: Vec<Gain>,
    /// By end: where its gains end.
    until: Vec<usize>,
    /// The nodes after `moved` ends.
    after: NodeStates,
    moved: usize,
}

/// What an end adds on a node.
#[derive(Clone, Copy)]
struct Gain {
    node: u32,
    chunks: u32,
    processors: u64,
}

/// What is free, by node.
#[derive(Clone)]
struct NodeStates {
    /// How many chunks fit.
    chunks: Vec<u32>,
    processors: Vec<u64>,
    /// How many jobs a node has; empty unless it matters.
    jobs: Vec<u32>,
    /// Nodes on which a chunk fits.
    with_room: NodeSet,
}

impl<'a> Outlook<'a> {
    pub(super) fn new(engine: &Engine<'a>, now: u64) -> Outlook<'a> {
        Outlook {
            now,
            changes: engine.changes,
            ends: None,
            futures: Vec::new(),
            chosen: NodeSet::empty(engine.nodes.len()),
            known: HashMap::new(),
        }
    }

    /// The same outlook at a later instant, if nothing has changed since and no job is beyond its expected end: such
    /// jobs are expected to end ever later.
    pub(super) fn at(self, engine: &Engine<'a>, now: u64) -> Option<Outlook<'a>> {
        let is_late = engine.ends.first().is_some_and(|(end, ..)| *end <= now);
        (self.changes == engine.changes && !is_late).then_some(Outlook { now, ..self })
    }

    /// Notes that a job has started now, with its expected end.
    pub(super) fn started(&mut self, engine: &Engine<'a>, at: u64, row: u32, slot: u32) {
        self.changes = engine.changes;
        self.known.clear();
        self.futures.clear();
        if let Some(ends) = &mut self.ends {
            let end = End { at, row, slot };
            let place = ends.partition_point(|other| *other < end);
            ends.insert(place, end);
        }
    }

    /// Returns when a job that does not fit now can start on these nodes, and on which of them; `None` if never. Jobs of
    /// equal `chunks` have equal numbers of it.
    ///
    /// It starts when the last of the ended jobs ends that had one of its nodes.
    pub(super) fn later_start(
        &mut self,
        engine: &Engine<'a>,
        kind: &Kind,
        chunks: u32,
        nodes: &NodeSet,
    ) -> Option<LaterStart> {
        let test = (chunks, kind.copies, nodes.clone());
        if let Some(known) = self.known.get(&test) {
            return known.clone();
        }
        let result = self.test(engine, kind, chunks, nodes);
        // One that could start at once would start at another time later.
        if result.as_ref().is_none_or(|(start, _)| *start > self.now) {
            if self.known.len() == MOST_KNOWN {
                self.known.clear();
            }
            self.known.insert(test, result.clone());
        }
        result
    }

    fn test(&mut self, engine: &Engine<'a>, kind: &Kind, chunks: u32, nodes: &NodeSet) -> Option<LaterStart> {
        let wanted = u64::from(kind.copies);
        if engine.nodes.chunks_when_empty(kind, nodes) < u128::from(wanted) {
            return None;
        }
        let ends = self.ends.get_or_insert_with(|| expected_ends(engine, self.now));
        let chunks = chunks as usize;
        if self.futures.len() <= chunks {
            self.futures.resize_with(chunks + 1, || None);
        }
        let future = self.futures[chunks].get_or_insert_with(|| Future::new(engine, kind));
        let mut fitting: u64 =
            nodes.iter_both(&future.now.with_room).map(|node| u64::from(future.now.chunks[node as usize])).sum();
        let mut window = FIRST_GROUP;
        let mut group: Option<(u64, usize)> = None;
        let mut taken = 0;
        loop {
            let next = (taken..ends.len()).find_map(|at| Some((at, future.gain_on(engine, kind, ends, at, nodes)?)));
            if let Some((first, size)) = group {
                let goes_on = next.is_some_and(|(at, _)| ends[at].at <= first.saturating_add(window));
                if !goes_on || size == LARGEST_GROUP {
                    group = None;
                    window = next_window(&engine.options, window);
                    if fitting >= wanted {
                        break;
                    }
                }
            }
            let (at, gain) = next?;
            let (first, size) = group.unwrap_or((ends[at].at / FIRST_GROUP * FIRST_GROUP, 0));
            group = Some((first, size + 1));
            taken = at + 1;
            fitting += gain;
        }
        let held = future.choose(kind, nodes, taken, engine.nodes.least_loaded)?;
        held.iter().for_each(|(node, _)| self.chosen.insert(node));
        let last = (0..taken).rev().find(|at| future.gains_of(*at).iter().any(|gain| self.chosen.contains(gain.node)));
        held.iter().for_each(|(node, _)| self.chosen.remove(node));
        Some((last.map_or(self.now, |at| ends[at].at), held))
    }
}

/// How much time a group of ends spans after one that spans `window`.
pub(super) fn next_window(options: &SlurmOptions, window: u64) -> u64 {
    match options.bf_window_linear {
        Some(step) => window.saturating_add(step.nanos()),
        None => window.saturating_mul(2),
    }
}

/// The ends of running jobs. A job beyond its limit ends when it is killed at the latest, or at once.
pub(super) fn expected_ends(engine: &Engine<'_>, now: u64) -> Vec<End> {
    let options = &engine.options;
    let grace = options.over_time_limit.unwrap_or_default().nanos() + options.kill_wait.nanos();
    let end = |&(at, row, slot): &(u64, u32, u32)| End { at, row, slot };
    let late = engine.ends.range(..(now.saturating_add(1), 0, 0)).map(end);
    let mut late: Vec<End> = late.map(|e| End { at: e.at.saturating_add(grace).max(now + SECOND), ..e }).collect();
    let others = engine.ends.range((now.saturating_add(1), 0, 0)..).map(end);
    if late.is_empty() {
        return others.collect();
    }
    // The sort merges runs that are in order.
    late.extend(others);
    late.sort();
    late
}

impl NodeStates {
    /// Adds what an end adds, or takes it back.
    #[inline]
    fn change(&mut self, gain: &Gain, has_ended: bool) {
        let node = gain.node as usize;
        let new = |old: u64, change: u64| if has_ended { old + change } else { old - change };
        self.chunks[node] = new(self.chunks[node].into(), gain.chunks.into()) as u32;
        self.processors[node] = new(self.processors[node], gain.processors);
        match self.chunks[node] > 0 {
            true => self.with_room.insert(gain.node),
            false => self.with_room.remove(gain.node),
        }
        if let Some(jobs) = self.jobs.get_mut(node) {
            *jobs = if has_ended { *jobs - 1 } else { *jobs + 1 };
        }
    }
}

impl<'a> Future<'a> {
    fn new(engine: &Engine<'a>, kind: &Kind) -> Future<'a> {
        let nodes = engine.nodes.clone();
        let all = || 0..nodes.len() as u32;
        let jobs =
            if engine.options.bf_busy_nodes { all().map(|node| nodes.jobs_on(node)).collect() } else { Vec::new() };
        let chunks: Vec<u32> = all().map(|node| nodes.any_chunks_on(kind, node)).collect();
        let mut with_room = NodeSet::empty(nodes.len());
        all().filter(|node| chunks[*node as usize] > 0).for_each(|node| with_room.insert(node));
        let processors = all().map(|node| nodes.processors_on(node)).collect();
        let now = NodeStates { chunks, processors, jobs, with_room };
        let after = now.clone();
        Future { nodes, now, gains: Vec::new(), until: Vec::new(), after, moved: 0 }
    }

    /// How many chunks an end adds on these nodes; `None` if it has none of them.
    fn gain_on(&mut self, engine: &Engine<'_>, kind: &Kind, ends: &[End], at: usize, nodes: &NodeSet) -> Option<u64> {
        while self.until.len() <= at {
            self.take_away(engine, kind, ends[self.until.len()].slot);
        }
        // Without a branch: which of them lie there is hard to predict.
        let (mut met, mut chunks) = (0, 0);
        for gain in self.gains_of(at) {
            let is_there = u64::from(nodes.contains(gain.node));
            met += is_there;
            chunks += u64::from(gain.chunks) * is_there;
        }
        (met > 0).then_some(chunks)
    }

    /// Takes the next job to end away from the nodes.
    fn take_away(&mut self, engine: &Engine<'_>, kind: &Kind, slot: u32) {
        let job = &engine.running[slot as usize];
        let its_kind = engine.jobs.kind_of(job.row);
        for (node, chunks) in job.held.iter() {
            let before = (self.nodes.any_chunks_on(kind, node), self.nodes.processors_on(node));
            self.nodes.give_on(its_kind, node, chunks);
            let chunks = self.nodes.any_chunks_on(kind, node) - before.0;
            let processors = self.nodes.processors_on(node) - before.1;
            self.gains.push(Gain { node, chunks, processors });
        }
        self.until.push(self.gains.len());
    }

    /// What an end that has been looked at adds.
    fn gains_of(&self, at: usize) -> &[Gain] {
        let from = at.checked_sub(1).map_or(0, |before| self.until[before]);
        &self.gains[from..self.until[at]]
    }

    /// Where a job is put on these nodes after so many ends.
    fn choose(&mut self, kind: &Kind, nodes: &NodeSet, ends: usize, least_loaded: bool) -> Option<Placements> {
        let place = |ends: usize| ends.checked_sub(1).map_or(0, |last| self.until[last]);
        let after = &mut self.after;
        let from = place(self.moved);
        self.gains[from..place(ends).max(from)].iter().for_each(|gain| after.change(gain, true));
        // The test before took more ends away.
        self.gains[place(ends).min(from)..from].iter().for_each(|gain| after.change(gain, false));
        self.moved = ends;
        let candidate = |node: u32| {
            let at = node as usize;
            let is_idle = after.jobs.get(at) == Some(&0);
            let (chunks, processors) = (after.chunks[at], after.processors[at]);
            Candidate { node, chunks, processors, weight: u8::from(is_idle) }
        };
        choose(kind, nodes.iter_both(&after.with_room), candidate, least_loaded)
    }
}
