//! Generates workloads that resemble Google's ClusterData2011_2 (Reiss, Wilkes, Hellerstein, 2011; CC-BY 4.0).
//!
//! Calibrated on the first 19.65 hours of its task events and, for jobs, on all 29 days: see the constants below. The
//! generator reproduces tasks per user (quantiles and concentration), jobs that submit all their tasks microseconds
//! apart with one demand vector, tasks per job, the most common vectors, few vectors per user, run times, and the daily
//! and weekly profile. Some tasks are submitted hours after their job, like resubmissions after evictions and failures
//! in the trace.

use evenhand_model::{Batch, Columns, DemandId, Nano, Resource, Span, Time, UserId, Workload, WorkloadBuilder};
use rayon::prelude::*;

use super::arrivals::{ArrivalProfile, SubmissionPattern, submissions};
use super::quantile_function::{QuantileFunction, four_digits, tasks_per_user};
use super::{GenerateOptions, names};
use evenhand_model::random::Stream;

/// The trace's first task was submitted 600 s after its zero.
const FIRST_US: u64 = 600_000_000;

/// Tasks per user; the last is the largest of 391 users.
const TASKS_PER_USER: [(f64, f64); 8] = [
    (0.25, 1.0),
    (0.50, 6.0),
    (0.75, 149.0),
    (0.90, 2006.0),
    (0.95, 5913.0),
    (0.99, 22_005.0),
    (0.998_72, 101_003.0),
    (0.999_9, 250_000.0),
];

/// Run times in seconds; the longest of the trace's first day last some 14 hours.
const RUN_S: [(f64, f64); 9] = [
    (0.001, 8.0),
    (0.01, 21.0),
    (0.05, 28.0),
    (0.25, 163.0),
    (0.50, 626.0),
    (0.75, 3162.0),
    (0.95, 13_981.0),
    (0.99, 28_766.0),
    (0.999, 50_400.0),
];
/// The fraction of the variance of log run times that lies between jobs; the rest lies between the tasks of a job.
const RUN_BETWEEN_JOBS: f64 = 0.9;

/// The delay of late tasks after the submission of their job, in seconds.
const LATE_S: [(f64, f64); 5] = [(0.05, 104.0), (0.25, 1010.0), (0.50, 3510.0), (0.75, 7313.0), (0.95, 41_972.0)];
/// The fraction of tasks that are late.
const LATE: f64 = 0.11;

/// Tasks per job: frequent sizes with their fractions of jobs. The other sizes follow a Pareto distribution.
const JOB_SIZES: [(u32, f64); 32] = [
    (1, 0.7790),
    (2, 0.0380),
    (3, 0.0090),
    (4, 0.0037),
    (5, 0.0061),
    (6, 0.0054),
    (7, 0.0034),
    (8, 0.0022),
    (9, 0.0109),
    (10, 0.0039),
    (11, 0.0180),
    (15, 0.0144),
    (50, 0.0150),
    (100, 0.0090),
    (110, 0.0077),
    (194, 0.0035),
    (198, 0.0026),
    (200, 0.0026),
    (386, 0.0010),
    (489, 0.0010),
    (500, 0.0010),
    (998, 0.0011),
    (1000, 0.0020),
    (1050, 0.0031),
    (1200, 0.0006),
    (2000, 0.0008),
    (2100, 0.000_55),
    (2489, 0.000_3),
    (4000, 0.000_14),
    (5000, 0.000_4),
    (10_500, 0.000_14),
    (19_861, 0.000_02),
];
const JOB_TAIL: (f64, f64, f64) = (0.65, 11.0, 20_000.0);

