//! Why a job of a log waited: what was full, who held it, and what would have changed the start.

use evenhand_model::Workload;

use crate::earlier_jobs::EarlierJobs;
use crate::log::{Job, Log};
use crate::observe::Observer;
use crate::replay::{HORIZON_S, Replay, Running, Waiting};
use crate::size::Size;

/// What kept a job waiting for a while.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Obstacle {
    /// It was not eligible: by a dependency, a hold or a begin time it could not have started.
    NotEligible,
    /// Too little of these resources was free, as indexes of the workload's resources.
    Resources(Vec<usize>),
    /// Enough was free, but an eligible job that was submitted before it waited too, for which too little of some resource was
    /// free.
    EarlierJobs,
    /// Enough was free for it, and for all eligible jobs that were submitted before it: something that the log does not show.
    NotInLog,
}

/// A user whose jobs ran while the job was eligible and waited.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Holder {
    /// The user.
    pub user: u32,
    /// How many of the user's jobs ran in that time.
    pub jobs: usize,
    /// The user's part of what was held of the first resource in that time.
    pub share: f64,
}

/// How the user stood when the job was submitted. A job waits here if it is eligible.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Standing {
    /// The user's jobs that ran.
    pub running: usize,
    /// The user's jobs that waited, without this one.
    pub waiting: usize,
    /// All jobs that waited.
    pub jobs_before: usize,
    /// The users whose jobs waited.
    pub users_before: usize,
    /// The user's part of the use of the first resource, which fades with [`HALF_LIFE_S`].
    pub usage_share: f64,
    /// The part that each would have if those who submitted in the four weeks before had equal parts.
    pub equal_share: f64,
}

/// Past use counts half after a week.
pub const HALF_LIFE_S: i64 = 7 * 86_400;

const ACTIVE_S: i64 = 28 * 86_400;

/// A job that was submitted otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// As it was: how well the simulation meets the log.
    Unchanged,
    /// A shorter limit, under which it still ends.
    Limit(i64),
    /// A smaller size, with which it runs longer in proportion, and asks for a longer limit if it asked for one.
    Size(i64),
}

/// When the job starts if it is submitted otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WhatIf {
    /// What is different.
    pub change: Change,
    /// The simulated start, in seconds of the log; none if it does not start within four years.
    pub start: Option<i64>,
}

/// Why a job waited.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The job, as an index of the log.
    pub job: usize,
    /// What it waited for, and how long in seconds; they add to the wait. The longest first.
    pub blocked_by: Vec<(Obstacle, i64)>,
    /// Who held the first resource while it was eligible and waited; the shares add to 1. The largest first.
    pub holders: Vec<Holder>,
}

/// The most that was in use at once of each resource, in the smallest unit of the log; no less than a job had that ended in the
/// second in which it started.
pub fn peak_use(workload: &Workload, log: &Log) -> Vec<u128> {
    let jobs = log.jobs();
    let mut events: Vec<(i64, bool, usize)> =
        jobs.iter().enumerate().flat_map(|(n, job)| [(job.start, true, n), (job.end, false, n)]).collect();
    // At one instant ends come before starts.
    events.sort_unstable();
    let mut held = vec![0i128; workload.resources().len()];
    let mut peak = vec![0u128; held.len()];
    for (_, starts, job) in events {
        for (r, amount) in workload.amounts(log.row(job)).iter().enumerate() {
            held[r] += if starts { i128::from(amount.0) } else { -i128::from(amount.0) };
            peak[r] = peak[r].max(u128::try_from(held[r]).unwrap_or(0)).max(amount.0.into());
        }
    }
    peak
}

/// Explains the waits of these jobs, which are in ascending order, at a site that has so much of each resource, in the smallest unit
/// of the log.
pub fn explain(workload: &Workload, log: &Log, capacities: &[u128], jobs: &[usize]) -> Vec<Explanation> {
    let mut observer = Observer::new(log);
    let explain = |&job: &usize| {
        observer.skip_to(job);
        let (running, waiting) = (observer.running(), observer.waiting());
        let window = Window { workload, log, capacities, job, running, waiting };
        Explanation { job, blocked_by: window.blocked_by(), holders: window.holders() }
    };
    jobs.iter().map(explain).collect()
}

