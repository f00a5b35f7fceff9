//! The event loop of a job simulation, and scheduling in strict order.

use std::sync::atomic::Ordering;

use evenhand_model::{NO_TIME, Span, Time, UserId, Workload};
use evenhand_policies::{Job, Policy, UserSet};

use super::easy_turns::Shown;
use super::job_limits::HeldOfLimits;
use super::kind::Kind;
use super::layout::LayoutRule;
use super::machine_state::{MachineState, Running};
use super::pending_jobs::{NO_ROW, PendingJobs};
use super::placements::Placements;
use super::planned_settings::PlannedBackfill;
use super::prepared_jobs::Jobs;
use super::reservation_plan::Plan;
use super::site::Site;
use super::{Assignment, Backfill, JobOptions, MachineResults};
use crate::arrivals::SubmissionTimes;
use crate::{EventQueue, Progress, Simulated, SimulationError};

/// How many events pass between updates of [`Progress::tasks`].
const EVENTS_BETWEEN_PROGRESS_UPDATES: u64 = 1 << 12;

pub(super) struct Engine<'a> {
    pub(super) workload: &'a Workload,
    pub(super) progress: &'a Progress,
    pub(super) jobs: &'a Jobs,
    pub(super) machines: MachineState<'a>,
    pub(super) pending: PendingJobs<'a>,
    submission_times: SubmissionTimes<'a>,
    /// The promises of conservative backfilling.
    pub(super) plan: Option<Plan>,
    pub(super) options: JobOptions,
    pub(super) starts: Vec<u64>,
    pub(super) finishes: Vec<u64>,
    pub(super) first_reservation: Vec<u64>,
    pub(super) events: EventQueue<u32>,
    /// The priority class whose users the policy knows as pending.
    pub(super) class: u8,
    pub(super) limits: HeldOfLimits<'a>,
    /// By user: the row that represents the user in this instant because a queue limit holds back its
    /// first job, or [`NO_ROW`].
    pub(super) candidate: Vec<u32>,
    /// By user: its place among the candidates behind the head, else [`NO_ROW`].
    pub(super) place: Vec<u32>,
    pub(super) set_aside: Vec<u32>,
    /// Which jobs behind the head the policy is shown.
    pub(super) shown: Shown,
    /// By user: the job that the policy placed last in the user's last turn behind the head, or [`NO_ROW`]; empty if jobs
    /// are not grouped.
    pub(super) last_placed: Vec<u32>,
    /// Users all of whose waiting jobs in the current class limits hold back: the policy knows none of them.
    pub(super) held_back: UserSet,
    /// What this pass has established about each kind of job.
    pub(super) memo: Vec<Memo>,
    /// By user: the last pass in which the policy was notified to leave it out.
    pub(super) notified_in_pass: Vec<u32>,
    /// Kinds that lack capacity, as the pending jobs know. That holds until a job finishes on a machine on which the
    /// kind then fits.
    pub(super) kinds_not_fitting: Vec<u32>,
    pub(super) pass: u32,
    /// The head behind which every waiting job was considered, if nothing has changed since that lets one start.
    pub(super) considered_for: Option<u32>,
    /// When the head is expected to start at the latest.
    pub(super) shadow: u64,
    pub(super) busy: Vec<u128>,
    /// By resource: the smallest demand of any job.
    pub(super) smallest_demand: Vec<u64>,
    pub(super) placed: Vec<Assignment>,
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
    /// Up to which estimate they can, while as many tasks are done as `as_of` says.
    pub(super) succeeds_to: u64,
    pub(super) as_of: u64,
}

/// The smallest demand for a resource among the jobs that can run.
fn smallest_demand(jobs: &Jobs, resource: usize) -> u64 {
    let able = jobs.kinds.iter().filter(|k| k.rejection.is_none());
    able.map(|k| k.total(resource)).min().unwrap_or(0)
}

