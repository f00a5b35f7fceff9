//! Backfill: a plan of whole nodes, made anew in each run, in which jobs start that delay no planned one.

use std::collections::HashMap;
use std::rc::Rc;

use evenhand_model::Time;
use evenhand_policies::Policy;

use super::super::placements::Placements;
use super::engine::{Engine, user_and_account};
use super::looked_arrays::LookedArrays;
use super::node_set::{NodeSet, SparseNodes};
use super::node_space::{NodeSpace, TooFew};
use super::outlook::{Outlook, PossibleStart, Within};
use super::planned_licences::PlannedLicences;
use super::results::Activity;
use crate::SimulationError;

/// How many jobs a run has looked at, by what limits it.
#[derive(Default)]
struct Looked {
    by_user: HashMap<u32, u32>,
    by_partition: HashMap<usize, u32>,
    by_both: HashMap<(u32, usize), u32>,
    by_association: HashMap<(u32, Option<u32>), u32>,
}

/// What waits that a run may still start.
///
/// In a run nodes only become reserved and used, so what cannot start beside the reservations made so far starts in no
/// later part of the run. And since no plan is kept, a run may end as soon as nothing is left that can start.
struct Candidates {
    /// By shape: how many of its jobs the run has not looked at.
    to_come: Vec<u32>,
    /// The shapes that may start. Of the last one it is known, or tested next.
    shapes: Vec<u32>,
    is_known: bool,
}

impl Candidates {
    /// A node has been reserved or taken.
    fn less_is_free(&mut self) {
        self.is_known = false;
    }

    /// Whether a job that the run has not looked at can start now.
    fn is_any(&mut self, engine: &Engine<'_>, begin: u64, space: &mut NodeSpace) -> bool {
        while let Some(&shape) = self.shapes.last() {
            let is_left = self.to_come[shape as usize] > 0;
            if is_left && (self.is_known || engine.can_start(shape, begin, space)) {
                self.is_known = true;
                return true;
            }
            self.is_known = false;
            self.shapes.pop();
        }
        false
    }
}

/// One more, if there are fewer than `most`; 0: no limit.
fn one_more(count: &mut u32, most: u32) -> bool {
    let fewer = most == 0 || *count < most;
    *count += u32::from(fewer);
    fewer
}

impl<'a> Engine<'a> {
    /// A run of backfill.
    pub(super) fn backfill(&mut self, now: Time, policy: &mut dyn Policy) -> Result<(), SimulationError> {
        let mut candidates = self.candidates();
        let mut result = Ok(());
        if !candidates.shapes.is_empty() {
            self.begin_walk(now, policy);
            result = self.walk_backfill(now, &mut candidates, policy);
            self.notify(now, policy);
            self.end_walk(policy);
        }
        self.shapes.give_back(candidates.to_come);
        result
    }

    /// The waiting jobs that would fit if nothing were reserved.
    fn candidates(&mut self) -> Candidates {
        let (to_come, waiting) = self.shapes.count(self.pending.entries().iter().map(|entry| entry.row));
        let kind_of = |engine: &Self, shape: u32| engine.jobs.kind[engine.shapes.example(shape) as usize] as usize;
        let may_preempt = |engine: &Self, shape: u32| engine.may_preempt(engine.shapes.example(shape));
        let may_start = |shape: &u32| self.fits_now(kind_of(self, *shape)) || may_preempt(self, *shape);
        let shapes = waiting.into_iter().filter(may_start).collect();
        Candidates { to_come, shapes, is_known: false }
    }

    /// Whether a job of a shape can start now beside the reservations.
    fn can_start(&self, shape: u32, begin: u64, space: &mut NodeSpace) -> bool {
        let row = self.shapes.example(shape);
        if self.may_preempt(row) {
            return true;
        }
        let kind = self.kind(row);
        if !self.nodes.has_processors(kind) {
            return false;
        }
        let number = self.jobs.kind[row as usize] as usize;
        let end = begin.saturating_add(self.planned_length(row));
        let unreserved = space.unreserved_from_begin(end);
        if unreserved.is_some_and(|nodes| !nodes.has(self.nodes_needed[number])) {
            return false;
        }
        let mut nodes = self.able_now(number);
        unreserved.into_iter().for_each(|unreserved| nodes.keep(unreserved));
        self.closed.keep_open(row, begin, end, &mut nodes);
        self.nodes.chunks_in(kind, &nodes) >= u64::from(kind.copies)
    }

