//! What is known of a job when it is submitted: the queue, the replays of it, and what similar jobs waited.

use std::collections::HashMap;

use evenhand_model::random::Stream;

use crate::forest::Features;
use crate::log::{Job, Log, NONE};
use crate::replay::{Replay, Running, Waiting};
use crate::size::{RESOURCES, Size};
use crate::state::State;

/// How often the queue is replayed for each job.
pub(crate) const DRAWS: usize = 12;

const WEEK_S: i64 = 7 * 86_400;
/// From how many past weeks arrivals are drawn.
const WEEKS: u64 = 4;
/// The most future jobs in one replay.
const ARRIVALS: usize = 300;

/// What was known of a job at its submission.
#[derive(Clone, Debug)]
pub(crate) struct Observation {
    pub(crate) features: Features,
    /// The waits of the replays, sorted.
    pub(crate) replays: [i64; DRAWS],
    /// The wait if all jobs run to their limits and none arrives.
    pub(crate) plan: i64,
    /// The last two waits of the user that were known, the latest first; of anyone, for a user who has none.
    pub(crate) last_waits: [Option<i64>; 2],
}

impl Observation {
    /// The mean of the last two waits, or the last one, or 0.
    pub(crate) fn mean_of_last_two(&self) -> f64 {
        let known = self.last_waits.into_iter().flatten();
        let (n, sum) = known.fold((0, 0.0), |(n, sum), wait| (n + 1, sum + wait as f64));
        sum / f64::from(n.max(1))
    }
}

/// A log up to an instant, with what its forecasts need.
#[derive(Clone, Debug)]
pub(crate) struct Observer<'a> {
    log: &'a Log,
    state: State<'a>,
    past: Past,
    replay: Replay,
}

/// Waits that are known.
#[derive(Clone, Debug)]
struct Past {
    /// The last two of each user, and of anyone.
    users: Vec<[Option<i64>; 2]>,
    anyone: [Option<i64>; 2],
    /// The running mean of the logarithm of waits, for each queue, and for each queue and magnitude of size and limit.
    queues: HashMap<(u32, u32, u32), f32>,
}

const ANY: u32 = u32::MAX;

fn magnitude(amount: i64) -> u32 {
    amount.max(1).ilog2()
}

/// The scale on which waits are compared.
pub(crate) fn log_wait(seconds: i64) -> f32 {
    libm::log1p(seconds.max(0) as f64) as f32
}

fn ln(amount: i64) -> f32 {
    libm::log(amount.max(1) as f64) as f32
}

/// The jobs of a list that run in a pool.
fn of_pool<'a>(log: &'a Log, list: &[u32], pool: usize) -> impl Iterator<Item = &'a Job> {
    list.iter().map(|&index| &log.jobs()[index as usize]).filter(move |job| log.pool(job) == pool)
}

impl Past {
    fn started(&mut self, log: &Log, job: &Job) {
        for waits in [&mut self.users[job.user as usize], &mut self.anyone] {
            *waits = [Some(job.wait()), waits[0]];
        }
        let y = log_wait(job.wait());
        for key in Past::keys(log, job) {
            self.queues.entry(key).and_modify(|mean| *mean += (y - *mean) / 8.0).or_insert(y);
        }
    }

    fn last_waits(&self, user: u32) -> [Option<i64>; 2] {
        let own = self.users[user as usize];
        if own[0].is_some() { own } else { self.anyone }
    }

    fn keys(log: &Log, job: &Job) -> [(u32, u32, u32); 4] {
        let (size, limit) = (log.size_class(job), magnitude(job.limit));
        [(job.queue, ANY, ANY), (job.queue, size, ANY), (job.queue, size, limit), (ANY, size, limit)]
    }

    fn mean(&self, key: (u32, u32, u32)) -> f32 {
        self.queues.get(&key).copied().unwrap_or(-1.0)
    }
}