/// Returns how many jobs started before one of these `jobs`, which are in ascending order, that was submitted earlier.
pub fn overtaken_by(log: &Log, jobs: &[usize]) -> usize {
    let mut asked = jobs.iter().copied().peekable();
    let mut latest = i64::MIN;
    let overtakes = |(index, job): &(usize, &Job)| {
        let overtakes = job.start < latest;
        if asked.next_if_eq(index).is_some() {
            latest = latest.max(job.start);
        }
        overtakes
    };
    log.jobs().iter().enumerate().filter(overtakes).count()
}

/// The time in which a job waited, and the state in which it began.
struct Window<'a> {
    workload: &'a Workload,
    log: &'a Log,
    capacities: &'a [u128],
    job: usize,
    running: &'a [u32],
    waiting: &'a [u32],
}

/// What happens while a job waits. At one instant ends come before starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A job ends.
    End(u32),
    /// A job starts.
    Start(u32),
    /// What is held stays as it is: a job becomes eligible, the one that is explained starts, or one starts that ends in the
    /// same second (its end would come before its start).
    Other,
}

impl Window<'_> {
    fn own(&self) -> &Job {
        &self.log.jobs()[self.job]
    }

    fn amounts(&self, job: usize) -> impl Iterator<Item = u128> + '_ {
        self.workload.amounts(self.log.row(job)).iter().map(|a| u128::from(a.0))
    }

    /// The jobs that started while this one waited, by start.
    fn started(&self) -> &[u32] {
        let (jobs, (by_start, _)) = (self.log.jobs(), self.log.orders());
        let own = self.own();
        let first = by_start.partition_point(|&j| jobs[j as usize].start < own.submit);
        let last = by_start.partition_point(|&j| jobs[j as usize].start < own.start);
        &by_start[first..last.max(first)]
    }

    fn blocked_by(&self) -> Vec<(Obstacle, i64)> {
        let (jobs, own) = (self.log.jobs(), *self.own());
        let demand: Vec<u128> = self.amounts(self.job).collect();
        let mut held = vec![0u128; demand.len()];
        for &job in self.running {
            held.iter_mut().zip(self.amounts(job as usize)).for_each(|(h, a)| *h += a);
        }
        let start = |&j: &u32| {
            let job = &jobs[j as usize];
            (job.start, if job.end > job.start { Event::Start(j) } else { Event::Other })
        };
        let mut events: Vec<(i64, Event)> = self.started().iter().map(start).collect();
        let holding = self.started().iter().filter(|&&j| jobs[j as usize].end > jobs[j as usize].start);
        let ends = self.running.iter().chain(holding).map(|&j| (jobs[j as usize].end, Event::End(j)));
        let own_eligible = self.log.eligible(self.job);
        let become_eligible = self.waiting.iter().map(|&j| self.log.eligible(j as usize)).filter(|t| *t > own_eligible);
        events.extend(ends.chain(become_eligible.map(|time| (time, Event::Other))).filter(|e| e.0 < own.start));
        events.extend([(own_eligible, Event::Other), (own.start, Event::Other)]);
        events.sort_unstable();
        let mut earlier: Option<EarlierJobs<'_>> = None;
        let mut found: Vec<(Obstacle, i64)> = Vec::new();
        let mut now = own.submit;
        for (time, event) in events {
            if time > now {
                let lacking = |r: &usize| held[*r].saturating_add(demand[*r]) > self.capacities[*r];
                let lacking: Vec<usize> = (0..demand.len()).filter(lacking).collect();
                let mut one_before_lacks = || {
                    let new = || EarlierJobs::new(self.workload, self.log, self.waiting, now);
                    earlier.get_or_insert_with(new).one_lacks(now, &held, self.capacities)
                };
                let obstacle = if now < own_eligible {
                    Obstacle::NotEligible
                } else if !lacking.is_empty() {
                    Obstacle::Resources(lacking)
                } else if one_before_lacks() {
                    Obstacle::EarlierJobs
                } else {
                    Obstacle::NotInLog
                };
                match found.iter_mut().find(|(known, _)| *known == obstacle) {
                    Some((_, seconds)) => *seconds += time - now,
                    None => found.push((obstacle, time - now)),
                }
                now = time;
            }
            match event {
                Event::Start(job) => held.iter_mut().zip(self.amounts(job as usize)).for_each(|(h, a)| *h += a),
                Event::End(job) => {
                    held.iter_mut().zip(self.amounts(job as usize)).for_each(|(h, a)| *h = h.saturating_sub(a));
                }
                Event::Other => (),
            }
        }
        found.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        found
    }

    /// Who ran while the job was eligible.
    fn holders(&self) -> Vec<Holder> {
        let (jobs, own, eligible) = (self.log.jobs(), self.own(), self.log.eligible(self.job));
        let mut by_user: Vec<(usize, f64)> = vec![(0, 0.0); self.log.users()];
        for &index in self.running.iter().chain(self.started()) {
            let job = &jobs[index as usize];
            let together = job.end.min(own.start) - job.start.max(eligible);
            if together > 0 {
                let user = &mut by_user[job.user as usize];
                *user = (user.0 + 1, user.1 + together as f64 * job.size.first() as f64);
            }
        }
        let sum: f64 = by_user.iter().map(|u| u.1).sum();
        let holder =
            |(user, &(jobs, held)): (usize, &(usize, f64))| Holder { user: user as u32, jobs, share: held / sum };
        let mut holders: Vec<Holder> = by_user.iter().enumerate().filter(|(_, u)| u.0 > 0).map(holder).collect();
        holders.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.user.cmp(&b.user)));
        holders
    }
}

