//! The meter that reads cgroup files, for both versions of control groups.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::cgroups::cgroup_enforcer::is_unsupported;
use crate::cgroups::descriptor_budget::{Access, GroupFile, vanished};
use crate::cgroups::protected_cgroups::check_group_path;
use crate::cgroups::{DescriptorBudget, Group, GroupId, KernelError, Meter, Pressure, Resource, Stall, Usage};

/// Parses the number that a file holds.
pub(crate) type Parse = fn(&[u8]) -> Option<u64>;

/// One counter of a group, and the file that holds it.
#[derive(Debug)]
pub(crate) struct CounterFile {
    /// The resource that is counted. Where two counters count the same resource, the larger one is used.
    pub(crate) resource: Resource,
    pub(crate) root: Arc<Path>,
    /// The names of the file, of which the first that exists is read.
    pub(crate) names: &'static [&'static str],
    pub(crate) parse: Parse,
    pub(crate) expected: &'static str,
    /// The machine-wide file of this counter, if the counter is to be skipped while that is 0.
    pub(crate) only_if: Option<PathBuf>,
}

impl CounterFile {
    fn is_active(&self) -> bool {
        let Some(path) = &self.only_if else { return true };
        fs::read(path).ok().and_then(|text| (self.parse)(&text)).is_some_and(|value| value > 0)
    }
}

#[derive(Debug)]
struct Entry {
    group: Arc<str>,
    /// The group's counters, in the order of the meter's. `None` if the group does not have the file.
    counters: Box<[Option<GroupFile>]>,
    /// Opened when the pressure is first read.
    pressure: Option<[Option<GroupFile>; 3]>,
}

/// Reads the resource use of groups from cgroup files: those of version 1 ([`CgroupMeter::v1`]) or 2
/// ([`CgroupMeter::v2`]).
///
/// A file stays open as far as the [budget](DescriptorBudget) allows.
#[derive(Debug)]
pub struct CgroupMeter {
    counters: Vec<CounterFile>,
    /// The hierarchies in which groups are looked for.
    roots: Vec<Arc<Path>>,
    /// The hierarchy with `.pressure` files, if any.
    pressure_root: Option<Arc<Path>>,
    budget: DescriptorBudget,
    entries: HashMap<GroupId, Entry>,
    buffer: Vec<u8>,
}

const PRESSURE_FILES: [&str; 3] = ["cpu.pressure", "memory.pressure", "io.pressure"];

impl CgroupMeter {
    pub(crate) fn new(
        counters: Vec<CounterFile>,
        roots: Vec<Arc<Path>>,
        pressure_root: Option<Arc<Path>>,
        budget: &DescriptorBudget,
    ) -> CgroupMeter {
        let (entries, buffer) = (HashMap::new(), Vec::new());
        CgroupMeter { counters, roots, pressure_root, budget: budget.clone(), entries, buffer }
    }
}

impl Meter for CgroupMeter {
    fn admit(&mut self, id: GroupId, group: &Group) -> Result<(), KernelError> {
        check_group_path(&group.path)?;
        self.entries.remove(&id);
        let path: Arc<str> = Arc::from(group.path.as_str());
        let mut counters = Vec::with_capacity(self.counters.len());
        for counter in &self.counters {
            let mut found = None;
            for name in counter.names.iter().filter(|_| counter.is_active()) {
                found = GroupFile::open_existing(&counter.root, &path, name, Access::Read, &self.budget)
                    .map_err(|error| io_error(&counter.root.join(&*path).join(name), error))?;
                if found.is_some() {
                    break;
                }
            }
            counters.push(found);
        }
        if counters.iter().all(Option::is_none) && !self.roots.iter().any(|root| root.join(&*path).is_dir()) {
            return Err(KernelError::Gone(group.path.clone()));
        }
        self.entries.insert(id, Entry { group: path, counters: counters.into(), pressure: None });
        Ok(())
    }

    fn read(&mut self, id: GroupId) -> Result<Usage, KernelError> {
        let entry = self.entries.get_mut(&id).ok_or(KernelError::NotAdmitted(id))?;
        let mut usage = Usage::default();
        for (i, counter) in self.counters.iter().enumerate() {
            let Some(file) = &mut entry.counters[i] else { continue };
            let text = match file.read(&mut self.buffer, &self.budget) {
                Ok(text) => text,
                Err(error) if vanished(&error) => {
                    let name = file.name();
                    entry.counters[i] = None;
                    let roots = self.roots.iter().map(|root| &**root);
                    return Err(missing_file_error(&counter.root, roots, &entry.group, counter.resource, name));
                }
                Err(error) => return Err(io_error(&file.path(), error)),
            };
            let value = (counter.parse)(text).ok_or_else(|| KernelError::Content {
                what: file.path().display().to_string(),
                found: String::from_utf8_lossy(&text[..text.len().min(80)]).into_owned(),
                expected: counter.expected,
            })?;
            let total = &mut usage[counter.resource];
            *total = Some(total.map_or(value, |other| other.max(value)));
        }
        Ok(usage)
    }

    fn pressure(&mut self, id: GroupId) -> Result<Pressure, KernelError> {
        let entry = self.entries.get_mut(&id).ok_or(KernelError::NotAdmitted(id))?;
        let Some(root) = &self.pressure_root else { return Ok(Pressure::default()) };
        let group = &entry.group;
        let files = match &mut entry.pressure {
            Some(files) => files,
            None => {
                let mut files = [None, None, None];
                for (file, name) in files.iter_mut().zip(PRESSURE_FILES) {
                    // PSI can be off for the machine (psi=0) or for this group (cgroup.pressure).
                    *file = match GroupFile::open_existing(root, group, name, Access::Read, &self.budget) {
                        Ok(file) => file,
                        Err(error) if is_unsupported(&error) => None,
                        Err(error) => return Err(io_error(&root.join(&**group).join(name), error)),
                    };
                }
                entry.pressure.insert(files)
            }
        };
        let mut stalls = [None; 3];
        for (stall, file) in stalls.iter_mut().zip(files) {
            let Some(file) = file else { continue };
            match file.read(&mut self.buffer, &self.budget) {
                Ok(text) => *stall = Stall::parse(text),
                Err(error) if vanished(&error) && !root.join(&**group).is_dir() => {
                    return Err(KernelError::Gone(group.to_string()));
                }
                Err(error) if vanished(&error) || is_unsupported(&error) => {}
                Err(error) => return Err(io_error(&file.path(), error)),
            }
        }
        let [cpu, memory, disk] = stalls;
        Ok(Pressure { cpu, memory, disk, network: None })
    }

    fn dismiss(&mut self, id: GroupId) {
        self.entries.remove(&id);
    }
}

pub(crate) fn io_error(path: &Path, source: io::Error) -> KernelError {
    KernelError::Io { what: path.display().to_string(), source }
}

/// Classifies the loss of a file. The resource was withdrawn if the group still exists in one of the hierarchies; else the
/// group is gone. It is gone too if the file exists again, because then a new group has its name.
pub(crate) fn missing_file_error<'r>(
    root: &Path,
    mut roots: impl Iterator<Item = &'r Path>,
    group: &str,
    resource: Resource,
    name: &str,
) -> KernelError {
    let exists_again = root.join(group).join(name).exists();
    if !exists_again && roots.any(|root| root.join(group).is_dir()) {
        let why = format!("{name} no longer exists");
        KernelError::Withdrawn { resource, group: group.to_owned(), why }
    } else {
        KernelError::Gone(group.to_owned())
    }
}
