//! From counters to loads.

use std::collections::HashMap;
use std::time::Duration;

use evenhand_enforcers::cgroups::{Control, GroupId, Usage};

/// What guests use: processors, bytes held, and bytes a second, by [`Control::ALL`].
pub type Load = [f64; 4];

/// Makes loads of what meters read, from one update to the next.
#[derive(Debug, Default)]
pub struct Loads {
    smoothing: f64,
    last: HashMap<GroupId, Last>,
}

#[derive(Clone, Copy, Debug)]
struct Last {
    at: Duration,
    usage: Usage,
    load: Option<Load>,
}

/// What a reading says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// What the guest uses. What is shared in time is 0 at the first reading.
    pub load: Load,
    /// A counter that went backwards: the group was made anew, or the kernel began to count anew. Its rate is 0 this
    /// time.
    pub backwards: Option<Control>,
}

impl Loads {
    /// That keep this part of the last load in the next: from 0 (nothing) to less than 1.
    pub fn new(smoothing: f64) -> Loads {
        Loads { smoothing, last: HashMap::new() }
    }

    /// A guest's load, by what was read of it at this time of a clock that never steps.
    pub fn of(&mut self, id: GroupId, at: Duration, usage: Usage) -> Reading {
        let before = self.last.get(&id).copied();
        let mut backwards = None;
        let mut rate = |control: Control, counter: fn(&Usage) -> Option<u64>| {
            let (Some(now), Some(last)) = (counter(&usage), before) else { return 0.0 };
            let (Some(then), Some(elapsed)) = (counter(&last.usage), at.checked_sub(last.at)) else { return 0.0 };
            if now < then {
                backwards = Some(control);
                return 0.0;
            }
            if elapsed.is_zero() { 0.0 } else { (now - then) as f64 / elapsed.as_secs_f64() }
        };
        let cpu = rate(Control::Cpu, |usage| usage.cpu_ns) / 1e9;
        let disk = rate(Control::Disk, |usage| usage.disk_bytes);
        let net = rate(Control::Network, |usage| usage.network_bytes);
        let mut load = [cpu, usage.memory_bytes.unwrap_or(0) as f64, disk, net];
        if let Some(old) = before.and_then(|last| last.load) {
            load.iter_mut().zip(old).for_each(|(new, old)| *new = self.smoothing * old + (1.0 - self.smoothing) * *new);
        }
        // The first reading says nothing about rates, so nothing of it is kept in the second.
        self.last.insert(id, Last { at, usage, load: before.map(|_| load) });
        Reading { load, backwards }
    }

    /// Forgets a guest.
    pub fn forget(&mut self, id: GroupId) {
        self.last.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: GroupId = GroupId(7);

    fn usage(cpu_s: u64, memory: u64, disk: u64) -> Usage {
        let cpu_ns = Some(cpu_s * 1_000_000_000);
        Usage { cpu_ns, memory_bytes: Some(memory), disk_bytes: Some(disk), network_bytes: None }
    }

    #[test]
    fn counters_become_rates() {
        let mut loads = Loads::default();
        let at = Duration::from_secs;
        assert_eq!(loads.of(ID, at(10), usage(5, 100, 1000)).load, [0.0, 100.0, 0.0, 0.0]);
        assert_eq!(loads.of(ID, at(20), usage(25, 50, 6000)).load, [2.0, 50.0, 500.0, 0.0]);
        // Twice at one time.
        assert_eq!(loads.of(ID, at(20), usage(25, 50, 6000)).load, [0.0, 50.0, 0.0, 0.0]);
        loads.forget(ID);
        assert_eq!(loads.of(ID, at(30), usage(45, 50, 6000)).load, [0.0, 50.0, 0.0, 0.0]);
    }

    #[test]
    fn a_counter_that_goes_backwards_begins_anew() {
        let mut loads = Loads::default();
        loads.of(ID, Duration::ZERO, usage(50, 0, 1000));
        let reading = loads.of(ID, Duration::from_secs(1), usage(1, 0, 1500));
        assert_eq!((reading.load, reading.backwards), ([0.0, 0.0, 500.0, 0.0], Some(Control::Cpu)));
        assert_eq!(loads.of(ID, Duration::from_secs(2), usage(2, 0, 1500)).load, [1.0, 0.0, 0.0, 0.0]);
        // A clock that stepped back.
        assert_eq!(loads.of(ID, Duration::from_secs(1), usage(3, 0, 1500)).load, [0.0; 4]);
    }

    #[test]
    fn loads_are_smoothed_from_the_second_reading_on() {
        let mut loads = Loads::new(0.5);
        let read = |loads: &mut Loads, s, cpu_s| loads.of(ID, Duration::from_secs(s), usage(cpu_s, 0, 0)).load[0];
        let seen: Vec<f64> = [(0, 0), (1, 2), (2, 4), (3, 4), (4, 4)].map(|(s, cpu)| read(&mut loads, s, cpu)).into();
        assert_eq!(seen, [0.0, 2.0, 2.0, 1.0, 0.5]);
    }
}
