//! Virtual machines and containers of libvirt.
//!
//! Groups are recognized by their names, and their owners and sizes are read from the files in which libvirt itself
//! keeps the state of running domains, `/run/libvirt/qemu/NAME.xml`. libvirt is not asked, and may be down. It
//! replaces a file at every change (a device plugged in, metadata set), which changes the modification time of the
//! directory: each scan checks that time, and only changed files are read.

mod group_names;
mod read_domain;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use evenhand_documents::{DocumentError, Table};
use evenhand_enforcers::cgroups::{Hierarchies, ListedGroup, is_group_path};

use self::group_names::{Machine, is_partition, machine_of};
use self::read_domain::{Domain, OwnerPath};
use crate::discovery::group_paths::{children, last};
use crate::discovery::watched_file::FileStamp;
use crate::discovery::workload_cache::{WorkloadCache, WorkloadDetails, file, such_as};
use crate::discovery::{DiscoveryError, Registration, RunningWorkload, WorkloadSource};

pub(crate) const SOURCE: Registration = Registration {
    name: "libvirt",
    about: "libvirt's machines, with owners from their metadata, virtual processors, memory and network devices",
    build,
};

const FOLDER: &str = "/run/libvirt";
/// Larger files are not the state of a domain.
const MAX_FILE_BYTES: u64 = 4 << 20;

struct Libvirt {
    hierarchies: Hierarchies,
    owner: OwnerPath,
    within: Vec<String>,
    drivers: Vec<Driver>,
    cache: WorkloadCache,
    warnings: Vec<String>,
}

/// The running domains of one driver.
struct Driver {
    name: &'static str,
    folder: PathBuf,
    stamp: Option<FileStamp>,
    files: HashMap<PathBuf, (FileStamp, Result<Domain, String>)>,
    /// The file of the domain with this number.
    by_id: HashMap<u32, PathBuf>,
}

fn build(table: &Table<'_>, hierarchies: &Hierarchies) -> Result<Box<dyn WorkloadSource>, DocumentError> {
    let cache = WorkloadCache::read(table, &["owner", "within", "folder"])?;
    let owner = match table.get("owner") {
        None => OwnerPath::nova(),
        Some(node) => OwnerPath::parse(node.text()?).map_err(|problem| node.error(problem))?,
    };
    let mut within = vec!["machine.slice".to_owned(), "machine".to_owned()];
    if let Some(list) = table.get("within") {
        within.clear();
        for node in list.list()? {
            let path = node.text()?;
            if !is_group_path(path) {
                return Err(node.error(format!("found {path:?}, expected the path of a group, such as machine.slice")));
            }
            within.push(path.to_owned());
        }
    }
    let folder = table.get("folder").map(|node| file(&node)).transpose()?.unwrap_or_else(|| FOLDER.into());
    let driver =
        |name| Driver { name, folder: folder.join(name), stamp: None, files: HashMap::new(), by_id: HashMap::new() };
    let drivers = group_names::DRIVERS.map(driver).into();
    Ok(Box::new(Libvirt { hierarchies: hierarchies.clone(), owner, within, drivers, cache, warnings: Vec::new() }))
}

impl Driver {
    /// Reads the files that changed. Returns whether any did.
    fn refresh(&mut self, owner: &OwnerPath) -> Result<bool, DiscoveryError> {
        let now = FileStamp::of(&self.folder);
        match (self.stamp, now) {
            (Some(before), Some(now)) if before.is_unchanged(now) => return Ok(false),
            (None, None) => return Ok(false),
            _ => self.stamp = now,
        }
        let listed = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.files.clear();
                self.by_id.clear();
                return Ok(true);
            }
            Err(error) => return Err(self.unreadable(&error)),
        };
        let (mut files, mut changed) = (HashMap::new(), false);
        for entry in listed {
            let path = entry.map_err(|error| self.unreadable(&error))?.path();
            if path.extension().is_none_or(|ending| ending != "xml") {
                continue;
            }
            let Some(stamp) = FileStamp::of(&path) else { continue };
            let kept = self.files.remove(&path).filter(|(before, _)| before.is_unchanged(stamp));
            changed |= kept.is_none();
            let kept = kept.unwrap_or_else(|| (stamp, read(&path, owner)));
            files.insert(path, kept);
        }
        // The files that remain no longer exist.
        changed |= !self.files.is_empty();
        self.files = files;
        self.by_id.clear();
        for (path, (_, domain)) in &self.files {
            if let Ok(domain) = domain {
                self.by_id.insert(domain.id, path.clone());
            }
        }
        Ok(changed)
    }

    fn unreadable(&self, error: &io::Error) -> DiscoveryError {
        DiscoveryError::NoAnswer { source_name: self.folder.display().to_string(), why: error.to_string() }
    }

    /// Returns the domain that runs in the group of this machine.
    fn domain(&self, machine: &Machine) -> Option<&Domain> {
        let (_, domain) = self.files.get(self.by_id.get(&machine.id)?)?;
        domain.as_ref().ok().filter(|domain| machine.is_called(&domain.name))
    }
}

