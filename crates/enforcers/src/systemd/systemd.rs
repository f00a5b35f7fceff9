//! The enforcer.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use crate::cgroups::{
    Before, Change, Control, DiskWeight, Enforcer, Group, GroupId, KernelError, Levels, Own, Protection,
};

use crate::systemd::bus::{Fault, Values, Write};
use crate::systemd::unit::{self, Property};
use crate::systemd::worker::Worker;

/// How systemd is spoken to, and what of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The bus, as a D-Bus address. Not given: the system's.
    pub address: Option<String>,
    /// By what the kernel weighs disks, which decides how `IOWeight` has to be said.
    pub disk: DiskWeight,
    /// How memory is protected: by `MemoryLow` or `MemoryMin`. Not given: not at all.
    pub memory: Option<Protection>,
    /// How long an answer may take.
    pub patience: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { address: None, disk: DiskWeight::Cost, memory: None, patience: Duration::from_secs(5) }
    }
}

/// Weighs units of systemd's by asking systemd. See the [crate's text](crate).
#[derive(Debug)]
pub struct SystemdDbus {
    worker: Worker,
    own: Own,
    properties: Vec<Property>,
    controls: Vec<Control>,
    members: HashMap<GroupId, Member>,
    /// Whose values are to be sent, in the order in which levels were given.
    pending: Vec<GroupId>,
}

#[derive(Debug)]
struct Member {
    unit: String,
    path: String,
    /// One for each of the enforcer's properties.
    values: Vec<Held>,
    pending: bool,
    /// Whether systemd said that there is no such unit.
    gone: bool,
}

/// One property of one unit.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    /// Whether this systemd has it.
    known: bool,
    wanted: Option<u64>,
    /// What systemd was last told, and confirmed.
    written: Option<u64>,
}

impl Held {
    fn due(&self) -> Option<u64> {
        self.wanted.filter(|_| self.known && self.wanted != self.written)
    }
}

impl SystemdDbus {
    /// Begins, for all units but those in which this process runs. The connection is made when it is first needed,
    /// and made again if it is lost.
    ///
    /// # Errors
    /// If no thread can be had.
    pub fn new(settings: Settings, own: Own) -> Result<SystemdDbus, KernelError> {
        let what = || "starting the thread that speaks to systemd".to_owned();
        let worker = Worker::start(settings.address, settings.patience)
            .map_err(|source| KernelError::Io { what: what(), source })?;
        let properties = Property::all(settings.disk, settings.memory);
        let controls = properties.iter().map(|property| property.control()).collect();
        Ok(SystemdDbus { worker, own, properties, controls, members: HashMap::new(), pending: Vec::new() })
    }

    /// Whether systemd answers; asks nothing that changes anything.
    ///
    /// # Errors
    /// Why it does not.
    pub fn check(&self) -> Result<(), KernelError> {
        self.worker.reloaded().map(drop).map_err(|fault| of(fault, Control::Cpu, "systemd"))
    }

    fn read(&self, unit: &str) -> Result<Values, KernelError> {
        let names = self.properties.iter().map(|property| property.name()).collect();
        self.worker.read(unit, unit::interface(unit)?, names).map_err(|fault| of(fault, Control::Cpu, unit))
    }
}

