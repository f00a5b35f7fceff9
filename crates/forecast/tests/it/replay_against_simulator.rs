//! The compact replay starts a job when the simulator does.

use evenhand_forecast::{Replay, Running, Waiting};
use proptest::prelude::*;

use crate::generated_log::{JobSpec, simulated_starts};

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
            prop_assert_eq!(replay.start_of(target, CAPACITY as i64), *start as i64, "job {}", target);
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
                    replay.running.push(Running { size: job.size as i64, end: passed(job.run), limit: passed(job.limit) });
                }
            } else {
                place = if n == target { replay.queue.len() } else { place };
                replay.queue.push(waiting(job, now));
            }
        }
        prop_assert_eq!(replay.start_of(place, CAPACITY as i64), starts[target] as i64 - now as i64);
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
            prop_assert_eq!(replay.start_of(target, CAPACITY as i64), *start as i64, "job {}", target);
        }
    }
}

fn waiting(job: &JobSpec, now: u64) -> Waiting {
    let submit = job.submit as i64 - now as i64;
    Waiting { submit, size: job.size as i64, run: job.run as i64, limit: job.limit as i64 }
}
