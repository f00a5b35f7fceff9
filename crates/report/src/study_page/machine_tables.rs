//! The section on machines: how jobs lie on them, how much of each kind is used, and which jobs are refused; and what the
//! simulation does not model, which depends on it.

use std::collections::BTreeMap;

use evenhand_study::record::{GroupRecord, PerResource, RunRecord, StudyRecord, layout_rule_text};
use serde::Serialize;

use crate::format_numbers::{ABSENT, grouped, percent};
use crate::study_page::grid::StudyGrid;

/// What a study on machines adds to the page.
#[derive(Serialize)]
pub(super) struct MachineTables {
    resources: Vec<String>,
    /// Rules of layout, with jobs and CPU hours.
    layout: Vec<(&'static str, String, String)>,
    warnings: Vec<String>,
    groups: Vec<CapacityRows<KindRow>>,
    refused: Vec<CapacityRows<RefusedRow>>,
}

/// Rows of one capacity.
#[derive(Serialize)]
struct CapacityRows<Row> {
    capacity: String,
    rows: Vec<Row>,
}

/// A kind of machine in one run.
#[derive(Serialize)]
struct KindRow {
    policy: String,
    kind: String,
    machines: String,
    /// One entry per resource.
    held: Vec<String>,
    free: Vec<String>,
    may_use: String,
}

/// Jobs that are refused for one reason.
#[derive(Serialize)]
struct RefusedRow {
    why: String,
    jobs: String,
    users: String,
}

/// Returns whether a run puts jobs on machines.
fn is_on_machines(run: &RunRecord) -> bool {
    run.jobs.as_ref().is_some_and(|jobs| !jobs.groups.is_empty())
}

/// Returns the section, or `None` if no run is on machines and none refuses a job.
pub(super) fn machine_tables(grid: &StudyGrid<'_>) -> Option<MachineTables> {
    let record = grid.record;
    let on_machines = record.runs.iter().any(is_on_machines);
    let refuses = record.runs.iter().any(|run| run.jobs.as_ref().is_some_and(|jobs| !jobs.refused.is_empty()));
    if !on_machines && !refuses {
        return None;
    }
    let capacities = || (0..grid.capacities.len()).map(|c| (c, grid.capacities[c].label.clone()));
    let groups = || record.runs.iter().filter_map(|run| run.jobs.as_ref()).flat_map(|jobs| &jobs.groups);
    let mut resources: Vec<String> = groups().flat_map(|group| group.utilization.keys().cloned()).collect();
    resources.sort_unstable();
    resources.dedup();
    let layout = record.workload.layout.iter().filter(|_| on_machines);
    let layout = layout.map(|l| (layout_rule_text(&l.rule), grouped(l.jobs), grouped(l.cpu_hours.round() as u64)));
    let parts = |parts: &PerResource| -> Vec<String> {
        resources.iter().map(|r| parts.get(r).map_or(ABSENT.into(), |part| percent(*part))).collect()
    };
    let row = |policy: &str, group: &GroupRecord| KindRow {
        policy: policy.to_string(),
        kind: group.name.clone(),
        machines: grouped(group.machines.into()),
        held: parts(&group.utilization),
        free: parts(&group.free_while_waiting),
        may_use: group.waits_that_may_use.map_or(ABSENT.into(), percent),
    };
    let kinds = |capacity: usize| -> Vec<KindRow> {
        let runs = grid.runs_at(capacity).filter_map(|(policy, run)| Some((policy, run.jobs.as_ref()?)));
        let rows = runs.flat_map(|(policy, jobs)| jobs.groups.iter().map(move |group| (policy, group)));
        rows.map(|(policy, group)| row(&grid.policies[policy].label, group)).collect()
    };
    let warnings = record.runs.iter().filter_map(|run| {
        let idle = run.jobs.as_ref()?.idle_machines.as_ref()?;
        Some(format!("{}: {idle}.", run.id))
    });
    Some(MachineTables {
        layout: layout.collect(),
        warnings: warnings.collect(),
        groups: nonempty(capacities().map(|(c, capacity)| CapacityRows { capacity, rows: kinds(c) })),
        refused: nonempty(capacities().map(|(c, capacity)| CapacityRows { capacity, rows: refused(grid, c) })),
        resources,
    })
}

fn nonempty<Row>(all: impl Iterator<Item = CapacityRows<Row>>) -> Vec<CapacityRows<Row>> {
    all.filter(|capacity| !capacity.rows.is_empty()).collect()
}

/// Returns the reasons of refusals, which do not depend on the policy.
fn refused(grid: &StudyGrid<'_>, capacity: usize) -> Vec<RefusedRow> {
    let first = grid.runs_at(capacity).find_map(|(_, run)| run.jobs.as_ref());
    let mut reasons: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for refused in first.iter().flat_map(|jobs| &jobs.refused) {
        let (jobs, users) = reasons.entry(&refused.why).or_default();
        (*jobs, *users) = (*jobs + refused.jobs, *users + 1);
    }
    let row = |(why, (jobs, users)): (&str, (u64, u64))| RefusedRow {
        why: why.to_string(),
        jobs: grouped(jobs),
        users: grouped(users),
    };
    reasons.into_iter().map(row).collect()
}

/// Returns what the runs of a study do not model: a name, and a sentence.
pub(super) fn not_modelled(record: &StudyRecord) -> Vec<(&'static str, &'static str)> {
    let simulated = || record.runs.iter().filter(|run| run.scheduler.is_some());
    let on_machines = simulated().any(is_on_machines);
    let in_pool = simulated().any(|run| !is_on_machines(run));
    let slurm = simulated().any(|run| run.scheduler.as_deref() == Some("slurm"));
    let react = record.runs.iter().any(|run| run.work.is_some());
    let mut all = Vec::new();
    if in_pool {
        all.push(("Machines", "the pool is one bundle of resources. A task fits if enough of each resource is free in total, so waits caused by fragmentation do not appear."));
        all.push(("Gang scheduling", "tasks that must start together start one by one."));
    }
    if on_machines {
        all.push(("Machines", "jobs lie on machines, in the parts that the table above counts, and all parts of a job start together. Networks, sockets and cores are not modelled, nor are jobs that must start with other jobs."));
    }
    all.push(match slurm {
        true => ("Preemption, failures and restarts", "jobs are preempted as the cluster file says, and machines are down in its outages only. Otherwise what has started runs to its end or its limit."),
        false => ("Preemption, failures and restarts", "a task that has started runs to its end."),
    });
    if !react {
        all.push(("Reactions of users", "they submit the same tasks at the same times, however long they wait."));
    }
    all.push(match on_machines {
        true => ("Run times", "a task runs as long as it did in the workload, divided by the speed of its machines, whatever runs beside it."),
        false => ("Run times", "a task runs as long as it did in the workload, wherever it is placed."),
    });
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenhand_study::record::JobsRecord;

    fn record(scheduler: &str, groups: usize) -> StudyRecord {
        let jobs = JobsRecord { groups: vec![GroupRecord::default(); groups], ..JobsRecord::default() };
        let run = RunRecord { scheduler: Some(scheduler.into()), jobs: Some(jobs), ..RunRecord::default() };
        StudyRecord { runs: vec![run], ..StudyRecord::default() }
    }

    #[test]
    fn what_is_not_modelled_is_what_was_not_simulated() {
        let text = |record: &StudyRecord| {
            not_modelled(record).iter().map(|(name, text)| format!("{name}: {text} ")).collect::<String>()
        };
        let pool = text(&record("easy", 0));
        assert!(pool.contains("one bundle") && pool.contains("start one by one") && pool.contains("runs to its end."));
        let machines = text(&record("easy", 2));
        assert!(!machines.contains("one bundle") && !machines.contains("one by one"), "{machines}");
        assert!(machines.contains("all parts of a job start together"), "{machines}");
        assert!(text(&record("slurm", 2)).contains("preempted as the cluster file says"));
    }
}