/// The most common demand vectors (CPU and memory in millionths of the largest machine) with their fractions of tasks;
/// together 60 % of the tasks.
const VECTORS: [(u32, u32, f64); 30] = [
    (62_500, 31_800, 0.081),
    (24_990, 33_390, 0.059),
    (12_500, 15_900, 0.053),
    (24_990, 25_450, 0.044),
    (12_500, 31_800, 0.037),
    (99_980, 20_690, 0.035),
    (62_500, 159_200, 0.027),
    (62_500, 122_800, 0.027),
    (31_250, 7_767, 0.025),
    (62_500, 15_900, 0.023),
    (12_500, 4_662, 0.022),
    (68_730, 11_930, 0.018),
    (62_500, 31_070, 0.017),
    (6_248, 2_487, 0.016),
    (49_990, 39_790, 0.014),
    (37_480, 25_450, 0.014),
    (37_480, 39_790, 0.014),
    (12_500, 24_570, 0.011),
    (24_990, 79_590, 0.008),
    (22_490, 57_500, 0.008),
    (31_250, 9_323, 0.008),
    (49_990, 6_104, 0.007),
    (31_250, 3_109, 0.006),
    (12_500, 10_880, 0.006),
    (6_248, 1_554, 0.006),
    (24_990, 31_800, 0.006),
    (12_500, 124_300, 0.005),
    (9_369, 15_900, 0.005),
    (12_500, 23_320, 0.005),
    (125_000, 31_800, 0.005),
];
/// Log10 of CPU and memory of the median vector of a user: means, standard deviations, correlation.
const USER_VECTOR: ([f64; 2], [f64; 2], f64) = ([-1.51, -1.77], [0.47, 0.52], 0.55);
/// The largest distance of a user's median vector above the mean, in standard deviations. Users beyond it have few
/// tasks in the trace: 99 % of the tasks request at most 0.125 CPU.
const LARGEST_CENTRE: f64 = 0.9;
/// The standard deviation of log10 between the vectors of one user.
const VECTOR_SPREAD: f64 = 0.2;

const PATTERN: SubmissionPattern = SubmissionPattern { sessions: 0.8, at_once: 0.4, at_once_us: 3000, pause_us: 120e6 };

/// A job: tasks with one vector that are submitted together.
struct Job {
    submit_us: u64,
    tasks: u32,
    user: u32,
    demand: u32,
    /// The normal score of the run time.
    run: f64,
    /// The index of the random stream of its tasks: unique, and independent of the order of jobs.
    stream: u64,
}

/// The jobs of a user; their demands are indexes into `vectors`.
struct UserJobs {
    jobs: Vec<Job>,
    vectors: Vec<[Nano; 2]>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    submit_us: u64,
    job: u32,
    run_us: u64,
}

pub(super) fn generate(options: &GenerateOptions) -> Workload {
    let profile = ArrivalProfile::new(options.horizon_us());
    let per_user = QuantileFunction::new(&TASKS_PER_USER);
    let counts = tasks_per_user(&per_user, options.tasks, options.users, &mut Stream::new(options.seed, "users", 0));
    let users: Vec<UserJobs> = counts
        .par_iter()
        .enumerate()
        .map(|(user, &(tasks, weight))| user_jobs(options.seed, user as u32, tasks, weight, &profile))
        .collect();
    let mut demands = Vec::new();
    let mut jobs = Vec::with_capacity(users.iter().map(|u| u.jobs.len()).sum());
    for user in users {
        let first = (demands.len() / 2) as u32;
        demands.extend(user.vectors.iter().flatten());
        jobs.extend(user.jobs.into_iter().map(|job| Job { demand: first + job.demand, ..job }));
    }
    let rows = rows(&jobs, options, &profile);
    let columns = Columns {
        submit: rows.par_iter().map(|r| Time::from_nanos((FIRST_US + r.submit_us) * 1000)).collect(),
        duration: rows.par_iter().map(|r| Span::from_nanos(r.run_us * 1000)).collect(),
        user: rows.par_iter().map(|r| UserId(jobs[r.job as usize].user)).collect(),
        demand: rows.par_iter().map(|r| DemandId(jobs[r.job as usize].demand)).collect(),
        ..Columns::default()
    };
    drop(rows);
    let resources = ["cpu", "mem"].map(|name| Resource::new(name, "machines"));
    let batch = Batch { users: names("user", options.users), demands, columns, ..Batch::default() };
    options.build(WorkloadBuilder::new(resources), batch)
}

