//! Forecasts at a site of several resources and pools: a job waits for what it needs and for jobs of its own pool.

use evenhand_forecast::{Forecaster, Job, Log, Size};

const NOW: i64 = 1_000_000;
/// After all that is known.
const LATER: i64 = 1 << 40;

/// A job that was submitted, started and ended then, with a limit of 1000 s.
fn job([submit, start, end]: [i64; 3], size: [i64; 3], pool: u32) -> Job {
    Job { submit, start, end, size: Size::new(size), limit: 1000, user: 0, account: 0, queue: pool, pool }
}

/// Jobs that ran to their limits without a wait, so that it is known how long jobs run.
fn past(size: [i64; 3], pool: u32) -> impl Iterator<Item = Job> {
    (0..60).map(move |n| {
        let at = NOW - 200_000 + 3000 * n;
        job([at, at, at + 1000], size, pool)
    })
}

fn log(mut jobs: Vec<Job>, capacities: &[Size]) -> Log {
    jobs.sort_by_key(|job| job.submit);
    Log::from_jobs(jobs, 1, capacities.to_vec()).unwrap()
}

fn shape(size: [i64; 3], pool: u32) -> Job {
    job([0, 0, 0], size, pool)
}

#[test]
fn a_job_that_needs_a_gpu_waits_until_one_is_free_and_others_do_not() {
    let mut jobs: Vec<Job> = past([1, 100, 2], 0).collect();
    // Both GPUs are held for another 900 s; CPUs and memory abound.
    jobs.push(job([NOW - 100, NOW - 100, LATER], [1, 100, 2], 0));
    let log = log(jobs, &[Size::new([64, 10_000, 2])]);
    let mut now = Forecaster::at(&log, NOW, 1);
    let median = |forecaster: &mut Forecaster<'_>, size| forecaster.new_job(&shape(size, 0)).quantiles[1];
    assert!(now.new_job_starts_now(&shape([1, 100, 0], 0)));
    for waits in [[1, 100, 1], [1, 9950, 0]] {
        assert!(!now.new_job_starts_now(&shape(waits, 0)), "{waits:?}");
        assert!((800..=1000).contains(&median(&mut now, waits)), "{waits:?}: {}", median(&mut now, waits));
    }
}

#[test]
fn jobs_of_another_pool_do_not_make_a_job_wait() {
    let mut jobs: Vec<Job> = past([8, 0, 0], 0).chain(past([8, 0, 0], 1)).collect();
    jobs.push(job([NOW - 100, NOW - 100, LATER], [8, 0, 0], 0));
    // One that waits in the full pool.
    jobs.push(job([NOW - 50, LATER, LATER + 1], [8, 0, 0], 0));
    let log = log(jobs, &[Size::from(8), Size::from(16)]);
    let mut now = Forecaster::at(&log, NOW, 1);
    let waiting = now.waiting().to_vec();
    assert_eq!((waiting.len(), log.pools()), (1, 2));
    assert!(!now.waiting_job_starts_now(waiting[0] as usize));
    assert!(!now.new_job_starts_now(&shape([1, 0, 0], 0)));
    assert!(now.new_job_starts_now(&shape([16, 0, 0], 1)));
    // A pool that is not known is the last.
    assert!(now.new_job_starts_now(&shape([16, 0, 0], 7)));
}

#[test]
fn a_job_keeps_its_place_among_the_waiting_jobs_of_its_pool() {
    let mut jobs: Vec<Job> = past([8, 0, 0], 0).chain(past([8, 0, 0], 1)).collect();
    // In either pool one runs for another 900 s, and two wait, one pool's between the other's.
    for pool in [0, 1] {
        jobs.push(job([NOW - 100, NOW - 100, LATER], [8, 0, 0], pool));
        for n in [0, 1] {
            jobs.push(job([NOW - 50 + 2 * n + i64::from(pool), LATER, LATER + 1], [8, 0, 0], pool));
        }
    }
    let log = log(jobs, &[Size::from(8), Size::from(8)]);
    let mut now = Forecaster::at(&log, NOW, 1);
    let waiting = now.waiting().to_vec();
    assert_eq!(waiting.len(), 4);
    let median = |now: &mut Forecaster<'_>, at: usize| now.waiting_job(waiting[at] as usize).unwrap().quantiles[1];
    // The first of each pool waits for the one that runs, the second for the first too.
    for (at, expected) in [(0, 900), (1, 900), (2, 1900), (3, 1900)] {
        let found = median(&mut now, at);
        assert!((expected - 150..=expected + 150).contains(&found), "{at}: {found}");
    }
}
