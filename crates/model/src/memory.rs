//! How much memory this process may use, and sizes as people write them.
//!
//! An allocation that fails ends a process. What knows its need before it allocates compares it with a [`MemoryLimit`]
//! and refuses with numbers instead.

use std::fmt;
use std::fs;
use std::path::Path;

use crate::Quantity;

/// The part of the memory that is there that a process takes by default.
const DEFAULT_SHARE: f64 = 0.8;

/// A limit on memory, and what sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimit {
    /// The bytes that may be used.
    pub bytes: u64,
    /// What sets the limit.
    pub reason: LimitReason,
}

/// What sets a limit on memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitReason {
    /// The user, by an option.
    Option,
    /// The memory of the machine that is free.
    Free,
    /// The control group.
    ControlGroup,
    /// The address space of the process (`ulimit -v`).
    AddressSpace,
    /// Nothing: the system reports no limit.
    Unknown,
}

impl fmt::Display for LimitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LimitReason::Option => "--memory",
            LimitReason::Free => "80 % of the free memory of this machine",
            LimitReason::ControlGroup => "80 % of what this process's control group has left",
            LimitReason::AddressSpace => "80 % of what the limit on address space leaves (ulimit -v)",
            LimitReason::Unknown => "no limit that this system reports",
        })
    }
}

impl MemoryLimit {
    /// Returns the limit that an option sets.
    pub fn of_option(bytes: u64) -> MemoryLimit {
        MemoryLimit { bytes, reason: LimitReason::Option }
    }

    /// Returns 80 % of the memory that this process can get: of the machine's free memory, of what its control groups
    /// have left, or of its address space, whichever is least.
    pub fn of_this_process() -> MemoryLimit {
        let found = [
            (free_memory(Path::new("/proc/meminfo")), LimitReason::Free),
            (control_group(Path::new("/proc/self/cgroup"), Path::new("/sys/fs/cgroup")), LimitReason::ControlGroup),
            (address_space(Path::new("/proc/self/statm")), LimitReason::AddressSpace),
        ];
        let least = found.into_iter().filter_map(|(bytes, reason)| Some((bytes?, reason))).min_by_key(|(b, _)| *b);
        match least {
            Some((bytes, reason)) => MemoryLimit { bytes: (bytes as f64 * DEFAULT_SHARE) as u64, reason },
            None => MemoryLimit { bytes: u64::MAX, reason: LimitReason::Unknown },
        }
    }
}

fn free_memory(meminfo: &Path) -> Option<u64> {
    let text = fs::read_to_string(meminfo).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

/// Returns what is left in the control group of this process and those above it, in either version of the hierarchy.
fn control_group(own: &Path, root: &Path) -> Option<u64> {
    let text = fs::read_to_string(own).ok()?;
    let mut least = None;
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let (base, files) = match controllers {
            "" => (root.to_owned(), ["memory.max", "memory.current"]),
            "memory" => (root.join("memory"), ["memory.limit_in_bytes", "memory.usage_in_bytes"]),
            _ => continue,
        };
        // In a container the path may be that of the host: then the folders that exist are above it.
        for group in Path::new(path.trim_start_matches('/')).ancestors() {
            let number = |file: &str| fs::read_to_string(base.join(group).join(file)).ok()?.trim().parse::<u64>().ok();
            // Without a limit it is `max`, or in version 1 nearly 2^63.
            let Some(limit) = number(files[0]).filter(|limit| *limit < 1 << 60) else { continue };
            let left = limit.saturating_sub(number(files[1]).unwrap_or(0).saturating_sub(cache(&base.join(group))));
            least = Some(least.map_or(left, |least: u64| least.min(left)));
        }
    }
    least
}

/// Returns the pages of files that a group counts as its use and that the kernel frees when they are needed.
fn cache(group: &Path) -> u64 {
    let text = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let value = |line: &str| line.strip_prefix("inactive_file ")?.parse().ok();
    text.lines().find_map(value).unwrap_or(0)
}

