//! Jobs that are suspended for others.

use std::cmp::{Ordering, Reverse};

use evenhand_model::PreemptMode;
use evenhand_simulator::PreemptType;

use super::{Runs, SlurmReferenceModel, secs};

/// The end of a suspended job.
const NEVER: u64 = u64::MAX / 2;

impl SlurmReferenceModel<'_> {
    /// When a job ends that was suspended for so long, if it goes on now. One beyond its limit ends at the next sweep.
    pub(super) fn finish(&self, t: u64, start: u64, job: usize, paused: u64) -> u64 {
        let killed = match (self.limit(job), self.world.options.over_time_limit) {
            (Some(limit), Some(over)) => t.max(start + limit + secs(over) + paused).div_ceil(30) * 30,
            _ => u64::MAX,
        };
        (start + self.world.jobs[job].run + paused).min(killed)
    }

    fn tier(&self, job: usize) -> i32 {
        self.world.partitions[self.attempts(job)[0]].tier
    }

    /// Whether jobs can be suspended at all.
    fn suspends(&self) -> bool {
        let (o, world) = (self.world.options, self.world);
        let own = world.partitions.iter().map(|p| p.preempted).chain(world.preempted);
        let modes = own.filter_map(|of| of.mode).chain([o.preempt_mode]);
        let is_on = o.preempt_type.is_some() && o.preempt_mode != PreemptMode::Off && o.preempt_gang;
        is_on && modes.into_iter().any(|mode| mode == PreemptMode::Suspend)
    }

    /// How the tier of a running job whose processors a job may use compares with the job's own; `None`: it may not.
    fn lends(&self, (t, job, partition): (u64, usize, usize), r: &Runs) -> Option<Ordering> {
        let o = self.world.options;
        if !self.suspends() || r.ended || (r.suspended.is_none() && r.finish <= t) {
            return None;
        }
        let by_tiers = o.preempt_type == Some(PreemptType::Partition);
        let mode = self.preempt_mode(r.job);
        let own_mode = match by_tiers {
            true => PreemptMode::Off,
            false => self.preempt_mode(job),
        };
        let found = self.tier(r.job).cmp(&self.world.partitions[partition].tier);
        let lends = match found {
            Ordering::Less => mode == PreemptMode::Suspend,
            Ordering::Greater => !by_tiers && own_mode == PreemptMode::Suspend,
            Ordering::Equal => {
                self.attempts(r.job)[0] != partition && !o.whole_nodes && (!by_tiers || mode != PreemptMode::Off)
            }
        };
        lends.then_some(found)
    }

    /// On which of these nodes a job is put beside others, on processors of jobs of other partitions if it must.
    pub(super) fn choose_over(
        &self,
        of: (u64, usize, usize),
        nodes: &[usize],
        running: &[Runs],
        busy_first: bool,
    ) -> Option<Vec<usize>> {
        let with_lent = |is_lent: &dyn Fn(&Runs) -> bool| {
            let mut left: Vec<Runs> = running.to_vec();
            left.retain(|r| !(self.is_whole(r.job) && is_lent(r)));
            left.iter_mut().for_each(|r| r.is_lent = is_lent(r));
            self.choose(of.1, nodes, &left, busy_first)
        };
        let idle = with_lent(&|_| false);
        if idle.is_some() {
            return idle;
        }
        // As few of the lower tiers as it takes, counted from the highest; those above keep what they have.
        let mut tiers: Vec<i32> =
            running.iter().filter(|r| self.lends(of, r) == Some(Ordering::Less)).map(|r| self.tier(r.job)).collect();
        tiers.sort_unstable();
        tiers.dedup();
        let up_to = |most: Option<i32>, r: &Runs| match self.lends(of, r) {
            Some(Ordering::Greater) => true,
            Some(Ordering::Less) => most.is_some_and(|most| self.tier(r.job) <= most),
            _ => false,
        };
        let choices = [None].into_iter().chain(tiers.iter().copied().map(Some)).rev();
        let found = choices.map(|most| with_lent(&|r| up_to(most, r))).take_while(Option::is_some).last().flatten();
        found.or_else(|| with_lent(&|r| self.lends(of, r).is_some()))
    }

    /// How many processors a job uses on a node.
    fn uses(&self, r: &Runs, node: usize) -> u64 {
        let chunks = r.on.iter().filter(|n| **n == node).count() as u64;
        if self.is_whole(r.job) && chunks > 0 { self.has[node][0] } else { self.chunk(r.job).0[0] * chunks }
    }

    /// Whether the nodes of a job have its processors beside those that these jobs use.
    fn fits_beside(&self, r: &Runs, beside: &[&Runs]) -> bool {
        let used = |node: usize| beside.iter().map(|other| self.uses(other, node)).sum::<u64>();
        r.on.iter().all(|&node| self.uses(r, node) == 0 || used(node) + self.uses(r, node) <= self.has[node][0])
    }

    /// Suspends jobs that do not fit beside one that starts, or that one.
    pub(super) fn suspend_for(&mut self, t: u64) {
        let at = self.running.len() - 1;
        let is_active = |r: &&Runs| !r.ended && r.suspended.is_none();
        let own = &self.running[at];
        let all: Vec<&Runs> = self.running[..at].iter().filter(is_active).collect();
        if !self.suspends() || self.fits_beside(own, &all) {
            return;
        }
        let (tier, partition) = (self.tier(own.job), self.attempts(own.job)[0]);
        let counts = |r: &&&Runs| self.tier(r.job) > tier || self.attempts(r.job)[0] == partition;
        let beside: Vec<&Runs> = all.iter().filter(counts).copied().collect();
        if self.fits_beside(own, &beside) || self.preempt_mode(own.job) != PreemptMode::Suspend {
            self.fill_rows(t, false);
        } else {
            self.stop(t, at);
        }
    }

    fn stop(&mut self, t: u64, at: usize) {
        let cpus = self.held_by(&self.running[at])[0];
        let r = &mut self.running[at];
        (r.suspended, r.finish) = (Some(t), NEVER);
        let (job, since) = (r.job, r.since);
        if self.world.options.charge_ends {
            self.charged[self.world.jobs[job].user] += cpus * (t - since.max(self.last_priorities));
        }
        self.found.suspended += 1;
    }

    fn go_on(&mut self, t: u64, at: usize) {
        let r = &mut self.running[at];
        r.paused += t - r.suspended.take().unwrap();
        r.since = t;
        let (start, job, paused) = (r.start, r.job, r.paused);
        let finish = self.finish(t, start, job, paused);
        self.running[at].finish = finish;
        self.found.finishes[job] = Some(finish);
    }

    /// Which jobs run and which are suspended: by partition, those of the highest tier first. `turn`: whether partitions of which
    /// jobs are suspended begin a turn.
    pub(super) fn fill_rows(&mut self, t: u64, turn: bool) {
        let mut partitions: Vec<usize> = (0..self.world.partitions.len()).collect();
        partitions.sort_by_key(|&p| Reverse(self.world.partitions[p].tier));
        for p in partitions {
            let of = |model: &Self| -> Vec<usize> {
                let is_of = |r: &Runs| !r.ended && model.attempts(r.job)[0] == p;
                (0..model.running.len()).filter(|&at| is_of(&model.running[at])).collect()
            };
            let begins = turn && of(self).iter().any(|&at| self.running[at].suspended.is_some());
            if begins {
                // Those that had their turn go to the end.
                let (had, had_not): (Vec<Runs>, Vec<Runs>) = self.running.drain(..).partition(|r| r.had_turn);
                let (own, others): (Vec<Runs>, Vec<Runs>) =
                    had.into_iter().partition(|r| !r.ended && self.attempts(r.job)[0] == p);
                self.running = [others, had_not, own].concat();
            }
            let mut order = of(self);
            order.sort_by_key(|&at| {
                let r = &self.running[at];
                let can_stop = self.preempt_mode(r.job) == PreemptMode::Suspend;
                (can_stop, !begins && r.suspended.is_some(), !begins && !r.had_turn)
            });
            let mut row: Vec<Runs> = self
                .running
                .iter()
                .filter(|r| !r.ended && r.suspended.is_none() && self.tier(r.job) > self.world.partitions[p].tier)
                .cloned()
                .collect();
            for at in order {
                let r = self.running[at].clone();
                let stays = self.preempt_mode(r.job) != PreemptMode::Suspend;
                let fits = stays || self.fits_beside(&r, &row.iter().collect::<Vec<_>>());
                match (fits, r.suspended.is_some()) {
                    (true, true) => self.go_on(t, at),
                    (false, false) => self.stop(t, at),
                    _ => {}
                }
                self.running[at].had_turn = fits && (begins || (r.had_turn && r.suspended.is_none()));
                if fits {
                    row.push(r);
                }
            }
        }
    }
}
