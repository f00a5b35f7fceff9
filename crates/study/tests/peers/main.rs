//! Numbers that other simulators find for a published log. Skipped where the log is absent.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod easy_rules;

use std::path::PathBuf;

use evenhand_model::{Capacity, Nano, Rational, Span, Task, Weights, Workload, WorkloadBuilder};
use evenhand_study::{PolicyInputs, starts_under};
use evenhand_workload::Source;
use evenhand_workload::import::{ImportOptions, Processors, import};

use easy_rules::{Calls, Job, NamedProcessors, PlannedOnce, Reserved, Rule, waits};

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

fn mean(waits: &[u64]) -> f64 {
    waits.iter().map(|wait| u128::from(*wait)).sum::<u128>() as f64 / waits.len() as f64
}

/// What makes EASY differ between simulators. The numbers in comments are those of the simulators themselves on this log.
#[test]
fn easy_on_kth_is_that_of_other_simulators_by_their_rules() {
    let Some(log) = kth() else { return };
    let columns = log.columns();
    let seconds = |nanos: u64| nanos / 1_000_000_000;
    let job = |row: usize| {
        let run = seconds(columns.duration[row].nanos());
        Job {
            submit: seconds(columns.submit[row].nanos()),
            run,
            processors: u32::try_from(log.amounts(row)[0].0).unwrap(),
            limit: log.requested(row).map_or(run, |limit| seconds(limit.nanos()).max(run)),
        }
    };
    let jobs: Vec<Job> = (0..log.len()).map(job).collect();
    let under = |calls: Calls, mut rule: Box<dyn Rule>| waits(&jobs, calls, rule.as_mut());
    let reserved = under(Calls::AnInstant, Box::new(Reserved::by_limits(100)));
    assert_eq!(format!("{:.2}", mean(&reserved)), "6804.97");
    // pyss: about 6,891, without the first and the last hundredth of the jobs.
    let part = reserved.len() / 100;
    assert_eq!(format!("{:.2}", mean(&reserved[part..reserved.len() - part])), "6890.68");
    // CQSim: 5,793.01.
    let found = under(Calls::AnEvent, Box::new(Reserved::by_true_run_times(100)));
    assert_eq!(format!("{:.2}", mean(&found)), "5793.01");
    // Batsim, easy_bf_fast: 8,231.23.
    let found = under(Calls::AnInstant, Box::new(PlannedOnce::new(100)));
    assert_eq!(format!("{:.2}", mean(&found)), "8231.23");
    // Batsim, easy_bf: 6,630.51.
    let found = under(Calls::AnEvent, Box::new(NamedProcessors::new(100)));
    assert_eq!(format!("{:.2}", mean(&found)), "6626.04");
}
