//! Backfill: a plan of whole nodes, made anew in each run, in which jobs start that delay no planned one.

use std::collections::HashMap;

use evenhand_model::Time;
use evenhand_policies::Policy;

use super::super::kind::Kind;
use super::super::machine_state::Placements;
use super::super::pending_jobs::NO_ROW;
use super::engine::{Engine, SECOND, user_and_account};
use super::node_set::NodeSet;
use super::node_space::NodeSpace;
use super::results::Activity;
use crate::SimulationError;

/// The first groups of ends span so much time.
const FIRST_GROUP: u64 = 30 * SECOND;
/// How many ends a group has at most.
const LARGEST_GROUP: usize = 200;

/// A running job's end as the plan expects it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct End {
    at: u64,
    row: u32,
    slot: u32,
}

/// How many jobs a run has looked at, by what limits it.
#[derive(Default)]
struct Looked {
    by_user: HashMap<u32, u32>,
    by_partition: HashMap<usize, u32>,
    by_both: HashMap<(u32, usize), u32>,
    by_association: HashMap<(u32, Option<u32>), u32>,
}

/// The jobs of a run that would fit if nothing were reserved.
struct Fitting {
    /// By kind: whether it fits; `None` if no job of it waits.
    fits: Vec<Option<bool>>,
    /// By kind: how many jobs the run has not looked at.
    to_come: Vec<u32>,
    /// How many fitting jobs the run has not looked at.
    jobs: usize,
}

impl Fitting {
    /// The run looks at a job of a kind that fits, or fits no more.
    fn look_at(&mut self, kind: usize, fits: bool) {
        if self.fits[kind] == Some(true) {
            self.jobs -= if fits { 1 } else { self.to_come[kind] as usize };
            self.fits[kind] = Some(fits);
        }
        self.to_come[kind] -= 1;
    }
}

/// One more, if there are fewer than `most`; 0: no limit.
fn one_more(count: &mut u32, most: u32) -> bool {
    let fewer = most == 0 || *count < most;
    *count += u32::from(fewer);
    fewer
}

