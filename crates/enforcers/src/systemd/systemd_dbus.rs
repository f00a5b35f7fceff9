//! The enforcer for units of systemd.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use crate::cgroups::{
    Change, DiskWeight, Enforcer, Group, GroupId, KernelError, ProtectedCgroups, Protection, Resource, SavedState,
    Targets,
};

use crate::systemd::bus::{BusError, Values, Write};
use crate::systemd::unit::{self, Property};
use crate::systemd::worker::Worker;

/// How systemd is reached, and which mechanisms its properties control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The D-Bus address of the bus; `None`: the system bus.
    pub address: Option<String>,
    /// The mechanism that divides disks, on which the scale of `IOWeight` depends.
    pub disk: DiskWeight,
    /// The property that protects memory, `MemoryLow` or `MemoryMin`; `None`: memory is not changed.
    pub memory: Option<Protection>,
    /// The maximum time to wait for an answer.
    pub timeout: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { address: None, disk: DiskWeight::Cost, memory: None, timeout: Duration::from_secs(3) }
    }
}

/// Divides resources among units by calling systemd. See the [module's documentation](crate::systemd).
#[derive(Debug)]
pub struct SystemdDbus {
    worker: Worker,
    protected: ProtectedCgroups,
    is_dry_run: bool,
    properties: Vec<Property>,
    resources: Vec<Resource>,
    members: HashMap<GroupId, Member>,
    /// The members whose values are to be sent, in the order in which they changed.
    pending: Vec<GroupId>,
}

#[derive(Debug)]
struct Member {
    unit: String,
    path: String,
    /// One value for each of the enforcer's properties.
    values: Vec<PropertyValue>,
    pending: bool,
    /// Whether systemd reported that there is no such unit.
    gone: bool,
}

/// One property of one unit.
#[derive(Clone, Copy, Debug, Default)]
struct PropertyValue {
    /// Whether this systemd has the property.
    known: bool,
    wanted: Option<u64>,
    /// The value that systemd last confirmed.
    written: Option<u64>,
}

impl PropertyValue {
    fn pending(&self) -> Option<u64> {
        self.wanted.filter(|_| self.known && self.wanted != self.written)
    }
}

impl SystemdDbus {
    /// Creates an enforcer for all units but those in which this process runs. It connects when the connection is
    /// first needed, and again if it is lost.
    ///
    /// # Errors
    /// Returns an error if no thread can be started.
    pub fn new(settings: Settings, protected: ProtectedCgroups) -> Result<SystemdDbus, KernelError> {
        let what = || "starting the thread that calls systemd".to_owned();
        let worker = Worker::start(settings.address, settings.timeout)
            .map_err(|source| KernelError::Io { what: what(), source })?;
        let properties = Property::all(settings.disk, settings.memory);
        let resources = properties.iter().map(|property| property.resource()).collect();
        let (members, pending) = (HashMap::new(), Vec::new());
        Ok(SystemdDbus { worker, protected, is_dry_run: false, properties, resources, members, pending })
    }

    /// Reports from now on what it would set, and sets nothing.
    #[must_use]
    pub fn dry_run(mut self) -> SystemdDbus {
        self.is_dry_run = true;
        self
    }

    /// Checks that systemd answers, without changing anything.
    ///
    /// # Errors
    /// Returns the reason if it does not answer.
    pub fn check(&self) -> Result<(), KernelError> {
        self.worker.reloaded().map(drop).map_err(|error| to_kernel_error(error, Resource::Cpu, "systemd"))
    }

    fn read(&self, unit: &str) -> Result<Values, KernelError> {
        let names = self.properties.iter().map(|property| property.name()).collect();
        self.worker
            .read(unit, unit::interface(unit)?, names)
            .map_err(|error| to_kernel_error(error, Resource::Cpu, unit))
    }
}

