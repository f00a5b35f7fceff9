//! Licences, which no machine has.

use evenhand_simulator::{Backfill, PlanReservations, Rejection};

use super::ReferenceModel;

impl ReferenceModel<'_> {
    /// Whether job `i` asks for more licences than there are.
    pub(super) fn exceeds_licences(&self, i: usize) -> Option<Rejection> {
        let asked = self.world.jobs[i].licences.iter().zip(self.world.licences);
        let exceeds = !self.world.is_pool && asked.into_iter().any(|(asked, there)| *asked > there);
        exceeds.then_some(Rejection::Licences)
    }

    /// Whether reservations are of licences as well; else a job that lacks some does not count as waiting.
    pub(super) fn reserves_licences(&self) -> bool {
        match self.world.backfill {
            Backfill::Planned(settings) => settings.plan != PlanReservations::Anew,
            backfill => backfill == Backfill::Conservative,
        }
    }

    /// Whether fewer licences are free than job `i` needs, beside running jobs alone.
    pub(super) fn lacks_licences(&self, i: usize) -> bool {
        let held = |licence: usize| self.running.iter().map(|r| self.world.jobs[r.job].licences[licence]).sum::<u64>();
        let needs = self.world.jobs[i].licences;
        !self.world.is_pool && (0..2).any(|at| needs[at] > 0 && held(at) + needs[at] > self.world.licences[at])
    }

    /// Whether the licences of job `i` are free throughout [from, to), beside running jobs and the reservations of others.
    pub(super) fn has_licences(&self, i: usize, from: u64, to: u64) -> bool {
        if self.world.is_pool || !self.reserves_licences() {
            return true;
        }
        let needs = self.world.jobs[i].licences;
        let holders: Vec<(u64, u64, usize)> = self.holders(i);
        // What is held rises only where a job begins.
        let begins = holders.iter().map(|holder| holder.0).filter(|begin| from < *begin && *begin < to);
        begins.chain([from]).all(|t| {
            let now = holders.iter().filter(|(begin, end, _)| *begin <= t && t < *end);
            let held = now.fold([0, 0], |sum: [u64; 2], (_, _, job)| {
                [0, 1].map(|at| sum[at] + self.world.jobs[*job].licences[at])
            });
            (0..2).all(|at| needs[at] == 0 || held[at] + needs[at] <= self.world.licences[at])
        })
    }

    /// No licence is ever held twice.
    pub(super) fn check_licences(&self) {
        let held = |licence: usize| self.running.iter().map(|r| self.world.jobs[r.job].licences[licence]).sum::<u64>();
        assert!(self.world.is_pool || (0..2).all(|at| held(at) <= self.world.licences[at]));
    }
}
