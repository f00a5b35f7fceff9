//! Preemption: running jobs that make way for others (preempt/partition_prio and preempt/qos).

use std::cmp::{Ordering, Reverse};
use std::rc::Rc;

use evenhand_model::{Detail, NO_TIME, PreemptMode, Span, Time, Workload};

use super::super::kind::Kind;
use super::super::placements::Placements;
use super::super::site::{Preemptable, Site};
use super::engine::{Engine, SECOND};
use super::node_set::NodeSet;
use super::nodes::Nodes;
use super::options::{PreemptType, SlurmOptions};
use super::outlook::{End, Groups, PossibleStart, Within, expected_ends};
use super::queue::Order;
use super::running::{Event, LIMIT_SWEEP, Running};
use super::suspension::Lenders;

/// After its end a job that is requeued waits so long before it can start (`DEFAULT_EXPIRATION_WINDOW`, and a second).
const REQUEUE_DELAY: u64 = 121 * SECOND;

/// Who may preempt whom, and how.
#[derive(Clone, Debug)]
pub(super) struct Preemption {
    by: Option<PreemptType>,
    /// By row: the number of its QOS; empty if no job has one that the site describes.
    qos_of: Vec<Option<u16>>,
    qos: Vec<Preemptable>,
    /// By QOS: whether it preempts each of them.
    preempts: Vec<Vec<bool>>,
    /// By partition, the first for jobs in none.
    partitions: Vec<Preemptable>,
    mode: PreemptMode,
    /// Whether jobs can be suspended, and whether any is by its mode.
    gang: bool,
    suspends: bool,
    /// Whether all QOS preempt within themselves.
    within: bool,
    /// Whether only jobs of a lower priority are preempted.
    priority: bool,
    exempt_time: Span,
}

impl Preemption {
    pub(super) fn new(site: &Site, workload: &Workload, options: &SlurmOptions) -> Preemption {
        let by = options.preempt_type.filter(|_| options.preempt_mode != PreemptMode::Off);
        let none = Preemptable { rank: 0, mode: None, grace: Span::ZERO, exempt: None, within: false };
        let mut names: Vec<&String> = site.qos.iter().map(|(name, ..)| name).collect();
        if options.preempt_within {
            // Then the jobs of any QOS preempt others of it.
            let others = workload.details(Detail::Qos).iter().filter(|name| !names.contains(name));
            names.extend(others.collect::<Vec<_>>());
        }
        let number = |name: &String| names.iter().position(|qos| *qos == name).map(|at| at as u16);
        let named: Vec<Option<u16>> = workload.details(Detail::Qos).iter().map(number).collect();
        let qos_of = match by.is_some() && named.iter().any(Option::is_some) {
            true => (0..workload.len()).map(|row| named[workload.detail_id(Detail::Qos, row)? as usize]).collect(),
            false => Vec::new(),
        };
        let preempts = (0..names.len()).map(|at| {
            let preempted = site.qos.get(at).map(|(_, _, preempted)| preempted);
            names.iter().map(|other| preempted.is_some_and(|names| names.contains(other))).collect()
        });
        let mut rules = Preemption {
            by,
            qos_of,
            qos: (0..names.len()).map(|at| site.qos.get(at).map_or(none, |(_, rules, _)| *rules)).collect(),
            preempts: preempts.collect(),
            partitions: std::iter::once(none).chain(site.queues.iter().map(|queue| queue.preemptable)).collect(),
            mode: options.preempt_mode,
            gang: options.preempt_gang,
            suspends: false,
            within: options.preempt_within,
            priority: options.preempt_priority,
            exempt_time: options.preempt_exempt_time,
        };
        let is_suspended = |rules: &Preemptable| rules.mode == Some(PreemptMode::Suspend);
        let by_own = rules.partitions.iter().chain(&rules.qos).any(is_suspended);
        rules.suspends = by.is_some() && rules.gang && (by_own || rules.mode == PreemptMode::Suspend);
        rules
    }

    /// Whether any job may preempt another.
    pub(super) fn is_on(&self) -> bool {
        self.by.is_some()
    }

    /// Whether running jobs may be suspended.
    pub(super) fn suspends(&self) -> bool {
        self.suspends
    }

    /// Whether the queue is in another order than by tiers and priorities: with preempt/qos.
    pub(super) fn orders_queue(&self) -> bool {
        self.by == Some(PreemptType::Qos)
    }

    /// Whether the QOS of a job preempts within itself.
    pub(super) fn preempts_within(&self, row: u32) -> bool {
        self.qos_number(row).is_some_and(|qos| self.within || self.qos[usize::from(qos)].within)
    }

