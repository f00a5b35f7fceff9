//! Studies whose users react: what users get done, against what is computed from the tasks, and what is refused.
#![allow(clippy::unwrap_used)]

use evenhand_model::random::Stream;
use evenhand_model::{Rational, Resource, Span, Task, Time, Weights, Workload, WorkloadBuilder};
use evenhand_study::record::{MethodRecord, RunRecord, StudyRecord};
use evenhand_study::{
    Arrivals, Backfill, JobRules, LOGGED, Live, Plan, PolicyInputs, Repeats, RequestedCapacity, StudyRequest,
    TaskFormat, Vary,
};

/// Users who submit a batch, wait for it and think; the log has long waits.
fn log(with_starts: bool) -> Workload {
    let mut stream = Stream::new(7, "log", 0);
    let mut tasks: Vec<(u64, u64, u64, usize)> = Vec::new();
    for user in 0..4 {
        let mut now = user as u64 * 50;
        for _ in 0..12 {
            let run = 200 + stream.below(800);
            let wait = stream.below(2000);
            (0..1 + stream.below(3)).for_each(|_| tasks.push((now, now + wait, run, user)));
            now += wait + run + stream.below(3000);
        }
    }
    tasks.sort_unstable();
    let mut builder = WorkloadBuilder::new([Resource::new("cpu", "")]);
    for (submit, start, run, user) in tasks {
        builder.push(&Task {
            submit: Time::from_secs(submit),
            start: with_starts.then_some(Time::from_secs(start)),
            duration: Span::from_secs(run),
            user: ["ann", "bob", "cat", "dan"][user],
            amounts: &[1_000_000_000],
            ..Task::default()
        });
    }
    builder.finish().unwrap()
}

fn plan(workload: Workload, policies: &[&str], backfill: Backfill) -> Plan {
    let request = StudyRequest {
        policies: policies.iter().map(|p| p.to_string()).collect(),
        against: None,
        capacities: vec![RequestedCapacity::Pool("pool".into(), vec![Rational::from(4)])],
        decays: vec![],
        inputs: PolicyInputs::new(Weights::equal(4)),
        blocking: true,
        until_trace_end: false,
        jobs: JobRules { backfill, ..JobRules::default() },
    };
    Plan::new(workload, &request).unwrap()
}

fn run(plan: &Plan, dir: &std::path::Path) -> StudyRecord {
    plan.run(dir, "a test", MethodRecord::default(), TaskFormat::Csv, &Live::new(plan)).unwrap()
}

/// User, submission, start and duration of each task of a run, and its row in the log.
fn tasks(dir: &std::path::Path, run: &RunRecord) -> Vec<(String, f64, f64, f64, usize)> {
    let text = std::fs::read_to_string(dir.join(format!("tasks-{}.csv", run.id))).unwrap();
    let task = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let number = |at: usize| cells[at].parse::<f64>().unwrap();
        (cells[1].to_string(), number(2), number(3), number(4), cells[0].parse().unwrap())
    };
    text.lines().skip(1).map(task).collect()
}

