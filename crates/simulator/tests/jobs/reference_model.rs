//! The obvious program: lists gone through from end to end, everything computed anew each time.

mod conservative;
mod lay_out;
mod licences;
mod planned;

use evenhand_simulator::{Backfill, Layout, Placement, Rejection};

/// Machines of one kind.
#[derive(Clone, Debug)]
pub(crate) struct Machines {
    pub(crate) count: usize,
    pub(crate) has: [u64; 2],
    /// As a fraction.
    pub(crate) speed: (u64, u64),
    pub(crate) properties: Vec<&'static str>,
}

#[derive(Clone, Debug)]
pub(crate) struct QueueLimits {
    pub(crate) priority: i32,
    pub(crate) max_wall: Option<u64>,
    pub(crate) max_job: Option<u64>,
    pub(crate) max_user: Option<u64>,
    pub(crate) properties: Vec<&'static str>,
    pub(crate) whole_machines: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) submit: u64,
    pub(crate) run: u64,
    pub(crate) asked: Option<u64>,
    pub(crate) user: usize,
    /// The queues that it names; those from `World::queues` on are unknown to the site.
    pub(crate) queues: Vec<usize>,
    /// CPUs and memory.
    pub(crate) amounts: [u64; 2],
    /// The nodes that its source states.
    pub(crate) nodes: Option<u32>,
    /// Words that its source requires of machines.
    pub(crate) requires: Vec<&'static str>,
    /// Chunks of several sizes: how many, and the CPUs and memory of each.
    pub(crate) sizes: Vec<(u32, [u64; 2])>,
    /// How many of each licence it needs.
    pub(crate) licences: [u64; 2],
    /// The array of which it is a task, and how many tasks of that may run at once.
    pub(crate) array: Option<(usize, usize)>,
}

#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) machines: Vec<Machines>,
    pub(crate) queues: Vec<QueueLimits>,
    pub(crate) jobs: Vec<Job>,
    /// How many licences of each kind there are.
    pub(crate) licences: [u64; 2],
    pub(crate) is_pool: bool,
    /// `fifo`, `drf`, or `most cpus` and `most cpus by group`: whose first job asks for most.
    pub(crate) policy: &'static str,
    pub(crate) placement: Placement,
    pub(crate) backfill: Backfill,
    pub(crate) blocking: bool,
    pub(crate) layout: Layout,
}

impl World {
    fn is_whole(&self) -> bool {
        self.layout == Layout::Whole && !self.is_pool
    }
}

#[derive(Clone, Debug)]
struct Runs {
    job: usize,
    finish: u64,
    expected: u64,
    /// One entry a chunk.
    on: Vec<usize>,
}

pub(crate) struct Found {
    pub(crate) starts: Vec<Option<u64>>,
    pub(crate) finishes: Vec<Option<u64>>,
    pub(crate) refused: Vec<Option<Rejection>>,
    pub(crate) promised: Vec<Option<u64>>,
    /// By job: the machine of each of its chunks, ascending.
    pub(crate) machines: Vec<Vec<usize>>,
}

pub(crate) struct ReferenceModel<'a> {
    world: &'a World,
    /// By machine.
    has: Vec<[u64; 2]>,
    speed: Vec<(u64, u64)>,
    properties: Vec<Vec<&'static str>>,
    chunk: Vec<[u64; 2]>,
    chunks: Vec<usize>,
    /// The last chunk, if it is smaller than the others.
    last: Vec<Option<[u64; 2]>>,
    /// Each chunk, if they are of several sizes.
    uneven: Vec<Vec<[u64; 2]>>,
    /// Whether each chunk is on a machine of its own.
    is_spread: Vec<bool>,
    /// By machine.
    group: Vec<usize>,
    /// Whether what a job requires of machines is left out.
    without: Vec<bool>,
    /// The only groups that a job with whole machines uses.
    only: Vec<Option<Vec<usize>>>,
    found: Found,
    running: Vec<Runs>,
    waiting: Vec<usize>,
    pub(crate) planned: Vec<Option<(u64, Vec<usize>)>>,
}

fn scale(span: u64, speed: (u64, u64)) -> u64 {
    (u128::from(span) * u128::from(speed.1)).div_ceil(u128::from(speed.0)) as u64
}

fn fits(a: [u64; 2], b: [u64; 2]) -> bool {
    a[0] <= b[0] && a[1] <= b[1]
}

fn minus(a: [u64; 2], b: [u64; 2]) -> [u64; 2] {
    [a[0] - b[0], a[1] - b[1]]
}

