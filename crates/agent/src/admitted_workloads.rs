//! The workloads that were admitted to the meter and the enforcer, each with the number by which these know it.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenhand_enforcers::cgroups::{Change, Enforcer, GroupId, KernelError, Meter, PerResource, SavedState};

use crate::agent::Identity;
use crate::discovery::RunningWorkload;
use crate::fairness_round::WorkloadInfo;
use crate::journal::{Entry, Journal, JournalError};
use crate::load_tracker::{Load, LoadTracker};

/// An admitted workload.
#[derive(Debug)]
pub(crate) struct AdmittedWorkload {
    pub(crate) id: GroupId,
    pub(crate) workload: Arc<RunningWorkload>,
    /// The settings of its group before the first write; `None` if it cannot be given weights.
    pub(crate) saved: Option<SavedState>,
    pub(crate) load: Load,
    /// The values written last, on the kernel's scales.
    pub(crate) written: PerResource<Option<u64>>,
}

impl AdmittedWorkload {
    pub(crate) fn info(&self) -> WorkloadInfo {
        WorkloadInfo {
            path: self.workload.group.path.clone(),
            identity: self.workload.identity,
            owner: self.workload.owner.clone(),
            sizes: PerResource { cpu: self.workload.processors, memory: self.memory(), ..PerResource::default() },
        }
    }

    /// Returns the bytes of memory for which it was sized, if known.
    pub(crate) fn memory(&self) -> Option<f64> {
        self.workload.memory_bytes.map(|bytes| bytes as f64)
    }

    /// Returns what is to be restored; `None` if nothing was changed.
    pub(crate) fn entry(&self) -> Option<Entry> {
        self.saved.as_ref().map(|saved| self.entry_with(saved.clone()))
    }

    fn entry_with(&self, saved: SavedState) -> Entry {
        Entry { group: self.workload.group.clone(), identity: self.workload.identity, saved }
    }

    /// Returns what is to be restored; `None` if nothing was changed.
    pub(crate) fn into_entry(mut self) -> Option<Entry> {
        self.saved.take().map(|saved| self.entry_with(saved))
    }
}

/// All admitted workloads, by the paths of their groups.
#[derive(Debug, Default)]
pub(crate) struct AdmittedWorkloads {
    by_path: BTreeMap<String, AdmittedWorkload>,
    paths: BTreeMap<GroupId, String>,
    free: Vec<u32>,
}

/// The interfaces through which workloads are measured and changed.
pub(crate) struct MachineAccess<'a> {
    pub(crate) meter: &'a mut dyn Meter,
    pub(crate) enforcer: &'a mut dyn Enforcer,
    pub(crate) loads: &'a mut LoadTracker,
    /// `None` if nothing is written to the machine.
    pub(crate) journal: Option<&'a Journal>,
    pub(crate) identity: &'a Identity,
}

