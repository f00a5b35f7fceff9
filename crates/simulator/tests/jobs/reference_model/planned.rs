//! Backfilling by a plan of reservations, by the words of its settings.

use std::cmp::Reverse;

use evenhand_simulator::{
    Backfill, BackfillOrder, Events, Passing, PlanReservations, PlannedBackfill, PlannedLength, Reserve, ReservedStart,
};

use super::ReferenceModel;

impl ReferenceModel<'_> {
    pub(super) fn planned_settings(&self) -> Option<PlannedBackfill> {
        match self.world.backfill {
            Backfill::Planned(settings) => Some(settings),
            _ => None,
        }
    }

    /// How long job `i` is planned to run while it waits.
    pub(super) fn waiting_estimate(&self, i: usize) -> u64 {
        self.planned_estimate(i, self.planned_settings().map(|settings| settings.waiting))
    }

    /// How long job `i` is planned to run once it runs.
    pub(super) fn running_estimate(&self, i: usize) -> u64 {
        self.planned_estimate(i, self.planned_settings().map(|settings| settings.running))
    }

    /// How long job `i`, which starts, is planned to run until the pass is over.
    pub(super) fn estimate_at_start(&self, i: usize) -> u64 {
        let is_any_reserved = self.waiting.iter().any(|&w| w != i && self.planned[w].is_some());
        if is_any_reserved { self.waiting_estimate(i) } else { self.running_estimate(i) }
    }

    fn planned_estimate(&self, i: usize, length: Option<PlannedLength>) -> u64 {
        match length {
            Some(PlannedLength::RunTime) => self.world.jobs[i].run.max(1),
            _ => self.estimate(i),
        }
    }

    /// Planned starts that are events.
    pub(super) fn planned_events(&self, is_last: bool) -> Vec<u64> {
        let starts = self.waiting.iter().filter_map(|&i| self.planned[i].as_ref().map(|plan| plan.0));
        match self.planned_settings() {
            Some(settings) if settings.plan == PlanReservations::Anew => Vec::new(),
            Some(settings) if settings.passing == Passing::Any && !is_last => Vec::new(),
            _ => starts.collect(),
        }
    }

    /// Handles an instant.
    pub(super) fn handle_planned(&mut self, now: u64, submitted: &mut usize, settings: PlannedBackfill) {
        let mut ended: Vec<usize> = self.running.iter().filter(|r| r.finish == now).map(|r| r.job).collect();
        ended.sort_by_key(|&i| (self.found.starts[i], i));
        if settings.events == Events::Together {
            let early = self.running.iter().any(|r| r.finish == now && r.expected > now);
            self.running.retain(|r| r.finish != now);
            while self.submit(now, submitted) {}
            return self.schedule_by_plan(now, early, settings);
        }
        // Until its end is handled a job holds what it has.
        for runs in self.running.iter_mut().filter(|r| r.finish == now) {
            runs.expected = runs.expected.max(now + 1);
        }
        for i in ended {
            self.running.retain(|r| r.job != i);
            self.schedule_by_plan(now, false, settings);
        }
        while self.submit(now, submitted) {
            self.schedule_by_plan(now, false, settings);
        }
    }

    fn submit(&mut self, now: u64, submitted: &mut usize) -> bool {
        let comes = self.world.jobs.get(*submitted).is_some_and(|job| job.submit == now);
        if comes {
            if self.found.refused[*submitted].is_none() {
                self.waiting.push(*submitted);
            }
            *submitted += 1;
        }
        comes
    }

    fn schedule_by_plan(&mut self, now: u64, early: bool, settings: PlannedBackfill) {
        if settings.plan == PlanReservations::Anew {
            self.planned.iter_mut().for_each(|plan| *plan = None);
        }
        let before = self.running.len();
        let (mut examined, mut others) = (Vec::new(), Vec::new());
        while let Some(i) = self.next(&examined) {
            examined.push(i);
            let reservations = self.waiting.iter().filter(|&&w| self.planned[w].is_some()).count();
            let may_reserve = match settings.reserve {
                Reserve::First(jobs) => reservations < jobs as usize,
                Reserve::All => true,
            };
            if self.planned[i].is_some() {
                self.examine_reserved(i, now, early, settings);
            } else if may_reserve {
                let found = self.earliest(i, now);
                if found.0 == now {
                    self.start(i, now, found.1);
                } else {
                    self.found.promised[i].get_or_insert(found.0);
                    self.planned[i] = Some(found);
                }
            } else if settings.order == BackfillOrder::Policy {
                self.start_if_it_passes(i, now, settings);
            } else {
                others.push(i);
            }
        }
        let width = |i: usize| -> u64 { (0..self.chunks[i]).map(|k| self.amounts(i, k)[0]).sum() };
        let length = |i: usize| self.waiting_estimate(i);
        let priority = |i: usize| Reverse(self.priority(i));
        match settings.order {
            BackfillOrder::Policy => {}
            BackfillOrder::Shortest => others.sort_by_key(|&i| (priority(i), length(i), i)),
            BackfillOrder::Longest => others.sort_by_key(|&i| (priority(i), Reverse(length(i)), i)),
            BackfillOrder::Narrowest => others.sort_by_key(|&i| (priority(i), width(i), i)),
            BackfillOrder::Widest => others.sort_by_key(|&i| (priority(i), Reverse(width(i)), i)),
        }
        for i in others {
            if !self.over_limit(i) {
                self.start_if_it_passes(i, now, settings);
            }
        }
        // From now on what has started is planned as what runs.
        for at in before..self.running.len() {
            let (i, on) = (self.running[at].job, self.running[at].on.clone());
            let estimate = self.running_estimate(i);
            self.running[at].expected = now + on.iter().map(|&m| self.duration_by(estimate, i, m)).max().unwrap();
        }
    }

    fn start_if_it_passes(&mut self, i: usize, now: u64, settings: PlannedBackfill) {
        let (start, on) = self.earliest(i, now);
        let end = start + on.iter().map(|&m| self.expected_duration(i, m)).max().unwrap();
        let mut reserved = self.waiting.iter().filter_map(|&w| self.planned[w].as_ref().map(|plan| plan.0));
        if start == now && (settings.passing != Passing::Before || reserved.all(|start| end <= start)) {
            self.start(i, now, on);
        }
    }

    fn examine_reserved(&mut self, i: usize, now: u64, early: bool, settings: PlannedBackfill) {
        let (start, on) = self.planned[i].clone().unwrap();
        if settings.passing != Passing::Any && start == now {
            return self.start(i, now, on);
        }
        let found = self.earliest(i, now);
        let may_start = match (settings.plan, settings.start) {
            _ if start <= now => true,
            (_, ReservedStart::Planned) => false,
            (PlanReservations::Once, _) => true,
            _ => early,
        };
        if found.0 == now && may_start {
            self.start(i, now, found.1);
        } else if settings.plan == PlanReservations::Compress && early && found.0 < start {
            self.planned[i] = Some(found);
        }
    }
}