    /// Whether a job of a kind fits as nodes are now.
    fn fits_now(&mut self, kind: usize) -> bool {
        let of = &self.jobs.kinds[kind];
        if self.is_known_not_to_fit(kind) {
            return false;
        }
        let fits = self.nodes.chunks_in(of, &self.able_now(kind)) >= u64::from(of.copies);
        if !fits {
            self.note_that_does_not_fit(kind);
        }
        fits
    }

    fn walk_backfill(
        &mut self,
        now: Time,
        candidates: &mut Candidates,
        policy: &mut dyn Policy,
    ) -> Result<(), SimulationError> {
        let begin = now.nanos();
        for (_, _, slot) in self.ends.range(..(begin.saturating_add(1), 0, 0)) {
            self.jobs_on_nodes.note_change(&self.running[*slot as usize].held);
        }
        let mut outlook = self.outlook.take().unwrap_or_else(|| Outlook::new(self));
        outlook.move_to(self, begin);
        let result = self.walk_with(now, candidates, &mut outlook, policy);
        self.outlook = Some(outlook);
        result
    }

    fn walk_with(
        &mut self,
        now: Time,
        candidates: &mut Candidates,
        outlook: &mut Outlook,
        policy: &mut dyn Policy,
    ) -> Result<(), SimulationError> {
        let begin = now.nanos();
        let window_end = begin.saturating_add(self.options.bf_window.nanos());
        let grain = self.grain();
        let down = |time: u64| time / grain * grain;
        let mut space = NodeSpace::new(down(begin), down(window_end), grain, self.nodes.len());
        let mut licences = self.held_licences();
        let (mut looked, mut arrays) = (Looked::default(), LookedArrays::default());
        let mut reserved = vec![0u32; self.partitions.len()];
        let (mut tested, mut starts) = (0u32, 0u32);
        while candidates.is_any(self, begin, &mut space) {
            self.progress.check()?;
            let Some(row) = self.next_in_order(now, policy) else { break };
            if tested >= self.options.bf_max_job_test {
                break;
            }
            let kind = self.jobs.kind[row as usize] as usize;
            candidates.to_come[self.shapes.of(row) as usize] -= 1;
            let array = self.array_of(row);
            if self.limits.is_throttled(row) || (array.is_some() && self.options.bf_max_job_array_resv == 0) {
                continue;
            }
            let (length, fits_now) = (self.planned_length(row), self.fits_now(kind));
            let mut is_tested = false;
            for at in 0..self.attempts_of(row) {
                let partition = self.attempt(row, at).0;
                if !arrays.look(array, partition) {
                    continue;
                }
                let lacks_licences = licences.is_none() && self.limits.lacks_licences(row);
                if !self.look_at(row, at, &mut looked) || self.limits.exceeds_limit(row) || lacks_licences {
                    continue;
                }
                let planned = licences.as_ref();
                let plan = self.plan(begin, (row, at), fits_now, (&mut space, planned), outlook, &mut is_tested);
                let Some((start, found)) = plan else { continue };
                // A job beyond its limit still holds some.
                if start <= begin && self.limits.lacks_licences(row) {
                    continue;
                }
                let mut found = found;
                let mut is_now = start <= begin && !found.waits;
                if is_now && self.preemption.is_on() && !self.fits_in_plan(now, (row, at), &mut space) {
                    is_now = false;
                    // If it does not fit then either, it waits for jobs beyond their limits, and reserves their nodes.
                    if let Some(held) = self.preempt_for_plan(now, (row, at), &mut space) {
                        outlook.forget(self);
                        found = PossibleStart::new(begin, held);
                    }
                }
                if is_now {
                    licences.iter_mut().for_each(|planned| self.hold_licences(planned, begin, length, row));
                    // `bf_node_space_size` is `bf_max_job_test` if it is not set.
                    if self.nodes.is_whole(self.kind(row)) && space.made() < self.options.bf_max_job_test {
                        self.reserve(&mut space, begin, length, &found.nodes);
                    }
                    let (at, slot) = self.start(now, row, found.held.clone(), Activity::Backfill)?;
                    match self.preemption.suspends() {
                        true => outlook.forget(self),
                        false => outlook.started(self, at, row, slot),
                    }
                    candidates.less_is_free();
                    arrays.started(array, partition);
                    starts += 1;
                    break;
                }
                let most = self.options.bf_job_part_count_reserve;
                let may = start <= window_end && !self.reserves_nothing(now, row);
                if may && one_more(&mut reserved[partition], most) {
                    if space.made() >= self.options.bf_max_job_test {
                        return Ok(());
                    }
                    licences.iter_mut().for_each(|planned| self.hold_licences(planned, start, length, row));
                    self.reserve(&mut space, start, length, &found.nodes);
                    candidates.less_is_free();
                    arrays.reserved(array, partition, self.options.bf_max_job_array_resv);
                }
            }
            tested += u32::from(is_tested);
            if starts > 0 && starts == self.options.bf_max_job_start {
                break;
            }
        }
        Ok(())
    }

