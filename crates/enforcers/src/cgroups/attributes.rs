//! Writing groups: what the enforcers of both versions of control groups share.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;

use rustix::io::Errno;

use crate::cgroups::descriptors::{For, Kept, vanished};
use crate::cgroups::sources::{failed, lost};
use crate::cgroups::{Before, Budget, Change, Control, Group, GroupId, KernelError, Levels, Own};

/// What a file takes for these levels.
pub(crate) type Scale = fn(&Levels) -> Option<u64>;

/// One file through which groups are weighed.
#[derive(Debug)]
pub(crate) struct Attribute {
    pub(crate) control: Control,
    pub(crate) root: Arc<Path>,
    pub(crate) name: &'static str,
    pub(crate) scale: Scale,
    /// A file of weights for single disks, which the kernel forgets when the weight for all is written: so they are
    /// put back after it.
    pub(crate) devices: Option<&'static str>,
}

#[derive(Debug)]
struct Slot {
    kept: Kept,
    /// What it holds, as far as we know.
    last: Option<u64>,
}

#[derive(Debug)]
struct Entry {
    group: Arc<str>,
    /// Of each attribute, in their order. `None` if the group has none.
    slots: Box<[Option<Slot>]>,
}

/// Attributes and the groups that are written.
#[derive(Debug)]
pub(crate) struct Attributes {
    attributes: Vec<Attribute>,
    controls: Vec<Control>,
    own: Own,
    budget: Budget,
    entries: HashMap<GroupId, Entry>,
    text: String,
}

impl Attributes {
    pub(crate) fn new(attributes: Vec<Attribute>, own: Own, budget: &Budget) -> Attributes {
        let mut controls: Vec<Control> = attributes.iter().map(|a| a.control).collect();
        controls.sort_unstable();
        controls.dedup();
        let (entries, text) = (HashMap::new(), String::new());
        Attributes { attributes, controls, own, budget: budget.clone(), entries, text }
    }

    pub(crate) fn controls(&self) -> &[Control] {
        &self.controls
    }

    pub(crate) fn admit(&mut self, id: GroupId, group: &Group) -> Result<Before, KernelError> {
        self.own.check(&group.path)?;
        self.entries.remove(&id);
        let path: Arc<str> = Arc::from(group.path.as_str());
        let mut before = BTreeMap::new();
        let mut slots = Vec::with_capacity(self.attributes.len());
        for attribute in &self.attributes {
            let folder = attribute.root.join(&*path);
            let file = folder.join(attribute.name);
            let kept = Kept::find(&attribute.root, &path, attribute.name, For::Writing, &self.budget)
                .map_err(|error| failed(&file, error))?;
            // Gone between the two is not there.
            let (Some(kept), Some(text)) = (kept, content(&file)?) else {
                slots.push(None);
                continue;
            };
            let mut last = standing(&text);
            before.insert(attribute.name.to_owned(), text);
            if let Some(devices) = attribute.devices
                && let Some(text) = content(&folder.join(devices))?
                && text.lines().any(|line| !line.starts_with("default"))
            {
                before.insert(devices.to_owned(), text);
                // Those disks have another weight until one is written.
                last = None;
            }
            slots.push(Some(Slot { kept, last }));
        }
        if slots.iter().all(Option::is_none) && !self.attributes.iter().any(|a| a.root.join(&*path).is_dir()) {
            return Err(KernelError::Gone(group.path.clone()));
        }
        self.entries.insert(id, Entry { group: path, slots: slots.into() });
        Ok(Before(before))
    }

    pub(crate) fn apply(&mut self, id: GroupId, levels: &Levels, changes: &mut Vec<Change>) -> Result<(), KernelError> {
        let entry = self.entries.get_mut(&id).ok_or(KernelError::Unknown(id))?;
        if self.budget.pressed() {
            entry.slots.iter_mut().flatten().for_each(|slot| slot.kept.release());
        }
        let mut first = None;
        for (i, attribute) in self.attributes.iter().enumerate() {
            let (Some(value), Some(slot)) = ((attribute.scale)(levels), &mut entry.slots[i]) else { continue };
            if slot.last == Some(value) {
                continue;
            }
            self.text.clear();
            // A string takes all.
            let _ = writeln!(self.text, "{value}");
            let error = match slot.kept.write(self.text.as_bytes()) {
                Ok(()) => {
                    slot.last = Some(value);
                    changes.push(Change { group: id, control: attribute.control, value });
                    continue;
                }
                Err(error) => error,
            };
            slot.last = None;
            let failure = if vanished(&error) {
                entry.slots[i] = None;
                lost(&attribute.root, roots(&self.attributes), &entry.group, attribute.control, attribute.name)
            } else if Errno::from_io_error(&error) == Some(Errno::INVAL) {
                // Every value is in range: the kernel takes none at all, as of a group with cpu.idle set.
                entry.slots[i] = None;
                let why = format!("the kernel does not take {value} for {}", attribute.name);
                KernelError::Withdrawn { control: attribute.control, group: entry.group.to_string(), why }
            } else {
                failed(&slot.kept.path(), error)
            };
            first.get_or_insert(failure);
        }
        first.map_or(Ok(()), Err)
    }

