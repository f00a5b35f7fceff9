//! The settings that all sources share, and the cache of what they found.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use evenhand_documents::{DocumentError, Node, Table};
use evenhand_enforcers::cgroups::Group;

use crate::discovery::RunningWorkload;
use crate::discovery::group_paths;
use crate::discovery::owner_map::OwnerMap;
use crate::discovery::watched_file::WatchedFile;

/// What a source found out about a group.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct WorkloadDetails {
    pub(crate) name: String,
    /// The owner as found, before the file of owners is applied; `None` if unknown.
    pub(crate) owner: Option<String>,
    pub(crate) devices: Vec<String>,
    pub(crate) processors: Option<f64>,
    pub(crate) memory_bytes: Option<u64>,
}

/// The settings that the tables of all sources share.
struct CommonSettings {
    unit: bool,
    owners: Option<WatchedFile<OwnerMap>>,
    processors: Option<f64>,
    memory_bytes: Option<u64>,
}

/// Details of groups by path, cached while the group's identity stays the same.
///
/// A scan [begins](WorkloadCache::begin_scan), visits each group that exists, by [`reuse`](WorkloadCache::reuse) if it is
/// cached and [`insert`](WorkloadCache::insert) if not, and [finishes](WorkloadCache::finish_scan).
pub(crate) struct WorkloadCache {
    common: CommonSettings,
    known: HashMap<String, Entry>,
    scan: u32,
    visited: usize,
    present: Vec<Arc<RunningWorkload>>,
    unowned: usize,
    first_unowned: String,
}

struct Entry {
    identity: u64,
    /// The last scan that visited the group.
    scan: u32,
    /// `None` if the group is not a workload of this source.
    details: Option<WorkloadDetails>,
    /// `None` also if the owner is unknown.
    workload: Option<Arc<RunningWorkload>>,
}

/// The keys of every source's table.
const KEYS: [&str; 5] = ["from", "unit", "owners", "processors", "memory"];

impl WorkloadCache {
    /// Reads the keys that all sources share, and rejects keys that are neither such nor in `own`.
    pub(crate) fn read(table: &Table<'_>, own: &[&str]) -> Result<WorkloadCache, DocumentError> {
        let keys: Vec<&str> = KEYS.iter().chain(own).copied().collect();
        table.deny_unknown(&keys)?;
        let common = CommonSettings {
            unit: table.get("unit").map(|node| node.flag()).transpose()?.unwrap_or_else(group_paths::systemd_runs),
            owners: table.get("owners").map(|node| watched(&node, OwnerMap::read)).transpose()?,
            processors: table.get("processors").map(|node| node.positive()).transpose()?.map(|q| q.to_f64()),
            memory_bytes: table.get("memory").map(|node| bytes(&node)).transpose()?,
        };
        Ok(WorkloadCache {
            common,
            known: HashMap::new(),
            scan: 0,
            visited: 0,
            present: Vec::new(),
            unowned: 0,
            first_unowned: String::new(),
        })
    }

    /// Returns the files that the table names, as far as all sources share their keys.
    pub(crate) fn files(&self) -> Vec<&Path> {
        self.common.owners.iter().map(WatchedFile::path).collect()
    }

    /// Returns whether the table names a file of owners.
    pub(crate) fn has_owners(&self) -> bool {
        self.common.owners.is_some()
    }

    pub(crate) fn begin_scan(&mut self) {
        self.scan = self.scan.wrapping_add(1);
        (self.visited, self.unowned) = (0, 0);
        self.present.clear();
        if self.common.owners.as_mut().is_some_and(WatchedFile::refresh) {
            let common = &self.common;
            for (path, entry) in &mut self.known {
                entry.workload = entry.details.as_ref().and_then(|found| common.workload(path, entry.identity, found));
            }
        }
    }

    /// Visits a group if it is cached. Returns whether it is.
    pub(crate) fn reuse(&mut self, path: &str, identity: u64) -> bool {
        let Some(entry) = self.known.get_mut(path).filter(|entry| entry.identity == identity) else { return false };
        if entry.scan != self.scan {
            (entry.scan, self.visited) = (self.scan, self.visited + 1);
        }
        match (&entry.workload, &entry.details) {
            (Some(workload), _) => self.present.push(Arc::clone(workload)),
            (None, Some(_)) => count_unowned(&mut self.unowned, &mut self.first_unowned, path),
            (None, None) => {}
        }
        true
    }

    /// Returns whether a cached group is a workload of this source. To be called after [`reuse`](WorkloadCache::reuse).
    pub(crate) fn is_workload(&self, path: &str) -> bool {
        self.known.get(path).is_some_and(|entry| entry.details.is_some())
    }

