//! The event loop: what happens at an instant, and the clocks of the three activities that start jobs.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::Ordering;

use evenhand_model::{NO_TIME, Span, Time, UserId, Workload};
use evenhand_policies::{Job, Policy};

use super::super::kind::Kind;
use super::super::machine_state::Placements;
use super::super::pending_jobs::PendingJobs;
use super::super::site::{Jobs, Site};
use super::super::user_limits::UserLimits;
use super::super::{Assignment, MachineResults};
use super::node_set::NodeSet;
use super::nodes::Nodes;
use super::options::SlurmOptions;
use super::queue::{Order, Priorities, Users};
use super::results::{Activity, SlurmResults};
use super::shapes::Shapes;
use crate::arrivals::SubmissionTimes;
use crate::{EventQueue, Progress, Simulated, SimulationError};

pub(super) const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;
/// The limit of jobs that have none, as backfill assumes it.
const YEAR: u64 = 365 * 24 * 60 * MINUTE;
/// How often slurmctld looks for jobs beyond their limits.
const LIMIT_SWEEP: u64 = 30 * SECOND;
const EVENTS_BETWEEN_PROGRESS_UPDATES: u64 = 1 << 12;

/// A job that runs or completes.
#[derive(Clone, Debug, Default)]
pub(super) struct Running {
    pub(super) row: u32,
    pub(super) start: u64,
    pub(super) finish: u64,
    /// When it must have finished by its limit; when its nodes are free, once it has finished.
    pub(super) expected: u64,
    pub(super) held: Placements,
    completing: bool,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// The job of a slot ends.
    End(u32),
    /// The nodes of a job that has ended are free.
    Release(u32),
}

pub(in crate::jobs) struct Engine<'a> {
    pub(super) workload: &'a Workload,
    pub(super) progress: &'a Progress,
    pub(super) jobs: &'a Jobs,
    pub(super) options: SlurmOptions,
    pub(super) nodes: Nodes<'a>,
    pub(super) pending: PendingJobs<'a>,
    submission_times: SubmissionTimes<'a>,
    pub(super) order: Order,
    pub(super) running: Vec<Running>,
    unused: Vec<u32>,
    /// Running jobs by their expected end and row, with their slots.
    pub(super) ends: BTreeSet<(u64, u32, u32)>,
    events: EventQueue<Event>,
    /// By partition, the first for jobs in none: its nodes.
    pub(super) partitions: Vec<NodeSet>,
    /// By kind: the nodes on which a chunk fits when they are empty.
    pub(super) able: Vec<NodeSet>,
    /// By kind: the number of its chunk and of whether there is one a node; kinds of equal chunks share it.
    pub(super) chunks_of: Vec<u32>,
    pub(super) shapes: Shapes,
    /// By row: the time limit.
    limit: Vec<Option<u64>>,
    pub(super) limits: UserLimits<'a>,
    starts: Vec<u64>,
    finishes: Vec<u64>,
    busy: Vec<u128>,
    placed: Vec<Assignment>,
    results: SlurmResults,
    /// Jobs that this pass has started and the policy does not yet know as started.
    started: Vec<u32>,
    until: Option<Time>,
    end: u64,
    done: u64,
    decisions: u64,
    /// When the jobs that complete now are all free, or their CompleteWait is over.
    completing_until: u64,
    /// How many jobs run.
    alive: usize,
    /// By partition: how many jobs wait.
    pub(super) waiting: Vec<u32>,
    clocks: Clocks,
}

/// When which activity ran last, and whether it has something to do.
#[derive(Clone, Copy, Debug, Default)]
struct Clocks {
    now: u64,
    /// The last pass over the whole queue.
    last_full: u64,
    /// The last periodic pass of either kind.
    last_main: u64,
    /// Since when a pass is asked for.
    asked: Option<u64>,
    /// Whether something has changed since the last pass over the whole queue.
    full_is_due: bool,
    last_backfill: u64,
    /// Since when something has changed that backfill has not seen.
    changed: Option<u64>,
    last_priorities: u64,
}

fn next_second(time: u64) -> u64 {
    time.div_ceil(SECOND) * SECOND
}

/// The first whole second after an instant.
fn second_after(time: u64) -> u64 {
    next_second(time.saturating_add(1))
}