/// Generates every task, sorted by submission.
fn rows(jobs: &[Job], options: &GenerateOptions, profile: &ArrivalProfile) -> Vec<Row> {
    /// The number of tasks that a thread generates at a time.
    const PIECE: usize = 1 << 16;
    let (run, late) = (QuantileFunction::new(&RUN_S), QuantileFunction::new(&LATE_S));
    let mut rows = vec![Row::default(); options.tasks as usize];
    let mut pieces = Vec::new();
    let mut rest = rows.as_mut_slice();
    let mut first = 0;
    while first < jobs.len() {
        let (mut last, mut tasks) = (first, 0);
        while last < jobs.len() && tasks < PIECE {
            tasks += jobs[last].tasks as usize;
            last += 1;
        }
        let (piece, after) = rest.split_at_mut(tasks);
        pieces.push((first, &jobs[first..last], piece));
        rest = after;
        first = last;
    }
    pieces.into_par_iter().for_each(|(first, jobs, mut rows)| {
        for (i, job) in jobs.iter().enumerate() {
            let (mine, after) = rows.split_at_mut(job.tasks as usize);
            tasks(job, (first + i) as u32, mine, options.seed, profile.horizon_us(), &run, &late);
            rows = after;
        }
    });
    // The order is total (time, job, run time), so the result of an unstable sort is unique.
    rows.par_sort_unstable();
    // Submissions begin at the first instant of the trace.
    if let Some(first) = rows.first_mut() {
        first.submit_us = 0;
    }
    rows
}

fn tasks(
    job: &Job,
    index: u32,
    rows: &mut [Row],
    seed: u64,
    horizon: u64,
    run: &QuantileFunction,
    late: &QuantileFunction,
) {
    let mut random = Stream::new(seed, "tasks", job.stream);
    let (between, within) = (libm::sqrt(RUN_BETWEEN_JOBS), libm::sqrt(1.0 - RUN_BETWEEN_JOBS));
    let mut t = job.submit_us;
    for (i, row) in rows.iter_mut().enumerate() {
        let run_s = run.at(between * job.run + within * random.normal());
        // No task runs longer than the whole period.
        let run_us = ((run_s * 1e6) as u64).clamp(1, horizon);
        let mut submit_us = t.min(horizon - 1);
        if i > 0 && random.uniform() < LATE {
            let delay = (late.at(random.normal()) * 1e6) as u64;
            submit_us =
                Some(t + delay).filter(|&t| t < horizon).unwrap_or_else(|| t + random.below(horizon.saturating_sub(t)));
            submit_us = submit_us.min(horizon - 1);
        }
        *row = Row { submit_us, job: index, run_us };
        // Most tasks of a burst are one or two microseconds apart.
        t += 1 + (random.exponential(0.8) as u64).min(14);
    }
}

fn user_jobs(seed: u64, user: u32, tasks: u64, weight: f64, profile: &ArrivalProfile) -> UserJobs {
    let mut random = Stream::new(seed, "user", u64::from(user));
    // One or two vectors at the median, five at the third quartile, 60 to 90 for the most active users.
    let vectors = libm::round(libm::pow(weight, 0.42) * libm::exp(0.3 * random.normal())).clamp(1.0, 240.0) as u32;
    let vectors = user_vectors(vectors, &mut random);
    let mut sizes = Vec::new();
    let mut left = tasks;
    while left > 0 {
        let size = u64::from(job_size(&mut random)).min(left);
        sizes.push(size as u32);
        left -= size;
    }
    let times = submissions(sizes.len(), profile, &PATTERN, &mut random);
    let jobs = sizes
        .into_iter()
        .zip(times)
        .enumerate()
        .map(|(i, (tasks, submit_us))| {
            // The first vectors of a user are used more often than the last.
            let chosen = random.uniform();
            Job {
                submit_us,
                tasks,
                user,
                demand: ((chosen * chosen * vectors.len() as f64) as u32).min(vectors.len() as u32 - 1),
                run: random.normal(),
                stream: u64::from(user) << 32 | i as u64,
            }
        })
        .collect();
    UserJobs { jobs, vectors }
}

fn job_size(random: &mut Stream) -> u32 {
    let mut p = random.uniform();
    for (size, share) in JOB_SIZES {
        p -= share;
        if p < 0.0 {
            return size;
        }
    }
    let (alpha, min, max) = JOB_TAIL;
    random.pareto(alpha, min, max) as u32
}

