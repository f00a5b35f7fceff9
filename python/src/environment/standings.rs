//! Users' standings during an episode, and the metrics of the tasks that started.

use evenhand_model::{Amount, Capacity, Time, UserId, Workload};
use evenhand_policies::{Holdings, Job};
use pyo3::prelude::*;

use super::Snapshot;

/// The shortest run time that a bounded slowdown counts with, in seconds, as in studies.
const SHORTEST_RUN_S: f64 = 10.0;

/// A metric's name in `summary.json`, and the metric.
type Column = (&'static str, fn(&Metrics) -> f64);

/// Metrics of the tasks that started so far, by their names in `summary.json`.
#[derive(Clone, Copy, Debug, Default, IntoPyObject)]
pub(crate) struct Metrics {
    mean_wait_s: f64,
    users_mean_wait_s: f64,
    mean_bounded_slowdown: f64,
    jain_wait: f64,
    max_mean_wait_s: f64,
    started: u64,
}

impl Metrics {
    /// The metrics by name, for arrays of many.
    pub(crate) const COLUMNS: [Column; 6] = [
        ("mean_wait_s", |m| m.mean_wait_s),
        ("users_mean_wait_s", |m| m.users_mean_wait_s),
        ("mean_bounded_slowdown", |m| m.mean_bounded_slowdown),
        ("jain_wait", |m| m.jain_wait),
        ("max_mean_wait_s", |m| m.max_mean_wait_s),
        ("started", |m| m.started as f64),
    ];
}

pub(crate) struct Standings {
    holdings: Holdings,
    width: usize,
    waiting: Vec<UserId>,
    first: Vec<Option<First>>,
    /// What is not held, of each resource, over the capacity.
    held: Vec<u64>,
    /// Accepted tasks that are not submitted yet, the next one last.
    upcoming: Vec<(Time, UserId)>,
    queued: Vec<i64>,
    /// Run times of each user's accepted tasks, the next to start last.
    run_s: Vec<Vec<f64>>,
    waits: Vec<(f64, u64)>,
    total_wait_s: f64,
    total_slowdown: f64,
    started: u64,
}

struct First {
    submitted: Time,
    shares: Vec<f64>,
}

impl Standings {
    pub(crate) fn new(workload: &Workload, capacity: &Capacity) -> Standings {
        let users = workload.users().len();
        let c = workload.columns();
        let mut upcoming = Vec::new();
        let mut run_s = vec![Vec::new(); users];
        for row in (0..workload.len()).rev() {
            if capacity.admits(workload.amounts(row)) {
                upcoming.push((c.submit[row], c.user[row]));
                run_s[c.user[row].index()].push(c.duration[row].secs_f64());
            }
        }
        Standings {
            holdings: Holdings::new(capacity, users),
            width: capacity.width(),
            waiting: Vec::new(),
            first: (0..users).map(|_| None).collect(),
            held: vec![0; capacity.width()],
            upcoming,
            queued: vec![0; users],
            run_s,
            waits: vec![(0.0, 0); users],
            total_wait_s: 0.0,
            total_slowdown: 0.0,
            started: 0,
        }
    }

    /// Returns the users who wait, by number.
    pub(crate) fn waiting(&self) -> &[UserId] {
        &self.waiting
    }

    pub(crate) fn set_first_pending(&mut self, user: UserId, first: Option<&Job<'_>>) {
        let position = self.waiting.binary_search(&user);
        match (first, position) {
            (Some(_), Err(at)) => self.waiting.insert(at, user),
            (None, Ok(at)) => _ = self.waiting.remove(at),
            _ => {}
        }
        self.first[user.index()] = first.map(|job| First {
            submitted: job.place.submitted,
            shares: job.demand.iter().enumerate().map(|(r, d)| self.holdings.share(r, d.0)).collect(),
        });
    }

    pub(crate) fn started(&mut self, now: Time, job: &Job<'_>) {
        self.holdings.add(job.user, job.demand);
        self.hold(job.demand, true);
        let user = job.user.index();
        self.queued[user] -= 1;
        let wait_s = (now - job.place.submitted).secs_f64();
        let run_s = self.run_s[user].pop().unwrap_or(0.0);
        self.waits[user].0 += wait_s;
        self.waits[user].1 += 1;
        self.total_wait_s += wait_s;
        self.total_slowdown += ((wait_s + run_s) / run_s.max(SHORTEST_RUN_S)).max(1.0);
        self.started += 1;
    }

    pub(crate) fn finished(&mut self, job: &Job<'_>) {
        self.holdings.remove(job.user, job.demand);
        self.hold(job.demand, false);
    }

    fn hold(&mut self, demand: &[Amount], more: bool) {
        for (held, d) in self.held.iter_mut().zip(demand) {
            *held = if more { *held + d.0 } else { *held - d.0 };
        }
    }

    /// Returns what a learner sees at `now`.
    pub(crate) fn snapshot(&mut self, now: Time, is_end: bool) -> Snapshot {
        while let Some((submitted, user)) = self.upcoming.last().copied().filter(|(submitted, _)| *submitted <= now) {
            debug_assert!(submitted <= now);
            self.queued[user.index()] += 1;
            self.upcoming.pop();
        }
        let users = self.first.len();
        let mut shares = Vec::with_capacity(users * self.width);
        let mut demand = Vec::with_capacity(users * self.width);
        for user in 0..users {
            let row = self.holdings.row(UserId(user as u32)).iter().enumerate();
            shares.extend(row.map(|(r, held)| self.holdings.share(r, *held).min(1.0)));
            match &self.first[user] {
                Some(first) => demand.extend(first.shares.iter().map(|share| share.min(1.0))),
                None => demand.resize(demand.len() + self.width, 0.0),
            }
        }
        let age = |first: &Option<First>| first.as_ref().map_or(0.0, |first| (now - first.submitted).secs_f64());
        Snapshot {
            now_s: now.secs_f64(),
            is_end,
            width: self.width,
            waiting: self.first.iter().map(|first| i8::from(first.is_some())).collect(),
            shares,
            demand,
            age_s: self.first.iter().map(age).collect(),
            queued: self.queued.clone(),
            mean_wait_s: self.waits.iter().map(|(sum, n)| if *n == 0 { 0.0 } else { sum / *n as f64 }).collect(),
            free: self.held.iter().enumerate().map(|(r, h)| (1.0 - self.holdings.share(r, *h)).max(0.0)).collect(),
            metrics: self.metrics(),
        }
    }

    fn metrics(&self) -> Metrics {
        let means: Vec<f64> = self.waits.iter().filter(|(_, n)| *n > 0).map(|(sum, n)| sum / *n as f64).collect();
        let over = |sum: f64, n: f64| if n == 0.0 { 0.0 } else { sum / n };
        let (sum, squares): (f64, f64) = (means.iter().sum(), means.iter().map(|m| m * m).sum());
        let (tasks, users) = (self.started as f64, means.len() as f64);
        Metrics {
            mean_wait_s: over(self.total_wait_s, tasks),
            users_mean_wait_s: over(sum, users),
            mean_bounded_slowdown: over(self.total_slowdown, tasks),
            jain_wait: if squares == 0.0 { 1.0 } else { sum * sum / (users * squares) },
            max_mean_wait_s: means.iter().copied().fold(0.0, f64::max),
            started: self.started,
        }
    }
}
