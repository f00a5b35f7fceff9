//! Jobs that are suspended for others and go on later (`PreemptMode=SUSPEND,GANG`).
//!
//! The select plugin puts a job also on processors of jobs of other partitions (`_job_test` of select/cons_tres). slurmctld's gang
//! scheduler then suspends those that no longer fit beside jobs of higher tiers and of their own partition, resumes them when
//! they do, and lets the jobs of a partition take turns (gang.c). It knows tiers only, also with preempt/qos.

use std::cmp::{Ordering, Reverse};

use evenhand_model::{NO_TIME, PreemptMode, Time};

use super::super::kind::Kind;
use super::super::placements::Placements;
use super::engine::Engine;
use super::node_set::NodeSet;
use super::nodes::Nodes;
use super::options::PreemptType;
use super::running::{Event, Notice};

/// The running and suspended jobs, by slot, of whose processors another one may use some.
#[derive(Clone, Debug, Default)]
pub(super) struct Lenders {
    /// Of partitions of lower tiers.
    lower: Vec<u32>,
    /// Of partitions of higher tiers.
    higher: Vec<u32>,
    /// Of other partitions of the same tier: the jobs run beside each other.
    equal: Vec<u32>,
}

impl Lenders {
    pub(super) fn is_empty(&self) -> bool {
        self.lower.is_empty() && self.higher.is_empty() && self.equal.is_empty()
    }

    pub(super) fn remove(&mut self, slot: u32) {
        for slots in [&mut self.lower, &mut self.higher, &mut self.equal] {
            slots.retain(|lender| *lender != slot);
        }
    }
}

impl<'a> Engine<'a> {
    /// The jobs whose processors a job may use in the partition at a place of its list.
    pub(super) fn lenders(&self, now: u64, row: u32, place: usize) -> Lenders {
        let rules = &self.preemption;
        let mut found = Lenders::default();
        if !rules.suspends() {
            return found;
        }
        let (partition, _) = self.attempt(row, place);
        let by_tiers = rules.preempt_type() == Some(PreemptType::Partition);
        let can_stop = rules.mode(row, partition) == PreemptMode::Suspend;
        let beside_equals = !self.options.whole_nodes;
        for (_, _, slot) in &self.ends {
            let job = &self.running[*slot as usize];
            let (of_other, _) = self.attempt(job.row, 0);
            if job.completing || (job.suspended.is_none() && job.finish <= now) {
                continue;
            }
            let mode = rules.mode(job.row, of_other);
            match rules.tier(of_other).cmp(&rules.tier(partition)) {
                Ordering::Less if mode == PreemptMode::Suspend => found.lower.push(*slot),
                Ordering::Greater if !by_tiers && can_stop => found.higher.push(*slot),
                Ordering::Equal
                    if of_other != partition && beside_equals && (!by_tiers || mode != PreemptMode::Off) =>
                {
                    found.equal.push(*slot)
                }
                _ => {}
            }
        }
        found
    }

