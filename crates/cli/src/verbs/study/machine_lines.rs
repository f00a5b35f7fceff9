//! Lines below a study's table: utilization of machines, and refused jobs.

use std::collections::BTreeMap;

use evenhand_study::record::StudyRecord;

/// Formats a line for each run with machines: the utilization of each group; and for each capacity, why jobs were refused.
pub(super) fn lines(record: &StudyRecord) -> String {
    let mut lines = Vec::new();
    let mut listed: Vec<&str> = Vec::new();
    for run in &record.runs {
        let Some(jobs) = &run.jobs else { continue };
        let groups = jobs.groups.iter().map(|group| {
            let each = group.utilization.iter().map(|(name, u)| format!("{name} {:.0} %", 100.0 * u));
            format!("{} x {}: {}", group.machines, group.name, each.collect::<Vec<_>>().join(", "))
        });
        let groups = groups.collect::<Vec<_>>().join("; ");
        if !groups.is_empty() {
            lines.push(format!("{}, held of {groups}", run.id));
        }
        // Refusals do not depend on the policy.
        if listed.contains(&run.capacity_name.as_str()) {
            continue;
        }
        listed.push(&run.capacity_name);
        let mut reasons: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for refused in &jobs.refused {
            let (users, count) = reasons.entry(&refused.why).or_default();
            *users += 1;
            *count += refused.jobs;
        }
        for (why, (users, count)) in reasons {
            let (jobs, of) = (if count == 1 { "job" } else { "jobs" }, if users == 1 { "user" } else { "users" });
            lines.push(format!("{}, refused: {count} {jobs} of {users} {of}: {why}", run.capacity_name));
        }
    }
    if lines.is_empty() { String::new() } else { format!("\n\n{}", lines.join("\n")) }
}
