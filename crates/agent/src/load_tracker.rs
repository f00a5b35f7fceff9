//! Computes loads from cumulative counters.

use std::collections::HashMap;
use std::time::Duration;

use evenhand_enforcers::cgroups::{GroupId, PerResource, Resource, Usage};

/// The load of a workload: processors in use, bytes of memory held, and bytes per second of disk and network.
pub type Load = PerResource<f64>;

/// Computes the loads of workloads from what meters read, from one update to the next.
#[derive(Debug, Default)]
pub struct LoadTracker {
    smoothing: f64,
    last: HashMap<GroupId, Last>,
}

#[derive(Clone, Copy, Debug)]
struct Last {
    at: Duration,
    usage: Usage,
    load: Option<Load>,
}

/// The load at one reading.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadReading {
    /// The load. The rates are 0 at the first reading.
    pub load: Load,
    /// A counter that went backwards, because the group was created again or the kernel restarted the count. Its rate is
    /// 0 at this reading.
    pub backwards: Option<Resource>,
}

impl LoadTracker {
    /// Creates a tracker with a smoothing factor in [0, 1): the part of the last load that is kept in the next.
    pub fn new(smoothing: f64) -> LoadTracker {
        LoadTracker { smoothing, last: HashMap::new() }
    }

    /// Computes a workload's load from a reading at this time of a monotonic clock.
    pub fn update(&mut self, id: GroupId, at: Duration, usage: Usage) -> LoadReading {
        let before = self.last.get(&id).copied();
        let mut backwards = None;
        let mut rate = |resource: Resource| {
            let (Some(now), Some(last)) = (usage[resource], before) else { return 0.0 };
            let (Some(then), Some(elapsed)) = (last.usage[resource], at.checked_sub(last.at)) else { return 0.0 };
            if now < then {
                backwards = Some(resource);
                return 0.0;
            }
            if elapsed.is_zero() { 0.0 } else { (now - then) as f64 / elapsed.as_secs_f64() }
        };
        let mut load = Load::from_fn(|resource| match resource {
            Resource::Cpu => rate(resource) / 1e9,
            Resource::Memory => usage.memory.unwrap_or(0) as f64,
            Resource::Disk | Resource::Network => rate(resource),
        });
        if let Some(old) = before.and_then(|last| last.load) {
            load = Load::from_fn(|r| self.smoothing * old[r] + (1.0 - self.smoothing) * load[r]);
        }
        // The first reading has no rates, so no part of it is kept in the second.
        self.last.insert(id, Last { at, usage, load: before.map(|_| load) });
        LoadReading { load, backwards }
    }

    /// Forgets a workload.
    pub fn forget(&mut self, id: GroupId) {
        self.last.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: GroupId = GroupId(7);

    fn usage(cpu_s: u64, memory: u64, disk: u64) -> Usage {
        Usage { cpu: Some(cpu_s * 1_000_000_000), memory: Some(memory), disk: Some(disk), network: None }
    }

    fn load(cpu: f64, memory: f64, disk: f64) -> Load {
        Load { cpu, memory, disk, network: 0.0 }
    }

    #[test]
    fn counters_are_converted_to_rates() {
        let mut loads = LoadTracker::default();
        let at = Duration::from_secs;
        assert_eq!(loads.update(ID, at(10), usage(5, 100, 1000)).load, load(0.0, 100.0, 0.0));
        assert_eq!(loads.update(ID, at(20), usage(25, 50, 6000)).load, load(2.0, 50.0, 500.0));
        // A second reading at the same time.
        assert_eq!(loads.update(ID, at(20), usage(25, 50, 6000)).load, load(0.0, 50.0, 0.0));
        loads.forget(ID);
        assert_eq!(loads.update(ID, at(30), usage(45, 50, 6000)).load, load(0.0, 50.0, 0.0));
    }

    #[test]
    fn a_counter_that_goes_backwards_is_reported_and_has_no_rate() {
        let mut loads = LoadTracker::default();
        loads.update(ID, Duration::ZERO, usage(50, 0, 1000));
        let reading = loads.update(ID, Duration::from_secs(1), usage(1, 0, 1500));
        assert_eq!((reading.load, reading.backwards), (load(0.0, 0.0, 500.0), Some(Resource::Cpu)));
        assert_eq!(loads.update(ID, Duration::from_secs(2), usage(2, 0, 1500)).load, load(1.0, 0.0, 0.0));
        // A clock that stepped back.
        assert_eq!(loads.update(ID, Duration::from_secs(1), usage(3, 0, 1500)).load, Load::default());
    }

    #[test]
    fn loads_are_smoothed_from_the_second_reading_on() {
        let mut loads = LoadTracker::new(0.5);
        let mut read = |s, cpu_s| loads.update(ID, Duration::from_secs(s), usage(cpu_s, 0, 0)).load.cpu;
        let seen: Vec<f64> = [(0, 0), (1, 2), (2, 4), (3, 4), (4, 4)].map(|(s, cpu)| read(s, cpu)).into();
        assert_eq!(seen, [0.0, 2.0, 2.0, 1.0, 0.5]);
    }
}
