//! Each format by example: what a row becomes, what is dropped, what is refused and how.
#![allow(clippy::unwrap_used)]

mod accounting;
mod batsim;
mod google2011;
mod google2019;
mod repeated_jobs;
mod sacct;
mod sdrf_csv;
mod several_files;
mod slurm_json;
mod sources;
mod swf;
mod table;

use std::fmt::Write as _;
use std::io::Write as _;
use std::num::NonZeroUsize;

use evenhand_model::Detail;
use evenhand_workload::Source;
use evenhand_workload::import::{
    CsvColumns, Format, ImportError, ImportOptions, Imported, MemoryPer, MemoryUnit, Processors, import,
    import_with_progress,
};

fn bytes(data: impl Into<Vec<u8>>) -> [Source; 1] {
    [Source::Bytes { name: "trace".to_string(), data: data.into() }]
}

fn options(format: Format) -> ImportOptions {
    ImportOptions { format, ..ImportOptions::default() }
}

fn read(format: Format, text: &str) -> Imported {
    import(&bytes(text), &options(format)).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Every row on a line: submit, start, length, requested, user, account, queue, amounts.
fn rows(imported: &Imported) -> Vec<String> {
    let w = &imported.workload;
    let text = |t: Option<String>| t.unwrap_or_else(|| "-".to_string());
    (0..w.len())
        .map(|row| {
            let c = w.columns();
            let mut line = format!("{} {}", c.submit[row], text(w.start(row).map(|t| t.to_string())));
            write!(line, " {} {}", c.duration[row], text(w.requested(row).map(|t| t.to_string()))).unwrap();
            write!(line, " {}", w.users()[c.user[row].index()]).unwrap();
            write!(line, " {}", text(w.account(row).map(str::to_string))).unwrap();
            write!(line, " {}", text(w.queue(row).map(str::to_string))).unwrap();
            for (resource, amount) in w.resources().iter().zip(w.amounts(row)) {
                write!(line, " {}={}", resource.name, resource.format(*amount)).unwrap();
            }
            line
        })
        .collect()
}

/// On how many nodes each row runs, as far as the source states it.
fn nodes(imported: &Imported) -> Vec<Option<u32>> {
    (0..imported.workload.len()).map(|row| imported.workload.nodes(row)).collect()
}

fn dropped(imported: &Imported) -> Vec<(&str, u64)> {
    imported.summary.dropped.iter().map(|(reason, n)| (reason.as_str(), *n)).collect()
}

/// The message of a failing import; leniently it must only fail for want of tasks.
fn refused(options: &ImportOptions, text: impl Into<Vec<u8>>) -> String {
    let text = text.into();
    let error = import(&bytes(text.clone()), options).unwrap_err();
    assert!(!error.is_environment(), "{error}");
    let lenient = import(&bytes(text), &ImportOptions { lenient: true, ..options.clone() });
    if matches!(error, ImportError::Row(_)) {
        match lenient {
            // The row is dropped, or its malformed field was one that a task can lack.
            Ok(imported) => assert!(
                imported.summary.dropped.iter().any(|(r, _)| r.starts_with("malformed"))
                    || imported.summary.assumptions.iter().any(|a| a.contains("malformed optional field"))
            ),
            Err(lenient) => assert!(matches!(lenient, ImportError::NothingLeft { .. }), "{lenient}"),
        }
    } else {
        assert!(lenient.is_err());
    }
    error.to_string()
}
