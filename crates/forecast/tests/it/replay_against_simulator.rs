//! The compact replay starts a job when the simulator does.

use evenhand_forecast::{Replay, Running, Size, Waiting};
use proptest::prelude::*;

use crate::generated_log::{JobSpec, simulated_starts, starts_on_pool};

const CAPACITY: u64 = 8;

fn jobs() -> impl Strategy<Value = Vec<JobSpec>> {
    jobs_of(1..25)
}

fn jobs_of(number: std::ops::Range<usize>) -> impl Strategy<Value = Vec<JobSpec>> {
    let job = (0u64..40, 1u64..=CAPACITY, 1u64..15, 0u64..10);
    prop::collection::vec(job, number).prop_map(|jobs| {
        let spec = |(submit, size, run, more)| JobSpec { submit, size, run, limit: run + more, user: 0 };
        let mut jobs: Vec<JobSpec> = jobs.into_iter().map(spec).collect();
        jobs.sort_by_key(|job| job.submit);
        jobs
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// From the beginning: all jobs are submitted later.
    #[test]
    fn every_job_starts_when_the_simulator_starts_it(jobs in jobs()) {
        let starts = simulated_starts(&jobs, CAPACITY);
        let mut replay = Replay::default();
        for job in &jobs {
            replay.queue.push(waiting(job, 0));
        }
        for (target, start) in starts.iter().enumerate() {
            prop_assert_eq!(replay.start_of(target, (CAPACITY as i64).into()), *start as i64, "job {}", target);
        }
    }

    /// From the middle: the state that the simulator is in at the instant of a submission.
    #[test]
    fn a_replay_goes_on_from_any_submission(jobs in jobs(), at in 0usize..25) {
        let starts = simulated_starts(&jobs, CAPACITY);
        let target = at.min(jobs.len() - 1);
        let now = jobs[target].submit;
        let mut replay = Replay::default();
        let mut place = 0;
        for (n, job) in jobs.iter().enumerate() {
            if starts[n] < now {
                let passed = |time: u64| (starts[n] + time) as i64 - now as i64;
                if passed(job.run) > 0 {
                    let size = Size::from(job.size as i64);
                    replay.running.push(Running { size, end: passed(job.run), limit: passed(job.limit) });
                }
            } else {
                place = if n == target { replay.queue.len() } else { place };
                replay.queue.push(waiting(job, now));
            }
        }
        prop_assert_eq!(replay.start_of(place, (CAPACITY as i64).into()), starts[target] as i64 - now as i64);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    /// The replay skips blocks of 64 jobs in which none can start.
    #[test]
    fn long_queues_start_as_in_the_simulator(jobs in jobs_of(100..400)) {
        let starts = simulated_starts(&jobs, CAPACITY);
        let mut replay = Replay::default();
        replay.queue.extend(jobs.iter().map(|job| waiting(job, 0)));
        for (target, start) in starts.iter().enumerate().step_by(7) {
            prop_assert_eq!(replay.start_of(target, (CAPACITY as i64).into()), *start as i64, "job {}", target);
        }
    }
}

fn waiting(job: &JobSpec, now: u64) -> Waiting {
    let submit = job.submit as i64 - now as i64;
    Waiting { submit, size: Size::from(job.size as i64), run: job.run as i64, limit: job.limit as i64 }
}

/// A pool of processors, memory and GPUs; most jobs need no GPU, and some need much of one resource and little of the others.
const POOL: [u64; 3] = [8, 20, 3];

fn jobs_of_a_pool(number: std::ops::Range<usize>) -> impl Strategy<Value = (Vec<JobSpec>, Vec<[u64; 2]>)> {
    let gpus = prop_oneof![2 => Just(0), 1 => 1..=POOL[2]];
    let others = (0..=POOL[1] / 4, 1u64..=4, gpus).prop_map(|(memory, times, gpus)| [memory * times, gpus]);
    (jobs_of(number), prop::collection::vec(others, 400)).prop_map(|(jobs, mut others)| {
        others.truncate(jobs.len());
        (jobs, others)
    })
}

fn waiting_in_pool(job: &JobSpec, others: [u64; 2], now: u64) -> Waiting {
    Waiting { size: Size::new([job.size, others[0], others[1]].map(|amount| amount as i64)), ..waiting(job, now) }
}

fn every_nth_starts_as_in_the_simulator(jobs: &[JobSpec], others: &[[u64; 2]], n: usize) -> Result<(), TestCaseError> {
    let starts = starts_on_pool(jobs, others, POOL);
    let mut replay = Replay::default();
    replay.queue.extend(jobs.iter().zip(others).map(|(job, others)| waiting_in_pool(job, *others, 0)));
    for (target, start) in starts.iter().enumerate().step_by(n) {
        let found = replay.start_of(target, Size::new(POOL.map(|amount| amount as i64)));
        prop_assert_eq!(found, *start as i64, "job {}", target);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn on_a_pool_of_several_resources_jobs_start_as_in_the_simulator((jobs, others) in jobs_of_a_pool(1..25)) {
        every_nth_starts_as_in_the_simulator(&jobs, &others, 1)?;
    }

    #[test]
    fn a_replay_of_several_resources_goes_on_from_any_submission(
        (jobs, others) in jobs_of_a_pool(1..25), at in 0usize..25
    ) {
        let starts = starts_on_pool(&jobs, &others, POOL);
        let target = at.min(jobs.len() - 1);
        let now = jobs[target].submit;
        let mut replay = Replay::default();
        let mut place = 0;
        for (n, job) in jobs.iter().enumerate() {
            let waiting = waiting_in_pool(job, others[n], now);
            if starts[n] < now {
                let passed = |time: u64| (starts[n] + time) as i64 - now as i64;
                if passed(job.run) > 0 {
                    let (end, limit) = (passed(job.run), passed(job.limit));
                    replay.running.push(Running { size: waiting.size, end, limit });
                }
            } else {
                place = if n == target { replay.queue.len() } else { place };
                replay.queue.push(waiting);
            }
        }
        let found = replay.start_of(place, Size::new(POOL.map(|amount| amount as i64)));
        prop_assert_eq!(found, starts[target] as i64 - now as i64);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn long_queues_of_several_resources_start_as_in_the_simulator((jobs, others) in jobs_of_a_pool(100..400)) {
        every_nth_starts_as_in_the_simulator(&jobs, &others, 7)?;
    }
}

/// A job that needs the GPU waits for it while free processors abound, and jobs behind it that need none start before.
#[test]
fn a_job_waits_for_the_gpu_and_lets_others_pass() {
    let job = |size: [i64; 3], limit: i64| Waiting { submit: 0, size: Size::new(size), run: limit, limit };
    let mut replay = Replay::default();
    replay.running.push(Running { size: Size::new([1, 0, 1]), end: 50, limit: 100 });
    replay.queue.extend([job([1, 0, 1], 10), job([4, 0, 0], 1000), job([6, 0, 0], 10)]);
    let capacity = Size::new([8, 0, 1]);
    // The second leaves the reservation of the first what it needs; the third does not fit beside the second.
    assert_eq!([0, 1, 2].map(|target| replay.start_of(target, capacity)), [50, 0, 1000]);
    // By processors alone the first would start now.
    replay.running[0].size = Size::from(1);
    replay.queue[0].size = Size::from(1);
    assert_eq!(replay.start_of(0, Size::from(8)), 0);
}

/// A node is drained while its job runs: of its GPUs less than nothing is free, which concerns only jobs that need one.
#[test]
fn what_a_drained_node_lacks_stops_no_job_that_does_not_need_it() {
    let job = |size: [i64; 3]| Waiting { submit: 0, size: Size::new(size), run: 10, limit: 10 };
    let mut replay = Replay::default();
    replay.running.push(Running { size: Size::new([1, 0, 4]), end: 70, limit: 70 });
    replay.queue.extend([job([1, 0, 1]), job([2, 0, 0])]);
    let capacity = Size::new([4, 0, 2]);
    assert_eq!([0, 1].map(|target| replay.start_of(target, capacity)), [70, 0]);
}
