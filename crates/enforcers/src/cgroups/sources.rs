//! Reading groups: what the meters of both versions of control groups share.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::cgroups::descriptors::{For, Kept, vanished};
use crate::cgroups::own::check_path;
use crate::cgroups::{Budget, Control, Group, GroupId, KernelError, Usage};

/// The number that a text says.
pub(crate) type Parse = fn(&[u8]) -> Option<u64>;

/// One number of a group.
#[derive(Debug)]
pub(crate) struct Source {
    /// Of two numbers for the same the larger counts.
    pub(crate) control: Control,
    pub(crate) root: Arc<Path>,
    /// The file; of several the first that is there.
    pub(crate) names: &'static [&'static str],
    pub(crate) parse: Parse,
    pub(crate) expected: &'static str,
    /// A file that has to say more than 0 for this one to count.
    pub(crate) only_if: Option<PathBuf>,
}

impl Source {
    fn counts(&self) -> bool {
        let Some(path) = &self.only_if else { return true };
        fs::read(path).ok().and_then(|text| (self.parse)(&text)).is_some_and(|value| value > 0)
    }
}

#[derive(Debug)]
struct Entry {
    group: Arc<str>,
    /// Of each source, in their order.
    kept: Box<[Option<Kept>]>,
}

/// Sources and the groups that are read from them.
#[derive(Debug)]
pub(crate) struct Sources {
    sources: Vec<Source>,
    /// Where groups are looked for.
    roots: Vec<Arc<Path>>,
    budget: Budget,
    entries: HashMap<GroupId, Entry>,
    buffer: Vec<u8>,
}

impl Sources {
    pub(crate) fn new(sources: Vec<Source>, roots: Vec<Arc<Path>>, budget: &Budget) -> Sources {
        Sources { sources, roots, budget: budget.clone(), entries: HashMap::new(), buffer: Vec::new() }
    }

    pub(crate) fn admit(&mut self, id: GroupId, group: &Group) -> Result<(), KernelError> {
        check_path(&group.path)?;
        self.entries.remove(&id);
        let path: Arc<str> = Arc::from(group.path.as_str());
        let mut kept = Vec::with_capacity(self.sources.len());
        for source in &self.sources {
            let mut found = None;
            for name in source.names.iter().filter(|_| source.counts()) {
                found = Kept::find(&source.root, &path, name, For::Reading, &self.budget)
                    .map_err(|error| failed(&source.root.join(&*path).join(name), error))?;
                if found.is_some() {
                    break;
                }
            }
            kept.push(found);
        }
        if kept.iter().all(Option::is_none) && !self.roots.iter().any(|root| root.join(&*path).is_dir()) {
            return Err(KernelError::Gone(group.path.clone()));
        }
        self.entries.insert(id, Entry { group: path, kept: kept.into() });
        Ok(())
    }

    pub(crate) fn read(&mut self, id: GroupId) -> Result<Usage, KernelError> {
        let entry = self.entries.get_mut(&id).ok_or(KernelError::Unknown(id))?;
        let mut usage = Usage::default();
        for (i, source) in self.sources.iter().enumerate() {
            let Some(kept) = &mut entry.kept[i] else { continue };
            let text = match kept.read(&mut self.buffer, &self.budget) {
                Ok(text) => text,
                Err(error) if vanished(&error) => {
                    let name = kept.name();
                    entry.kept[i] = None;
                    let roots = self.roots.iter().map(|root| &**root);
                    return Err(lost(&source.root, roots, &entry.group, source.control, name));
                }
                Err(error) => return Err(failed(&kept.path(), error)),
            };
            let value = (source.parse)(text).ok_or_else(|| KernelError::Content {
                what: kept.path().display().to_string(),
                found: String::from_utf8_lossy(&text[..text.len().min(80)]).into_owned(),
                expected: source.expected,
            })?;
            let field = match source.control {
                Control::Cpu => &mut usage.cpu_ns,
                Control::Memory => &mut usage.memory_bytes,
                Control::Disk => &mut usage.disk_bytes,
                Control::Network => &mut usage.network_bytes,
            };
            *field = Some(field.map_or(value, |other| other.max(value)));
        }
        Ok(usage)
    }

    /// The path of a group that was admitted.
    pub(crate) fn path(&self, id: GroupId) -> Option<&Arc<str>> {
        self.entries.get(&id).map(|entry| &entry.group)
    }

    pub(crate) fn dismiss(&mut self, id: GroupId) {
        self.entries.remove(&id);
    }
}

pub(crate) fn failed(path: &Path, source: io::Error) -> KernelError {
    KernelError::Io { what: path.display().to_string(), source }
}

/// What it means that a file is not there any more: its control was withdrawn if the group still stands in one of
/// the hierarchies, else the group is gone. It is gone as well if there is such a file: another group has its
/// name now.
pub(crate) fn lost<'r>(
    root: &Path,
    mut roots: impl Iterator<Item = &'r Path>,
    group: &str,
    control: Control,
    name: &str,
) -> KernelError {
    let again = root.join(group).join(name).exists();
    if !again && roots.any(|root| root.join(group).is_dir()) {
        let why = format!("{name} is not there any more");
        KernelError::Withdrawn { control, group: group.to_owned(), why }
    } else {
        KernelError::Gone(group.to_owned())
    }
}