/// Returns how the user of a job stood when it was submitted.
pub fn standing(log: &Log, job: usize) -> Standing {
    let mut observer = Observer::new(log);
    observer.skip_to(job);
    let (jobs, own) = (log.jobs(), log.jobs()[job]);
    let is_eligible = |job: &u32| log.eligible(*job as usize) <= own.submit;
    let waiting: Vec<u32> = observer.waiting().iter().copied().filter(is_eligible).collect();
    let (running, waiting) = (observer.running(), &waiting[..]);
    let of_user = |list: &[u32]| list.iter().filter(|&&j| jobs[j as usize].user == own.user).count();
    let mut before: Vec<u32> = waiting.iter().map(|&j| jobs[j as usize].user).collect();
    before.sort_unstable();
    before.dedup();
    let now = own.submit;
    let faded = |time: i64| libm::exp2(-((now - time) as f64) / HALF_LIFE_S as f64);
    let (mut used, mut all) = (0.0, 0.0);
    for job in jobs.iter().filter(|job| job.start < now) {
        let use_now = job.size.first() as f64 * (faded(job.end.min(now)) - faded(job.start));
        all += use_now;
        used += if job.user == own.user { use_now } else { 0.0 };
    }
    let recent = &jobs[log.first_from(now - ACTIVE_S)..=job];
    let mut active: Vec<u32> = recent.iter().map(|job| job.user).collect();
    active.sort_unstable();
    active.dedup();
    Standing {
        running: of_user(running),
        waiting: of_user(waiting),
        jobs_before: waiting.len(),
        users_before: before.len(),
        usage_share: if all > 0.0 { used / all } else { 0.0 },
        equal_share: 1.0 / active.len().max(1) as f64,
    }
}

/// How many later submissions a simulation knows.
const LATER: usize = 50_000;