    /// Whether the limits of a run on what it looks at allow the job.
    fn look_at(&self, row: u32, at: usize, looked: &mut Looked) -> bool {
        let (user, account) = user_and_account(self.workload, row);
        let (partition, _) = self.attempt(row, at);
        let o = &self.options;
        one_more(looked.by_partition.entry(partition).or_default(), o.bf_max_job_part)
            && one_more(looked.by_user.entry(user.0).or_default(), o.bf_max_job_user)
            && one_more(looked.by_both.entry((user.0, partition)).or_default(), o.bf_max_job_user_part)
            && one_more(looked.by_association.entry((user.0, account)).or_default(), o.bf_max_job_assoc)
    }

    /// Whether a job fits now beside the reservations, without the end of another one.
    fn fits_in_plan(&self, now: Time, (row, place): (u32, usize), space: &mut NodeSpace) -> bool {
        let nodes = self.open_in_plan(now, (row, place), space);
        let lenders = self.lenders(now.nanos(), row, place);
        self.choose_over(&self.nodes, &lenders, self.kind(row), &nodes, false).is_some()
    }

    /// Makes running jobs end for one that could start now without them. Returns where it will fit, if it does then.
    fn preempt_for_plan(&mut self, now: Time, (row, place): (u32, usize), space: &mut NodeSpace) -> Option<Placements> {
        let nodes = self.open_in_plan(now, (row, place), space);
        self.preempt(now, row, place, &nodes)
    }

    /// The nodes on which a job may start now beside the reservations.
    fn open_in_plan(&self, now: Time, (row, place): (u32, usize), space: &mut NodeSpace) -> NodeSet {
        let mut nodes = self.open_now(now, row, place);
        let end = now.nanos().saturating_add(self.planned_length(row));
        space.unreserved_from_begin(end).into_iter().for_each(|unreserved| nodes.keep(unreserved));
        nodes
    }

    fn reserve(&self, space: &mut NodeSpace, start: u64, length: u64, nodes: &SparseNodes) {
        let (from, to) = self.planned_time(start, length);
        space.reserve(from, to, nodes);
    }

    fn hold_licences(&self, planned: &mut PlannedLicences<'a>, start: u64, length: u64, row: u32) {
        let (from, to) = self.planned_time(start, length);
        planned.hold(from, to.max(from.saturating_add(self.grain())), row);
    }

    /// Plans begin and end at multiples of this.
    fn grain(&self) -> u64 {
        self.options.bf_resolution.nanos().max(1)
    }

    /// The time for which a job reserves, if that is one grain or longer.
    fn planned_time(&self, start: u64, length: u64) -> (u64, u64) {
        let grain = self.grain();
        (start / grain * grain, start.saturating_add(length) / grain * grain)
    }

