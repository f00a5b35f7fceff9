//! The replay of a queue until one job starts: a pool of several resources, first come first served, with EASY backfilling.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use crate::pending_blocks::PendingBlocks;
use crate::size::Size;

/// A job that runs when the replay begins, at the instant 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Running {
    /// How much it holds.
    pub size: Size,
    /// When it ends.
    pub end: i64,
    /// When its limit is reached, which is when the scheduler expects it to end.
    pub limit: i64,
}

/// A job that waits at the instant 0, or that will be submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// When it is submitted; 0 or less if it waits already.
    pub submit: i64,
    /// How much it needs.
    pub size: Size,
    /// How long it runs.
    pub run: i64,
    /// Its limit, by which the scheduler plans.
    pub limit: i64,
}

/// A queue to replay from the instant 0 on.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    /// Jobs that run at the instant 0.
    pub running: Vec<Running>,
    /// Jobs that wait at the instant 0, in their order, and behind them those that will be submitted, by time.
    pub queue: Vec<Waiting>,
    schedule: Schedule,
}

/// The longest time that is replayed: four years.
pub const HORIZON_S: i64 = 4 * 366 * 86_400;

impl Replay {
    /// Empties the queue, keeping memory.
    pub fn clear(&mut self) {
        self.running.clear();
        self.queue.clear();
    }

    /// Returns when job `target` of the queue starts on `capacity`; [`HORIZON_S`] if it does not start before.
    ///
    /// At one instant jobs end, then are submitted, then start. The head of the queue that does not fit gets a
    /// reservation at the instant when enough jobs have reached their limits; a job behind it starts if it fits and
    /// either reaches its limit by then or takes only what the reservation leaves. Jobs that need more of a resource than the
    /// capacity are left out, but the capacity is at least what the target needs.
    pub fn start_of(&mut self, target: usize, capacity: Size) -> i64 {
        let Replay { running, queue, schedule } = self;
        let capacity = capacity.larger(queue[target].size);
        schedule.begin(running, capacity);
        let (mut next, mut now) = (0, 0);
        // Jobs before this index were examined since a job ended: they cannot start now.
        let mut examined = 0;
        loop {
            while let Some(job) = queue.get(next).filter(|job| job.submit <= now) {
                if job.size.fits(capacity) {
                    schedule.pending.push(next, job);
                }
                next += 1;
            }
            if schedule.start_jobs(queue, target, now, examined) {
                return now;
            }
            let submission = queue.get(next).map_or(HORIZON_S, |job| job.submit);
            now = schedule.next_end().unwrap_or(HORIZON_S).min(submission);
            if now >= HORIZON_S {
                return HORIZON_S;
            }
            examined = if schedule.end_jobs(now) { 0 } else { next };
        }
    }
}

/// The state of a replay.
#[derive(Clone, Debug, Default)]
struct Schedule {
    free: Size,
    /// All that run or ran.
    active: Vec<Running>,
    /// Ends and indexes of those that run, earliest first.
    ends: BinaryHeap<Reverse<(i64, u32)>>,
    /// Limits and indexes of those that run.
    limits: BTreeSet<(i64, u32)>,
    pending: PendingBlocks,
}

impl Schedule {
    fn begin(&mut self, running: &[Running], capacity: Size) {
        self.pending.clear();
        self.active.clear();
        self.active.extend_from_slice(running);
        self.free = running.iter().fold(capacity, |free, job| free.minus(job.size));
        let indexed = || running.iter().zip(0..);
        self.ends.clear();
        self.ends.extend(indexed().map(|(r, i)| Reverse((r.end, i))));
        self.limits.clear();
        self.limits.extend(indexed().map(|(r, i)| (r.limit, i)));
    }

    /// Starts what starts now, except for jobs before the index `examined`. Returns whether the target starts, and then
    /// stops. O(jobs / 64 + 64 times the jobs that start).
    fn start_jobs(&mut self, queue: &[Waiting], target: usize, now: i64, examined: usize) -> bool {
        let head = loop {
            let Some(head) = self.pending.head() else { return false };
            if head < examined || !queue[head].size.fits(self.free) {
                break head;
            }
            if head == target {
                return true;
            }
            self.start_waiting(head, queue, now);
        };
        let mut from = examined.max(head + 1);
        // Where nothing fits, the reservation need not be known.
        if self.pending.next_that(from, queue, |size, _| size.fits(self.free)).is_none() {
            return false;
        }
        let (shadow, mut extra) = self.reservation(queue[head].size, now);
        let longest = shadow - now;
        loop {
            let fits = |size: Size, limit: i64| size.fits(self.free) && (limit <= longest || size.fits(extra));
            let Some(at) = self.pending.next_that(from, queue, fits) else { return false };
            if at == target {
                return true;
            }
            if queue[at].limit > longest {
                extra = extra.minus(queue[at].size);
            }
            self.start_waiting(at, queue, now);
            from = at + 1;
        }
    }

    fn start_waiting(&mut self, index: usize, queue: &[Waiting], now: i64) {
        self.pending.remove(index, queue);
        self.start(&queue[index], now);
    }

    fn start(&mut self, job: &Waiting, now: i64) {
        let index = self.active.len() as u32;
        let active = Running { size: job.size, end: now + job.run, limit: now + job.limit };
        self.free = self.free.minus(job.size);
        self.active.push(active);
        self.ends.push(Reverse((active.end, index)));
        self.limits.insert((active.limit, index));
    }

    /// Returns when `size` is free if all jobs run to their limits, and how much more is free then.
    fn reservation(&self, size: Size, now: i64) -> (i64, Size) {
        let mut free = self.free;
        let mut latest = self.limits.iter().peekable();
        while let Some(&(limit, index)) = latest.next() {
            free = free.plus(self.active[index as usize].size);
            let limit = limit.max(now);
            if size.fits(free) && latest.peek().is_none_or(|later| later.0 > limit) {
                return (limit, free.minus(size));
            }
        }
        (HORIZON_S, Size::ZERO)
    }

    fn next_end(&self) -> Option<i64> {
        self.ends.peek().map(|Reverse(end)| end.0)
    }

    /// Ends what ends by now. Returns whether a job did.
    fn end_jobs(&mut self, now: i64) -> bool {
        let running = self.ends.len();
        while let Some(&Reverse((_, index))) = self.ends.peek().filter(|Reverse(end)| end.0 <= now) {
            self.ends.pop();
            let job = self.active[index as usize];
            self.free = self.free.plus(job.size);
            self.limits.remove(&(job.limit, index));
        }
        self.ends.len() < running
    }
}
