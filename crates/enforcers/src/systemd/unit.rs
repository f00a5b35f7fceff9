//! Units and their properties, by systemd's names.

use crate::cgroups::{DiskWeight, KernelError, Protection, Resource, Targets};

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
    /// Returns the properties that are written with this mechanism for disks and, optionally, this one for memory.
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

    pub(crate) fn resource(self) -> Resource {
        match self {
            Property::Cpu => Resource::Cpu,
            Property::Disk(_) => Resource::Disk,
            Property::Memory(_) => Resource::Memory,
        }
    }

    /// Converts the target to systemd's scale: that of `cpu.weight` for both weights, adjusted where systemd converts
    /// `IOWeight` for BFQ; bytes for memory.
    pub(crate) fn value(self, targets: &Targets) -> Option<u64> {
        let target = targets[self.resource()]?;
        Some(match self {
            Property::Cpu | Property::Disk(DiskWeight::Cost) => {
                evenhand_heaviness::controller::cgroup_weight(target).into()
            }
            // Keeps the ratios after systemd's conversion.
            Property::Disk(DiskWeight::Bfq) => evenhand_heaviness::controller::systemd_io_weight(target).into(),
            // The largest number means infinity, which a finite target never asks for.
            Property::Memory(_) => (target as u64).min(u64::MAX - 1),
        })
    }

    /// Formats a value for a saved state.
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
                what: format!("the saved value of {}", self.name()),
                found: text.chars().take(40).collect(),
                expected: "a number or \"not set\"",
            }),
        }
    }
}

/// Returns the D-Bus interface with a unit's properties, by the suffix of its name.
///
/// # Errors
/// Returns an error if it is not a unit that holds processes, or if it holds all of them.
pub(crate) fn interface(unit: &str) -> Result<&'static str, KernelError> {
    let found = match unit.rsplit_once('.') {
        // The root slice, and the manager itself.
        Some(("-", "slice") | ("init", "scope") | ("", _)) => None,
        Some((_, "slice")) => Some("org.freedesktop.systemd1.Slice"),
        Some((_, "scope")) => Some("org.freedesktop.systemd1.Scope"),
        Some((_, "service")) => Some("org.freedesktop.systemd1.Service"),
        _ => None,
    };
    found.filter(|_| !unit.contains('/')).ok_or_else(|| KernelError::InvalidPath(unit.to_owned()))
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
            assert!(matches!(interface(bad), Err(KernelError::InvalidPath(_))), "{bad}");
        }
    }

    #[test]
    fn saved_values_are_parsed_back() {
        for property in Property::all(DiskWeight::Cost, Some(Protection::Min)) {
            for value in [0, 1, 100, NOT_SET - 1, NOT_SET] {
                assert_eq!(property.parse(&property.to_text(value)).unwrap(), value);
            }
            assert!(property.parse("many").is_err());
        }
        assert_eq!(Property::Cpu.to_text(NOT_SET), "not set");
    }

    #[test]
    fn targets_are_converted_to_systemds_scale() {
        let targets = Targets { memory: Some(u64::MAX as f64), ..Targets::equal_weights(1e9) };
        let values: Vec<_> =
            Property::all(DiskWeight::Cost, Some(Protection::Low)).iter().map(|p| p.value(&targets).unwrap()).collect();
        assert_eq!(values, [10_000, u64::MAX - 1, 10_000]);
        assert_eq!(Property::all(DiskWeight::Cost, None).len(), 2);
        // systemd converts 2300 to 300 for BFQ.
        let three = Targets { disk: Some(3.0), ..Targets::default() };
        assert_eq!(Property::Disk(DiskWeight::Bfq).value(&three), Some(2300));
    }
}
