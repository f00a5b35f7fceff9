//! Slurm's scheduler as an obvious program: every second is simulated, and everything is computed anew from plain lists.

use evenhand_simulator::{Activity, SlurmOptions};

/// Groups of nodes: how many, their CPUs and memory, and their properties.
#[derive(Clone, Debug)]
pub(crate) struct NodeGroup {
    pub(crate) count: usize,
    pub(crate) has: [u64; 2],
    pub(crate) properties: Vec<&'static str>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Partition {
    pub(crate) tier: i32,
    /// In seconds.
    pub(crate) max_time: Option<u64>,
    /// Of CPUs: for a user, and for all users.
    pub(crate) max_user: Option<u64>,
    pub(crate) max: Option<u64>,
    /// Of jobs: of a user, and of all users.
    pub(crate) max_user_jobs: Option<u32>,
    pub(crate) max_jobs: Option<u32>,
    pub(crate) properties: Vec<&'static str>,
}

/// What the jobs of an account may hold: CPUs, and how many they may be; all together or each user by itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct AccountLimit {
    pub(crate) max: Option<u64>,
    pub(crate) max_jobs: Option<u32>,
    pub(crate) each_user: bool,
}

/// The account of a user.
pub(crate) fn account_of(user: usize) -> usize {
    user % 2
}

