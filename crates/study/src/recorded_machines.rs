//! The machines that a log names, beside those on which a simulation put the jobs.

use std::collections::HashSet;

use evenhand_model::{Detail, NO_TIME, Workload, expand_hostlist};
use evenhand_policies::equivalents::PROCESSORS;
use evenhand_simulator::Simulated;
use serde::{Deserialize, Serialize};

/// Jobs of which the log names the machines, by whether the simulation put them on as many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordedMachinesRecord {
    /// The jobs that the simulation started.
    pub jobs: u64,
    /// Jobs on as many machines as recorded.
    pub same: u64,
    /// Jobs on fewer.
    pub fewer: u64,
    /// Jobs on more.
    pub more: u64,
    /// The part of the jobs' processors times run times that lies on as many machines as recorded.
    pub same_of_cpu_time: f64,
}

/// Compares the numbers of machines; `None` if the log names none.
pub(crate) fn compare(workload: &Workload, run: &Simulated) -> Option<RecordedMachinesRecord> {
    let lists = workload.details(Detail::Machines);
    let placed = &run.machines.as_ref()?.placed;
    if lists.is_empty() {
        return None;
    }
    let distinct = |list: &String| -> usize {
        let names: HashSet<String> = expand_hostlist(list).unwrap_or_default().into_iter().collect();
        names.len()
    };
    let recorded: Vec<usize> = lists.iter().map(distinct).collect();
    let mut used: Vec<(u32, u32)> = placed.iter().map(|placed| (placed.row, placed.machine)).collect();
    used.sort_unstable();
    used.dedup();
    let mut machines = vec![0usize; workload.len()];
    used.iter().for_each(|(row, _)| machines[*row as usize] += 1);
    let resource = workload.resources().iter().position(|r| PROCESSORS.contains(&r.name.as_str())).unwrap_or(0);
    let mut found = RecordedMachinesRecord::default();
    let (mut same, mut all) = (0u128, 0u128);
    for (row, simulated) in machines.into_iter().enumerate().filter(|(row, _)| run.starts[*row] != NO_TIME) {
        let known = workload.detail_id(Detail::Machines, row).map(|id| recorded[id as usize]).filter(|n| *n > 0);
        let Some(known) = known else { continue };
        let area = u128::from(workload.amounts(row)[resource].0) * u128::from(workload.columns().duration[row].nanos());
        found.jobs += 1;
        found.same += u64::from(simulated == known);
        found.fewer += u64::from(simulated < known);
        found.more += u64::from(simulated > known);
        all += area;
        same += if simulated == known { area } else { 0 };
    }
    found.same_of_cpu_time = if all == 0 { 0.0 } else { same as f64 / all as f64 };
    (found.jobs > 0).then_some(found)
}