impl<'a> Observer<'a> {
    pub(crate) fn new(log: &'a Log) -> Observer<'a> {
        let past = Past { users: vec![[None; 2]; log.users() + 1], anyone: [None; 2], queues: HashMap::new() };
        Observer { log, state: State::new(log), past, replay: Replay::default() }
    }

    /// Goes to the submission of job `target`, without observing it.
    pub(crate) fn skip_to(&mut self, target: usize) {
        self.go_to(target, self.log.jobs()[target].submit);
    }

    /// Goes to the instant `now`, after the submission of the jobs before `submitted`.
    pub(crate) fn go_to(&mut self, submitted: usize, now: i64) {
        let (log, past) = (self.log, &mut self.past);
        self.state.advance_to(submitted, now, |job| past.started(log, job));
    }

    /// Returns how many jobs were submitted before the instant to which it went last.
    pub(crate) fn submitted(&self) -> usize {
        self.state.submitted()
    }

    /// Observes job `target` at its submission.
    pub(crate) fn observe(&mut self, target: usize, seed: u64) -> Observation {
        self.skip_to(target);
        self.observe_new(&self.log.jobs()[target].clone(), target, seed)
    }

    /// Observes a job that is submitted now, behind all that wait; `stream` numbers the random numbers that its replays draw.
    pub(crate) fn observe_new(&mut self, job: &Job, stream: usize, seed: u64) -> Observation {
        let plan = self.plan(job);
        let mut random = Stream::new(seed, "replays", stream as u64);
        let replays = self.replays(job, None, &mut random);
        let last_waits = self.past.last_waits(job.user);
        let features = self.features(job, plan, &replays);
        Observation { features, replays, plan, last_waits }
    }

    /// The jobs that run.
    pub(crate) fn running(&self) -> &[u32] {
        &self.state.running
    }

    /// The jobs that wait.
    pub(crate) fn waiting(&self) -> &[u32] {
        &self.state.waiting
    }

    /// Replays the queue as it stands at `now` for a job that waits in it; how long it waits from then on, sorted.
    pub(crate) fn replay_waiting(&mut self, place: usize, now: i64, seed: u64) -> [i64; DRAWS] {
        let index = self.state.waiting[place] as usize;
        let job = Job { submit: now, ..self.log.jobs()[index] };
        let mut random = Stream::new(seed, "replays", index as u64);
        self.replays(&job, Some(place), &mut random)
    }

    fn plan(&mut self, job: &Job) -> i64 {
        let pool = self.log.pool(job);
        self.planned_queue(pool, job.submit);
        let replay = &mut self.replay;
        replay.queue.push(Waiting { submit: 0, size: job.size, run: job.limit, limit: job.limit });
        replay.start_of(replay.queue.len() - 1, self.state.capacity_at(pool, job.submit))
    }

    /// Fills the replay with the queue of a pool as it stands, where all jobs run to their limits and none arrives.
    fn planned_queue(&mut self, pool: usize, now: i64) {
        let (log, replay) = (self.log, &mut self.replay);
        replay.clear();
        for running in of_pool(log, &self.state.running, pool) {
            // A job past its limit is about to be ended.
            let limit = (running.start + running.limit - now).max(1);
            replay.running.push(Running { size: running.size, end: limit, limit });
        }
        let waiting = |job: &Job| Waiting { submit: 0, size: job.size, run: job.limit, limit: job.limit };
        replay.queue.extend(of_pool(log, &self.state.waiting, pool).map(waiting));
    }

    /// Replays the queue with drawn run times and arrivals, for `job`, which is submitted now, or waits at a `place`.
    fn replays(&mut self, job: &Job, place: Option<usize>, random: &mut Stream) -> [i64; DRAWS] {
        let pool = self.log.pool(job);
        let capacity = self.state.capacity_at(pool, job.submit);
        let (log, now, replay, state) = (self.log, job.submit, &mut self.replay, &self.state);
        let law = |job: &'a Job| (job, state.run_times.law(job));
        let running: Vec<_> = of_pool(log, &state.running, pool).map(law).collect();
        let waiting: Vec<_> = of_pool(log, &state.waiting, pool).map(law).collect();
        let place = place.map(|place| of_pool(log, &state.waiting[..place], pool).count());
        let own = state.run_times.law(job);
        let first = log.jobs().first().map_or(now, |j| j.submit);
        let weeks = (((now - first) / WEEK_S) as u64).min(WEEKS);
        let mut waits = [0; DRAWS];
        for wait in &mut waits {
            replay.clear();
            for (job, law) in &running {
                let elapsed = now - job.start;
                let run = law.draw(elapsed, random);
                let limit = (job.limit - elapsed).max(1);
                replay.running.push(Running { size: job.size, end: (run - elapsed).max(1), limit });
            }
            for (job, law) in &waiting {
                let run = law.draw(-1, random);
                replay.queue.push(Waiting { submit: 0, size: job.size, run, limit: job.limit.max(run) });
            }
            let target = place.unwrap_or(replay.queue.len());
            if place.is_none() {
                let run = own.draw(-1, random);
                replay.queue.push(Waiting { submit: 0, size: job.size, run, limit: job.limit });
            }
            if weeks > 0 {
                let back = (random.below(weeks) as i64 + 1) * WEEK_S;
                let from = log.first_from(now - back + 1);
                let arrivals = log.jobs()[from..].iter().take_while(|past| past.submit < now);
                for past in arrivals.filter(|past| log.pool(past) == pool).take(ARRIVALS) {
                    // What had not ended by now is known by its limit only.
                    let run = if past.seen_ended() <= now { past.end - past.start } else { past.limit };
                    let submit = past.submit + back - now;
                    replay.queue.push(Waiting { submit, size: past.size, run, limit: past.limit });
                }
            }
            *wait = replay.start_of(target, capacity);
        }
        waits.sort_unstable();
        waits
    }

    fn features(&self, job: &Job, plan: i64, replays: &[i64; DRAWS]) -> Features {
        let (log, jobs, now, state) = (self.log, self.log.jobs(), job.submit, &self.state);
        let pool = log.pool(job);
        let capacity = state.capacity_at(pool, now);
        let last_waits = self.past.users[job.user as usize];
        let mut own_waiting = 0;
        let (mut own_longest, mut own_shortest) = (-1, -1);
        let mut alike_longest = -1;
        let mut queue_longest = -1;
        let mut in_queue = 0;
        let mut work = [0.0; RESOURCES];
        for &w in &state.waiting {
            let other = &jobs[w as usize];
            let elapsed = now - other.submit;
            if log.pool(other) == pool {
                let limit = other.limit as f64;
                work.iter_mut().zip(other.size.amounts()).for_each(|(sum, amount)| *sum += amount as f64 * limit);
            }
            if other.user == job.user {
                own_waiting += 1;
                own_longest = own_longest.max(elapsed);
                own_shortest = elapsed;
            }
            if other.queue == job.queue {
                in_queue += 1;
                queue_longest = queue_longest.max(elapsed);
                if other.size.fits(job.size) && other.limit <= job.limit {
                    alike_longest = alike_longest.max(elapsed);
                }
            }
        }
        let running_own = state.running.iter().map(|&r| &jobs[r as usize]).filter(|r| r.user == job.user);
        let running_own = running_own.filter(|r| log.pool(r) == pool).fold(Size::ZERO, |sum, r| sum.plus(r.size));
        let free = capacity.minus(state.used[pool]).amounts();
        let (has, running_own) = (capacity.amounts().map(|amount| amount.max(1)), running_own.amounts());
        // Of the resources that the job needs the one that is fullest, most waited for, or most its user's.
        let of_needed = |part: &dyn Fn(usize) -> f32, worse: fn(f32, f32) -> f32| {
            job.size.needed().map(|(r, _)| part(r)).reduce(worse).unwrap_or_default()
        };
        let or_none = |wait: Option<i64>| wait.map_or(-1.0, log_wait);
        let elapsed = |wait: i64| if wait < 0 { -1.0 } else { log_wait(wait) };
        let hours = job.size.needed().map(|(r, _)| (work[r] / has[r] as f64) as i64).max().unwrap_or_default();
        let past = Past::keys(log, job).map(|key| self.past.mean(key));
        [
            log_wait(replays[DRAWS / 2]),
            log_wait(replays[DRAWS / 10]),
            log_wait(replays[DRAWS - 1 - DRAWS / 10]),
            log_wait(plan),
            or_none(last_waits[0]),
            or_none(last_waits[1]),
            elapsed(own_longest),
            elapsed(own_shortest),
            own_waiting as f32,
            ln(job.size.as_first(capacity)),
            ln(job.limit),
            past[0],
            past[1],
            past[2],
            past[3],
            of_needed(&|r| free[r] as f32 / has[r] as f32, f32::min),
            log_wait(hours),
            elapsed(alike_longest),
            elapsed(queue_longest),
            in_queue as f32,
            if job.queue == NONE { -1.0 } else { job.queue as f32 },
            of_needed(&|r| running_own[r] as f32 / has[r] as f32, f32::max),
        ]
    }
}
