//! Export of a site to the files that a study or an audit reads.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use evenhand_model::{Cluster, Rational, Workload, parse_licences};
use evenhand_slurm::{
    Accounts, AssociationSetting, ClusterOptions, Commands, Configuration, History, LocalCommands, Nodes, Partition,
    Partitions, Qos, ReadError, SlurmConf, TextFiles, Window, cluster, limit_associations, limit_jobs_of_qos,
    limit_partitions, memory_without_effect, priorities_and_preemption_of_qos, simulated_settings_text,
    unmodelled_settings,
};
use evenhand_study::{UserShares, accounts_text, cluster_text};

use super::super::site::{check_output_folder, imported_text, line};
use super::{parse_time, read_failure};
use crate::arguments::{Common, MachineArgs, PastArgs};
use crate::failure::Failure;
use crate::inputs::workloads::store_workload;
use crate::output::console::Console;
use crate::output::write_files::{lock_folder, write_file};
use crate::verbs::study::site_folder::{ACCOUNTS, CLUSTER, SLURM_CONF};

/// Files that describe a site.
pub(super) struct SiteFiles {
    pub(super) workload: PathBuf,
    pub(super) cluster: PathBuf,
    /// Absent if the site has no accounts.
    pub(super) accounts: Option<PathBuf>,
    /// The settings of the scheduler and of priorities that a simulation follows.
    pub(super) slurm_conf: PathBuf,
    /// Whether Slurm backfills: starts jobs before one with a higher priority that does not fit.
    pub(super) backfills: bool,
}

/// Returns the options that determine how machines are read.
pub(crate) fn cluster_options(args: &MachineArgs) -> ClusterOptions {
    let speed_feature = args.speed_feature.clone();
    ClusterOptions { exclude_unavailable: args.without_down, speed_feature, ..ClusterOptions::default() }
}

/// Reads history, machines and accounts, and writes them to the folder of `--site`.
pub(super) fn export_site(args: &PastArgs, common: &Common, console: &Console) -> Result<SiteFiles, Failure> {
    let now = parse_time::now();
    let from = parse_time::parse_time("--from", &args.from, now)?;
    let to = args.to.as_deref().map(|text| parse_time::parse_time("--to", text, now)).transpose()?;
    if to.unwrap_or(now) <= from {
        return Err(Failure::Input("--to: expected a later time than that of --from".into()));
    }
    check_output_folder(&args.site, &[CLUSTER, SLURM_CONF], &[])?;
    let slurm = LocalCommands::default();
    let configuration = Configuration::read(&slurm).map_err(read_failure)?;
    // What the texts list and a simulation does not follow.
    let mut listed = SlurmConf::default();
    let nodes_text = slurm.run(&Nodes::call()).map_err(|error| read_failure(error.into()))?;
    let nodes = Nodes::parse(&nodes_text).map_err(|error| read_failure(error.into()))?.nodes;
    listed.set_options_of_nodes(Path::new("scontrol show node"), &nodes_text);
    let partitions_text = slurm.run(&Partitions::call()).map_err(|error| read_failure(error.into()))?;
    let partitions = Partitions::parse(&partitions_text).map_err(|error| read_failure(error.into()))?.partitions;
    listed.set_options_of_partitions(Path::new("scontrol show partition"), &partitions_text);
    let history = History {
        window: Window { from, to },
        all_users: args.all_users,
        lenient: args.lenient,
        threads: common.threads,
    };
    let imported = history.read(&slurm).map_err(|error| match error {
        ReadError::Import(error) if !args.all_users && !error.is_environment() => {
            Failure::Input(format!("{error}. These are your own jobs; --all-users reads those of all users"))
        }
        error => read_failure(error),
    })?;
    console.note(&scope_sentence(args, &configuration, &imported.workload));
    console.note(&imported.summary.to_string());
    let options = ClusterOptions { with_features: true, ..cluster_options(&args.machines) };
    let mut described = cluster(&nodes, &partitions, &options);
    described.notes.iter().for_each(|note| console.note(&note.to_string()));
    match parse_licences(configuration.get("Licenses").unwrap_or_default()) {
        Some(licences) => described.cluster.licences = licences,
        None => console.note("Licenses of this Slurm are not names with counts: jobs are not held back by licences."),
    }
    if described.cluster.groups.is_empty() {
        return Err(Failure::Environment("scontrol show node: this site shows you no machine".into()));
    }
    let accounts = read_accounts(&slurm, &configuration, console)?;
    let (qos, limits) =
        follow_qos_and_limits(&slurm, &mut described.cluster, &configuration, &partitions, accounts.as_ref(), console)?;
    // Limits of QOS that this Slurm does not enforce are missing in no study.
    if !configuration.enforces_limits() {
        listed.options.remove("PartitionName QOS");
    }
    let mut unmodelled = unmodelled_settings(Some(&listed), &qos, &limits, TextFiles::default());
    unmodelled.extend(memory_without_effect(&configuration, String::new()));
    for one in &unmodelled {
        console.note(&format!("Found, and not followed by a simulation: {}", line(one).trim_start()));
    }
    let _lock = lock_folder(&args.site)?;
    if accounts.is_some() {
        check_output_folder(&args.site, &[ACCOUNTS], &[])?;
    }
    let file = |name: &str| args.site.join(name);
    let site = SiteFiles {
        workload: file("workload.parquet"),
        cluster: file(CLUSTER),
        accounts: None,
        slurm_conf: file(SLURM_CONF),
        backfills: configuration.backfills(),
    };
    store_workload(&site.workload, &imported.workload)?;
    write_file(&site.cluster, &imported_text(&cluster_text(&described.cluster)))?;
    write_file(&site.slurm_conf, &simulated_settings_text(&configuration, &partitions))?;
    let accounts = accounts.map(|accounts| write_accounts(&accounts, &imported.workload, &args.site)).transpose()?;
    Ok(SiteFiles { accounts, ..site })
}

