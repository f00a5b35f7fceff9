//! The event loop: what happens at an instant, and the clocks of the three activities that start jobs.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::atomic::Ordering;

use evenhand_model::{NO_TIME, Span, Time, UserId, Workload};
use evenhand_policies::Policy;

use super::super::job_limits::{HeldOfLimits, Submitted};
use super::super::kind::Kind;
use super::super::pending_jobs::PendingJobs;
use super::super::prepared_jobs::Jobs;
use super::super::site::Site;
use super::super::{Assignment, MachineResults};
use super::attempts::attempts;
use super::charges::Charges;
use super::clocks::{Clocks, tick_before};
use super::closed_nodes::ClosedNodes;
use super::jobs_on_nodes::JobsOnNodes;
use super::node_set::NodeSet;
use super::nodes::Nodes;
use super::options::SlurmOptions;
use super::outlook::Outlook;
use super::preemption::Preemption;
use super::queue::{Order, Priorities, Times, Users};
use super::results::SlurmResults;
use super::running::{Event, Notice, Running};
use super::shapes::Shapes;
use crate::{EventQueue, Progress, Simulated, SimulationError};

pub(super) const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;
/// Jobs that do not start on nodes without jobs in so long wait for nodes that never come back: with time alone only
/// priorities change, and their age factor stops growing after `PriorityMaxAge` (7 days).
const LONGEST_REST: u64 = 14 * 24 * 60 * MINUTE;
/// The limit of jobs that have none, as backfill assumes it.
const YEAR: u64 = 365 * 24 * 60 * MINUTE;
const EVENTS_BETWEEN_PROGRESS_UPDATES: u64 = 1 << 12;

pub(in crate::jobs) struct Engine<'a> {
    pub(super) workload: &'a Workload,
    pub(super) progress: &'a Progress,
    pub(super) jobs: &'a Jobs,
    pub(super) options: SlurmOptions,
    pub(super) nodes: Nodes<'a>,
    pub(super) pending: PendingJobs<'a>,
    pub(super) submission_times: Times<'a>,
    pub(super) order: Order,
    /// If jobs are charged only when priorities are computed.
    pub(super) charges: Option<Charges<'a>>,
    pub(super) running: Vec<Running>,
    pub(super) unused: Vec<u32>,
    /// Running jobs by their expected end and row, with their slots.
    pub(super) ends: BTreeSet<(u64, u32, u32)>,
    pub(super) jobs_on_nodes: JobsOnNodes,
    pub(super) events: EventQueue<Event>,
    /// How often a job has started, ended or given its nodes back.
    pub(super) changes: u64,
    /// Kept from one run of backfill to the next.
    pub(super) outlook: Option<Outlook>,
    pub(super) closed: ClosedNodes,
    pub(super) preemption: Preemption,
    /// By row: the jobs that made way for it and wait for its start.
    pub(super) made_way: HashMap<u32, Vec<u32>>,
    /// How many preempted jobs will wait again.
    pub(super) requeues: u64,
    /// Entries of `placed` of runs that were preempted and repeated.
    pub(super) stale: Vec<Range<usize>>,
    /// How many ends of jobs have been set.
    pub(super) ids: u64,
    /// By kind: the count of releases when a job of it was found not to fit.
    pub(super) does_not_fit: Vec<u64>,
    /// By partition, the first for jobs in none: its nodes.
    pub(super) partitions: Vec<NodeSet>,
    /// By kind whose jobs name several partitions: those that hold such a job alone, in the order in which they are
    /// tried, each with those of its nodes on which a chunk fits; empty for other kinds.
    pub(super) attempts: Vec<Vec<(usize, NodeSet)>>,
    /// By kind: the nodes on which a chunk fits when they are empty.
    pub(super) able: Vec<NodeSet>,
    /// By kind: the smallest number of empty nodes that can hold such a job.
    pub(super) nodes_needed: Vec<usize>,
    /// By kind: the number of its chunk and of whether there is one a node, and no other job on it; kinds of equal chunks share it.
    pub(super) chunks_of: Vec<u32>,
    pub(super) shapes: Shapes,
    /// By row: the time limit.
    pub(super) limit: Vec<Option<u64>>,
    pub(super) limits: HeldOfLimits<'a>,
    pub(super) submitted: Submitted<'a>,
    pub(super) starts: Vec<u64>,
    pub(super) finishes: Vec<u64>,
    pub(super) busy: Vec<u128>,
    pub(super) placed: Vec<Assignment>,
    pub(super) results: SlurmResults,
    /// What the policy does not yet know of this pass.
    pub(super) notices: Vec<Notice>,
    /// The slots of suspended jobs.
    pub(super) suspended: Vec<u32>,
    /// What is left of a walk through the queue that is not in the order of tiers.
    pub(super) walk: Option<std::vec::IntoIter<u32>>,
    pub(super) until: Option<Time>,
    pub(super) end: u64,
    pub(super) done: u64,
    pub(super) decisions: u64,
    /// When the jobs that complete now are all free, or their CompleteWait is over.
    pub(super) completing_until: u64,
    /// How many jobs run.
    pub(super) alive: usize,
    /// By partition: how many jobs wait.
    pub(super) waiting: Vec<u32>,
    pub(super) clocks: Clocks,
}

