//! EASY backfilling as other simulators have it, each rule as its program states it, on one pool of processors. Slow and
//! plain: what is compared is the rule.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// A job; times in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub(crate) submit: u64,
    pub(crate) run: u64,
    pub(crate) processors: u32,
    /// The requested wall time, at least the run time.
    pub(crate) limit: u64,
}

/// A scheduler: which jobs start at `now`, after these have ended and those have come.
pub(crate) trait Rule {
    fn step(&mut self, jobs: &[Job], now: u64, ended: &[usize], submitted: &[usize]) -> Vec<usize>;
}

/// Which events a scheduler sees at once.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Calls {
    /// All of an instant.
    AnInstant,
    /// Each event, ends before submissions.
    AnEvent,
}

/// Returns the wait of each job.
pub(crate) fn waits(jobs: &[Job], calls: Calls, rule: &mut dyn Rule) -> Vec<u64> {
    let (mut waits, mut next) = (vec![u64::MAX; jobs.len()], 0);
    let mut ends = BinaryHeap::new();
    // Ends of one instant come in the order of their starts.
    let mut starts = 0u64;
    while next < jobs.len() || !ends.is_empty() {
        let first_end = ends.peek().map_or(u64::MAX, |Reverse((end, ..)): &Reverse<(u64, u64, usize)>| *end);
        let now = first_end.min(jobs.get(next).map_or(u64::MAX, |job| job.submit));
        let mut ended = Vec::new();
        while let Some(Reverse((_, _, job))) = ends.peek().copied().filter(|Reverse((end, ..))| *end == now) {
            ends.pop();
            ended.push(job);
        }
        let from = next;
        next += jobs[from..].iter().take_while(|job| job.submit == now).count();
        let submitted: Vec<usize> = (from..next).collect();
        let calls: Vec<(&[usize], &[usize])> = match calls {
            Calls::AnInstant => vec![(&ended, &submitted)],
            Calls::AnEvent => {
                ended.chunks(1).map(|e| (e, &[][..])).chain(submitted.chunks(1).map(|s| (&[][..], s))).collect()
            }
        };
        for (ended, submitted) in calls {
            for job in rule.step(jobs, now, ended, submitted) {
                waits[job] = now - jobs[job].submit;
                ends.push(Reverse((now + jobs[job].run, starts, job)));
                starts += 1;
            }
        }
    }
    waits
}

/// A profile of free processors: from each time on so many are free, until the next.
struct Profile(Vec<(u64, u32)>);

impl Profile {
    fn new(now: u64, free: u32, ends: impl Iterator<Item = (u64, u32)>) -> Profile {
        let mut freed: BTreeMap<u64, u32> = BTreeMap::new();
        ends.for_each(|(end, processors)| *freed.entry(end.max(now)).or_default() += processors);
        let mut steps = vec![(now, free)];
        for (end, processors) in freed {
            let free = steps.last().map_or(0, |(_, free)| *free) + processors;
            steps.push((end, free));
        }
        Profile(steps)
    }

    /// Returns whether as many are free from step `at` on for so long.
    fn fits(&self, at: usize, processors: u32, length: u64) -> bool {
        let end = self.0[at].0 + length;
        self.0[at..].iter().take_while(|(time, _)| *time < end).all(|(_, free)| processors <= *free)
    }

    fn take(&mut self, at: usize, processors: u32, length: u64, all: u32) {
        let end = self.0[at].0 + length;
        let until = at + self.0[at..].iter().take_while(|(time, _)| *time < end).count();
        match self.0.get(until) {
            None => self.0.push((end, all)),
            Some((time, _)) if *time > end => self.0.insert(until, (end, self.0[until - 1].1)),
            Some(_) => {}
        }
        self.0[at..until].iter_mut().for_each(|(_, free)| *free -= processors);
    }
}

/// The queue, and the ends that running jobs are expected to have.
struct State {
    queue: Vec<usize>,
    running: BTreeMap<usize, u64>,
    all: u32,
    free: u32,
}

impl State {
    fn new(processors: u32) -> State {
        State { queue: Vec::new(), running: BTreeMap::new(), all: processors, free: processors }
    }

    fn update(&mut self, jobs: &[Job], ended: &[usize], submitted: &[usize]) {
        for job in ended {
            self.free += jobs[*job].processors;
            self.running.remove(job);
        }
        self.queue.extend(submitted);
    }

