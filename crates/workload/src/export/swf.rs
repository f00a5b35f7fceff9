//! Writes the Standard Workload Format, version 2.2 (Chapin et al., 1999; Parallel Workloads Archive).

use std::io::Write;

use evenhand_model::{Detail, Resource, Workload, counted};

use super::{ExportError, ExportFormat, Exported, Losses, last_finish_s, processors, resource};
use crate::outcome;

const SECOND: u64 = 1_000_000_000;

/// Writes header comments and one line of 18 fields per job: whole seconds, whole processors (a fraction is rounded
/// up), memory per processor in KB, users, accounts and queues as numbers from 1, and -1 for unknown values.
///
/// # Errors
/// Returns an error if the workload has no processors, or if writing fails.
pub fn swf(w: &Workload, out: &mut dyn Write) -> Result<Exported, ExportError> {
    let cpu = processors(w, ExportFormat::Swf)?;
    let c = w.columns();
    let mut losses = Losses::default();
    let memory = resource(w, &["mem", "memory"]).filter(|&r| kilobytes(&w.resources()[r]).is_some());
    let kept: Vec<usize> = [Some(cpu), memory].into_iter().flatten().collect();
    losses.left_out(
        w,
        &kept,
        &[("names of users (numbers replace them)", true), ("names of accounts", c.account.is_some())],
        &[Detail::Outcome],
    );
    if let Some(r) = resource(w, &["mem", "memory"]).filter(|_| memory.is_none()) {
        losses.add(format!("memory is in {:?}, which cannot be converted to KB", w.resources()[r].unit));
    }
    losses.unknown_starts(w, "their wait is -1");
    header(w, out)?;
    let (mut job, mut fractions, mut uneven) = (0u64, 0u64, 0u64);
    for row in 0..w.len() {
        let (whole, fraction) = whole_processors(w, row, cpu);
        let wanted = requested_processors(w, row, cpu).unwrap_or(whole);
        fractions += u64::from(fraction);
        let submit = losses.rounded(c.submit[row].nanos(), SECOND);
        let wait = w.start(row).map(|t| losses.rounded(t.nanos(), SECOND).saturating_sub(submit));
        let run = losses.rounded(c.duration[row].nanos(), SECOND);
        let requested = w.requested(row).map(|t| losses.rounded(t.nanos(), SECOND));
        let kb = memory.and_then(|r| {
            let (per_unit, below) = kilobytes(&w.resources()[r])?;
            let amount = u128::from(w.amounts(row)[r].0) * per_unit;
            let parts = below * u128::from(w.resources()[r].steps()) * u128::from(whole);
            uneven += u64::from(!amount.is_multiple_of(parts));
            Some(amount.div_ceil(parts))
        });
        let status = status(w.detail(Detail::Outcome, row));
        let number = |id: Option<u32>| id.map(|id| u64::from(id) + 1);
        let known =
            |column: &Option<Vec<u32>>| column.as_ref().map(|c| c[row]).filter(|&id| id != evenhand_model::NO_ID);
        for _ in 0..w.count(row) {
            job += 1;
            writeln!(
                out,
                "{job} {submit} {} {run} {whole} -1 -1 {wanted} {} {} {status} {} {} -1 {} -1 -1 -1",
                or_unknown(wait),
                or_unknown(requested),
                or_unknown(kb),
                c.user[row].0 + 1,
                or_unknown(number(known(&c.account))),
                or_unknown(number(known(&c.queue))),
            )?;
        }
    }
    out.flush()?;
    if fractions > 0 {
        losses.add(format!(
            "{} a fraction of a processor and {} a whole one",
            counted(fractions, "row requests", "rows request"),
            if fractions == 1 { "gets" } else { "get" }
        ));
    }
    if uneven > 0 {
        losses.add(format!("the memory of {} is rounded up to whole KB per processor", counted(uneven, "row", "rows")));
    }
    Ok(losses.finish(job, "seconds"))
}

/// Returns the status of a job that ended so: 0 failed (by itself, its limit, or the system), 1 completed, 5 cancelled, -1
/// unknown. A job of which the source says nothing ran to its end.
fn status(outcome: Option<&str>) -> i8 {
    match outcome {
        outcome if outcome::is_unknown(outcome) => -1,
        Some(outcome::CANCELLED) => 5,
        Some(outcome::FAILED | outcome::LIMIT | outcome::NODE_FAILURE | outcome::PREEMPTED) => 0,
        _ => 1,
    }
}

fn or_unknown<T: ToString>(value: Option<T>) -> String {
    value.map_or("-1".to_string(), |v| v.to_string())
}

/// Returns the processors of a row, at least one, and whether that is more than it requests.
pub(super) fn whole_processors(w: &Workload, row: usize, cpu: usize) -> (u64, bool) {
    let (amount, steps) = (w.amounts(row)[cpu].0, w.resources()[cpu].steps());
    (amount.div_ceil(steps).max(1), amount == 0 || !amount.is_multiple_of(steps))
}

/// Returns the processors that a row requested, at least one, if they differ from those that it holds.
fn requested_processors(w: &Workload, row: usize, cpu: usize) -> Option<u64> {
    let amount = w.requested_amounts(row)?[cpu].0;
    Some(amount.div_ceil(10u64.pow(u32::from(w.requested_decimals()[cpu]))).max(1))
}

/// Returns the KB in one unit of a resource, as numerator and denominator.
fn kilobytes(r: &Resource) -> Option<(u128, u128)> {
    Some(match r.unit.as_str() {
        "B" | "bytes" => (1, 1024),
        "KB" | "kB" | "KiB" => (1, 1),
        "MB" | "MiB" => (1024, 1),
        "GB" | "GiB" => (1024 * 1024, 1),
        "TB" | "TiB" => (1024 * 1024 * 1024, 1),
        _ => return None,
    })
}

fn header(w: &Workload, out: &mut dyn Write) -> Result<(), ExportError> {
    writeln!(out, "; Version: 2.2")?;
    writeln!(out, "; Conversion: evenhand {}", env!("CARGO_PKG_VERSION"))?;
    let written_here = ["version", "conversion", "maxjobs", "maxrecords", "endtime", "queue", "queues"];
    let mut start = 0;
    for (key, value) in w.header() {
        if key.eq_ignore_ascii_case("UnixStartTime") {
            start = value.trim().parse().unwrap_or(0u64);
        }
        // A line break in a comment would start a job.
        let line = |text: &str| text.replace(['\n', '\r'], " ");
        if !written_here.contains(&key.to_ascii_lowercase().as_str()) {
            writeln!(out, "; {}: {}", line(key), line(value))?;
        }
    }
    writeln!(out, "; MaxJobs: {}", w.tasks())?;
    writeln!(out, "; MaxRecords: {}", w.tasks())?;
    writeln!(out, "; Note: the last job ends at second {}", start.saturating_add(last_finish_s(w)))?;
    for (i, queue) in w.queues().iter().enumerate() {
        writeln!(out, "; Queue: {} {}", i + 1, queue.replace(['\n', '\r'], " "))?;
    }
    Ok(())
}
