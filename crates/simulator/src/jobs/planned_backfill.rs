//! Backfilling by a plan of reservations, with settings for what published schedulers do differently.

use std::cmp::Reverse;

use evenhand_model::{NO_TIME, Span, Time, UserId, Workload};
use evenhand_policies::Policy;

use super::engine::Engine;
use super::kind::Kind;
use super::pending_jobs::{Entry, NO_ROW};
use super::placements::Placements;
use super::planned_settings::{
    BackfillOrder, Events, Passing, PlanReservations, PlannedBackfill, PlannedLength, Reserve, ReservedStart,
};
use super::prepared_jobs::Jobs;
use super::reservation_plan::{Plan, Reservation};
use crate::SimulationError;

/// What one pass over the waiting jobs knows.
struct Pass {
    settings: PlannedBackfill,
    now: Time,
    /// Whether capacity was released before its planned time since the last pass.
    early: bool,
    /// Jobs without a reservation, if these have an order of their own.
    others: Vec<Entry>,
    /// Jobs that started, and until when they are planned to run in this pass.
    started: Vec<(u32, Placements, u64)>,
}

impl PlannedBackfill {
    /// Whether reservations keep capacity free.
    fn protects(&self) -> bool {
        self.passing != Passing::Any
    }

    fn is_full(&self, reservations: usize) -> bool {
        match self.reserve {
            Reserve::First(jobs) => reservations >= jobs as usize,
            Reserve::All => false,
        }
    }
}

fn planned_length(workload: &Workload, jobs: &Jobs, length: PlannedLength, row: u32) -> u64 {
    match length {
        PlannedLength::Limit => jobs.estimate[row as usize],
        // A job of no duration also needs capacity when it starts.
        PlannedLength::RunTime => workload.columns().duration[row as usize].nanos().max(1),
    }
}

