//! `evenhand site`: a site from its configuration files.

mod closures;
mod output_folder;

pub(crate) use output_folder::{check as check_output_folder, imported_text};

use std::path::{Path, PathBuf};

use evenhand_documents::did_you_mean;
use evenhand_model::{Cluster, Resource};
use evenhand_policies::multifactor::Settings;
use evenhand_policies::{PolicyError, SITE_RULE};
use evenhand_slurm::{
    Accounts, ClusterOptions, Configuration, Node, Nodes, Partition, Partitions, Qos, SiteFileError, SlurmConf,
    TextError, TextFiles, Unmodelled, cluster, expand_hostlist, gang_with_other_modes, inconsistent_qos,
    licences_of_conf, limit_associations, limit_jobs_of_qos, limit_partitions, memory_without_effect, parse_dump,
    parse_qos, priorities_and_preemption_of_qos, read_command_text, read_slurm_conf, scheduler_settings,
    simulated_settings_text, site_priority, slurm_conf_names, some_records, unmodelled_settings,
    weights_without_priorities,
};
use evenhand_study::{accounts_text, cluster_text};
use serde::Serialize;

use crate::arguments::{SiteImportArgs, SiteVerb};
use crate::failure::Failure;
use crate::output::console::Console;
use crate::output::fold_lines::{COLUMNS, fold_lines};
use crate::output::write_files::{make_folder, write_files};
use crate::verbs::slurm::{cluster_options, user_shares};
use crate::verbs::study::site_folder::{ACCOUNTS, CLUSTER, POLICY_SETTINGS, SLURM_CONF};

/// The commands whose texts list nodes and partitions.
const NODES: &str = "scontrol -o show node";
const PARTITIONS: &str = "scontrol -o show part";

/// How many values of a setting are printed.
const SHOWN_VALUES: usize = 4;

pub(crate) fn run(verb: &SiteVerb, console: &Console) -> Result<(), Failure> {
    match verb {
        SiteVerb::Import(args) => import(args, console),
    }
}

/// What the files say.
struct SiteTexts {
    conf: Option<SlurmConf>,
    /// Its settings, with the options of nodes and partitions of the texts that take their place.
    listed: SlurmConf,
    nodes: Vec<Node>,
    partitions: Vec<Partition>,
    accounts: Option<Accounts>,
    qos: Vec<Qos>,
}

/// What was written and what a simulation does not follow, for programs.
#[derive(Serialize)]
struct Written<'a> {
    files: Vec<&'a Path>,
    /// Files of an earlier import that this one does not write, under the names that they have now.
    moved_aside: Vec<&'a Path>,
    machines: u64,
    partitions: usize,
    reservations: usize,
    outages: usize,
    not_modelled: Vec<NotModelled<'a>>,
}

#[derive(Serialize)]
struct NotModelled<'a> {
    name: &'a str,
    values: &'a [String],
    /// Where each value stands, as file, line and column; empty if that is not known.
    places: &'a [String],
    instead: &'a str,
}

