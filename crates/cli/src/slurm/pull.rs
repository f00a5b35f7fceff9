//! Reading a site and writing down what a study needs of it.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use evenhand_model::{Rational, Workload};
use evenhand_slurm::{
    Accounts, ClusterOptions, Configuration, History, LocalCommands, Nodes, Partitions, RawShares, ReadError, Window,
    cluster,
};
use evenhand_study::{accounts_text, cluster_text};

use super::args::{MachineArgs, PastArgs};
use super::{failed, when};
use crate::args::Common;
use crate::console::Console;
use crate::failure::Failure;
use crate::outputs::{make_folder, write_file};
use crate::workload::write_store;

/// What was written.
pub(super) struct Site {
    pub(super) workload: PathBuf,
    pub(super) cluster: PathBuf,
    /// If the site keeps accounts.
    pub(super) accounts: Option<PathBuf>,
    /// Whether Slurm lets jobs start behind one that waits.
    pub(super) backfills: bool,
}

pub(super) fn options(args: &MachineArgs) -> ClusterOptions {
    ClusterOptions { exclude_unavailable: args.without_down, speed_feature: args.speed_feature.clone() }
}

/// Reads history, machines and accounts, and writes them to the folder.
pub(super) fn pull(args: &PastArgs, common: &Common, console: &Console) -> Result<Site, Failure> {
    let now = when::now();
    let from = when::when("--from", &args.from, now)?;
    let to = args.to.as_deref().map(|text| when::when("--to", text, now)).transpose()?;
    if to.unwrap_or(now) <= from {
        return Err(Failure::Input("--to: expected a later time than that of --from".into()));
    }
    let slurm = LocalCommands::default();
    let configuration = Configuration::read(&slurm).map_err(failed)?;
    let nodes = Nodes::read(&slurm).map_err(failed)?.nodes;
    let partitions = Partitions::read(&slurm).map_err(failed)?.partitions;
    let history = History {
        window: Window { from, to },
        all_users: args.all_users,
        lenient: args.lenient,
        threads: common.threads,
    };
    let imported = history.read(&slurm).map_err(|error| match error {
        ReadError::Import(error) if !args.all_users && !error.is_environment() => {
            Failure::Input(format!("{error}. These are your own jobs; --all-users asks for everybody's"))
        }
        error => failed(error),
    })?;
    console.note(&scope(args, &configuration, &imported.workload));
    console.note(&imported.summary.to_string());
    let described = cluster(&nodes, &partitions, &options(&args.machines));
    described.notes.iter().for_each(|note| console.note(note));
    if described.cluster.groups.is_empty() {
        return Err(Failure::Environment("scontrol show node: this site shows no machine to you".into()));
    }
    if !configuration.counts_memory() {
        console.note("This Slurm does not count memory (SelectTypeParameters); a study does.");
    }
    make_folder(&args.site)?;
    let file = |name: &str| args.site.join(name);
    let site = Site {
        workload: file("workload.parquet"),
        cluster: file("cluster.toml"),
        accounts: None,
        backfills: configuration.backfills(),
    };
    write_store(&site.workload, &imported.workload)?;
    write_file(&site.cluster, &cluster_text(&described.cluster))?;
    let accounts = accounts(&slurm, &configuration, &imported.workload, &args.site, console)?;
    Ok(Site { accounts, ..site })
}

/// Whose jobs these are.
fn scope(args: &PastArgs, configuration: &Configuration, workload: &Workload) -> String {
    let asked = match (args.all_users, configuration.private_data().contains(&"jobs")) {
        (true, false) => "sacct --allusers: the jobs of all users",
        (true, true) => "sacct --allusers: the jobs of all users whom you may see (PrivateData has jobs)",
        (false, _) => "sacct: your own jobs, to root everybody's (--all-users asks for all)",
    };
    let users = workload.users().len();
    format!("{asked}; {users} {}.", if users == 1 { "user" } else { "users" })
}

/// Writes the accounts with the shares of the workload's users, if the site has any.
fn accounts(
    slurm: &LocalCommands,
    configuration: &Configuration,
    workload: &Workload,
    folder: &Path,
    console: &Console,
) -> Result<Option<PathBuf>, Failure> {
    let accounts = match Accounts::read(slurm, configuration.cluster()) {
        Ok(accounts) => accounts,
        // A history without shares is a history all the same.
        Err(error @ ReadError::Command(_)) => {
            console.note(&format!("Without accounts, everybody has the same share: {error}."));
            return Ok(None);
        }
        Err(error) => return Err(failed(error)),
    };
    if accounts.associations.is_empty() {
        console.note("sacctmgr shows no account to you: everybody has the same share.");
        return Ok(None);
    }
    // Only whom the workload has, in the accounts he worked under: a site's list of users is long.
    let columns = workload.columns();
    let mut worked = HashSet::new();
    for (row, user) in columns.user.iter().enumerate() {
        let account = columns.account.as_ref().and_then(|c| workload.accounts().get(c[row] as usize));
        worked.extend(account.map(|account| (workload.users()[user.index()].as_str(), account.as_str())));
    }
    let mut shares: BTreeMap<&str, RawShares> = BTreeMap::new();
    let mut differ = Vec::new();
    for (user, account, share) in accounts.users() {
        if worked.contains(&(user, account)) && *shares.entry(user).or_insert(share) != share && !differ.contains(&user)
        {
            differ.push(user);
        }
    }
    if !differ.is_empty() {
        console.note(&format!(
            "Who has other shares in another account is given those of the first: {}.",
            differ.join(", ")
        ));
    }
    let users: Vec<(String, Rational)> = shares
        .into_iter()
        .map(|(user, shares)| (user.to_string(), shares.in_tree()))
        .filter(|(_, shares)| *shares != Rational::ONE)
        .collect();
    let path = folder.join("accounts.toml");
    write_file(&path, &accounts_text(&accounts.accounts(), &users))?;
    Ok(Some(path))
}
