//! Strict order and EASY backfilling.

use std::sync::atomic::Ordering;

use evenhand_model::{NO_TIME, Span, Time, UserId, Workload};
use evenhand_policies::Policy;

use super::conservative::{Plan, limits_users};
use super::floor::{Floor, Held, Reservation, Running};
use super::site::{Jobs, Kind, Site};
use super::waiting::{Entry, NONE, Waiting};
use super::{Backfill, JobOptions, OnMachines};
use crate::{EventQueue, Progress, Simulated, SimulationError, UserTasks};

/// How many events pass between looks at [`Progress`].
const EVENTS_BETWEEN_LOOKS: u64 = 1 << 12;

pub(super) struct Engine<'a> {
    workload: &'a Workload,
    pub(super) jobs: &'a Jobs,
    pub(super) floor: Floor<'a>,
    pub(super) waiting: Waiting<'a>,
    /// The promises of conservative backfilling.
    pub(super) plan: Option<Plan>,
    options: JobOptions,
    starts: Vec<u64>,
    finishes: Vec<u64>,
    pub(super) promised: Vec<u64>,
    events: EventQueue<u32>,
    /// The class whose users the policy knows to wait.
    pub(super) class: u8,
    /// By queue and user: what its running jobs hold, where a queue limits that.
    used: Vec<Vec<u64>>,
    /// By user: the row that stands for it in this instant, its first being held back by its
    /// queue's limit, else [`NONE`].
    candidate: Vec<u32>,
    /// By user: its place among the candidates behind the head, else [`NONE`].
    pub(super) place: Vec<u32>,
    aside: Vec<u32>,
    reservation: Reservation,
    /// What was found out about kinds in this pass.
    memo: Vec<Memo>,
    /// By user: the pass in which the policy was told to leave it aside.
    told: Vec<u32>,
    /// By kind: whether it is known that no machine has room for it. That stays so until something
    /// finishes on one that then has.
    no_room: Vec<bool>,
    lacking: Vec<u32>,
    pass: u32,
    settled: Option<u32>,
    busy: Vec<u128>,
    /// By resource: the least that any job holds.
    least: Vec<u64>,
    finished: Vec<u32>,
    end: u64,
    done: u64,
    pub(super) decisions: u64,
}