fn import(args: &SiteImportArgs, console: &Console) -> Result<(), Failure> {
    let site = read(args, console)?;
    let options = ClusterOptions { with_features: true, ..cluster_options(&args.machines) };
    let mut described = cluster(&site.nodes, &site.partitions, &options);
    // Without a slurm.conf it is assumed.
    let has_limits = site.conf.as_ref().is_none_or(|conf| conf.configuration.enforces_limits());
    let accounts = site.accounts.as_ref();
    let (qos, limits) = match has_limits {
        true => (
            {
                let rest = limit_partitions(&mut described.cluster, &site.partitions, &site.qos);
                limit_jobs_of_qos(&mut described.cluster, &site.partitions, &site.qos, rest)
            },
            accounts.map(|accounts| limit_associations(&mut described.cluster, accounts, &site.partitions, &site.qos)),
        ),
        false => (site.qos.clone(), accounts.map(Accounts::limits)),
    };
    let qos = priorities_and_preemption_of_qos(&mut described.cluster, &site.qos, qos);
    for note in &described.notes {
        let path = if note.is_partition { &args.partitions } else { &args.nodes };
        let place = path.as_ref().filter(|_| note.line > 0).map(|path| format!("{}:{}: ", path.display(), note.line));
        console.note(&format!("{}{note}", place.unwrap_or_default()));
    }
    let machines = described.cluster.machines();
    if machines == 0 {
        let problem = "no machine: give --slurm-conf with nodes and partitions, or --nodes and --partitions";
        return Err(Failure::Input(problem.into()));
    }
    if let Some(conf) = &site.conf {
        described.cluster.licences = licences_of_conf(conf).map_err(|error| Failure::Input(error.to_string()))?;
    }
    closures::read(args, &mut described.cluster, console)?;
    let settings = policy_settings(&site, &described.cluster, console)?;
    let text_files = files_of_site(args, &site, &described.cluster, settings);
    let inputs = inputs(args, site.conf.as_ref());
    let names = text_files.iter().filter_map(|(path, _)| path.file_name()?.to_str());
    check_output_folder(&args.output, &names.collect::<Vec<_>>(), &inputs)?;
    make_folder(&args.output)?;
    write_files(&text_files)?;
    let written: Vec<PathBuf> = text_files.into_iter().map(|(path, _)| path).collect();
    let moved = output_folder::move_old_files_aside(&args.output, &written, console)?;
    let files =
        TextFiles { qos: args.qos.as_deref(), associations: args.assoc.as_deref().or(args.sacctmgr_dump.as_deref()) };
    let mut unmodelled = unmodelled_settings(Some(&site.listed), &qos, &limits.unwrap_or_default(), files);
    if let Some(conf) = &site.conf {
        unmodelled.extend(memory_without_effect(&conf.configuration, conf.place_of("SelectTypeParameters")));
        unmodelled.extend(weights_without_priorities(conf, site.accounts.as_ref(), &site.qos));
        unmodelled.extend(gang_with_other_modes(&site.listed, &site.qos, files));
    }
    let partitions = described.cluster.queues.len();
    if console.is_json() {
        let not_modelled = unmodelled.iter().map(|u| NotModelled {
            name: &u.name,
            values: &u.values,
            places: &u.places,
            instead: u.instead,
        });
        let files = written.iter().map(PathBuf::as_path).collect();
        let (reservations, outages) = (described.cluster.reservations.len(), described.cluster.outages.len());
        let not_modelled = not_modelled.collect();
        let moved_aside = moved.iter().map(|(_, to)| to.as_path()).collect();
        return console.json(&Written {
            files,
            moved_aside,
            machines,
            partitions,
            reservations,
            outages,
            not_modelled,
        });
    }
    for path in &written {
        console.result(&format!("Written: {}", path.display()))?;
    }
    for (from, to) in &moved {
        console.result(&format!(
            "Moved aside, since it is of an earlier import: {} to {}",
            from.display(),
            to.display()
        ))?;
    }
    if let Some(found) = closures::found(&described.cluster) {
        console.result(&format!("\n{found}"))?;
    }
    if !unmodelled.is_empty() {
        console.result("\nFound, and not followed by a simulation:")?;
        for one in &unmodelled {
            console.result(&fold_lines(&line(one), COLUMNS, "    "))?;
        }
    }
    let rule = match site.conf {
        Some(_) => format!(" --policy logged,{},sdrf --scheduler slurm", SITE_RULE.name),
        None => String::new(),
    };
    console.result(&format!("\nA study on it: evenhand study LOG --site {}{rule}", args.output.display()))
}

/// Returns the files that describe the site, with their texts.
fn files_of_site(
    args: &SiteImportArgs,
    site: &SiteTexts,
    cluster: &Cluster,
    settings: Option<String>,
) -> Vec<(PathBuf, String)> {
    let file = |name: &str| args.output.join(name);
    let mut files = vec![(file(CLUSTER), imported_text(&cluster_text(cluster)))];
    if let Some(accounts) = site.accounts.as_ref().filter(|a| !a.associations.is_empty()) {
        let users = user_shares(accounts, |_, _| true);
        let text = accounts_text(&accounts.accounts(), &accounts.members(), &users, &accounts.priorities());
        files.push((file(ACCOUNTS), imported_text(&text)));
    }
    files.extend(settings.map(|text| (file(POLICY_SETTINGS), imported_text(&text))));
    if let Some(conf) = &site.conf {
        files.push((file(SLURM_CONF), simulated_settings_text(&conf.configuration, &site.partitions)));
    }
    files
}

/// Returns the files that the import reads.
fn inputs<'a>(args: &'a SiteImportArgs, conf: Option<&'a SlurmConf>) -> Vec<&'a Path> {
    let named =
        [&args.assoc, &args.qos, &args.sacctmgr_dump, &args.nodes, &args.partitions, &args.reservations, &args.events];
    let of_conf = conf.iter().flat_map(|conf| &conf.files);
    named.into_iter().flatten().chain(of_conf).map(PathBuf::as_path).collect()
}