impl Enforcer for SystemdDbus {
    fn name(&self) -> &'static str {
        "systemd"
    }

    fn controls(&self) -> &[Control] {
        &self.controls
    }

    fn admit(&mut self, id: GroupId, group: &Group) -> Result<Before, KernelError> {
        self.dismiss(id);
        self.own.check(&group.path)?;
        let Some(unit) = &group.unit else {
            let why = "it is no unit of systemd's".into();
            return Err(KernelError::Withdrawn { control: Control::Cpu, group: group.path.clone(), why });
        };
        let found = self.read(unit)?;
        let (mut values, mut before) = (Vec::new(), Before::default());
        for property in &self.properties {
            let value = found.iter().find(|(name, _)| *name == property.name()).map(|(_, value)| *value);
            values.push(Held { known: value.is_some(), ..Held::default() });
            if let Some(value) = value {
                before.0.insert(property.name().into(), property.to_text(value));
            }
        }
        let (unit, path) = (unit.clone(), group.path.clone());
        self.members.insert(id, Member { unit, path, values, pending: false, gone: false });
        Ok(before)
    }

    fn apply(&mut self, id: GroupId, levels: &Levels, changes: &mut Vec<Change>) -> Result<(), KernelError> {
        let member = self.members.get_mut(&id).ok_or(KernelError::Unknown(id))?;
        if member.gone {
            return Err(KernelError::Gone(member.path.clone()));
        }
        let mut due = false;
        for (property, held) in self.properties.iter().zip(&mut member.values) {
            let Some(value) = property.value(levels).filter(|_| held.known) else { continue };
            let told = held.wanted == Some(value) && (member.pending || held.written == Some(value));
            held.wanted = Some(value);
            if !told {
                changes.push(Change { group: id, control: property.control(), value });
                due = true;
            }
        }
        if due && !member.pending {
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
        if self.members.is_empty() {
            return Ok(());
        }
        if self.worker.reloaded().map_err(|fault| of(fault, Control::Cpu, "systemd"))? {
            // A file of the administrator's outranks what was set by a call, once systemd reads files anew
            // (its issue 16592).
            ids = self.members.keys().copied().collect();
            ids.sort_unstable();
            for held in self.members.values_mut().flat_map(|member| &mut member.values) {
                held.written = None;
            }
        }
        let (mut writes, mut sent) = (Vec::new(), Vec::new());
        for id in ids {
            let Some(member) = self.members.get(&id).filter(|member| !member.gone) else { continue };
            let pairs = self.properties.iter().zip(&member.values);
            let values: Values = pairs.filter_map(|(p, held)| held.due().map(|value| (p.name(), value))).collect();
            if !values.is_empty() {
                writes.push(Write { unit: member.unit.clone(), values });
                sent.push(id);
            }
        }
        if writes.is_empty() {
            return Ok(());
        }
        let results = self.worker.set(writes).map_err(|fault| of(fault, Control::Cpu, "systemd"))?;
        let mut trouble = None;
        for (id, result) in sent.into_iter().zip(results) {
            let Some(member) = self.members.get_mut(&id) else { continue };
            match result {
                Ok(()) => {
                    member.values.iter_mut().filter(|held| held.known).for_each(|held| held.written = held.wanted)
                }
                Err(fault) => {
                    member.gone = fault == Fault::Gone;
                    let first = self.properties.iter().zip(&member.values).find(|(_, held)| held.due().is_some());
                    let control = first.map_or(Control::Cpu, |(property, _)| property.control());
                    trouble.get_or_insert(of(fault, control, &member.path));
                }
            }
        }
        trouble.map_or(Ok(()), Err)
    }

    fn dismiss(&mut self, id: GroupId) {
        if self.members.remove(&id).is_some_and(|member| member.pending) {
            self.pending.retain(|pending| *pending != id);
        }
    }

    fn restore(&mut self, group: &Group, before: &Before) -> Result<(), KernelError> {
        let Some(unit) = &group.unit else { return Ok(()) };
        for member in self.members.values_mut().filter(|member| member.unit == *unit) {
            for held in &mut member.values {
                (held.wanted, held.written) = (None, None);
            }
        }
        let found = match self.read(unit) {
            Err(KernelError::Gone(_)) => return Ok(()),
            other => other?,
        };
        let (mut values, mut trouble) = (Vec::new(), None);
        // Also a way of protecting memory that is no longer the configured one.
        let memory = [Protection::Low, Protection::Min].map(Property::Memory);
        let disk = Property::Disk(DiskWeight::Cost);
        for property in [Property::Cpu, disk].into_iter().chain(memory) {
            let Some(text) = before.0.get(property.name()) else { continue };
            match property.parse(text) {
                // What is so already needs no file of systemd's that says so.
                Ok(value) if !found.contains(&(property.name(), value)) => values.push((property.name(), value)),
                Ok(_) => {}
                Err(error) => drop(trouble.get_or_insert(error)),
            }
        }
        if !values.is_empty() {
            let results = self.worker.set(vec![Write { unit: unit.clone(), values }]);
            match results.and_then(|results| results.into_iter().next().unwrap_or(Ok(()))) {
                Ok(()) | Err(Fault::Gone) => {}
                Err(fault) => return Err(of(fault, Control::Cpu, &group.path)),
            }
        }
        trouble.map_or(Ok(()), Err)
    }
}

/// In the words that all enforcers share.
fn of(fault: Fault, control: Control, group: &str) -> KernelError {
    let (group, what) = (group.to_owned(), "asking systemd".to_owned());
    match fault {
        Fault::Gone => KernelError::Gone(group),
        Fault::Unknown => KernelError::Withdrawn { control, group, why: "this systemd has no such property".into() },
        Fault::Refused(why) => KernelError::Withdrawn { control, group, why },
        Fault::Failed(why) => KernelError::Io { what, source: io::Error::other(why) },
        Fault::Lost(why) => KernelError::Io { what, source: io::Error::new(io::ErrorKind::NotConnected, why) },
    }
}
