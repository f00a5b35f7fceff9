//! The names that libvirt gives to groups.
//!
//! A machine's name for systemd is `DRIVER-ID-NAME`: of NAME only the letters, digits, dashes and dots that machined
//! accepts, and all of it truncated at 64 characters (`virDomainDriverGenerateMachineName`). So the name alone is
//! ambiguous, but the number is not: it is assigned once for as long as the daemon's state lasts.
//!
//! - With systemd: the unit `machine-` + escaped name + `.scope`, in the slice of the partition.
//! - Without: the directory name + `.libvirt-DRIVER`, in the directory of the partition.

use crate::discovery::group_paths::unescaped;

/// The drivers that use control groups.
pub(super) const DRIVERS: [&str; 2] = ["qemu", "lxc"];

/// The parts of a group's name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Machine {
    pub(super) driver: &'static str,
    pub(super) id: u32,
    /// The remaining part of the machine's name.
    name: String,
}

/// Parses the name of a machine's group.
pub(super) fn machine_of(group: &str) -> Option<Machine> {
    let (name, suffix) = match group.strip_prefix("machine-").and_then(|rest| rest.strip_suffix(".scope")) {
        Some(escaped) => (unescaped(escaped), None),
        None => {
            let (name, driver) = group.rsplit_once(".libvirt-")?;
            (name.to_owned(), Some(driver))
        }
    };
    let (driver, rest) = name.split_once('-')?;
    let driver = DRIVERS.into_iter().find(|known| *known == driver && suffix.is_none_or(|s| s == *known))?;
    let (id, rest) = rest.split_once('-').unwrap_or((rest, ""));
    let id = id.bytes().all(|b| b.is_ascii_digit()).then(|| id.parse().ok()).flatten()?;
    Some(Machine { driver, id, name: rest.to_owned() })
}

/// Returns whether the group may contain machines.
pub(super) fn is_partition(group: &str) -> bool {
    group.ends_with(".slice") || group.ends_with(".partition")
}

impl Machine {
    /// Returns whether the group may belong to a domain with this name: letters and digits are equal up to the
    /// truncation.
    pub(super) fn is_called(&self, domain: &str) -> bool {
        let mut letters = domain.bytes().filter(u8::is_ascii_alphanumeric);
        self.name.bytes().filter(u8::is_ascii_alphanumeric).all(|b| letters.next() == Some(b))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_with_and_without_systemd_are_parsed() {
        let machine = |id, name: &str| Some(Machine { driver: "qemu", id, name: name.into() });
        assert_eq!(machine_of("machine-qemu\\x2d12\\x2dweb\\x2d1.a.scope"), machine(12, "web-1.a"));
        // Before libvirt escaped dashes.
        assert_eq!(machine_of("machine-qemu-12-web.scope"), machine(12, "web"));
        // As libvirt 11.3 derived them from `web-1.a` and `-odd..näme_x y`.
        assert_eq!(machine_of("qemu-1-web-1.a.libvirt-qemu"), machine(1, "web-1.a"));
        let odd = machine_of("qemu-2-odd.nmexy.libvirt-qemu").unwrap();
        assert!(odd.is_called("-odd..n\u{e4}me_x y") && !odd.is_called("odd.nme") && !odd.is_called("web"));
        assert_eq!(machine_of("machine-qemu\\x2d3.scope"), machine(3, ""));
        assert_eq!(machine_of("machine-lxc\\x2d3\\x2dc.scope").unwrap().driver, "lxc");
        for none in [
            "machine-qemu\\x2dweb.scope",
            "machine-qemu\\x2d99999999999\\x2da.scope",
            "machine-qemu\\x2dembed\\x2d0123abcd\\x2d1\\x2da.scope",
            "machine-a.scope",
            "machine-.scope",
            "machine.slice",
            "qemu-1-a.libvirt-lxc",
            "xen-1-a.libvirt-xen",
            ".libvirt-qemu",
            "",
        ] {
            assert_eq!(machine_of(none), None, "{none}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_names_do_not_panic(name in "(machine-|qemu|-|1|\\\\x2d|\\\\|\\.scope|\\.libvirt-qemu|\\PC){0,8}") {
            if let Some(machine) = machine_of(&name) {
                prop_assert!(machine.is_called(&machine.name));
            }
        }

        #[test]
        fn names_that_libvirt_derives_are_recognized(id: u32, name in "\\PC{0,100}") {
            // A simple implementation of the rule: filter, then truncate.
            let valid: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
            let made: String = format!("qemu-{id}-{valid}").chars().take(64).collect();
            let machine = machine_of(&format!("{made}.libvirt-qemu")).unwrap();
            prop_assert!(machine.id == id && machine.is_called(&name));
        }
    }
}