    /// Whether the QOS of a job preempts another one, that of another job.
    pub(super) fn preempts_other(&self, row: u32, other: u32) -> bool {
        let numbers = self.qos_number(row).zip(self.qos_number(other));
        numbers.is_some_and(|(qos, other)| qos != other && self.preempts[usize::from(qos)][usize::from(other)])
    }

    /// The number of a job's QOS, for what depends on it.
    pub(super) fn qos_number(&self, row: u32) -> Option<u16> {
        self.qos_of.get(row as usize).copied().flatten()
    }

    fn of_qos(&self, row: u32) -> Option<&Preemptable> {
        self.qos_number(row).map(|number| &self.qos[usize::from(number)])
    }

    /// The rules of a job of a partition, by what decides who preempts.
    pub(super) fn rules(&self, row: u32, partition: usize) -> Option<&Preemptable> {
        match self.by? {
            PreemptType::Partition => Some(&self.partitions[partition]),
            PreemptType::Qos => self.of_qos(row),
        }
    }

    /// Whether a job that is tried in a partition may preempt one of another partition (`job_preempt_check` of the plugins
    /// preempt/partition_prio and preempt/qos).
    fn may(
        &self,
        (row, partition): (u32, usize),
        (other, of_other): (u32, usize),
        is_of_higher_priority: impl FnOnce() -> bool,
    ) -> bool {
        let is_lower = match self.by {
            None => false,
            Some(PreemptType::Partition) => self.partitions[partition].rank > self.partitions[of_other].rank,
            Some(PreemptType::Qos) => match self.qos_number(row).zip(self.qos_number(other)) {
                None => false,
                Some((qos, of_other)) if qos == of_other => {
                    return (self.within || self.qos[usize::from(qos)].within) && is_of_higher_priority();
                }
                Some((qos, of_other)) => self.preempts[usize::from(qos)][usize::from(of_other)],
            },
        };
        is_lower && (!self.priority || is_of_higher_priority())
    }

    pub(super) fn mode(&self, row: u32, partition: usize) -> PreemptMode {
        match self.rules(row, partition).and_then(|rules| rules.mode).unwrap_or(self.mode) {
            PreemptMode::Suspend if !self.gang => PreemptMode::Off,
            mode => mode,
        }
    }

    /// Who may preempt whom.
    pub(super) fn preempt_type(&self) -> Option<PreemptType> {
        self.by
    }

    /// The tier of a partition.
    pub(super) fn tier(&self, partition: usize) -> i64 {
        self.partitions[partition].rank
    }

    /// How long a job runs before it can be preempted.
    pub(super) fn exempt_time(&self, row: u32) -> Span {
        self.of_qos(row).and_then(|rules| rules.exempt).unwrap_or(self.exempt_time)
    }
}

impl<'a> Engine<'a> {
    /// Whether a job that is tried in a partition may preempt one of another partition.
    pub(super) fn may_preempt_job(&self, job: (u32, usize), other: (u32, usize)) -> bool {
        self.preemption.may(job, other, || match &self.order {
            // A running job keeps the priority with which it started.
            Order::Priorities(order) => order.priority(job.0) > order.priority(other.0),
            Order::Users(_) => false,
        })
    }

    /// What becomes of a running job if one that is tried in a partition preempts it; `None` if that may not.
    pub(super) fn mode_for(&self, job: (u32, usize), running: &Running) -> Option<PreemptMode> {
        let of_running = self.attempt(running.row, 0).0;
        let may = self.may_preempt_job(job, (running.row, of_running));
        may.then(|| self.preemption.mode(running.row, of_running))
    }

    /// Whether a job has not run for as long as it must before it can be preempted.
    pub(super) fn is_exempt(&self, now: u64, job: &Running) -> bool {
        now < job.start.saturating_add(self.preemption.exempt_time(job.row).nanos())
    }

    /// The running jobs that a job may preempt in the partition at a place of its list, by slot, those first that are
    /// preempted first.
    pub(super) fn preemptable(&self, now: u64, row: u32, place: usize) -> Vec<u32> {
        if !self.preemption.is_on() {
            return Vec::new();
        }
        let (partition, _) = self.attempt(row, place);
        let is_near = |job: &Running| job.held.iter().any(|(node, _)| self.partitions[partition].contains(node));
        let is_preemptable = |slot: &u32| {
            let job = &self.running[*slot as usize];
            // One that is about to end now has no longer to be preempted.
            !job.completing
                && job.finish > now
                && matches!(self.mode_for((row, partition), job), Some(PreemptMode::Cancel | PreemptMode::Requeue))
                && !self.is_exempt(now, job)
                && is_near(job)
        };
        let mut found: Vec<u32> = self.ends.iter().map(|(_, _, slot)| *slot).filter(is_preemptable).collect();
        let job = |slot: &u32| &self.running[*slot as usize];
        match self.options.preempt_youngest_first {
            true => found.sort_by_key(|slot| (Reverse(job(slot).start), job(slot).row)),
            false => found.sort_by_key(|slot| (self.rank_of(*slot), nodes_of(job(slot)), job(slot).row)),
        }
        found
    }

