//! `evenhand agent status`: the agent's state as tables.

use std::fmt::Write as _;
use std::path::Path;

use evenhand_agent::{Status, WorkloadStatus};
use evenhand_enforcers::cgroups::Resource;
use evenhand_model::counted;

use super::query_status;
use crate::failure::Failure;
use crate::output::console::Console;
use crate::output::table::{Table, printable};

pub(super) fn run(socket: &Path, console: &Console) -> Result<(), Failure> {
    let status = query_status(socket)?;
    if console.is_json() {
        return console.json(&status);
    }
    console.result(&tables(&status))
}

/// Formats the status for people.
fn tables(status: &Status) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}", headline(status));
    let mut table = Table::new(1, ["resource", "supply", "in use", "part", "divided by"]);
    for control in Resource::ALL {
        let Some(of) = status.resources.get(control.name()) else { continue };
        let part = if of.supply > 0.0 { format!("{:.0} %", 100.0 * of.used / of.supply) } else { "-".into() };
        let supply = if of.supply > 0.0 { format_amount(control, of.supply) } else { "unknown".into() };
        let by = of.enforced_by.clone().unwrap_or_else(|| "nothing".into());
        let name = if of.bottleneck { format!("{control} (bottleneck)") } else { control.to_string() };
        table.row(vec![name, supply, format_amount(control, of.used), part, by]);
    }
    let _ = writeln!(text, "\n{}", table.render());
    let resources: Vec<&String> = status.users.first().map(|user| user.shares.keys().collect()).unwrap_or_default();
    let columns = ["user".into(), "heaviness".into(), "workloads".into()];
    let shares = resources.iter().map(|resource| format!("{resource} has/due %"));
    let mut table = Table::new(1, columns.into_iter().chain(shares));
    for user in &status.users {
        let mut row = vec![printable(&user.name), format!("{:+.3}", user.heaviness), user.workloads.to_string()];
        row.extend(resources.iter().map(|resource| {
            let part = |of: &std::collections::BTreeMap<String, f64>| 100.0 * of.get(*resource).copied().unwrap_or(0.0);
            format!("{:.1}/{:.1}", part(&user.shares), part(&user.entitlements))
        }));
        table.row(row);
    }
    let _ = writeln!(text, "\n{}", table.render());
    let mut table = Table::new(2, ["workload", "user", "h_p", "weight", "cpu", "mem", "disk/s", "net/s", "written"]);
    for workload in &status.workloads {
        table.row(workload_cells(workload));
    }
    let _ = writeln!(text, "\n{}", table.render());
    if status.nodes.len() > 1 {
        let mut table = Table::new(2, ["node", "state", "last message"]);
        for node in &status.nodes {
            table.row(vec![printable(&node.name), node.state.clone(), format!("{:.1} s ago", node.age_s)]);
        }
        let _ = writeln!(text, "\n{}", table.render());
    }
    status.warnings.iter().for_each(|remark| _ = writeln!(text, "\n{remark}"));
    text.trim_end().to_owned()
}

/// Summarizes the status in one line.
pub(crate) fn headline(status: &Status) -> String {
    let nodes = status.nodes.iter().filter(|node| node.fresh).count();
    let alone = status.alone_s.map_or(String::new(), |s| format!("; no message from another node for {s:.0} s"));
    format!(
        "{}: {} here, {}, {nodes} of {}; {} by {}; {}{alone}",
        status.node,
        counted(status.workloads.len(), "workload", "workloads"),
        counted(status.users.len(), "user", "users"),
        counted(status.nodes.len(), "node", "nodes"),
        status.metric,
        status.law,
        if status.applied { "weights are written" } else { "dry run, nothing is written" },
    )
}

/// Returns a workload's cells in the table of workloads.
pub(crate) fn workload_cells(workload: &WorkloadStatus) -> Vec<String> {
    let load =
        |control: Resource| workload.load.get(control.name()).map_or("-".into(), |load| format_amount(control, *load));
    let written: Vec<String> = workload.written.iter().map(|(resource, value)| format!("{resource}={value}")).collect();
    vec![
        printable(&workload.name),
        printable(&workload.owner),
        format!("{:.3}", workload.precedence),
        format!("{:.2}", workload.weight),
        load(Resource::Cpu),
        load(Resource::Memory),
        load(Resource::Disk),
        load(Resource::Network),
        written.join(" "),
    ]
}

/// Formats an amount of a resource: processors, or bytes with a unit.
pub(crate) fn format_amount(control: Resource, amount: f64) -> String {
    if control == Resource::Cpu {
        return format!("{amount:.2}");
    }
    let units = ["", " Ki", " Mi", " Gi", " Ti", " Pi"];
    let (mut scaled, mut unit) = (amount, 0);
    while scaled >= 1024.0 && unit + 1 < units.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{scaled:.0}") } else { format!("{scaled:.1}{}", units[unit]) }
}