/// Gives the cluster the QOS, and the limits of QOS and associations if this Slurm enforces them. Returns what of both a
/// simulation does not follow.
fn follow_qos_and_limits(
    slurm: &LocalCommands,
    cluster: &mut Cluster,
    configuration: &Configuration,
    partitions: &[Partition],
    accounts: Option<&Accounts>,
    console: &Console,
) -> Result<(Vec<Qos>, Vec<AssociationSetting>), Failure> {
    let has_limits = configuration.enforces_limits();
    if !has_limits && !configuration.counts_qos() {
        return Ok((Vec::new(), Vec::new()));
    }
    let qos = match Qos::read(slurm) {
        Ok(qos) => qos,
        Err(error @ ReadError::Command(_)) => {
            console.note(&format!("QOS are not followed: {error}."));
            Vec::new()
        }
        Err(error) => return Err(read_failure(error)),
    };
    let mut rest = Vec::new();
    if has_limits {
        rest = limit_partitions(cluster, partitions, &qos);
        rest = limit_jobs_of_qos(cluster, partitions, &qos, rest);
    }
    let rest = priorities_and_preemption_of_qos(cluster, &qos, rest);
    let accounts = accounts.filter(|_| has_limits);
    let limits = accounts.map(|accounts| limit_associations(cluster, accounts, partitions, &qos)).unwrap_or_default();
    Ok((rest, limits))
}

/// Describes whose jobs were read.
fn scope_sentence(args: &PastArgs, configuration: &Configuration, workload: &Workload) -> String {
    let scope = match (args.all_users, configuration.private_data().contains(&"jobs")) {
        (true, false) => "sacct --allusers: the jobs of all users",
        (true, true) => "sacct --allusers: the jobs of all users whom you may see (PrivateData has jobs)",
        (false, _) => "sacct: your own jobs; for root, those of all users (--all-users reads all)",
    };
    let users = workload.users().len();
    format!("{scope}; {users} {}.", if users == 1 { "user" } else { "users" })
}

/// Reads the accounts, if the site has any.
fn read_accounts(
    slurm: &LocalCommands,
    configuration: &Configuration,
    console: &Console,
) -> Result<Option<Accounts>, Failure> {
    let accounts = match Accounts::read(slurm, configuration.cluster()) {
        Ok(accounts) => accounts,
        // A history can be studied without accounts.
        Err(error @ ReadError::Command(_)) => {
            console.note(&format!("Without accounts, all users have the same share: {error}."));
            return Ok(None);
        }
        Err(error) => return Err(read_failure(error)),
    };
    if accounts.associations.is_empty() {
        console.note("sacctmgr shows you no account: all users have the same share.");
        return Ok(None);
    }
    Ok(Some(accounts))
}

/// Writes the accounts with the shares of the workload's users.
fn write_accounts(accounts: &Accounts, workload: &Workload, folder: &Path) -> Result<PathBuf, Failure> {
    // Only users of the workload, in the accounts of their jobs: a site may have many more users.
    let columns = workload.columns();
    let mut associations = HashSet::new();
    for (row, user) in columns.user.iter().enumerate() {
        let account = columns.account.as_ref().and_then(|c| workload.accounts().get(c[row] as usize));
        associations.extend(account.map(|account| (workload.users()[user.index()].as_str(), account.as_str())));
    }
    let users = user_shares(accounts, |user, account| associations.contains(&(user, account)));
    let path = folder.join(ACCOUNTS);
    let text = accounts_text(&accounts.accounts(), &accounts.members(), &users, &accounts.priorities());
    write_file(&path, &imported_text(&text))?;
    Ok(path)
}

/// Returns the shares of users that are not 1: once for each user, or in each account if they differ.
pub(crate) fn user_shares(accounts: &Accounts, included: impl Fn(&str, &str) -> bool) -> Vec<UserShares> {
    let mut shares: BTreeMap<&str, Vec<(&str, Rational)>> = BTreeMap::new();
    for (user, account, share) in accounts.users().into_iter().filter(|(user, account, _)| included(user, account)) {
        shares.entry(user).or_default().push((account, share.in_tree()));
    }
    let mut users = Vec::new();
    for (user, of_accounts) in shares {
        let differ = of_accounts.iter().any(|(_, shares)| *shares != of_accounts[0].1);
        let each = if differ { of_accounts.as_slice() } else { &of_accounts[..1] };
        users.extend(each.iter().filter(|(_, shares)| *shares != Rational::ONE).map(|(account, shares)| UserShares {
            user: user.to_string(),
            account: differ.then(|| account.to_string()),
            shares: shares.clone(),
        }));
    }
    users
}
