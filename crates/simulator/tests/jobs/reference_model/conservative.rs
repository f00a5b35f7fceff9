//! Conservative backfilling: a reservation for every waiting job.

use evenhand_simulator::Passing;

use super::{ReferenceModel, minus};

impl ReferenceModel<'_> {
    /// What is free on every machine throughout [from, to), beside running jobs and promises other
    /// than that of `i`.
    pub(super) fn free_between(&self, i: usize, from: u64, to: impl Fn(usize) -> u64) -> Vec<[u64; 2]> {
        let taken: Vec<(u64, u64, usize, [u64; 2])> = self.taken(i);
        (0..self.has.len())
            .map(|m| {
                let mut times: Vec<u64> = taken.iter().map(|t| t.0).filter(|t| *t > from && *t < to(m)).collect();
                times.push(from);
                let at = |t: u64| {
                    taken
                        .iter()
                        .filter(|x| x.2 == m && x.0 <= t && t < x.1)
                        .fold([0, 0], |a, x| [a[0] + x.3[0], a[1] + x.3[1]])
                };
                times
                    .into_iter()
                    .map(|t| minus(self.has[m], at(t)))
                    .fold([u64::MAX; 2], |a, f| [a[0].min(f[0]), a[1].min(f[1])])
            })
            .collect()
    }

    /// Who holds something beside job `i`: from, to, job.
    pub(super) fn holders(&self, i: usize) -> Vec<(u64, u64, usize)> {
        let mut holders: Vec<(u64, u64, usize)> = self.running.iter().map(|r| (0, r.expected, r.job)).collect();
        let protects = self.planned_settings().is_none_or(|settings| settings.passing != Passing::Any);
        for &w in self.waiting.iter().filter(|&&w| w != i && protects) {
            if let Some((start, on)) = &self.planned[w] {
                let to = start + on.iter().map(|&m| self.expected_duration(w, m)).max().unwrap();
                holders.push((*start, to, w));
            }
        }
        holders
    }

    /// From, to, machine, amounts.
    pub(super) fn taken(&self, i: usize) -> Vec<(u64, u64, usize, [u64; 2])> {
        let mut taken = Vec::new();
        for (from, to, job) in self.holders(i) {
            let runs = self.running.iter().find(|r| r.job == job).map(|r| &r.on);
            let on = runs.or(self.planned[job].as_ref().map(|(_, on)| on)).unwrap();
            taken.extend(on.iter().enumerate().map(|(k, &m)| (from, to, m, self.amounts(job, k))));
        }
        taken
    }

    /// The earliest start that breaks no promise, and where.
    pub(super) fn earliest(&self, i: usize, now: u64) -> (u64, Vec<usize>) {
        let mut times: Vec<u64> = self.taken(i).iter().map(|t| t.1).filter(|t| *t > now).collect();
        times.push(now);
        times.sort_unstable();
        for t in times {
            let free = self.free_between(i, t, |m| t + self.expected_duration(i, m));
            let has_licences = |m: usize| self.has_licences(i, t, t + self.expected_duration(i, m));
            if let Some(on) = self.put_where(i, &free, has_licences) {
                return (t, on);
            }
        }
        unreachable!("after the last promise all machines are empty");
    }

    pub(super) fn schedule_conservatively(&mut self, now: u64, early: bool, before: Vec<usize>, new: Vec<usize>) {
        if early {
            let mut out = new.clone();
            while let Some(i) = self.next(&out) {
                assert!(before.contains(&i));
                out.push(i);
                let old = self.planned[i].clone().unwrap();
                let moved = self.earliest(i, now);
                // With chunks of several sizes less free capacity may be better.
                let any_uneven = self.uneven.iter().any(|chunks| !chunks.is_empty());
                assert!(moved.0 <= old.0 || any_uneven, "a reservation never moves to a later time");
                if moved.0 < old.0 {
                    self.planned[i] = Some(moved);
                }
                self.start_if_due(i, now);
            }
        }
        for i in new {
            let plan = self.earliest(i, now);
            self.found.promised[i] = Some(plan.0);
            self.planned[i] = Some(plan);
        }
        for i in self.waiting.clone() {
            self.start_if_due(i, now);
        }
    }

    pub(super) fn start_if_due(&mut self, i: usize, now: u64) {
        let Some((start, on)) = self.planned[i].clone().filter(|_| self.waiting.contains(&i)) else { return };
        if start == now {
            self.start(i, now, on);
        }
    }
}
