//! Reads the limits of a group from its own files: the size of its workload.

use std::fs;
use std::path::PathBuf;

use evenhand_enforcers::cgroups::Hierarchies;

/// Version 1 prints "no limit" as the largest multiple of a page: this number or a larger one.
const UNLIMITED: u64 = 1 << 60;
/// A list with more processors is invalid.
const MAX_PROCESSORS: u64 = 1 << 20;

fn read(path: PathBuf) -> Option<String> {
    fs::read_to_string(path).ok()
}

fn file(hierarchies: &Hierarchies, controller: &str, group: &str, legacy: &str, unified: &str) -> Option<String> {
    match hierarchies.legacy.get(controller) {
        Some(root) => read(root.join(group).join(legacy)),
        None => read(hierarchies.unified.as_ref()?.join(group).join(unified)),
    }
}

/// Returns the number of processors that the group may keep busy: its CPU quota over its period.
pub(crate) fn processors(hierarchies: &Hierarchies, group: &str) -> Option<f64> {
    let quota = file(hierarchies, "cpu", group, "cpu.cfs_quota_us", "cpu.max")?;
    let period = hierarchies.legacy.get("cpu").and_then(|root| read(root.join(group).join("cpu.cfs_period_us")));
    bandwidth(&format!("{quota} {}", period.unwrap_or_default()))
}

/// Returns the bytes of memory that the group may hold.
pub(crate) fn memory(hierarchies: &Hierarchies, group: &str) -> Option<u64> {
    let text = file(hierarchies, "memory", group, "memory.limit_in_bytes", "memory.max")?;
    text.trim().parse().ok().filter(|bytes| (1..UNLIMITED).contains(bytes))
}

/// Returns the number of processors on which the group may run.
pub(crate) fn cpuset(hierarchies: &Hierarchies, group: &str) -> Option<f64> {
    processors_in(&file(hierarchies, "cpuset", group, "cpuset.cpus", "cpuset.cpus")?)
}

/// Parses a CPU quota and period: `200000 100000` is 2; `max 100000` and `-1 100000` mean no limit.
fn bandwidth(text: &str) -> Option<f64> {
    let mut numbers = text.split_whitespace().map(|part| part.parse::<u32>().ok());
    let (quota, period) = (numbers.next()??, numbers.next()??);
    (quota > 0 && period > 0).then(|| f64::from(quota) / f64::from(period))
}

/// Counts the processors in a list such as `0-3,8`.
fn processors_in(list: &str) -> Option<f64> {
    let mut count = 0_u64;
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
        count += u64::from(last.checked_sub(first)?) + 1;
    }
    u32::try_from(count).ok().filter(|_| count <= MAX_PROCESSORS).map(f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_parsed() {
        assert_eq!(bandwidth("150000 100000\n"), Some(1.5));
        for none in ["max 100000", "-1 100000", "1", "", "0 1", "1 0"] {
            assert_eq!(bandwidth(none), None, "{none}");
        }
        assert_eq!(processors_in("0-3,8\n"), Some(5.0));
        for none in ["", "3-1", "a", "0-4294967295", "0,,1"] {
            assert_eq!(processors_in(none), None, "{none}");
        }
    }

    #[test]
    fn limits_of_both_versions_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("v2/g/cpu.max", "200000 100000\n");
        write("v2/g/memory.max", "4096\n");
        write("v2/none/cpu.max", "max 100000\n");
        write("v2/none/memory.max", "max\n");
        write("cpu/g/cpu.cfs_quota_us", "50000\n");
        write("cpu/g/cpu.cfs_period_us", "100000\n");
        write("memory/g/memory.limit_in_bytes", "9223372036854771712\n");
        write("cpuset/g/cpuset.cpus", "1,3\n");
        let root = |name: &str| folder.path().join(name);
        let unified = Hierarchies { unified: Some(root("v2")), ..Hierarchies::default() };
        assert_eq!(
            (processors(&unified, "g"), memory(&unified, "g"), cpuset(&unified, "g")),
            (Some(2.0), Some(4096), None)
        );
        assert_eq!((processors(&unified, "none"), memory(&unified, "none")), (None, None));
        let legacy = ["cpu", "memory", "cpuset"].map(|name| (name.to_owned(), root(name))).into();
        let legacy = Hierarchies { legacy, ..Hierarchies::default() };
        assert_eq!(
            (processors(&legacy, "g"), memory(&legacy, "g"), cpuset(&legacy, "g")),
            (Some(0.5), None, Some(2.0))
        );
        assert_eq!(processors(&Hierarchies::default(), "g"), None);
    }
}
