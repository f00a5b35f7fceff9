//! The enforcer that writes cgroup files, for both versions of control groups.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use rustix::io::Errno;

use crate::cgroups::cgroup_meter::{io_error, missing_file_error};
use crate::cgroups::descriptor_budget::{Access, GroupFile, vanished};
use crate::cgroups::enforcer::IDENTITY;
use crate::cgroups::{
    Change, DescriptorBudget, Enforcer, Group, GroupId, Hierarchies, KernelError, ProtectedCgroups, Resource,
    SavedState, Targets,
};

/// Converts a target into the number that a file takes.
pub(crate) type Scale = fn(f64) -> u64;

/// A file through which the share of groups is set.
#[derive(Debug)]
pub(crate) struct Attribute {
    pub(crate) resource: Resource,
    pub(crate) root: Arc<Path>,
    pub(crate) name: &'static str,
    pub(crate) scale: Scale,
    /// A file of weights for single disks. The kernel resets them when the weight for all disks is written, so they are
    /// restored after it.
    pub(crate) devices: Option<&'static str>,
}

/// An attribute of one group.
#[derive(Debug)]
struct Setting {
    file: GroupFile,
    /// The present value, if known.
    last: Option<u64>,
}

#[derive(Debug)]
struct Entry {
    group: Arc<str>,
    /// The group's settings, in the order of the enforcer's attributes. `None` if the group does not have the file.
    settings: Box<[Option<Setting>]>,
}

/// Divides resources by writing cgroup files: those of version 1 ([`CgroupEnforcer::v1`]) or 2 ([`CgroupEnforcer::v2`]).
///
/// A file stays open as far as the [budget](DescriptorBudget) allows, and a value is written only when it changes on the
/// kernel's scale. Groups in which this process runs are refused. In a [dry run](CgroupEnforcer::dry_run) files are only
/// read.
#[derive(Debug)]
pub struct CgroupEnforcer {
    name: &'static str,
    /// The hierarchy whose groups others identify.
    main: Option<Arc<Path>>,
    attributes: Vec<Attribute>,
    resources: Vec<Resource>,
    protected: ProtectedCgroups,
    budget: DescriptorBudget,
    access: Access,
    entries: HashMap<GroupId, Entry>,
    text: String,
}

impl CgroupEnforcer {
    pub(crate) fn new(
        name: &'static str,
        attributes: Vec<Attribute>,
        hierarchies: &Hierarchies,
        protected: ProtectedCgroups,
        budget: &DescriptorBudget,
    ) -> CgroupEnforcer {
        let main = hierarchies.main().map(Arc::from);
        let mut resources: Vec<Resource> = attributes.iter().map(|a| a.resource).collect();
        resources.sort_unstable();
        resources.dedup();
        let (entries, text) = (HashMap::new(), String::new());
        let (access, budget) = (Access::Write, budget.clone());
        CgroupEnforcer { name, main, attributes, resources, protected, budget, access, entries, text }
    }

    /// Reports from now on what it would write, and writes nothing.
    #[must_use]
    pub fn dry_run(mut self) -> CgroupEnforcer {
        self.access = Access::Read;
        self
    }

    /// Restores the settings of the attributes that are chosen by whether the identity of their group was saved.
    fn restore_chosen(
        &mut self,
        group: &Group,
        saved: &SavedState,
        is_chosen: impl Fn(bool) -> bool,
    ) -> Result<(), KernelError> {
        self.protected.check(&group.path)?;
        if self.access == Access::Read {
            return Ok(());
        }
        // The values written last are no longer those in the files.
        for entry in self.entries.values_mut().filter(|e| *e.group == *group.path) {
            entry.settings.iter_mut().flatten().for_each(|setting| setting.last = None);
        }
        let mut first_error = None;
        for attribute in &self.attributes {
            let folder = attribute.root.join(&group.path);
            let identity = saved.0.get(&format!("{}{IDENTITY}", attribute.name));
            // A new group of the same path was never changed.
            let is_other = identity.is_some_and(|identity| group_identity(&folder).as_ref() != Some(identity));
            if is_other || !is_chosen(identity.is_some()) {
                continue;
            }
            // The weight for all disks comes before those for single disks, because writing it resets them.
            for name in [Some(attribute.name), attribute.devices].into_iter().flatten() {
                let Some(text) = saved.0.get(name) else { continue };
                if let Err(error) = restore_file(&folder.join(name), text) {
                    first_error.get_or_insert(error);
                }
            }
        }
        if let (None, Some(other)) = (&first_error, saved.0.keys().find(|key| !self.writes(key))) {
            let what = group.path.clone();
            let expected = "a file that this enforcer writes";
            first_error = Some(KernelError::Content { what, found: other.clone(), expected });
        }
        first_error.map_or(Ok(()), Err)
    }

