//! Table of normalized user wait times (NUWT; Klusáček & Rudová 2013) and idle resources, below a study's table.

use evenhand_study::record::{NuwtSpread, RunRecord, StudyRecord};

use crate::output::table::Table;

/// Smallest share that is listed; smaller ones would be printed as 0.
const MIN_SHARE: f64 = 0.0005;

/// Formats a row for each run; returns an empty text if no run has these measurements.
pub(super) fn table(record: &StudyRecord, names: impl Fn(&RunRecord) -> [String; 2]) -> String {
    if record.runs.iter().all(|run| run.nuwt_per_pe.is_none() && run.waste.is_none()) {
        return String::new();
    }
    let columns =
        ["capacity", "policy", "NUWT/PE", "spread", "F", "NUWT/CPU", "spread", "F", "idle for want of another"];
    let mut table = Table::new(2, columns);
    for run in &record.runs {
        let [capacity, policy] = names(run);
        let mut row = vec![capacity, policy];
        for spread in [&run.nuwt_per_pe, &run.nuwt_per_cpu] {
            row.extend(numbers(spread));
        }
        row.push(stranded(run));
        table.row(row);
    }
    format!(
        "\n\n{}\n\nNUWT: mean over users of waits / (run time x processors); spread: its standard deviation\nidle: while tasks wait",
        table.render()
    )
}

fn numbers(spread: &Option<NuwtSpread>) -> [String; 3] {
    match spread {
        Some(s) => [s.mean, s.standard_deviation, s.fairness].map(three_digits),
        None => ["-"; 3].map(String::from),
    }
}

/// Formats a number with about three significant digits.
fn three_digits(value: f64) -> String {
    match value.abs() {
        v if v >= 1e6 => format!("{value:.2e}"),
        v if v == 0.0 || v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 => format!("{value:.2}"),
        v if v >= 0.01 => format!("{value:.3}"),
        _ => format!("{value:.1e}"),
    }
}

fn stranded(run: &RunRecord) -> String {
    let Some(waste) = &run.waste else { return "-".into() };
    let named = waste.stranded.iter().filter(|pair| pair.share >= MIN_SHARE);
    let each: Vec<String> =
        named.map(|pair| format!("{} {:.1} % ({})", pair.resource, 100.0 * pair.share, pair.lacking)).collect();
    if each.is_empty() { "-".into() } else { each.join(", ") }
}