/// Simulates what would have happened if a job had been submitted otherwise: with the run times and the later submissions of the log, first
/// come first served with EASY backfilling on a capacity of the first resource. First of all unchanged, then the
/// changes that let it start earlier. A job that requested no limit is not changed in its limit, and a job that is larger
/// than the capacity in nothing: there is no start to compare with.
pub fn what_if(log: &Log, capacity: i64, job: usize) -> Vec<WhatIf> {
    let mut observer = Observer::new(log);
    observer.skip_to(job);
    let own = log.jobs()[job];
    if own.size.first() > capacity {
        return Vec::new();
    }
    let mut replay = Replay::default();
    let mut simulate = |change: Change| {
        let start = start_if(log, &observer, &mut replay, capacity, job, change);
        WhatIf { change, start: Some(start).filter(|&s| s < HORIZON_S).map(|s| own.submit + s) }
    };
    let unchanged = simulate(Change::Unchanged);
    let mut found = vec![unchanged];
    let part = |amount: i64, quarters: i64| (amount * quarters).div_euclid(4);
    // The least reduction of each kind that gains something, and the one that gains most.
    let limits =
        [3, 2, 1].map(|q| part(own.limit, q)).into_iter().filter(|&limit| limit >= (own.end - own.start).max(1));
    let used = (own.end - own.start).max(1);
    let requested = log.requested_limit(job).unwrap_or(0);
    let limits = limits.chain([used]).filter(|&limit| limit < requested).map(Change::Limit).collect::<Vec<_>>();
    let sizes =
        [3, 2, 1].map(|q| part(own.size.first(), q)).into_iter().filter(|&size| size >= 1 && size < own.size.first());
    for changes in [limits, sizes.map(Change::Size).collect()] {
        let mut best = unchanged.start.unwrap_or(i64::MAX);
        let mut kept: Vec<WhatIf> = Vec::new();
        for change in changes {
            let simulated = simulate(change);
            if let Some(start) = simulated.start.filter(|&start| start < best) {
                best = start;
                kept.push(simulated);
            }
        }
        kept.dedup_by_key(|w| w.change.amount());
        let last = kept.len().saturating_sub(1);
        found.extend(kept.into_iter().enumerate().filter(|(i, _)| *i == 0 || *i == last).map(|(_, w)| w));
    }
    found
}

impl Change {
    fn amount(self) -> i64 {
        match self {
            Change::Unchanged => 0,
            Change::Limit(amount) | Change::Size(amount) => amount,
        }
    }
}

fn start_if(log: &Log, observer: &Observer<'_>, replay: &mut Replay, capacity: i64, job: usize, change: Change) -> i64 {
    let jobs = log.jobs();
    let own = jobs[job];
    let now = own.submit;
    let of_first = |job: &Job| Size::from(job.size.first());
    // As everywhere in this project, no job outlives its estimate.
    let waiting = |job: &Job| {
        let run = job.end - job.start;
        Waiting { submit: job.submit - now, size: of_first(job), run, limit: job.limit.max(run).max(1) }
    };
    replay.clear();
    for &index in observer.running() {
        let running = &jobs[index as usize];
        let end = running.end - now;
        let limit = (running.start + running.limit - now).max(end);
        replay.running.push(Running { size: of_first(running), end, limit });
    }
    replay.queue.extend(observer.waiting().iter().map(|&w| waiting(&jobs[w as usize])));
    let target = replay.queue.len();
    let mut changed = waiting(&own);
    match change {
        Change::Unchanged => (),
        Change::Limit(limit) => changed.limit = limit.max(changed.run),
        Change::Size(size) => {
            let longer = |time: i64| (i128::from(time) * i128::from(own.size.first()) / i128::from(size)) as i64;
            let run = longer(changed.run);
            // The longest run time, which the site assumes of a job without a limit, does not depend on its size.
            let limit = if log.requested_limit(job).is_some() { longer(changed.limit) } else { changed.limit.max(run) };
            changed = Waiting { size: Size::from(size), run, limit, ..changed };
        }
    }
    replay.queue.push(changed);
    replay.queue.extend(jobs[job + 1..].iter().take(LATER).map(waiting));
    replay.start_of(target, Size::from(capacity))
}
