//! The meter: byte counters of devices and classes, read for all groups at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::cgroups::{Group, GroupId, KernelError, Meter, Usage};

use crate::traffic::enforcer::SharedClasses;
use crate::traffic::htb::{self, Class};
use crate::traffic::socket::Socket;
use crate::traffic::{TrafficError, link};

/// The maximum age of a dump that is used.
const MAXIMUM_AGE: Duration = Duration::from_millis(250);

/// Counts the bytes of groups on the network: those received and sent by the devices that carry a group's traffic, or
/// those sent by its class if it has no device. Groups with neither have no count.
///
/// The kernel dumps the counters of all devices, or of all classes, at once. Each dump serves each group once:
/// reading all groups in turn takes one dump, reading one group twice takes two.
#[derive(Debug)]
pub struct TrafficMeter {
    socket: Socket,
    shared: Option<Arc<Mutex<SharedClasses>>>,
    groups: HashMap<GroupId, MeteredGroup>,
    devices: Vec<(u32, u64)>,
    classes: Vec<Class>,
    dumped_at: Option<Instant>,
    dump: u64,
}

#[derive(Debug)]
struct MeteredGroup {
    path: String,
    devices: Vec<u32>,
    /// The dump that was used last.
    last_dump: u64,
}

impl TrafficMeter {
    /// Creates a meter that counts devices only, for machines on which the network is not divided.
    ///
    /// # Errors
    /// Returns an error if no socket can be opened.
    pub fn of_devices() -> Result<TrafficMeter, TrafficError> {
        TrafficMeter::of(None)
    }

    pub(crate) fn of(shared: Option<Arc<Mutex<SharedClasses>>>) -> Result<TrafficMeter, TrafficError> {
        Ok(TrafficMeter {
            socket: Socket::route()?,
            shared,
            groups: HashMap::new(),
            devices: Vec::new(),
            classes: Vec::new(),
            dumped_at: None,
            dump: 0,
        })
    }

    fn refresh(&mut self) -> Result<(), TrafficError> {
        self.dump += 1;
        self.dumped_at = Some(Instant::now());
        if self.groups.values().any(|group| !group.devices.is_empty()) {
            link::counters(&mut self.socket, &mut self.devices)?;
        }
        self.classes.clear();
        if let Some(shared) = &self.shared {
            let device = {
                let shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
                (!shared.classes.is_empty()).then_some(shared.device)
            };
            if let Some(device) = device {
                htb::classes(&mut self.socket, device, &mut self.classes)?;
            }
        }
        Ok(())
    }

    fn class(&self, id: GroupId) -> Option<u64> {
        let minor = *self.shared.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).classes.get(&id)?;
        let at = self.classes.binary_search_by_key(&minor, |class| class.minor).ok()?;
        Some(self.classes[at].sent)
    }
}

impl Meter for TrafficMeter {
    fn admit(&mut self, id: GroupId, group: &Group) -> Result<(), KernelError> {
        let index = |device| {
            link::index(&mut self.socket, device).map_err(|error| match error {
                TrafficError::NoDevice(name) => KernelError::Gone(name),
                other => other.into_kernel_error(&group.path),
            })
        };
        let devices = group.devices.iter().map(|name| name.as_str()).map(index).collect::<Result<_, _>>()?;
        self.groups.insert(id, MeteredGroup { path: group.path.clone(), devices, last_dump: self.dump });
        Ok(())
    }

    fn read(&mut self, id: GroupId) -> Result<Usage, KernelError> {
        let group = self.groups.get(&id).ok_or(KernelError::NotAdmitted(id))?;
        if group.last_dump == self.dump || self.dumped_at.is_none_or(|at| at.elapsed() > MAXIMUM_AGE) {
            let path = group.path.clone();
            self.refresh().map_err(|error| error.into_kernel_error(&path))?;
        }
        let class = self.class(id);
        let group = self.groups.get_mut(&id).ok_or(KernelError::NotAdmitted(id))?;
        group.last_dump = self.dump;
        if group.devices.is_empty() {
            return Ok(Usage { network: class, ..Usage::default() });
        }
        let mut sum = 0_u64;
        for index in &group.devices {
            let found = self.devices.binary_search_by_key(index, |(i, _)| *i);
            let at = found.map_err(|_| KernelError::Gone(group.path.clone()))?;
            sum = sum.wrapping_add(self.devices[at].1);
        }
        Ok(Usage { network: Some(sum), ..Usage::default() })
    }

    fn dismiss(&mut self, id: GroupId) {
        self.groups.remove(&id);
    }
}
