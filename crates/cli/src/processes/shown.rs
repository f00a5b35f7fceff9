//! Output of runs: tables for people, one JSON document for programs.

use evenhand_processes::{Scenario, Statistic, SteadyState};
use serde_json::{Value, json};

use super::Ran;
use crate::bars::percent;
use crate::console::json as as_text;
use crate::failure::Failure;
use crate::figure::short;
use crate::table::{Table, plain};

/// Largest number of intervals that are listed rather than counted.
const MOST_INTERVALS: usize = 6;

/// Describes the programs and parameters in words.
pub(crate) fn explained(scenario: &Scenario, is_json: bool) -> Result<String, Failure> {
    let words = |client: &evenhand_processes::Client| -> Vec<String> {
        client.threads.iter().flat_map(|t| t.explain().lines().map(String::from).collect::<Vec<_>>()).collect()
    };
    if is_json {
        let each = |c: &evenhand_processes::Client| json!({"name": c.name, "lines": words(c)});
        let all: Vec<Value> = scenario.clients().iter().map(each).collect();
        return as_text(&Value::Array(all));
    }
    let mut lines = Vec::new();
    for client in scenario.clients() {
        let mut heading = plain(&client.name);
        if client.start > evenhand_model::Time::ZERO {
            heading.push_str(&format!(", from {} s on", client.start));
        }
        if client.threads.len() > 1 {
            heading.push_str(&format!(", {} threads that share its entitlement", client.threads.len()));
        }
        if let Some(asynchronous) = &client.asynchronous {
            let depth = asynchronous.depth;
            heading.push_str(&format!(", up to {depth} requests under way on {}", asynchronous.resources.join(", ")));
        }
        lines.push(heading);
        lines.extend(words(client).iter().map(|line| format!("  {line}")));
        for (from, until) in &client.suspensions {
            lines.push(format!("  suspended from {from} to {until} s"));
        }
    }
    for resource in scenario.resources() {
        let kind = if resource.preemptive {
            format!("in quanta of {} s", resource.quantum)
        } else {
            "to completion".to_string()
        };
        let servers = if resource.servers == 1 { "one client".into() } else { format!("{} clients", resource.servers) };
        lines.push(format!("{} serves {servers} at a time, {kind}", resource.name));
    }
    Ok(lines.join("\n"))
}

/// Renders a table for each scheduler; if there are several, a comparison first.
pub(crate) fn tables(all: &[Ran]) -> String {
    let mut parts = Vec::new();
    if all.len() > 1 {
        parts.push(compared(all));
    }
    parts.extend(all.iter().map(one));
    parts.join("\n\n")
}

/// Finish times under each scheduler, and the processes with justified complaints.
fn compared(all: &[Ran]) -> String {
    let mut header = vec!["finish s".to_string()];
    header.extend(all.iter().map(|ran| ran.scheduler.name.to_string()));
    let mut table = Table::new(1, header);
    let Some(first) = all.first() else { return String::new() };
    for (number, client) in first.scenario.clients().iter().enumerate() {
        let mut row = vec![plain(&client.name)];
        row.extend(all.iter().map(|ran| statistic(&ran.ensemble.finish[number])));
        table.row(row);
    }
    let mut row = vec!["justified complaint".to_string()];
    row.extend(all.iter().map(|ran| match &ran.settled {
        Ok(settled) => complainers(ran, settled),
        Err(_) => "?".to_string(),
    }));
    table.row(row);
    table.render()
}