    fn writes(&self, name: &str) -> bool {
        let name = name.strip_suffix(IDENTITY).unwrap_or(name);
        self.attributes.iter().any(|a| a.name == name || a.devices == Some(name))
    }
}

impl Enforcer for CgroupEnforcer {
    fn name(&self) -> &'static str {
        self.name
    }

    fn resources(&self) -> &[Resource] {
        &self.resources
    }

    fn admit(&mut self, id: GroupId, group: &Group) -> Result<SavedState, KernelError> {
        self.protected.check(&group.path)?;
        self.entries.remove(&id);
        let path: Arc<str> = Arc::from(group.path.as_str());
        let mut saved = BTreeMap::new();
        let mut settings = Vec::with_capacity(self.attributes.len());
        for attribute in &self.attributes {
            let folder = attribute.root.join(&*path);
            let name = folder.join(attribute.name);
            let file = GroupFile::open_existing(&attribute.root, &path, attribute.name, self.access, &self.budget)
                .map_err(|error| io_error(&name, error))?;
            // A file that vanishes between the two steps counts as absent.
            let (Some(file), Some(text)) = (file, content(&name)?) else {
                settings.push(None);
                continue;
            };
            let mut last = common_value(&text);
            saved.insert(attribute.name.to_owned(), text);
            if self.main.as_ref() != Some(&attribute.root) {
                let identity =
                    group_identity(&folder).map(|identity| (format!("{}{IDENTITY}", attribute.name), identity));
                saved.extend(identity);
            }
            if let Some(devices) = attribute.devices
                && let Some(text) = content(&folder.join(devices))?
                && text.lines().any(|line| !line.starts_with("default"))
            {
                saved.insert(devices.to_owned(), text);
                // Those disks have other weights until the weight for all is written.
                last = None;
            }
            settings.push(Some(Setting { file, last }));
        }
        if settings.iter().all(Option::is_none) && !self.attributes.iter().any(|a| a.root.join(&*path).is_dir()) {
            return Err(KernelError::Gone(group.path.clone()));
        }
        self.entries.insert(id, Entry { group: path, settings: settings.into() });
        Ok(SavedState(saved))
    }

    fn apply(&mut self, id: GroupId, targets: &Targets, changes: &mut Vec<Change>) -> Result<(), KernelError> {
        let entry = self.entries.get_mut(&id).ok_or(KernelError::NotAdmitted(id))?;
        if self.budget.pressed() {
            entry.settings.iter_mut().flatten().for_each(|setting| setting.file.release());
        }
        let mut first_error = None;
        for (i, attribute) in self.attributes.iter().enumerate() {
            let (Some(target), Some(setting)) = (targets[attribute.resource], &mut entry.settings[i]) else { continue };
            let value = (attribute.scale)(target);
            if setting.last == Some(value) {
                continue;
            }
            self.text.clear();
            // Writing to a string cannot fail.
            let _ = writeln!(self.text, "{value}");
            let written = match self.access {
                Access::Read => Ok(()),
                Access::Write => setting.file.write(self.text.as_bytes()),
            };
            let error = match written {
                Ok(()) => {
                    setting.last = Some(value);
                    changes.push(Change { group: id, resource: attribute.resource, value });
                    continue;
                }
                Err(error) => error,
            };
            setting.last = None;
            let failure = if vanished(&error) {
                entry.settings[i] = None;
                let roots = self.attributes.iter().map(|attribute| &*attribute.root);
                missing_file_error(&attribute.root, roots, &entry.group, attribute.resource, attribute.name)
            } else if Errno::from_io_error(&error) == Some(Errno::INVAL) {
                // Every value is in range, so the kernel accepts none: for example in a group with cpu.idle set.
                entry.settings[i] = None;
                let why = format!("the kernel rejects {value} for {}", attribute.name);
                KernelError::Withdrawn { resource: attribute.resource, group: entry.group.to_string(), why }
            } else {
                io_error(&setting.file.path(), error)
            };
            first_error.get_or_insert(failure);
        }
        first_error.map_or(Ok(()), Err)
    }

    fn dismiss(&mut self, id: GroupId) {
        self.entries.remove(&id);
    }

    fn restore(&mut self, group: &Group, saved: &SavedState) -> Result<(), KernelError> {
        self.restore_chosen(group, saved, |_| true)
    }

    fn restore_remains(&mut self, group: &Group, saved: &SavedState) -> Result<(), KernelError> {
        self.restore_chosen(group, saved, |has_identity| has_identity)
    }
}

