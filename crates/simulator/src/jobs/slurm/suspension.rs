//! Jobs that are suspended for others and go on later (`PreemptMode=SUSPEND,GANG`).
//!
//! The select plugin puts a job also on processors of jobs that it may preempt; slurmctld's gang scheduler then suspends
//! those that no longer fit, and resumes them when they do (slurm.conf(5), slurmctld's gang.c).

use std::cmp::Reverse;

use evenhand_model::{NO_TIME, PreemptMode, Time};

use super::super::kind::Kind;
use super::super::machine_state::Placements;
use super::engine::Engine;
use super::node_set::NodeSet;
use super::nodes::Nodes;
use super::running::{Event, Notice};

impl<'a> Engine<'a> {
    /// The jobs, by slot, whose processors a job may use in the partition at a place of its list: those that it may suspend,
    /// and those that are suspended already.
    pub(super) fn suspendable(&self, now: u64, row: u32, place: usize) -> Vec<u32> {
        let rules = &self.preemption;
        if !rules.suspends() {
            return Vec::new();
        }
        let (partition, _) = self.attempt(row, place);
        let lends = |slot: &u32| {
            let job = &self.running[*slot as usize];
            let is_exempt = || rules.exempts_from_suspension() && self.is_exempt(now, job);
            let can_stop = || job.suspended.is_some() || (!job.completing && job.finish > now && !is_exempt());
            self.mode_for((row, partition), job) == Some(PreemptMode::Suspend) && can_stop()
        };
        self.ends.iter().map(|(_, _, slot)| *slot).filter(lends).collect()
    }

    /// Where a job is put on these nodes, of which `free` is free, if it may use processors of `lenders`.
    ///
    /// Nothing is lent where it fits so. Else as little is lent as `_job_test` of select/cons_tres makes it: as long as the
    /// job fits, those of the highest rank keep what they have.
    pub(super) fn choose_over(
        &self,
        free: &Nodes<'a>,
        lenders: &[u32],
        kind: &Kind,
        nodes: &NodeSet,
        busy_first: bool,
    ) -> Option<Placements> {
        if let Some(held) = free.choose_busy_first(kind, nodes, busy_first) {
            return Some(held);
        }
        let mut ranks: Vec<i64> = lenders.iter().map(|slot| self.rank_of(*slot)).collect();
        ranks.sort_unstable();
        ranks.dedup();
        let mut found = None;
        while let Some(highest) = ranks.pop() {
            let mut free = free.clone();
            for slot in lenders.iter().filter(|slot| self.rank_of(**slot) <= highest) {
                let job = &self.running[*slot as usize];
                free.lend(self.kind(job.row), &job.held);
            }
            let Some(held) = free.choose_busy_first(kind, nodes, busy_first) else { break };
            found = Some(held);
        }
        found
    }

    /// The rank by which a running job is preempted.
    pub(super) fn rank_of(&self, slot: u32) -> i64 {
        let row = self.running[slot as usize].row;
        self.preemption.rules(row, self.attempt(row, 0).0).map_or(0, |rules| rules.rank)
    }

    /// Sorts slots by the order in which their jobs keep their processors: by rank, start and row.
    fn sort_by_precedence(&self, slots: &mut [u32]) {
        slots.sort_by_key(|slot| {
            let job = &self.running[*slot as usize];
            (Reverse(self.rank_of(*slot)), job.start, job.row)
        });
    }

