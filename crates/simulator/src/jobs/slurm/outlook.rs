//! When a job can start on given nodes if running jobs end at their limits: the will-run test of select/cons_tres.
//!
//! Ends are taken in groups ([`Groups`]); after each group a job is tried. A run of backfill tests hundreds of jobs against
//! the same ends, and most of them differ only in how many chunks they have or which nodes are reserved. So what each end
//! adds, node by node, is computed once for all jobs of equal chunks ([`FreedChunks`]), and a test adds up what lies on its
//! nodes.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use evenhand_model::Span;

use super::super::kind::Kind;
use super::super::placements::Placements;
use super::engine::{Engine, SECOND};
use super::freed_chunks::FreedChunks;
use super::node_set::{NodeSet, SparseNodes, mix};
use super::options::SlurmOptions;
use super::running::Running;

/// The first end is rounded up to a multiple of this, and the first group has what ends so much later at most.
const FIRST_GROUP: u64 = 30 * SECOND;

/// Which ends of running jobs a test takes together, before it tries the job (`_will_run_test` of select/cons_tres).
pub(super) struct Groups {
    linear: Option<Span>,
    /// From when the groups count, if they have begun.
    begin: Option<u64>,
    /// How much later the last end of the group is at most.
    window: u64,
}

impl Groups {
    pub(super) fn new(options: &SlurmOptions) -> Groups {
        Groups { linear: options.bf_window_linear, begin: None, window: FIRST_GROUP }
    }

    /// Notes that an end is taken; of the first one that the groups begin.
    pub(super) fn take(&mut self, end: u64) {
        self.begin.get_or_insert((end / FIRST_GROUP + 1).saturating_mul(FIRST_GROUP));
    }

    /// Whether the group goes on with the next end.
    pub(super) fn goes_on(&self, next: u64) -> bool {
        self.begin.is_none_or(|begin| next <= begin.saturating_add(self.window))
    }

    /// Begins another group, which has the next end.
    pub(super) fn close(&mut self, next: Option<u64>) {
        loop {
            self.window = match self.linear {
                Some(step) => self.window.saturating_add(step.nanos().max(1)),
                None => self.window.saturating_mul(2),
            };
            if next.is_none_or(|next| self.goes_on(next)) {
                break;
            }
        }
    }
}

/// A running job's end as a plan expects it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct End {
    pub(super) at: u64,
    row: u32,
    pub(super) slot: u32,
}

/// The ends of running jobs in the order of time, and what they leave free.
pub(super) struct Outlook {
    now: u64,
    /// Of what the ends and the results are: how often jobs had started and ended.
    changes: u64,
    /// Made when first asked for.
    ends: Option<Ends>,
    /// By number of equal chunks, if asked for.
    freed: Vec<Option<FreedChunks>>,
    /// For how many.
    freed_len: usize,
    /// Results of tests by the fingerprints of what they depend on.
    known: HashMap<u64, Known>,
    /// Sets of earlier results, for new ones.
    unused: Vec<NodeSet>,
    /// The nodes of the ends that a test takes.
    ended: NodeSet,
}

/// The expected ends in the order of time.
struct Ends {
    all: Vec<End>,
    /// By slot: the place of its end.
    place: Vec<u32>,
}

/// The result of a test, and what it depends on: the number of equal chunks, how many there are, the nodes and the time.
struct Known {
    chunks: u32,
    copies: u32,
    nodes: NodeSet,
    within: Within,
    result: Option<Rc<PossibleStart>>,
}

/// Of which time a test is: what ends before `from` is gone, what ends after `to` stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Within {
    pub(super) from: u64,
    pub(super) to: Option<u64>,
}

impl Within {
    /// From the first end to the last.
    pub(super) const ALL: Within = Within { from: 0, to: None };
}

/// When a job can start, and where.
pub(super) struct PossibleStart {
    pub(super) at: u64,
    /// Whether it needs nodes that jobs still have, though they should have ended: it reserves them, and does not start.
    pub(super) waits: bool,
    pub(super) held: Placements,
    /// The nodes of what it holds.
    pub(super) nodes: SparseNodes,
}

impl PossibleStart {
    pub(super) fn new(at: u64, held: Placements) -> Rc<PossibleStart> {
        Rc::new(PossibleStart::of(at, held, false))
    }

    /// One that needs what jobs beyond their limits still have.
    pub(super) fn waiting(at: u64, held: Placements) -> Rc<PossibleStart> {
        Rc::new(PossibleStart::of(at, held, true))
    }

    fn of(at: u64, held: Placements, waits: bool) -> PossibleStart {
        let nodes = SparseNodes::new(held.iter().map(|(node, _)| node));
        PossibleStart { at, waits, held, nodes }
    }
}

/// So many results are kept at most.
const MOST_KNOWN: usize = 1 << 12;

/// What is free is kept for so many nodes at most, counted for each size of chunks: some 90 MB.
const MOST_FREED: usize = 1 << 21;

