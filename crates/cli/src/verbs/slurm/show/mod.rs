//! `evenhand slurm show`

mod record;
mod tables;

use evenhand_slurm::{
    Accounts, Configuration, Job, Nodes, Partitions, Priorities, Queue, ReadError, ShareTable, cluster,
};

use self::record::{AccountRecord, JobRecord, MachinesRecord, PartitionRecord, SiteRecord, users};
use super::export_site::cluster_options;
use super::{read_failure, slurm_commands};
use crate::arguments::ShowArgs;
use crate::failure::Failure;
use crate::output::console::Console;

pub(super) fn run(args: &ShowArgs, console: &Console) -> Result<(), Failure> {
    let slurm = slurm_commands(&args.queue, console);
    let slurm = slurm.as_ref();
    let configuration = Configuration::read(slurm).map_err(read_failure)?;
    let nodes = Nodes::read(slurm).map_err(read_failure)?.nodes;
    let partitions = Partitions::read(slurm).map_err(read_failure)?.partitions;
    let queue = Queue::read(slurm).map_err(read_failure)?;
    let mut notes = Vec::new();
    let priorities = or_note(Priorities::read(slurm), "No site factors", &mut notes)?;
    let accounts = or_note(Accounts::read(slurm, configuration.cluster()), "No accounts", &mut notes)?;
    let shares = or_note(ShareTable::read(slurm, true), "No usage", &mut notes)?;
    let described = cluster(&nodes, &partitions, &cluster_options(&args.machines));
    notes.extend(described.notes.iter().map(ToString::to_string));
    let groups = described.cluster.groups.iter().zip(&described.members);
    let machines = groups.map(|(group, members)| {
        MachinesRecord::new(&group.name, &members.iter().map(|&at| &nodes[at]).collect::<Vec<_>>())
    });
    let site_factor = |job: &Job| Some(priorities.as_ref()?.jobs.get(&job.id)?.site_factor);
    let entitled = accounts.as_ref().map(|accounts| AccountRecord::all(accounts, shares.as_ref())).transpose();
    let text = |name: &str| configuration.get(name).map(String::from);
    let record = SiteRecord {
        cluster: configuration.cluster().map(String::from),
        release: configuration.release().map(String::from),
        priority_type: text("PriorityType"),
        priority_weights: configuration.priority_weights().into_iter().collect(),
        priority_weight_tres: text("PriorityWeightTRES"),
        decay_half_life: text("PriorityDecayHalfLife"),
        scheduler: text("SchedulerType"),
        select: text("SelectType"),
        select_parameters: text("SelectTypeParameters"),
        private_data: configuration.private_data().into_iter().map(String::from).collect(),
        machines: machines.collect(),
        partitions: partitions.iter().map(|p| PartitionRecord::new(p, &nodes, &queue)).collect(),
        users: users(&queue),
        jobs: queue.jobs.iter().map(|job| JobRecord::new(job, site_factor(job))).collect(),
        accounts: entitled.map_err(|e| Failure::Environment(format!("sacctmgr: {e}")))?.unwrap_or_default(),
        notes,
    };
    if console.is_json() { console.json(&record) } else { console.result(&record.tables()) }
}

/// Handles optional information: if the command fails, adds a note; text that cannot be parsed is a failure.
pub(super) fn or_note<T>(
    read: Result<T, ReadError>,
    without: &str,
    notes: &mut Vec<String>,
) -> Result<Option<T>, Failure> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(ReadError::Command(error)) => {
            notes.push(format!("{without}: {error}."));
            Ok(None)
        }
        Err(error) => Err(read_failure(error)),
    }
}