    fn start(&mut self, jobs: &[Job], job: usize, now: u64) {
        self.free -= jobs[job].processors;
        self.running.insert(job, now + jobs[job].limit);
    }

    /// Starts the first jobs of the queue until one does not fit.
    fn start_first(&mut self, jobs: &[Job], now: u64) -> Vec<usize> {
        let mut started = Vec::new();
        while let Some(first) = self.queue.first().copied().filter(|job| jobs[*job].processors <= self.free) {
            self.queue.remove(0);
            self.start(jobs, first, now);
            started.push(first);
        }
        started
    }

    /// The profile with the first job's reservation; jobs that wait are planned with the length that `length` states.
    fn profile(&self, jobs: &[Job], now: u64, length: impl Fn(&Job) -> u64) -> Profile {
        let ends = self.running.iter().map(|(job, end)| (*end, jobs[*job].processors));
        let mut profile = Profile::new(now, self.free, ends);
        let first = &jobs[self.queue[0]];
        let fits = |at: &usize| profile.fits(*at, first.processors, length(first));
        let at = (0..profile.0.len()).find(fits).expect("all processors are free in the end");
        profile.take(at, first.processors, length(first), self.all);
        profile
    }

    fn backfill(&mut self, jobs: &[Job], now: u64, length: impl Fn(&Job) -> u64) -> Vec<usize> {
        if self.queue.is_empty() {
            return Vec::new();
        }
        let mut profile = self.profile(jobs, now, &length);
        let mut started = Vec::new();
        let queue = std::mem::take(&mut self.queue);
        for job in queue[1..].iter().copied() {
            let of = &jobs[job];
            if of.processors <= self.free && profile.fits(0, of.processors, length(of)) {
                profile.take(0, of.processors, length(of), self.all);
                self.start(jobs, job, now);
                started.push(job);
            }
        }
        self.queue = queue.into_iter().filter(|job| !started.contains(job)).collect();
        started
    }
}

/// EASY with a reservation for the first job that is planned anew at each event.
pub(crate) struct Reserved {
    state: State,
    /// How long a job that waits is planned to run. Jobs that run are planned with their limits.
    planned: fn(&Job) -> u64,
}

impl Reserved {
    /// All jobs are planned with their limits, as Mu'alem and Feitelson (2001) state it, and as in pyss and evenhand.
    pub(crate) fn by_limits(processors: u32) -> Reserved {
        Reserved { state: State::new(processors), planned: |job| job.limit }
    }

    /// CQSim (`Backfill.py`, `Cqsim_sim.py`): jobs that wait are planned with their true run times.
    pub(crate) fn by_true_run_times(processors: u32) -> Reserved {
        Reserved { state: State::new(processors), planned: |job| job.run }
    }
}

impl Rule for Reserved {
    fn step(&mut self, jobs: &[Job], now: u64, ended: &[usize], submitted: &[usize]) -> Vec<usize> {
        self.state.update(jobs, ended, submitted);
        let mut started = self.state.start_first(jobs, now);
        started.extend(self.state.backfill(jobs, now, self.planned));
        started
    }
}

/// Batsim's `easy_bf_fast`: the first job's start is planned once, when it becomes the first, and not again when jobs end
/// early. Another job starts if it ends before; processors that the first job leaves free are not used.
pub(crate) struct PlannedOnce {
    state: State,
    first: Option<(usize, u64)>,
}

impl PlannedOnce {
    pub(crate) fn new(processors: u32) -> PlannedOnce {
        PlannedOnce { state: State::new(processors), first: None }
    }

    fn becomes_first(&mut self, jobs: &[Job], job: usize) {
        let mut ends: Vec<(u64, usize)> = self.state.running.iter().map(|(job, end)| (*end, *job)).collect();
        ends.sort_unstable();
        let mut free = self.state.free;
        let enough = ends.iter().find(|(_, ends)| {
            free += jobs[*ends].processors;
            free >= jobs[job].processors
        });
        self.first = enough.map(|(end, _)| (job, *end));
    }

    fn may_start(&self, job: &Job, now: u64) -> bool {
        job.processors <= self.state.free && self.first.is_none_or(|(_, start)| now + job.limit <= start)
    }
}