impl Engine<'_> {
    /// A run of backfill.
    pub(super) fn backfill(&mut self, now: Time, policy: &mut dyn Policy) -> Result<(), SimulationError> {
        // Without a job that fits the nodes as they are, a run starts nothing, and a plan is kept for no later run.
        let mut fitting = self.fitting_jobs();
        if fitting.jobs == 0 {
            return Ok(());
        }
        self.begin_walk(policy);
        let result = self.walk_backfill(now, &mut fitting, policy);
        self.notify_starts(now, policy);
        self.end_walk(policy);
        result
    }

    /// The waiting jobs that would fit if nothing were reserved.
    fn fitting_jobs(&self) -> Fitting {
        let kinds = self.jobs.kinds.len();
        let mut fitting = Fitting { fits: vec![None; kinds], to_come: vec![0; kinds], jobs: 0 };
        for entry in self.pending.entries().iter().filter(|e| e.row != NO_ROW) {
            let kind = entry.kind as usize;
            let fits = *fitting.fits[kind].get_or_insert_with(|| self.fits_now(kind));
            fitting.to_come[kind] += 1;
            fitting.jobs += usize::from(fits);
        }
        fitting
    }

    fn fits_now(&self, kind: usize) -> bool {
        let of = &self.jobs.kinds[kind];
        self.nodes.chunks_in(of, &self.able[kind]) >= u64::from(of.copies)
    }

    fn walk_backfill(
        &mut self,
        now: Time,
        fitting: &mut Fitting,
        policy: &mut dyn Policy,
    ) -> Result<(), SimulationError> {
        let begin = now.nanos();
        let window_end = begin.saturating_add(self.options.bf_window.nanos());
        let mut space = NodeSpace::new(begin, window_end, self.nodes.len());
        let mut ends = self.expected_ends(begin);
        let mut looked = Looked::default();
        let mut reserved = vec![0u32; self.partitions.len()];
        let (mut tested, mut starts) = (0u32, 0u32);
        while fitting.jobs > 0 {
            self.progress.check()?;
            let Some(row) = self.next_in_order(now, policy) else { break };
            if tested >= self.options.bf_max_job_test || space.len() >= self.options.bf_max_job_test as usize {
                break;
            }
            let kind = self.jobs.kind[row as usize] as usize;
            // Capacity only shrinks in a run.
            let fits = fitting.fits[kind] == Some(true) && (starts == 0 || self.fits_now(kind));
            fitting.look_at(kind, fits);
            if !self.look_at(row, &mut looked) || self.limits.is_over(row) {
                continue;
            }
            let Some((start, held)) = self.plan(begin, row, fits, &space, &ends, &mut tested) else { continue };
            let length = self.planned_length(row);
            if start <= begin {
                if self.options.whole_nodes {
                    self.reserve(&mut space, begin, length, &held);
                }
                let (at, slot) = self.start(now, row, held, Activity::Backfill)?;
                let end = End { at, row, slot };
                let place = ends.partition_point(|other| *other < end);
                ends.insert(place, end);
                starts += 1;
                if starts == self.options.bf_max_job_start {
                    break;
                }
                continue;
            }
            let partition = self.partition_of(row);
            let most = self.options.bf_job_part_count_reserve;
            let may = start <= window_end && !self.reserves_nothing(now, row);
            if may && one_more(&mut reserved[partition], most) {
                self.reserve(&mut space, start, length, &held);
            }
        }
        Ok(())
    }

    /// Whether the limits of a run on what it looks at allow the job.
    fn look_at(&self, row: u32, looked: &mut Looked) -> bool {
        let (user, account) = user_and_account(self.workload, row);
        let partition = self.partition_of(row);
        let o = &self.options;
        one_more(looked.by_partition.entry(partition).or_default(), o.bf_max_job_part)
            && one_more(looked.by_user.entry(user.0).or_default(), o.bf_max_job_user)
            && one_more(looked.by_both.entry((user.0, partition)).or_default(), o.bf_max_job_user_part)
            && one_more(looked.by_association.entry((user.0, account)).or_default(), o.bf_max_job_assoc)
    }

    fn reserve(&self, space: &mut NodeSpace, start: u64, length: u64, held: &Placements) {
        let grain = self.options.bf_resolution.nanos().max(1);
        let end = start.saturating_add(length).div_ceil(grain).saturating_mul(grain);
        space.reserve(start / grain * grain, end, held);
    }

    /// The ends of running jobs in the order of time. A job beyond its limit ends when it is killed at the latest, or
    /// at once.
    fn expected_ends(&self, now: u64) -> Vec<End> {
        let grace = self.options.over_time_limit.unwrap_or_default().nanos() + self.options.kill_wait.nanos();
        let expected = |&(at, row, slot): &(u64, u32, u32)| {
            let at = if at > now { at } else { at.saturating_add(grace).max(now + SECOND) };
            End { at, row, slot }
        };
        let mut ends: Vec<End> = self.ends.iter().map(expected).collect();
        ends.sort_unstable();
        ends
    }

    /// The earliest start of a job beside the reservations, and its nodes; `None` if there is none in the window.
    fn plan(
        &mut self,
        now: u64,
        row: u32,
        fits: bool,
        space: &NodeSpace,
        ends: &[End],
        tested: &mut u32,
    ) -> Option<(u64, Placements)> {
        let kind = self.kind(row);
        let able = self.jobs.kind[row as usize] as usize;
        let length = self.planned_length(row);
        let window_end = now.saturating_add(self.options.bf_window.nanos());
        let mut nodes = NodeSet::empty(self.nodes.len());
        let mut at = now;
        let mut is_tested = false;
        loop {
            if at > window_end {
                return None;
            }
            nodes.copy_from(&self.able[able]);
            space.keep_unreserved(at, at.saturating_add(length), &mut nodes);
            let later = space.next_gain(at);
            let at_least = self.nodes.nodes_at_least(kind);
            if nodes.len() < at_least {
                at = later?;
                continue;
            }
            if !is_tested {
                is_tested = true;
                *tested += 1;
            }
            let Some((found, held)) = self.will_run(kind, &nodes, now, fits, ends) else {
                at = later?;
                continue;
            };
            let start = found.max(at);
            if start > now && !space.has_unreserved(start, start.saturating_add(length), &held) {
                at = start;
                continue;
            }
            if start <= now {
                return Some((start, held));
            }
            if let Some(later) = later.filter(|later| start > *later) {
                at = later;
                continue;
            }
            return Some((start, held));
        }
    }

    /// When a job can start on these nodes, if running jobs end at their limits.
    ///
    /// Ends are taken in groups: those of 30 s, then of twice the time, and so on; a job starts when the last of the
    /// ended jobs that had one of its nodes ends.
    fn will_run(
        &mut self,
        kind: &Kind,
        nodes: &NodeSet,
        now: u64,
        fits: bool,
        ends: &[End],
    ) -> Option<(u64, Placements)> {
        if fits && let Some(held) = self.nodes.choose(kind, nodes, false) {
            return Some((now, held));
        }
        let Engine { nodes: state, running, jobs, options, .. } = self;
        let kind_of = |slot: u32| jobs.kind_of(running[slot as usize].row);
        let held_by = |slot: u32| &running[slot as usize].held;
        let wanted = u64::from(kind.copies);
        let mut fitting: u64 = nodes.iter().map(|node| u64::from(state.chunks_on(kind, node))).sum();
        let mut window = FIRST_GROUP;
        let mut removed: Vec<End> = Vec::new();
        let mut found = None;
        let mut group: Option<(u64, usize)> = None;
        let has_node = |end: &&End| held_by(end.slot).iter().any(|(node, _)| nodes.contains(node));
        let mut relevant = ends.iter().filter(has_node).peekable();
        while let Some(end) = relevant.next() {
            for (node, chunks) in held_by(end.slot).iter() {
                let counts = nodes.contains(node);
                let before = if counts { state.chunks_on(kind, node) } else { 0 };
                state.give_on(kind_of(end.slot), node, chunks);
                let after = if counts { state.chunks_on(kind, node) } else { 0 };
                fitting += u64::from(after - before);
            }
            removed.push(*end);
            let (first, size) = group.unwrap_or((end.at / FIRST_GROUP * FIRST_GROUP, 0));
            group = Some((first, size + 1));
            let goes_on = relevant.peek().is_some_and(|next| next.at <= first.saturating_add(window));
            if goes_on && size + 1 < LARGEST_GROUP {
                continue;
            }
            group = None;
            window = match options.bf_window_linear {
                Some(step) => window.saturating_add(step.nanos()),
                None => window.saturating_mul(2),
            };
            if fitting >= wanted {
                found = state.choose(kind, nodes, options.bf_busy_nodes);
                break;
            }
        }
        removed.iter().for_each(|end| state.take(kind_of(end.slot), held_by(end.slot)));
        let held = found?;
        let uses = |end: &&End| held_by(end.slot).iter().any(|(node, _)| held.iter().any(|(other, _)| other == node));
        let last = removed.iter().rev().find(uses);
        Some((last.map_or(now, |end| end.at), held))
    }
}