    /// The rank by which a running job is preempted.
    fn rank_of(&self, slot: u32) -> i64 {
        let row = self.running[slot as usize].row;
        self.preemption.rules(row, self.attempt(row, 0).0).map_or(0, |rules| rules.rank)
    }

    /// Whether there are jobs that a job may preempt, or use the processors of, running or not.
    pub(super) fn may_preempt(&self, row: u32) -> bool {
        let rules = &self.preemption;
        let rank = |place: usize| rules.partitions[self.attempt(row, place).0].rank;
        match rules.by {
            Some(_) if rules.suspends => true,
            None => false,
            Some(PreemptType::Partition) => {
                let lowest = rules.partitions.iter().map(|partition| partition.rank).min();
                (0..self.attempts_of(row)).any(|place| Some(rank(place)) > lowest)
            }
            Some(PreemptType::Qos) => {
                let preempts = |qos: u16| {
                    let qos = usize::from(qos);
                    rules.within || rules.qos[qos].within || rules.preempts[qos].contains(&true)
                };
                rules.qos_number(row).is_some_and(preempts)
            }
        }
    }

    /// Ends running jobs so that a job fits on these nodes on which it does not fit now. Returns where it then fits; `None`
    /// if it would not fit without all that it may preempt.
    pub(super) fn preempt(&mut self, now: Time, row: u32, place: usize, nodes: &NodeSet) -> Option<Placements> {
        let candidates = self.preemptable(now.nanos(), row, place);
        let lenders = self.lenders(now.nanos(), row, place);
        let (victims, held) = self.victims(self.kind(row), nodes, candidates, &lenders)?;
        victims.into_iter().for_each(|slot| self.make_way(now, slot, row));
        Some(held)
    }

    /// Which of the candidates end, and where a job fits without them (`_run_now` of select/cons_tres).
    ///
    /// Candidates are taken away one after the other until the job fits. Then they are reordered, so that those come first
    /// that had most of its nodes, and taken away anew; so often as the settings say.
    fn victims(
        &self,
        kind: &Kind,
        nodes: &NodeSet,
        mut candidates: Vec<u32>,
        lenders: &Lenders,
    ) -> Option<(Vec<u32>, Placements)> {
        let held_of = |slot: u32| &self.running[slot as usize].held;
        let mut round = 0;
        loop {
            round += 1;
            let (mut free, mut lenders) = (self.nodes.clone(), lenders.clone());
            let (last, chosen) = candidates.iter().enumerate().find_map(|(at, slot)| {
                free.give(self.kind(self.running[*slot as usize].row), held_of(*slot));
                lenders.remove(*slot);
                Some((at, self.choose_over(&free, &lenders, kind, nodes, false)?))
            })?;
            let shared = |slot: u32| chosen.iter().filter(|(n, _)| held_of(slot).iter().any(|(m, _)| m == *n)).count();
            if round > u64::from(self.options.preempt_reorder_count) + 1 || candidates.len() as u64 <= round {
                candidates.truncate(last + 1);
                candidates.retain(|slot| shared(*slot) > 0);
                return Some((candidates, chosen));
            }
            if self.options.preempt_strict_order {
                candidates[..=last].rotate_right(1);
                continue;
            }
            let mut usable: Vec<(usize, u32)> = candidates
                .iter()
                .enumerate()
                .map(|(at, slot)| match at.cmp(&last) {
                    Ordering::Less => (shared(*slot), *slot),
                    Ordering::Equal => (usize::MAX, *slot),
                    Ordering::Greater => (0, *slot),
                })
                .collect();
            usable.sort_by_key(|(usable, _)| Reverse(*usable));
            candidates = usable.into_iter().map(|(_, slot)| slot).collect();
        }
    }

    /// Makes a running job end now, or when its grace is over.
    fn make_way(&mut self, now: Time, slot: u32, preemptor: u32) {
        let job = &self.running[slot as usize];
        if job.makes_way.is_some() {
            return;
        }
        let (row, partition) = (job.row, self.attempt(job.row, 0).0);
        let grace = self.preemption.rules(row, partition).map_or(Span::ZERO, |rules| rules.grace).nanos();
        let mode = self.preemption.mode(row, partition);
        let latest = now.nanos().saturating_add(grace);
        let end = if grace == 0 { latest } else { latest.div_ceil(LIMIT_SWEEP).saturating_mul(LIMIT_SWEEP) };
        let job = &mut self.running[slot as usize];
        job.makes_way = Some(preemptor);
        self.changes += 1;
        self.ends.remove(&(job.expected, row, slot));
        job.expected = job.expected.min(latest);
        self.jobs_on_nodes.note_change(&job.held);
        self.ends.insert((job.expected, row, slot));
        if end >= job.finish {
            return;
        }
        self.results.ended_by_limit -= u64::from(job.is_killed);
        (job.finish, job.is_killed, job.preempted) = (end, false, Some(mode));
        self.finishes[row as usize] = end;
        self.ids += 1;
        job.id = self.ids;
        self.events.push(Time::from_nanos(end), Event::End(slot, job.id));
    }

