//! Jobs that run: their start, their end, and what they used.

use std::ops::Range;

use evenhand_model::{PreemptMode, Span, Time};
use evenhand_policies::{Job, Policy};

use super::super::Assignment;
use super::super::placements::Placements;
use super::charges::ChargedJob;
use super::engine::{Engine, SECOND};
use super::queue::Order;
use super::results::Activity;
use crate::SimulationError;

/// How often slurmctld looks for jobs beyond their limits.
pub(super) const LIMIT_SWEEP: u64 = 30 * SECOND;

/// A job that runs or completes.
#[derive(Clone, Debug, Default)]
pub(super) struct Running {
    pub(super) row: u32,
    pub(super) start: u64,
    pub(super) finish: u64,
    /// Since when it runs without a break.
    pub(super) since: u64,
    /// When it has run for its run time.
    pub(super) runs_out: u64,
    /// Since when it is suspended.
    pub(super) suspended: Option<u64>,
    /// Its place among the jobs of its partition that take turns.
    pub(super) turn: u64,
    /// Whether it runs since the turn began.
    pub(super) had_turn: bool,
    /// When it must have finished by its limit; when its nodes are free, once it has finished.
    pub(super) expected: u64,
    pub(super) held: Placements,
    pub(super) completing: bool,
    /// Of its end: an event of another one is void.
    pub(super) id: u64,
    /// Whether its limit ends it.
    pub(super) is_killed: bool,
    /// The job for which it ends, at once or when its grace is over.
    pub(super) makes_way: Option<u32>,
    /// What becomes of it then, unless it ends before.
    pub(super) preempted: Option<PreemptMode>,
    /// Its entries of [`Engine::placed`].
    pub(super) placed: Range<usize>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// The job of a slot ends, if this is still its end.
    End(u32, u64),
    /// The nodes of a job that has ended are free.
    Release(u32),
    /// A row that was preempted waits again, after the start of the row for which it made way.
    Requeue(u32, u32),
}

/// What the policy is notified of at the end of a pass, of the job of a slot.
#[derive(Clone, Copy, Debug)]
pub(super) enum Notice {
    /// It starts, or goes on.
    Starts(u32),
    /// It is suspended.
    Stops(u32),
}

impl<'a> Engine<'a> {
    /// Returns whether nodes have become free.
    pub(super) fn event(&mut self, now: Time, event: Event, policy: &mut dyn Policy) -> bool {
        match event {
            Event::Requeue(..) => false,
            Event::End(slot, id) if self.running[slot as usize].id != id => false,
            Event::End(slot, _) => {
                self.changes += 1;
                let job = self.running[slot as usize].clone();
                self.alive -= 1;
                self.ends.remove(&(job.expected, job.row, slot));
                self.count_use(&job, job.finish);
                let ended = self.charged_job(&job);
                match &mut self.charges {
                    Some(charges) => charges.ended(job.row, ended),
                    None => policy.finished(now, &ended.job()),
                }
                self.limits.remove(job.row);
                if self.preempted(now, &job) {
                    self.submitted.end(job.row);
                    self.pending.ended(now, job.row);
                }
                self.note_change(now);
                let (completing, wait) = (self.options.completing, self.options.complete_wait);
                let free = now.nanos().saturating_add(completing.nanos());
                if completing > Span::ZERO {
                    let job = &mut self.running[slot as usize];
                    (job.completing, job.expected) = (true, free);
                    self.ends.insert((free, job.row, slot));
                    self.jobs_on_nodes.note_change(&job.held);
                    self.completing_until = now.nanos() + completing.min(wait).nanos();
                    self.events.push(Time::from_nanos(free), Event::Release(slot));
                    return false;
                }
                self.release(slot);
                true
            }
            Event::Release(slot) => {
                self.changes += 1;
                let job = &self.running[slot as usize];
                self.ends.remove(&(job.expected, job.row, slot));
                self.release(slot);
                self.note_change(now);
                true
            }
        }
    }

    pub(super) fn release(&mut self, slot: u32) {
        let job = std::mem::take(&mut self.running[slot as usize]);
        self.unused.push(slot);
        self.jobs_on_nodes.remove(slot, &job.held);
        self.nodes.give(self.kind(job.row), &job.held);
    }

