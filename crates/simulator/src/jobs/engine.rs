//! The run of a simulation of jobs, and strict order.

use std::sync::atomic::Ordering;

use evenhand_model::{NO_TIME, Span, Time, UserId, Workload};
use evenhand_policies::{Job, Policy};

use super::conservative::{Plan, limits_users};
use super::floor::{Floor, Held, Reservation, Running};
use super::site::{Jobs, Kind, Site};
use super::waiting::{NONE, Waiting};
use super::{Backfill, JobOptions, OnMachines, Placed};
use crate::{EventQueue, Progress, Simulated, SimulationError, UserTasks};

/// How many events pass between looks at [`Progress`].
const EVENTS_BETWEEN_LOOKS: u64 = 1 << 12;

pub(super) struct Engine<'a> {
    pub(super) workload: &'a Workload,
    pub(super) jobs: &'a Jobs,
    pub(super) floor: Floor<'a>,
    pub(super) waiting: Waiting<'a>,
    /// The promises of conservative backfilling.
    pub(super) plan: Option<Plan>,
    pub(super) options: JobOptions,
    pub(super) starts: Vec<u64>,
    pub(super) finishes: Vec<u64>,
    pub(super) promised: Vec<u64>,
    pub(super) events: EventQueue<u32>,
    /// The class whose users the policy knows to wait.
    pub(super) class: u8,
    /// By queue and user: what its running jobs hold, where a queue limits that.
    pub(super) used: Vec<Vec<u64>>,
    /// By user: the row that stands for it in this instant, its first being held back by its
    /// queue's limit, else [`NONE`].
    pub(super) candidate: Vec<u32>,
    /// By user: its place among the candidates behind the head, else [`NONE`].
    pub(super) place: Vec<u32>,
    pub(super) aside: Vec<u32>,
    pub(super) reservation: Reservation,
    /// What was found out about kinds in this pass.
    pub(super) memo: Vec<Memo>,
    /// By user: the pass in which the policy was told to leave it aside.
    pub(super) told: Vec<u32>,
    /// By kind: whether it is known that no machine has room for it. That stays so until something
    /// finishes on one that then has.
    pub(super) no_room: Vec<bool>,
    pub(super) lacking: Vec<u32>,
    pub(super) pass: u32,
    pub(super) settled: Option<u32>,
    pub(super) busy: Vec<u128>,
    /// By resource: the least that any job holds.
    pub(super) least: Vec<u64>,
    pub(super) placed: Vec<Placed>,
    pub(super) finished: Vec<u32>,
    pub(super) end: u64,
    pub(super) done: u64,
    pub(super) decisions: u64,
}

/// From which estimate on jobs of a kind cannot start, found out in the pass of that number.
#[derive(Clone, Copy, Default)]
pub(super) struct Memo {
    pub(super) pass: u32,
    pub(super) fails_from: u64,
}

/// The least of a resource that any job holds which can run.
fn least(jobs: &Jobs, resource: usize) -> u64 {
    let able = jobs.kinds.iter().filter(|k| k.refused.is_none());
    able.map(|k| k.chunk[resource].saturating_mul(u64::from(k.copies))).min().unwrap_or(0)
}