    /// What running jobs hold of licences, each until its limit; `None` without `bf_licenses`.
    fn held_licences(&self) -> Option<PlannedLicences<'a>> {
        if !self.options.bf_licenses {
            return None;
        }
        let mut planned = PlannedLicences::new(self.workload, &self.jobs.limits.licences);
        let grain = self.grain();
        for (end, row, slot) in &self.ends {
            if !self.running[*slot as usize].completing {
                planned.hold(0, end / grain * grain, *row);
            }
        }
        Some(planned)
    }

    /// The earliest start of a job in one of its partitions beside the reservations, and its nodes; `None` if there is
    /// none in the window.
    fn plan(
        &self,
        now: u64,
        (row, place): (u32, usize),
        fits: bool,
        (space, licences): (&mut NodeSpace, Option<&PlannedLicences<'a>>),
        outlook: &mut Outlook,
        is_tested: &mut bool,
    ) -> Option<(u64, Rc<PossibleStart>)> {
        let kind = self.kind(row);
        let (partition, able) = self.attempt(row, place);
        let chunks = self.chunks_of[self.jobs.kind[row as usize] as usize];
        let at_least = self.nodes.nodes_at_least(kind);
        let enough = self.nodes_needed[self.jobs.kind[row as usize] as usize];
        let (preemptable, lenders) = (self.preemptable(now, row, place), self.lenders(now, row, place));
        let length = self.planned_length(row);
        let window_end = now.saturating_add(self.options.bf_window.nanos());
        // A node that becomes unreserved counts whether the job fits on it or not.
        let mut of_partition = self.partitions[partition].clone();
        of_partition.add_all(able);
        of_partition.keep(self.closed.up());
        let mut nodes = NodeSet::empty(self.nodes.len());
        // What the last test was of, and its result.
        let mut of_last = NodeSet::empty(self.nodes.len());
        let mut last: Option<Option<Rc<PossibleStart>>> = None;
        space.begin_plan();
        let mut at = now;
        loop {
            at = licences.map_or(at, |licences| licences.earliest(row, at, length));
            if at > window_end {
                return None;
            }
            nodes.copy_from(able);
            nodes.keep(self.closed.up());
            let end = at.saturating_add(length);
            // Where even empty nodes do not suffice a job is tested too, which counts once.
            let needed = if *is_tested { enough } else { at_least };
            if let Err(TooFew(until)) = space.keep_unreserved(at, end, needed, &mut nodes) {
                let until = until.max(at);
                at = match self.closed.restrict(row, at, until.saturating_add(length)) {
                    true => self.more_nodes_at(row, at, end, &of_partition, space)?,
                    // Up to there each such instant follows from the one before, and has too few nodes too.
                    false => {
                        let reached = space.last_gain(at, until, &of_partition).unwrap_or(at);
                        let end = reached.saturating_add(length);
                        space.next_gain(reached, end, &of_partition, self.options.tests_by_interval)?
                    }
                };
                continue;
            }
            self.closed.keep_open(row, at, end, &mut nodes);
            if !nodes.has(at_least) {
                at = self.more_nodes_at(row, at, end, &of_partition, space)?;
                continue;
            }
            *is_tested = true;
            let by_interval = self.options.tests_by_interval;
            let mut more = None;
            let mut within = Within::ALL;
            if by_interval {
                more = self.more_nodes_at(row, at, end, &of_partition, space);
                within = Within { from: at, to: more };
            }
            // On the same nodes it can start at the same time.
            let known = last.take().filter(|_| of_last == nodes && !by_interval);
            let result = known.unwrap_or_else(|| {
                let tests_now = fits && (at == now || !by_interval);
                let starts = if tests_now { outlook.start_now(self, kind, chunks, &nodes) } else { None };
                let starts = starts.map(|held| PossibleStart::new(now, held));
                starts.or_else(|| match preemptable.is_empty() && lenders.is_empty() {
                    true => outlook.later_start(self, kind, chunks, &nodes, within),
                    false => self.start_without(now, kind, (&preemptable, &lenders), &nodes, within),
                })
            });
            of_last.copy_from(&nodes);
            if !by_interval && result.as_ref().is_none_or(|found| found.at.max(at) > now) {
                more = self.more_nodes_at(row, at, end, &of_partition, space);
            }
            let Some(found) = last.insert(result) else {
                at = more?;
                continue;
            };
            let start = found.at.max(at);
            if start > now {
                let is_late = more.is_some_and(|more| start > more);
                let is_reserved =
                    |space: &NodeSpace| start <= window_end && !self.is_unreserved(row, start, found, space, licences);
                // From 24.11 on what is reserved is looked at first.
                at = match by_interval && is_reserved(space) {
                    true => start,
                    false if is_late => more?,
                    false if !by_interval && is_reserved(space) => start,
                    false => return last.flatten().map(|found| (start, found)),
                };
                continue;
            }
            return last.flatten().map(|found| (start, found));
        }
    }

    /// When more nodes may be unreserved for a job than for one from `at` to `end`: at the end of an interval of the plan, or
    /// when a reservation ends or the job's own begins.
    fn more_nodes_at(&self, row: u32, at: u64, end: u64, of_partition: &NodeSet, space: &mut NodeSpace) -> Option<u64> {
        let gains = match self.closed.restrict(row, at, end) {
            true => {
                let mut open = of_partition.clone();
                self.closed.keep_open(row, at, end, &mut open);
                space.next_gain(at, end, &open, self.options.tests_by_interval)
            }
            false => space.next_gain(at, end, of_partition, self.options.tests_by_interval),
        };
        let opens = self.closed.next_open(row, at, end);
        opens.into_iter().chain(gains).min()
    }

    /// Whether neither the plan nor reservations or licences are in the way of a planned start.
    fn is_unreserved(
        &self,
        row: u32,
        start: u64,
        found: &PossibleStart,
        space: &NodeSpace,
        licences: Option<&PlannedLicences<'a>>,
    ) -> bool {
        let length = self.planned_length(row);
        let end = start.saturating_add(length);
        let (from, to) = self.planned_time(start, length);
        !space.overlaps(from, to, &found.nodes)
            && self.closed.leave(row, start, end, &found.held)
            && licences.is_none_or(|licences| licences.are_left(row, start, end))
    }
}