    /// A running job as policies are notified of it. One that has whole nodes holds all that these have. Priorities do not charge it for
    /// their memory (sbatch(1), `--exclusive`): AllocTRES, of which Slurm computes its billing, has what it requested.
    fn charged_job(&self, job: &Running) -> ChargedJob<'a> {
        let of = Job {
            requested: Span::from_nanos(self.planned_length(job.row)),
            started: Time::from_nanos(job.since),
            rate: self.nodes.site.rate(self.kind(job.row), &job.held),
            ..self.jobs.pending_job(self.workload, self.submission_times.of(job.row), job.row)
        };
        if !self.nodes.is_whole(self.kind(job.row)) {
            return ChargedJob { job: of, amounts: None };
        }
        let mut amounts = self.nodes.site.all_on(&job.held);
        let memory = self.workload.resources().iter().position(|resource| resource.name == "mem");
        if let Some(memory) = memory.filter(|_| matches!(self.order, Order::Priorities(_))) {
            amounts[memory] = of.demand[memory];
        }
        ChargedJob { job: of, amounts: Some(amounts) }
    }

    pub(super) fn count_use(&mut self, job: &Running, until: u64) {
        let kind = self.kind(job.row);
        let ran = u128::from(until.saturating_sub(job.since));
        for (node, chunks) in job.held.iter() {
            let at = node as usize * kind.chunk.len();
            let busy = &mut self.busy;
            self.nodes.held(kind, node, chunks, |resource, amount| busy[at + resource] += u128::from(amount) * ran);
        }
    }

    /// When a job is ended by its limit that is over at an instant, but not before now.
    pub(super) fn killed_after(&self, row: u32, expected: u64, now: u64) -> Option<u64> {
        let over = self.options.over_time_limit?.nanos();
        self.limit[row as usize]?;
        Some(expected.checked_add(over)?.max(now).div_ceil(LIMIT_SWEEP).saturating_mul(LIMIT_SWEEP))
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
        let expected = now.nanos().saturating_add(self.planned_length(row));
        let killed = self.killed_after(row, expected, now.nanos()).map(Time::from_nanos);
        let runs_out = finish.map_or(u64::MAX, Time::nanos);
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
        match self.preemption.suspends() {
            true => self.nodes.take_over(kind, &held),
            false => self.nodes.take(kind, &held),
        }
        let first = self.placed.len();
        self.placed.extend(held.iter().map(|(machine, chunks)| Assignment { row, machine, chunks, size: 0 }));
        self.ids += 1;
        let job = Running {
            row,
            start: now.nanos(),
            finish: finish.nanos(),
            since: now.nanos(),
            runs_out,
            expected,
            held,
            id: self.ids,
            turn: self.ids,
            is_killed,
            placed: first..self.placed.len(),
            ..Running::default()
        };
        let slot = self.unused.pop().unwrap_or_else(|| {
            self.running.push(Running::default());
            self.running.len() as u32 - 1
        });
        self.jobs_on_nodes.add(slot, &job.held);
        self.running[slot as usize] = job;
        self.ends.insert((expected, row, slot));
        self.changes += 1;
        self.events.push(finish, Event::End(slot, self.ids));
        self.starts[at] = now.nanos();
        self.finishes[at] = finish.nanos();
        self.pending.take(row);
        for at in 0..self.attempts_of(row) {
            let (partition, _) = self.attempt(row, at);
            self.waiting[partition] -= 1;
        }
        self.alive += 1;
        if let Order::Priorities(order) = &mut self.order {
            order.remove(row);
        }
        self.done += 1;
        self.limits.add(row);
        self.note_start_of_preemptor(now, row);
        self.notices.push(Notice::Starts(slot));
        self.suspend_for(now, slot);
        self.note_change(now);
        Ok((expected, slot))
    }

    /// Notifies the policy of the jobs that a pass has started or suspended. For policies a suspended job has ended: it uses
    /// nothing, as sacct counts.
    pub(super) fn notify(&mut self, now: Time, policy: &mut dyn Policy) {
        for notice in std::mem::take(&mut self.notices) {
            let (Notice::Starts(slot) | Notice::Stops(slot)) = notice;
            let job = &self.running[slot as usize];
            let (row, job) = (job.row, self.charged_job(job));
            match (&mut self.charges, notice) {
                (Some(charges), Notice::Starts(_)) => charges.started(now, row, job),
                (Some(charges), Notice::Stops(_)) => charges.ended(row, job),
                (None, Notice::Starts(_)) => policy.started(now, &job.job()),
                (None, Notice::Stops(_)) => policy.finished(now, &job.job()),
            }
        }
    }
}
