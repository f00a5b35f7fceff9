//! Units and their properties, by systemd's names.

use crate::cgroups::{Control, DiskWeight, KernelError, Levels, Protection};

/// The value of a weight that is not set.
pub(crate) const NOT_SET: u64 = u64::MAX;

/// A property that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Property {
    Cpu,
    Disk(DiskWeight),
    Memory(Protection),
}

impl Property {
    /// Those that are written with this way to weigh disks, and a way to protect memory or none.
    pub(crate) fn all(disk: DiskWeight, memory: Option<Protection>) -> Vec<Property> {
        let memory = memory.map(Property::Memory);
        [Some(Property::Cpu), memory, Some(Property::Disk(disk))].into_iter().flatten().collect()
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Property::Cpu => "CPUWeight",
            Property::Disk(_) => "IOWeight",
            Property::Memory(Protection::Low) => "MemoryLow",
            Property::Memory(Protection::Min) => "MemoryMin",
        }
    }

    pub(crate) fn control(self) -> Control {
        match self {
            Property::Cpu => Control::Cpu,
            Property::Disk(_) => Control::Disk,
            Property::Memory(_) => Control::Memory,
        }
    }

    /// What levels say of it, on systemd's scale: that of `cpu.weight` for both weights, or what becomes a weight of BFQ's; bytes for memory.
    pub(crate) fn value(self, levels: &Levels) -> Option<u64> {
        let weight = |w: Option<f64>| w.map(|w| u64::from(evenhand_heaviness::controller::cgroup_weight(w)));
        match self {
            Property::Cpu => weight(levels.cpu),
            Property::Disk(DiskWeight::Cost) => weight(levels.disk),
            // So that ratios are kept by what systemd makes of it.
            Property::Disk(DiskWeight::Bfq) => {
                levels.disk.map(|w| evenhand_heaviness::controller::systemd_io_weight(w).into())
            }
            // The largest number stands for all there is, which nobody meant who gave a number.
            Property::Memory(_) => levels.memory.map(|bytes| bytes.min(u64::MAX - 1)),
        }
    }

    /// As it is kept in a file.
    pub(crate) fn to_text(self, value: u64) -> String {
        match self {
            Property::Cpu | Property::Disk(_) if value == NOT_SET => "not set".into(),
            _ => value.to_string(),
        }
    }

    pub(crate) fn parse(self, text: &str) -> Result<u64, KernelError> {
        match text {
            "not set" => Ok(NOT_SET),
            _ => text.parse().map_err(|_| KernelError::Content {
                what: format!("what {} was", self.name()),
                found: text.chars().take(40).collect(),
                expected: "a number or \"not set\"",
            }),
        }
    }
}

/// The interface with a unit's properties, by the end of its name.
///
/// # Errors
/// If it is no unit that holds processes, or the one that holds them all.
pub(crate) fn interface(unit: &str) -> Result<&'static str, KernelError> {
    let found = match unit.rsplit_once('.') {
        // The root slice, and the manager itself.
        Some(("-", "slice") | ("init", "scope") | ("", _)) => None,
        Some((_, "slice")) => Some("org.freedesktop.systemd1.Slice"),
        Some((_, "scope")) => Some("org.freedesktop.systemd1.Scope"),
        Some((_, "service")) => Some("org.freedesktop.systemd1.Service"),
        _ => None,
    };
    found.filter(|_| !unit.contains('/')).ok_or_else(|| KernelError::Path(unit.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_that_hold_processes_have_an_interface() {
        assert_eq!(interface("user-1000.slice").unwrap(), "org.freedesktop.systemd1.Slice");
        assert_eq!(interface("machine-qemu\\x2d1.scope").unwrap(), "org.freedesktop.systemd1.Scope");
        assert_eq!(interface("a.b.service").unwrap(), "org.freedesktop.systemd1.Service");
        for bad in ["", "a", ".slice", "-.slice", "init.scope", "a.timer", "a/b.slice"] {
            assert!(matches!(interface(bad), Err(KernelError::Path(_))), "{bad}");
        }
    }

    #[test]
    fn values_come_back_from_text() {
        for property in Property::all(DiskWeight::Cost, Some(Protection::Min)) {
            for value in [0, 1, 100, NOT_SET - 1, NOT_SET] {
                assert_eq!(property.parse(&property.to_text(value)).unwrap(), value);
            }
            assert!(property.parse("many").is_err());
        }
        assert_eq!(Property::Cpu.to_text(NOT_SET), "not set");
    }

    #[test]
    fn levels_are_on_systemds_scale() {
        let levels = Levels { memory: Some(u64::MAX), ..Levels::weight(1e9) };
        let values: Vec<_> =
            Property::all(DiskWeight::Cost, Some(Protection::Low)).iter().map(|p| p.value(&levels).unwrap()).collect();
        assert_eq!(values, [10_000, u64::MAX - 1, 10_000]);
        assert_eq!(Property::all(DiskWeight::Cost, None).len(), 2);
        // BFQ's 300, as systemd makes it of 2300.
        let three = Levels { disk: Some(3.0), ..Levels::default() };
        assert_eq!(Property::Disk(DiskWeight::Bfq).value(&three), Some(2300));
    }
}
