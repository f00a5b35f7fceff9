//! The mounted cgroup hierarchies.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::cgroups::KernelError;

/// The mount points of the cgroup hierarchies. A clone is cheap enough for each workload source to have its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hierarchies {
    /// The root of cgroup v2, if mounted.
    pub unified: Option<PathBuf>,
    /// The root of each controller of cgroup v1, by its name: `cpu`, `cpuacct`, `memory`, `blkio`.
    pub legacy: BTreeMap<String, PathBuf>,
}

/// A group found by listing a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListedGroup {
    /// The path, as in [`Group::path`](crate::cgroups::Group::path).
    pub path: String,
    /// The inode number of its directory, which distinguishes this group from a later one of the same path.
    pub identity: u64,
}

impl Hierarchies {
    /// Detects the hierarchies that are mounted for this process.
    ///
    /// # Errors
    /// Returns an error if `/proc/self/mountinfo` cannot be read.
    pub fn detect() -> Result<Hierarchies, KernelError> {
        let what = "/proc/self/mountinfo";
        let text = fs::read_to_string(what).map_err(|source| KernelError::Io { what: what.into(), source })?;
        Ok(Hierarchies::from_mountinfo(&text))
    }

    /// Parses a `mountinfo` file (proc(5)). If a hierarchy is mounted twice, the first mount counts.
    pub fn from_mountinfo(text: &str) -> Hierarchies {
        const CONTROLLERS: [&str; 7] = ["cpu", "cpuacct", "memory", "blkio", "cpuset", "pids", "net_cls"];
        let mut found = Hierarchies::default();
        for line in text.lines() {
            let Some((left, right)) = line.split_once(" - ") else { continue };
            let Some(mount) = left.split(' ').nth(4) else { continue };
            let path = PathBuf::from(mount.replace("\\040", " ").replace("\\134", "\\"));
            let mut fields = right.split(' ');
            match fields.next() {
                Some("cgroup2") => drop(found.unified.get_or_insert(path)),
                Some("cgroup") => {
                    let options = fields.nth(1).unwrap_or("").split(',');
                    for controller in options.filter(|o| CONTROLLERS.contains(o)) {
                        found.legacy.entry(controller.to_owned()).or_insert_with(|| path.clone());
                    }
                }
                _ => {}
            }
        }
        found
    }

    /// Returns the hierarchy in which groups are listed: that of the v1 CPU controller, or else v2.
    pub fn main(&self) -> Option<&Path> {
        self.legacy.get("cpu").or(self.unified.as_ref()).map(PathBuf::as_path)
    }

    /// Returns the [identity](ListedGroup::identity) of the group that now has this path, or `None` if there is none.
    pub fn identity(&self, path: &str) -> Option<u64> {
        if !crate::cgroups::is_group_path(path) {
            return None;
        }
        let metadata = fs::metadata(self.main()?.join(path)).ok()?;
        metadata.is_dir().then(|| metadata.ino())
    }

    /// Lists the children of `parent` ("" is the root) in the [main](Hierarchies::main) hierarchy, sorted by name.
    ///
    /// # Errors
    /// Returns [`KernelError::Gone`] if `parent` does not exist, or [`KernelError::Io`] if it cannot be read.
    pub fn children(&self, parent: &str) -> Result<Vec<ListedGroup>, KernelError> {
        let Some(root) = self.main() else { return Ok(Vec::new()) };
        let folder = root.join(parent);
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => KernelError::Gone(folder.display().to_string()),
            _ => KernelError::Io { what: folder.display().to_string(), source },
        };
        let mut found = Vec::new();
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            // The directory entry itself has the inode number: calling stat(2) for each would cost several times as
            // much.
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if let (true, Some(name)) = (is_folder, entry.file_name().to_str()) {
                let path = if parent.is_empty() { name.to_owned() } else { format!("{parent}/{name}") };
                found.push(ListedGroup { path, identity: entry.ino() });
            }
        }
        found.sort();
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_found() {
        let hybrid = "24 29 0:22 / /sys/fs/cgroup/unified rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n\
            26 29 0:24 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
            27 29 0:25 / /a\\040b rw - cgroup cgroup rw,memory\nnonsense\n\
            28 29 0:26 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n";
        let found = Hierarchies::from_mountinfo(hybrid);
        assert_eq!(found.unified.as_deref(), Some(Path::new("/sys/fs/cgroup/unified")));
        let legacy: Vec<_> = found.legacy.iter().map(|(k, v)| (k.as_str(), v.to_str().unwrap())).collect();
        let both = "/sys/fs/cgroup/cpu,cpuacct";
        assert_eq!(legacy, [("cpu", both), ("cpuacct", both), ("memory", "/a b")]);
        assert_eq!(found.main(), Some(Path::new(both)));
        let only = Hierarchies::from_mountinfo("24 29 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        assert_eq!(only.main(), Some(Path::new("/sys/fs/cgroup")));
    }

    #[test]
    fn groups_are_listed_by_name() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.slice", "a.slice/inner"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join("cpu.weight"), "100").unwrap();
        let all = Hierarchies { unified: Some(folder.path().to_owned()), ..Hierarchies::default() };
        let paths = |parent| all.children(parent).unwrap().into_iter().map(|l| l.path).collect::<Vec<_>>();
        assert_eq!(paths(""), ["a.slice", "b.slice"]);
        assert_eq!(paths("a.slice"), ["a.slice/inner"]);
        assert_eq!(all.identity("a.slice/inner"), Some(all.children("a.slice").unwrap()[0].identity));
        assert_eq!((all.identity("none"), all.identity("cpu.weight"), all.identity("../x")), (None, None, None));
        assert!(matches!(all.children("none"), Err(KernelError::Gone(_))));
    }
}