impl Outlook {
    pub(super) fn new(engine: &Engine<'_>) -> Outlook {
        Outlook {
            now: 0,
            changes: engine.changes,
            ends: None,
            freed: Vec::new(),
            freed_len: 0,
            known: HashMap::new(),
            unused: Vec::new(),
            ended: NodeSet::empty(engine.nodes.len()),
        }
    }

    /// Goes to a later instant. Ends and results are kept if nothing has changed since and no job is beyond its expected end:
    /// such jobs are expected to end ever later.
    pub(super) fn move_to(&mut self, engine: &Engine<'_>, now: u64) {
        let is_late = engine.ends.first().is_some_and(|(end, ..)| *end <= now);
        if self.changes != engine.changes || is_late {
            self.forget(engine);
        }
        self.now = now;
    }

    /// Notes that jobs have started or ended, or are expected to end at other times.
    pub(super) fn forget(&mut self, engine: &Engine<'_>) {
        self.changes = engine.changes;
        self.forget_results();
        self.ends = None;
    }

    fn forget_results(&mut self) {
        self.unused.extend(self.known.drain().map(|(_, known)| known.nodes));
    }

    /// Notes that a job has started now, with its expected end.
    pub(super) fn started(&mut self, engine: &Engine<'_>, at: u64, row: u32, slot: u32) {
        self.changes = engine.changes;
        self.forget_results();
        if let Some(ends) = &mut self.ends {
            ends.insert(End { at, row, slot });
        }
    }

    /// Returns when a job that does not fit now can start on these nodes, and on which of them; `None` if never. Jobs of
    /// equal `chunks` have equal numbers of it.
    ///
    /// It starts when the last job of the group ends with which it fits, of those that have one of the nodes, whether the job
    /// is put on that one or not.
    pub(super) fn later_start(
        &mut self,
        engine: &Engine<'_>,
        kind: &Kind,
        chunks: u32,
        nodes: &NodeSet,
        within: Within,
    ) -> Option<Rc<PossibleStart>> {
        let copies = kind.copies;
        let of_time = mix(within.from, within.to.unwrap_or_default());
        let test = nodes.fingerprint() ^ of_time ^ (u64::from(chunks) << 32 | u64::from(copies));
        let is_same = |known: &&Known| {
            (known.chunks, known.copies, known.within) == (chunks, copies, within) && known.nodes == *nodes
        };
        if let Some(known) = self.known.get(&test).filter(is_same) {
            return known.result.clone();
        }
        let result = self.test(engine, kind, chunks, nodes, within);
        let result = result.map(|(at, held)| Rc::new(PossibleStart::of(at, held, at <= self.now)));
        // One that could start at once would start at another time later.
        if result.as_ref().is_none_or(|start| start.at > self.now) {
            if self.known.len() == MOST_KNOWN {
                self.forget_results();
            }
            let mut of = self.unused.pop().unwrap_or_else(|| NodeSet::empty(engine.nodes.len()));
            of.copy_from(nodes);
            self.known.insert(test, Known { chunks, copies, nodes: of, within, result: result.clone() });
        }
        result
    }

    fn test(
        &mut self,
        engine: &Engine<'_>,
        kind: &Kind,
        chunks: u32,
        nodes: &NodeSet,
        within: Within,
    ) -> Option<(u64, Placements)> {
        let wanted = u64::from(kind.copies);
        if engine.nodes.chunks_when_empty(kind, nodes) < u128::from(wanted) {
            return None;
        }
        self.update_freed(engine, kind, chunks as usize);
        let freed = self.freed[chunks as usize].as_ref()?;
        let ends = self.ends.get_or_insert_with(|| Ends::new(expected_ends(engine)));
        let mut fitting = freed.now_on(nodes);
        let gone = ends.all.partition_point(|end| end.at < within.from);
        for end in &ends.all[..gone] {
            fitting += freed.added_by(end.slot, engine.jobs_on_nodes.of(end.slot), nodes).unwrap_or(0);
        }
        let ended = &mut self.ended;
        if within != Within::ALL
            && fitting >= wanted
            && let Some(held) = ends.choose(engine, kind, freed, (nodes, ended), (gone, false))
        {
            return Some((self.now, held));
        }
        let to = within.to.map_or(ends.all.len(), |to| ends.all.partition_point(|end| end.at <= to));
        let busy_first = engine.options.bf_busy_nodes;
        let choose = |count: usize| ends.choose(engine, kind, freed, (nodes, ended), (count, busy_first));
        let (last, held) = ends.take(engine, freed, nodes, (fitting, wanted), gone..to, choose)?;
        Some((engine.when_ended(last, self.now), held))
    }

    /// On which of these nodes a job starts now, if it fits.
    pub(super) fn start_now(
        &mut self,
        engine: &Engine<'_>,
        kind: &Kind,
        chunks: u32,
        nodes: &NodeSet,
    ) -> Option<Placements> {
        if !engine.nodes.has_processors(kind) {
            return None;
        }
        self.update_freed(engine, kind, chunks as usize);
        self.freed[chunks as usize].as_ref()?.choose_now(engine, kind, nodes)
    }

