//! Logs of a site with EASY backfilling, made by the simulator.

use evenhand_model::random::Stream;
use evenhand_model::{Capacity, Resource, Span, Task, Time, Weights, Workload, WorkloadBuilder};
use evenhand_policies::{PolicyContext, Registry};
use evenhand_simulator::{Backfill, JobOptions, Jobs, Layout, Progress, Site, UserTasks, simulate_jobs};

/// A job of a generated log, in seconds and processors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobSpec {
    pub(crate) submit: u64,
    pub(crate) size: u64,
    pub(crate) run: u64,
    pub(crate) limit: u64,
    pub(crate) user: u64,
}

fn workload(jobs: &[JobSpec], others: &[[u64; 2]], start: impl Fn(usize) -> Option<u64>) -> Workload {
    let names = ["cpu", "mem", "gpu"];
    let resources = if others.is_empty() { 1 } else { 3 };
    let mut builder = WorkloadBuilder::new(names[..resources].iter().map(|name| Resource::new(*name, "")));
    for (n, job) in jobs.iter().enumerate() {
        let [memory, gpus] = others.get(n).copied().unwrap_or_default();
        builder.push(&Task {
            submit: Time::from_secs(job.submit),
            start: start(n).map(Time::from_secs),
            duration: Span::from_secs(job.run),
            requested: Some(Span::from_secs(job.limit)),
            user: &format!("u{}", job.user),
            amounts: &[job.size, memory, gpus].map(|amount| u128::from(amount) * 1_000_000_000)[..resources],
            ..Task::default()
        });
    }
    builder.finish().unwrap()
}

/// When the simulator starts jobs that are sorted by submission, first come first served with EASY backfilling.
pub(crate) fn simulated_starts(jobs: &[JobSpec], capacity: u64) -> Vec<u64> {
    starts_in(&workload(jobs, &[], |_| None), &[capacity])
}

/// The same on a pool of three resources, where each job needs so much of the two others.
pub(crate) fn starts_on_pool(jobs: &[JobSpec], others: &[[u64; 2]], capacities: [u64; 3]) -> Vec<u64> {
    starts_in(&workload(jobs, others, |_| None), &capacities)
}

fn starts_in(w: &Workload, capacities: &[u64]) -> Vec<u64> {
    let capacities = capacities.iter().map(|&amount| amount.into()).collect();
    let capacity = Capacity::new(w.resources(), capacities).unwrap();
    let site = Site::pool(&capacity);
    let weights = Weights::equal(w.users().len());
    let mut policy = Registry::built_in().build("fifo", &PolicyContext::new(site.total(), &weights)).unwrap();
    let options = JobOptions { backfill: Backfill::Easy, ..JobOptions::default() };
    let (tasks, on_site) = (UserTasks::new(w), Jobs::new(w, &site, Layout::Auto));
    let found = simulate_jobs(w, &tasks, &site, &on_site, policy.as_mut(), options, &Progress::default()).unwrap();
    found.starts.iter().map(|ns| ns / 1_000_000_000).collect()
}

/// The jobs with their starts.
pub(crate) fn log_of(jobs: &[JobSpec], starts: &[u64]) -> Workload {
    workload(jobs, &[], |n| Some(starts[n]))
}

/// Jobs of a busy site of 64 processors: users with habits, who submit several alike jobs at a time, in the day more than at night.
pub(crate) fn busy_site(jobs: usize, seed: u64) -> Vec<JobSpec> {
    let mut random = Stream::new(seed, "busy site", 0);
    let mut out: Vec<JobSpec> = Vec::new();
    let mut now = 0;
    while out.len() < jobs {
        let night = now / 3600 % 24 < 8;
        now += random.exponential(if night { 6000.0 } else { 2300.0 }) as u64 + 1;
        let user = (random.uniform() * random.uniform() * 20.0) as u64;
        let mut habits = Stream::new(seed, "habits", user);
        let limit = [1800, 7200, 14_400, 43_200][habits.below(4) as usize];
        let used = 0.1 + 0.8 * habits.uniform();
        let size = 1 << habits.below(6);
        for n in 0..1 + random.below(4) {
            let part = (used * (0.6 + 0.6 * random.uniform())).min(1.0);
            let run = ((limit as f64 * part) as u64).max(1);
            out.push(JobSpec { submit: now + 20 * n, size, run, limit, user });
        }
    }
    out.sort_by_key(|job| job.submit);
    out
}
