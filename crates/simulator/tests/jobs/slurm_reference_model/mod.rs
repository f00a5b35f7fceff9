//! Slurm's scheduler as an obvious program: every second is simulated, and everything is computed anew from plain lists.

mod nodes;
mod order;
mod plan;
mod preemption;
mod suspension;
mod world;

use evenhand_model::PreemptMode;
use evenhand_simulator::Activity;

pub(crate) use world::{
    AccountLimit, ClosedNodes, NodeGroup, OrderBy, Partition, Preempted, SlurmJob, SlurmWorld, account_of, choice,
    priority,
};

#[derive(Clone, Debug)]
struct Runs {
    job: usize,
    start: u64,
    finish: u64,
    limit: u64,
    on: Vec<usize>,
    ended: bool,
    /// The job for which it ends, and what becomes of it then.
    makes_way: Option<usize>,
    preempted: Option<PreemptMode>,
    /// Since when it is suspended, and for how long it was before.
    suspended: Option<u64>,
    paused: u64,
    /// Since when it runs without a break.
    since: u64,
    /// Whether it runs since the turn of its partition's jobs began.
    had_turn: bool,
    /// Whether a job may use its processors.
    is_lent: bool,
}

#[derive(Debug)]
pub(crate) struct SlurmFound {
    pub(crate) starts: Vec<Option<u64>>,
    pub(crate) finishes: Vec<Option<u64>>,
    pub(crate) started_by: Vec<Option<Activity>>,
    /// How many were submitted beyond a limit.
    pub(crate) beyond: u64,
    pub(crate) requeued: u64,
    pub(crate) cancelled: u64,
    pub(crate) suspended: u64,
    /// By job: its nodes, ascending.
    pub(crate) nodes: Vec<Vec<usize>>,
}

pub(crate) struct SlurmReferenceModel<'a> {
    world: &'a SlurmWorld,
    has: Vec<[u64; 2]>,
    properties: Vec<Vec<&'static str>>,
    weights: Vec<u32>,
    refused: &'a [bool],
    found: SlurmFound,
    running: Vec<Runs>,
    waiting: Vec<usize>,
    /// Jobs that were preempted, each after the earliest time at which it waits again, and before the job that must have
    /// started by then.
    again: Vec<(u64, usize, usize)>,
    /// By job: since when it waits.
    since: Vec<u64>,
    priority: Vec<u32>,
    /// By user: the CPUs of its running jobs at the last update of priorities.
    held: Vec<u64>,
    /// By user: the CPU-seconds that it has been charged, and those at the last update.
    charged: Vec<u64>,
    used: Vec<u64>,
    last_priorities: u64,
    /// Since when a pass is asked for, and backfill has not seen a change.
    asked: Option<u64>,
    changed: Option<u64>,
    last_main: u64,
    last_backfill: u64,
    completing_until: u64,
}

fn secs(span: evenhand_model::Span) -> u64 {
    span.nanos() / 1_000_000_000
}