#[test]
fn what_users_get_done_is_what_their_tasks_say() {
    let log = log(true);
    let last = log.columns().submit.last().unwrap().secs_f64();
    for (arrivals, backfill) in [(Arrivals::Closed, Backfill::None), (Arrivals::Sessions, Backfill::Easy)] {
        let dir = tempfile::tempdir().unwrap();
        let plan = plan(log.clone(), &[LOGGED, "fifo", "drf"], backfill).with_arrivals(arrivals).unwrap();
        let record = run(&plan, dir.path());
        for run in &record.runs {
            let work = run.work.as_ref().unwrap();
            let tasks = tasks(dir.path(), run);
            assert_eq!(work.arrivals, arrivals.name());
            assert_eq!(work.window_s, last);
            let ended = tasks.iter().filter(|(_, _, start, run, _)| start + run <= last).count();
            assert_eq!(work.tasks_in_window, ended as u64);
            for user in &run.users {
                let of_user = || tasks.iter().filter(|task| task.0 == user.name);
                let first = of_user().map(|task| task.1).fold(f64::INFINITY, f64::min);
                let end = of_user().map(|task| task.2 + task.3).fold(0.0, f64::max);
                assert!((user.finish_s.unwrap() - (end - first)).abs() < 1e-6, "{} {}", run.id, user.name);
                let wait = of_user().map(|task| task.2 - task.1).sum::<f64>() / of_user().count() as f64;
                assert!((user.mean_wait_s.unwrap() - wait).abs() < 1e-6);
            }
            let mut rows: Vec<usize> = tasks.iter().map(|task| task.4).collect();
            let is_log = run.policy == LOGGED;
            assert_eq!(rows.is_sorted(), is_log, "the log's order, or that of the submissions of the run");
            rows.sort_unstable();
            assert_eq!(rows, (0..log.len()).collect::<Vec<usize>>());
        }
        // Four processors suffice for what the log makes wait: everybody is earlier.
        let comparison = record.comparisons[0].work.as_ref().unwrap();
        assert_eq!((comparison.users_earlier, comparison.users_later), (4, 0));
        assert!(comparison.users_mean_finish_difference_s.unwrap() < 0.0);
        let [then, now] = [0, 1].map(|run: usize| record.runs[run].work.as_ref().unwrap().tasks_in_window as f64);
        assert_eq!(comparison.tasks_in_window_change, Some(now / then - 1.0));
        assert!(now >= then);
        assert!(
            std::fs::read_to_string(dir.path().join("users.csv"))
                .unwrap()
                .lines()
                .next()
                .unwrap()
                .ends_with(",finish_s")
        );
    }
}

#[test]
fn repeats_and_threads_do_not_change_a_study_of_users_who_react() {
    let repeats = |count| Repeats { count, vary: vec![Vary::Ties], seed: 3 };
    let study = |threads: usize, count: u32, dir: &std::path::Path| {
        let plan = plan(log(true), &["fifo", "drf"], Backfill::None).with_arrivals(Arrivals::Closed).unwrap();
        let plan = plan.repeated(repeats(count)).unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut record = pool.install(|| run(&plan, dir));
        record.runs.iter_mut().for_each(|run| run.elapsed_s = 0.0);
        record
    };
    let dirs: Vec<_> = (0..2).map(|_| tempfile::tempdir().unwrap()).collect();
    let first = study(1, 6, dirs[0].path());
    assert_eq!(study(2, 6, dirs[1].path()), first);
    assert_eq!(study(2, 6, dirs[0].path()), first, "from the folder");
    let work = first.comparisons[0].work.as_ref().unwrap();
    let beyond = work.users_earlier_beyond_noise.unwrap() + work.users_later_beyond_noise.unwrap();
    assert!(beyond <= work.users_earlier + work.users_later);
    let [low, high] = work.finish_difference_s.unwrap().interval;
    assert!(low <= high);
    // The log's own times in the same folder are another study.
    let clock = run(&plan(log(true), &["fifo", "drf"], Backfill::None), dirs[0].path());
    assert!(clock.runs.iter().all(|run| run.work.is_none() && run.users.iter().all(|user| user.finish_s.is_none())));
    assert!(clock.runs.iter().zip(&first.runs).any(|(a, b)| a.mean_wait_s != b.mean_wait_s));
}

#[test]
fn what_cannot_be_inferred_or_varied_is_refused() {
    let error = plan(log(false), &["fifo"], Backfill::None).with_arrivals(Arrivals::Sessions).unwrap_err().to_string();
    assert!(error.starts_with("--arrivals sessions: the workload has no original starts"), "{error}");
    assert!(plan(log(false), &["fifo"], Backfill::None).with_arrivals(Arrivals::Clock).is_ok());
    let closed = plan(log(true), &["fifo"], Backfill::None).with_arrivals(Arrivals::Closed).unwrap();
    let repeats = Repeats { count: 3, vary: vec![Vary::Ties, Vary::Arrivals], seed: 1 };
    let error = closed.repeated(repeats).unwrap_err().to_string();
    assert!(error.starts_with("--vary arrivals: moves submissions"), "{error}");
}
