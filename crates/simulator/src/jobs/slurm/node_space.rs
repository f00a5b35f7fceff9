//! Backfill's table of times: which nodes are not reserved when.

use super::super::machine_state::Placements;
use super::node_set::NodeSet;

/// Times from the begin to the end of a run's window, each with the nodes that no planned job has reserved.
///
/// The intervals follow one another without a gap.
#[derive(Clone, Debug)]
pub(super) struct NodeSpace {
    intervals: Vec<Interval>,
}

#[derive(Clone, Debug)]
struct Interval {
    begin: u64,
    end: u64,
    unreserved: NodeSet,
}

impl NodeSpace {
    pub(super) fn new(begin: u64, end: u64, nodes: usize) -> NodeSpace {
        NodeSpace { intervals: vec![Interval { begin, end, unreserved: NodeSet::all(nodes) }] }
    }

    /// The number of intervals.
    pub(super) fn len(&self) -> usize {
        self.intervals.len()
    }

    /// Keeps the nodes that nobody has reserved at any time from `from` to `to`. An interval that begins at `to` counts.
    pub(super) fn keep_unreserved(&self, from: u64, to: u64, nodes: &mut NodeSet) {
        self.from(from).iter().take_while(|i| i.begin <= to).for_each(|i| nodes.keep(&i.unreserved));
    }

    /// Returns whether all of the job's nodes are unreserved from `from` to `to`.
    pub(super) fn has_unreserved(&self, from: u64, to: u64, held: &Placements) -> bool {
        let mut met = self.from(from).iter().take_while(|i| i.begin <= to);
        met.all(|i| held.iter().all(|(node, _)| i.unreserved.contains(node)))
    }

    /// The intervals that end after an instant.
    fn from(&self, time: u64) -> &[Interval] {
        &self.intervals[self.intervals.partition_point(|i| i.end <= time)..]
    }

    /// Returns the end of the first interval after `time` behind which a node is unreserved that is not in it.
    pub(super) fn next_gain(&self, time: u64) -> Option<u64> {
        let gains = |pair: &&[Interval]| !pair[1].unreserved.is_in(&pair[0].unreserved);
        self.from(time).windows(2).find(gains).map(|pair| pair[0].end)
    }

    /// Reserves nodes, whole.
    pub(super) fn reserve(&mut self, begin: u64, end: u64, held: &Placements) {
        let (first, last) = (self.cut(begin), self.cut(end));
        for interval in &mut self.intervals[first..last] {
            held.iter().for_each(|(node, _)| interval.unreserved.remove(node));
        }
    }

    /// Makes an interval begin at an instant within the table. Returns the first interval that does not begin before.
    fn cut(&mut self, time: u64) -> usize {
        let at = self.intervals.partition_point(|i| i.begin < time);
        if let Some(before) = at.checked_sub(1).map(|i| &mut self.intervals[i]).filter(|i| i.end > time) {
            let rest = Interval { begin: time, end: before.end, unreserved: before.unreserved.clone() };
            before.end = time;
            self.intervals.insert(at, rest);
        }
        at
    }
}
