//! Numbers that other simulators find for a published log. Skipped where the log is absent.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::path::PathBuf;

use evenhand_model::{Capacity, Nano, Rational, Span, Task, Weights, Workload, WorkloadBuilder};
use evenhand_study::{PolicyInputs, starts_under};
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
            user: &log.users()[columns.user[row].index()],
            amounts: &amounts,
            ..Task::default()
        });
    }
    builder.finish().unwrap()
}

#[test]
fn first_come_first_served_on_kth_is_that_of_accasim_and_batsim() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/swf/KTH-SP2-1996-2.1-cln.swf.zst");
    if !path.exists() {
        eprintln!("skipped: no log at {}", path.display());
        return;
    }
    let options = ImportOptions { processors: Processors::Requested, ..ImportOptions::default() };
    let log = with_run_time(&import(&[Source::Path(path)], &options).unwrap().workload);
    let capacity = Capacity::new(log.resources(), vec![Rational::from(100)]).unwrap();
    let inputs = PolicyInputs::new(Weights::equal(log.users().len()));
    let starts = starts_under(&log, &capacity, &inputs, "fifo", None).unwrap();
    let waits = starts.iter().zip(&log.columns().submit).map(|(start, submit)| u128::from(start - submit.nanos()));
    let mean = waits.sum::<u128>() as f64 / log.len() as f64 / 1e9;
    assert_eq!(format!("{mean:.2}"), "389861.06");
}