impl Engine<'_> {
    /// How long a job that waits is planned to run, at speed 1.
    fn waiting_length(&self, settings: &PlannedBackfill, row: u32) -> u64 {
        planned_length(self.workload, self.jobs, settings.waiting, row)
    }

    /// How long a job that runs is planned to run, at speed 1.
    pub(super) fn running_length(&self, row: u32) -> u64 {
        let length = self.planned().map_or(PlannedLength::Limit, |settings| settings.running);
        planned_length(self.workload, self.jobs, length, row)
    }

    /// What a policy learns of a running job's request.
    pub(super) fn requested_of(&self, kind: &Kind, held: &Placements, row: u32) -> Span {
        Span::from_nanos(self.machines.expected_duration(kind, held, self.jobs.estimate[row as usize]))
    }

    /// When a reserved start is an event of its own.
    pub(super) fn next_planned_start(&self) -> Option<Time> {
        let settings = self.planned()?;
        match settings.plan {
            // The first planned start is the planned end of a running job.
            PlanReservations::Anew => None,
            _ if settings.protects() => self.plan.as_ref().and_then(Plan::next_start),
            // What keeps nothing free is looked at when something else happens.
            _ if self.events.is_empty() && self.pending.next_submission().is_none() => {
                self.plan.as_ref().and_then(Plan::next_start)
            }
            _ => None,
        }
    }

    /// Handles an instant: its ends and submissions, together or one after the other, and starts jobs. Returns the number
    /// of events.
    pub(super) fn handle_planned(
        &mut self,
        settings: PlannedBackfill,
        now: Time,
        policy: &mut dyn Policy,
    ) -> Result<u64, SimulationError> {
        let mut early = false;
        if let Some(plan) = &mut self.plan {
            plan.forget(now.nanos());
        }
        if settings.events == Events::Together {
            let mut events = 0;
            if self.events.next_time() == Some(now) {
                events = self.finish(now, policy, &mut early);
            }
            self.pending.compact();
            events += self.submit(now, policy);
            self.schedule_by_plan(&settings, now, early, policy)?;
            return Ok(events);
        }
        let mut slots: Vec<u32> = Vec::new();
        if self.events.next_time() == Some(now) {
            self.events.take_next(|slot| slots.push(slot));
        }
        slots.sort_unstable_by_key(|slot| {
            let job = self.machines.running(*slot);
            (job.start, job.row)
        });
        // What has not yet ended is not free yet, though it was planned to be.
        let soon = now.nanos().saturating_add(1);
        for &slot in &slots {
            self.hold_if_due(slot, now.nanos(), soon);
        }
        let mut events = 0;
        for slot in slots {
            let job = self.machines.running(slot).clone();
            if let Some(plan) = self.plan.as_mut().filter(|_| job.expected <= now.nanos()) {
                plan.release_early(
                    self.machines.site,
                    &self.jobs.kinds[job.kind as usize],
                    &job.held,
                    now.nanos(),
                    soon,
                );
            }
            self.finish_one(slot, now, policy, &mut early);
            self.schedule_by_plan(&settings, now, early, policy)?;
            events += 1;
        }
        self.pending.compact();
        while self.submit_one(now, policy) {
            events += 1;
            self.schedule_by_plan(&settings, now, early, policy)?;
        }
        Ok(events)
    }

    /// Keeps the capacity of a job that ends now until its end has been handled.
    fn hold_if_due(&mut self, slot: u32, now: u64, soon: u64) {
        let job = self.machines.running(slot);
        if let Some(plan) = self.plan.as_mut().filter(|_| job.expected <= now) {
            plan.hold(self.machines.site, &self.jobs.kinds[job.kind as usize], &job.held, now, soon);
        }
    }

    /// Forgets all reservations, if they are planned anew.
    fn drop_reservations(&mut self, settings: &PlannedBackfill) {
        if settings.plan != PlanReservations::Anew {
            return;
        }
        let Some(plan) = &mut self.plan else { return };
        for row in plan.reserved_rows() {
            plan.unreserve(
                self.machines.site,
                row,
                &self.jobs.kinds[self.jobs.kind[row as usize] as usize],
                settings.protects(),
            );
        }
    }

    fn schedule_by_plan(
        &mut self,
        settings: &PlannedBackfill,
        now: Time,
        early: bool,
        policy: &mut dyn Policy,
    ) -> Result<(), SimulationError> {
        let mut pass = Pass { settings: *settings, now, early, others: Vec::new(), started: Vec::new() };
        for class in 0..self.jobs.classes as u8 {
            self.examine_class(&mut pass, class, policy)?;
        }
        let mut others = std::mem::take(&mut pass.others);
        let length = |entry: &Entry| self.waiting_length(settings, entry.row);
        let width = |entry: &Entry| self.jobs.kinds[entry.kind as usize].total(0);
        match settings.order {
            BackfillOrder::Policy => {}
            BackfillOrder::Shortest => others.sort_by_key(|entry| (entry.class, length(entry), entry.row)),
            BackfillOrder::Longest => others.sort_by_key(|entry| (entry.class, Reverse(length(entry)), entry.row)),
            BackfillOrder::Narrowest => others.sort_by_key(|entry| (entry.class, width(entry), entry.row)),
            BackfillOrder::Widest => others.sort_by_key(|entry| (entry.class, Reverse(width(entry)), entry.row)),
        }
        for entry in others {
            self.progress.check()?;
            if !self.is_held_back(entry.row) && self.start_without_reservation(&mut pass, entry, policy)? {
                self.notify_first_pending(entry.user, policy);
            }
        }
        self.drop_reservations(settings);
        // From now on a job that has started is planned as one that runs.
        let Some(plan) = &mut self.plan else { return Ok(()) };
        for (row, held, planned_end) in pass.started {
            let kind = self.jobs.kind_of(row);
            let length = planned_length(self.workload, self.jobs, settings.running, row);
            let end = now.nanos().saturating_add(self.machines.expected_duration(kind, &held, length));
            if end != planned_end {
                plan.release(self.machines.site, kind, &held, now.nanos(), planned_end);
                plan.hold(self.machines.site, kind, &held, now.nanos(), end);
            }
        }
        Ok(())
    }

    /// Examines the waiting jobs of a class once, in the order in which the policy chooses them.
    fn examine_class(&mut self, pass: &mut Pass, class: u8, policy: &mut dyn Policy) -> Result<(), SimulationError> {
        if self.pending.in_class(class) == 0 {
            return Ok(());
        }
        let mut touched = self.pending.users_by_first(self.class);
        touched.iter().for_each(|&user| policy.set_first_pending(UserId(user), None));
        let users = self.pending.users_by_first(class);
        for &user in &users {
            self.place[user as usize] = self.pending.first(class, user).unwrap_or(NO_ROW);
            self.show(user, policy);
        }
        loop {
            self.show_within_limits_of_plan(&users, class, policy);
            let Some(user) = self.is_anything_open(pass).then(|| policy.next(pass.now)).flatten() else { break };
            self.progress.check()?;
            self.decisions += 1;
            let entry = self.pending.entry(self.place[user.index()]);
            let next = self.pending.after(class, user.0, entry.row).next();
            self.place[user.index()] = next.map_or(NO_ROW, |entry| entry.row);
            if !self.is_held_back(entry.row) {
                self.examine(pass, entry, policy)?;
            }
            self.show(user.0, policy);
        }
        users.iter().for_each(|&user| self.place[user as usize] = NO_ROW);
        touched.extend(users);
        touched.sort_unstable();
        touched.dedup();
        for user in touched {
            self.notify_first_pending(user, policy);
        }
        Ok(())
    }

    /// Takes jobs that are held back out of the turns of a policy whose key depends on the job.
    fn show_within_limits_of_plan(&mut self, users: &[u32], class: u8, policy: &mut dyn Policy) {
        if !self.hides_held_back(policy) {
            return;
        }
        for &user in users {
            let shown = self.place[user as usize];
            if shown != NO_ROW && self.is_held_back(shown) {
                let mut rows = self.pending.after(class, user, shown).map(|entry| entry.row);
                let within = rows.find(|&row| !self.is_held_back(row));
                drop(rows);
                self.place[user as usize] = within.unwrap_or(NO_ROW);
                self.show(user, policy);
            }
        }
    }

    /// Whether a limit holds a job back, or licences are missing for which no reservation waits.
    fn is_held_back(&self, row: u32) -> bool {
        match &self.plan {
            Some(plan) if plan.licences.is_some() => self.limits.exceeds_limit(row),
            // A throttle is no part of reservations: where these are kept it has no effect.
            _ if self.options.backfill.keeps_reservations() => {
                self.limits.exceeds_limit(row) || self.limits.lacks_licences(row)
            }
            _ => self.limits.is_over(row),
        }
    }

    /// Shows the policy the job that represents a user in this pass.
    fn show(&mut self, user: u32, policy: &mut dyn Policy) {
        let row = Some(self.place[user as usize]).filter(|row| *row != NO_ROW);
        policy.set_first_pending(UserId(user), row.map(|row| self.pending_job(row)).as_ref());
    }

    /// Whether examining another job can change anything: one can get a reservation or move its own, or some job may fit.
    fn is_anything_open(&self, pass: &Pass) -> bool {
        if pass.settings.plan == PlanReservations::Compress && pass.early {
            return true;
        }
        let reservations = self.plan.as_ref().map_or(0, Plan::reservations);
        !pass.settings.is_full(reservations) || self.machines.fits_in_total(&self.smallest_demand)
    }

    fn examine(&mut self, pass: &mut Pass, entry: Entry, policy: &mut dyn Policy) -> Result<(), SimulationError> {
        let Some(plan) = &self.plan else { return Ok(()) };
        if plan.reserved_start(entry.row).is_some() {
            return self.examine_reserved(pass, entry, policy);
        }
        if !pass.settings.is_full(plan.reservations()) {
            return self.start_or_reserve(pass, entry, policy);
        }
        if pass.settings.order != BackfillOrder::Policy {
            pass.others.push(entry);
            return Ok(());
        }
        self.start_without_reservation(pass, entry, policy).map(drop)
    }

    /// Starts a job, or reserves its earliest start.
    fn start_or_reserve(
        &mut self,
        pass: &mut Pass,
        entry: Entry,
        policy: &mut dyn Policy,
    ) -> Result<(), SimulationError> {
        let (now, length) = (pass.now, self.waiting_length(&pass.settings, entry.row));
        let Some(plan) = &mut self.plan else { return Ok(()) };
        let kind = &self.jobs.kinds[entry.kind as usize];
        // A job that is not refused fits on empty machines.
        let Some(found) = plan.earliest(self.machines.site, kind, length, now.nanos()) else { return Ok(()) };
        if found.start == now.nanos() {
            return self.start_planned(pass, entry, found, policy);
        }
        let first = &mut self.first_reservation[entry.row as usize];
        if *first == NO_TIME {
            *first = found.start;
        }
        plan.reserve(self.machines.site, entry.row, kind, found, pass.settings.protects());
        Ok(())
    }

    /// Starts a job that leaves all reservations as they are. Returns whether it did so.
    fn start_without_reservation(
        &mut self,
        pass: &mut Pass,
        entry: Entry,
        policy: &mut dyn Policy,
    ) -> Result<bool, SimulationError> {
        let (now, length) = (pass.now, self.waiting_length(&pass.settings, entry.row));
        let kind = &self.jobs.kinds[entry.kind as usize];
        let Some(plan) = &mut self.plan else { return Ok(false) };
        if !self.machines.fits_together(kind) {
            return Ok(false);
        }
        let found = plan.earliest(self.machines.site, kind, length, now.nanos());
        let Some(found) = found.filter(|found| found.start == now.nanos()) else { return Ok(false) };
        let first = plan.next_start().map_or(u64::MAX, Time::nanos);
        if pass.settings.passing == Passing::Before && found.end > first {
            return Ok(false);
        }
        self.start_planned(pass, entry, found, policy).map(|()| true)
    }

    /// Starts a job with a reservation that was kept, or moves it.
    fn examine_reserved(
        &mut self,
        pass: &mut Pass,
        entry: Entry,
        policy: &mut dyn Policy,
    ) -> Result<(), SimulationError> {
        let (now, length) = (pass.now, self.waiting_length(&pass.settings, entry.row));
        let kind = &self.jobs.kinds[entry.kind as usize];
        let Some(plan) = &mut self.plan else { return Ok(()) };
        let is_due = plan.reserved_start(entry.row).is_some_and(|start| start <= now.nanos());
        let waits_for_start = pass.settings.start == ReservedStart::Planned;
        let moves = pass.settings.plan == PlanReservations::Compress && pass.early;
        let is_open = is_due || moves || (pass.settings.plan == PlanReservations::Once && !waits_for_start);
        if !is_open {
            return Ok(());
        }
        let Some(old) = plan.unreserve(self.machines.site, entry.row, kind, pass.settings.protects()) else {
            return Ok(());
        };
        let found = match is_due && pass.settings.protects() {
            true => None,
            false => plan.earliest(self.machines.site, kind, length, now.nanos()),
        };
        match found {
            // What is reserved for now is free now.
            None if is_due => self.start_planned(pass, entry, old, policy),
            Some(found) if found.start == now.nanos() && (is_due || !waits_for_start) => {
                self.start_planned(pass, entry, found, policy)
            }
            Some(found) if moves && found.start < old.start => {
                plan.reserve(self.machines.site, entry.row, kind, found, pass.settings.protects());
                Ok(())
            }
            _ => {
                plan.reserve(self.machines.site, entry.row, kind, old, pass.settings.protects());
                Ok(())
            }
        }
    }

    /// Starts a job, which holds what it was planned to hold.
    fn start_planned(
        &mut self,
        pass: &mut Pass,
        entry: Entry,
        planned: Reservation,
        policy: &mut dyn Policy,
    ) -> Result<(), SimulationError> {
        let kind = &self.jobs.kinds[entry.kind as usize];
        let length = self.machines.expected_duration(kind, &planned.held, self.running_length(entry.row));
        let mut end = planned.end;
        if let Some(plan) = &mut self.plan {
            // What is already reserved was compared with the job as it was planned while it waited.
            if plan.reservations() == 0 {
                end = planned.start.saturating_add(length);
            }
            plan.hold(self.machines.site, kind, &planned.held, planned.start, end);
        }
        self.machines.take_placements(kind, &planned.held);
        pass.started.push((entry.row, planned.held.clone(), end));
        self.start(pass.now, entry.row, planned.held, false, policy)
    }
}
