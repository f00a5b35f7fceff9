//! Writes Batsim's `jobs.csv`, which evalys reads.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::Write;

use evenhand_documents::{Cell, TextCells, push_record};
use evenhand_model::{Detail, Span, Time, Workload, counted};

use super::assign_processors::{IntervalSet, Processors};
use super::swf::whole_processors;
use super::{ExportError, ExportFormat, Exported, Losses, processors};
use crate::outcome;

const COLUMNS: [&str; 17] = [
    "job_id",
    "workload_name",
    "profile",
    "submission_time",
    "requested_number_of_resources",
    "requested_time",
    "success",
    "final_state",
    "starting_time",
    "execution_time",
    "finish_time",
    "waiting_time",
    "turnaround_time",
    "stretch",
    "allocated_resources",
    "consumed_energy",
    "metadata",
];

/// Writes Batsim's `jobs.csv`: exact times in seconds, and the user in `metadata`.
///
/// `allocated_resources` is an interval set (`1-3 5`). A trace does not contain it, so each task gets the
/// lowest-numbered processors that are free at its original start, or else at its submission. A fraction of a processor
/// is rounded up.
///
/// # Errors
/// Returns an error if the workload has no processors, or if writing fails.
pub fn evalys_csv(w: &Workload, out: &mut dyn Write) -> Result<Exported, ExportError> {
    let cpu = processors(w, ExportFormat::EvalysCsv)?;
    let c = w.columns();
    let mut losses = Losses::default();
    losses.left_out(
        w,
        &[cpu],
        &[
            ("accounts", c.account.is_some()),
            ("queues", c.queue.is_some()),
            ("requested amounts (those held are written)", c.requested_demand.is_some()),
        ],
        &[Detail::Outcome],
    );
    losses.unknown_starts(w, "they start when submitted");
    losses.add("processors are assigned, the lowest free number first; the trace has no processor numbers");
    let unknown = (0..w.len()).filter(|&row| outcome::is_unknown(w.detail(Detail::Outcome, row))).count();
    if unknown > 0 {
        let rows = counted(unknown, "row ended in an unknown way and is", "rows ended in an unknown way and are");
        losses.add(format!("{rows} written as completed"));
    }
    let fractions = (0..w.len()).filter(|&row| whole_processors(w, row, cpu).1).count();
    if fractions > 0 {
        losses.add(format!(
            "{} a fraction of a processor and {} a whole one",
            counted(fractions, "row requests", "rows request"),
            if fractions == 1 { "gets" } else { "get" }
        ));
    }
    let mut line = Vec::new();
    let texts = TextCells::of_results();
    push_record(&mut line, &COLUMNS.map(Cell::Text), texts);
    out.write_all(&line)?;
    let allocated = allocate(w, cpu);
    let mut job = 0;
    for (row, sets) in allocated.iter().enumerate() {
        let submit = c.submit[row];
        let start = start(w, row);
        let run = c.duration[row];
        let finish = start + run;
        let (wait, turnaround) = (start - submit, finish - submit);
        // Batsim's stretch is turnaround over run time; it is 1 for a task that neither waits nor runs.
        let stretch = if turnaround == run { 1.0 } else { turnaround.secs_f64() / run.secs_f64() };
        let stretch = stretch.to_string();
        let state = outcome::to_batsim(w.detail(Detail::Outcome, row));
        for set in sets {
            job += 1;
            line.clear();
            let seconds = |span: Span| Cell::Seconds(Some(span.nanos()));
            let at = |time: Time| Cell::Seconds(Some(time.nanos()));
            push_record(
                &mut line,
                &[
                    Cell::Count(job),
                    Cell::Text("evenhand"),
                    Cell::Text("delay"),
                    at(submit),
                    Cell::Count(whole_processors(w, row, cpu).0),
                    w.requested(row).map_or(Cell::Text("-1"), seconds),
                    Cell::Count(u64::from(state == outcome::to_batsim(None))),
                    Cell::Text(state),
                    at(start),
                    seconds(run),
                    at(finish),
                    seconds(wait),
                    seconds(turnaround),
                    Cell::Text(&stretch),
                    Cell::Text(&set.to_string()),
                    Cell::Text("-1"),
                    Cell::Text(&w.users()[c.user[row].index()]),
                ],
                texts,
            );
            out.write_all(&line)?;
        }
    }
    out.flush()?;
    Ok(losses.finish(job, "seconds"))
}

/// Returns the start of a task; an original start before the submission counts as the submission.
fn start(w: &Workload, row: usize) -> Time {
    let submit = w.columns().submit[row];
    w.start(row).map_or(submit, |t| t.max(submit))
}

/// Assigns processors to every copy of every row. At the same instant, tasks finish before others start, and start in
/// the order of rows.
fn allocate(w: &Workload, cpu: usize) -> Vec<Vec<IntervalSet>> {
    let mut order: Vec<usize> = (0..w.len()).collect();
    order.sort_by_key(|&row| start(w, row));
    let mut free = Processors::default();
    let mut running: BinaryHeap<Reverse<(Time, usize)>> = BinaryHeap::new();
    let mut allocated = vec![Vec::new(); w.len()];
    for row in order {
        let now = start(w, row);
        while let Some(&Reverse((_, done))) = running.peek().filter(|r| r.0.0 <= now) {
            running.pop();
            let sets: &Vec<IntervalSet> = &allocated[done];
            sets.iter().for_each(|set| free.release(set));
        }
        let n = u128::from(whole_processors(w, row, cpu).0);
        allocated[row] = (0..w.count(row)).map(|_| free.take(n)).collect();
        running.push(Reverse((now + w.columns().duration[row], row)));
    }
    allocated
}
