//! The meter: bytes of devices and of classes, of all groups at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::cgroups::{Group, GroupId, KernelError, Meter, Usage};

use crate::traffic::htb::{self, Class};
use crate::traffic::socket::Socket;
use crate::traffic::traffic::Seen;
use crate::traffic::{TrafficError, link};

/// A dump that is older is not used, whoever asks.
const AGE: Duration = Duration::from_millis(250);

/// Counts bytes of groups on the network: received and sent by the devices that carry a group's traffic, or sent by
/// its class, if it has no device. Groups with neither have no count.
///
/// The kernel tells of all devices, and of all classes, at once. One telling serves each group once: reading all
/// groups in turn asks the kernel once, and reading one twice asks twice.
#[derive(Debug)]
pub struct TrafficMeter {
    socket: Socket,
    seen: Option<Arc<Mutex<Seen>>>,
    groups: HashMap<GroupId, Watched>,
    devices: Vec<(u32, u64)>,
    classes: Vec<Class>,
    asked: Option<Instant>,
    telling: u64,
}

#[derive(Debug)]
struct Watched {
    path: String,
    devices: Vec<u32>,
    /// The telling that was used last.
    used: u64,
}

impl TrafficMeter {
    /// Of devices alone, for where nothing is enforced.
    ///
    /// # Errors
    /// If no socket can be had.
    pub fn of_devices() -> Result<TrafficMeter, TrafficError> {
        TrafficMeter::of(None)
    }

    pub(crate) fn of(seen: Option<Arc<Mutex<Seen>>>) -> Result<TrafficMeter, TrafficError> {
        Ok(TrafficMeter {
            socket: Socket::route()?,
            seen,
            groups: HashMap::new(),
            devices: Vec::new(),
            classes: Vec::new(),
            asked: None,
            telling: 0,
        })
    }

    fn ask(&mut self) -> Result<(), TrafficError> {
        self.telling += 1;
        self.asked = Some(Instant::now());
        if self.groups.values().any(|watched| !watched.devices.is_empty()) {
            link::counters(&mut self.socket, &mut self.devices)?;
        }
        self.classes.clear();
        if let Some(seen) = &self.seen {
            let device = {
                let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                (!seen.classes.is_empty()).then_some(seen.device)
            };
            if let Some(device) = device {
                htb::classes(&mut self.socket, device, &mut self.classes)?;
            }
        }
        Ok(())
    }

    fn class(&self, id: GroupId) -> Option<u64> {
        let minor = *self.seen.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).classes.get(&id)?;
        let at = self.classes.binary_search_by_key(&minor, |class| class.minor).ok()?;
        Some(self.classes[at].sent)
    }
}

impl Meter for TrafficMeter {
    fn admit(&mut self, id: GroupId, group: &Group) -> Result<(), KernelError> {
        let index = |device| {
            link::index(&mut self.socket, device).map_err(|error| match error {
                TrafficError::NoDevice(name) => KernelError::Gone(name),
                other => other.of(&group.path),
            })
        };
        let devices = group.devices.iter().map(|name| name.as_str()).map(index).collect::<Result<_, _>>()?;
        self.groups.insert(id, Watched { path: group.path.clone(), devices, used: self.telling });
        Ok(())
    }

    fn read(&mut self, id: GroupId) -> Result<Usage, KernelError> {
        let watched = self.groups.get(&id).ok_or(KernelError::Unknown(id))?;
        if watched.used == self.telling || self.asked.is_none_or(|at| at.elapsed() > AGE) {
            let path = watched.path.clone();
            self.ask().map_err(|error| error.of(&path))?;
        }
        let class = self.class(id);
        let watched = self.groups.get_mut(&id).ok_or(KernelError::Unknown(id))?;
        watched.used = self.telling;
        if watched.devices.is_empty() {
            return Ok(Usage { network_bytes: class, ..Usage::default() });
        }
        let mut sum = 0_u64;
        for index in &watched.devices {
            let found = self.devices.binary_search_by_key(index, |(i, _)| *i);
            let at = found.map_err(|_| KernelError::Gone(watched.path.clone()))?;
            sum = sum.wrapping_add(self.devices[at].1);
        }
        Ok(Usage { network_bytes: Some(sum), ..Usage::default() })
    }

    fn dismiss(&mut self, id: GroupId) {
        self.groups.remove(&id);
    }
}
