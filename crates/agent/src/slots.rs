//! Who has been taken in: each guest has a number by which its meter and enforcer know it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::discovery::Guest;
use evenhand_enforcers::cgroups::{Before, Change, Enforcer, GroupId, KernelError, Meter};

use crate::journal::{Entry, Journal, JournalError};
use crate::loads::{Load, Loads};
use crate::round::Facts;

/// A guest that was taken in.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) id: GroupId,
    pub(crate) guest: Arc<Guest>,
    /// What it had before the first write; `None` if it cannot be weighed.
    pub(crate) before: Option<Before>,
    /// What it uses.
    pub(crate) load: Load,
    /// What was written last, by `Control::ALL`.
    pub(crate) written: [Option<u64>; 4],
}

impl Slot {
    pub(crate) fn facts(&self) -> Facts {
        Facts {
            path: self.guest.group.path.clone(),
            identity: self.guest.identity,
            owner: self.guest.owner.clone(),
            sizes: [self.guest.processors, self.memory(), None, None],
        }
    }

    /// Bytes of memory it was sized for, if anybody said.
    pub(crate) fn memory(&self) -> Option<f64> {
        self.guest.memory_bytes.map(|bytes| bytes as f64)
    }
}

/// All of them, by the path of the group.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    by_path: BTreeMap<String, Slot>,
    paths: BTreeMap<GroupId, String>,
    free: Vec<u32>,
}

/// Those who do the work.
pub(crate) struct Hands<'a> {
    pub(crate) meter: &'a mut dyn Meter,
    pub(crate) enforcer: &'a mut dyn Enforcer,
    pub(crate) loads: &'a mut Loads,
    /// `None` where nothing is written.
    pub(crate) journal: Option<&'a Journal>,
}

impl Slots {
    /// By path.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &Slot> {
        self.by_path.values()
    }

    /// By path.
    pub(crate) fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = &mut Slot> {
        self.by_path.values_mut()
    }

    /// Who has this number.
    pub(crate) fn guest_of(&self, id: GroupId) -> Option<&Guest> {
        Some(&self.by_path.get(self.paths.get(&id)?)?.guest)
    }

    /// Keeps what was written.
    pub(crate) fn note(&mut self, change: &Change) {
        let slot = self.paths.get(&change.group).and_then(|path| self.by_path.get_mut(path));
        if let Some(slot) = slot {
            slot.written[change.control as usize] = Some(change.value);
        }
    }

    /// Makes those who are here now those who were taken in. Who comes and has an entry in the journal, of the same
    /// identity, had before what that says; of everybody else who comes it is written down, all at once, before anything is
    /// written to them.
    ///
    /// Answers whether anybody came, went, or is of another owner or size. Who cannot be read or weighed is said.
    pub(crate) fn become_those(
        &mut self,
        guests: &[Arc<Guest>],
        kept: &mut BTreeMap<String, Entry>,
        hands: &mut Hands<'_>,
        remarks: &mut Vec<String>,
    ) -> Result<bool, JournalError> {
        let here: BTreeMap<&str, &Arc<Guest>> = guests.iter().map(|guest| (guest.group.path.as_str(), guest)).collect();
        let same = |slot: &Slot| here.get(slot.guest.group.path.as_str()).is_some_and(|guest| **guest == slot.guest);
        // A group with another unit or device is another way of writing: taken in anew.
        let gone: Vec<String> =
            self.by_path.values().filter(|slot| !same(slot)).map(|s| s.guest.group.path.clone()).collect();
        let mut changed = !gone.is_empty();
        let mut ended = Vec::new();
        for path in gone {
            let Some(slot) = self.remove(&path, hands) else { continue };
            let stays = here.get(path.as_str()).is_some_and(|guest| guest.identity == slot.guest.identity);
            match slot.before {
                // Only its owner, size or unit is another: what it had before is still that.
                Some(before) if stays => {
                    let (group, identity) = (slot.guest.group.clone(), slot.guest.identity);
                    kept.insert(path, Entry { group, identity, before });
                }
                _ => ended.push(path),
            }
        }
        let mut entries = Vec::new();
        for guest in guests {
            let path = &guest.group.path;
            if self.by_path.contains_key(path) {
                continue;
            }
            let id = GroupId(self.free.pop().unwrap_or(self.by_path.len() as u32));
            match hands.meter.admit(id, &guest.group) {
                Ok(()) => {}
                Err(error) => {
                    self.free.push(id.0);
                    hands.meter.dismiss(id);
                    said(remarks, &error);
                    continue;
                }
            }
            let before = match hands.enforcer.admit(id, &guest.group) {
                Ok(now) => {
                    let entry = kept.remove(path).filter(|entry| entry.identity == guest.identity);
                    let before = entry.map_or(now, |entry| entry.before);
                    entries.push(Entry {
                        group: guest.group.clone(),
                        identity: guest.identity,
                        before: before.clone(),
                    });
                    Some(before)
                }
                Err(error) => {
                    said(remarks, &error);
                    None
                }
            };
            let slot = Slot { id, guest: Arc::clone(guest), before, load: [0.0; 4], written: [None; 4] };
            self.paths.insert(id, path.clone());
            self.by_path.insert(path.clone(), slot);
            changed = true;
        }
        if let Some(journal) = hands.journal {
            journal.put(&entries)?;
            journal.forget(ended.iter().map(String::as_str).filter(|path| !self.by_path.contains_key(*path)))?;
        }
        Ok(changed)
    }

    /// Tries again to weigh those who could not be weighed when they came, as when systemd did not answer. Who still
    /// cannot is said again.
    pub(crate) fn weigh_late(&mut self, hands: &mut Hands<'_>, remarks: &mut Vec<String>) -> Result<(), JournalError> {
        for slot in self.by_path.values_mut().filter(|slot| slot.before.is_none()) {
            match hands.enforcer.admit(slot.id, &slot.guest.group) {
                Ok(before) => {
                    if let Some(journal) = hands.journal {
                        let (group, identity) = (slot.guest.group.clone(), slot.guest.identity);
                        journal.put(&[Entry { group, identity, before: before.clone() }])?;
                    }
                    slot.before = Some(before);
                }
                Err(error) => said(remarks, &error),
            }
        }
        Ok(())
    }

    /// Lets go of a guest.
    pub(crate) fn remove(&mut self, path: &str, hands: &mut Hands<'_>) -> Option<Slot> {
        let slot = self.by_path.remove(path)?;
        self.paths.remove(&slot.id);
        self.free.push(slot.id.0);
        hands.meter.dismiss(slot.id);
        hands.enforcer.dismiss(slot.id);
        hands.loads.forget(slot.id);
        Some(slot)
    }
}

/// Who is gone is no news.
pub(crate) fn said(remarks: &mut Vec<String>, error: &KernelError) {
    if !matches!(error, KernelError::Gone(_)) {
        remarks.push(error.to_string());
    }
}
