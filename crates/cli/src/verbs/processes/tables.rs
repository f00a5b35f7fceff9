//! Tables of `processes`.

use evenhand_processes::{Statistic, SteadyState};

use super::SchedulerRuns;
use crate::output::numbers::{four_digits, percent};
use crate::output::table::{Table, printable};

/// Largest number of intervals that are listed rather than counted.
const MAX_INTERVALS: usize = 6;

/// Renders a table for each scheduler; if there are several, a comparison first.
pub(super) fn tables(all: &[SchedulerRuns]) -> String {
    let mut parts = Vec::new();
    if all.len() > 1 {
        parts.push(comparison(all));
    }
    parts.extend(all.iter().map(one_scheduler));
    parts.join("\n\n")
}

/// Compares finish times under all schedulers, and the processes with justified complaints.
fn comparison(all: &[SchedulerRuns]) -> String {
    let mut header = vec!["finish s".to_string()];
    header.extend(all.iter().map(|runs| runs.scheduler.name.to_string()));
    let mut table = Table::new(1, header);
    let Some(first) = all.first() else { return String::new() };
    for (number, client) in first.scenario.clients().iter().enumerate() {
        let mut row = vec![printable(&client.name)];
        row.extend(all.iter().map(|runs| statistic(&runs.ensemble.finish[number])));
        table.row(row);
    }
    let mut row = vec!["justified complaint".to_string()];
    row.extend(all.iter().map(|runs| match &runs.settled {
        Ok(settled) => complainers(runs, settled),
        Err(_) => "?".to_string(),
    }));
    table.row(row);
    table.render()
}

fn complainers(runs: &SchedulerRuns, settled: &SteadyState) -> String {
    let name = |user: usize| printable(&runs.scenario.clients()[settled.comparison.clients[user]].name);
    let names: Vec<String> = settled.comparison.complaints.iter().filter_map(|f| f.who).map(name).collect();
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

/// Formats a statistic as `15.02 ± 0.13`; `-` of no values.
fn statistic(s: &Statistic) -> String {
    match s.count {
        0 => "-".into(),
        1 => four_digits(s.mean),
        _ => format!("{} ± {}", four_digits(s.mean), four_digits(s.deviation)),
    }
}

/// Formats the runs under one scheduler.
fn one_scheduler(runs: &SchedulerRuns) -> String {
    let count = runs.ensemble.outcomes.len();
    let resources = runs.scenario.resources();
    let mut header = vec!["process".to_string(), "entitlement".into(), "finish s".into()];
    header.extend(resources.iter().map(|r| format!("{} s", r.name)));
    header.push("waited s".into());
    let mut table = Table::new(1, header);
    for (number, client) in runs.scenario.clients().iter().enumerate() {
        let mut row = vec![printable(&client.name)];
        row.push(four_digits(evenhand_model::to_f64(client.entitlement.exact())));
        row.push(statistic(&runs.ensemble.finish[number]));
        for resource in 0..resources.len() {
            let used = &runs.ensemble.used[number][resource];
            row.push(format!("{} ({})", statistic(used), percent(runs.share(number, resource))));
        }
        row.push(statistic(&runs.waited(number)));
        table.row(row);
    }
    let of = if count == 1 { String::new() } else { format!(", mean ± standard deviation of {count} runs") };
    let mut lines =
        vec![format!("{}: {}{of}", runs.scheduler.name, runs.scheduler.about), String::new(), table.render()];
    lines.push(String::new());
    lines.push("In parentheses: use as a fraction of the resource's service time until the end of the run.".into());
    let first = if count == 1 { "" } else { " (first run)" };
    for (number, resource) in resources.iter().enumerate() {
        let intervals = runs.bottlenecks(number);
        let times = match intervals.len() {
            0 => "never".to_string(),
            n if n > MAX_INTERVALS => {
                format!("{n} times, {} s in all", four_digits(runs.first.bottleneck[number].secs_f64()))
            }
            _ => {
                let each = intervals
                    .iter()
                    .map(|b| format!("{} to {} s", four_digits(b.from.secs_f64()), four_digits(b.to.secs_f64())));
                each.collect::<Vec<_>>().join(", ")
            }
        };
        lines.push(format!("{} is a bottleneck{first}: {times}", resource.name));
    }
    lines.push(String::new());
    lines.push(match &runs.settled {
        Ok(settled) => long_run(runs, settled),
        Err(why) => format!("Long-run shares are not compared with the off-line division: {why}."),
    });
    lines.join("\n")
}

/// Compares the shares in the steady state with those of the off-line division.
fn long_run(runs: &SchedulerRuns, settled: &SteadyState) -> String {
    let SteadyState { from, until, comparison, tolerance } = settled;
    let resources = runs.scenario.resources();
    let mut header = vec!["process".to_string()];
    header.extend(resources.iter().flat_map(|r| [r.name.clone(), "off line".to_string()]));
    let mut table = Table::new(1, header);
    for (place, client) in comparison.clients.iter().enumerate() {
        let mut row = vec![printable(&runs.scenario.clients()[*client].name)];
        for r in 0..resources.len() {
            row.extend([percent(comparison.measured[place][r]), percent(comparison.divided[place][r])]);
        }
        table.row(row);
    }
    let mut lines = vec![
        format!(
            "From {} to {} s every process stays in one phase. Shares in that time, and in the off-line division (bmf):",
            four_digits(from.secs_f64()),
            four_digits(until.secs_f64())
        ),
        table.render(),
        format!("The largest difference is {}.", percent(comparison.difference)),
    ];
    for finding in &comparison.complaints {
        let (Some(who), Some(on)) = (finding.who, finding.on) else { continue };
        lines.push(format!(
            "{} has a justified complaint: it has {} of {} and is entitled to {} (shares within {} count as equal)",
            printable(&runs.scenario.clients()[comparison.clients[who]].name),
            percent(finding.has),
            resources[on].name,
            percent(finding.due),
            percent(*tolerance)
        ));
    }
    if comparison.complaints.is_empty() {
        lines.push(format!(
            "No process has a justified complaint (shares within {} count as equal).",
            percent(*tolerance)
        ));
    }
    lines.join("\n")
}
