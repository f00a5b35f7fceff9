//! `evenhand agent status`: the agent's state as tables.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use evenhand_agent::{Status, WorkloadStatus};
use evenhand_enforcers::cgroups::Resource;
use evenhand_model::counted;

use super::query_status;
use crate::failure::Failure;
use crate::output::console::Console;
use crate::output::fold_lines::{fold_lines_at, table_width};
use crate::output::table::{Table, printable};

pub(super) fn run(socket: &Path, console: &Console) -> Result<(), Failure> {
    let status = query_status(socket)?;
    if console.is_json() {
        return console.json(&status);
    }
    console.result(&tables(&status, table_width()))
}

/// Formats the status for people, in lines of at most this number of columns: names that are too long are shortened, as programs
/// read them whole in JSON.
fn tables(status: &Status, columns: usize) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}", fold_lines_at(&headline(status), columns, "  "));
    let mut table = Table::new(1, ["resource", "supply", "in use", "part", "divided by"]);
    for control in Resource::ALL {
        let Some(of) = status.resources.get(control.name()) else { continue };
        let part = if of.supply > 0.0 { format!("{:.0} %", 100.0 * of.used / of.supply) } else { "-".into() };
        let supply = if of.supply > 0.0 { format_amount(control, of.supply) } else { "unknown".into() };
        let by = of.enforced_by.clone().unwrap_or_else(|| "nothing".into());
        let name = if of.bottleneck { format!("{control} (bottleneck)") } else { control.to_string() };
        table.row(vec![name, supply, format_amount(control, of.used), part, by]);
    }
    let _ = writeln!(text, "\n{}", table.render_within(columns));
    let _ = writeln!(text, "\n{}", users(status, columns));
    let _ = writeln!(text, "\n{}", workloads(status, columns));
    if status.nodes.len() > 1 {
        let mut table = Table::new(2, ["node", "state", "last message"]);
        for node in &status.nodes {
            table.row(vec![printable(&node.name), node.state.clone(), format!("{:.1} s ago", node.age_s)]);
        }
        let _ = writeln!(text, "\n{}", table.render_within(columns));
    }
    let warnings = status.warnings.iter().map(|warning| fold_lines_at(warning, columns, "  "));
    warnings.for_each(|warning| _ = writeln!(text, "\n{warning}"));
    text.trim_end().to_owned()
}

/// The least number of characters to which the name of a user or a workload is shortened.
const LEAST_NAME: usize = 12;

/// The table of users.
fn users(status: &Status, columns: usize) -> String {
    let resources: Vec<&String> = status.users.first().map(|user| user.shares.keys().collect()).unwrap_or_default();
    let with_names = |most: usize| {
        let fixed = ["user".into(), "heaviness".into(), "workloads".into()];
        let shares = resources.iter().map(|resource| format!("{resource} has/due %"));
        let mut table = Table::new(1, fixed.into_iter().chain(shares));
        for user in &status.users {
            let mut row =
                vec![shortened(&user.name, most), format!("{:+.3}", user.heaviness), user.workloads.to_string()];
            row.extend(resources.iter().map(|resource| {
                let part = |of: &BTreeMap<String, f64>| 100.0 * of.get(*resource).copied().unwrap_or(0.0);
                format!("{:.1}/{:.1}", part(&user.shares), part(&user.entitlements))
            }));
            table.row(row);
        }
        table
    };
    let longest = status.users.iter().map(|user| printable(&user.name).chars().count()).max().unwrap_or(0);
    let excess = with_names(longest).width().saturating_sub(columns);
    with_names(longest.saturating_sub(excess).max(LEAST_NAME)).render_within(columns)
}

/// The table of workloads; what was written stands on lines of its own where the line is too short.
fn workloads(status: &Status, columns: usize) -> String {
    let with_names = |of_workloads: usize, of_users: usize| {
        let header = ["workload", "user", "h_p", "weight", "cpu", "mem", "disk/s", "net/s", "written"];
        let mut table = Table::new(2, header).with_text_last();
        for workload in &status.workloads {
            let mut cells = workload_cells(workload);
            cells[0] = shortened(&workload.name, of_workloads);
            cells[1] = shortened(&workload.owner, of_users);
            table.row(cells);
        }
        table
    };
    let whole = with_names(usize::MAX, usize::MAX);
    // The numbers leave space for names of this length in a line of 100 columns.
    if whole.width() <= columns {
        whole.render_within(columns)
    } else {
        let of_workloads = if columns < 60 { LEAST_NAME } else { 2 * LEAST_NAME };
        with_names(of_workloads, LEAST_NAME).render_folded(columns)
    }
}

/// Returns a printable name without its middle if it has more than `most` characters: ends tell names apart.
fn shortened(name: &str, most: usize) -> String {
    let name = printable(name);
    let length = name.chars().count();
    if length <= most {
        return name;
    }
    let (begin, end) = ((most - 1).div_ceil(2), (most - 1) / 2);
    let part = |from: usize, number: usize| name.chars().skip(from).take(number).collect::<String>();
    format!("{}…{}", part(0, begin), part(length - end, end))
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

#[cfg(test)]
mod tests {
    use evenhand_agent::{ResourceStatus, UserStatus};

    use super::*;

    /// A status with this number of characters in every name.
    fn status(name: usize) -> Status {
        let named = |letter: &str| format!("{}.{}", letter.repeat(name - 2), letter);
        let of_all = |value: f64| Resource::ALL.map(|resource| (resource.name().to_owned(), value)).into();
        let resource = |of: Resource| (of.name().to_owned(), ResourceStatus { supply: 1e13, ..Default::default() });
        let load = |resource| if resource == Resource::Cpu { 1024.0 } else { 1020.0 * 1024.0_f64.powi(3) };
        Status {
            node: named("n"),
            metric: "deviation".into(),
            law: "integral".into(),
            alone_s: Some(1e5),
            resources: Resource::ALL.map(resource).into(),
            users: vec![UserStatus {
                name: named("u"),
                shares: of_all(1.0),
                entitlements: of_all(1.0),
                ..Default::default()
            }],
            workloads: vec![WorkloadStatus {
                name: named("w"),
                owner: named("u"),
                load: Resource::ALL.map(|resource| (resource.name().to_owned(), load(resource))).into(),
                written: Resource::ALL.map(|resource| (resource.name().to_owned(), 1 << 40)).into(),
                ..Default::default()
            }],
            warnings: vec!["a group cannot be written ".repeat(6)],
            ..Default::default()
        }
    }

    #[test]
    fn no_line_is_longer_than_the_terminal() {
        for (name, columns) in [(5, 100), (20, 100), (60, 100), (60, 160), (5, 80), (60, 80), (20, 60), (20, 40)] {
            let text = tables(&status(name), columns);
            let long: Vec<&str> = text.lines().filter(|line| line.chars().count() > columns).collect();
            assert!(long.is_empty(), "{long:#?} in\n{text}");
            assert!(text.contains("net=1099511627776"), "{text}");
        }
        let wide = tables(&status(60), 400);
        assert!(
            wide.lines().any(|line| line.contains(&"w".repeat(58)) && line.contains("net=1099511627776")),
            "{wide}"
        );
    }

    #[test]
    fn a_shortened_name_keeps_its_ends() {
        let names = [("machine", "machine"), ("machine-1", "mach…e-1"), ("\u{1b}[31mred", "\\x1b…red")];
        for (name, expected) in names {
            assert_eq!(shortened(name, 8), expected);
        }
    }
}