impl AdmittedWorkloads {
    /// Iterates in the order of paths.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &AdmittedWorkload> {
        self.by_path.values()
    }

    /// Iterates in the order of paths.
    pub(crate) fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = &mut AdmittedWorkload> {
        self.by_path.values_mut()
    }

    /// Returns the workload with this number.
    pub(crate) fn get(&self, id: GroupId) -> Option<&RunningWorkload> {
        Some(&self.by_path.get(self.paths.get(&id)?)?.workload)
    }

    /// Records a written value.
    pub(crate) fn record(&mut self, change: &Change) {
        let admitted = self.paths.get(&change.group).and_then(|path| self.by_path.get_mut(path));
        if let Some(admitted) = admitted {
            admitted.written[change.resource] = Some(change.value);
        }
    }

    /// Admits the workloads that are new and removes those that ended. For a new workload with an entry of the same identity
    /// in `previous`, the settings of that entry are the saved ones; for all others the present settings are written to the
    /// journal, in one transaction, before any of their groups is changed. What a removed workload's group had before goes to
    /// `previous` as long as the group exists.
    ///
    /// Returns whether a workload was added or removed, or has another owner or size. Errors of single workloads are
    /// appended to `warnings`.
    pub(crate) fn replace(
        &mut self,
        workloads: &[Arc<RunningWorkload>],
        previous: &mut BTreeMap<String, Entry>,
        access: &mut MachineAccess<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<bool, JournalError> {
        let present: BTreeMap<&str, &Arc<RunningWorkload>> =
            workloads.iter().map(|workload| (workload.group.path.as_str(), workload)).collect();
        let is_same = |admitted: &AdmittedWorkload| {
            present.get(admitted.workload.group.path.as_str()).is_some_and(|workload| **workload == admitted.workload)
        };
        // A group with another unit or device is written in another way: it is admitted again.
        let gone: Vec<String> =
            self.by_path.values().filter(|a| !is_same(a)).map(|a| a.workload.group.path.clone()).collect();
        let mut changed = !gone.is_empty();
        let mut ended = Vec::new();
        for path in gone {
            let Some(admitted) = self.remove(&path, access) else { continue };
            let identity = admitted.workload.identity;
            let is_listed = present.get(path.as_str()).is_some_and(|workload| workload.identity == identity);
            // A group outlives its row in a table or in a file of owners, and keeps what was written until it is restored.
            let exists = is_listed || (access.identity)(&path) == Some(identity);
            match admitted.into_entry() {
                Some(entry) if exists => drop(previous.insert(path, entry)),
                // In other hierarchies the group may be there still.
                Some(entry) => match access.enforcer.restore_remains(&entry.group, &entry.saved) {
                    Err(error) if !present.contains_key(path.as_str()) => {
                        warn(warnings, &error);
                        // The next refresh tries again.
                        previous.insert(path, entry);
                    }
                    restored => {
                        restored.err().iter().for_each(|error| warn(warnings, error));
                        ended.push(path);
                    }
                },
                // What an earlier run changed is not restored yet.
                None if previous.contains_key(&path) => {}
                _ => ended.push(path),
            }
        }
        let mut entries = Vec::new();
        for workload in workloads {
            let path = &workload.group.path;
            if self.by_path.contains_key(path) {
                continue;
            }
            let id = GroupId(self.free.pop().unwrap_or(self.by_path.len() as u32));
            if let Err(error) = access.meter.admit(id, &workload.group) {
                self.free.push(id.0);
                access.meter.dismiss(id);
                warn(warnings, &error);
                continue;
            }
            let admitted = AdmittedWorkload {
                id,
                workload: Arc::clone(workload),
                saved: None,
                load: Load::default(),
                written: PerResource::default(),
            };
            restore_remains_of_other(previous, workload, access.enforcer, warnings);
            match access.enforcer.admit(id, &workload.group) {
                Ok(now) => entries.push(admitted.entry_with(before_all_writes(previous, workload, now))),
                Err(error) => warn(warnings, &error),
            }
            self.paths.insert(id, path.clone());
            self.by_path.insert(path.clone(), admitted);
            changed = true;
        }
        let stored = self.store(entries, previous, access);
        let ended = ended.iter().map(String::as_str).filter(|path| !self.by_path.contains_key(*path));
        let forgotten = access.journal.map_or(Ok(()), |journal| journal.forget(ended));
        stored.and(forgotten).map(|()| changed)
    }

    /// Writes the settings of groups to the journal, and only then takes them as the saved ones of their workloads, in place of
    /// those in `previous`. If they cannot be written, the workloads count as rejected by the enforcer.
    fn store(
        &mut self,
        entries: Vec<Entry>,
        previous: &mut BTreeMap<String, Entry>,
        access: &mut MachineAccess<'_>,
    ) -> Result<(), JournalError> {
        let stored = access.journal.map_or(Ok(()), |journal| journal.put(&entries));
        for entry in entries {
            let Some(admitted) = self.by_path.get_mut(&entry.group.path) else { continue };
            if stored.is_ok() {
                previous.remove(&entry.group.path);
                admitted.saved = Some(entry.saved);
            } else {
                access.enforcer.dismiss(admitted.id);
            }
        }
        stored
    }

    /// Admits the workloads that the enforcer rejected before, for example because systemd did not answer. Persisting
    /// errors are reported again. As in [`replace`](AdmittedWorkloads::replace), an entry in `previous` has the saved settings:
    /// the present ones may be those that an earlier run wrote.
    pub(crate) fn retry(
        &mut self,
        previous: &mut BTreeMap<String, Entry>,
        access: &mut MachineAccess<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<(), JournalError> {
        let mut entries = Vec::new();
        for admitted in self.by_path.values().filter(|admitted| admitted.saved.is_none()) {
            restore_remains_of_other(previous, &admitted.workload, access.enforcer, warnings);
            match access.enforcer.admit(admitted.id, &admitted.workload.group) {
                Ok(now) => entries.push(admitted.entry_with(before_all_writes(previous, &admitted.workload, now))),
                Err(error) => warn(warnings, &error),
            }
        }
        self.store(entries, previous, access)
    }

    /// Removes a workload.
    pub(crate) fn remove(&mut self, path: &str, access: &mut MachineAccess<'_>) -> Option<AdmittedWorkload> {
        let admitted = self.by_path.remove(path)?;
        self.paths.remove(&admitted.id);
        self.free.push(admitted.id.0);
        access.meter.dismiss(admitted.id);
        access.enforcer.dismiss(admitted.id);
        access.loads.forget(admitted.id);
        Some(admitted)
    }
}

/// Returns the settings of a workload's group before the first write of this run or an earlier one, which left an entry in
/// `previous`. What the earlier run did not divide, it did not change: of that the present settings count.
fn before_all_writes(previous: &BTreeMap<String, Entry>, workload: &RunningWorkload, now: SavedState) -> SavedState {
    match previous.get(&workload.group.path).filter(|entry| entry.identity == workload.identity) {
        Some(entry) => now.before(entry.saved.clone()),
        None => now,
    }
}

/// Restores what an earlier group of a workload's path left in other hierarchies, before the settings there are read as those of
/// the present group.
fn restore_remains_of_other(
    previous: &BTreeMap<String, Entry>,
    workload: &RunningWorkload,
    enforcer: &mut dyn Enforcer,
    warnings: &mut Vec<String>,
) {
    let earlier = previous.get(&workload.group.path).filter(|entry| entry.identity != workload.identity);
    if let Some(entry) = earlier
        && let Err(error) = enforcer.restore_remains(&entry.group, &entry.saved)
    {
        warn(warnings, &error);
    }
}

/// Appends a warning, unless the error is only that a workload ended.
pub(crate) fn warn(warnings: &mut Vec<String>, error: &KernelError) {
    if !matches!(error, KernelError::Gone(_)) {
        warnings.push(error.to_string());
    }
}