impl<'a> ReferenceModel<'a> {
    pub(crate) fn new(world: &'a World) -> ReferenceModel<'a> {
        let each = |g: &Machines| vec![g.clone(); g.count];
        let machines: Vec<Machines> = world.machines.iter().flat_map(each).collect();
        let n = world.jobs.len();
        let nothing = || vec![None; n];
        let mut reference = ReferenceModel {
            world,
            // Of whole machines nothing counts but whether they are free.
            has: machines.iter().map(|m| if world.is_whole() { [1, 1] } else { m.has }).collect(),
            speed: machines.iter().map(|m| m.speed).collect(),
            properties: machines.iter().map(|m| m.properties.clone()).collect(),
            chunk: world.jobs.iter().map(|j| j.amounts).collect(),
            chunks: vec![1; n],
            last: vec![None; n],
            uneven: vec![Vec::new(); n],
            is_spread: vec![false; n],
            group: (0..world.machines.len()).flat_map(|g| vec![g; world.machines[g].count]).collect(),
            without: vec![false; n],
            only: vec![None; n],
            found: Found {
                starts: nothing(),
                finishes: nothing(),
                refused: vec![None; n],
                promised: nothing(),
                machines: vec![Vec::new(); n],
            },
            running: Vec::new(),
            waiting: Vec::new(),
            planned: vec![None; n],
        };
        for i in 0..n {
            let refused = reference.split(i);
            reference.found.refused[i] = refused;
            let lacks = matches!(refused, Some(Rejection::Resource(_) | Rejection::Together));
            if lacks && !world.jobs[i].requires.is_empty() && !world.is_pool {
                reference.without[i] = true;
                let refused = reference.split(i);
                match refused {
                    None | Some(Rejection::Wall) => reference.found.refused[i] = refused,
                    _ => reference.without[i] = false,
                }
            }
            reference.found.refused[i] = reference.found.refused[i].or(reference.exceeds_licences(i));
        }
        reference
    }

    /// What chunk `k` of job `i` holds.
    fn amounts(&self, i: usize, k: usize) -> [u64; 2] {
        if let Some(chunk) = self.uneven[i].get(k) {
            return *chunk;
        }
        self.last[i].filter(|_| k + 1 == self.chunks[i]).unwrap_or(self.chunk[i])
    }

    fn estimate(&self, i: usize) -> u64 {
        self.world.jobs[i].run.max(self.world.jobs[i].asked.unwrap_or(0)).max(1)
    }

    /// How long job `i` is expected to take on machine `m`.
    fn expected_duration(&self, i: usize, m: usize) -> u64 {
        self.duration_by(self.waiting_estimate(i), i, m)
    }

    fn duration_by(&self, estimate: u64, i: usize, m: usize) -> u64 {
        if self.chunks[i] == 1 {
            return scale(estimate, self.speed[m]);
        }
        let least = |r: usize| self.uneven[i].iter().map(|chunk| chunk[r]).min();
        let smallest = match (least(0), least(1)) {
            (Some(cpu), Some(mem)) => [cpu, mem],
            _ => self.last[i].unwrap_or(self.chunk[i]),
        };
        let suitable = self.allowed(i).into_iter().filter(|&m| fits(smallest, self.has[m]));
        suitable.map(|m| scale(estimate, self.speed[m])).max().unwrap()
    }

    fn free(&self) -> Vec<[u64; 2]> {
        let mut free = self.has.clone();
        for r in &self.running {
            r.on.iter().enumerate().for_each(|(k, &m)| free[m] = minus(free[m], self.amounts(r.job, k)));
        }
        free
    }

    fn part(a: u64, b: u64) -> u64 {
        if b == 0 { 0 } else { ((u128::from(a) << 32) / u128::from(b)) as u64 }
    }

    fn parts(&self, amounts: [u64; 2]) -> [u64; 2] {
        [0, 1].map(|r| Self::part(amounts[r], self.has.iter().map(|h| h[r]).max().unwrap()))
    }

    fn shape(&self, amounts: [u64; 2]) -> [u64; 2] {
        let x = self.parts(amounts);
        x.map(|v| Self::part(v, x[0].max(x[1])))
    }

    fn choose_machine(
        &self,
        i: usize,
        k: usize,
        free: &[[u64; 2]],
        rule: Placement,
        may: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let mut machines = self.allowed(i);
        let chunk = self.amounts(i, k);
        machines.retain(|&m| fits(chunk, free[m]) && may(m));
        let size = |m: usize| self.parts(free[m]).iter().sum::<u64>();
        machines.into_iter().min_by_key(|&m| {
            let score: i128 = match rule {
                Placement::FirstFit => 0,
                Placement::BestFit => i128::from(size(m)),
                Placement::WorstFit => -i128::from(size(m)),
                Placement::Dominant => {
                    let (d, f) = (self.shape(chunk), self.shape(free[m]));
                    (0..2).map(|r| i128::from(d[r].abs_diff(f[r]))).sum()
                }
            };
            (score, m)
        })
    }

    /// The rules by which chunks are put: first fit as well, if they are of several sizes.
    fn rules_of(&self, i: usize) -> Vec<Placement> {
        let also = (!self.uneven[i].is_empty()).then_some(Placement::FirstFit);
        std::iter::once(self.world.placement).chain(also).collect()
    }

    /// Chunk by chunk.
    fn put(&self, i: usize, free: Vec<[u64; 2]>) -> Option<Vec<usize>> {
        self.put_where(i, &free, |_| true)
    }

    /// The same on machines that may be used.
    fn put_where(&self, i: usize, free: &[[u64; 2]], may: impl Fn(usize) -> bool) -> Option<Vec<usize>> {
        self.rules_of(i).into_iter().find_map(|rule| self.put_by(i, free.to_vec(), rule, &may))
    }

    fn put_by(
        &self,
        i: usize,
        mut free: Vec<[u64; 2]>,
        rule: Placement,
        may: impl Fn(usize) -> bool,
    ) -> Option<Vec<usize>> {
        let mut on = Vec::new();
        for k in 0..self.chunks[i] {
            let is_new = |m: usize| !self.is_spread[i] || !on.contains(&m);
            let m = self.choose_machine(i, k, &free, rule, |m| may(m) && is_new(m))?;
            free[m] = minus(free[m], self.amounts(i, k));
            on.push(m);
        }
        Some(on)
    }

    /// The shadow time of the head, and what is free then beside it.
    fn reserve(&self, head: usize) -> (u64, Vec<[u64; 2]>) {
        let mut times: Vec<u64> = self.running.iter().map(|r| r.expected).collect();
        times.sort_unstable();
        for t in times {
            let mut later = self.free();
            for r in self.running.iter().filter(|r| r.expected <= t) {
                for (k, &m) in r.on.iter().enumerate() {
                    let amounts = self.amounts(r.job, k);
                    later[m] = [0, 1].map(|resource| later[m][resource] + amounts[resource]);
                }
            }
            if let Some(on) = self.put(head, later.clone()) {
                on.iter().enumerate().for_each(|(k, &m)| later[m] = minus(later[m], self.amounts(head, k)));
                return (t, later);
            }
        }
        unreachable!("the head fits on empty machines");
    }

    fn put_beside(&self, i: usize, now: u64, shadow: u64, extra: &mut Vec<[u64; 2]>) -> Option<Vec<usize>> {
        self.rules_of(i).into_iter().find_map(|rule| self.put_beside_by(i, now, shadow, extra, rule))
    }

    fn put_beside_by(
        &self,
        i: usize,
        now: u64,
        shadow: u64,
        extra: &mut Vec<[u64; 2]>,
        rule: Placement,
    ) -> Option<Vec<usize>> {
        let (mut free, mut left) = (self.free(), extra.clone());
        let mut on = Vec::new();
        for k in 0..self.chunks[i] {
            let finishes_in_time = |m: usize| now + self.expected_duration(i, m) <= shadow;
            let chunk = self.amounts(i, k);
            let is_new = |m: usize| !self.is_spread[i] || !on.contains(&m);
            let may = |m: usize| is_new(m) && (finishes_in_time(m) || fits(chunk, left[m]));
            let m = self.choose_machine(i, k, &free, rule, may)?;
            free[m] = minus(free[m], chunk);
            if !finishes_in_time(m) {
                left[m] = minus(left[m], chunk);
            }
            on.push(m);
        }
        *extra = left;
        Some(on)
    }

    fn over_limit(&self, i: usize) -> bool {
        let job = &self.world.jobs[i];
        // Throttles of arrays are no part of reservations either: where these are kept they have no effect.
        if !self.reserves_licences() && (self.lacks_licences(i) || self.is_throttled(i)) {
            return true;
        }
        let Some(limit) = self.rules(i).and_then(|q| q.max_user) else { return false };
        let same = |r: &&Runs| {
            let other = &self.world.jobs[r.job];
            other.user == job.user && self.choice(r.job).first() == self.choice(i).first()
        };
        let used: u64 = self.running.iter().filter(same).map(|r| self.world.jobs[r.job].amounts[0]).sum();
        used + job.amounts[0] > limit
    }

    /// Whether as many tasks of the array of job `i` run as may.
    fn is_throttled(&self, i: usize) -> bool {
        let Some((array, most)) = self.world.jobs[i].array.filter(|_| !self.world.is_pool) else { return false };
        let of_array = |r: &&Runs| self.world.jobs[r.job].array.is_some_and(|(other, _)| other == array);
        self.running.iter().filter(of_array).count() >= most
    }

    fn priority(&self, i: usize) -> i32 {
        self.rules(i).map_or(0, |q| q.priority)
    }

    fn key(&self, i: usize) -> u128 {
        let job = &self.world.jobs[i];
        if self.world.policy == "fifo" {
            return u128::from(job.submit);
        }
        if self.world.policy.starts_with("most cpus") {
            return u128::from(u64::MAX - job.amounts[0]);
        }
        let has = |machine: usize, r: usize| self.world.machines[self.group[machine]].has[r];
        let total = |r: usize| u128::from((0..self.has.len()).map(|machine| has(machine, r)).sum::<u64>());
        let of_job = |x: &Runs, r: usize| match self.only[x.job] {
            Some(_) => x.on.iter().map(|&machine| has(machine, r)).sum(),
            None => self.world.jobs[x.job].amounts[r],
        };
        let held = |r: usize| -> u128 {
            let own = self.running.iter().filter(|x| self.world.jobs[x.job].user == job.user);
            own.map(|x| u128::from(of_job(x, r))).sum()
        };
        // Shares over a common denominator.
        (held(0) * total(1)).max(held(1) * total(0))
    }

    /// Who goes next: the highest priority first, in it each user's first job.
    fn next(&self, out: &[usize]) -> Option<usize> {
        let here: Vec<usize> =
            self.waiting.iter().copied().filter(|&i| !out.contains(&i) && !self.over_limit(i)).collect();
        let top = here.iter().map(|&i| self.priority(i)).max()?;
        let user = |i: usize| self.world.jobs[i].user;
        let here: Vec<usize> = here.into_iter().filter(|&i| self.priority(i) == top).collect();
        let first = here.iter().copied().filter(|&i| !here.iter().any(|&k| k < i && user(k) == user(i)));
        first.min_by_key(|&i| (self.key(i), self.world.jobs[i].submit, i))
    }

    fn start(&mut self, i: usize, now: u64, on: Vec<usize>) {
        let took = on.iter().map(|&m| scale(self.world.jobs[i].run, self.speed[m])).max().unwrap();
        let estimate = self.estimate_at_start(i);
        let expected = now + on.iter().map(|&m| self.duration_by(estimate, i, m)).max().unwrap();
        self.found.starts[i] = Some(now);
        self.found.finishes[i] = Some(now + took);
        self.waiting.retain(|&w| w != i);
        self.found.machines[i] = on.clone();
        self.found.machines[i].sort_unstable();
        self.running.push(Runs { job: i, finish: now + took, expected, on });
        self.check();
    }

    /// No machine is ever over-committed (or a subtraction here would have failed).
    fn check(&self) {
        assert_eq!(self.free().len(), self.has.len());
        self.check_licences();
    }

    pub(crate) fn run(mut self) -> Found {
        let mut submitted = 0;
        loop {
            let ends = self.running.iter().map(|r| r.finish);
            let events: Vec<u64> = ends.chain(self.world.jobs.get(submitted).map(|j| j.submit)).collect();
            let planned = self.planned_events(events.is_empty());
            let Some(now) = events.into_iter().chain(planned).min() else { break };
            if let Some(settings) = self.planned_settings() {
                self.handle_planned(now, &mut submitted, settings);
                continue;
            }
            let early = self.running.iter().any(|r| r.finish == now && r.expected > now);
            self.running.retain(|r| r.finish != now);
            let before = self.waiting.clone();
            let mut new = Vec::new();
            while self.world.jobs.get(submitted).is_some_and(|j| j.submit == now) {
                if self.found.refused[submitted].is_none() {
                    self.waiting.push(submitted);
                    new.push(submitted);
                }
                submitted += 1;
            }
            match self.world.backfill {
                Backfill::Conservative => self.schedule_conservatively(now, early, before, new),
                _ => self.schedule(now),
            }
        }
        self.found
    }

    fn schedule(&mut self, now: u64) {
        let mut out: Vec<usize> = Vec::new();
        while let Some(i) = self.next(&out) {
            if let Some(on) = self.put(i, self.free()) {
                self.start(i, now, on);
                continue;
            }
            if self.world.backfill == Backfill::Easy {
                return self.backfill(now, i);
            }
            if self.world.blocking {
                return;
            }
            // The user is set aside: all of its jobs of this priority.
            let set: Vec<usize> = self.waiting.clone();
            let same =
                |&k: &usize| self.world.jobs[k].user == self.world.jobs[i].user && self.priority(k) == self.priority(i);
            out.extend(set.into_iter().filter(same));
        }
    }

    fn backfill(&mut self, now: u64, head: usize) {
        let (shadow, mut extra) = self.reserve(head);
        self.found.promised[head].get_or_insert(shadow);
        let mut out = vec![head];
        while let Some(i) = self.next(&out) {
            out.push(i);
            if let Some(on) = self.put_beside(i, now, shadow, &mut extra) {
                self.start(i, now, on);
            }
        }
    }
}
