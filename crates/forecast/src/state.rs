//! What is known of a log at an instant: who runs, who waits, what ended.

use crate::log::{Job, Log};
use crate::run_times::RunTimes;
use crate::size::Size;

/// The state of a log as its jobs are submitted, one after the other.
#[derive(Clone, Debug)]
pub(crate) struct State<'a> {
    log: &'a Log,
    /// Jobs that run.
    pub(crate) running: Vec<u32>,
    /// Jobs that wait, by submission.
    pub(crate) waiting: Vec<u32>,
    /// How much the running jobs of each pool hold.
    pub(crate) used: Vec<Size>,
    /// The run times of the jobs that ended.
    pub(crate) run_times: RunTimes,
    /// What each pool can hold, as far as the log shows.
    capacities: Vec<Capacity>,
    submitted: usize,
    started: usize,
    ended: usize,
}

impl<'a> State<'a> {
    pub(crate) fn new(log: &'a Log) -> State<'a> {
        State {
            log,
            running: Vec::new(),
            waiting: Vec::new(),
            used: vec![Size::ZERO; log.pools()],
            run_times: RunTimes::default(),
            capacities: vec![Capacity::default(); log.pools()],
            submitted: 0,
            started: 0,
            ended: 0,
        }
    }

    /// Returns how many jobs were submitted.
    pub(crate) fn submitted(&self) -> usize {
        self.submitted
    }

    /// What a pool has: as it is known, else the most that was in use in the last three weeks.
    pub(crate) fn capacity_at(&self, pool: usize, time: i64) -> Size {
        self.log.capacity(pool).unwrap_or_else(|| self.capacities[pool].at(time))
    }

    /// Goes to the instant `now`, after the submission of the jobs before `submitted`: all that ended by then has
    /// ended, and what started before that instant runs.
    pub(crate) fn advance_to(&mut self, submitted: usize, now: i64, mut started: impl FnMut(&Job)) {
        let jobs = self.log.jobs();
        let (by_start, by_end) = self.log.orders();
        loop {
            // The next event of each kind.
            let submit = if self.submitted < submitted { jobs[self.submitted].submit } else { i64::MAX };
            let start =
                by_start.get(self.started).map(|&j| jobs[j as usize].start).filter(|&t| t < now).unwrap_or(i64::MAX);
            let end = by_end
                .get(self.ended)
                .map(|&j| jobs[j as usize].seen_ended())
                .filter(|&t| t <= now)
                .unwrap_or(i64::MAX);
            let first = submit.min(start).min(end);
            if first == i64::MAX {
                return;
            }
            if end == first {
                let index = by_end[self.ended];
                self.ended += 1;
                if let Some(at) = self.running.iter().position(|&j| j == index) {
                    self.running.swap_remove(at);
                }
                let job = &jobs[index as usize];
                let used = &mut self.used[self.log.pool(job)];
                *used = used.minus(job.size);
                self.run_times.ended(job);
            } else if submit == first {
                self.waiting.push(self.submitted as u32);
                self.submitted += 1;
            } else {
                let index = by_start[self.started];
                self.started += 1;
                if let Ok(at) = self.waiting.binary_search(&index) {
                    self.waiting.remove(at);
                }
                self.running.push(index);
                let job = &jobs[index as usize];
                let pool = self.log.pool(job);
                self.used[pool] = self.used[pool].plus(job.size);
                self.capacities[pool].seen(start, self.used[pool]);
                started(job);
            }
        }
    }
}

/// The most that was in use at once, day by day.
#[derive(Clone, Debug, Default)]
pub(crate) struct Capacity(Vec<(i64, Size)>);

const DAY_S: i64 = 86_400;
/// Days over which the most that was in use counts as capacity.
const DAYS: i64 = 21;

impl Capacity {
    fn seen(&mut self, time: i64, used: Size) {
        let day = time.div_euclid(DAY_S);
        match self.0.last_mut() {
            Some((last, most)) if *last == day => *most = used.larger(*most),
            _ => self.0.push((day, used)),
        }
    }

    /// The most that was in use in the last three weeks.
    pub(crate) fn at(&self, time: i64) -> Size {
        let from = time.div_euclid(DAY_S) - DAYS;
        let latest = self.0.iter().rev().take_while(|(day, _)| *day >= from).map(|(_, most)| *most);
        latest.reduce(Size::larger).unwrap_or(Size::from(1))
    }
}
