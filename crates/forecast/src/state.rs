//! What is known of a log at an instant: who runs, who waits, what ended.

use crate::log::{Job, Log};
use crate::run_times::RunTimes;

/// The state of a log as its jobs are submitted, one after the other.
#[derive(Clone, Debug)]
pub(crate) struct State<'a> {
    log: &'a Log,
    /// Jobs that run.
    pub(crate) running: Vec<u32>,
    /// Jobs that wait, by submission.
    pub(crate) waiting: Vec<u32>,
    /// How much the running jobs hold.
    pub(crate) used: i64,
    /// The run times of the jobs that ended.
    pub(crate) run_times: RunTimes,
    /// What the machine can hold, as far as the log shows.
    capacity: Capacity,
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
            used: 0,
            run_times: RunTimes::default(),
            capacity: Capacity::default(),
            submitted: 0,
            started: 0,
            ended: 0,
        }
    }

    /// What the site has: as it is known, else the most that was in use in the last three weeks.
    pub(crate) fn capacity_at(&self, time: i64) -> i64 {
        self.log.capacity().unwrap_or_else(|| self.capacity.at(time))
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
                let job = by_end[self.ended];
                self.ended += 1;
                if let Some(at) = self.running.iter().position(|&j| j == job) {
                    self.running.swap_remove(at);
                }
                self.used -= jobs[job as usize].size;
                self.run_times.ended(&jobs[job as usize]);
            } else if submit == first {
                self.waiting.push(self.submitted as u32);
                self.submitted += 1;
            } else {
                let job = by_start[self.started];
                self.started += 1;
                if let Ok(at) = self.waiting.binary_search(&job) {
                    self.waiting.remove(at);
                }
                self.running.push(job);
                self.used += jobs[job as usize].size;
                self.capacity.seen(start, self.used);
                started(&jobs[job as usize]);
            }
        }
    }
}

/// The most that was in use at once, day by day.
#[derive(Clone, Debug, Default)]
pub(crate) struct Capacity(Vec<(i64, i64)>);

const DAY_S: i64 = 86_400;
/// Days over which the most that was in use counts as capacity.
const DAYS: i64 = 21;

impl Capacity {
    fn seen(&mut self, time: i64, used: i64) {
        let day = time.div_euclid(DAY_S);
        match self.0.last_mut() {
            Some((last, most)) if *last == day => *most = used.max(*most),
            _ => self.0.push((day, used)),
        }
    }

    /// The most that was in use in the last three weeks.
    pub(crate) fn at(&self, time: i64) -> i64 {
        let from = time.div_euclid(DAY_S) - DAYS;
        self.0.iter().rev().take_while(|(day, _)| *day >= from).map(|(_, most)| *most).max().unwrap_or(1)
    }
}