/// From which estimate on jobs of a kind cannot start, found out in the pass of that number.
#[derive(Clone, Copy, Default)]
struct Memo {
    pass: u32,
    fails_from: u64,
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
            finished: Vec::new(),
            end: 0,
            done: 0,
            decisions: 0,
        }
    }

    pub(super) fn run(mut self, policy: &mut dyn Policy, progress: &Progress) -> Result<Simulated, SimulationError> {
        let mut events = 0u64;
        self.end = self.waiting.next_submission().unwrap_or_default().nanos();
        if self.plan.is_some() && limits_users(self.workload, &self.jobs.max_user) {
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
            }),
        }
    }

    fn kind(&self, row: u32) -> &'a Kind {
        let jobs = self.jobs;
        &jobs.kinds[jobs.kind[row as usize] as usize]
    }

    pub(super) fn user_of(&self, row: u32) -> u32 {
        self.workload.columns().user[row as usize].0
    }

    pub(super) fn submitted_at(&self, row: u32) -> Time {
        self.workload.columns().submit[row as usize]
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
            let user = self.workload.columns().user[job.row as usize];
            policy.finished(now, user, self.workload.amounts(job.row as usize));
            self.count_limit(job.row, user, false);
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
                policy.waiting(UserId(entry.user), Some(now));
            }
        }
        submitted
    }

    /// What the user's first waiting job of the present class is, told to the policy.
    pub(super) fn tell(&mut self, user: u32, policy: &mut dyn Policy) {
        let first = self.waiting.first(self.class, user).map(|row| self.submitted_at(row));
        policy.waiting(UserId(user), first);
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
                policy.waiting(UserId(user), None);
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
                    policy.waiting(user, None);
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
        policy.waiting(UserId(user), next.map(|row| self.submitted_at(row)));
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
    fn is_over_limit(&self, row: u32, user: u32) -> bool {
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
        let job = Running { row, kind, start: now.nanos(), finish: finish.nanos(), expected, held };
        let slot = self.floor.start(job);
        self.events.push(finish, slot);
        self.starts[at] = now.nanos();
        self.finishes[at] = finish.nanos();
        self.waiting.take(row);
        self.done += 1;
        let user = columns.user[at];
        self.count_limit(row, user, true);
        policy.started(now, user, self.workload.amounts(at));
        Ok(())
    }

    /// Lets jobs behind the head start where that does not delay it.
    fn backfill(
        &mut self,
        now: Time,
        head: u32,
        policy: &mut dyn Policy,
        first_new: usize,
    ) -> Result<(), SimulationError> {
        // Nothing has finished or started since the same head was reserved for: what could not
        // start then cannot start now, and the reservation stands.
        let only_new = self.settled == Some(head);
        let from = if only_new { first_new } else { 0 };
        self.pass += 1;
        let mut reserved = only_new;
        if self.promised[head as usize] == NO_TIME {
            self.reserve(head, &mut reserved);
            self.promised[head as usize] = self.reservation.shadow;
        }
        if !self.floor.has_in_all(&self.least) {
            self.settled = reserved.then_some(head);
            return Ok(());
        }
        let mut started = false;
        for class in self.class..self.jobs.classes as u8 {
            if self.waiting.in_class(class) > 0 {
                started |= self.backfill_class(now, head, class, from, &mut reserved, policy)?;
            }
        }
        // On one machine a job that starts beside the reservation changes nothing about it.
        self.settled = (reserved && (!started || self.floor.site.len() == 1)).then_some(head);
        Ok(())
    }

    fn reserve(&mut self, head: u32, reserved: &mut bool) {
        if !std::mem::replace(reserved, true) {
            let kind = self.kind(head);
            self.floor.reserve(kind, &self.jobs.kinds, &mut self.reservation);
        }
    }

    /// Whether a job could start now beside the reservation.
    fn could_start(&mut self, now: Time, head: u32, entry: Entry, reserved: &mut bool) -> bool {
        let memo = &mut self.memo[entry.kind as usize];
        if memo.pass != self.pass {
            *memo = Memo { pass: self.pass, fails_from: u64::MAX };
        }
        let fails = entry.estimate >= memo.fails_from || self.no_room[entry.kind as usize];
        if fails || self.is_over_limit(entry.row, entry.user) {
            return false;
        }
        let kind = &self.jobs.kinds[entry.kind as usize];
        if !self.floor.has_room(kind) {
            self.no_room[entry.kind as usize] = true;
            self.lacking.push(entry.kind);
            return false;
        }
        self.reserve(head, reserved);
        let could = self.floor.has_room_beside(kind, now.nanos(), entry.estimate, &self.reservation);
        if !could {
            self.memo[entry.kind as usize].fails_from = entry.estimate;
        }
        could
    }

    /// The first entry of a class, from the place `at` on, that is not yet known to lack room; and
    /// the place after it.
    fn hopeful(&self, at: usize, class: u8) -> Option<(Entry, usize)> {
        let free = self.floor.free_of_first();
        let entries = &self.waiting.entries()[at..];
        let hopeful = entries.iter().position(|e| {
            if e.needs > free || e.row == NONE || self.no_room[e.kind as usize] || e.class != class {
                return false;
            }
            let memo = &self.memo[e.kind as usize];
            memo.pass != self.pass || e.estimate < memo.fails_from
        })?;
        Some((entries[hopeful], at + hopeful + 1))
    }

    /// Starts a job that [could](Engine::could_start); whether anything came of it.
    fn start_beside(&mut self, now: Time, entry: Entry, policy: &mut dyn Policy) -> Result<bool, SimulationError> {
        let kind = &self.jobs.kinds[entry.kind as usize];
        match self.floor.take_beside(kind, now.nanos(), entry.estimate, &mut self.reservation) {
            Some(held) => self.start(now, entry.row, held, policy).map(|()| true),
            None => Ok(false),
        }
    }

    /// The user's next job after `row` that could start.
    fn next_candidate(&mut self, now: Time, head: u32, entry: Entry, reserved: &mut bool) -> Option<Entry> {
        let mut row = entry.row;
        loop {
            let next = self.waiting.after(entry.class, entry.user, row).find(|e| e.row != head)?;
            if self.could_start(now, head, next, reserved) {
                return Some(next);
            }
            row = next.row;
        }
    }

    /// Goes through the jobs of a class behind the head in the order in which the policy names
    /// them; whether any started.
    ///
    /// Of each user only the first job that could start is shown to the policy. Jobs that cannot
    /// start now cannot start later in the pass either, as room only shrinks: leaving them out
    /// changes nothing about the others.
    fn backfill_class(
        &mut self,
        now: Time,
        head: u32,
        class: u8,
        from: usize,
        reserved: &mut bool,
        policy: &mut dyn Policy,
    ) -> Result<bool, SimulationError> {
        let mut candidates: Vec<Entry> = Vec::new();
        let mut at = from;
        while let Some((entry, next)) = self.hopeful(at, class) {
            at = next;
            if entry.row == head || self.place[entry.user as usize] != NONE {
                continue;
            }
            if self.could_start(now, head, entry, reserved) {
                self.place[entry.user as usize] = candidates.len() as u32;
                candidates.push(entry);
            }
        }
        let started = self.backfill_candidates(now, head, &mut candidates, reserved, policy);
        candidates.iter().for_each(|c| self.place[c.user as usize] = NONE);
        started
    }

    fn backfill_candidates(
        &mut self,
        now: Time,
        head: u32,
        candidates: &mut [Entry],
        reserved: &mut bool,
        policy: &mut dyn Policy,
    ) -> Result<bool, SimulationError> {
        match candidates {
            [] => return Ok(false),
            // Whom the policy would name is known.
            [only] => {
                let (mut next, mut started) = (Some(*only), false);
                while let Some(entry) = next {
                    started |= self.start_beside(now, entry, policy)?;
                    next = self.next_candidate(now, head, entry, reserved);
                }
                self.tell(only.user, policy);
                return Ok(started);
            }
            _ => {}
        }
        let mut touched: Vec<u32> = candidates.iter().map(|c| c.user).collect();
        touched.iter().for_each(|&user| self.told[user as usize] = self.pass);
        for entry in self.waiting.entries().iter().filter(|e| e.row != NONE && e.class == self.class) {
            if std::mem::replace(&mut self.told[entry.user as usize], self.pass) != self.pass {
                policy.waiting(UserId(entry.user), None);
                touched.push(entry.user);
            }
        }
        // A pass goes through several classes.
        touched.iter().for_each(|&user| self.told[user as usize] = 0);
        for entry in candidates.iter() {
            policy.waiting(UserId(entry.user), Some(self.submitted_at(entry.row)));
        }
        let mut started = false;
        while let Some(user) = policy.next(now) {
            self.decisions += 1;
            let Some(candidate) = candidates.get_mut(self.place[user.index()] as usize) else { break };
            let entry = *candidate;
            if self.could_start(now, head, entry, reserved) {
                started |= self.start_beside(now, entry, policy)?;
            }
            let next = self.next_candidate(now, head, entry, reserved);
            policy.waiting(user, next.map(|e| self.submitted_at(e.row)));
            if let Some(next) = next {
                *candidate = next;
            }
        }
        for user in touched {
            self.tell(user, policy);
        }
        Ok(started)
    }
}
