//! Jobs of Slurm.
//!
//! - Plugin cgroup/v1 (the only one up to Slurm 22.05): `slurm/uid_1000/job_123/step_0`, and `slurm_NODE` where
//!   several daemons run on one machine.
//! - Plugin cgroup/v2: `system.slice/slurmstepd.scope/job_123/step_0/user/task_0`, and `NODE_slurmstepd.scope`.
//!
//! The group of the job gets the weight.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use evenhand_documents::{DocumentError, Table};
use evenhand_enforcers::cgroups::{Hierarchies, ListedGroup};

use crate::discovery::group_paths::{children, last};
use crate::discovery::user_names::{UserName, UserNames};
use crate::discovery::workload_cache::{WorkloadCache, WorkloadDetails, such_as};
use crate::discovery::{DiscoveryError, Registration, RunningWorkload, WorkloadSource, read_limits};

pub(crate) const SOURCE: Registration = Registration {
    name: "slurm",
    about: "Slurm's jobs on this node, with the owners of their directories or processes",
    build,
};

struct Slurm {
    hierarchies: Hierarchies,
    users: UserNames,
    cache: WorkloadCache,
    /// The number of jobs without a process of a user, and the path of the first of them.
    without_user: (usize, String),
}

fn build(table: &Table<'_>, hierarchies: &Hierarchies) -> Result<Box<dyn WorkloadSource>, DocumentError> {
    let cache = WorkloadCache::read(table, &[])?;
    let without_user = (0, String::new());
    Ok(Box::new(Slurm { hierarchies: hierarchies.clone(), users: UserNames::default(), cache, without_user }))
}