impl Enforcer for SystemdDbus {
    fn name(&self) -> &'static str {
        "systemd"
    }

    fn resources(&self) -> &[Resource] {
        &self.resources
    }

    fn admit(&mut self, id: GroupId, group: &Group) -> Result<SavedState, KernelError> {
        self.dismiss(id);
        self.protected.check(&group.path)?;
        let Some(unit) = &group.unit else {
            let why = "it is not a unit of systemd".into();
            return Err(KernelError::Withdrawn { resource: Resource::Cpu, group: group.path.clone(), why });
        };
        let found = self.read(unit)?;
        let (mut values, mut saved) = (Vec::new(), SavedState::default());
        for property in &self.properties {
            let value = found.iter().find(|(name, _)| *name == property.name()).map(|(_, value)| *value);
            values.push(PropertyValue { known: value.is_some(), ..PropertyValue::default() });
            if let Some(value) = value {
                saved.0.insert(property.name().into(), property.to_text(value));
            }
        }
        let (unit, path) = (unit.clone(), group.path.clone());
        self.members.insert(id, Member { unit, path, values, pending: false, gone: false });
        Ok(saved)
    }

    fn apply(&mut self, id: GroupId, targets: &Targets, changes: &mut Vec<Change>) -> Result<(), KernelError> {
        let member = self.members.get_mut(&id).ok_or(KernelError::NotAdmitted(id))?;
        if member.gone {
            return Err(KernelError::Gone(member.path.clone()));
        }
        let mut changed = false;
        for (property, current) in self.properties.iter().zip(&mut member.values) {
            let Some(value) = property.value(targets).filter(|_| current.known) else { continue };
            let sent = current.wanted == Some(value) && (member.pending || current.written == Some(value));
            current.wanted = Some(value);
            if !sent {
                changes.push(Change { group: id, resource: property.resource(), value });
                changed = true;
            }
        }
        if changed && !member.pending {
            member.pending = true;
            self.pending.push(id);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), KernelError> {
        let mut ids = std::mem::take(&mut self.pending);
        for id in &ids {
            if let Some(member) = self.members.get_mut(id) {
                member.pending = false;
            }
        }
        if self.is_dry_run {
            // As if systemd had confirmed all of them.
            for id in ids {
                let values = self.members.get_mut(&id).map(|member| &mut member.values);
                values.into_iter().flatten().filter(|value| value.known).for_each(|value| value.written = value.wanted);
            }
            return Ok(());
        }
        if self.members.is_empty() {
            return Ok(());
        }
        if self.worker.reloaded().map_err(|error| to_kernel_error(error, Resource::Cpu, "systemd"))? {
            // When systemd reloads, an administrator's file overrides what was set by a call (systemd issue 16592).
            ids = self.members.keys().copied().collect();
            ids.sort_unstable();
            for value in self.members.values_mut().flat_map(|member| &mut member.values) {
                value.written = None;
            }
        }
        let (mut writes, mut sent) = (Vec::new(), Vec::new());
        for id in ids {
            let Some(member) = self.members.get(&id).filter(|member| !member.gone) else { continue };
            let pairs = self.properties.iter().zip(&member.values);
            let values: Values = pairs.filter_map(|(p, value)| value.pending().map(|v| (p.name(), v))).collect();
            if !values.is_empty() {
                writes.push(Write { unit: member.unit.clone(), values });
                sent.push(id);
            }
        }
        if writes.is_empty() {
            return Ok(());
        }
        let results = self.worker.set(writes).map_err(|error| to_kernel_error(error, Resource::Cpu, "systemd"))?;
        let mut first_error = None;
        for (id, result) in sent.into_iter().zip(results) {
            let Some(member) = self.members.get_mut(&id) else { continue };
            match result {
                Ok(()) => member.values.iter_mut().filter(|v| v.known).for_each(|v| v.written = v.wanted),
                Err(error) => {
                    member.gone = error == BusError::Gone;
                    let first = self.properties.iter().zip(&member.values).find(|(_, value)| value.pending().is_some());
                    let resource = first.map_or(Resource::Cpu, |(property, _)| property.resource());
                    first_error.get_or_insert(to_kernel_error(error, resource, &member.path));
                }
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    fn dismiss(&mut self, id: GroupId) {
        if self.members.remove(&id).is_some_and(|member| member.pending) {
            self.pending.retain(|pending| *pending != id);
        }
    }

    fn restore(&mut self, group: &Group, saved: &SavedState) -> Result<(), KernelError> {
        let Some(unit) = group.unit.as_ref().filter(|_| !self.is_dry_run) else { return Ok(()) };
        for member in self.members.values_mut().filter(|member| member.unit == *unit) {
            for value in &mut member.values {
                (value.wanted, value.written) = (None, None);
            }
        }
        let found = match self.read(unit) {
            Err(KernelError::Gone(_)) => return Ok(()),
            other => other?,
        };
        let (mut values, mut first_error) = (Vec::new(), None);
        // Includes both ways to protect memory, because the configuration may have changed since.
        let memory = [Protection::Low, Protection::Min].map(Property::Memory);
        let disk = Property::Disk(DiskWeight::Cost);
        for property in [Property::Cpu, disk].into_iter().chain(memory) {
            let Some(text) = saved.0.get(property.name()) else { continue };
            match property.parse(text) {
                // A value that is already set needs no file of systemd's that records it.
                Ok(value) if !found.contains(&(property.name(), value)) => values.push((property.name(), value)),
                Ok(_) => {}
                Err(error) => drop(first_error.get_or_insert(error)),
            }
        }
        if !values.is_empty() {
            let results = self.worker.set(vec![Write { unit: unit.clone(), values }]);
            match results.and_then(|results| results.into_iter().next().unwrap_or(Ok(()))) {
                Ok(()) | Err(BusError::Gone) => {}
                Err(error) => return Err(to_kernel_error(error, Resource::Cpu, &group.path)),
            }
        }
        first_error.map_or(Ok(()), Err)
    }
}

/// Converts a bus error into the error type that all enforcers share.
fn to_kernel_error(error: BusError, resource: Resource, group: &str) -> KernelError {
    let (group, what) = (group.to_owned(), "calling systemd".to_owned());
    match error {
        BusError::Gone => KernelError::Gone(group),
        BusError::Unknown => {
            KernelError::Withdrawn { resource, group, why: "this systemd has no such property".into() }
        }
        BusError::Refused(why) => KernelError::Withdrawn { resource, group, why },
        BusError::Failed(why) => KernelError::Io { what, source: io::Error::other(why) },
        BusError::Lost(why) => KernelError::Io { what, source: io::Error::new(io::ErrorKind::NotConnected, why) },
    }
}
