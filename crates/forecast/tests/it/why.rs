//! Why jobs waited: the parts add up, and a simulated change starts the job when the simulator does.

use evenhand_forecast::{Change, Log, Obstacle, explain, overtaken_by, peak_use, standing, what_if};
use evenhand_model::{Resource, Span, Task, Time, Workload, WorkloadBuilder};
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

/// A job that had 9 processors for no time shows that the site has them.
#[test]
fn the_peak_of_use_is_no_less_than_a_job_without_duration_had() {
    let spec = |submit, size, run, user| JobSpec { submit, size, run, limit: 60, user };
    let jobs = [spec(0, 2, 5, 0), spec(10, 9, 0, 1), spec(20, 2, 30, 0)];
    let workload = log_of(&jobs, &[0, 50, 60]);
    assert_eq!(peak_use(&workload, &Log::of(&workload).unwrap()), [9]);
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

/// A job with a processor and a memory demand, in seconds: submission, how much later it became eligible, how much later it
/// started, and how long it ran.
type TwoResourceJob = (u64, u64, u64, u64, [u64; 2]);

fn with_eligible_times(jobs: &[TwoResourceJob]) -> Workload {
    let mut builder = WorkloadBuilder::new([Resource::new("cpu", ""), Resource::new("mem", "")]);
    let s = Time::from_secs;
    for &(submit, held, waited, run, amounts) in jobs {
        builder.push(&Task {
            submit: s(submit),
            eligible: Some(s(submit + held)),
            start: Some(s(submit + held + waited)),
            duration: Span::from_secs(run),
            user: "ann",
            amounts: &amounts.map(|amount| u128::from(amount) * 1_000_000_000),
            ..Task::default()
        });
    }
    builder.finish().unwrap()
}

/// What kept a job waiting, second by second.
fn second_by_second(jobs: &[TwoResourceJob], capacities: [u64; 2], own: usize) -> Vec<(Obstacle, i64)> {
    let start = |job: &TwoResourceJob| job.0 + job.1 + job.2;
    let mut found: std::collections::BTreeMap<Obstacle, i64> = std::collections::BTreeMap::new();
    for now in jobs[own].0..start(&jobs[own]) {
        let runs = |job: &&TwoResourceJob| start(job) <= now && now < start(job) + job.3;
        let held = [0, 1].map(|r| jobs.iter().filter(runs).map(|job| job.4[r]).sum::<u64>());
        let lacks = |job: &TwoResourceJob| -> Vec<usize> {
            [0, 1].into_iter().filter(|&r| held[r] + job.4[r] > capacities[r]).collect()
        };
        let waits = |job: &&TwoResourceJob| job.0 + job.1 <= now && now < start(job);
        let obstacle = if now < jobs[own].0 + jobs[own].1 {
            Obstacle::NotEligible
        } else if !lacks(&jobs[own]).is_empty() {
            Obstacle::Resources(lacks(&jobs[own]))
        } else if jobs[..own].iter().filter(waits).any(|job| !lacks(job).is_empty()) {
            Obstacle::EarlierJobs
        } else {
            Obstacle::NotInLog
        };
        *found.entry(obstacle).or_default() += 1;
    }
    let mut found: Vec<(Obstacle, i64)> = found.into_iter().collect();
    found.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn waits_are_divided_as_second_by_second(
        jobs in prop::collection::vec((0u64..30, 0u64..12, 0u64..25, 0u64..20, [0u64..=6, 0u64..=6]), 1..20),
    ) {
        let mut jobs = jobs;
        jobs.sort_by_key(|job| job.0);
        // A job holds some processors, as a log has it.
        jobs.iter_mut().for_each(|job| job.4[0] = job.4[0].max(1));
        let workload = with_eligible_times(&jobs);
        let log = Log::of(&workload).unwrap();
        let steps = |r: usize| u128::from(workload.resources()[r].steps());
        let all: Vec<usize> = (0..jobs.len()).collect();
        for capacity in [8u64, 30] {
            let capacities = [0, 1].map(|r| u128::from(capacity) * steps(r));
            for (own, why) in explain(&workload, &log, &capacities, &all).iter().enumerate() {
                prop_assert_eq!(&why.blocked_by, &second_by_second(&jobs, [capacity, capacity], own), "{}", own);
                let shares: f64 = why.holders.iter().map(|h| h.share).sum();
                prop_assert!(why.holders.is_empty() || (shares - 1.0).abs() < 1e-9, "{:?}", why);
            }
        }
    }
}

#[test]
fn a_log_of_released_jobs_has_the_same_jobs_in_the_order_in_which_they_became_eligible() {
    // The first becomes eligible after the second, which has two copies.
    let mut builder = WorkloadBuilder::new([Resource::new("cpu", "")]);
    let s = Time::from_secs;
    for (submit, eligible, count) in [(0, 50, 1), (10, 10, 2)] {
        let task = Task { submit: s(submit), eligible: Some(s(eligible)), start: Some(s(60)), ..Task::default() };
        builder.push(&Task { count, user: "ann", amounts: &[1_000_000_000], ..task });
    }
    let workload = builder.finish().unwrap();
    assert_eq!(workload.eligible_later(), 1);
    let (log, released) = (Log::of(&workload).unwrap(), Log::released(&workload).unwrap());
    assert!(log.has_eligible_later() && !released.has_eligible_later());
    assert_eq!([0, 1, 2].map(|job| log.eligible(job)), [50, 10, 10]);
    assert_eq!([0, 1, 2].map(|job| released.jobs()[job].submit), [10, 10, 50]);
    assert_eq!([0, 1, 2, 3].map(|job| released.same_job(&log, job)), [Some(2), Some(0), Some(1), None]);
    // A job that is not eligible does not wait before another one.
    assert_eq!((standing(&log, 2).jobs_before, standing(&released, 2).jobs_before), (1, 2));
}
