//! Tables of `allocate`.

use evenhand_mechanisms::Mechanism;
use evenhand_mechanisms::problem_files::ProblemFile;
use evenhand_model::counted;

use super::record::{AllocationRecord, ResourceRecord};
use crate::output::bars::bar;
use crate::output::numbers::percent;
use crate::output::output_number::{AmountFormat, OutputNumber};
use crate::output::table::{Table, printable};

/// Largest number of users in a table.
const MAX_USERS: usize = 40;
/// Largest number of resources that have a column each.
const MAX_RESOURCES: usize = 6;
/// Length to which names are cut, in characters.
const MAX_NAME: usize = 24;
/// Width of a bar, in characters.
const BAR: usize = 20;
/// Width of `99.9 %`.
const PERCENT: usize = 6;

/// Formats a section for each mechanism; if there are several, a comparison follows.
pub(crate) fn render(file: &ProblemFile, mechanisms: &[&dyn Mechanism], records: &[AllocationRecord]) -> String {
    let mut sections: Vec<String> =
        mechanisms.iter().zip(records).map(|(mechanism, record)| section(file, *mechanism, record)).collect();
    if records.len() > 1 {
        sections.push(comparison(records));
    }
    sections.join("\n\n\n")
}

fn section(file: &ProblemFile, mechanism: &dyn Mechanism, record: &AllocationRecord) -> String {
    let level = record.level.as_ref().map_or_else(String::new, |level| format!("; level {}", level.to_text()));
    let mut parts = vec![format!("{}: {}{level}", mechanism.name(), mechanism.about())];
    parts.push(users(file, record));
    parts.push(resources(file, record));
    parts.push(properties(record));
    parts.join("\n\n")
}

fn users(file: &ProblemFile, record: &AllocationRecord) -> String {
    let columns = file.resources.len().min(MAX_RESOURCES);
    // A user without a limit is never satisfied, so the column needs at least one limit.
    let limited = file.users.iter().any(|user| user.tasks.is_some());
    let mut header = vec!["user".to_string(), "tasks".to_string()];
    header.extend(file.resources[..columns].iter().map(|name| cut(name)));
    let width = file.resources.iter().map(|name| cut(name).chars().count()).max().unwrap_or(0);
    header.push(format!("{:<1$}", "dominant share", width + PERCENT + BAR + 2));
    if limited {
        header.push("all wanted".to_string());
    }
    let formats: Vec<AmountFormat> = file.capacity.iter().map(AmountFormat::for_capacity).collect();
    let mut table = Table::new(1, header);
    for user in record.users.iter().take(MAX_USERS) {
        let share = user.dominant_share.to_f64();
        let mut row = vec![cut(&user.name), user.tasks.to_text()];
        row.extend(
            user.allocation.0[..columns].iter().zip(&formats).map(|((_, amount), format)| format.format(amount)),
        );
        row.push(format!("{:<width$} {:>PERCENT$} {}", cut(&user.dominant_resource), percent(share), bar(share, BAR)));
        if limited {
            row.push(if user.satisfied { "yes" } else { "no" }.to_string());
        }
        table.row(row);
    }
    let mut text = table.render();
    if let more @ 1.. = record.users.len().saturating_sub(MAX_USERS) {
        text.push_str(&format!("\n… and {} (--format json has all)", counted(more, "more user", "more users")));
    }
    if let more @ 1.. = file.resources.len() - columns {
        text.push_str(&format!("\n… and {} (--format json has all)", counted(more, "more resource", "more resources")));
    }
    text
}

fn resources(file: &ProblemFile, record: &AllocationRecord) -> String {
    let mut header = vec!["resource", "used", "capacity"];
    header.extend(record.levels.as_ref().map(|_| "level"));
    header.extend(record.prices.as_ref().map(|_| "price of all"));
    header.extend(["", ""]);
    let mut table = Table::new(1, header);
    for (r, resource) in record.resources.iter().enumerate() {
        let share = share_used(resource);
        let format = AmountFormat::for_capacity(&file.capacity[r]);
        let mut row = vec![cut(&resource.name), format.format(&resource.used), format.format(&resource.capacity)];
        // A resource without a level determines no user's share.
        let level = |level: &Option<OutputNumber>| level.as_ref().map_or("-".to_string(), OutputNumber::to_text);
        row.extend(record.levels.as_ref().map(|levels| level(&levels.0[r].1)));
        row.extend(record.prices.as_ref().map(|prices| prices.0[r].1.to_text()));
        row.push(format!("{:>PERCENT$} {}", percent(share), bar(share, BAR)));
        row.push(format!("{:<10}", if resource.bottleneck { "bottleneck" } else { "" }));
        table.row(row);
    }
    table.render()
}

fn share_used(resource: &ResourceRecord) -> f64 {
    let (used, capacity) = (resource.used.to_f64(), resource.capacity.to_f64());
    if capacity > 0.0 { used / capacity } else { 0.0 }
}

fn properties(record: &AllocationRecord) -> String {
    const LINE: usize = 100;
    let mut lines: Vec<String> = Vec::new();
    for (label, wanted) in [("Holds:", true), ("Does not hold:", false)] {
        let names = record.properties.0.iter().filter(|(_, holds)| *holds == wanted).map(|(name, _)| name);
        for (i, name) in names.enumerate() {
            match lines.last_mut() {
                Some(line) if i > 0 && line.len() + name.len() + 2 <= LINE => line.push_str(&format!(", {name}")),
                Some(line) if i > 0 => {
                    line.push(',');
                    lines.push(format!("{:14} {name}", ""));
                }
                _ => lines.push(format!("{label:14} {name}")),
            }
        }
    }
    lines.join("\n")
}

/// Compares tasks, use and properties under all mechanisms.
fn comparison(records: &[AllocationRecord]) -> String {
    let header =
        |first: &str| std::iter::once(first.to_string()).chain(records.iter().map(|r| r.mechanism.to_string()));
    let Some(first) = records.first() else { return String::new() };
    let mut tasks = Table::new(1, header("tasks"));
    for (i, user) in first.users.iter().enumerate().take(MAX_USERS) {
        tasks.row(std::iter::once(cut(&user.name)).chain(records.iter().map(|r| r.users[i].tasks.to_text())).collect());
    }
    let mut used = Table::new(1, header("used"));
    for (i, resource) in first.resources.iter().enumerate() {
        let share = |r: &AllocationRecord| percent(share_used(&r.resources[i]));
        used.row(std::iter::once(cut(&resource.name)).chain(records.iter().map(share)).collect());
    }
    let mut properties = Table::new(1, header("property"));
    for (i, (name, _)) in first.properties.0.iter().enumerate() {
        let holds = |r: &AllocationRecord| if r.properties.0[i].1 { "yes" } else { "no" }.to_string();
        properties.row(std::iter::once(name.clone()).chain(records.iter().map(holds)).collect());
    }
    let mut parts = vec!["Side by side".to_string(), tasks.render()];
    if let more @ 1.. = first.users.len().saturating_sub(MAX_USERS) {
        parts.push(format!("… and {more} more users (--format json has all)"));
    }
    parts.extend([used.render(), properties.render()]);
    parts.join("\n\n")
}

fn cut(name: &str) -> String {
    let name = printable(name);
    if name.chars().count() <= MAX_NAME {
        return name;
    }
    name.chars().take(MAX_NAME - 1).chain(['…']).collect()
}