fn user_vectors(n: u32, random: &mut Stream) -> Vec<[Nano; 2]> {
    let (mean, deviation, correlation) = USER_VECTOR;
    let cpu = random.normal();
    let mem = correlation * cpu + libm::sqrt(1.0 - correlation * correlation) * random.normal();
    let centre: [f64; 2] = std::array::from_fn(|i| mean[i] + deviation[i] * [cpu, mem][i].min(LARGEST_CENTRE));
    (0..n)
        .map(|_| {
            let mut p = random.uniform();
            for (cpu, mem, share) in VECTORS {
                p -= share;
                if p < 0.0 {
                    return [cpu, mem].map(|millionths| Nano::from(millionths) * 1000);
                }
            }
            let draw = centre.map(|c| libm::pow(10.0, c + VECTOR_SPREAD * random.normal()));
            // The trace rounds CPU requests to 160ths of a machine.
            let cpu = (draw[0] * 160.0).round().clamp(1.0, 80.0) * 0.006_248_8;
            [four_digits(cpu), four_digits(draw[1].clamp(0.0005, 0.5))]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The jobs of as many tasks and users as the trace's first 19.65 hours.
    fn window_a(seed: u64) -> Vec<UserJobs> {
        let profile = ArrivalProfile::new(70_756_000_000);
        let per_user = QuantileFunction::new(&TASKS_PER_USER);
        tasks_per_user(&per_user, 509_816, 391, &mut Stream::new(seed, "users", 0))
            .iter()
            .enumerate()
            .map(|(user, &(tasks, weight))| user_jobs(seed, user as u32, tasks, weight, &profile))
            .collect()
    }

    fn quantile(sorted: &[f64], p: f64) -> f64 {
        sorted[((p * sorted.len() as f64) as usize).min(sorted.len() - 1)]
    }

    #[test]
    fn sizes_and_bursts_of_jobs_match_the_trace() {
        for seed in 1..=4 {
            let users = window_a(seed);
            let jobs: Vec<&Job> = users.iter().flat_map(|u| &u.jobs).collect();
            // 16,271 jobs in the trace.
            assert!((12_000..22_000).contains(&jobs.len()), "{} jobs", jobs.len());
            let mut sizes: Vec<f64> = jobs.iter().map(|j| f64::from(j.tasks)).collect();
            sizes.sort_by(f64::total_cmp);
            let single = sizes.iter().filter(|&&s| s == 1.0).count() as f64 / sizes.len() as f64;
            assert!((single - 0.779).abs() < 0.02, "{single} of one task");
            for (p, expected) in [(0.90, 18.0), (0.95, 88.0), (0.99, 837.0)] {
                let q = quantile(&sizes, p);
                assert!(q > expected / 1.7 && q < expected * 1.7, "{p}: {q}, expected {expected}");
            }
            let large: Vec<f64> = sizes.iter().filter(|&&s| s > 10.0).map(|s| libm::log(s / 10.0)).collect();
            let hill = large.len() as f64 / large.iter().sum::<f64>();
            assert!((hill - 0.61).abs() < 0.12, "tail index {hill}");
            let mut times: Vec<f64> = jobs.iter().map(|j| j.submit_us as f64 / 1e6).collect();
            times.sort_by(f64::total_cmp);
            let gaps: Vec<f64> = times.windows(2).map(|w| w[1] - w[0]).collect();
            let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
            let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
            let variation = variance.sqrt() / mean;
            assert!((1.1..2.4).contains(&variation), "variation of job interarrival {variation}");
            let together = gaps.iter().filter(|&&g| g < 0.003).count() as f64 / gaps.len() as f64;
            assert!((together - 0.25).abs() < 0.06, "{together} of jobs follow at once");
        }
    }

    #[test]
    fn users_have_few_vectors() {
        for seed in 1..=4 {
            let mut vectors: Vec<f64> = window_a(seed).iter().map(|u| u.vectors.len() as f64).collect();
            vectors.sort_by(f64::total_cmp);
            assert!(quantile(&vectors, 0.5) <= 3.0);
            assert!((3.0..=12.0).contains(&quantile(&vectors, 0.75)), "{}", quantile(&vectors, 0.75));
            assert!((40.0..=110.0).contains(&quantile(&vectors, 0.99)), "{}", quantile(&vectors, 0.99));
        }
    }
}