/// Returns the identity of the group with this folder, as it is saved; `None` if there is none.
fn group_identity(folder: &Path) -> Option<String> {
    fs::metadata(folder).ok().map(|found| found.ino().to_string())
}

/// Returns the text of a file without trailing white space, or `None` if the file does not exist.
fn content(path: &Path) -> Result<Option<String>, KernelError> {
    match fs::read_to_string(path) {
        Ok(mut text) => {
            text.truncate(text.trim_end().len());
            Ok(Some(text))
        }
        Err(error) if vanished(&error) => Ok(None),
        Err(error) => Err(io_error(path, error)),
    }
}

/// Parses the value of an attribute: a number alone, or one line `default N`. Returns `None` if single disks have other
/// values.
fn common_value(text: &str) -> Option<u64> {
    let mut lines = text.lines();
    let first = lines.next()?;
    let first = first.strip_prefix("default ").unwrap_or(first);
    lines.next().is_none().then(|| if first == "max" { Some(u64::MAX) } else { first.parse().ok() })?
}

/// Version 1 prints "no limit" as the largest number of whole pages, of up to 64 KiB: this number or a larger one.
const UNLIMITED: u64 = (1 << 63) - (1 << 16);

/// Writes a saved text into a file, one call a line as the kernel requires, unless the file already holds it.
fn restore_file(path: &Path, text: &str) -> Result<(), KernelError> {
    if content(path)?.is_none_or(|now| now == text) {
        return Ok(());
    }
    let mut file = match OpenOptions::new().write(true).truncate(true).open(path) {
        Ok(file) => file,
        Err(error) if vanished(&error) => return Ok(()),
        Err(error) => return Err(io_error(path, error)),
    };
    for line in text.lines() {
        let unlimited = line.parse::<u64>().is_ok_and(|v| v >= UNLIMITED);
        let line = if unlimited { "-1\n".to_owned() } else { format!("{line}\n") };
        match file.write_all(line.as_bytes()) {
            // A disk that was removed, or has another scheduler now, has no weight to restore.
            Err(error) if line.contains(':') && (vanished(&error) || is_unsupported(&error)) => {}
            Err(error) if vanished(&error) => return Ok(()),
            Err(error) => return Err(io_error(path, error)),
            Ok(()) => {}
        }
    }
    Ok(())
}

pub(crate) fn is_unsupported(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::OPNOTSUPP)
}

/// Rounds bytes down to whole pages, as the kernel stores them.
pub(crate) fn whole_pages(bytes: f64) -> u64 {
    let page = rustix::param::page_size() as u64;
    bytes as u64 / page * page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_common_to_all_disks_is_parsed() {
        for (text, number) in [
            ("100", Some(100)),
            ("default 100", Some(100)),
            ("max", Some(u64::MAX)),
            ("default 100\n8:0 300", None),
            ("", None),
            ("default", None),
        ] {
            assert_eq!(common_value(text), number, "{text:?}");
        }
    }

    #[test]
    fn bytes_are_rounded_down_to_whole_pages() {
        let page = rustix::param::page_size() as u64;
        let of = |bytes: u64| whole_pages(bytes as f64);
        assert_eq!((of(page - 1), of(2 * page), of(3 * page - 1)), (0, 2 * page, 2 * page));
    }
}
