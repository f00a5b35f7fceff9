//! Backfill's table of times: which nodes are not reserved when.

use super::node_set::{NodeSet, SparseNodes};

/// Times from the begin to the end of a run's window, each with the nodes that no planned job has reserved.
///
/// The intervals follow one another without a gap; the first one can be empty.
#[derive(Clone, Debug)]
pub(super) struct NodeSpace {
    intervals: Vec<Interval>,
    /// The shortest time that is reserved.
    grain: u64,
    /// How many intervals have been made: Slurm's table does not reuse those that it has merged with others.
    made: u32,
    /// The nodes that are unreserved from the begin of the window to the end of an interval, for the first intervals:
    /// most jobs are tested for a start now.
    from_begin: Vec<NodeSet>,
    /// How many of them are right.
    known: usize,
    /// What the tests of the job have met that is being planned.
    met: Met,
}

#[derive(Clone, Debug)]
struct Interval {
    begin: u64,
    end: u64,
    unreserved: NodeSet,
    /// How many nodes are unreserved.
    count: usize,
    /// Whether a node is unreserved in the next interval that is reserved in this one; `None` if not known.
    gain_follows: Option<bool>,
}

/// What one job has met of the intervals: its tests begin ever later, so that most of the next one is known.
///
/// What two stacks do for the minimum of a window that slides: an interval is put together with others twice at most.
#[derive(Clone, Debug, Default)]
struct Met {
    /// By interval from the first on that was met: those of the job's nodes that are unreserved from it to the last one
    /// before `pivot`. The last one comes first.
    /// Only the first `len` are right; the others are kept for what they have allocated.
    to_pivot: Vec<NodeSet>,
    len: usize,
    pivot: usize,
    /// The nodes unreserved from `pivot` to the last one before `end`; of no use if there are none.
    from_pivot: NodeSet,
    end: usize,
}

/// Too few nodes are unreserved, and so they are at every start up to the end of the interval that this instant begins.
pub(super) struct TooFew(pub(super) u64);

/// So many intervals are put together before it is counted what they leave.
const BETWEEN_COUNTS: usize = 4;

impl NodeSpace {
    /// `begin` and `end` are multiples of `grain`.
    pub(super) fn new(begin: u64, end: u64, grain: u64, nodes: usize) -> NodeSpace {
        let first = Interval { begin, end, unreserved: NodeSet::all(nodes), count: nodes, gain_follows: None };
        let met = Met { from_pivot: NodeSet::empty(nodes), ..Met::default() };
        NodeSpace { intervals: vec![first], grain, made: 1, from_begin: Vec::new(), known: 0, met }
    }

    /// How many intervals have been made.
    pub(super) fn made(&self) -> u32 {
        self.made
    }

    /// Begins the tests of another job, or of one after something has been reserved.
    pub(super) fn begin_plan(&mut self) {
        self.met.pivot = 0;
    }

    /// Keeps the nodes that nobody has reserved at any time from `from` to `to`. An interval that begins at `to` counts.
    ///
    /// If these are found to be fewer than `needed`, `nodes` is of no use afterwards.
    pub(super) fn keep_unreserved(
        &mut self,
        from: u64,
        to: u64,
        needed: usize,
        nodes: &mut NodeSet,
    ) -> Result<(), TooFew> {
        let first = self.first_after(from);
        let last = self.intervals.partition_point(|i| i.begin <= to);
        if self.intervals[..first].iter().all(|i| i.begin == i.end) {
            self.unreserved_from_begin(to).into_iter().for_each(|unreserved| nodes.keep(unreserved));
        } else if first < last {
            if let Some(short) = self.intervals[first..last].iter().rev().find(|i| i.count < needed) {
                return Err(TooFew(short.begin));
            }
            self.met.keep(&self.intervals, first, last, needed, nodes)?;
        }
        if nodes.has(needed) { Ok(()) } else { Err(TooFew(from)) }
    }

    /// The nodes that nobody has reserved from the begin of the window to an instant; `None`: all.
    pub(super) fn unreserved_from_begin(&mut self, to: u64) -> Option<&NodeSet> {
        let last = self.intervals.partition_point(|i| i.begin <= to).checked_sub(1)?;
        self.from_begin.truncate(self.known);
        for own in self.intervals.iter().take(last + 1).skip(self.known) {
            let mut nodes = own.unreserved.clone();
            self.from_begin.last().into_iter().for_each(|before| nodes.keep(before));
            self.from_begin.push(nodes);
        }
        self.known = self.from_begin.len();
        self.from_begin.get(last)
    }

    /// Returns whether some of the nodes are reserved at a time from `begin` to `end`, without `end`.
    pub(super) fn overlaps(&self, begin: u64, end: u64, nodes: &SparseNodes) -> bool {
        let mut met = self.intervals[self.first_after(begin)..].iter().take_while(|i| i.begin < end);
        met.any(|i| !i.unreserved.has_all(nodes))
    }

    /// The first interval that ends after an instant.
    fn first_after(&self, time: u64) -> usize {
        self.intervals.partition_point(|i| i.end <= time)
    }

