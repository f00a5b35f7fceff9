//! Why jobs waited: the parts add up, and a simulated change starts the job when the simulator does.

use evenhand_forecast::{Change, Log, Obstacle, explain, overtaken_by, peak_use, standing, what_if};
use proptest::prelude::*;

use crate::generated_log::{JobSpec, log_of, simulated_starts};

const CAPACITY: u64 = 8;

fn jobs() -> impl Strategy<Value = Vec<JobSpec>> {
    let job = (0u64..40, 1u64..=CAPACITY, 1u64..15, 0u64..20, 0u64..3);
    prop::collection::vec(job, 1..25).prop_map(|jobs| {
        let spec = |(submit, size, run, more, user)| JobSpec { submit, size, run, limit: run + more, user };
        let mut jobs: Vec<JobSpec> = jobs.into_iter().map(spec).collect();
        jobs.sort_by_key(|job| job.submit);
        jobs
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_change_starts_the_job_when_the_simulator_does(jobs in jobs(), at in 0usize..25) {
        let job = at.min(jobs.len() - 1);
        let starts = simulated_starts(&jobs, CAPACITY);
        let log = Log::of(&log_of(&jobs, &starts)).unwrap();
        let found = what_if(&log, CAPACITY as i64, job);
        prop_assert_eq!(found[0].change, Change::Unchanged);
        prop_assert_eq!(found[0].start, Some(starts[job] as i64));
        for what_if in found {
            let mut changed = jobs.clone();
            let own = &mut changed[job];
            match what_if.change {
                Change::Unchanged => (),
                Change::Limit(limit) => own.limit = limit as u64,
                Change::Size(size) => {
                    let longer = |time: u64| time * own.size / size as u64;
                    *own = JobSpec { size: size as u64, run: longer(own.run), limit: longer(own.limit), ..*own };
                }
            }
            prop_assert_eq!(what_if.start, Some(simulated_starts(&changed, CAPACITY)[job] as i64), "{:?}", what_if.change);
        }
    }

    #[test]
    fn the_parts_of_a_wait_add_to_it(jobs in jobs()) {
        let starts = simulated_starts(&jobs, CAPACITY);
        let workload = log_of(&jobs, &starts);
        let log = Log::of(&workload).unwrap();
        let all: Vec<usize> = (0..jobs.len()).collect();
        for (job, why) in explain(&workload, &log, &[u128::from(CAPACITY)], &all).iter().enumerate() {
            let wait = log.jobs()[job].wait();
            prop_assert_eq!(why.blocked_by.iter().map(|b| b.1).sum::<i64>(), wait);
            // With the machine idle but for earlier jobs, nothing else can keep a job waiting than a shadow time.
            prop_assert!(why.blocked_by.iter().all(|b| b.0 != Obstacle::NotInLog), "{:?}", why);
            let shares: f64 = why.holders.iter().map(|h| h.share).sum();
            prop_assert!(wait == 0 && why.holders.is_empty() || (shares - 1.0).abs() < 1e-9, "{:?}", why);
            let later = log.jobs()[why.job + 1..].iter().filter(|job| job.start < log.jobs()[why.job].start);
            prop_assert_eq!(overtaken_by(&log, &[why.job]), later.count());
            prop_assert!(why.holders.iter().map(|h| h.jobs).sum::<usize>() >= why.holders.len());
        }
        let of_user: Vec<usize> = (0..log.jobs().len()).filter(|job| log.jobs()[*job].user == 0).collect();
        let overtook = |later: &usize| of_user.iter().any(|job| job < later && log.jobs()[*later].start < log.jobs()[*job].start);
        prop_assert_eq!(overtaken_by(&log, &of_user), (0..log.jobs().len()).filter(overtook).count());
        prop_assert!(peak_use(&workload, &log)[0] <= u128::from(CAPACITY));
    }
}

#[test]
fn a_worked_example() {
    // 8 processors: user 0 takes 6 for 100 s, user 1 takes 2 for 50 s; user 2 wants 4, and a later job of user 1 is backfilled.
    let spec = |submit, size, run, limit, user| JobSpec { submit, size, run, limit, user };
    let jobs = [spec(0, 6, 100, 100, 0), spec(0, 2, 50, 60, 1), spec(10, 4, 30, 40, 2), spec(20, 2, 50, 50, 1)];
    let starts = simulated_starts(&jobs, 8);
    assert_eq!(starts, [0, 0, 100, 50]);
    let workload = log_of(&jobs, &starts);
    let log = Log::of(&workload).unwrap();
    let why = &explain(&workload, &log, &[8], &[2])[0];
    assert_eq!(why.blocked_by, [(Obstacle::Resources(vec![0]), 90)]);
    assert_eq!([0, 1, 2, 3].map(|job| overtaken_by(&log, &[job])), [0, 0, 1, 0]);
    let held: Vec<(u32, usize, f64)> = why.holders.iter().map(|h| (h.user, h.jobs, h.share)).collect();
    // 6 x 90, and 2 x 40 + 2 x 50.
    assert_eq!(held, [(0, 1, 540.0 / 720.0), (1, 2, 180.0 / 720.0)]);
    let found = what_if(&log, 8, 2);
    assert_eq!(found.iter().map(|w| (w.change, w.start)).collect::<Vec<_>>()[0], (Change::Unchanged, Some(100)));
    // Two processors for 60 s start when the first job of user 1 has ended.
    assert!(found.iter().any(|w| w.change == Change::Size(2) && w.start == Some(50)), "{found:?}");
    let standing = standing(&log, 2);
    assert_eq!((standing.running, standing.waiting, standing.jobs_before, standing.usage_share), (0, 0, 0, 0.0));
    assert_eq!(standing.equal_share, 1.0 / 3.0);
}

#[test]
fn use_fades_by_half_in_a_week() {
    // Two users with the same use, one a week after the other; the third asks right after the second.
    let week = 7 * 86_400;
    let spec = |submit, user| JobSpec { submit, size: 1, run: 1000, limit: 1000, user };
    let jobs = [spec(0, 0), spec(week, 1), spec(week + 1000, 0), spec(week + 1000, 1)];
    let log = Log::of(&log_of(&jobs, &[0, week, week + 1000, week + 1000])).unwrap();
    let share = |job| standing(&log, job).usage_share;
    assert!((share(2) - 1.0 / 3.0).abs() < 1e-9 && (share(3) - 2.0 / 3.0).abs() < 1e-9, "{} {}", share(2), share(3));
}
