//! Writes the CSV of the SDRF authors' simulator.

use std::io::Write;

use evenhand_documents::{Cell, TextCells, push_record};
use evenhand_model::Workload;

use super::{ExportError, ExportFormat, Exported, Losses, missing_resources, resource};

const MICROSECOND: u64 = 1000;

/// Writes `submit_us,start_us,finish_us,user,task,cpu,mem` without a header, in the order of submission. Users are
/// written as their indexes, tasks are numbered from 0, and rows with a count are expanded. A task without an original
/// start starts at its submission.
///
/// # Errors
/// Returns an error if the workload has no resource named `cpu` or none named `mem`, or if writing fails.
pub fn sdrf_csv(w: &Workload, out: &mut dyn Write) -> Result<Exported, ExportError> {
    let (Some(cpu), Some(mem)) = (resource(w, &["cpu"]), resource(w, &["mem"])) else {
        let missing: Vec<&str> = ["cpu", "mem"].into_iter().filter(|n| resource(w, &[n]).is_none()).collect();
        return Err(missing_resources(w, ExportFormat::SdrfCsv, missing.join(" and ")));
    };
    let c = w.columns();
    let mut losses = Losses::default();
    losses.left_out(
        w,
        &[cpu, mem],
        &[
            ("names of users (numbers replace them)", true),
            ("accounts", c.account.is_some()),
            ("queues", c.queue.is_some()),
            ("requested times", c.requested.is_some()),
            ("requested amounts (those held are written)", c.requested_demand.is_some()),
        ],
        &[],
    );
    losses.unknown_starts(w, "they start when submitted");
    let mut line = Vec::new();
    let mut task = 0;
    for row in 0..w.len() {
        let submit = losses.rounded(c.submit[row].nanos(), MICROSECOND);
        let start = w.start(row).map_or(submit, |t| losses.rounded(t.nanos(), MICROSECOND));
        let finish = start + losses.rounded(c.duration[row].nanos(), MICROSECOND);
        let amounts = [cpu, mem].map(|r| w.resources()[r].format(w.amounts(row)[r]));
        for _ in 0..w.count(row) {
            line.clear();
            let [submit, start, finish] = [submit, start, finish].map(Cell::Count);
            let (user, task_number) = (Cell::Count(u64::from(c.user[row].0)), Cell::Count(task));
            let amounts = [Cell::Text(&amounts[0]), Cell::Text(&amounts[1])];
            push_record(&mut line, &[submit, start, finish, user, task_number, amounts[0], amounts[1]], TextCells::Raw);
            out.write_all(&line)?;
            task += 1;
        }
    }
    out.flush()?;
    Ok(losses.finish(task, "microseconds"))
}