    /// Returns the end of the first interval after `from` behind which one of the nodes is unreserved that is not in it. Of
    /// the intervals that begin after `to` only the first is looked at; if it has no such end, with `goes_beyond` the end of
    /// the next one counts, unless that is the last.
    pub(super) fn next_gain(&mut self, from: u64, to: u64, nodes: &NodeSet, goes_beyond: bool) -> Option<u64> {
        for at in self.first_after(from)..self.intervals.len() {
            if self.gains_after(at, nodes) {
                return Some(self.intervals[at].end);
            }
            if self.intervals[at].begin > to {
                let beyond = self.intervals.get(at + 1).filter(|_| goes_beyond && at + 2 < self.intervals.len());
                return beyond.map(|interval| interval.end);
            }
        }
        None
    }

    /// The last of these ends after `from`, up to `to`.
    pub(super) fn last_gain(&mut self, from: u64, to: u64, nodes: &NodeSet) -> Option<u64> {
        let mut ended = self.first_after(from)..self.first_after(to);
        ended.rfind(|at| self.gains_after(*at, nodes)).map(|at| self.intervals[at].end)
    }

    /// Whether one of the nodes is unreserved in the interval behind this one and not in this one.
    fn gains_after(&mut self, at: usize, nodes: &NodeSet) -> bool {
        let Some([this, next]) = self.intervals.get_mut(at..at + 2) else { return false };
        let gains = || next.count > this.count || !next.unreserved.is_in(&this.unreserved);
        *this.gain_follows.get_or_insert_with(gains) && next.unreserved.gains_on(&this.unreserved, nodes)
    }

    /// Reserves nodes, whole, for one grain at least. Of the intervals that it changes, and the ones before and behind them,
    /// the first two neighbours that have become alike are put together (`_add_reservation` of sched/backfill).
    pub(super) fn reserve(&mut self, begin: u64, end: u64, nodes: &SparseNodes) {
        let begin = begin.max(self.intervals[0].begin);
        let end = end.max(begin.saturating_add(self.grain));
        let at = self.intervals.partition_point(|i| i.end < begin);
        if at == self.intervals.len() {
            return;
        }
        let before = at.saturating_sub(1);
        if self.intervals[at].end > begin {
            self.cut(at, begin);
        }
        self.known = self.known.min(at + 1);
        self.intervals[at].gain_follows = None;
        let mut behind = at + 1;
        while behind < self.intervals.len() {
            if end < self.intervals[behind].end {
                self.cut(behind, end);
            }
            let interval = &mut self.intervals[behind];
            interval.count -= interval.unreserved.remove_sparse(nodes);
            interval.gain_follows = None;
            behind += 1;
            if interval.end == end {
                break;
            }
        }
        let are_alike = |pair: &[Interval]| pair[0].count == pair[1].count && pair[0].unreserved == pair[1].unreserved;
        let changed = &self.intervals[before..(behind + 1).min(self.intervals.len())];
        if let Some(first) = changed.windows(2).position(are_alike).map(|at| before + at) {
            let second = self.intervals.remove(first + 1);
            let first_one = &mut self.intervals[first];
            (first_one.end, first_one.gain_follows) = (second.end, second.gain_follows);
            self.known = self.known.min(first + 1);
        }
    }

    /// Makes an interval end, and the next one begin, at an instant.
    fn cut(&mut self, at: usize, time: u64) {
        let rest = Interval { begin: time, ..self.intervals[at].clone() };
        self.intervals[at].end = time;
        self.intervals[at].gain_follows = Some(false);
        self.intervals.insert(at + 1, rest);
        self.known = self.known.min(at + 1);
        self.made += 1;
    }
}

impl Met {
    /// Keeps the nodes unreserved in the intervals from `first` to `last`, without `last`.
    fn keep(
        &mut self,
        intervals: &[Interval],
        first: usize,
        last: usize,
        needed: usize,
        nodes: &mut NodeSet,
    ) -> Result<(), TooFew> {
        if first >= self.pivot {
            (self.len, self.pivot, self.end) = (0, last, last);
            // From the last to the first: what is too little is so for all starts up to there.
            for interval in intervals[first..last].iter().rev() {
                if self.to_pivot.len() == self.len {
                    self.to_pivot.push(NodeSet::empty(0));
                }
                let (before, after) = self.to_pivot.split_at_mut(self.len);
                let Some(all) = after.first_mut() else { break };
                all.set_to_both(&interval.unreserved, before.last().unwrap_or(nodes));
                let is_counted = self.len % BETWEEN_COUNTS == BETWEEN_COUNTS - 1;
                if is_counted && !all.has(needed) {
                    self.pivot = 0;
                    return Err(TooFew(interval.begin));
                }
                self.len += 1;
            }
        }
        let mut is_first = self.end == self.pivot;
        for interval in &intervals[self.end..last.max(self.end)] {
            match is_first {
                true => self.from_pivot.copy_from(&interval.unreserved),
                false => self.from_pivot.keep(&interval.unreserved),
            }
            is_first = false;
        }
        self.end = self.end.max(last);
        nodes.keep(&self.to_pivot[self.pivot - 1 - first]);
        if self.end > self.pivot {
            nodes.keep(&self.from_pivot);
        }
        Ok(())
    }
}