impl<'a> Engine<'a> {
    pub(super) fn new(
        workload: &'a Workload,
        tasks: &'a UserTasks,
        site: &'a Site,
        jobs: &'a Jobs,
        options: JobOptions,
    ) -> Engine<'a> {
        let (users, width) = (workload.users().len(), workload.resources().len());
        let limited = |limits: &Vec<u64>| limits.iter().any(|l| *l != super::site::NO_LIMIT);
        Engine {
            workload,
            jobs,
            plan: (options.backfill == Backfill::Conservative).then(|| Plan::new(site, width, options.placement)),
            floor: Floor::new(site, width, options.placement, options.backfill == Backfill::Easy),
            waiting: Waiting::new(workload, tasks, jobs),
            options,
            starts: vec![NO_TIME; workload.len()],
            finishes: vec![NO_TIME; workload.len()],
            promised: vec![NO_TIME; if options.backfill == Backfill::None { 0 } else { workload.len() }],
            events: EventQueue::new(),
            class: 0,
            used: jobs.max_user.iter().map(|l| if limited(l) { vec![0; users * width] } else { Vec::new() }).collect(),
            candidate: vec![NONE; users],
            place: vec![NONE; users],
            aside: Vec::new(),
            reservation: Reservation::default(),
            memo: vec![Memo::default(); jobs.kinds.len()],
            told: vec![0; users],
            no_room: vec![false; jobs.kinds.len()],
            lacking: Vec::new(),
            pass: 0,
            settled: None,
            busy: vec![0; site.len() * width],
            least: (0..width).map(|r| least(jobs, r)).collect(),
            placed: Vec::new(),
            finished: Vec::new(),
            end: 0,
            done: 0,
            decisions: 0,
        }
    }

    pub(super) fn run(mut self, policy: &mut dyn Policy, progress: &Progress) -> Result<Simulated, SimulationError> {
        let mut events = 0u64;
        self.end = self.waiting.next_submission().unwrap_or_default().nanos();
        if self.plan.is_some() && limits_users(&self.jobs.max_user) {
            return Err(SimulationError::UserLimits);
        }
        loop {
            let planned = self.plan.as_ref().and_then(Plan::next_start);
            let times = [self.events.next_time(), self.waiting.next_submission(), planned];
            let Some(now) = times.into_iter().flatten().min() else { break };
            if let Some(until) = self.options.until.filter(|until| now > *until) {
                self.end = until.nanos();
                break;
            }
            self.end = now.nanos();
            let mut early = false;
            if self.events.next_time() == Some(now) {
                events += self.finish(now, policy, &mut early);
            }
            self.waiting.tidy();
            let first_new = self.waiting.entries().len();
            events += self.submit(now, policy);
            match self.options.backfill {
                Backfill::Conservative => self.keep_promises(now, early, first_new, policy)?,
                Backfill::None | Backfill::Easy => self.schedule(now, policy, first_new)?,
            }
            if events >= EVENTS_BETWEEN_LOOKS {
                events = 0;
                progress.tasks.store(self.done, Ordering::Relaxed);
                if progress.cancel.load(Ordering::Relaxed) {
                    return Err(SimulationError::Cancelled);
                }
            }
        }
        progress.tasks.store(self.done, Ordering::Relaxed);
        Ok(self.result(policy))
    }

    fn result(mut self, policy: &dyn Policy) -> Simulated {
        let slots: Vec<u32> = self.floor.slots().collect();
        for slot in slots {
            let job = self.floor.running(slot).clone();
            self.count_use(&job, self.end);
        }
        Simulated {
            starts: self.starts,
            rejected: Vec::new(),
            end: Time::from_nanos(self.end),
            decisions: self.decisions,
            order_events: policy.order_events(),
            machines: Some(OnMachines {
                refused: self.jobs.refused.clone(),
                finishes: self.finishes,
                promised: self.promised,
                busy: self.busy,
                placed: self.placed,
            }),
        }
    }

    pub(super) fn kind(&self, row: u32) -> &'a Kind {
        let jobs = self.jobs;
        &jobs.kinds[jobs.kind[row as usize] as usize]
    }

    pub(super) fn user_of(&self, row: u32) -> u32 {
        self.workload.columns().user[row as usize].0
    }

    /// A job as a policy sees it while it waits.
    pub(super) fn waits(&self, row: u32) -> Job<'a> {
        let (columns, at) = (self.workload.columns(), row as usize);
        Job {
            submitted: columns.submit[at],
            chunks: self.kind(row).copies,
            queue: columns.queue.as_ref().map(|c| c[at]),
            requested: Span::from_nanos(self.jobs.estimate[at]),
            ..Job::new(columns.user[at], self.workload.amounts(at))
        }
    }

    /// A job as a policy sees it from its start on.
    fn runs(&self, job: &Running) -> Job<'a> {
        Job {
            requested: Span::from_nanos(job.expected - job.start),
            started: Time::from_nanos(job.start),
            rate: self.floor.site.rate(&self.jobs.kinds[job.kind as usize], &job.held),
            ..self.waits(job.row)
        }
    }

    /// Adds to what each machine was used, up to `until`.
    fn count_use(&mut self, job: &Running, until: u64) {
        let kind = &self.jobs.kinds[job.kind as usize];
        let ran = u128::from(until.saturating_sub(job.start));
        for (machine, chunks) in job.held.iter() {
            let at = machine as usize * kind.chunk.len();
            for (busy, c) in self.busy[at..].iter_mut().zip(&kind.chunk) {
                *busy += u128::from(*c) * u128::from(chunks) * ran;
            }
        }
    }

    /// Every finish of this instant; returns how many. `early`: whether one was not yet expected.
    fn finish(&mut self, now: Time, policy: &mut dyn Policy, early: &mut bool) -> u64 {
        let mut slots = std::mem::take(&mut self.finished);
        slots.clear();
        self.events.take_next(|slot| slots.push(slot));
        for &slot in &slots {
            let job = self.floor.end(slot, &self.jobs.kinds);
            self.count_use(&job, job.finish);
            self.look_for_room(&job);
            if let Some(plan) = self.plan.as_mut().filter(|_| job.expected > job.finish) {
                plan.cut_short(&self.jobs.kinds[job.kind as usize], &job.held, now.nanos(), job.expected);
                *early = true;
            }
            policy.finished(now, &self.runs(&job));
            self.count_limit(job.row, self.workload.columns().user[job.row as usize], false);
        }
        self.settled = None;
        self.finished = slots;
        self.finished.len() as u64
    }

    /// Forgets that there is no room for kinds for which there may be now.
    fn look_for_room(&mut self, job: &Running) {
        let Engine { lacking, no_room, floor, jobs, .. } = self;
        lacking.retain(|&kind| {
            let chunk = &jobs.kinds[kind as usize].chunk;
            let may = job.held.iter().any(|(machine, _)| floor.fits_on(machine, chunk));
            no_room[kind as usize] = !may;
            !may
        });
    }

    /// Every submission of this instant, in file order; returns how many.
    fn submit(&mut self, now: Time, policy: &mut dyn Policy) -> u64 {
        let mut submitted = 0;
        while self.waiting.next_submission() == Some(now) {
            submitted += 1;
            let Some(entry) = self.waiting.submit() else {
                self.done += 1;
                continue;
            };
            let alone = self.waiting.in_class(entry.class) == 1;
            // The policy is told of one class; a higher one takes its place when scheduling begins.
            if entry.class == self.class && (alone || self.waiting.first(entry.class, entry.user) == Some(entry.row)) {
                policy.set_first_pending(UserId(entry.user), Some(&self.waits(entry.row)));
            }
        }
        submitted
    }

    /// What the user's first waiting job of the present class is, told to the policy.
    pub(super) fn tell(&mut self, user: u32, policy: &mut dyn Policy) {
        let first = self.waiting.first(self.class, user).map(|row| self.waits(row));
        policy.set_first_pending(UserId(user), first.as_ref());
    }

    /// Tells the policy of the highest class, from `highest` on, in which a job waits; whether there
    /// is one.
    fn turn_to_class(&mut self, highest: u8, policy: &mut dyn Policy) -> bool {
        let Some(top) = self.waiting.top_class(highest) else { return false };
        if top == self.class {
            return true;
        }
        for user in 0..self.candidate.len() as u32 {
            if self.waiting.first(self.class, user).is_some() {
                policy.set_first_pending(UserId(user), None);
            }
        }
        self.class = top;
        self.restore(policy);
        for user in 0..self.candidate.len() as u32 {
            if self.waiting.first(top, user).is_some() {
                self.tell(user, policy);
            }
        }
        true
    }

    /// Undoes what was told of users set aside.
    fn restore(&mut self, policy: &mut dyn Policy) {
        for user in std::mem::take(&mut self.aside) {
            self.candidate[user as usize] = NONE;
            self.tell(user, policy);
        }
    }

    fn schedule(&mut self, now: Time, policy: &mut dyn Policy, first_new: usize) -> Result<(), SimulationError> {
        let mut highest = 0;
        while self.turn_to_class(highest, policy) {
            let Some(user) = policy.next(now) else {
                // Whoever waits in this class is set aside: the next lower one has its turn.
                highest = self.class + 1;
                continue;
            };
            self.decisions += 1;
            let Some(first) = self.stands_for(user.0, policy) else { continue };
            let kind = self.kind(first);
            if let Some(held) = self.floor.take(kind) {
                self.start(now, first, held, policy)?;
                self.settled = None;
                // What it holds now may bring the user over a limit: looked at again.
                self.candidate[user.index()] = NONE;
                self.tell(user.0, policy);
                continue;
            }
            match self.options.backfill {
                Backfill::Easy => {
                    self.backfill(now, first, policy, first_new)?;
                    break;
                }
                _ if self.options.blocking => break,
                _ => {
                    policy.set_first_pending(user, None);
                    self.aside.push(user.0);
                }
            }
        }
        self.restore(policy);
        Ok(())
    }

    /// The job with which a user that the policy named has its turn; `None` if another one has to
    /// be named, as what its queue's limit holds back does not wait.
    fn stands_for(&mut self, user: u32, policy: &mut dyn Policy) -> Option<u32> {
        let first = match self.candidate[user as usize] {
            NONE => self.waiting.first(self.class, user)?,
            row => row,
        };
        if !self.is_over_limit(first, user) {
            return Some(first);
        }
        let mut later = self.waiting.after(self.class, user, first).map(|e| e.row);
        let next = later.find(|&row| !self.is_over_limit(row, user));
        drop(later);
        self.aside.push(user);
        self.candidate[user as usize] = next.unwrap_or(first);
        policy.set_first_pending(UserId(user), next.map(|row| self.waits(row)).as_ref());
        None
    }

    fn limits(&self, row: u32) -> Option<(usize, &'a [u64])> {
        if self.used.is_empty() {
            return None;
        }
        let queue = usize::from(self.kind(row).queue?);
        (!self.used[queue].is_empty()).then(|| (queue, self.jobs.max_user[queue].as_slice()))
    }

    /// Whether the job would bring its user over what its queue allows.
    pub(super) fn is_over_limit(&self, row: u32, user: u32) -> bool {
        let Some((queue, limits)) = self.limits(row) else { return false };
        let used = &self.used[queue][user as usize * limits.len()..];
        let amounts = self.workload.amounts(row as usize);
        limits.iter().zip(used.iter().zip(amounts)).any(|(limit, (used, a))| used.saturating_add(a.0) > *limit)
    }

    fn count_limit(&mut self, row: u32, user: UserId, starts: bool) {
        let Some((queue, limits)) = self.limits(row) else { return };
        let at = user.index() * limits.len();
        let used = &mut self.used[queue][at..at + limits.len()];
        for (used, a) in used.iter_mut().zip(self.workload.amounts(row as usize)) {
            if starts { *used += a.0 } else { *used -= a.0 }
        }
    }

    /// Starts a job for which room was taken.
    pub(super) fn start(
        &mut self,
        now: Time,
        row: u32,
        held: Held,
        policy: &mut dyn Policy,
    ) -> Result<(), SimulationError> {
        let columns = self.workload.columns();
        let at = row as usize;
        let ran = Span::checked_from_nanos(u128::from(self.floor.scaled(&held, columns.duration[at].nanos())));
        let finish = ran.and_then(|ran| now.checked_add(ran));
        let too_long = || SimulationError::TooLong { row: at, start: now, duration: columns.duration[at] };
        let finish = finish.ok_or_else(too_long)?;
        let expected = now.nanos().saturating_add(self.floor.expects(self.kind(row), &held, self.jobs.estimate[at]));
        let kind = self.jobs.kind[at];
        self.placed.extend(held.iter().map(|(machine, chunks)| Placed { row, machine, chunks }));
        let job = Running { row, kind, start: now.nanos(), finish: finish.nanos(), expected, held };
        policy.started(now, &self.runs(&job));
        let slot = self.floor.start(job);
        self.events.push(finish, slot);
        self.starts[at] = now.nanos();
        self.finishes[at] = finish.nanos();
        self.waiting.take(row);
        self.done += 1;
        let user = columns.user[at];
        self.count_limit(row, user, true);
        Ok(())
    }
}