/// The last multiple of `interval` before an instant.
fn tick_before(time: u64, interval: u64) -> u64 {
    time.saturating_sub(1) / interval * interval
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
        let queues = (0..jobs.max_user.len()).map(|queue| Some(queue as u16));
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
        let limit: Vec<Option<u64>> = (0..workload.len()).map(limit).collect();
        let shapes = Shapes::new(jobs.kind.iter().copied().zip(limit.iter().map(|limit| limit.unwrap_or(YEAR))));
        Engine {
            workload,
            progress,
            jobs,
            options,
            nodes: Nodes::new(site, width, options.whole_nodes, options.least_loaded),
            submission_times: pending.submission_times(),
            pending,
            order: Order::Users(Users::new(users)),
            running: Vec::new(),
            unused: Vec::new(),
            ends: BTreeSet::new(),
            events: EventQueue::new(),
            partitions,
            able: jobs.kinds.iter().map(|kind| of_groups(&kind.groups)).collect(),
            chunks_of: numbers_of_chunks(&jobs.kinds),
            shapes,
            limit,
            limits: UserLimits::new(workload, jobs),
            starts: vec![NO_TIME; workload.len()],
            finishes: vec![NO_TIME; workload.len()],
            busy: vec![0; site.len() * width],
            placed: Vec::new(),
            results: SlurmResults { started_by: vec![None; workload.len()], ended_by_limit: 0 },
            started: Vec::new(),
            until,
            end: first,
            done: 0,
            decisions: 0,
            completing_until: 0,
            alive: 0,
            waiting: vec![0; jobs.max_user.len() + 1],
            clocks,
        }
    }

    pub(in crate::jobs) fn run(mut self, policy: &mut dyn Policy) -> Result<Simulated, SimulationError> {
        let mut events = 0u64;
        if policy.job_priorities().is_some() {
            self.order = Order::Priorities(Priorities::new(self.workload.len()));
        }
        while let Some(now) = self.next_time() {
            self.progress.check()?;
            // Nodes that are still to be freed are no part of the results.
            if self.alive == 0 && !self.pending.is_any() && self.pending.next_submission().is_none() {
                break;
            }
            if let Some(until) = self.until.filter(|until| now > until.nanos()) {
                self.end = until.nanos();
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
            .filter(|(job, idle)| !idle && !job.completing)
            .map(|(j, _)| j.clone())
            .collect();
        running.iter().for_each(|job| self.count_use(job, self.end));
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

    /// The next instant at which something can happen. Steps that can do nothing are left out.
    fn next_time(&self) -> Option<u64> {
        let waits = self.pending.is_any();
        let of_queue = if waits { [self.next_pass(), self.next_backfill(), self.next_priorities()] } else { [None; 3] };
        let certain = [self.events.next_time(), self.pending.next_submission()].map(|t| t.map(Time::nanos));
        certain.into_iter().chain(of_queue).flatten().min()
    }

    /// The next tick of a clock after its last one, not before now.
    fn next_tick(&self, last: u64, interval: u64) -> u64 {
        (last + interval).max(self.clocks.now.div_ceil(interval) * interval)
    }

    fn next_pass(&self) -> Option<u64> {
        let c = &self.clocks;
        let quick = c.asked.map(|asked| {
            second_after(asked).max(next_second(c.last_main.saturating_add(self.options.batch_sched_delay.nanos())))
        });
        let full = self.options.sched_interval.map(|i| self.next_tick(c.last_full, i.nanos().max(1)));
        [quick, full.filter(|_| c.full_is_due)].into_iter().flatten().min()
    }

    fn backfill_due(&self) -> Option<u64> {
        let c = &self.clocks;
        let changed = c.changed.filter(|_| self.options.backfill)?;
        let after = c.last_backfill.saturating_add(self.options.bf_interval.nanos());
        Some(second_after(changed).max(next_second(after)).max(next_second(self.completing_until)))
    }

    fn next_backfill(&self) -> Option<u64> {
        self.backfill_due().map(|due| due.max(next_second(self.clocks.now)))
    }

    fn next_priorities(&self) -> Option<u64> {
        Some(self.next_tick(self.clocks.last_priorities, self.options.priority_calc_period.nanos().max(1)))
    }

    /// Moves the clocks over the steps before `now` that had nothing to do.
    fn catch_up(&mut self, now: u64, policy: &mut dyn Policy) {
        let period = self.options.priority_calc_period.nanos().max(1);
        let tick = tick_before(now, period);
        if tick > self.clocks.last_priorities {
            self.clocks.last_priorities = tick;
            if let Some(priorities) = policy.job_priorities() {
                priorities.update(Time::from_nanos(tick));
            }
        }
        if let Some(interval) = self.options.sched_interval {
            let tick = tick_before(now, interval.nanos().max(1));
            if tick > self.clocks.last_full {
                self.clocks.last_full = tick;
                // With nobody waiting it had nothing to do but to note that it ran.
                if self.clocks.asked.is_some_and(|asked| asked <= tick) {
                    self.clocks.asked = None;
                }
                self.clocks.last_main = self.clocks.last_main.max(tick);
            }
        }
        if let Some(pass) = self.next_pass().filter(|pass| *pass < now)
            && self.clocks.asked.is_some()
        {
            self.clocks.asked = None;
            self.clocks.last_main = self.clocks.last_main.max(pass);
        }
        if let Some(due) = self.backfill_due().filter(|due| *due < now && !self.pending.is_any()) {
            self.clocks.last_backfill = due;
            self.clocks.changed = None;
        }
        self.clocks.now = now;
    }

    /// Everything of one instant; returns the number of events.
    fn instant(&mut self, now: Time, policy: &mut dyn Policy) -> Result<u64, SimulationError> {
        let mut events = 0;
        let mut released = false;
        if self.events.next_time() == Some(now) {
            let mut due: Vec<Event> = Vec::new();
            self.events.take_next(|event| due.push(event));
            events += due.len() as u64;
            let row = |event: &Event| match event {
                Event::End(slot) | Event::Release(slot) => self.running[*slot as usize].row,
            };
            due.sort_by_key(row);
            for event in due {
                released |= self.event(now, event, policy);
            }
        }
        if released {
            match self.options.epilog && !self.options.defer {
                true => self.main_pass(now, false, policy)?,
                false => self.clocks.asked = self.clocks.asked.or(Some(now.nanos())),
            }
        }
        while self.pending.next_submission() == Some(now) {
            events += 1;
            self.submit(now, policy)?;
        }
        if self.pending.is_any() && self.priorities_are_due(now.nanos()) {
            self.compute_priorities(now, policy);
        }
        self.periodic_pass(now, policy)?;
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

    fn priorities_are_due(&self, now: u64) -> bool {
        now > self.clocks.last_priorities && now.is_multiple_of(self.options.priority_calc_period.nanos().max(1))
    }

    fn compute_priorities(&mut self, now: Time, policy: &mut dyn Policy) {
        self.clocks.last_priorities = now.nanos();
        if let Some(priorities) = policy.job_priorities() {
            priorities.update(now);
            let (workload, jobs, times) = (self.workload, self.jobs, &self.submission_times);
            if let Order::Priorities(order) = &mut self.order {
                order.replace(|row| priorities.priority(now, &jobs.pending_job(workload, times.of(row), row)));
            }
        }
        self.note_change(now);
    }

    fn note_change(&mut self, now: Time) {
        self.clocks.full_is_due = true;
        self.clocks.changed = self.clocks.changed.or(Some(now.nanos()));
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
        let is_due = if is_full { self.clocks.full_is_due } else { true };
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

    /// Returns whether nodes have become free.
    fn event(&mut self, now: Time, event: Event, policy: &mut dyn Policy) -> bool {
        match event {
            Event::End(slot) => {
                let job = self.running[slot as usize].clone();
                self.alive -= 1;
                self.ends.remove(&(job.expected, job.row, slot));
                self.count_use(&job, job.finish);
                policy.finished(now, &self.running_job(&job));
                self.limits.remove(job.row);
                self.pending.ended(now, job.row);
                self.note_change(now);
                let (completing, wait) = (self.options.completing, self.options.complete_wait);
                let free = now.nanos().saturating_add(completing.nanos());
                if completing > Span::ZERO {
                    let job = &mut self.running[slot as usize];
                    (job.completing, job.expected) = (true, free);
                    self.ends.insert((free, job.row, slot));
                    self.completing_until = now.nanos() + completing.min(wait).nanos();
                    self.events.push(Time::from_nanos(free), Event::Release(slot));
                    return false;
                }
                self.release(slot);
                true
            }
            Event::Release(slot) => {
                let job = &self.running[slot as usize];
                self.ends.remove(&(job.expected, job.row, slot));
                self.release(slot);
                self.note_change(now);
                true
            }
        }
    }

    fn release(&mut self, slot: u32) {
        let job = std::mem::take(&mut self.running[slot as usize]);
        self.unused.push(slot);
        self.nodes.give(self.kind(job.row), &job.held);
    }

    /// A submission, and the attempt to start the job alone.
    fn submit(&mut self, now: Time, policy: &mut dyn Policy) -> Result<(), SimulationError> {
        let Some(entry) = self.pending.submit(now) else {
            self.done += 1;
            return Ok(());
        };
        let row = entry.row;
        let partition = self.partition_of(row);
        self.waiting[partition] += 1;
        let (workload, jobs, times) = (self.workload, self.jobs, &self.submission_times);
        let job = |row| jobs.pending_job(workload, times.of(row), row);
        match &mut self.order {
            Order::Priorities(order) => {
                let priority = policy.job_priorities().map_or(0, |p| p.priority(now, &job(row)));
                order.insert(row, entry.class, priority, now);
            }
            Order::Users(users) => users.submitted(row, entry.class, entry.user, &mut self.pending, policy, job),
        }
        self.note_change(now);
        self.clocks.asked = self.clocks.asked.or(Some(now.nanos()));
        if !self.options.at_submission
            || self.options.defer
            || self.waits_for_completion(now)
            || self.limits.is_over(row)
        {
            return Ok(());
        }
        if !self.is_top(now, row, policy) {
            return Ok(());
        }
        let kind = self.kind(row);
        let able = &self.able[self.jobs.kind[row as usize] as usize];
        if let Some(held) = self.nodes.choose(kind, able) {
            self.start(now, row, held, Activity::Submit)?;
            self.notify_starts(now, policy);
            if let Order::Users(users) = &mut self.order {
                users.started(entry.user);
                self.end_walk(policy);
            }
        }
        Ok(())
    }

    /// Whether no job of higher precedence waits in a partition that shares nodes with the job's.
    fn is_top(&mut self, now: Time, row: u32, policy: &mut dyn Policy) -> bool {
        let blocks = |engine: &Engine<'_>, other: u32| {
            let young = now.since(engine.submission_times.of(other)) < engine.options.bf_min_age_reserve;
            !young && engine.partition(other).meets(engine.partition(row)) && !engine.limits.is_over(other)
        };
        if let Order::Priorities(order) = &self.order {
            return !order.above(row).any(|other| blocks(self, other));
        }
        self.begin_walk(policy);
        let mut is_top = true;
        while let Some(other) = self.next_in_order(now, policy) {
            if other == row {
                break;
            }
            if blocks(self, other) {
                is_top = false;
                break;
            }
        }
        self.end_walk(policy);
        is_top
    }

    pub(super) fn partition(&self, row: u32) -> &NodeSet {
        &self.partitions[self.partition_of(row)]
    }

    pub(super) fn partition_of(&self, row: u32) -> usize {
        self.kind(row).queue.map_or(0, |q| usize::from(q) + 1)
    }

    pub(super) fn begin_walk(&mut self, policy: &mut dyn Policy) {
        let (workload, jobs, times) = (self.workload, self.jobs, &self.submission_times);
        match &mut self.order {
            Order::Priorities(order) => order.begin(),
            Order::Users(users) => {
                users.begin(&mut self.pending, policy, |row| jobs.pending_job(workload, times.of(row), row))
            }
        }
    }

    /// The next job of a walk through the queue.
    pub(super) fn next_in_order(&mut self, now: Time, policy: &mut dyn Policy) -> Option<u32> {
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

    fn running_job(&self, job: &Running) -> Job<'a> {
        Job {
            requested: Span::from_nanos(self.planned_length(job.row)),
            started: Time::from_nanos(job.start),
            rate: self.nodes.site.rate(self.kind(job.row), &job.held),
            ..self.jobs.pending_job(self.workload, self.submission_times.of(job.row), job.row)
        }
    }

    fn count_use(&mut self, job: &Running, until: u64) {
        let kind = self.kind(job.row);
        let ran = u128::from(until.saturating_sub(job.start));
        for (node, chunks) in job.held.iter() {
            let at = node as usize * kind.chunk.len();
            let busy = &mut self.busy;
            self.nodes.held(kind, node, chunks, |resource, amount| busy[at + resource] += u128::from(amount) * ran);
        }
    }

    /// When a job that starts now is ended by its limit.
    fn killed_at(&self, now: Time, row: u32) -> Option<u64> {
        let over = self.options.over_time_limit?.nanos();
        let limit = self.limit[row as usize]?;
        let at = now.nanos().checked_add(limit)?.checked_add(over)?;
        Some(at.div_ceil(LIMIT_SWEEP).saturating_mul(LIMIT_SWEEP))
    }

    /// Starts a job; the policy is notified at the end of the pass. Returns its expected end and slot.
    pub(super) fn start(
        &mut self,
        now: Time,
        row: u32,
        held: Placements,
        by: Activity,
    ) -> Result<(u64, u32), SimulationError> {
        let columns = self.workload.columns();
        let at = row as usize;
        let groups = &self.nodes.site.groups;
        let scale = |(node, _): (u32, u32)| groups[self.nodes.site.group_of(node)].scale(columns.duration[at].nanos());
        let ran = held.iter().map(scale).max().unwrap_or(columns.duration[at].nanos());
        let finish = Span::checked_from_nanos(u128::from(ran)).and_then(|ran| now.checked_add(ran));
        let killed = self.killed_at(now, row).map(Time::from_nanos);
        let too_long = || SimulationError::TooLong { row: at, start: now, duration: columns.duration[at] };
        let (finish, is_killed) = match (finish, killed) {
            (Some(finish), Some(killed)) if killed < finish => (killed, true),
            (Some(finish), _) => (finish, false),
            (None, Some(killed)) => (killed, true),
            (None, None) => return Err(too_long()),
        };
        self.results.ended_by_limit += u64::from(is_killed);
        self.results.started_by[at] = Some(by);
        let kind = self.kind(row);
        self.nodes.take(kind, &held);
        self.placed.extend(held.iter().map(|(machine, chunks)| Assignment { row, machine, chunks, size: 0 }));
        let expected = now.nanos().saturating_add(self.planned_length(row));
        let job = Running { row, start: now.nanos(), finish: finish.nanos(), expected, held, completing: false };
        let slot = self.unused.pop().unwrap_or_else(|| {
            self.running.push(Running::default());
            self.running.len() as u32 - 1
        });
        self.running[slot as usize] = job;
        self.ends.insert((expected, row, slot));
        self.events.push(finish, Event::End(slot));
        self.starts[at] = now.nanos();
        self.finishes[at] = finish.nanos();
        self.pending.take(row);
        let partition = self.partition_of(row);
        self.waiting[partition] -= 1;
        self.alive += 1;
        if let Order::Priorities(order) = &mut self.order {
            order.remove(row);
        }
        self.done += 1;
        self.limits.add(row);
        self.started.push(slot);
        self.note_change(now);
        Ok((expected, slot))
    }

    /// Notifies the policy of the jobs that a pass has started.
    pub(super) fn notify_starts(&mut self, now: Time, policy: &mut dyn Policy) {
        for slot in std::mem::take(&mut self.started) {
            policy.started(now, &self.running_job(&self.running[slot as usize]));
        }
    }
}

fn numbers_of_chunks(kinds: &[Kind]) -> Vec<u32> {
    let mut numbers: HashMap<(&[u64], bool), u32> = HashMap::new();
    kinds
        .iter()
        .map(|kind| {
            let next = numbers.len() as u32;
            *numbers.entry((&kind.chunk, kind.is_by_nodes)).or_insert(next)
        })
        .collect()
}

/// The user of a job and its account, for limits of backfill.
pub(super) fn user_and_account(workload: &Workload, row: u32) -> (UserId, Option<u32>) {
    let columns = workload.columns();
    (columns.user[row as usize], columns.account.as_ref().map(|c| c[row as usize]))
}