fn address_space(statm: &Path) -> Option<u64> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::As).current?;
    let pages: u64 = fs::read_to_string(statm).ok()?.split_whitespace().next()?.parse().ok()?;
    Some(limit.saturating_sub(pages.saturating_mul(rustix::param::page_size() as u64)))
}

/// Parses a size such as `8Gi` or `8GiB`, `500M` or `1e9`, in bytes.
///
/// ```
/// use evenhand_model::memory::parse_size;
/// assert_eq!(parse_size("8Gi"), Some(8 << 30));
/// assert_eq!(parse_size("8GiB"), Some(8 << 30));
/// assert_eq!(parse_size("-1"), None);
/// ```
pub fn parse_size(text: &str) -> Option<u64> {
    let text = text.strip_suffix('B').filter(|t| t.ends_with('i')).unwrap_or(text);
    let bytes = Quantity::parse(text).ok()?.to_f64();
    (bytes < 1e18).then_some(bytes as u64)
}

/// Formats bytes in MiB, or from 1 GiB in GiB.
///
/// ```
/// use evenhand_model::memory::format_size;
/// assert_eq!(format_size(3 << 20), "3.0 MiB");
/// assert_eq!(format_size(5 << 29), "2.5 GiB");
/// ```
pub fn format_size(bytes: u64) -> String {
    let (unit, name) = match bytes {
        0..0x4000_0000 => (1u64 << 20, "MiB"),
        _ => (1 << 30, "GiB"),
    };
    format!("{:.1} {name}", bytes as f64 / unit as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_parsed_and_other_texts_are_rejected() {
        assert_eq!(parse_size("0"), Some(0));
        assert_eq!(parse_size("500M"), Some(500_000_000));
        assert!(["much", "-1", "1e30", "", "8GB", "iB"].iter().all(|text| parse_size(text).is_none()));
    }

    #[test]
    fn free_memory_is_what_the_kernel_says_is_available() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("meminfo");
        fs::write(&file, "MemTotal:       4194304 kB\nMemFree:         1 kB\nMemAvailable:    1048576 kB\n").unwrap();
        assert_eq!(free_memory(&file), Some(1 << 30));
        assert_eq!(free_memory(&folder.path().join("none")), None);
    }

    #[test]
    fn the_tightest_group_on_the_way_up_limits() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("cgroup/slice/job/step")).unwrap();
        for (name, text) in [
            ("own", "0::/slice/job/step\n"),
            ("cgroup/slice/job/step/memory.max", "max\n"),
            ("cgroup/slice/job/step/memory.current", "10\n"),
            ("cgroup/slice/job/memory.max", "1000\n"),
            ("cgroup/slice/job/memory.current", "400\n"),
            ("cgroup/slice/job/memory.stat", "anon 300\ninactive_file 100\n"),
            ("cgroup/slice/memory.max", "5000\n"),
            ("cgroup/slice/memory.current", "500\n"),
        ] {
            fs::write(at(name), text).unwrap();
        }
        assert_eq!(control_group(&at("own"), &at("cgroup")), Some(700));
        fs::write(at("cgroup/slice/job/memory.max"), "max\n").unwrap();
        assert_eq!(control_group(&at("own"), &at("cgroup")), Some(4500));
        fs::write(at("cgroup/slice/memory.max"), "max\n").unwrap();
        assert_eq!(control_group(&at("own"), &at("cgroup")), None);
        // Version 1.
        fs::create_dir_all(at("cgroup/memory/job")).unwrap();
        fs::write(at("own"), "5:cpu,cpuacct:/job\n4:memory:/job\n").unwrap();
        fs::write(at("cgroup/memory/job/memory.limit_in_bytes"), "2000\n").unwrap();
        fs::write(at("cgroup/memory/job/memory.usage_in_bytes"), "500\n").unwrap();
        fs::write(at("cgroup/memory/memory.limit_in_bytes"), "9223372036854771712\n").unwrap();
        assert_eq!(control_group(&at("own"), &at("cgroup")), Some(1500));
    }
}
