//! Lines below a study's table: layout of jobs, utilization of machines, idle machines, and refused jobs, also on a pool.

use std::collections::BTreeMap;

use evenhand_model::counted;
use evenhand_study::record::{RecordedMachinesRecord, RunRecord, StudyRecord, layout_rule_text};

/// Formats a line for each run with machines: the utilization of each group; and for each capacity, why jobs were refused.
pub(super) fn lines(record: &StudyRecord) -> String {
    let mut lines: Vec<String> = layout_line(record).into_iter().collect();
    let mut listed: Vec<&str> = Vec::new();
    for run in &record.runs {
        lines.extend(of_machines(run));
        // Refusals do not depend on the policy.
        if listed.contains(&run.capacity_name.as_str()) {
            continue;
        }
        let refusals = refusals(run);
        if !refusals.is_empty() {
            listed.push(&run.capacity_name);
            lines.extend(refusals);
        }
    }
    if lines.is_empty() { String::new() } else { format!("\n\n{}", lines.join("\n")) }
}

/// Formats the lines of a run on machines.
fn of_machines(run: &RunRecord) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(jobs) = &run.jobs {
        let groups = jobs.groups.iter().map(|group| {
            let each = group.utilization.iter().map(|(name, u)| format!("{name} {:.0} %", 100.0 * u));
            format!("{} x {}: {}", group.machines, group.name, each.collect::<Vec<_>>().join(", "))
        });
        let groups = groups.collect::<Vec<_>>().join("; ");
        if !groups.is_empty() {
            lines.push(format!("{}, held of {groups}", run.id));
        }
        lines.extend(jobs.idle_machines.iter().map(|idle| format!("{}, warning: {idle}", run.id)));
        lines.extend(jobs.recorded_machines.map(|recorded| {
            let RecordedMachinesRecord { jobs, same, fewer, more, same_of_cpu_time } = recorded;
            format!(
                "{}, of {jobs} jobs whose machines the log names: {same} lie on as many ({:.0} % of their CPU time), {fewer} on fewer, {more} on more",
                run.id,
                100.0 * same_of_cpu_time
            )
        }));
        lines.extend(started_by(run));
        lines.extend(jobs.never_started.map(|left| never_started(run, left)));
    }
    lines
}

/// Formats a line for each reason for which jobs of a run were refused. A pool has one: its size.
fn refusals(run: &RunRecord) -> Vec<String> {
    let mut reasons: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for refused in run.jobs.iter().flat_map(|jobs| &jobs.refused) {
        let (users, count) = reasons.entry(&refused.why).or_default();
        *users += 1;
        *count += refused.jobs;
    }
    if reasons.is_empty() && run.totals.rejected > 0 {
        let users = run.users.iter().filter(|user| user.totals.rejected > 0).count() as u64;
        reasons.insert("no pool of this size can hold them", (users, run.totals.rejected));
    }
    let line = |(why, (users, count)): (&str, (u64, u64))| {
        let (jobs, users) = (counted(count, "job", "jobs"), counted(users, "user", "users"));
        format!("{}, refused: {jobs} of {users}: {why}", run.capacity_name)
    };
    reasons.into_iter().map(line).collect()
}

/// Returns how many jobs each activity of Slurm's scheduler started.
fn started_by(run: &RunRecord) -> Option<String> {
    let jobs = run.jobs.as_ref()?;
    let by = jobs.started_by?;
    let all = (by.submit + by.main + by.backfill).max(1) as f64;
    let part = |count: u64| format!("{:.0} %", 100.0 * count as f64 / all);
    let ended = jobs.ended_by_limit.unwrap_or(0);
    let beyond = jobs.beyond_submit_limits.filter(|beyond| *beyond > 0);
    let beyond = beyond.map_or(String::new(), |beyond| format!("; {beyond} submitted beyond a limit, and accepted"));
    let preempted = jobs.preempted.map_or(String::new(), |preempted| {
        let suspended = Some(preempted.suspended).filter(|count| *count > 0);
        let suspended = suspended.map_or(String::new(), |count| format!(", {count} suspended"));
        format!("; preempted: {} requeued, {} cancelled{suspended}", preempted.requeued, preempted.cancelled)
    });
    Some(format!(
        "{}, started: {} at submission, {} by the main scheduler, {} by backfill; {ended} ended by their limits{beyond}{preempted}",
        run.id,
        part(by.submit),
        part(by.main),
        part(by.backfill)
    ))
}

/// Returns a warning of jobs that are left at the end of a run.
fn never_started(run: &RunRecord, left: u64) -> String {
    let start = if left == 1 { "job never starts" } else { "jobs never start" };
    format!(
        "{}, warning: {left} {start}: nothing runs, and the machines that could take more do not come back (outages, reservations)",
        run.id
    )
}

/// Returns how many jobs each rule laid out, of a study on machines.
fn layout_line(record: &StudyRecord) -> Option<String> {
    let on_machines = record.runs.iter().any(|run| run.jobs.as_ref().is_some_and(|jobs| !jobs.groups.is_empty()));
    let parts = record.workload.layout.iter();
    let parts: Vec<String> = parts
        .map(|l| {
            format!("{}: {}, {:.0} CPU hours", layout_rule_text(&l.rule), counted(l.jobs, "job", "jobs"), l.cpu_hours)
        })
        .collect();
    on_machines.then(|| format!("layout: {}", parts.join("; ")))
}