    pub(crate) fn dismiss(&mut self, id: GroupId) {
        self.entries.remove(&id);
    }

    pub(crate) fn restore(&mut self, group: &Group, before: &Before) -> Result<(), KernelError> {
        self.own.check(&group.path)?;
        // What is written from here on is not what was written last.
        for entry in self.entries.values_mut().filter(|e| *e.group == *group.path) {
            entry.slots.iter_mut().flatten().for_each(|slot| slot.last = None);
        }
        let mut first = None;
        for attribute in &self.attributes {
            let folder = attribute.root.join(&group.path);
            // The weight for all before those for single disks: it makes the kernel forget them.
            for name in [Some(attribute.name), attribute.devices].into_iter().flatten() {
                let Some(text) = before.0.get(name) else { continue };
                if let Err(error) = put_back(&folder.join(name), text) {
                    first.get_or_insert(error);
                }
            }
        }
        if let (None, Some(other)) = (&first, before.0.keys().find(|key| !self.knows(key))) {
            let what = group.path.clone();
            first = Some(KernelError::Content { what, found: other.clone(), expected: "a file that is written here" });
        }
        first.map_or(Ok(()), Err)
    }

    fn knows(&self, name: &str) -> bool {
        self.attributes.iter().any(|a| a.name == name || a.devices == Some(name))
    }
}

fn roots(attributes: &[Attribute]) -> impl Iterator<Item = &Path> {
    attributes.iter().map(|attribute| &*attribute.root)
}

/// The text of a file without the end of its last line. `None` if there is none.
fn content(path: &Path) -> Result<Option<String>, KernelError> {
    match fs::read_to_string(path) {
        Ok(mut text) => {
            text.truncate(text.trim_end().len());
            Ok(Some(text))
        }
        Err(error) if vanished(&error) => Ok(None),
        Err(error) => Err(failed(path, error)),
    }
}

/// The number that an attribute holds: alone, or on a first line `default N`. Nothing if single disks have
/// others, as those are not what was asked for.
fn standing(text: &str) -> Option<u64> {
    let mut lines = text.lines();
    let first = lines.next()?;
    let first = first.strip_prefix("default ").unwrap_or(first);
    lines.next().is_none().then(|| if first == "max" { Some(u64::MAX) } else { first.parse().ok() })?
}

/// From here on a number is how version 1 writes that there is no limit: the most pages there can be, of
/// up to 64 KiB.
const UNLIMITED: u64 = (1 << 63) - (1 << 16);

/// Writes a text into a file, each line by itself as the kernel wants it, unless that is what it says already.
fn put_back(path: &Path, text: &str) -> Result<(), KernelError> {
    if content(path)?.is_none_or(|now| now == text) {
        return Ok(());
    }
    let mut file = match OpenOptions::new().write(true).truncate(true).open(path) {
        Ok(file) => file,
        Err(error) if vanished(&error) => return Ok(()),
        Err(error) => return Err(failed(path, error)),
    };
    for line in text.lines() {
        let unlimited = line.parse::<u64>().is_ok_and(|v| v >= UNLIMITED);
        let line = if unlimited { "-1\n".to_owned() } else { format!("{line}\n") };
        match file.write_all(line.as_bytes()) {
            // A disk that was removed, or has another scheduler now, has no weight to put back.
            Err(error) if line.contains(':') && (vanished(&error) || not_supported(&error)) => {}
            Err(error) if vanished(&error) => return Ok(()),
            Err(error) => return Err(failed(path, error)),
            Ok(()) => {}
        }
    }
    Ok(())
}

fn not_supported(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::OPNOTSUPP)
}

/// Bytes as the kernel keeps them: whole pages.
pub(crate) fn whole_pages(bytes: u64) -> u64 {
    let page = rustix::param::page_size() as u64;
    bytes / page * page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_a_file() {
        for (text, number) in [
            ("100", Some(100)),
            ("default 100", Some(100)),
            ("max", Some(u64::MAX)),
            ("default 100\n8:0 300", None),
            ("", None),
            ("default", None),
        ] {
            assert_eq!(standing(text), number, "{text:?}");
        }
    }

    #[test]
    fn pages_are_whole() {
        let page = rustix::param::page_size() as u64;
        assert_eq!((whole_pages(page - 1), whole_pages(2 * page), whole_pages(3 * page - 1)), (0, 2 * page, 2 * page));
    }
}
