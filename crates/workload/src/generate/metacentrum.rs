//! Generates workloads that resemble MetaCentrum: CERIT-SC, server wagap, January to March 2013 (Klusáček, in the data
//! sets of the Alea simulator).
//!
//! Calibrated on its 17,900 jobs of 75 users over 89 days. The generator reproduces jobs per user; the queues with
//! their limits of wall time and, for each queue, run times, processors and memory; arrays of similar jobs that are
//! submitted together; and few users with most of the processor time.

use evenhand_model::{Batch, Columns, DemandId, Nano, Resource, Span, Time, UserId, Workload, WorkloadBuilder};
use rayon::prelude::*;

use super::arrivals::{ArrivalProfile, SubmissionPattern, submissions};
use super::quantile_function::{QuantileFunction, tasks_per_user};
use super::{GenerateOptions, names};
use evenhand_model::random::Stream;

/// Jobs per user.
const JOBS_PER_USER: [(f64, f64); 7] =
    [(0.05, 1.0), (0.25, 17.0), (0.50, 51.0), (0.75, 240.0), (0.90, 424.0), (0.95, 1304.0), (0.993, 3343.0)];

/// The probabilities of the quantiles of a queue.
const AT: [f64; 6] = [0.05, 0.25, 0.50, 0.75, 0.95, 0.99];

/// A queue: its limit of wall time, its fraction of jobs, and quantiles of its jobs.
struct Queue {
    name: &'static str,
    limit_s: u64,
    share: f64,
    run_s: [f64; 6],
    processors: [f64; 6],
    memory_gib: [f64; 6],
}

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;

const QUEUES: [Queue; 7] = [
    Queue {
        name: "q_2h",
        limit_s: 2 * HOUR,
        share: 0.248,
        run_s: [1.0, 57.0, 801.0, 2241.0, 4058.0, 7024.0],
        processors: [1.0, 1.0, 1.0, 16.0, 32.0, 32.0],
        memory_gib: [0.49, 0.49, 5.0, 16.0, 16.0, 64.0],
    },
    Queue {
        name: "q_4h",
        limit_s: 4 * HOUR,
        share: 0.072,
        run_s: [2.0, 132.0, 369.0, 2028.0, 14_400.0, 14_400.0],
        processors: [1.0, 1.0, 1.0, 5.0, 20.0, 40.0],
        memory_gib: [0.2, 0.2, 0.49, 19.5, 58.6, 97.7],
    },
    Queue {
        name: "q_1d",
        limit_s: DAY,
        share: 0.299,
        run_s: [5.0, 380.0, 9670.0, 29_546.0, 64_303.0, 86_400.0],
        processors: [1.0, 1.0, 1.0, 2.0, 64.0, 64.0],
        memory_gib: [0.2, 0.29, 0.49, 4.0, 64.0, 125.0],
    },
    Queue {
        name: "q_2d",
        limit_s: 2 * DAY,
        share: 0.081,
        run_s: [2.0, 31_287.0, 67_465.0, 94_128.0, 150_287.0, 172_800.0],
        processors: [1.0, 6.0, 6.0, 6.0, 12.0, 80.0],
        memory_gib: [0.49, 0.49, 0.49, 0.49, 60.0, 80.0],
    },
    Queue {
        name: "q_4d",
        limit_s: 4 * DAY,
        share: 0.060,
        run_s: [1.0, 1146.0, 6180.0, 60_620.0, 319_075.0, 345_600.0],
        processors: [1.0, 2.0, 2.0, 12.0, 24.0, 48.0],
        memory_gib: [2.0, 4.0, 4.0, 25.0, 50.0, 150.0],
    },
    Queue {
        name: "q_1w",
        limit_s: 7 * DAY,
        share: 0.193,
        run_s: [2.0, 656.0, 13_906.0, 162_693.0, 568_034.0, 604_800.0],
        processors: [1.0, 1.0, 6.0, 15.0, 38.0, 54.0],
        memory_gib: [2.0, 4.0, 12.0, 43.0, 160.0, 293.0],
    },
    Queue {
        name: "q_2w",
        limit_s: 14 * DAY,
        share: 0.047,
        run_s: [1.0, 2.0, 278_566.0, 360_984.0, 1_117_754.0, 1_209_600.0],
        processors: [1.0, 1.0, 1.0, 8.0, 32.0, 48.0],
        memory_gib: [1.0, 1.0, 4.0, 5.0, 80.0, 195.0],
    },
];

