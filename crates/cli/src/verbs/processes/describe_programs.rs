//! Output of `processes --check`: the programs in words.

use evenhand_processes::Scenario;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::output::console::to_json;
use crate::output::table::printable;

/// Describes the programs and parameters in words.
pub(super) fn describe_programs(scenario: &Scenario, is_json: bool) -> Result<String, Failure> {
    let words = |client: &evenhand_processes::Client| -> Vec<String> {
        client.threads.iter().flat_map(|t| t.explain().lines().map(String::from).collect::<Vec<_>>()).collect()
    };
    if is_json {
        let each = |c: &evenhand_processes::Client| json!({"name": c.name, "lines": words(c)});
        let all: Vec<Value> = scenario.clients().iter().map(each).collect();
        return to_json(&Value::Array(all));
    }
    let mut lines = Vec::new();
    for client in scenario.clients() {
        let mut heading = printable(&client.name);
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