impl<'a> Engine<'a> {
    pub(in crate::jobs) fn new(
        workload: &'a Workload,
        pending: PendingJobs<'a>,
        site: &'a Site,
        jobs: &'a Jobs,
        options: SlurmOptions,
        until: Option<Time>,
        progress: &'a Progress,
    ) -> Engine<'a> {
        let (users, width) = (workload.users().len(), workload.resources().len());
        let of_groups = |groups: &[u16]| {
            let mut nodes = NodeSet::empty(site.len());
            for group in groups.iter().map(|g| &site.groups[usize::from(*g)]) {
                (group.first..group.first + group.count).for_each(|node| nodes.insert(node));
            }
            nodes
        };
        let queues = (0..jobs.queues).map(|queue| Some(queue as u16));
        let partitions =
            std::iter::once(None).chain(queues).map(|q| of_groups(&site.groups_of_queue(q))).collect::<Vec<_>>();
        let first = workload.columns().submit.first().copied().unwrap_or_default().nanos();
        let clocks = Clocks {
            now: first,
            last_full: options.sched_interval.map_or(0, |i| tick_before(first, i.nanos().max(1))),
            last_priorities: tick_before(first, options.priority_calc_period.nanos().max(1)),
            ..Clocks::default()
        };
        let limit = |row: usize| {
            let asked = workload.requested(row).filter(|asked| *asked > Span::ZERO);
            let queue = jobs.kind_of(row as u32).queue;
            let limit = asked.or_else(|| queue.and_then(|q| site.max_wall(q)));
            // Limits are whole minutes.
            limit.map(|l| l.nanos().div_ceil(MINUTE).saturating_mul(MINUTE))
        };
        let able: Vec<NodeSet> = jobs.kinds.iter().map(|kind| of_groups(&kind.groups)).collect();
        let mut nodes = Nodes::new(site, width, options.whole_nodes, options.least_loaded);
        let attempts =
            jobs.kinds.iter().zip(&able).map(|(kind, able)| attempts(kind, able, &partitions, &nodes)).collect();
        let nodes_needed = jobs.kinds.iter().map(|kind| nodes.fewest_when_empty(kind)).collect();
        let limit: Vec<Option<u64>> = (0..workload.len()).map(limit).collect();
        let closed = ClosedNodes::new(site, workload, first);
        let preemption = Preemption::new(site, workload, &options);
        if preemption.suspends() {
            nodes.allow_sharing();
        }
        let shape = |(row, kind): (u32, &u32)| {
            (*kind, limit[row as usize].unwrap_or(YEAR), closed.number_of(row), preemption.qos_number(row))
        };
        let shapes = Shapes::new((0u32..).zip(&jobs.kind).map(shape));
        Engine {
            workload,
            progress,
            jobs,
            options,
            nodes,
            submission_times: Times { log: pending.submission_times(), again: HashMap::new() },
            pending,
            order: Order::Users(Users::new(users)),
            charges: None,
            running: Vec::new(),
            unused: Vec::new(),
            ends: BTreeSet::new(),
            jobs_on_nodes: JobsOnNodes::new(site.len()),
            events: EventQueue::new(),
            changes: 0,
            outlook: None,
            closed,
            preemption,
            made_way: HashMap::new(),
            requeues: 0,
            stale: Vec::new(),
            ids: 0,
            does_not_fit: vec![0; jobs.kinds.len()],
            partitions,
            attempts,
            able,
            nodes_needed,
            chunks_of: numbers_of_chunks(&jobs.kinds),
            shapes,
            limit,
            limits: HeldOfLimits::new(workload, &jobs.limits),
            submitted: Submitted::new(workload, &jobs.limits),
            starts: vec![NO_TIME; workload.len()],
            finishes: vec![NO_TIME; workload.len()],
            busy: vec![0; site.len() * width],
            placed: Vec::new(),
            results: SlurmResults { started_by: vec![None; workload.len()], ..SlurmResults::default() },
            notices: Vec::new(),
            suspended: Vec::new(),
            walk: None,
            until,
            end: first,
            done: 0,
            decisions: 0,
            completing_until: 0,
            alive: 0,
            waiting: vec![0; jobs.queues + 1],
            clocks,
        }
    }

    /// Simulates until all jobs have ended, or those that are left will never start.
    pub(in crate::jobs) fn run(mut self, policy: &mut dyn Policy) -> Result<Simulated, SimulationError> {
        let mut events = 0u64;
        let mut rests_since: Option<u64> = None;
        if policy.job_priorities().is_some() {
            self.order = Order::Priorities(Priorities::new(self.workload.len()));
            self.charges = (!self.options.charge_ends).then(Charges::default);
        }
        while let Some(now) = self.next_time() {
            self.progress.check()?;
            // Nodes that are still to be freed are no part of the results.
            let is_over = self.alive == 0 && self.requeues == 0 && self.pending.next_submission().is_none();
            if is_over && !self.pending.is_any() {
                break;
            }
            if let Some(until) = self.until.filter(|until| now > until.nanos()) {
                self.end = until.nanos();
                break;
            }
            // Then only the passing of time may let a job start.
            let is_at_rest = is_over && self.closed.next_change().is_none();
            rests_since = is_at_rest.then(|| rests_since.unwrap_or(now));
            if let Some(since) = rests_since.filter(|since| now > since.saturating_add(LONGEST_REST)) {
                self.end = since;
                let is_left = |(start, refused): &(&u64, &Option<_>)| **start == NO_TIME && refused.is_none();
                let left = self.starts.iter().zip(&self.jobs.rejections).filter(is_left).count();
                self.results.never_started = Some(left as u64);
                break;
            }
            self.end = now;
            self.catch_up(now, policy);
            events += self.instant(Time::from_nanos(now), policy)?;
            if events >= EVENTS_BETWEEN_PROGRESS_UPDATES {
                events = 0;
                self.progress.tasks.store(self.done, Ordering::Relaxed);
            }
        }
        self.progress.tasks.store(self.done, Ordering::Relaxed);
        let mut idle = vec![false; self.running.len()];
        self.unused.iter().for_each(|slot| idle[*slot as usize] = true);
        let running: Vec<Running> = self
            .running
            .iter()
            .zip(idle)
            .filter(|(job, idle)| !idle && !job.completing && job.suspended.is_none())
            .map(|(j, _)| j.clone())
            .collect();
        running.iter().for_each(|job| self.count_use(job, self.end));
        self.results.beyond_submit_limits = self.submitted.beyond();
        self.stale.sort_unstable_by_key(|runs| Reverse(runs.start));
        self.stale.iter().for_each(|runs| drop(self.placed.drain(runs.clone())));
        Ok(Simulated {
            submissions: self.pending.submissions_found(),
            starts: self.starts,
            rejections: self.jobs.rejections.clone(),
            end: Time::from_nanos(self.end),
            decisions: self.decisions,
            order_events: policy.order_events(),
            machines: Some(MachineResults {
                finishes: self.finishes,
                first_reservation: Vec::new(),
                busy: self.busy,
                placed: self.placed,
                slurm: Some(self.results),
            }),
        })
    }

    /// Everything of one instant; returns the number of events.
    fn instant(&mut self, now: Time, policy: &mut dyn Policy) -> Result<u64, SimulationError> {
        let mut events = 0;
        let (mut released, mut requeued) = (false, Vec::new());
        if self.closed.move_to(now.nanos()) {
            events += 1;
            self.changes += 1;
            self.nodes.note_release();
            self.note_change(now);
            self.clocks.asked = self.clocks.asked.or(Some(now.nanos()));
        }
        if self.priorities_are_due(now.nanos()) {
            match self.pending.is_any() {
                true => self.compute_priorities(now, policy),
                false => self.update_priorities(now.nanos(), policy),
            }
        }
        // Logs have whole seconds, rounded down, and the jobs that a pass starts end a little after a whole number of seconds: what is
        // logged of a second comes after its pass.
        self.periodic_pass(now, policy)?;
        if self.events.next_time() == Some(now) {
            let mut due: Vec<Event> = Vec::new();
            self.events.take_next(|event| due.push(event));
            events += due.len() as u64;
            let row = |event: &Event| match event {
                Event::End(slot, _) | Event::Release(slot) => self.running[*slot as usize].row,
                Event::Requeue(row, _) => *row,
            };
            due.sort_by_key(row);
            let ends = due.iter().any(|event| matches!(event, Event::End(..)));
            for event in due {
                match event {
                    Event::Requeue(row, preemptor) => {
                        if self.may_wait_again(row, preemptor) {
                            requeued.push(row);
                        }
                    }
                    _ => released |= self.event(now, event, policy),
                }
            }
            if ends && !self.suspended.is_empty() {
                self.update_rows(now);
            }
        }
        if self.turns_end(now.nanos()) {
            self.take_turns(now);
        }
        self.notify(now, policy);
        if released {
            match self.options.epilog && !self.options.defer {
                true => self.main_pass(now, false, policy)?,
                false => self.clocks.asked = self.clocks.asked.or(Some(now.nanos())),
            }
        }
        for row in requeued {
            self.requeues -= 1;
            self.submission_times.again.insert(row, now);
            let entry = self.pending.requeue(row);
            self.enqueue(now, entry, policy);
        }
        while self.pending.next_submission() == Some(now) {
            events += 1;
            self.submit(now, policy)?;
        }
        let backfill_is_due = self.next_backfill().is_some_and(|due| due == now.nanos());
        if backfill_is_due {
            self.clocks.last_backfill = now.nanos();
            self.clocks.changed = None;
            if self.pending.is_any() {
                self.backfill(now, policy)?;
            }
        }
        self.pending.compact();
        Ok(events)
    }

    /// Updates what priorities depend on.
    pub(super) fn update_priorities(&mut self, now: u64, policy: &mut dyn Policy) {
        let last = std::mem::replace(&mut self.clocks.last_priorities, now);
        if let Some(charges) = &mut self.charges {
            charges.settle(Time::from_nanos(last), policy);
        }
        if let Some(priorities) = policy.job_priorities() {
            priorities.update(Time::from_nanos(now));
        }
    }

    fn compute_priorities(&mut self, now: Time, policy: &mut dyn Policy) {
        self.update_priorities(now.nanos(), policy);
        if let Some(priorities) = policy.job_priorities() {
            let (workload, jobs, times) = (self.workload, self.jobs, &self.submission_times);
            if let Order::Priorities(order) = &mut self.order {
                order.replace(|row| priorities.priority(now, &jobs.pending_job(workload, times.of(row), row)));
            }
        }
        self.note_change(now);
    }

    fn periodic_pass(&mut self, now: Time, policy: &mut dyn Policy) -> Result<(), SimulationError> {
        let at = now.nanos();
        let c = &self.clocks;
        let interval = self.options.sched_interval.map(|i| i.nanos().max(1));
        let is_full = interval.is_some_and(|i| at.is_multiple_of(i)) && at > c.last_full;
        let delay_is_over = at >= c.last_main.saturating_add(self.options.batch_sched_delay.nanos());
        let is_quick = c.asked.is_some_and(|asked| at > asked) && delay_is_over && at.is_multiple_of(SECOND);
        if !is_full && !is_quick {
            return Ok(());
        }
        let is_due = !is_full || self.full_is_due();
        self.clocks.asked = None;
        self.clocks.last_main = at;
        if is_full {
            self.clocks.last_full = at;
            self.clocks.full_is_due = false;
        }
        if is_due && self.pending.is_any() { self.main_pass(now, is_full, policy) } else { Ok(()) }
    }

    /// Whether CompleteWait holds all starts back.
    pub(super) fn waits_for_completion(&self, now: Time) -> bool {
        now.nanos() < self.completing_until
    }

    /// Whether a job of a kind was found not to fit, and nothing has become free since.
    pub(super) fn is_known_not_to_fit(&self, kind: usize) -> bool {
        self.does_not_fit[kind] == self.nodes.releases() || !self.nodes.has_processors(&self.jobs.kinds[kind])
    }

    pub(super) fn note_that_does_not_fit(&mut self, kind: usize) {
        // Tasks on a number of nodes may fit on fewer nodes that do not fit on more: too small ones are taken first.
        if self.jobs.kinds[kind].machines_of_tasks.is_none() {
            self.does_not_fit[kind] = self.nodes.releases();
        }
    }

    pub(super) fn begin_walk_by_tiers(&mut self, policy: &mut dyn Policy) {
        let (workload, jobs, times) = (self.workload, self.jobs, &self.submission_times);
        match &mut self.order {
            Order::Priorities(order) => order.begin(),
            Order::Users(users) => {
                users.begin(&mut self.pending, policy, |row| jobs.pending_job(workload, times.of(row), row))
            }
        }
    }

    /// The next job of a walk through the queue in the order of tiers.
    pub(super) fn next_by_tiers(&mut self, now: Time, policy: &mut dyn Policy) -> Option<u32> {
        let (workload, jobs, times) = (self.workload, self.jobs, &self.submission_times);
        self.decisions += 1;
        match &mut self.order {
            Order::Priorities(order) => order.next(),
            Order::Users(users) => {
                users.next(now, &mut self.pending, policy, |row| jobs.pending_job(workload, times.of(row), row))
            }
        }
    }

    pub(super) fn end_walk(&mut self, policy: &mut dyn Policy) {
        self.walk = None;
        let (workload, jobs, times) = (self.workload, self.jobs, &self.submission_times);
        if let Order::Users(users) = &mut self.order {
            users.end(&mut self.pending, policy, |row| jobs.pending_job(workload, times.of(row), row));
        }
    }

    /// Whether a job under bf_min_age_reserve or bf_min_prio_reserve neither blocks nor reserves.
    pub(super) fn reserves_nothing(&self, now: Time, row: u32) -> bool {
        let young = now.since(self.submission_times.of(row)) < self.options.bf_min_age_reserve;
        let low = match &self.order {
            Order::Priorities(order) => order.priority(row) < self.options.bf_min_prio_reserve,
            Order::Users(_) => false,
        };
        young || low
    }

    pub(super) fn kind(&self, row: u32) -> &'a Kind {
        self.jobs.kind_of(row)
    }

    /// The limit with which backfill plans.
    pub(super) fn planned_length(&self, row: u32) -> u64 {
        self.limit[row as usize].unwrap_or(YEAR)
    }
}

/// What is equal where the same chunks fit on the same nodes: what a chunk holds, whether each is on a node of its own or has whole
/// nodes, and on how many nodes tasks are.
type EqualWhere<'k> = (&'k [u64], bool, bool, Option<u32>);

fn numbers_of_chunks(kinds: &[Kind]) -> Vec<u32> {
    let mut numbers: HashMap<EqualWhere<'_>, u32> = HashMap::new();
    kinds
        .iter()
        .map(|kind| {
            let next = numbers.len() as u32;
            *numbers.entry((&kind.chunk, kind.is_by_nodes, kind.is_exclusive(), kind.machines_of_tasks)).or_insert(next)
        })
        .collect()
}

/// The user of a job and its account, for limits of backfill.
pub(super) fn user_and_account(workload: &Workload, row: u32) -> (UserId, Option<u32>) {
    let columns = workload.columns();
    (columns.user[row as usize], columns.account.as_ref().map(|c| c[row as usize]))
}