    /// Visits a group and caches its details: `None` if it is not a workload of this source.
    pub(crate) fn insert(&mut self, path: String, identity: u64, details: Option<WorkloadDetails>) {
        let workload = details.as_ref().and_then(|found| self.common.workload(&path, identity, found));
        self.known.insert(path.clone(), Entry { identity, scan: self.scan.wrapping_sub(1), details, workload });
        self.reuse(&path, identity);
    }

    /// Visits a group without caching its details.
    pub(crate) fn visit_uncached(&mut self, path: &str, identity: u64, details: &WorkloadDetails) {
        match self.common.workload(path, identity, details) {
            Some(workload) => self.present.push(workload),
            None => count_unowned(&mut self.unowned, &mut self.first_unowned, path),
        }
    }

    /// Clears the cache.
    pub(crate) fn clear(&mut self) {
        self.known.clear();
        self.visited = 0;
        self.present.clear();
        self.unowned = 0;
    }

    /// Returns the workloads that were visited, sorted by path, and forgets all other groups.
    pub(crate) fn finish_scan(&mut self) -> Vec<Arc<RunningWorkload>> {
        if self.visited != self.known.len() {
            let scan = self.scan;
            self.known.retain(|_, entry| entry.scan == scan);
        }
        let mut present = std::mem::take(&mut self.present);
        present.sort_by(|a, b| a.group.path.cmp(&b.group.path));
        self.present = Vec::with_capacity(present.len());
        present
    }

    /// Appends the warnings of the last scan.
    pub(crate) fn warnings(&self, warnings: &mut Vec<String>) {
        if let Some(problem) = self.common.owners.as_ref().and_then(WatchedFile::problem) {
            warnings.push(problem.to_owned());
        }
        if self.unowned > 0 {
            warnings.push(format!("the owner is unknown: {}", such_as(self.unowned, &self.first_unowned)));
        }
    }
}

fn count_unowned(count: &mut usize, first: &mut String, path: &str) {
    if *count == 0 {
        path.clone_into(first);
    }
    *count += 1;
}

/// Formats `"a"`, or `3 groups such as "a"`.
pub(crate) fn such_as(count: usize, first: &str) -> String {
    if count == 1 { format!("{first:?}") } else { format!("{count} groups such as {first:?}") }
}

impl CommonSettings {
    /// Creates a workload from its details. Returns `None` if the owner is unknown.
    fn workload(&self, path: &str, identity: u64, details: &WorkloadDetails) -> Option<Arc<RunningWorkload>> {
        let owner = match &self.owners {
            Some(owners) => owners.value().owner(details.owner.as_deref(), &details.name),
            None => details.owner.clone(),
        };
        let unit = if self.unit { group_paths::unit_of(path) } else { None };
        Some(Arc::new(RunningWorkload {
            name: details.name.clone(),
            owner: owner.filter(|owner| !owner.is_empty())?,
            group: Group { path: path.to_owned(), unit, devices: details.devices.clone() },
            identity,
            processors: details.processors.or(self.processors),
            memory_bytes: details.memory_bytes.or(self.memory_bytes),
        }))
    }
}

/// Reads the name of a file.
pub(crate) fn file(node: &Node<'_>) -> Result<PathBuf, DocumentError> {
    match node.text()? {
        "" => Err(node.error("found \"\", expected the name of a file")),
        path => Ok(PathBuf::from(path)),
    }
}

/// Opens the file that a key names. If it cannot be read, the error is at the key.
pub(crate) fn watched<T>(
    node: &Node<'_>,
    read: fn(&Path) -> Result<T, DocumentError>,
) -> Result<WatchedFile<T>, DocumentError> {
    WatchedFile::open(file(node)?, read).map_err(|error| match error {
        DocumentError::Read { path, source } if source.kind() != ErrorKind::PermissionDenied => {
            node.error(format!("{path}: {source}; expected a file that can be read"))
        }
        other => other,
    })
}

/// Reads a number of bytes.
pub(crate) fn bytes(node: &Node<'_>) -> Result<u64, DocumentError> {
    whole_bytes(node.positive()?.to_f64()).map_err(|problem| node.error(problem))
}

pub(crate) fn whole_bytes(bytes: f64) -> Result<u64, String> {
    // No machine has more; below, `f64` is exact enough.
    const MAXIMUM: f64 = (1_u64 << 60) as f64;
    if !(1.0..=MAXIMUM).contains(&bytes) {
        return Err(format!("found {bytes}, expected bytes of memory from 1 to 2^60"));
    }
    Ok(bytes as u64)
}
