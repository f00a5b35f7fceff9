//! Numbers that other simulators find for a published log. Skipped where the log is absent.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

use std::path::PathBuf;

use evenhand_model::{Capacity, Nano, Rational, Span, Task, Weights, Workload, WorkloadBuilder};
use evenhand_policies::{PolicyContext, Registry};
use evenhand_simulator::{Backfill, JobOptions, Jobs, Layout, Progress, Site, UserTasks, simulate_jobs};
use evenhand_study::{JobRules, Point, PolicyInputs, Prepared, RequestedCapacity, parse_scheduler, starts_under};
use evenhand_workload::Source;
use evenhand_workload::import::{ImportOptions, Processors, import};

/// The jobs with a run time, which is what the other simulators replay.
fn with_run_time(log: &Workload) -> Workload {
    let mut builder = WorkloadBuilder::new(log.resources().iter().cloned());
    let columns = log.columns();
    for row in (0..log.len()).filter(|row| columns.duration[*row] > Span::ZERO) {
        let amounts: Vec<Nano> = log.amounts(row).iter().map(|a| Nano::from(a.0) * 1_000_000_000).collect();
        builder.push(&Task {
            submit: columns.submit[row],
            duration: columns.duration[row],
            requested: log.requested(row),
            user: &log.users()[columns.user[row].index()],
            amounts: &amounts,
            ..Task::default()
        });
    }
    builder.finish().unwrap()
}

/// The KTH log by requested processors; none where it is absent.
fn kth() -> Option<Workload> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/swf/KTH-SP2-1996-2.1-cln.swf.zst");
    if !path.exists() {
        eprintln!("skipped: no log at {}", path.display());
        return None;
    }
    let options = ImportOptions { processors: Processors::Requested, ..ImportOptions::default() };
    Some(with_run_time(&import(&[Source::Path(path)], &options).unwrap().workload))
}

#[test]
fn first_come_first_served_on_kth_is_that_of_accasim_and_batsim() {
    let Some(log) = kth() else { return };
    let capacity = Capacity::new(log.resources(), vec![Rational::from(100)]).unwrap();
    let inputs = PolicyInputs::new(Weights::equal(log.users().len()));
    let starts = starts_under(&log, &capacity, &inputs, "fifo", None).unwrap();
    let waits = starts.iter().zip(&log.columns().submit).map(|(start, submit)| u128::from(start - submit.nanos()));
    let mean = waits.sum::<u128>() as f64 / log.len() as f64 / 1e9;
    assert_eq!(format!("{mean:.2}"), "389861.06");
}

/// The mean wait under a scheduler, first come first served on 100 processors.
fn mean_wait(log: &Prepared, scheduler: &str) -> String {
    let point = Point {
        policy: "fifo",
        decay: None,
        capacity: &RequestedCapacity::Pool("100".into(), vec![Rational::from(100)]),
        inputs: &PolicyInputs::new(Weights::equal(log.workload().users().len())),
        blocking: true,
        until_trace_end: false,
        jobs: JobRules { backfill: parse_scheduler(scheduler).unwrap(), ..JobRules::default() },
    };
    let run = log.run(&point, &Progress::default()).unwrap();
    format!("{:.2}", run.mean_wait_s.unwrap())
}

/// The mean wait under EASY without the first and the last hundredth of the jobs.
fn trimmed_mean_wait(log: &Workload) -> String {
    let capacity = Capacity::new(log.resources(), vec![Rational::from(100)]).unwrap();
    let (site, weights) = (Site::pool(&capacity), Weights::equal(log.users().len()));
    let jobs = Jobs::new(log, &site, Layout::Auto);
    let mut policy = Registry::built_in().build("fifo", &PolicyContext::new(&capacity, &weights)).unwrap();
    let options = JobOptions { backfill: Backfill::Easy, ..JobOptions::default() };
    let tasks = UserTasks::new(log);
    let run = simulate_jobs(log, &tasks, &site, &jobs, policy.as_mut(), options, &Progress::default()).unwrap();
    let part = log.len() / 100;
    let rows = part..log.len() - part;
    let waits = rows.clone().map(|row| u128::from(run.starts[row] - log.columns().submit[row].nanos()));
    format!("{:.2}", waits.sum::<u128>() as f64 / rows.len() as f64 / 1e9)
}

/// What makes EASY differ between simulators. The numbers in comments are those of the simulators themselves on this log.
#[test]
fn easy_on_kth_is_that_of_other_simulators_by_their_settings() {
    let Some(log) = kth() else { return };
    // pyss: about 6,891.
    assert_eq!(trimmed_mean_wait(&log), "6890.68");
    let log = Prepared::new(log);
    let found = [
        ("easy", "6804.97"),
        ("easy:pyss", "6804.97"),
        // 5,793.01.
        ("easy:cqsim", "5793.01"),
        // 8,231.23.
        ("easy:batsim-fast", "8231.23"),
        // 6,630.51.
        ("easy:batsim", "6626.04"),
        // 6,093.87.
        ("easy:accasim", "6093.87"),
    ];
    for (scheduler, expected) in found {
        assert_eq!(mean_wait(&log, scheduler), expected, "{scheduler}");
    }
}