impl<'a> SlurmReferenceModel<'a> {
    pub(crate) fn new(world: &'a SlurmWorld, refused: &'a [bool]) -> SlurmReferenceModel<'a> {
        let each = |g: &NodeGroup| vec![g.clone(); g.count];
        let nodes: Vec<NodeGroup> = world.groups.iter().flat_map(each).collect();
        let n = world.jobs.len();
        SlurmReferenceModel {
            world,
            has: nodes.iter().map(|n| n.has).collect(),
            properties: nodes.iter().map(|n| n.properties.clone()).collect(),
            weights: nodes.iter().map(|n| n.weight).collect(),
            refused,
            found: SlurmFound {
                starts: vec![None; n],
                finishes: vec![None; n],
                started_by: vec![None; n],
                beyond: 0,
                requeued: 0,
                cancelled: 0,
                suspended: 0,
                nodes: vec![Vec::new(); n],
            },
            running: Vec::new(),
            waiting: Vec::new(),
            again: Vec::new(),
            since: world.jobs.iter().map(|j| j.submit).collect(),
            priority: vec![0; n],
            held: vec![0; 16],
            charged: vec![0; 16],
            used: vec![0; 16],
            last_priorities: 0,
            asked: None,
            changed: None,
            last_main: 0,
            last_backfill: 0,
            completing_until: 0,
        }
    }

    pub(crate) fn run(mut self) -> SlurmFound {
        let last = self.world.jobs.iter().map(|j| j.submit).max().unwrap_or(0);
        let mut t = self.world.jobs.first().map_or(0, |j| j.submit);
        loop {
            self.second(t);
            let is_idle = self.waiting.is_empty() && self.again.is_empty();
            if t >= last && is_idle && self.running.iter().all(|r| r.ended) {
                return self.found;
            }
            t += 1;
            assert!(t < 1_000_000, "jobs wait for ever: {:?}", self.waiting);
        }
    }

    /// Ends jobs and frees their nodes; whether any become free.
    fn free_nodes(&mut self, t: u64) -> bool {
        let o = self.world.options;
        let completing = secs(o.completing);
        let ends = self.running.iter().any(|r| !r.ended && r.finish == t);
        for at in 0..self.running.len() {
            let cpus = self.held_by(&self.running[at])[0];
            let r = &mut self.running[at];
            if !r.ended && r.finish == t {
                r.ended = true;
                if o.charge_ends {
                    self.charged[self.world.jobs[r.job].user] += cpus * (t - r.since.max(self.last_priorities));
                }
                self.changed = self.changed.or(Some(t));
                if completing > 0 {
                    self.completing_until = t + completing.min(secs(o.complete_wait));
                }
                if let (job, Some(mode), Some(other)) = (r.job, r.preempted, r.makes_way) {
                    self.note_preempted(t, job, mode, other);
                }
            }
        }
        let before = self.running.len();
        self.running.retain(|r| r.finish + completing > t);
        let released = self.running.len() < before;
        if ends && self.running.iter().any(|r| r.suspended.is_some()) {
            self.fill_rows(t, false);
        }
        if released {
            self.changed = self.changed.or(Some(t));
        }
        released
    }

    /// What follows when nodes have become free.
    fn after_release(&mut self, t: u64, released: bool) {
        let o = self.world.options;
        if released {
            if o.defer || !o.epilog { self.asked = self.asked.or(Some(t)) } else { self.main_pass(t, false) }
        }
    }

    fn second(&mut self, t: u64) {
        let o = self.world.options;
        let closed = || self.world.outages.iter().chain(&self.world.reservations);
        let first = self.world.jobs.first().map_or(0, |j| j.submit);
        if t > first && closed().any(|c| c.from == t || c.to == t) {
            (self.asked, self.changed) = (self.asked.or(Some(t)), self.changed.or(Some(t)));
        }
        if t > 0 && t.is_multiple_of(secs(o.priority_calc_period)) {
            self.held = (0..16).map(|user| self.cpus_held(user)).collect();
            for r in self.running.iter().filter(|r| !r.ended && r.suspended.is_none()) {
                let user = self.world.jobs[r.job].user;
                self.charged[user] += self.held_by(r)[0] * (t - r.since.max(self.last_priorities));
            }
            self.last_priorities = t;
            self.used.clone_from(&self.charged);
            for &job in &self.waiting.clone() {
                self.priority[job] = self.priority_of(t, job);
            }
            if !self.waiting.is_empty() {
                self.changed = self.changed.or(Some(t));
            }
        }
        let full = o.sched_interval.is_some_and(|i| t > 0 && t.is_multiple_of(secs(i)));
        let asked = self.asked.is_some_and(|since| t > since);
        if full || (asked && t >= self.last_main + secs(o.batch_sched_delay)) {
            (self.asked, self.last_main) = (None, t);
            self.main_pass(t, full);
        }
        let released = self.free_nodes(t);
        if t.is_multiple_of(secs(o.scheduler_time_slice)) && self.running.iter().any(|r| r.suspended.is_some()) {
            self.fill_rows(t, true);
        }
        self.after_release(t, released);
        let starts = &self.found.starts;
        let is_due = |(at, _, other): &(u64, usize, usize)| *at <= t && starts[*other].is_some_and(|start| start < t);
        let mut again: Vec<usize> = self.again.iter().filter(|one| is_due(one)).map(|(_, job, _)| *job).collect();
        self.again.retain(|one| !is_due(one));
        again.sort_unstable();
        for job in again {
            self.since[job] = t;
            self.enqueue(t, job);
        }
        for job in 0..self.world.jobs.len() {
            if self.world.jobs[job].submit == t && !self.refused[job] {
                self.submit(t, job);
            }
        }
        let changed = self.changed.is_some_and(|since| t > since);
        let due = changed && t >= self.last_backfill + secs(o.bf_interval) && t >= self.completing_until;
        if o.backfill && due {
            (self.last_backfill, self.changed) = (t, None);
            self.backfill(t);
        }
        // Jobs that were preempted end at once.
        while self.running.iter().any(|r| !r.ended && r.finish == t) {
            let released = self.free_nodes(t);
            self.after_release(t, released);
        }
    }

    fn cpus_held(&self, user: usize) -> u64 {
        let runs = self.running.iter().filter(|r| !r.ended && r.suspended.is_none());
        runs.filter(|r| self.world.jobs[r.job].user == user).map(|r| self.held_by(r)[0]).sum()
    }

    /// What a running job holds: what it asked for, or all of its whole nodes.
    fn held_by(&self, r: &Runs) -> [u64; 2] {
        let of_nodes = |i: usize| (0..self.has.len()).filter(|n| r.on.contains(n)).map(|n| self.has[n][i]).sum();
        if self.is_whole(r.job) { [0, 1].map(of_nodes) } else { self.world.jobs[r.job].amounts }
    }

    fn priority_of(&self, t: u64, job: usize) -> u32 {
        let j = &self.world.jobs[job];
        priority(t - self.since[job], j.amounts[0], self.held[j.user], self.used[j.user])
    }

    /// Whether as many jobs of one of its limits wait or run as may.
    fn is_beyond(&self, job: usize) -> bool {
        let j = &self.world.jobs[job];
        let running = self.running.iter().filter(|r| !r.ended).map(|r| r.job);
        let waiting = self.waiting.iter().copied().chain(self.again.iter().map(|(_, k, _)| *k));
        let others: Vec<&SlurmJob> = running.chain(waiting).map(|k| &self.world.jobs[k]).collect();
        let reached = |limit: &AccountLimit, same: &dyn Fn(&SlurmJob) -> bool| {
            let counts = |o: &&&SlurmJob| same(o) && limit.binds(o) && (!limit.each_user || o.user == j.user);
            limit.binds(j)
                && limit.max_submitted.is_some_and(|most| others.iter().filter(counts).count() as u32 >= most)
        };
        let account = account_of(j.user);
        reached(&self.world.accounts[account], &|o| account_of(o.user) == account)
            || j.qos.is_some_and(|qos| reached(&self.world.qos[qos], &|o| o.qos == Some(qos)))
    }

    fn enqueue(&mut self, t: u64, job: usize) {
        self.priority[job] = self.priority_of(t, job);
        self.waiting.push(job);
        (self.asked, self.changed) = (self.asked.or(Some(t)), self.changed.or(Some(t)));
    }

    fn submit(&mut self, t: u64, job: usize) {
        self.found.beyond += u64::from(self.is_beyond(job));
        self.enqueue(t, job);
        if !self.world.options.at_submission
            || self.world.options.defer
            || t < self.completing_until
            || self.is_over_limit(job)
            || self.lacks_licences(job)
            || self.is_throttled(job)
        {
            return;
        }
        let precedes = |other: usize| {
            let tier = |j: usize| -self.world.partitions[self.partition(j)].tier;
            tier(other) < tier(job) || (tier(other) == tier(job) && self.priority[other] > self.priority[job])
        };
        let order = self.order_by_tiers();
        let before: Vec<usize> = match self.world.order {
            OrderBy::Priorities => order.into_iter().filter(|&other| precedes(other)).collect(),
            _ => order.into_iter().take_while(|&other| other != job).collect(),
        };
        let blocks = |other: &usize| {
            let shared = self.attempts(*other).iter().any(|&p| {
                let nodes = self.nodes_in(p);
                self.attempts(job).iter().any(|&q| self.nodes_in(q).iter().any(|n| nodes.contains(n)))
            });
            let waits = self.is_over_limit(*other) || self.lacks_licences(*other) || self.is_throttled(*other);
            shared && !self.is_young(t, *other) && !waits
        };
        if before.iter().any(blocks) {
            return;
        }
        let open = |p: usize| {
            let until = t + self.length(job);
            let nodes = self.tried_on(job, p).into_iter();
            nodes.filter(|&n| self.is_up(t, n) && self.is_open(job, n, t, until)).collect::<Vec<usize>>()
        };
        let tried: Vec<(usize, Vec<usize>)> = self.attempts(job).into_iter().map(|p| (p, open(p))).collect();
        for (p, nodes) in &tried {
            if let Some(on) = self.choose_over((t, job, *p), nodes, &self.running, false) {
                self.start(t, job, on, Activity::Submit);
                return;
            }
        }
        for (p, nodes) in &tried {
            if self.preempt(t, job, *p, nodes).is_some() {
                return;
            }
        }
    }

    fn is_young(&self, t: u64, job: usize) -> bool {
        t - self.since[job] < secs(self.world.options.bf_min_age_reserve)
    }

    fn reserves_nothing(&self, t: u64, job: usize) -> bool {
        let low =
            self.world.order == OrderBy::Priorities && self.priority[job] < self.world.options.bf_min_prio_reserve;
        self.is_young(t, job) || low
    }

    /// Whether a limit of 0 holds the job, so that it never starts.
    pub(crate) fn is_held(&self, job: usize) -> bool {
        let j = &self.world.jobs[job];
        let p = &self.world.partitions[self.partition(job)];
        let no_cpu = |most: Option<u64>| most == Some(0) && j.amounts[0] > 0;
        let holds = |limit: &AccountLimit| {
            limit.binds(j) && (limit.max_jobs == Some(0) || limit.max_submitted == Some(0) || no_cpu(limit.max))
        };
        p.max_jobs == Some(0)
            || p.max_user_jobs == Some(0)
            || no_cpu(p.max)
            || no_cpu(p.max_user)
            || holds(&self.world.accounts[account_of(j.user)])
            || j.qos.is_some_and(|qos| holds(&self.world.qos[qos]))
    }

    fn is_over_limit(&self, job: usize) -> bool {
        let j = &self.world.jobs[job];
        let p = &self.world.partitions[self.partition(job)];
        let running = self.running.iter().filter(|r| !r.ended).map(|r| &self.world.jobs[r.job]);
        let in_partition = self.running.iter().filter(|r| !r.ended && self.partition(r.job) == self.partition(job));
        let a = &self.world.accounts[account_of(j.user)];
        let counts = |o: &&SlurmJob| {
            a.binds(o) && if a.each_user { o.user == j.user } else { account_of(o.user) == account_of(j.user) }
        };
        let is_over_qos = j.qos.is_some_and(|qos| {
            let limit = &self.world.qos[qos];
            let counts = |o: &&SlurmJob| o.qos == j.qos && (!limit.each_user || o.user == j.user);
            let of_qos: Vec<&SlurmJob> = running.clone().filter(counts).collect();
            let cpus = of_qos.iter().map(|o| o.amounts[0]).sum::<u64>() + j.amounts[0];
            limit.max.is_some_and(|most| cpus > most) || limit.max_jobs.is_some_and(|most| of_qos.len() as u32 >= most)
        });
        let of_account: Vec<&SlurmJob> = running.filter(counts).collect();
        let of_partition: Vec<&SlurmJob> = in_partition.map(|r| &self.world.jobs[r.job]).collect();
        let of_user: Vec<&SlurmJob> = of_partition.iter().copied().filter(|o| o.user == j.user).collect();
        let cpus = |jobs: &[&SlurmJob]| jobs.iter().map(|o| o.amounts[0]).sum::<u64>() + j.amounts[0];
        is_over_qos
            || p.max_user.is_some_and(|most| cpus(&of_user) > most)
            || p.max.is_some_and(|most| cpus(&of_partition) > most)
            || p.max_user_jobs.is_some_and(|most| of_user.len() as u32 >= most)
            || p.max_jobs.is_some_and(|most| of_partition.len() as u32 >= most)
            || a.binds(j)
                && (a.max.is_some_and(|most| cpus(&of_account) > most)
                    || a.max_jobs.is_some_and(|most| of_account.len() as u32 >= most))
    }

    /// Whether fewer licences are left by running jobs than the job needs.
    fn lacks_licences(&self, job: usize) -> bool {
        let held = |i: usize| {
            self.running.iter().filter(|r| !r.ended).map(|r| self.world.jobs[r.job].licences[i]).sum::<u64>()
        };
        (0..2).any(|i| held(i) + self.world.jobs[job].licences[i] > self.world.licences[i])
    }

    /// Whether as many tasks of the job's array run as may.
    fn is_throttled(&self, job: usize) -> bool {
        let Some((array, Some(most))) = self.world.jobs[job].array else { return false };
        let of_array = |r: &&Runs| self.world.jobs[r.job].array.is_some_and(|(other, _)| other == array);
        self.running.iter().filter(|r| !r.ended).filter(of_array).count() >= most
    }

    fn is_up(&self, t: u64, node: usize) -> bool {
        !self.world.outages.iter().any(|o| o.covers(t) && o.nodes.contains(&node))
    }

    /// The job's reservation, if it is not over.
    fn reservation_of(&self, t: u64, job: usize) -> Option<usize> {
        self.world.jobs[job].reservation.filter(|&r| self.world.reservations[r].to > t)
    }

    /// Whether reservations leave the job a node from one instant to another.
    fn is_open(&self, job: usize, node: usize, from: u64, to: u64) -> bool {
        let own = self.reservation_of(from, job);
        let in_own = own.is_none_or(|r| {
            let r = &self.world.reservations[r];
            r.covers(from) && r.nodes.contains(&node)
        });
        let mut others = self.world.reservations.iter().enumerate().filter(|(r, _)| Some(*r) != own);
        in_own && !others.any(|(_, r)| r.meets(from, to) && r.nodes.contains(&node))
    }

    /// The first partition in which the job may be, in whose limits it counts.
    fn partition(&self, job: usize) -> usize {
        choice(&self.world.partitions, &self.world.jobs[job])[0]
    }

    fn nodes_in(&self, partition: usize) -> Vec<usize> {
        let needs = &self.world.partitions[partition].properties;
        (0..self.has.len()).filter(|&n| needs.iter().all(|p| self.properties[n].contains(p))).collect()
    }

    /// The nodes of all partitions in which the job may be.
    fn nodes_of(&self, job: usize) -> Vec<usize> {
        let choice = choice(&self.world.partitions, &self.world.jobs[job]);
        (0..self.has.len()).filter(|n| choice.iter().any(|&p| self.nodes_in(p).contains(n))).collect()
    }

    /// The partitions in which the job is tried: those that hold it alone, or the first if none does.
    fn attempts(&self, job: usize) -> Vec<usize> {
        let holds = |p: &usize| self.hold(job, &self.nodes_in(*p));
        let choice = choice(&self.world.partitions, &self.world.jobs[job]);
        let alone: Vec<usize> = choice.iter().copied().filter(holds).collect();
        if alone.is_empty() { vec![choice[0]] } else { alone }
    }

    /// The nodes on which the job is tried in a partition: its own, or those of all if none holds the job alone.
    fn tried_on(&self, job: usize, partition: usize) -> Vec<usize> {
        let own = self.nodes_in(partition);
        if self.hold(job, &own) { own } else { self.nodes_of(job) }
    }

    fn main_pass(&mut self, t: u64, full: bool) {
        let o = self.world.options;
        if t < self.completing_until {
            return;
        }
        let mut available: Vec<usize> = (0..self.has.len()).filter(|&n| self.is_up(t, n)).collect();
        let (mut failed, mut of_partition) = (Vec::new(), vec![0; self.world.partitions.len()]);
        let (mut depth, mut starts) = (0, 0);
        // Arrays of which a task was looked at and did not start, with the partition: no other one is looked at there.
        let mut looked: Vec<(usize, usize)> = Vec::new();
        for job in self.order() {
            if self.is_throttled(job) {
                continue;
            }
            let array = self.world.jobs[job].array.map(|(array, _)| array);
            for p in self.attempts(job) {
                if let Some(array) = array {
                    if looked.contains(&(array, p)) {
                        continue;
                    }
                    looked.push((array, p));
                }
                if o.partition_job_depth > 0 && of_partition[p] >= o.partition_job_depth {
                    continue;
                }
                of_partition[p] += 1;
                if !full && depth > o.default_queue_depth {
                    return;
                }
                depth += 1;
                if failed.contains(&p) {
                    continue;
                }
                let gone = self.nodes_in(p);
                if self.is_over_limit(job) {
                    if o.assoc_limit_stop {
                        failed.push(p);
                        available.retain(|n| !gone.contains(n));
                    }
                    continue;
                }
                let least_nodes = self.least_nodes(job);
                let (tried, until) = (self.tried_on(job, p), t + self.length(job));
                if available.iter().filter(|n| gone.contains(n) || tried.contains(n)).count() < least_nodes {
                    failed.push(p);
                    available.retain(|n| !gone.contains(n));
                    continue;
                }
                if self.lacks_licences(job) {
                    if o.bf_licenses {
                        return;
                    }
                    continue;
                }
                let mut usable = available.clone();
                usable.retain(|n| tried.contains(n) && self.is_open(job, *n, t, until));
                let chosen = self.choose_over((t, job, p), &usable, &self.running, false);
                if chosen.is_none() {
                    self.preempt(t, job, p, &usable);
                }
                match chosen {
                    Some(on) => {
                        self.start(t, job, on, Activity::Main);
                        looked.retain(|known| Some(*known) != array.map(|array| (array, p)));
                        starts += 1;
                        if starts == o.sched_max_job_start {
                            return;
                        }
                        break;
                    }
                    None if self.reservation_of(t, job).is_some() => {
                        let own = &self.world.reservations[self.reservation_of(t, job).unwrap()];
                        available.retain(|n| !own.nodes.contains(n));
                    }
                    None if self.reserves_nothing(t, job) || !self.waits_for_jobs(job, &usable) => {}
                    None => {
                        failed.push(p);
                        available.retain(|n| !gone.contains(n));
                    }
                }
            }
        }
    }

    /// Whether these nodes would hold the job if they were empty, or some have jobs beside which there is no place for it.
    fn waits_for_jobs(&self, job: usize, nodes: &[usize]) -> bool {
        let of_job = self.nodes_of(job);
        let mut able = nodes.to_vec();
        able.retain(|&n| of_job.contains(&n) && self.fits_empty(job, n));
        let o = self.world.options;
        let preempts = o.preempt_type.is_some() && o.preempt_mode != PreemptMode::Off;
        let is_busy = |n: &usize| self.is_closed_to(job, *n);
        self.choose(job, &able, &[], false).is_some() || (!preempts && able.iter().any(is_busy))
    }

    fn limit(&self, job: usize) -> Option<u64> {
        let j = &self.world.jobs[job];
        let limit = j.asked.or(self.world.partitions[self.partition(job)].max_time);
        limit.map(|l| l.div_ceil(60) * 60)
    }

    fn length(&self, job: usize) -> u64 {
        self.limit(job).unwrap_or(365 * 86_400)
    }

    fn start(&mut self, t: u64, job: usize, on: Vec<usize>, by: Activity) {
        let finish = self.finish(t, t, job, 0);
        self.found.starts[job] = Some(t);
        self.found.finishes[job] = Some(finish);
        self.found.started_by[job] = Some(by);
        let mut nodes = on.clone();
        nodes.sort_unstable();
        self.found.nodes[job] = nodes;
        self.running.push(Runs {
            job,
            start: t,
            finish,
            limit: self.length(job),
            on,
            ended: false,
            makes_way: None,
            preempted: None,
            suspended: None,
            paused: 0,
            since: t,
            had_turn: false,
            is_lent: false,
        });
        self.suspend_for(t);
        self.waiting.retain(|&j| j != job);
        self.changed = self.changed.or(Some(t));
    }
}