/// The usual requests: numbers of processors, and memory in MB.
const PROCESSORS: [u32; 16] = [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 80];
const MEMORY_MB: [u32; 30] = [
    100, 200, 300, 400, 500, 1024, 2048, 3072, 4096, 5120, 6144, 8192, 10_240, 12_288, 16_384, 20_480, 24_576, 30_720,
    32_768, 40_960, 51_200, 61_440, 65_536, 81_920, 102_400, 131_072, 163_840, 204_800, 307_200, 512_000,
];
/// The correlation between the normal scores of the processors and the memory of a job.
const PROCESSORS_AND_MEMORY: f64 = 0.45;
/// The fraction of jobs on several nodes.
const MULTI_NODE: f64 = 0.02;
/// The fraction of jobs that request the whole wall time of their queue.
const WHOLE_LIMIT: f64 = 0.75;
/// The fraction of the variance of log run times that lies between the kinds of jobs of a user.
const RUN_BETWEEN_KINDS: f64 = 0.6;
/// The size of an array: the probability of a single job; other sizes follow a Pareto distribution.
const SINGLE: f64 = 0.6;
const ARRAY: (f64, f64, f64) = (1.0, 2.0, 400.0);
/// The approximate number of users per account.
const USERS_PER_ACCOUNT: u32 = 5;

const PATTERN: SubmissionPattern =
    SubmissionPattern { sessions: 0.62, at_once: 0.2, at_once_us: 60_000_000, pause_us: 1500e6 };

/// A kind of job that a user submits repeatedly.
struct Kind {
    queue: usize,
    demand: [Nano; 2],
    run: f64,
}

struct Row {
    submit_s: u64,
    user: u32,
    kind: u32,
    run_s: u64,
    requested_s: u64,
}

pub(super) fn generate(options: &GenerateOptions) -> Workload {
    let horizon_us = options.horizon_us();
    let profile = ArrivalProfile::new(horizon_us);
    let runs: Vec<QuantileFunction> = QUEUES.iter().map(|q| quantiles(&q.run_s)).collect();
    let per_user = QuantileFunction::new(&JOBS_PER_USER);
    let counts = tasks_per_user(&per_user, options.tasks, options.users, &mut Stream::new(options.seed, "users", 0));
    let users: Vec<(Vec<Kind>, Vec<Row>)> = counts
        .par_iter()
        .enumerate()
        .map(|(user, &(jobs, weight))| {
            let mut random = Stream::new(options.seed, "user", user as u64);
            let kinds = libm::pow(weight, 0.45).max(1.0) as usize;
            let kinds: Vec<Kind> = (0..kinds).map(|_| kind(&mut random)).collect();
            let rows = rows(user as u32, jobs as usize, &kinds, &profile, &runs, &mut random);
            (kinds, rows)
        })
        .collect();
    let (mut kinds, mut rows) = (Vec::new(), Vec::with_capacity(options.tasks as usize));
    for (mine, jobs) in users {
        let first = kinds.len() as u32;
        rows.extend(jobs.into_iter().map(|r| Row { kind: first + r.kind, ..r }));
        kinds.extend(mine);
    }
    // Stable: jobs of the same second keep the order of users and submissions.
    rows.par_sort_by_key(|r| r.submit_s);
    let begin = rows.first().map_or(0, |r| r.submit_s);
    let accounts = options.users.div_ceil(USERS_PER_ACCOUNT);
    let mut random = Stream::new(options.seed, "accounts", 0);
    let account_of: Vec<u32> = (0..options.users).map(|_| random.below(u64::from(accounts)) as u32).collect();
    let columns = Columns {
        submit: rows.iter().map(|r| Time::from_secs(r.submit_s - begin)).collect(),
        duration: rows.iter().map(|r| Span::from_secs(r.run_s)).collect(),
        requested: Some(rows.iter().map(|r| Span::from_secs(r.requested_s).nanos()).collect()),
        user: rows.iter().map(|r| UserId(r.user)).collect(),
        account: Some(rows.iter().map(|r| account_of[r.user as usize]).collect()),
        queue: Some(rows.iter().map(|r| kinds[r.kind as usize].queue as u32).collect()),
        demand: rows.iter().map(|r| DemandId(r.kind)).collect(),
        ..Columns::default()
    };
    let batch = Batch {
        users: names("user", options.users),
        accounts: names("group", accounts),
        queues: QUEUES.iter().map(|q| q.name.to_string()).collect(),
        demands: kinds.iter().flat_map(|k| k.demand).collect(),
        columns,
        ..Batch::default()
    };
    options.build(WorkloadBuilder::new([Resource::new("cpu", "processors"), Resource::new("mem", "KB")]), batch)
}