impl Rule for PlannedOnce {
    fn step(&mut self, jobs: &[Job], now: u64, ended: &[usize], submitted: &[usize]) -> Vec<usize> {
        self.state.update(jobs, ended, &[]);
        let mut started = Vec::new();
        if let Some((first, _)) = self.first.filter(|_| !ended.is_empty()) {
            if jobs[first].processors <= self.state.free {
                self.first = None;
                self.state.start(jobs, first, now);
                started.push(first);
                started.extend(self.state.start_first(jobs, now));
                if !self.state.queue.is_empty() {
                    let first = self.state.queue.remove(0);
                    self.becomes_first(jobs, first);
                }
            }
            for job in std::mem::take(&mut self.state.queue) {
                if self.may_start(&jobs[job], now) {
                    self.state.start(jobs, job, now);
                    started.push(job);
                } else {
                    self.state.queue.push(job);
                }
            }
        }
        for job in submitted.iter().copied() {
            if self.may_start(&jobs[job], now) {
                self.state.start(jobs, job, now);
                started.push(job);
            } else if self.first.is_none() {
                self.becomes_first(jobs, job);
            } else {
                self.state.queue.push(job);
            }
        }
        started
    }
}

/// Batsim's `easy_bf`: a plan of named processors. The first job keeps its processors in the plan until one is freed; only
/// then the whole queue is looked at, otherwise only new jobs.
pub(crate) struct NamedProcessors {
    queue: Vec<usize>,
    /// The processors of each job that runs or is planned, from when to when.
    plan: BTreeMap<usize, (u128, u64, u64)>,
    all: u128,
}

impl NamedProcessors {
    pub(crate) fn new(processors: u32) -> NamedProcessors {
        NamedProcessors { queue: Vec::new(), plan: BTreeMap::new(), all: (1 << processors) - 1 }
    }

    fn free_between(&self, from: u64, to: u64) -> u128 {
        let held = self.plan.values().filter(|(_, begin, end)| *begin < to && *end > from);
        self.all & !held.fold(0, |held, (processors, ..)| held | processors)
    }

    fn free_now(&self, now: u64) -> u32 {
        self.free_between(now, now + 1).count_ones()
    }

    /// Plans a job as early as possible, on the first free processors. Returns whether it starts now.
    fn plan_job(&mut self, jobs: &[Job], job: usize, now: u64) -> bool {
        let times = self.plan.values().flat_map(|(_, begin, end)| [*begin, *end]).filter(|time| *time > now);
        let times: BTreeSet<u64> = times.chain([now]).collect();
        let of = &jobs[job];
        for begin in times {
            // Batsim's wall times were one second longer.
            let end = begin + of.limit + 1;
            let free = self.free_between(begin, end);
            if free.count_ones() >= of.processors {
                let (mut left, mut chosen) = (free, 0);
                for _ in 0..of.processors {
                    let lowest = left & left.wrapping_neg();
                    left ^= lowest;
                    chosen |= lowest;
                }
                self.plan.insert(job, (chosen, begin, end));
                return begin == now;
            }
        }
        false
    }
}

impl Rule for NamedProcessors {
    fn step(&mut self, jobs: &[Job], now: u64, ended: &[usize], submitted: &[usize]) -> Vec<usize> {
        let before = self.queue.first().copied();
        for job in ended {
            self.plan.remove(job);
        }
        self.queue.extend(submitted);
        let mut started = Vec::new();
        let mut first = self.queue.first().copied();
        if first != before {
            while let Some(job) = first.filter(|job| self.plan_job(jobs, *job, now)) {
                started.push(job);
                self.queue.remove(0);
                first = self.queue.first().copied();
            }
        }
        if ended.is_empty() {
            for job in submitted.iter().copied() {
                if Some(job) == first || started.contains(&job) || jobs[job].processors > self.free_now(now) {
                    continue;
                }
                match self.plan_job(jobs, job, now) {
                    true => started.push(job),
                    false => drop(self.plan.remove(&job)),
                }
            }
        } else if self.free_now(now) > 0 {
            for job in self.queue.clone() {
                self.plan.remove(&job);
                let is_first = Some(job) == first;
                if !is_first && jobs[job].processors > self.free_now(now) {
                    continue;
                }
                if self.plan_job(jobs, job, now) {
                    started.push(job);
                    if is_first {
                        first = self.queue.iter().copied().find(|other| !started.contains(other));
                    }
                } else if !is_first {
                    self.plan.remove(&job);
                }
            }
        }
        self.queue.retain(|job| !started.contains(job));
        started
    }
}