    /// Computes anew what has changed for jobs of a size of chunks.
    fn update_freed(&mut self, engine: &Engine<'_>, kind: &Kind, chunks: usize) {
        if self.freed.len() <= chunks {
            self.freed.resize_with(chunks + 1, || None);
        }
        if self.freed[chunks].is_none() {
            if (self.freed_len + 1) * engine.nodes.len() > MOST_FREED {
                self.freed.iter_mut().for_each(|freed| *freed = None);
                self.freed_len = 0;
            }
            self.freed_len += 1;
        }
        let freed = self.freed[chunks].get_or_insert_with(|| FreedChunks::new(engine, kind));
        freed.update(engine, kind);
    }
}

impl Ends {
    fn new(all: Vec<End>) -> Ends {
        let mut ends = Ends { all, place: Vec::new() };
        ends.find_places(0);
        ends
    }

    /// Notes the places of those from one on.
    fn find_places(&mut self, from: usize) {
        for (place, end) in self.all.iter().enumerate().skip(from) {
            let slot = end.slot as usize;
            if self.place.len() <= slot {
                self.place.resize(slot + 1, 0);
            }
            self.place[slot] = place as u32;
        }
    }

    fn insert(&mut self, end: End) {
        let place = self.all.partition_point(|other| *other < end);
        self.all.insert(place, end);
        self.find_places(place);
    }

    /// The first end of these places that has one of these nodes, and how many chunks it adds on them.
    fn next(
        &self,
        engine: &Engine<'_>,
        freed: &FreedChunks,
        nodes: &NodeSet,
        mut places: Range<usize>,
    ) -> Option<(usize, u64)> {
        let of = |at: usize| {
            let slot = self.all[at].slot;
            Some((at, freed.added_by(slot, engine.jobs_on_nodes.of(slot), nodes)?))
        };
        places.find_map(of)
    }

    /// Takes the ends of these places away, group by group, until a job fits on these nodes: if enough chunks fit after so many ends,
    /// `choose` puts it. Returns the last end and where it is put; `None` if it never fits.
    fn take(
        &self,
        engine: &Engine<'_>,
        freed: &FreedChunks,
        nodes: &NodeSet,
        (mut fitting, wanted): (u64, u64),
        places: Range<usize>,
        mut choose: impl FnMut(usize) -> Option<Placements>,
    ) -> Option<(u64, Placements)> {
        let mut groups = Groups::new(&engine.options);
        let mut count = places.start;
        let next_end = |count: usize| self.all.get(count).map(|end| end.at);
        loop {
            let mut last = None;
            while let Some((at, chunks)) = self.next(engine, freed, nodes, count..places.end) {
                groups.take(self.all[at].at);
                last = Some(self.all[at].at);
                count = at + 1;
                fitting += chunks;
                if !next_end(count).is_some_and(|next| groups.goes_on(next)) {
                    break;
                }
            }
            let last = last?;
            if fitting >= wanted
                && let Some(held) = choose(count)
            {
                return Some((last, held));
            }
            groups.close(next_end(count));
        }
    }

    /// Where a job is put on these nodes after so many ends.
    fn choose(
        &self,
        engine: &Engine<'_>,
        kind: &Kind,
        freed: &FreedChunks,
        (nodes, ended): (&NodeSet, &mut NodeSet),
        (taken, busy_first): (usize, bool),
    ) -> Option<Placements> {
        let place = |slot: u32| self.place[slot as usize] as usize;
        ended.clear();
        self.all[..taken].iter().for_each(|end| ended.insert_all(engine.jobs_on_nodes.of(end.slot)));
        let ended = (&*ended, |slot: u32| place(slot) < taken);
        freed.choose_after(engine, kind, nodes, ended, busy_first)
    }
}

/// The ends of running jobs in their order; the ends of jobs that are beyond their limits have passed.
pub(super) fn expected_ends(engine: &Engine<'_>) -> Vec<End> {
    engine.ends.iter().map(|&(at, row, slot)| End { at, row, slot }).collect()
}

impl Engine<'_> {
    /// By what the ends of running jobs are ordered.
    pub(super) fn end_of(&self, slot: u32) -> End {
        let Running { row, expected, .. } = self.running[slot as usize];
        End { at: expected, row, slot }
    }

    /// When a job is over that is expected to end then. A job beyond its limit ends when it is killed at the latest, or at
    /// once (`_guess_job_end`).
    pub(super) fn when_ended(&self, end: u64, now: u64) -> u64 {
        if end > now {
            return end;
        }
        let grace = self.options.over_time_limit.unwrap_or_default().nanos() + self.options.kill_wait.nanos();
        end.saturating_add(grace).max(now + SECOND)
    }
}