fn quantiles(values: &[f64; 6]) -> QuantileFunction {
    QuantileFunction::new(&std::array::from_fn::<_, 6, _>(|i| (AT[i], values[i])))
}

fn kind(random: &mut Stream) -> Kind {
    let mut p = random.uniform();
    let last = QUEUES.len() - 1;
    let queue = QUEUES.iter().position(|q| {
        p -= q.share;
        p < 0.0
    });
    let queue = queue.unwrap_or(last);
    let processors = random.normal();
    let rest = libm::sqrt(1.0 - PROCESSORS_AND_MEMORY * PROCESSORS_AND_MEMORY);
    let memory = PROCESSORS_AND_MEMORY * processors + rest * random.normal();
    let processors = nearest(&PROCESSORS, quantiles(&QUEUES[queue].processors).at(processors));
    let memory = nearest(&MEMORY_MB, quantiles(&QUEUES[queue].memory_gib).at(memory) * 1024.0);
    let nodes = if random.uniform() < MULTI_NODE { 2 << random.below(3) } else { 1 };
    let demand = [u64::from(processors) * nodes, u64::from(memory) * 1024 * nodes];
    Kind { queue, demand: demand.map(|units| Nano::from(units) * 1_000_000_000), run: random.normal() }
}

/// Returns the entry of an increasing list whose ratio to `value` is closest to 1.
fn nearest(list: &[u32], value: f64) -> u32 {
    let distance = |&entry: &u32| (libm::log(f64::from(entry)) - libm::log(value)).abs();
    let closer = |a: &&u32, b: &&u32| distance(a).total_cmp(&distance(b));
    list.iter().min_by(closer).copied().unwrap_or(1)
}

fn rows(
    user: u32,
    jobs: usize,
    kinds: &[Kind],
    profile: &ArrivalProfile,
    runs: &[QuantileFunction],
    random: &mut Stream,
) -> Vec<Row> {
    let mut arrays = Vec::new();
    let mut left = jobs;
    while left > 0 {
        let (alpha, min, max) = ARRAY;
        let size = if random.uniform() < SINGLE { 1 } else { random.pareto(alpha, min, max) as usize };
        arrays.push(size.clamp(1, left));
        left -= size.clamp(1, left);
    }
    let times = submissions(arrays.len(), profile, &PATTERN, random);
    let last_s = (profile.horizon_us() - 1) / 1_000_000;
    let (between, within) = (libm::sqrt(RUN_BETWEEN_KINDS), libm::sqrt(1.0 - RUN_BETWEEN_KINDS));
    let mut rows = Vec::with_capacity(jobs);
    for (size, time_us) in arrays.into_iter().zip(times) {
        let kind = random.below(kinds.len() as u64) as u32;
        let Kind { queue, run, .. } = kinds[kind as usize];
        let limit_s = QUEUES[queue].limit_s;
        let mut submit_s = time_us / 1_000_000;
        for _ in 0..size {
            let run_s = runs[queue].at(between * run + within * random.normal()) as u64;
            let run_s = run_s.clamp(1, limit_s);
            let whole = random.uniform() < WHOLE_LIMIT;
            let part = limit_s / 8 * (4 + random.below(4));
            let requested_s = if whole || part < run_s { limit_s } else { part };
            rows.push(Row { submit_s: submit_s.min(last_s), user, kind, run_s, requested_s });
            // A script submits some of its jobs within one second.
            submit_s += u64::from(random.uniform() < 0.4);
        }
    }
    rows
}
