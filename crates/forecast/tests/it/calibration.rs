//! Forecasts of a generated site: how good they are, and that they know nothing of the future.

use evenhand_forecast::{Forecaster, Log, calibrate, forecast_jobs};

use crate::generated_log::{JobSpec, busy_site, log_of, simulated_starts};

const CAPACITY: u64 = 64;

#[test]
fn intervals_hold_four_fifths_and_forecasts_beat_the_baselines() {
    for seed in [1, 2] {
        let jobs = busy_site(4500, seed);
        // The scheduler looks every minute. Without that, most jobs wait exactly 0 s, which an interval holds always or never.
        let starts: Vec<u64> =
            simulated_starts(&jobs, CAPACITY).iter().map(|start| start.next_multiple_of(60)).collect();
        let log = Log::of(&log_of(&jobs, &starts)).unwrap();
        let (from, to) = (jobs[3000].submit as i64, jobs[4499].submit as i64 + 1);
        let found = calibrate(&log, from, to, 1).unwrap();
        let waited = log.jobs()[log.first_from(from)..].iter().filter(|job| job.wait() > 60).count();
        assert!(waited > found.jobs / 3, "the site is busy: {waited} of {}", found.jobs);
        assert!((0.75..=0.85).contains(&found.coverage), "{found:?}");
        assert!(found.pinball_s < 0.75 * found.last_two_waits_s, "{found:?}");
        assert!(found.pinball_s < 0.75 * found.requested_limits_s, "{found:?}");
        assert_eq!(found.strata.iter().map(|s| s.jobs).sum::<usize>(), found.jobs);
    }
}

#[test]
fn what_happens_after_a_submission_changes_no_forecast_of_it() {
    let jobs = busy_site(900, 3);
    let starts = simulated_starts(&jobs, CAPACITY);
    let before = forecast_jobs(&Log::of(&log_of(&jobs, &starts)).unwrap(), 500..700, 1);
    let now = jobs[699].submit;
    // What ran at that instant runs on for longer, what waited starts later, what was submitted later is larger.
    let (mut other, mut other_starts) = (jobs.clone(), starts.clone());
    let mut changed = 0;
    for n in 0..jobs.len() {
        if starts[n] >= now {
            other_starts[n] += 5000;
            changed += 1;
        } else if starts[n] + jobs[n].run > now {
            other[n].run = jobs[n].limit + 777;
            changed += 1;
        }
        if n >= 700 {
            other[n].size = 1;
            other[n].limit = 99_999;
        }
    }
    assert!(changed > 200);
    let again = forecast_jobs(&Log::of(&log_of(&other, &other_starts)).unwrap(), 500..700, 1);
    assert_eq!(before, again);
}

#[test]
fn jobs_behind_a_job_at_the_same_second_change_no_forecast_of_it_at_its_submission() {
    let mut jobs = busy_site(900, 3);
    // So several are submitted at one second.
    jobs.iter_mut().for_each(|job| job.submit -= job.submit % 600);
    let starts = simulated_starts(&jobs, CAPACITY);
    let waits = |n: &usize| starts[*n] > jobs[*n].submit && jobs[n + 1].submit == jobs[*n].submit;
    let target = (500..899).find(waits).unwrap();
    let mut other = jobs.clone();
    let behind = (target + 1..900).take_while(|n| jobs[*n].submit == jobs[target].submit);
    behind.for_each(|n| (other[n].size, other[n].limit, other[n].user) = (1, 99_999, 19));
    let forecast = |jobs: &[JobSpec]| {
        let log = Log::of(&log_of(jobs, &starts)).unwrap();
        let mut then = Forecaster::at_submission(&log, target, 1);
        (then.waiting().len(), then.waiting_job(target).unwrap())
    };
    let (waiting, found) = forecast(&jobs);
    assert_eq!((waiting, found), forecast(&other));
    let log = Log::of(&log_of(&jobs, &starts)).unwrap();
    assert!(Forecaster::at(&log, jobs[target].submit as i64, 1).waiting().len() > waiting);
}

#[test]
fn the_result_does_not_depend_on_threads_but_on_the_seed() {
    let jobs = busy_site(900, 4);
    let log = Log::of(&log_of(&jobs, &simulated_starts(&jobs, CAPACITY))).unwrap();
    let with = |threads: usize, seed: u64| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| forecast_jobs(&log, 500..800, seed))
    };
    assert_eq!(with(1, 1), with(3, 1));
    assert_ne!(with(1, 1), with(1, 2));
}

#[test]
fn a_period_without_submissions_has_no_result() {
    let jobs = busy_site(300, 5);
    let log = Log::of(&log_of(&jobs, &simulated_starts(&jobs, CAPACITY))).unwrap();
    assert_eq!(calibrate(&log, 1_000_000_000, 2_000_000_000, 1), None);
    // The first job of all: nothing is known but the empty machine.
    let first = forecast_jobs(&log, 0..1, 1);
    assert_eq!(first[0].quantiles, [0; 3]);
}