/// What was found and is not followed, on a line.
pub(crate) fn line(one: &Unmodelled) -> String {
    let shown = |(at, value): (usize, &String)| match one.places.get(at).filter(|place| !place.is_empty()) {
        Some(place) => format!("{value} ({place})"),
        None => value.clone(),
    };
    let mut values = one.values.iter().enumerate().take(SHOWN_VALUES).map(shown).collect::<Vec<_>>().join(", ");
    if one.values.len() > SHOWN_VALUES {
        values += &format!(" and {} more", one.values.len() - SHOWN_VALUES);
    }
    format!("  {}: {values}; {}", one.name, one.instead)
}

fn read(args: &SiteImportArgs, console: &Console) -> Result<SiteTexts, Failure> {
    let mut conf = args.slurm_conf.as_deref().map(read_slurm_conf).transpose().map_err(file_failure)?;
    if let (Some(conf), Some(release)) = (&mut conf, &args.release) {
        conf.configuration.set_release(release);
        if conf.configuration.release_month().is_none() {
            let problem =
                format!("--release: found {release:?}, expected a release of Slurm, such as 24.11 or 22.05.8");
            return Err(Failure::Input(problem));
        }
    }
    for (name, place) in conf.iter().flat_map(|c| &c.unknown) {
        let near = did_you_mean(name, slurm_conf_names());
        console.note(&format!("{place}: {name} is no parameter of slurm.conf(5) and is ignored{}", ended(near)));
    }
    if let Some(conf) = &conf {
        note_odd_lines(conf, args, console)?;
    }
    let mut listed = conf.clone().unwrap_or_default();
    let mut nodes = match &args.nodes {
        Some(path) => parsed(path, NODES, |text| {
            listed.set_options_of_nodes(path, text);
            some_records(Nodes::parse(text)?.nodes, NODES, "NodeName")
        })?,
        None => conf.as_ref().map_or(Vec::new(), |c| c.nodes.clone()),
    };
    let partitions = match &args.partitions {
        Some(path) => parsed(path, PARTITIONS, |text| {
            listed.set_options_of_partitions(path, text);
            some_records(Partitions::parse(text)?.partitions, PARTITIONS, "PartitionName")
        })?,
        None => conf.as_ref().map_or(Vec::new(), |c| c.partitions.clone()),
    };
    if args.partitions.is_some() && args.nodes.is_none() {
        put_nodes_in(&mut nodes, &partitions);
    }
    let accounts = match (&args.assoc, &args.sacctmgr_dump) {
        (Some(path), _) => Some(parsed(path, "sacctmgr -nP show assoc", |text| parse_associations(text, console))?),
        (None, Some(path)) => Some(parsed(path, "sacctmgr dump", parse_dump)?.accounts),
        (None, None) => None,
    };
    let qos = args.qos.as_deref().map(|path| parsed(path, "sacctmgr -P show qos", parse_qos));
    let qos = qos.transpose()?.unwrap_or_default();
    if let Some(path) = &args.qos {
        for (line, problem) in inconsistent_qos(&qos) {
            console.note(&format!("{}:{line}: {problem}.", path.display()));
        }
        note_undefined_qos(path, &listed, &partitions, &qos, console);
    }
    Ok(SiteTexts { conf, listed, nodes, partitions, accounts, qos })
}

/// A sentence's end, which may be a question.
fn ended(question: String) -> String {
    if question.is_empty() { ".".into() } else { question }
}

/// Notes lines that Slurm or a simulation ignores, with their places.
fn note_odd_lines(conf: &SlurmConf, args: &SiteImportArgs, console: &Console) -> Result<(), Failure> {
    for (name, place) in &conf.unknown_options {
        let (kind, option) = name.split_once(' ').unwrap_or(("", name));
        let near = did_you_mean(option, slurm_conf_names());
        console
            .note(&format!("{place}: {option} is no option of {kind} in slurm.conf(5) and is ignored{}", ended(near)));
    }
    for (name, place) in &conf.repeated_partitions {
        console.note(&format!("{place}: the partition {name} is defined before; this line is ignored, as by Slurm."));
    }
    if args.nodes.is_none() && args.partitions.is_none() {
        for (names, place) in &conf.without_partition {
            console.note(&format!("{place}: no partition has {names}."));
        }
    }
    let settings = scheduler_settings(conf).map_err(file_failure)?;
    settings.notes.iter().for_each(|note| console.note(note));
    Ok(())
}

