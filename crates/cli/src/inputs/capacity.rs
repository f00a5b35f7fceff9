//! Capacities, for `study` and `audit --history`: multiples of a workload's mean use, pools, or files.

use std::path::{Path, PathBuf};

use evenhand_model::{Quantity, ResourceQuantity, Workload};
use evenhand_study::{RequestedCapacity, read_cluster, read_pool};
use evenhand_workload::import::is_slurm_configuration;

use crate::failure::Failure;
use crate::output::console::Console;

/// Value of `--capacity`.
pub(crate) enum CapacityArgument {
    /// As typed, and as a multiple of the workload's mean use.
    Multiple(String, Quantity),
    /// A pool as typed (`cpu=100,mem=1TiB`), with its resources.
    Pool(String, Vec<(String, ResourceQuantity)>),
    /// A file with a `[pool]` or `[[machines]]`.
    File(PathBuf),
}

impl CapacityArgument {
    /// Returns whether this may be machines: a file with `[[machines]]`, or one that cannot be read, about which its reader
    /// reports.
    pub(crate) fn may_be_machines(&self) -> bool {
        match self {
            CapacityArgument::File(path) => !matches!(read_cluster(path), Ok(None)),
            _ => false,
        }
    }
}

/// Parses a value of `--capacity`.
pub(crate) fn parse_capacity(text: &str) -> Result<CapacityArgument, Failure> {
    match Quantity::parse(text) {
        Ok(factor) if !factor.is_zero() => Ok(CapacityArgument::Multiple(text.to_string(), factor)),
        Err(_) if Path::new(text).exists() => Ok(CapacityArgument::File(text.into())),
        Err(_) if text.contains('=') => pool(text),
        _ => {
            let expected = "a number greater than 0 (a multiple of the workload's mean use), a pool such as cpu=100,mem=1TiB, or a file with a \
                 [pool] or [[machines]]";
            // A file name needs no list of the other forms first.
            let extension = Path::new(text).extension();
            Err(Failure::Input(match text.contains('/') || extension.is_some_and(|e| e == "toml" || e == "json") {
                true => format!("--capacity: there is no file {text}; check the path. A capacity is {expected}"),
                false => format!("--capacity: found {text:?}, expected {expected}"),
            }))
        }
    }
}

/// Parses the values of a list at whose commas clap has split it: consecutive resources are one pool, up to a resource
/// that the pool already has.
pub(crate) fn parse_capacities(list: &[String]) -> Result<Vec<CapacityArgument>, Failure> {
    let name = |text: &str| {
        let (name, _) = text.split_once('=').filter(|_| !Path::new(text).exists())?;
        Some(name.trim().to_string())
    };
    let mut joined: Vec<(String, Vec<String>)> = Vec::new();
    for text in list {
        match (name(text), joined.last_mut()) {
            (Some(resource), Some((pool, resources))) if !resources.is_empty() && !resources.contains(&resource) => {
                pool.push(',');
                pool.push_str(text);
                resources.push(resource);
            }
            (resource, _) => joined.push((text.clone(), resource.into_iter().collect())),
        }
    }
    joined.iter().map(|(text, _)| parse_capacity(text)).collect()
}

fn pool(text: &str) -> Result<CapacityArgument, Failure> {
    let wrong = |part: &str, problem: String| Failure::Input(format!("--capacity {text}: {part:?}: {problem}"));
    let mut resources: Vec<(String, ResourceQuantity)> = Vec::new();
    for part in text.split(',') {
        let Some((name, quantity)) = part.split_once('=').map(|(n, q)| (n.trim(), q)).filter(|(n, _)| !n.is_empty())
        else {
            return Err(wrong(part, "expected RESOURCE=QUANTITY, as in cpu=100,mem=1TiB".into()));
        };
        if resources.iter().any(|(other, _)| other == name) {
            return Err(wrong(part, format!("{name} has a quantity already")));
        }
        let quantity = ResourceQuantity::parse(quantity).map_err(|e| wrong(part, e.to_string()))?;
        resources.push((name.to_string(), quantity));
    }
    Ok(CapacityArgument::Pool(text.to_string(), resources))
}

/// Reads the file of a capacity, if it is one.
pub(crate) fn read_capacity(
    argument: CapacityArgument,
    workload: &Workload,
    console: &Console,
) -> Result<RequestedCapacity, Failure> {
    let path = match argument {
        CapacityArgument::Multiple(text, factor) => return Ok(RequestedCapacity::Multiple(text, factor)),
        CapacityArgument::Pool(text, resources) => return inline_pool(text, &resources, workload, console),
        CapacityArgument::File(path) => path,
    };
    read_file(&path, workload, console)
}

/// Converts a pool as typed to the workload's units.
fn inline_pool(
    text: String,
    resources: &[(String, ResourceQuantity)],
    workload: &Workload,
    console: &Console,
) -> Result<RequestedCapacity, Failure> {
    let mut units = Vec::new();
    for resource in workload.resources() {
        let Some((_, quantity)) = resources.iter().find(|(name, _)| *name == resource.name) else {
            let names: Vec<&str> = workload.resources().iter().map(|r| r.name.as_str()).collect();
            return Err(Failure::Input(format!(
                "--capacity {text}: found no {}, expected a quantity for each of: {}",
                resource.name,
                names.join(", ")
            )));
        };
        units.push(quantity.in_unit(&resource.unit));
    }
    let names = resources.iter().map(|(name, _)| name.clone());
    let unknown: Vec<String> = names.filter(|name| workload.resources().iter().all(|r| r.name != *name)).collect();
    note_unused(&format!("--capacity {text}"), &unknown, console);
    Ok(RequestedCapacity::Pool(text, units))
}

fn note_unused(place: &str, unknown: &[String], console: &Console) {
    if !unknown.is_empty() {
        let names = unknown.join(", ");
        console.note(&format!("{place}: the workload has no {names}, so that part of the pool stays unused"));
    }
}

/// Recognises slurm.conf, and a list of Slurm's nodes or partitions, in the place of a file of machines.
fn slurm_conf(path: &Path) -> Option<Failure> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().position(|line| is_slurm_configuration(line.as_bytes()))? + 1;
    let name = path.display();
    Some(Failure::Input(format!(
        "{name}:{line}:1: found Slurm's configuration or a list of its nodes, expected a file with [pool] or [[machines]]; make a \
         folder of the site with evenhand site import --slurm-conf {name} -o SITE, and give --site SITE"
    )))
}

/// Reads a file with a `[pool]` or `[[machines]]`.
pub(crate) fn read_file(path: &Path, workload: &Workload, console: &Console) -> Result<RequestedCapacity, Failure> {
    let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    if let Some(cluster) = read_cluster(path).map_err(|error| slurm_conf(path).unwrap_or(Failure::document(error)))? {
        return Ok(RequestedCapacity::Machines(name, cluster));
    }
    let (units, unknown) = read_pool(path, workload.resources()).map_err(Failure::document)?;
    note_unused(&path.display().to_string(), &unknown, console);
    Ok(RequestedCapacity::Pool(name, units))
}