impl<'a> Engine<'a> {
    pub(super) fn new(
        workload: &'a Workload,
        pending: PendingJobs<'a>,
        site: &'a Site,
        jobs: &'a Jobs,
        options: JobOptions,
        progress: &'a Progress,
    ) -> Engine<'a> {
        let (users, width) = (workload.users().len(), workload.resources().len());
        Engine {
            workload,
            progress,
            jobs,
            plan: matches!(options.backfill, Backfill::Conservative | Backfill::Planned(_)).then(|| {
                let licences = &jobs.limits.licences;
                let are_planned = options.backfill.keeps_reservations() && licences.is_any();
                Plan::new(site, width, options.placement, are_planned.then(|| licences.counts()))
            }),
            machines: MachineState::new(site, width, options.placement, options.backfill == Backfill::Easy),
            submission_times: pending.submission_times(),
            pending,
            options,
            starts: vec![NO_TIME; workload.len()],
            finishes: vec![NO_TIME; workload.len()],
            first_reservation: vec![NO_TIME; if options.backfill == Backfill::None { 0 } else { workload.len() }],
            events: EventQueue::new(),
            class: 0,
            limits: HeldOfLimits::new(workload, &jobs.limits),
            candidate: vec![NO_ROW; users],
            place: vec![NO_ROW; users],
            set_aside: Vec::new(),
            shown: Shown::Candidate,
            last_placed: Vec::new(),
            held_back: UserSet::new(users),
            memo: vec![Memo::default(); jobs.kinds.len()],
            notified_in_pass: vec![0; users],
            kinds_not_fitting: Vec::new(),
            pass: 0,
            considered_for: None,
            shadow: 0,
            busy: vec![0; site.len() * width],
            smallest_demand: (0..width).map(|r| smallest_demand(jobs, r)).collect(),
            placed: Vec::new(),
            finished: Vec::new(),
            end: 0,
            done: 0,
            decisions: 0,
        }
    }

    pub(super) fn run(mut self, policy: &mut dyn Policy) -> Result<Simulated, SimulationError> {
        let mut events = 0u64;
        self.end = self.pending.next_submission().unwrap_or_default().nanos();
        if self.options.backfill.keeps_reservations() && self.jobs.limits.hold_back() {
            return Err(SimulationError::UserLimits);
        }
        if self.options.backfill == Backfill::Easy {
            self.choose_shown(policy);
        }
        loop {
            self.progress.check()?;
            let planned = match self.options.backfill {
                Backfill::Planned(_) => self.next_planned_start(),
                _ => self.plan.as_ref().and_then(Plan::next_start),
            };
            let times = [self.events.next_time(), self.pending.next_submission(), planned];
            let Some(now) = times.into_iter().flatten().min() else { break };
            if let Some(until) = self.options.until.filter(|until| now > *until) {
                self.end = until.nanos();
                break;
            }
            self.end = now.nanos();
            events += match self.options.backfill {
                Backfill::Planned(settings) => self.handle_planned(settings, now, policy)?,
                _ => self.handle(now, policy)?,
            };
            if events >= EVENTS_BETWEEN_PROGRESS_UPDATES {
                events = 0;
                self.progress.tasks.store(self.done, Ordering::Relaxed);
            }
        }
        self.progress.tasks.store(self.done, Ordering::Relaxed);
        Ok(self.result(policy))
    }

    /// Handles the ends and submissions of an instant, and starts jobs. Returns the number of events.
    fn handle(&mut self, now: Time, policy: &mut dyn Policy) -> Result<u64, SimulationError> {
        let (mut events, mut early) = (0, false);
        if self.events.next_time() == Some(now) {
            events += self.finish(now, policy, &mut early);
        }
        self.pending.compact();
        let first_new = self.pending.entries().len();
        events += self.submit(now, policy);
        match self.options.backfill {
            Backfill::Conservative => self.schedule_conservatively(now, early, first_new, policy)?,
            _ => self.schedule(now, policy, first_new)?,
        }
        Ok(events)
    }

    /// The settings of backfilling by a plan.
    pub(super) fn planned(&self) -> Option<PlannedBackfill> {
        match self.options.backfill {
            Backfill::Planned(settings) => Some(settings),
            _ => None,
        }
    }

    fn result(mut self, policy: &dyn Policy) -> Simulated {
        let slots: Vec<u32> = self.machines.slots().collect();
        for slot in slots {
            let job = self.machines.running(slot).clone();
            self.count_use(&job, self.end);
        }
        Simulated {
            submissions: self.pending.submissions_found(),
            starts: self.starts,
            rejections: self.jobs.rejections.clone(),
            end: Time::from_nanos(self.end),
            decisions: self.decisions,
            order_events: policy.order_events(),
            machines: Some(MachineResults {
                finishes: self.finishes,
                first_reservation: self.first_reservation,
                busy: self.busy,
                placed: self.placed,
                slurm: None,
            }),
        }
    }

    pub(super) fn kind(&self, row: u32) -> &'a Kind {
        self.jobs.kind_of(row)
    }

    pub(super) fn user_of(&self, row: u32) -> u32 {
        self.workload.columns().user[row as usize].0
    }

    /// A job as a policy sees it while it waits.
    pub(super) fn pending_job(&self, row: u32) -> Job<'a> {
        self.jobs.pending_job(self.workload, self.submission_times.of(row), row)
    }

    /// A job as a policy sees it from its start on: it holds all that its machines have if it has them as a whole.
    fn running_job<'j>(&'j self, job: &'j Running) -> Job<'j> {
        let pending = self.pending_job(job.row);
        Job {
            demand: job.whole.as_deref().unwrap_or(pending.demand),
            requested: match self.options.backfill {
                Backfill::Planned(_) => self.requested_of(&self.jobs.kinds[job.kind as usize], &job.held, job.row),
                _ => Span::from_nanos(job.expected - job.start),
            },
            started: Time::from_nanos(job.start),
            rate: self.machines.site.rate(&self.jobs.kinds[job.kind as usize], &job.held),
            ..pending
        }
    }

    /// Adds the job's use to each of its machines, up to `until`.
    fn count_use(&mut self, job: &Running, until: u64) {
        let kind = &self.jobs.kinds[job.kind as usize];
        let ran = u128::from(until.saturating_sub(job.start));
        for (machine, chunks, chunk) in job.held.chunks(kind) {
            let at = machine as usize * chunk.len();
            for (busy, c) in self.busy[at..].iter_mut().zip(chunk) {
                *busy += u128::from(*c) * u128::from(chunks) * ran;
            }
        }
    }

    /// Every finish of this instant; returns how many. `early`: whether one was not yet expected.
    pub(super) fn finish(&mut self, now: Time, policy: &mut dyn Policy, early: &mut bool) -> u64 {
        let mut slots = std::mem::take(&mut self.finished);
        slots.clear();
        self.events.take_next(|slot| slots.push(slot));
        for &slot in &slots {
            self.finish_one(slot, now, policy, early);
        }
        self.considered_for = None;
        self.finished = slots;
        self.finished.len() as u64
    }

    /// The finish of a job; `early`: set if it was not yet expected.
    pub(super) fn finish_one(&mut self, slot: u32, now: Time, policy: &mut dyn Policy, early: &mut bool) {
        let job = self.machines.end(slot, &self.jobs.kinds);
        self.count_use(&job, job.finish);
        self.recheck_fit(&job);
        if let Some(plan) = self.plan.as_mut().filter(|_| job.expected > job.finish) {
            let kind = &self.jobs.kinds[job.kind as usize];
            plan.release_early(self.machines.site, kind, &job.held, now.nanos(), job.expected);
            *early = true;
        }
        policy.finished(now, &self.running_job(&job));
        self.limits.remove(job.row);
        self.let_go(job.row, policy);
        self.pending.ended(now, job.row);
    }

    /// Clears the not-fitting mark of kinds that fit on the machines of a finished job.
    fn recheck_fit(&mut self, job: &Running) {
        let Engine { kinds_not_fitting, pending, machines, jobs, .. } = self;
        kinds_not_fitting.retain(|&kind| {
            let chunk = jobs.kinds[kind as usize].smallest_chunk();
            let may = job.held.machines().any(|machine| machines.fits_on(machine, chunk));
            if may {
                pending.kinds.set_lacks_capacity(kind, false);
            }
            !may
        });
    }

    /// Every submission of this instant, in file order; returns how many.
    pub(super) fn submit(&mut self, now: Time, policy: &mut dyn Policy) -> u64 {
        let mut submitted = 0;
        while self.submit_one(now, policy) {
            submitted += 1;
        }
        submitted
    }

    /// The next submission of this instant; returns whether there is one.
    pub(super) fn submit_one(&mut self, now: Time, policy: &mut dyn Policy) -> bool {
        if self.pending.next_submission() != Some(now) {
            return false;
        }
        let Some(entry) = self.pending.submit(now) else {
            self.done += 1;
            return true;
        };
        let alone = self.pending.in_class(entry.class) == 1;
        if entry.class == self.class && self.held_back.set(UserId(entry.user), false) {
            self.notify_first_pending(entry.user, policy);
        }
        // The policy knows one class; a higher class replaces it when scheduling begins.
        if entry.class == self.class && (alone || self.pending.first(entry.class, entry.user) == Some(entry.row)) {
            policy.set_first_pending(UserId(entry.user), Some(&self.pending_job(entry.row)));
        }
        true
    }

    /// Shows the policy the users whom limits may hold back no longer since a job has ended.
    fn let_go(&mut self, ended: u32, policy: &mut dyn Policy) {
        let user = self.user_of(ended);
        if !self.jobs.limits.are_of_user(self.workload, ended) {
            self.held_back.take_all().into_iter().for_each(|user| self.notify_first_pending(user.0, policy));
        } else if self.held_back.set(UserId(user), false) {
            self.notify_first_pending(user, policy);
        }
    }

    /// Notifies the policy of the user's first pending job in the current class.
    pub(super) fn notify_first_pending(&mut self, user: u32, policy: &mut dyn Policy) {
        if self.held_back.contains(UserId(user)) {
            return policy.set_first_pending(UserId(user), None);
        }
        let first = self.pending.first(self.class, user).map(|row| self.pending_job(row));
        policy.set_first_pending(UserId(user), first.as_ref());
    }

    /// Makes the highest class with a pending job, from `highest` on, known to the policy. Returns whether
    /// there is one.
    fn turn_to_class(&mut self, highest: u8, policy: &mut dyn Policy) -> bool {
        let Some(top) = self.pending.top_class(highest) else { return false };
        if top == self.class {
            return true;
        }
        self.pending.users(self.class).for_each(|user| policy.set_first_pending(UserId(user), None));
        self.class = top;
        self.held_back.take_all();
        self.restore(policy);
        let waiting: Vec<u32> = self.pending.users(top).collect();
        waiting.into_iter().for_each(|user| self.notify_first_pending(user, policy));
        true
    }

    /// Makes the users that were set aside known to the policy again.
    fn restore(&mut self, policy: &mut dyn Policy) {
        for user in std::mem::take(&mut self.set_aside) {
            self.candidate[user as usize] = NO_ROW;
            self.notify_first_pending(user, policy);
        }
    }

    fn schedule(&mut self, now: Time, policy: &mut dyn Policy, first_new: usize) -> Result<(), SimulationError> {
        let mut highest = 0;
        let mut without_capacity = Vec::new();
        let mut changed = None;
        loop {
            let class = self.class;
            if !self.turn_to_class(highest, policy) {
                break;
            }
            self.progress.check()?;
            self.show_within_limits(&without_capacity, changed.filter(|_| self.class == class), policy);
            let Some(user) = policy.next(now) else {
                // All users pending in this class are set aside: the next lower class has its turn.
                highest = self.class + 1;
                continue;
            };
            self.decisions += 1;
            let Some(first) = self.eligible_job(user.0, policy) else { continue };
            let kind = self.kind(first);
            if let Some(held) = self.machines.take(kind) {
                self.start(now, first, held, false, policy)?;
                self.considered_for = None;
                changed = self.jobs.limits.are_of_user(self.workload, first).then_some(user.0);
                // The started job may bring the user over a limit: check again.
                self.candidate[user.index()] = NO_ROW;
                self.notify_first_pending(user.0, policy);
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
                    self.set_aside.push(user.0);
                    without_capacity.push(user.0);
                }
            }
        }
        self.restore(policy);
        Ok(())
    }

    /// Whether the policy must not be shown jobs that a limit holds back: if its key depends on the job, such a job's would stand for
    /// its user.
    pub(super) fn hides_held_back(&self, policy: &dyn Policy) -> bool {
        self.jobs.limits.is_any() && policy.key_depends_on_job()
    }

    /// Shows a policy whose key depends on the job each user's first job that no limit holds back; other policies are shown
    /// another only once they name a user whose first is held back. Users in `without_capacity` are set aside; `only`: the only
    /// user for whom anything has changed.
    fn show_within_limits(&mut self, without_capacity: &[u32], only: Option<u32>, policy: &mut dyn Policy) {
        if !self.hides_held_back(policy) {
            return;
        }
        let users: Vec<u32> = only.map_or_else(|| self.pending.users(self.class).collect(), |user| vec![user]);
        for user in users {
            if self.held_back.contains(UserId(user)) || without_capacity.contains(&user) {
                continue;
            }
            let Some(first) = self.pending.first(self.class, user) else { continue };
            let within = self.pending.first_within(&self.limits, self.class, user, first, NO_ROW);
            let shown = &mut self.candidate[user as usize];
            match within {
                Some(row) if *shown == if row == first { NO_ROW } else { row } => continue,
                Some(row) => {
                    *shown = row;
                    self.set_aside.push(user);
                }
                None => _ = self.held_back.set(UserId(user), true),
            }
            policy.set_first_pending(UserId(user), within.map(|row| self.pending_job(row)).as_ref());
        }
    }

    /// Returns the job that represents a user named by the policy, or `None` if the policy must choose again
    /// because a queue limit holds the user's jobs back.
    fn eligible_job(&mut self, user: u32, policy: &mut dyn Policy) -> Option<u32> {
        let first = match self.candidate[user as usize] {
            NO_ROW => self.pending.first(self.class, user)?,
            row => row,
        };
        if !self.limits.is_over(first) {
            return Some(first);
        }
        let next = self.pending.first_within(&self.limits, self.class, user, first, NO_ROW);
        match next {
            Some(row) => {
                self.set_aside.push(user);
                self.candidate[user as usize] = row;
            }
            None => _ = self.held_back.set(UserId(user), true),
        }
        policy.set_first_pending(UserId(user), next.map(|row| self.pending_job(row)).as_ref());
        None
    }

    /// Starts a job whose capacity has been taken, `beside` the head's reservation or not.
    pub(super) fn start(
        &mut self,
        now: Time,
        row: u32,
        held: Placements,
        beside: bool,
        policy: &mut dyn Policy,
    ) -> Result<(), SimulationError> {
        let columns = self.workload.columns();
        let at = row as usize;
        let ran = Span::checked_from_nanos(u128::from(self.machines.scaled(&held, columns.duration[at].nanos())));
        let finish = ran.and_then(|ran| now.checked_add(ran));
        let too_long = || SimulationError::TooLong { row: at, start: now, duration: columns.duration[at] };
        let finish = finish.ok_or_else(too_long)?;
        let expected = now.nanos().saturating_add(self.machines.expected_duration(
            self.kind(row),
            &held,
            self.running_length(row),
        ));
        let kind = self.jobs.kind[at];
        let of_one_size = held.iter().map(|(machine, chunks)| Assignment { row, machine, chunks, size: 0 });
        self.placed.extend(of_one_size);
        self.placed.extend(held.last.map(|machine| Assignment { row, machine, chunks: 1, size: 1 }));
        let of_sizes = held.of_sizes.iter();
        self.placed.extend(of_sizes.map(|&(size, machine, chunks)| Assignment { row, machine, chunks, size }));
        let has_whole = matches!(self.jobs.kinds[kind as usize].rule, LayoutRule::Whole | LayoutRule::Exclusive);
        let whole = has_whole.then(|| self.machines.site.all_on(&held));
        let (start, in_reservation) = (now.nanos(), false);
        let job = Running { row, kind, start, finish: finish.nanos(), expected, held, whole, in_reservation };
        policy.started(now, &self.running_job(&job));
        let slot = self.machines.start(job, beside);
        self.events.push(finish, slot);
        self.starts[at] = start;
        self.finishes[at] = finish.nanos();
        self.pending.take(row);
        self.done += 1;
        self.limits.add(row);
        Ok(())
    }
}