fn number_after(name: &str, prefix: &str) -> Option<u32> {
    let digits = name.strip_prefix(prefix)?;
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

/// Returns whether the group contains the users' groups of the plugin cgroup/v1.
fn is_legacy_root(name: &str) -> bool {
    name == "slurm" || name.starts_with("slurm_")
}

/// Returns whether the group contains the jobs of the plugin cgroup/v2.
fn is_scope(name: &str) -> bool {
    name == "slurmstepd.scope" || name.ends_with("_slurmstepd.scope")
}

/// Returns the first user other than root with a process in a group or its descendants: each step has a root process
/// of Slurm itself.
fn user_of_processes(root: &Path, group: &Path, depth: usize) -> Option<u32> {
    // job / step / user / task, and groups that the job itself created below.
    const MAX_DEPTH: usize = 6;
    let listed = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    let uid = |pid: &str| Some(fs::metadata(root.join(pid)).ok()?.uid());
    let pids = listed.lines().filter(|line| !line.is_empty() && line.bytes().all(|b| b.is_ascii_digit()));
    if let Some(uid) = pids.filter_map(uid).find(|uid| *uid != 0) {
        return Some(uid);
    }
    if depth == MAX_DEPTH {
        return None;
    }
    let mut below: Vec<_> =
        fs::read_dir(group).ok()?.flatten().filter(|e| e.file_type().is_ok_and(|t| t.is_dir())).collect();
    below.sort_by_key(fs::DirEntry::file_name);
    below.iter().find_map(|entry| user_of_processes(root, &entry.path(), depth + 1))
}

impl Slurm {
    /// Lists the jobs that are children of `parent`; `uid` is their owner, if the directories determine it.
    fn jobs(&mut self, parent: &str, uid: Option<u32>) -> Result<(), DiscoveryError> {
        for job in children(&self.hierarchies, parent)? {
            if !self.cache.reuse(&job.path, job.identity) && number_after(last(&job.path), "job_").is_some() {
                self.job(job, uid);
            }
        }
        Ok(())
    }

    fn job(&mut self, job: ListedGroup, of_folder: Option<u32>) {
        let root = self.hierarchies.main().unwrap_or(Path::new(""));
        let running = user_of_processes(Path::new("/proc"), &root.join(&job.path), 0);
        let Some(uid) = of_folder.or(running) else {
            if self.without_user.0 == 0 {
                self.without_user.1.clone_from(&job.path);
            }
            self.without_user.0 += 1;
            return;
        };
        let (owner, resolved) = match self.users.name(uid) {
            UserName::Resolved(owner) => (owner, true),
            UserName::Provisional(owner) => (owner, false),
        };
        let details = WorkloadDetails {
            name: last(&job.path).trim_start_matches("job_").to_owned(),
            owner: Some(owner),
            devices: Vec::new(),
            processors: read_limits::cpuset(&self.hierarchies, &job.path),
            memory_bytes: read_limits::memory(&self.hierarchies, &job.path),
        };
        // Slurm sets the limits before it starts the user's processes; until then they may be provisional.
        if resolved && running.is_some() {
            self.cache.insert(job.path, job.identity, Some(details));
        } else {
            self.cache.visit_uncached(&job.path, job.identity, &details);
        }
    }
}

impl WorkloadSource for Slurm {
    fn files(&self) -> Vec<&Path> {
        self.cache.files()
    }

    fn looked_for(&self) -> String {
        "no control group of a job (slurmstepd.scope/job_ID, or slurm/uid_UID/job_ID): none runs here, or Slurm does not use \
         the plugin proctrack/cgroup"
            .to_string()
    }

    fn list(&mut self) -> Result<Vec<Arc<RunningWorkload>>, DiscoveryError> {
        self.users.begin_scan();
        self.cache.begin_scan();
        self.without_user.0 = 0;
        for root in children(&self.hierarchies, "")?.iter().filter(|l| is_legacy_root(&l.path)) {
            for user in children(&self.hierarchies, &root.path)? {
                if let Some(uid) = number_after(last(&user.path), "uid_") {
                    self.jobs(&user.path, Some(uid))?;
                }
            }
        }
        for scope in children(&self.hierarchies, "system.slice")?.iter().filter(|l| is_scope(last(&l.path))) {
            self.jobs(&scope.path, None)?;
        }
        Ok(self.cache.finish_scan())
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> = self.users.problem().map(str::to_owned).into_iter().collect();
        if self.without_user.0 > 0 {
            warnings
                .push(format!("no process of a user runs in {}", such_as(self.without_user.0, &self.without_user.1)));
        }
        self.cache.warnings(&mut warnings);
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_is_the_first_user_other_than_root() {
        let folder = tempfile::tempdir().unwrap();
        let (job, proc) = (folder.path().join("job_1"), folder.path().join("proc"));
        for (group, pids) in [("step_0/slurm", "7\n"), ("step_0/user/task_0", "9999\n8\nx\n")] {
            fs::create_dir_all(job.join(group)).unwrap();
            fs::write(job.join(group).join("cgroup.procs"), pids).unwrap();
        }
        // Process 7 belongs to root, or to the user who runs this test.
        fs::create_dir_all(proc.join("7")).unwrap();
        fs::create_dir_all(proc.join("8")).unwrap();
        let who = nix::unistd::getuid();
        if who.is_root() {
            assert_eq!(user_of_processes(&proc, &job, 0), None);
            std::os::unix::fs::chown(proc.join("8"), Some(1234), None).unwrap();
            assert_eq!(user_of_processes(&proc, &job, 0), Some(1234));
        } else {
            assert_eq!(user_of_processes(&proc, &job, 0), Some(who.as_raw()));
        }
        assert_eq!(user_of_processes(&proc, &folder.path().join("job_2"), 0), None);
    }

    #[test]
    fn names_of_groups_are_recognized() {
        assert_eq!(number_after("job_123", "job_"), Some(123));
        for none in ["job_", "job_+1", "job_12x", "job_99999999999", "uid_1"] {
            assert_eq!(number_after(none, "job_"), None, "{none}");
        }
        assert!(is_legacy_root("slurm") && is_legacy_root("slurm_n1") && !is_legacy_root("slurmx"));
        assert!(is_scope("n1_slurmstepd.scope") && !is_scope("xslurmstepd.scope"));
    }
}