    /// Where a job is put on these nodes, of which `free` is free, if it may use processors of `lenders`.
    ///
    /// Nothing is lent where it fits so. Else as little is lent as `_job_test` of select/cons_tres makes it: as long as the
    /// job fits, those of the highest of the lower tiers keep what they have; only if it does not fit otherwise those of its own
    /// tier lend.
    pub(super) fn choose_over(
        &self,
        free: &Nodes<'a>,
        lenders: &Lenders,
        kind: &Kind,
        nodes: &NodeSet,
        busy_first: bool,
    ) -> Option<Placements> {
        if let Some(held) = free.choose_busy_first(kind, nodes, busy_first) {
            return Some(held);
        }
        if lenders.is_empty() {
            return None;
        }
        let lend = |free: &mut Nodes<'a>, slot: u32| {
            let job = &self.running[slot as usize];
            free.lend(self.kind(job.row), &job.held);
        };
        let mut always = free.clone();
        lenders.higher.iter().for_each(|slot| lend(&mut always, *slot));
        let mut tiers: Vec<i64> = lenders.lower.iter().map(|slot| self.tier_of(*slot)).collect();
        tiers.sort_unstable();
        tiers.dedup();
        let mut found = None;
        loop {
            let mut free = always.clone();
            let lends = |slot: &&u32| tiers.last().is_some_and(|highest| self.tier_of(**slot) <= *highest);
            lenders.lower.iter().filter(lends).for_each(|slot| lend(&mut free, *slot));
            let Some(held) = free.choose_busy_first(kind, nodes, busy_first) else { break };
            found = Some(held);
            if tiers.pop().is_none() || (tiers.is_empty() && lenders.higher.is_empty()) {
                break;
            }
        }
        if found.is_some() || lenders.equal.is_empty() {
            return found;
        }
        lenders.lower.iter().chain(&lenders.equal).for_each(|slot| lend(&mut always, *slot));
        always.choose_busy_first(kind, nodes, busy_first)
    }

    /// The tier of the partition of a running job.
    fn tier_of(&self, slot: u32) -> i64 {
        self.preemption.tier(self.attempt(self.running[slot as usize].row, 0).0)
    }

    /// The running and suspended jobs by partition, those of the highest tier first, each partition's in the order of their turns.
    fn by_partition(&self) -> Vec<Vec<u32>> {
        let mut slots: Vec<(Reverse<i64>, usize, u64, u32)> = self
            .ends
            .iter()
            .map(|(_, _, slot)| (*slot, &self.running[*slot as usize]))
            .filter(|(_, job)| !job.completing)
            .map(|(slot, job)| (Reverse(self.tier_of(slot)), self.attempt(job.row, 0).0, job.turn, slot))
            .collect();
        slots.sort_unstable();
        slots.chunk_by(|a, b| a.1 == b.1).map(|chunk| chunk.iter().map(|(.., slot)| *slot).collect()).collect()
    }

    /// Whether a job stays whatever others do, since its mode is another one.
    fn cannot_stop(&self, slot: u32) -> bool {
        let row = self.running[slot as usize].row;
        self.preemption.mode(row, self.attempt(row, 0).0) != PreemptMode::Suspend
    }

    /// Suspends jobs of which one that starts uses processors, or that one, if it does not fit beside those of higher tiers.
    pub(super) fn suspend_for(&mut self, now: Time, slot: u32) {
        if !self.preemption.suspends() {
            return;
        }
        let used = self.processors_used(|_| true);
        let mut is_over = false;
        self.count_processors(slot, |node, _, has| is_over |= used[node] > has);
        if !is_over {
            return;
        }
        let (tier, partition) = (self.tier_of(slot), self.attempt(self.running[slot as usize].row, 0).0);
        let beside = self.processors_used(|other| {
            let of_other = self.attempt(self.running[other as usize].row, 0).0;
            other != slot && (of_other == partition || self.tier_of(other) > tier)
        });
        match self.fits_beside(slot, &beside) || self.cannot_stop(slot) {
            true => self.update_rows(now),
            false => self.suspend(now, slot),
        }
    }

    /// Suspends running jobs that do not fit beside those of higher tiers and those before them in their own partition, and resumes
    /// suspended ones that do (`_update_active_row` of gang.c).
    pub(super) fn update_rows(&mut self, now: Time) {
        self.fill_rows(now, false);
    }

    /// Ends the turns of the jobs of partitions of which some are suspended: those that had this turn go behind the others
    /// (`_cycle_job_list` of gang.c).
    pub(super) fn take_turns(&mut self, now: Time) {
        self.clocks.last_turn = now.nanos();
        self.fill_rows(now, true);
    }

    /// Sorts the jobs of a partition, in the order of their turns, by who comes first into its row. Whether a turn begins.
    fn sort_row(&mut self, slots: &mut [u32], turn: bool) -> bool {
        let begins = turn && slots.iter().any(|slot| self.running[*slot as usize].suspended.is_some());
        if begins {
            slots.sort_by_key(|slot| self.running[*slot as usize].had_turn);
            for slot in slots.iter() {
                self.ids += 1;
                self.running[*slot as usize].turn = self.ids;
            }
            slots.sort_by_key(|slot| !self.cannot_stop(*slot));
        } else {
            // Those that had their turn, those that started or went on since, those that wait for theirs.
            slots.sort_by_key(|slot| {
                let job = &self.running[*slot as usize];
                (!self.cannot_stop(*slot), job.suspended.is_some(), !job.had_turn)
            });
        }
        begins
    }

    /// Decides which jobs run and which are suspended; with `turn`, partitions of which jobs are suspended begin a turn.
    fn fill_rows(&mut self, now: Time, turn: bool) {
        let mut of_higher = vec![0u64; self.nodes.len()];
        let mut of_tier = of_higher.clone();
        let mut last = None;
        for mut slots in self.by_partition() {
            let tier = slots.first().map(|slot| self.tier_of(*slot));
            if tier != last {
                of_higher.clone_from(&of_tier);
                last = tier;
            }
            let mut used = of_higher.clone();
            let begins_turn = self.sort_row(&mut slots, turn);
            for slot in slots {
                let fits = self.cannot_stop(slot) || self.fits_beside(slot, &used);
                let is_suspended = self.running[slot as usize].suspended.is_some();
                if fits {
                    self.count_processors(slot, |node, held, _| {
                        used[node] += held;
                        of_tier[node] += held;
                    });
                }
                match (fits, is_suspended) {
                    (true, true) => self.go_on(now, slot),
                    (false, false) => self.suspend(now, slot),
                    _ => {}
                }
                let job = &mut self.running[slot as usize];
                job.had_turn = fits && (begins_turn || (job.had_turn && !is_suspended));
            }
        }
    }

    /// By node: how many processors those of the jobs use that neither are suspended nor complete.
    fn processors_used(&self, counts: impl Fn(u32) -> bool) -> Vec<u64> {
        let mut used = vec![0; self.nodes.len()];
        for (_, _, slot) in &self.ends {
            let job = &self.running[*slot as usize];
            if job.suspended.is_none() && !job.completing && counts(*slot) {
                self.count_processors(*slot, |node, held, _| used[node] += held);
            }
        }
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
        self.count_processors(slot, |node, held, has| fits &= held == 0 || used[node] + held <= has);
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
        self.suspended.retain(|other| *other != slot);
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