/// Notes partitions whose QOS is not among those that were read.
fn note_undefined_qos(path: &Path, conf: &SlurmConf, partitions: &[Partition], qos: &[Qos], console: &Console) {
    for partition in partitions {
        let Some(name) = partition.qos.as_ref().filter(|name| !qos.iter().any(|q| q.name.eq_ignore_ascii_case(name)))
        else {
            continue;
        };
        let place = conf.qos_places.get(&partition.name);
        let place = place.map_or(String::new(), |place| format!("{place}: "));
        console.note(&format!(
            "{place}the partition {} has the QOS {name}, which {} does not define; the partition has no limits of it.",
            partition.name,
            path.display()
        ));
    }
}

/// Puts nodes of slurm.conf into partitions of another file.
fn put_nodes_in(nodes: &mut [Node], partitions: &[Partition]) {
    nodes.iter_mut().for_each(|node| node.partitions.clear());
    for partition in partitions {
        let names = partition.nodes.as_deref().and_then(expand_hostlist).unwrap_or_default();
        for node in nodes.iter_mut().filter(|node| names.contains(&node.name)) {
            node.partitions.push(partition.name.clone());
        }
    }
}

/// Reads a file with the text of a command.
fn parsed<T>(path: &Path, command: &str, parse: impl FnOnce(&str) -> Result<T, TextError>) -> Result<T, Failure> {
    let text = read_command_text(path, command).map_err(file_failure)?;
    parse(&text).map_err(|error| file_failure(SiteFileError::in_file(path, error)))
}

/// With a header line, or without one in sacctmgr's default order of columns.
fn parse_associations(text: &str, console: &Console) -> Result<Accounts, TextError> {
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let has = |name: &str| first.split('|').any(|word| word.trim().eq_ignore_ascii_case(name));
    if !has("ParentName") && !has("Par Name") {
        console.note("--assoc: no column ParentName, so every account stands below the root; add format=…,ParentName.");
    }
    Accounts::parse_with_any_header(text)
}

fn file_failure(error: SiteFileError) -> Failure {
    let environment = error.is_environment();
    Failure::new(error, environment)
}

/// The section of the policy that computes Slurm's own priority, if the site has that priority.
fn policy_settings(site: &SiteTexts, cluster: &Cluster, console: &Console) -> Result<Option<String>, Failure> {
    let Some(conf) = &site.conf else { return Ok(None) };
    let configuration: &Configuration = &conf.configuration;
    if configuration.get("PriorityType").is_none() {
        console.note(
            "slurm.conf does not set PriorityType, whose default is priority/basic up to 22.05 and priority/multifactor \
             in 23.11 and later: no policy settings are written. Set it as `scontrol show config` prints it.",
        );
    }
    let Some(priority) = site_priority(configuration, &site.partitions) else { return Ok(None) };
    let priority = priority.with_cluster(cluster);
    let resources: Vec<Resource> = cluster.resources.iter().map(|name| Resource::new(name, "")).collect();
    let queues: Vec<String> = site.partitions.iter().map(|p| p.name.clone()).collect();
    let qos: Vec<String> = cluster.qos.iter().map(|qos| qos.name.clone()).collect();
    let settings = Settings::of_site(&priority, &resources, &queues, &qos).map_err(|error| {
        let place = match &error {
            PolicyError::Site { setting, .. } => conf.places.get(&setting.to_ascii_lowercase()),
            _ => None,
        };
        Failure::Input(place.map_or_else(|| format!("slurm.conf: {error}"), |place| format!("{place}: {error}")))
    })?;
    // Only resources with a weight, so that a log without the others can be replayed, and that Slurm counts.
    let has_weight = |r: &usize| settings.weights.tres.get(*r).is_some_and(|weight| !weight.is_zero());
    let is_counted = |r: &usize| configuration.counts_memory() || resources[*r].name != "mem";
    let weighted: Vec<usize> = (0..resources.len()).filter(has_weight).filter(is_counted).collect();
    let names: Vec<Resource> = weighted.iter().map(|&r| resources[r].clone()).collect();
    let mut kept = settings.clone();
    kept.weights.tres = weighted.iter().map(|&r| settings.weights.tres[r].clone()).collect();
    Ok(Some(kept.to_file(&names, &queues, &qos)))
}