fn complainers(ran: &Ran, settled: &SteadyState) -> String {
    let name = |user: usize| plain(&ran.scenario.clients()[settled.comparison.clients[user]].name);
    let names: Vec<String> = settled.comparison.complaints.iter().filter_map(|f| f.who).map(name).collect();
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

/// Formats a statistic as `15.02 ± 0.13`; `-` of no values.
fn statistic(s: &Statistic) -> String {
    match s.count {
        0 => "-".into(),
        1 => short(s.mean),
        _ => format!("{} ± {}", short(s.mean), short(s.deviation)),
    }
}

fn one(ran: &Ran) -> String {
    let runs = ran.ensemble.outcomes.len();
    let resources = ran.scenario.resources();
    let mut header = vec!["process".to_string(), "entitlement".into(), "finish s".into()];
    header.extend(resources.iter().map(|r| format!("{} s", r.name)));
    header.push("waited s".into());
    let mut table = Table::new(1, header);
    for (number, client) in ran.scenario.clients().iter().enumerate() {
        let mut row = vec![plain(&client.name)];
        row.push(short(evenhand_model::to_f64(client.entitlement.exact())));
        row.push(statistic(&ran.ensemble.finish[number]));
        for resource in 0..resources.len() {
            let used = &ran.ensemble.used[number][resource];
            row.push(format!("{} ({})", statistic(used), percent(share(ran, number, resource))));
        }
        row.push(statistic(&waited(ran, number)));
        table.row(row);
    }
    let of = if runs == 1 { String::new() } else { format!(", mean ± standard deviation of {runs} runs") };
    let mut lines = vec![format!("{}: {}{of}", ran.scheduler.name, ran.scheduler.about), String::new(), table.render()];
    lines.push(String::new());
    lines.push("In parentheses: use as a fraction of the resource's service time until the end of the run.".into());
    let first = if runs == 1 { "" } else { " (first run)" };
    for (number, resource) in resources.iter().enumerate() {
        let intervals = ran.bottlenecks(number);
        let times = match intervals.len() {
            0 => "never".to_string(),
            n if n > MOST_INTERVALS => {
                format!("{n} times, {} s in all", short(ran.first.bottleneck[number].secs_f64()))
            }
            _ => {
                let each =
                    intervals.iter().map(|b| format!("{} to {} s", short(b.from.secs_f64()), short(b.to.secs_f64())));
                each.collect::<Vec<_>>().join(", ")
            }
        };
        lines.push(format!("{} is a bottleneck{first}: {times}", resource.name));
    }
    lines.push(String::new());
    lines.push(match &ran.settled {
        Ok(settled) => long_run(ran, settled),
        Err(why) => format!("Long-run shares are not compared with the off-line division: {why}."),
    });
    lines.join("\n")
}

/// Mean fraction of a resource's time that a process used.
fn share(ran: &Ran, client: usize, resource: usize) -> f64 {
    let servers = f64::from(ran.scenario.resources()[resource].servers);
    let of = |o: &evenhand_processes::Outcome| match o.end.secs_f64() {
        0.0 => 0.0,
        end => o.used[client][resource].secs_f64() / end / servers,
    };
    Statistic::of(ran.ensemble.outcomes.iter().map(of)).mean
}

fn waited(ran: &Ran, client: usize) -> Statistic {
    Statistic::of(ran.ensemble.outcomes.iter().map(move |o| o.waited[client].secs_f64()))
}

/// Shares in the steady state, and those of the off-line division.
fn long_run(ran: &Ran, settled: &SteadyState) -> String {
    let SteadyState { from, until, comparison, tolerance } = settled;
    let resources = ran.scenario.resources();
    let mut header = vec!["process".to_string()];
    header.extend(resources.iter().flat_map(|r| [r.name.clone(), "off line".to_string()]));
    let mut table = Table::new(1, header);
    for (place, client) in comparison.clients.iter().enumerate() {
        let mut row = vec![plain(&ran.scenario.clients()[*client].name)];
        for r in 0..resources.len() {
            row.extend([percent(comparison.measured[place][r]), percent(comparison.divided[place][r])]);
        }
        table.row(row);
    }
    let mut lines = vec![
        format!(
            "From {} to {} s every process stays in one phase. Shares in that time, and in the off-line division (bmf):",
            short(from.secs_f64()),
            short(until.secs_f64())
        ),
        table.render(),
        format!("The largest difference is {}.", percent(comparison.difference)),
    ];
    for finding in &comparison.complaints {
        let (Some(who), Some(on)) = (finding.who, finding.on) else { continue };
        lines.push(format!(
            "{} has a justified complaint: it has {} of {} and is entitled to {} (shares within {} count as equal)",
            plain(&ran.scenario.clients()[comparison.clients[who]].name),
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

/// One document with all schedulers.
pub(crate) fn json(all: &[Ran]) -> Result<String, Failure> {
    as_text(&Value::Array(all.iter().map(record).collect()))
}

fn record(ran: &Ran) -> Value {
    let resources = ran.scenario.resources();
    let measure = |s: &Statistic| match s.count {
        0 => Value::Null,
        _ => json!({"mean": s.mean, "deviation": s.deviation, "runs": s.count}),
    };
    let process = |(number, client): (usize, &evenhand_processes::Client)| {
        let uses = resources.iter().enumerate().map(|(r, resource)| {
            json!({"name": resource.name, "used_s": measure(&ran.ensemble.used[number][r]), "share": share(ran, number, r)})
        });
        json!({
            "name": client.name,
            "entitlement": evenhand_model::to_f64(client.entitlement.exact()),
            "finish_s": measure(&ran.ensemble.finish[number]),
            "waited_s": measure(&waited(ran, number)),
            "resources": uses.collect::<Vec<_>>(),
        })
    };
    let bottlenecks = ran.recording.bottlenecks.iter().map(|b| {
        json!({
            "resource": resources[b.resource as usize].name,
            "from_s": b.from.secs_f64(),
            "until_s": b.to.secs_f64(),
        })
    });
    let parameters = ran.scenario.parameters();
    json!({
        "scheduler": ran.scheduler.name,
        "reading": parameters.reading.name(),
        "seed": parameters.seed,
        "runs": ran.ensemble.outcomes.len(),
        "end_s": ran.first.end.secs_f64(),
        "dispatches": ran.first.dispatches,
        "processes": ran.scenario.clients().iter().enumerate().map(process).collect::<Vec<_>>(),
        "bottlenecks": bottlenecks.collect::<Vec<_>>(),
        "long_run": ran.settled.as_ref().ok().map(|settled| long_run_record(ran, settled)),
        "no_long_run_because": ran.settled.as_ref().err().map(ToString::to_string),
    })
}

fn long_run_record(ran: &Ran, settled: &SteadyState) -> Value {
    let comparison = &settled.comparison;
    let name = |user: usize| ran.scenario.clients()[comparison.clients[user]].name.clone();
    let resource = |r: usize| ran.scenario.resources()[r].name.clone();
    let share = |place: usize| {
        let each = (0..ran.scenario.resources().len()).map(|r| {
            json!({
                "name": resource(r),
                "measured": comparison.measured[place][r],
                "divided": comparison.divided[place][r],
            })
        });
        json!({"name": name(place), "shares": each.collect::<Vec<_>>()})
    };
    let complaint = |f: &evenhand_mechanisms::Finding<f64>| json!({"who": f.who.map(name), "on": f.on.map(resource), "has": f.has, "due": f.due});
    json!({
        "from_s": settled.from.secs_f64(),
        "until_s": settled.until.secs_f64(),
        "processes": (0..comparison.clients.len()).map(share).collect::<Vec<_>>(),
        "difference": comparison.difference,
        "tolerance": settled.tolerance,
        "complaints": comparison.complaints.iter().map(complaint).collect::<Vec<_>>(),
    })
}
