//! Nodes that are down or drained, and nodes that are reserved for jobs of a reservation.

use evenhand_model::{Detail, Workload};

use super::super::placements::Placements;
use super::super::site::{Closed, Site};
use super::engine::SECOND;
use super::node_set::NodeSet;

/// Nodes, and the time for which they are closed, in nanoseconds of the log.
#[derive(Clone, Debug)]
struct Period {
    from: u64,
    to: u64,
    nodes: NodeSet,
}

impl Period {
    fn new(closed: &Closed, zero: i64, nodes: usize) -> Period {
        let nanos = |seconds: i64| u64::try_from(seconds).map_or(0, |seconds| seconds.saturating_mul(SECOND));
        let mut set = NodeSet::empty(nodes);
        closed.nodes.iter().for_each(|node| set.insert(*node));
        let to = closed.to.map_or(u64::MAX, |to| nanos(to.in_log(zero)));
        Period { from: nanos(closed.from.in_log(zero)), to, nodes: set }
    }

    /// Whether it has an instant from `from` to `to`, without `to`.
    fn meets(&self, from: u64, to: u64) -> bool {
        self.from < to && from < self.to
    }
}

/// The outages and reservations of a site over the time of a log.
#[derive(Clone, Debug)]
pub(super) struct ClosedNodes {
    outages: Vec<Period>,
    reservations: Vec<Period>,
    /// When the last reservation begins; 0 if there is none.
    last_begin: u64,
    /// By row: the index of its reservation; empty if no job has one.
    of_row: Vec<Option<u32>>,
    /// The instants at which a period begins or ends that are still to come, the next one last.
    changes: Vec<u64>,
    all: NodeSet,
    /// The nodes of no outage now.
    up: NodeSet,
}

impl ClosedNodes {
    /// Those of a site, for a log whose first submission is at `first`.
    pub(super) fn new(site: &Site, workload: &Workload, first: u64) -> ClosedNodes {
        let zero = workload.zero_s();
        let period = |closed: &Closed| Period::new(closed, zero, site.len());
        let outages: Vec<Period> = site.outages.iter().map(period).collect();
        let reservations: Vec<Period> = site.reservations.iter().map(period).collect();
        let named: Vec<Option<u32>> = workload
            .details(Detail::Reservation)
            .iter()
            .map(|name| site.reservations.iter().position(|r| r.name == *name).map(|at| at as u32))
            .collect();
        let of_row = match named.iter().any(Option::is_some) {
            true => {
                (0..workload.len()).map(|row| named[workload.detail_id(Detail::Reservation, row)? as usize]).collect()
            }
            false => Vec::new(),
        };
        let edges = outages.iter().chain(&reservations).flat_map(|period| [period.from, period.to]);
        let mut changes: Vec<u64> = edges.filter(|at| *at > first && *at < u64::MAX).collect();
        changes.sort_unstable_by(|a, b| b.cmp(a));
        changes.dedup();
        let mut closed = ClosedNodes {
            last_begin: reservations.iter().map(|period| period.from).max().unwrap_or(0),
            outages,
            reservations,
            of_row,
            changes,
            all: NodeSet::all(site.len()),
            up: NodeSet::all(site.len()),
        };
        closed.find_up(first);
        closed
    }

    fn find_up(&mut self, now: u64) {
        self.up.copy_from(&self.all);
        let down = self.outages.iter().filter(|outage| outage.meets(now, now + 1));
        down.for_each(|outage| self.up.remove_all(&outage.nodes));
    }

    /// When a period begins or ends next.
    pub(super) fn next_change(&self) -> Option<u64> {
        self.changes.last().copied()
    }

    /// Goes to an instant; whether a period begins or ends at it.
    pub(super) fn move_to(&mut self, now: u64) -> bool {
        let is_change = self.changes.last() == Some(&now);
        if is_change {
            self.changes.pop();
            self.find_up(now);
        }
        is_change
    }

    /// Whether a reservation begins after an instant.
    pub(super) fn is_before_a_reservation(&self, now: u64) -> bool {
        now < self.last_begin
    }

    /// The nodes of no outage now.
    pub(super) fn up(&self) -> &NodeSet {
        &self.up
    }

    /// The number of a job's reservation, for what depends on it.
    pub(super) fn number_of(&self, row: u32) -> Option<u32> {
        self.of_row.get(row as usize).copied().flatten()
    }

    /// The reservation of a job that is not over at an instant.
    fn own(&self, row: u32, at: u64) -> Option<&Period> {
        self.number_of(row).map(|number| &self.reservations[number as usize]).filter(|own| own.to > at)
    }

    /// The reservations of others that a job would meet.
    fn of_others(&self, row: u32, from: u64, to: u64) -> impl Iterator<Item = &Period> {
        let own = self.own(row, from).and(self.number_of(row));
        let others = (0u32..).zip(&self.reservations).filter(move |(number, _)| Some(*number) != own);
        others.map(|(_, period)| period).filter(move |period| period.meets(from, to))
    }

    /// The nodes of a job's reservation, if that is not over.
    pub(super) fn nodes_of_reservation(&self, row: u32, now: u64) -> Option<&NodeSet> {
        self.own(row, now).map(|own| &own.nodes)
    }

    /// Keeps the nodes that reservations leave a job that starts at `from` and ends at `to` at the latest. Whether
    /// reservations leave it less than all.
    pub(super) fn keep_open(&self, row: u32, from: u64, to: u64, nodes: &mut NodeSet) -> bool {
        let mut is_less = false;
        if let Some(own) = self.own(row, from) {
            is_less = true;
            nodes.keep(&own.nodes);
            if from < own.from {
                nodes.clear();
            }
        }
        for period in self.of_others(row, from, to) {
            is_less = true;
            nodes.remove_all(&period.nodes);
        }
        is_less
    }

    /// Whether reservations may leave a job less than all nodes that starts at `from` or later and ends at `to` at the latest.
    pub(super) fn restrict(&self, row: u32, from: u64, to: u64) -> bool {
        self.own(row, from).is_some() || self.of_others(row, from, to).next().is_some()
    }

    /// Whether reservations leave a job all of these nodes.
    pub(super) fn leave(&self, row: u32, from: u64, to: u64, held: &Placements) -> bool {
        self.of_others(row, from, to).all(|period| held.iter().all(|(node, _)| !period.nodes.contains(node)))
    }

    /// When reservations may leave a job that would start at an instant more than they do then.
    pub(super) fn next_open(&self, row: u32, from: u64, to: u64) -> Option<u64> {
        let begin = self.own(row, from).map(|own| own.from).filter(|begin| *begin > from);
        let ends = self.of_others(row, from, to).map(|period| period.to).filter(|end| *end < u64::MAX);
        begin.into_iter().chain(ends).min()
    }
}