fn read(path: &Path, owner: &OwnerPath) -> Result<Domain, String> {
    let invalid = |why: String| format!("{}: {why}", path.display());
    let size = fs::metadata(path).map_err(|e| invalid(e.to_string()))?.len();
    if size > MAX_FILE_BYTES {
        return Err(invalid(format!("found {size} bytes, expected the state of one domain")));
    }
    let text = fs::read_to_string(path).map_err(|e| invalid(e.to_string()))?;
    Domain::parse(&text, owner).map_err(invalid)
}

impl Libvirt {
    /// Lists the groups below `parent` and its partitions: machines, and other groups beside them.
    fn list_below(&self, parent: &str, depth: usize, found: &mut Vec<ListedGroup>) -> Result<(), DiscoveryError> {
        const MAX_DEPTH: usize = 16;
        for group in children(&self.hierarchies, parent)? {
            let name = last(&group.path);
            if !is_partition(name) {
                found.push(group);
            } else if depth < MAX_DEPTH {
                self.list_below(&group.path, depth + 1, found)?;
            }
        }
        Ok(())
    }
}

impl WorkloadSource for Libvirt {
    fn files(&self) -> Vec<&Path> {
        self.cache.files()
    }

    fn looked_for(&self) -> String {
        let folders: Vec<String> = self
            .drivers
            .iter()
            .map(|driver| {
                let there =
                    if driver.folder.is_dir() { "no domain in it runs" } else { "does not exist: libvirt is not here" };
                format!("{} {there}", driver.folder.display())
            })
            .collect();
        folders.join("; ")
    }

    fn list(&mut self) -> Result<Vec<Arc<RunningWorkload>>, DiscoveryError> {
        self.warnings.clear();
        self.cache.begin_scan();
        // The groups come first: a machine that starts in between is then among the domains, and not the reverse.
        let mut groups = Vec::new();
        for parent in &self.within {
            self.list_below(parent, 0, &mut groups)?;
        }
        let mut changed = false;
        for driver in &mut self.drivers {
            changed |= driver.refresh(&self.owner)?;
            let errors = driver.files.values().filter_map(|(_, domain)| domain.as_ref().err());
            self.warnings.extend(errors.min().cloned());
        }
        if changed {
            self.cache.clear();
        }
        let (mut unknown, mut first) = (0, String::new());
        for group in groups {
            if self.cache.reuse(&group.path, group.identity) {
                continue;
            }
            let Some(machine) = machine_of(last(&group.path)) else { continue };
            let driver = self.drivers.iter().find(|driver| driver.name == machine.driver);
            let Some(domain) = driver.and_then(|driver| driver.domain(&machine)) else {
                if unknown == 0 {
                    first.clone_from(&group.path);
                }
                unknown += 1;
                continue;
            };
            let details = WorkloadDetails {
                name: domain.name.clone(),
                owner: domain.owner.clone(),
                devices: domain.devices.clone(),
                processors: domain.processors,
                memory_bytes: domain.memory_bytes,
            };
            self.cache.insert(group.path, group.identity, Some(details));
        }
        if unknown > 0 {
            self.warnings.push(format!("libvirt's state names no domain of {}", such_as(unknown, &first)));
        }
        Ok(self.cache.finish_scan())
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = self.warnings.clone();
        self.cache.warnings(&mut warnings);
        warnings
    }
}
