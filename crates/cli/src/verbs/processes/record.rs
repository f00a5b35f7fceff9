//! JSON record of `processes`.

use evenhand_processes::{Statistic, SteadyState};
use serde_json::{Value, json};

use super::SchedulerRuns;
use crate::failure::Failure;
use crate::output::console::to_json;

/// Returns one JSON document with the runs under all schedulers.
pub(super) fn to_record(all: &[SchedulerRuns]) -> Result<String, Failure> {
    to_json(&Value::Array(all.iter().map(record).collect()))
}

fn record(runs: &SchedulerRuns) -> Value {
    let resources = runs.scenario.resources();
    let measure = |s: &Statistic| match s.count {
        0 => Value::Null,
        _ => json!({"mean": s.mean, "deviation": s.deviation, "runs": s.count}),
    };
    let process = |(number, client): (usize, &evenhand_processes::Client)| {
        let uses = resources.iter().enumerate().map(|(r, resource)| {
            json!({"name": resource.name, "used_s": measure(&runs.ensemble.used[number][r]), "share": runs.share(number, r)})
        });
        json!({
            "name": client.name,
            "entitlement": evenhand_model::to_f64(client.entitlement.exact()),
            "finish_s": measure(&runs.ensemble.finish[number]),
            "waited_s": measure(&runs.waited(number)),
            "resources": uses.collect::<Vec<_>>(),
        })
    };
    let bottlenecks = runs.recording.bottlenecks.iter().map(|b| {
        json!({
            "resource": resources[b.resource as usize].name,
            "from_s": b.from.secs_f64(),
            "until_s": b.to.secs_f64(),
        })
    });
    let parameters = runs.scenario.parameters();
    json!({
        "scheduler": runs.scheduler.name,
        "reading": parameters.reading.name(),
        "seed": parameters.seed,
        "runs": runs.ensemble.outcomes.len(),
        "end_s": runs.first.end.secs_f64(),
        "dispatches": runs.first.dispatches,
        "processes": runs.scenario.clients().iter().enumerate().map(process).collect::<Vec<_>>(),
        "bottlenecks": bottlenecks.collect::<Vec<_>>(),
        "long_run": runs.settled.as_ref().ok().map(|settled| long_run_record(runs, settled)),
        "no_long_run_because": runs.settled.as_ref().err().map(ToString::to_string),
    })
}

fn long_run_record(runs: &SchedulerRuns, settled: &SteadyState) -> Value {
    let comparison = &settled.comparison;
    let name = |user: usize| runs.scenario.clients()[comparison.clients[user]].name.clone();
    let resource = |r: usize| runs.scenario.resources()[r].name.clone();
    let share = |place: usize| {
        let each = (0..runs.scenario.resources().len()).map(|r| {
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