    /// What becomes of a job that has ended because it made way: whether it is over.
    pub(super) fn preempted(&mut self, now: Time, job: &Running) -> bool {
        let Some(mode) = job.preempted else { return true };
        let counts = self.results.preempted.get_or_insert_default();
        if mode == PreemptMode::Cancel {
            counts.cancelled += 1;
            return true;
        }
        counts.requeued += 1;
        let at = job.row as usize;
        (self.starts[at], self.finishes[at]) = (NO_TIME, NO_TIME);
        self.results.started_by[at] = None;
        self.stale.push(job.placed.clone());
        self.done -= 1;
        self.requeues += 1;
        let again = Event::Requeue(job.row, job.makes_way.unwrap_or(job.row));
        self.events.push(Time::from_nanos(now.nanos().saturating_add(REQUEUE_DELAY)), again);
        false
    }

    /// Whether a preempted job can wait again: only when the one for which it made way has started, which could otherwise
    /// preempt it again and again, as long as others take the nodes.
    pub(super) fn may_wait_again(&mut self, row: u32, preemptor: u32) -> bool {
        let has_started = self.starts[preemptor as usize] != NO_TIME;
        if !has_started {
            self.made_way.entry(preemptor).or_default().push(row);
        }
        has_started
    }

    /// Lets the jobs that made way for one that starts wait again.
    pub(super) fn note_start_of_preemptor(&mut self, now: Time, row: u32) {
        for other in self.made_way.remove(&row).unwrap_or_default() {
            self.events.push(Time::from_nanos(now.nanos().saturating_add(SECOND)), Event::Requeue(other, row));
        }
    }

    /// When a job can start on these nodes that may suspend `lenders` and preempt `candidates`, without which all is tried,
    /// and where.
    pub(super) fn start_without(
        &self,
        now: u64,
        kind: &Kind,
        (candidates, lenders): (&[u32], &Lenders),
        nodes: &NodeSet,
        within: Within,
    ) -> Option<Rc<PossibleStart>> {
        if (within.from <= now || within == Within::ALL)
            && let Some(held) = self.choose_over(&self.nodes, lenders, kind, nodes, false)
        {
            return Some(PossibleStart::new(now, held));
        }
        let mut free = self.nodes.clone();
        let take_away = |slot: u32, free: &mut Nodes<'a>| {
            let job = &self.running[slot as usize];
            free.give(self.kind(job.row), &job.held);
        };
        let mut lenders = lenders.clone();
        let meets = |slot: u32| self.running[slot as usize].held.iter().any(|(node, _)| nodes.contains(node));
        let mut others = expected_ends(self);
        let is_gone = |end: &End| end.at < within.from && meets(end.slot);
        let gone: Vec<u32> = others.iter().filter(|end| is_gone(end)).map(|end| end.slot).collect();
        for slot in candidates.iter().filter(|slot| !gone.contains(slot)).chain(&gone) {
            take_away(*slot, &mut free);
            lenders.remove(*slot);
        }
        if let Some(held) = self.choose_over(&free, &lenders, kind, nodes, false) {
            // What preempts starts now, what waits for jobs beyond their limits does not.
            let waits = candidates.is_empty();
            return Some(if waits { PossibleStart::waiting(now, held) } else { PossibleStart::new(now, held) });
        }
        others.retain(|end| !candidates.contains(&end.slot) && end.at >= within.from);
        let mut others = others.into_iter().peekable();
        let mut groups = Groups::new(&self.options);
        loop {
            let mut last = None;
            while let Some(end) = others.next_if(|end| within.to.is_none_or(|to| end.at <= to)) {
                if !meets(end.slot) {
                    continue;
                }
                take_away(end.slot, &mut free);
                lenders.remove(end.slot);
                groups.take(end.at);
                last = Some(end.at);
                if !others.peek().is_some_and(|next| groups.goes_on(next.at)) {
                    break;
                }
            }
            let last = last?;
            if let Some(held) = self.choose_over(&free, &lenders, kind, nodes, self.options.bf_busy_nodes) {
                return Some(PossibleStart::new(self.when_ended(last, now), held));
            }
            groups.close(others.peek().map(|next| next.at));
        }
    }
}

/// The number of a job's nodes, at most 65,535, as Slurm counts it.
fn nodes_of(job: &Running) -> usize {
    job.held.iter().count().min(0xffff)
}