    /// Suspends jobs of which one that starts uses processors.
    pub(super) fn suspend_for(&mut self, now: Time, slot: u32) {
        if !self.preemption.suspends() {
            return;
        }
        let mut used = self.processors_used();
        let job = &self.running[slot as usize];
        let row = job.row;
        let is_over = |(node, chunks): (u32, u32)| {
            let (_, has) = self.nodes.processors_held(self.kind(row), node, chunks);
            used[node as usize] > has
        };
        if !job.held.iter().any(is_over) {
            return;
        }
        let of_place = |place: usize| self.suspendable(now.nanos(), row, place);
        let mut candidates: Vec<u32> = (0..self.attempts_of(row)).flat_map(of_place).collect();
        candidates.retain(|slot| self.running[*slot as usize].suspended.is_none());
        candidates.sort_unstable();
        candidates.dedup();
        self.sort_by_precedence(&mut candidates);
        candidates.iter().for_each(|slot| self.count_processors(*slot, |node, held, _| used[node] -= held));
        for slot in candidates {
            match self.fits_beside(slot, &used) {
                true => self.count_processors(slot, |node, held, _| used[node] += held),
                false => self.suspend(now, slot),
            }
        }
        self.resume(now);
    }

    /// Resumes suspended jobs whose processors nobody uses.
    pub(super) fn resume(&mut self, now: Time) {
        if self.suspended.is_empty() {
            return;
        }
        let mut used = self.processors_used();
        let mut slots = std::mem::take(&mut self.suspended);
        self.sort_by_precedence(&mut slots);
        for slot in slots {
            if self.fits_beside(slot, &used) {
                self.count_processors(slot, |node, held, _| used[node] += held);
                self.go_on(now, slot);
            } else {
                self.suspended.push(slot);
            }
        }
    }

    /// By node: how many processors jobs use that are not suspended.
    fn processors_used(&self) -> Vec<u64> {
        let mut used = vec![0; self.nodes.len()];
        let slots = (0u32..).zip(&self.running).filter(|(_, job)| job.suspended.is_none());
        slots.for_each(|(slot, _)| self.count_processors(slot, |node, held, _| used[node] += held));
        used
    }

    /// Calls a function with each node of a job, how many processors the job has there, and how many there are.
    fn count_processors(&self, slot: u32, mut each: impl FnMut(usize, u64, u64)) {
        let job = &self.running[slot as usize];
        for (node, chunks) in job.held.iter() {
            let (held, has) = self.nodes.processors_held(self.kind(job.row), node, chunks);
            each(node as usize, held, has);
        }
    }

    fn fits_beside(&self, slot: u32, used: &[u64]) -> bool {
        let mut fits = true;
        self.count_processors(slot, |node, held, has| fits &= used[node] + held <= has);
        fits
    }

    fn suspend(&mut self, now: Time, slot: u32) {
        self.ids += 1;
        self.changes += 1;
        let job = &mut self.running[slot as usize];
        // Its end of before is void.
        (job.suspended, job.id) = (Some(now.nanos()), self.ids);
        let job = job.clone();
        self.finishes[job.row as usize] = NO_TIME;
        self.count_use(&job, now.nanos());
        self.results.preempted.get_or_insert_default().suspended += 1;
        self.suspended.push(slot);
        self.notices.push(Notice::Stops(slot));
    }

    fn go_on(&mut self, now: Time, slot: u32) {
        self.ids += 1;
        self.changes += 1;
        let job = &self.running[slot as usize];
        let (row, waited) = (job.row, now.nanos() - job.suspended.unwrap_or(now.nanos()));
        self.ends.remove(&(job.expected, row, slot));
        let expected = job.expected.saturating_add(waited);
        let runs_out = job.runs_out.saturating_add(waited);
        let killed = self.killed_after(row, expected, now.nanos()).filter(|killed| *killed < runs_out);
        self.results.ended_by_limit -= u64::from(job.is_killed);
        self.results.ended_by_limit += u64::from(killed.is_some());
        let finish = killed.unwrap_or(runs_out);
        let job = &mut self.running[slot as usize];
        (job.expected, job.runs_out, job.finish) = (expected, runs_out, finish);
        (job.since, job.suspended, job.is_killed, job.id) = (now.nanos(), None, killed.is_some(), self.ids);
        self.jobs_on_nodes.note_change(&job.held);
        self.ends.insert((expected, row, slot));
        self.finishes[row as usize] = finish;
        self.events.push(Time::from_nanos(finish), Event::End(slot, self.ids));
        self.notices.push(Notice::Starts(slot));
    }
}
