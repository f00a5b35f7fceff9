//! `evenhand agent status`: the agent's state as tables.

use std::fmt::Write as _;
use std::path::Path;

use evenhand_agent::{Status, WorkloadStatus};
use evenhand_enforcers::cgroups::Resource;

use super::ask::status;
use crate::console::Console;
use crate::failure::Failure;
use crate::table::{Table, plain};

pub(super) fn run(socket: &Path, console: &Console) -> Result<(), Failure> {
    let status = status(socket)?;
    if console.is_json() {
        return console.json(&status);
    }
    console.result(&text(&status, usize::MAX))
}

/// All of it, with so many users and guests at most.
pub(crate) fn text(status: &Status, most: usize) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}", headline(status));
    let mut table = Table::new(1, ["resource", "there is", "in use", "part", "divided by"]);
    for control in Resource::ALL {
        let Some(of) = status.resources.get(control.name()) else { continue };
        let part = if of.supply > 0.0 { format!("{:.0} %", 100.0 * of.used / of.supply) } else { "-".into() };
        let there = if of.supply > 0.0 { amount(control, of.supply) } else { "unknown".into() };
        let by = of.enforced_by.clone().unwrap_or_else(|| "nothing".into());
        let name = if of.bottleneck { format!("{control} (bottleneck)") } else { control.to_string() };
        table.row(vec![name, there, amount(control, of.used), part, by]);
    }
    let _ = writeln!(text, "\n{}", table.render());
    let resources: Vec<&String> = status.users.first().map(|user| user.shares.keys().collect()).unwrap_or_default();
    let columns = ["user".into(), "heaviness".into(), "guests".into()];
    let shares = resources.iter().map(|resource| format!("{resource} has/due %"));
    let mut table = Table::new(1, columns.into_iter().chain(shares));
    for user in status.users.iter().take(most) {
        let mut row = vec![plain(&user.name), format!("{:+.3}", user.heaviness), user.workloads.to_string()];
        row.extend(resources.iter().map(|resource| {
            let part = |of: &std::collections::BTreeMap<String, f64>| 100.0 * of.get(*resource).copied().unwrap_or(0.0);
            format!("{:.1}/{:.1}", part(&user.shares), part(&user.entitlements))
        }));
        table.row(row);
    }
    let _ = writeln!(text, "\n{}", table.render());
    more(&mut text, status.users.len(), most, "users");
    let mut table = Table::new(2, ["guest", "user", "h_p", "weight", "cpu", "mem", "disk/s", "net/s", "written"]);
    for guest in status.workloads.iter().take(most) {
        table.row(row(guest));
    }
    let _ = writeln!(text, "\n{}", table.render());
    more(&mut text, status.workloads.len(), most, "guests");
    if status.nodes.len() > 1 {
        let mut table = Table::new(2, ["node", "state", "last heard"]);
        for node in &status.nodes {
            table.row(vec![plain(&node.name), node.state.clone(), format!("{:.1} s ago", node.age_s)]);
        }
        let _ = writeln!(text, "\n{}", table.render());
    }
    status.warnings.iter().for_each(|remark| _ = writeln!(text, "\n{remark}"));
    text.trim_end().to_owned()
}

pub(crate) fn headline(status: &Status) -> String {
    let nodes = status.nodes.iter().filter(|node| node.fresh).count();
    let alone = status.alone_s.map_or(String::new(), |s| format!("; no other node heard for {s:.0} s"));
    format!(
        "{}: {} guests here, {} users, {nodes} of {} nodes; {} by {}; {}{alone}",
        status.node,
        status.workloads.len(),
        status.users.len(),
        status.nodes.len(),
        status.metric,
        status.law,
        if status.applied { "weights are written" } else { "dry run, nothing is written" },
    )
}

/// A guest's cells.
pub(crate) fn row(guest: &WorkloadStatus) -> Vec<String> {
    let load = |control: Resource| guest.load.get(control.name()).map_or("-".into(), |load| amount(control, *load));
    let written: Vec<String> = guest.written.iter().map(|(resource, value)| format!("{resource}={value}")).collect();
    vec![
        plain(&guest.name),
        plain(&guest.owner),
        format!("{:.3}", guest.precedence),
        format!("{:.2}", guest.weight),
        load(Resource::Cpu),
        load(Resource::Memory),
        load(Resource::Disk),
        load(Resource::Network),
        written.join(" "),
    ]
}

fn more(text: &mut String, all: usize, most: usize, what: &str) {
    if all > most {
        let _ = writeln!(text, "and {} {what} more", all - most);
    }
}

/// For people: processors, or bytes with a unit.
pub(crate) fn amount(control: Resource, amount: f64) -> String {
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