/// A job; times in seconds.
#[derive(Clone, Debug)]
pub(crate) struct SlurmJob {
    pub(crate) submit: u64,
    pub(crate) run: u64,
    pub(crate) asked: Option<u64>,
    pub(crate) user: usize,
    /// The partitions that it names.
    pub(crate) partitions: Vec<usize>,
    pub(crate) amounts: [u64; 2],
    /// Equal chunks, one a node.
    pub(crate) nodes: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OrderBy {
    Fifo,
    Drf,
    /// By priorities of jobs: [`priority`].
    Priorities,
}

#[derive(Clone, Debug)]
pub(crate) struct SlurmWorld {
    pub(crate) groups: Vec<NodeGroup>,
    pub(crate) partitions: Vec<Partition>,
    /// By account.
    pub(crate) accounts: [AccountLimit; 2],
    pub(crate) jobs: Vec<SlurmJob>,
    pub(crate) order: OrderBy,
    pub(crate) options: SlurmOptions,
}

/// The partitions in which a job may be: those that admit it, of the highest tier first.
pub(crate) fn choice(partitions: &[Partition], job: &SlurmJob) -> Vec<usize> {
    let mut named: Vec<usize> = Vec::new();
    for &p in &job.partitions {
        if !named.contains(&p) {
            named.push(p);
        }
    }
    named.sort_by_key(|&p| -partitions[p].tier);
    let within = |most: Option<u64>, amount: u64| most.is_none_or(|most| amount <= most);
    let admits = |p: &usize| {
        let of = &partitions[*p];
        let amounts = within(of.max_user, job.amounts[0]) && within(of.max, job.amounts[0]);
        within(of.max_time, job.asked.unwrap_or(job.run)) && amounts
    };
    let admitted: Vec<usize> = named.iter().copied().filter(admits).collect();
    if admitted.is_empty() { vec![named[0]] } else { admitted }
}

/// The priority of the test's policy: `held` are the CPUs that the user's running jobs had at the last update.
pub(crate) fn priority(waited: u64, cpus: u64, held: u64) -> u32 {
    (100 + waited / 20 + 2 * cpus).saturating_sub(5 * held).max(1) as u32
}

#[derive(Clone, Debug)]
struct Runs {
    job: usize,
    start: u64,
    finish: u64,
    limit: u64,
    on: Vec<usize>,
    ended: bool,
}

#[derive(Debug)]
pub(crate) struct SlurmFound {
    pub(crate) starts: Vec<Option<u64>>,
    pub(crate) finishes: Vec<Option<u64>>,
    pub(crate) started_by: Vec<Option<Activity>>,
    /// By job: its nodes, ascending.
    pub(crate) nodes: Vec<Vec<usize>>,
}

struct Reservation {
    begin: u64,
    end: u64,
    nodes: Vec<usize>,
}

pub(crate) struct SlurmReferenceModel<'a> {
    world: &'a SlurmWorld,
    has: Vec<[u64; 2]>,
    properties: Vec<Vec<&'static str>>,
    refused: &'a [bool],
    found: SlurmFound,
    running: Vec<Runs>,
    waiting: Vec<usize>,
    priority: Vec<u32>,
    /// By user: the CPUs of its running jobs at the last update of priorities.
    held: Vec<u64>,
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
            refused,
            found: SlurmFound {
                starts: vec![None; n],
                finishes: vec![None; n],
                started_by: vec![None; n],
                nodes: vec![Vec::new(); n],
            },
            running: Vec::new(),
            waiting: Vec::new(),
            priority: vec![0; n],
            held: vec![0; 16],
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
            if t >= last && self.waiting.is_empty() && self.running.iter().all(|r| r.ended) {
                return self.found;
            }
            t += 1;
            assert!(t < 1_000_000, "jobs wait for ever: {:?}", self.waiting);
        }
    }

    fn second(&mut self, t: u64) {
        let o = self.world.options;
        let completing = secs(o.completing);
        let mut released = false;
        for at in 0..self.running.len() {
            let r = &mut self.running[at];
            if !r.ended && r.finish == t {
                r.ended = true;
                self.changed = self.changed.or(Some(t));
                if completing > 0 {
                    self.completing_until = t + completing.min(secs(o.complete_wait));
                }
            }
        }
        let before = self.running.len();
        self.running.retain(|r| r.finish + completing > t);
        if self.running.len() < before {
            (released, self.changed) = (true, self.changed.or(Some(t)));
        }
        if released {
            if o.defer || !o.epilog { self.asked = self.asked.or(Some(t)) } else { self.main_pass(t, false) }
        }
        for job in 0..self.world.jobs.len() {
            if self.world.jobs[job].submit == t && !self.refused[job] {
                self.submit(t, job);
            }
        }
        if t > 0 && t.is_multiple_of(secs(o.priority_calc_period)) {
            self.held = (0..16).map(|user| self.cpus_held(user)).collect();
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
        let changed = self.changed.is_some_and(|since| t > since);
        let due = changed && t >= self.last_backfill + secs(o.bf_interval) && t >= self.completing_until;
        if o.backfill && due {
            (self.last_backfill, self.changed) = (t, None);
            self.backfill(t);
        }
    }

    fn cpus_held(&self, user: usize) -> u64 {
        let jobs = self.running.iter().filter(|r| !r.ended).map(|r| &self.world.jobs[r.job]);
        jobs.filter(|j| j.user == user).map(|j| j.amounts[0]).sum()
    }

    fn priority_of(&self, t: u64, job: usize) -> u32 {
        let j = &self.world.jobs[job];
        priority(t - j.submit, j.amounts[0], self.held[j.user])
    }

    fn submit(&mut self, t: u64, job: usize) {
        self.priority[job] = self.priority_of(t, job);
        self.waiting.push(job);
        (self.asked, self.changed) = (self.asked.or(Some(t)), self.changed.or(Some(t)));
        if !self.world.options.at_submission
            || self.world.options.defer
            || t < self.completing_until
            || self.is_over_limit(job)
        {
            return;
        }
        let precedes = |other: usize| {
            let tier = |j: usize| -self.world.partitions[self.partition(j)].tier;
            tier(other) < tier(job) || (tier(other) == tier(job) && self.priority[other] > self.priority[job])
        };
        let order = self.order();
        let before: Vec<usize> = match self.world.order {
            OrderBy::Priorities => order.into_iter().filter(|&other| precedes(other)).collect(),
            _ => order.into_iter().take_while(|&other| other != job).collect(),
        };
        let blocks = |other: &usize| {
            let shared = self.attempts(*other).iter().any(|&p| {
                let nodes = self.nodes_in(p);
                self.attempts(job).iter().any(|&q| self.nodes_in(q).iter().any(|n| nodes.contains(n)))
            });
            shared && !self.is_young(t, *other) && !self.is_over_limit(*other)
        };
        if before.iter().any(blocks) {
            return;
        }
        for p in self.attempts(job) {
            let nodes = self.tried_on(job, p);
            if let Some(on) = self.choose(job, &nodes, &self.running, false) {
                self.start(t, job, on, Activity::Submit);
                return;
            }
        }
    }

    fn is_young(&self, t: u64, job: usize) -> bool {
        t - self.world.jobs[job].submit < secs(self.world.options.bf_min_age_reserve)
    }

    fn reserves_nothing(&self, t: u64, job: usize) -> bool {
        let low =
            self.world.order == OrderBy::Priorities && self.priority[job] < self.world.options.bf_min_prio_reserve;
        self.is_young(t, job) || low
    }

    fn is_over_limit(&self, job: usize) -> bool {
        let j = &self.world.jobs[job];
        let p = &self.world.partitions[self.partition(job)];
        let running = self.running.iter().filter(|r| !r.ended).map(|r| &self.world.jobs[r.job]);
        let in_partition = self.running.iter().filter(|r| !r.ended && self.partition(r.job) == self.partition(job));
        let a = &self.world.accounts[account_of(j.user)];
        let counts =
            |o: &&SlurmJob| if a.each_user { o.user == j.user } else { account_of(o.user) == account_of(j.user) };
        let of_account: Vec<&SlurmJob> = running.filter(counts).collect();
        let of_partition: Vec<&SlurmJob> = in_partition.map(|r| &self.world.jobs[r.job]).collect();
        let of_user: Vec<&SlurmJob> = of_partition.iter().copied().filter(|o| o.user == j.user).collect();
        let cpus = |jobs: &[&SlurmJob]| jobs.iter().map(|o| o.amounts[0]).sum::<u64>() + j.amounts[0];
        p.max_user.is_some_and(|most| cpus(&of_user) > most)
            || p.max.is_some_and(|most| cpus(&of_partition) > most)
            || p.max_user_jobs.is_some_and(|most| of_user.len() as u32 >= most)
            || p.max_jobs.is_some_and(|most| of_partition.len() as u32 >= most)
            || a.max.is_some_and(|most| cpus(&of_account) > most)
            || a.max_jobs.is_some_and(|most| of_account.len() as u32 >= most)
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
        let (chunk, copies) = self.chunk(job);
        let most = if self.is_apart(job) { 1 } else { copies };
        let holds = |p: &usize| {
            let on = |n: usize| (0..=most).rev().find(|&k| (0..2).all(|i| chunk[i] * k as u64 <= self.has[n][i]));
            self.nodes_in(*p).into_iter().filter_map(on).sum::<usize>() >= copies
        };
        let choice = choice(&self.world.partitions, &self.world.jobs[job]);
        let alone: Vec<usize> = choice.iter().copied().filter(holds).collect();
        if alone.is_empty() { vec![choice[0]] } else { alone }
    }

    /// The nodes on which the job is tried in a partition: its own, or those of all if none holds the job alone.
    fn tried_on(&self, job: usize, partition: usize) -> Vec<usize> {
        let (chunk, copies) = self.chunk(job);
        let most = if self.is_apart(job) { 1 } else { copies };
        let on = |n: usize| (0..=most).rev().find(|&k| (0..2).all(|i| chunk[i] * k as u64 <= self.has[n][i]));
        let own = self.nodes_in(partition);
        let holds = own.iter().filter_map(|&n| on(n)).sum::<usize>() >= copies;
        if holds { own } else { self.nodes_of(job) }
    }

    /// The queue in order.
    fn order(&self) -> Vec<usize> {
        let jobs = &self.world.jobs;
        let tier = |j: usize| -self.world.partitions[self.partition(j)].tier;
        let mut waiting = self.waiting.clone();
        match self.world.order {
            OrderBy::Fifo => waiting.sort_by_key(|&j| (tier(j), jobs[j].submit, j)),
            OrderBy::Priorities => {
                waiting.sort_by_key(|&j| (tier(j), std::cmp::Reverse(self.priority[j]), jobs[j].submit, j));
            }
            OrderBy::Drf => {
                let total = |r: usize| self.has.iter().map(|h| h[r]).sum::<u64>();
                let share = |user: usize, r: usize| {
                    let mine =
                        self.running.iter().filter(|x| !x.ended).map(|x| &jobs[x.job]).filter(|j| j.user == user);
                    mine.map(|j| j.amounts[r]).sum::<u64>() * total(1 - r)
                };
                let dominant = |user: usize| share(user, 0).max(share(user, 1));
                waiting.sort_unstable();
                let mut order = Vec::new();
                while !waiting.is_empty() {
                    // Of each user the first job of the highest tier that is left.
                    let top = waiting.iter().map(|&j| tier(j)).min().unwrap();
                    let firsts = waiting.iter().copied().filter(|&j| {
                        tier(j) == top
                            && !waiting.iter().any(|&k| k < j && jobs[k].user == jobs[j].user && tier(k) == top)
                    });
                    let next = firsts.min_by_key(|&j| (dominant(jobs[j].user), jobs[j].submit, j)).unwrap();
                    order.push(next);
                    waiting.retain(|&j| j != next);
                }
                return order;
            }
        }
        waiting
    }

    fn main_pass(&mut self, t: u64, full: bool) {
        let o = self.world.options;
        if t < self.completing_until {
            return;
        }
        let mut available: Vec<usize> = (0..self.has.len()).collect();
        let (mut failed, mut of_partition) = (Vec::new(), vec![0; self.world.partitions.len()]);
        let (mut depth, mut starts) = (0, 0);
        for job in self.order() {
            for p in self.attempts(job) {
                if o.partition_job_depth > 0 && of_partition[p] >= o.partition_job_depth {
                    continue;
                }
                of_partition[p] += 1;
                if !full && depth > o.default_queue_depth {
                    return;
                }
                depth += 1;
                if failed.contains(&p) {
                    let gone = self.nodes_in(p);
                    available.retain(|n| !gone.contains(n));
                    continue;
                }
                if self.is_over_limit(job) {
                    if o.assoc_limit_stop {
                        failed.push(p);
                    }
                    continue;
                }
                let tried = self.tried_on(job, p);
                let usable: Vec<usize> = available.iter().copied().filter(|n| tried.contains(n)).collect();
                match self.choose(job, &usable, &self.running, false) {
                    Some(on) => {
                        self.start(t, job, on, Activity::Main);
                        starts += 1;
                        if starts == o.sched_max_job_start {
                            return;
                        }
                        break;
                    }
                    None if self.reserves_nothing(t, job) => {}
                    None => failed.push(p),
                }
            }
        }
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
        let o = self.world.options;
        let killed = match (self.limit(job), o.over_time_limit) {
            (Some(limit), Some(over)) => (t + limit + secs(over)).div_ceil(30) * 30,
            _ => u64::MAX,
        };
        let finish = (t + self.world.jobs[job].run).min(killed);
        self.found.starts[job] = Some(t);
        self.found.finishes[job] = Some(finish);
        self.found.started_by[job] = Some(by);
        let mut nodes = on.clone();
        nodes.sort_unstable();
        self.found.nodes[job] = nodes;
        self.running.push(Runs { job, start: t, finish, limit: self.length(job), on, ended: false });
        self.waiting.retain(|&j| j != job);
        self.changed = self.changed.or(Some(t));
    }

    fn chunk(&self, job: usize) -> ([u64; 2], usize) {
        let j = &self.world.jobs[job];
        match j.nodes {
            Some(n) => ([j.amounts[0] / n, j.amounts[1] / n], n as usize),
            None => (j.amounts, 1),
        }
    }

    fn fits_empty(&self, job: usize, node: usize) -> bool {
        let chunk = self.chunk(job).0;
        chunk[0] <= self.has[node][0] && chunk[1] <= self.has[node][1]
    }

    /// Whether the job's chunks are on nodes of their own, because there are so many.
    fn is_apart(&self, job: usize) -> bool {
        let able = self.nodes_of(job).into_iter().filter(|&n| self.fits_empty(job, n)).count();
        self.world.jobs[job].nodes.is_some() && able >= self.chunk(job).1
    }

    /// What is free on a node beside these jobs.
    fn free(&self, node: usize, running: &[Runs]) -> [u64; 2] {
        let mut free = self.has[node];
        for r in running.iter().filter(|r| r.on.contains(&node)) {
            let chunks = r.on.iter().filter(|n| **n == node).count() as u64;
            let chunk = self.chunk(r.job).0.map(|c| c * chunks);
            let held = if self.world.options.whole_nodes { self.has[node] } else { chunk };
            (0..2).for_each(|i| free[i] -= held[i]);
        }
        free
    }

    /// On which of these nodes Slurm puts a job.
    fn choose(&self, job: usize, nodes: &[usize], running: &[Runs], busy_first: bool) -> Option<Vec<usize>> {
        let (chunk, copies) = self.chunk(job);
        let of_partition = self.nodes_of(job);
        let is_busy = |n: usize| running.iter().any(|r| r.on.contains(&n));
        let apart = self.is_apart(job);
        let chunks = |n: usize| {
            let free = self.free(n, running);
            let most = if apart { 1 } else { copies };
            (0..=most).rev().find(|&k| (0..2).all(|i| chunk[i] * k as u64 <= free[i])).unwrap_or(0)
        };
        let able: Vec<usize> = (0..self.has.len())
            .filter(|n| nodes.contains(n) && of_partition.contains(n))
            .filter(|&n| !(self.world.options.whole_nodes && is_busy(n)))
            .filter(|&n| chunks(n) > 0)
            .collect();
        if able.iter().map(|&n| chunks(n)).sum::<usize>() < copies {
            return None;
        }
        let cpus = |n: usize| self.free(n, running)[0];
        if self.world.options.least_loaded {
            let mut able = able;
            able.sort_by_key(|&n| (std::cmp::Reverse(cpus(n)), n));
            let mut on: Vec<usize> = able.into_iter().flat_map(|n| vec![n; chunks(n)]).collect();
            on.truncate(copies);
            return Some(on);
        }
        let weight = |n: usize| usize::from(busy_first && !is_busy(n));
        let mut runs: Vec<Vec<usize>> = Vec::new();
        for n in able {
            match runs.last_mut().filter(|run| {
                let last = *run.last().unwrap();
                last + 1 == n && weight(last) == weight(n)
            }) {
                Some(run) => run.push(n),
                None => runs.push(vec![n]),
            }
        }
        let mut on = Vec::new();
        while on.len() < copies {
            let left = copies - on.len();
            let all = |run: &Vec<usize>| run.iter().map(|&n| cpus(n)).sum::<u64>();
            let lightest = runs.iter().map(|run| weight(run[0])).min()?;
            let light = || runs.iter().enumerate().filter(|(_, run)| weight(run[0]) == lightest);
            let sufficient = light()
                .filter(|(_, run)| run.iter().map(|&n| chunks(n)).sum::<usize>() >= left)
                .min_by_key(|(at, run)| (all(run), *at));
            let largest = || light().min_by_key(|(at, run)| (std::cmp::Reverse(all(run)), *at));
            let at = sufficient.or_else(largest)?.0;
            let mut run = runs.remove(at);
            while on.len() < copies && !run.is_empty() {
                let left = copies - on.len();
                let is_last = if apart { left == 1 } else { on.is_empty() };
                let sufficient = (0..run.len()).filter(|&p| is_last && chunks(run[p]) >= left);
                let place = sufficient.min_by_key(|&p| (cpus(run[p]), run[p])).unwrap_or(0);
                let node = run.remove(place);
                on.extend(vec![node; chunks(node).min(left)]);
            }
        }
        Some(on)
    }

    fn backfill(&mut self, t: u64) {
        let o = self.world.options;
        let window_end = t + secs(o.bf_window);
        let mut reservations: Vec<Reservation> = Vec::new();
        let (mut tested, mut starts) = (0, 0);
        let mut looked: Vec<usize> = Vec::new();
        let mut reserved = vec![0; self.world.partitions.len()];
        for job in self.order() {
            let cuts = self.cuts(t, window_end, &reservations);
            if tested >= o.bf_max_job_test || cuts.len() as u32 >= o.bf_max_job_test {
                return;
            }
            let user = self.world.jobs[job].user;
            let mut is_tested = false;
            for p in self.attempts(job) {
                let of_user = looked.iter().filter(|&&k| self.world.jobs[k].user == user).count();
                if o.bf_max_job_user > 0 && of_user as u32 >= o.bf_max_job_user {
                    continue;
                }
                looked.push(job);
                if self.is_over_limit(job) {
                    continue;
                }
                let nodes = self.tried_on(job, p);
                let plan = self.plan(t, window_end, job, &nodes, &reservations, &mut is_tested);
                let Some((start, on)) = plan else { continue };
                if start <= t {
                    if o.whole_nodes {
                        reservations.push(self.reservation(t, job, &on));
                    }
                    self.start(t, job, on, Activity::Backfill);
                    starts += 1;
                    break;
                }
                let most = o.bf_job_part_count_reserve;
                if start > window_end || self.reserves_nothing(t, job) || (most > 0 && reserved[p] >= most) {
                    continue;
                }
                reserved[p] += 1;
                reservations.push(self.reservation(start, job, &on));
            }
            tested += u32::from(is_tested);
            if starts > 0 && starts == o.bf_max_job_start {
                return;
            }
        }
    }

    fn reservation(&self, start: u64, job: usize, on: &[usize]) -> Reservation {
        let grain = secs(self.world.options.bf_resolution);
        let end = (start + self.length(job)).div_ceil(grain) * grain;
        Reservation { begin: start / grain * grain, end, nodes: on.to_vec() }
    }

    /// Where intervals of the plan begin.
    fn cuts(&self, t: u64, window_end: u64, reservations: &[Reservation]) -> Vec<u64> {
        let inside = reservations.iter().flat_map(|r| [r.begin, r.end]).filter(|&c| c > t && c < window_end);
        let mut cuts: Vec<u64> = inside.chain([t]).collect();
        cuts.sort_unstable();
        cuts.dedup();
        cuts
    }

    /// The intervals of the plan with the nodes that are reserved in each.
    fn intervals(&self, t: u64, window_end: u64, reservations: &[Reservation]) -> Vec<(u64, u64, Vec<usize>)> {
        let cuts = self.cuts(t, window_end, reservations);
        let end = |at: usize| cuts.get(at + 1).copied().unwrap_or(window_end);
        let taken = |begin: u64| {
            let covering = reservations.iter().filter(move |r| r.begin <= begin && begin < r.end);
            covering.flat_map(|r| r.nodes.clone()).collect::<Vec<usize>>()
        };
        cuts.iter().enumerate().map(|(at, &begin)| (begin, end(at), taken(begin))).collect()
    }

    fn plan(
        &self,
        t: u64,
        window_end: u64,
        job: usize,
        of_partition: &[usize],
        reservations: &[Reservation],
        is_tested: &mut bool,
    ) -> Option<(u64, Vec<usize>)> {
        let intervals = self.intervals(t, window_end, reservations);
        let length = self.length(job);
        let unreserved = |node: usize, from: u64, to: u64| {
            let mut met = intervals.iter().filter(|i| i.1 > from && i.0 <= to);
            met.all(|i| !i.2.contains(&node))
        };
        let at_least = if self.is_apart(job) { self.chunk(job).1 } else { 1 };
        let mut at = t;
        loop {
            if at > window_end {
                return None;
            }
            let nodes: Vec<usize> = of_partition
                .iter()
                .copied()
                .filter(|&n| self.fits_empty(job, n) && unreserved(n, at, at + length))
                .collect();
            let open: Vec<&(u64, u64, Vec<usize>)> = intervals.iter().filter(|i| i.1 > at).collect();
            let gains = |pair: &&[&(u64, u64, Vec<usize>)]| pair[0].2.iter().any(|n| !pair[1].2.contains(n));
            let later = open.windows(2).find(gains).map(|pair| pair[0].1);
            if nodes.len() < at_least {
                at = later?;
                continue;
            }
            *is_tested = true;
            let Some((found, on)) = self.will_run(t, job, &nodes) else {
                at = later?;
                continue;
            };
            let start = found.max(at);
            if start > t && !on.iter().all(|&n| unreserved(n, start, start + length)) {
                at = start;
                continue;
            }
            match later {
                Some(later) if start > t && start > later => at = later,
                _ => return Some((start, on)),
            }
        }
    }

    fn will_run(&self, t: u64, job: usize, nodes: &[usize]) -> Option<(u64, Vec<usize>)> {
        if let Some(on) = self.choose(job, nodes, &self.running, false) {
            return Some((t, on));
        }
        let o = self.world.options;
        let grace = secs(o.over_time_limit.unwrap_or_default()) + secs(o.kill_wait);
        let end = |r: &Runs| {
            let at = if r.ended { r.finish + secs(o.completing) } else { r.start + r.limit };
            if at > t { at } else { (at + grace).max(t + 1) }
        };
        let mut left = self.running.clone();
        let meets = |r: &&Runs| r.on.iter().any(|n| nodes.contains(n));
        let mut relevant: Vec<Runs> = left.iter().filter(meets).cloned().collect();
        relevant.sort_by_key(|r| (end(r), r.job));
        let mut window = 30;
        let mut at = 0;
        while at < relevant.len() {
            let first = end(&relevant[at]) / 30 * 30;
            let mut to = at + 1;
            while to < relevant.len() && end(&relevant[to]) <= first + window && to - at < 200 {
                to += 1;
            }
            left.retain(|r| !relevant[at..to].iter().any(|gone| gone.job == r.job));
            window = match o.bf_window_linear {
                Some(step) => window + secs(step),
                None => window * 2,
            };
            if let Some(on) = self.choose(job, nodes, &left, o.bf_busy_nodes) {
                let uses = |r: &&Runs| r.on.iter().any(|n| on.contains(n));
                let last = relevant[..to].iter().rev().find(uses).map_or(t, end);
                return Some((last, on));
            }
            at = to;
        }
        None
    }
}
