//! Slurm's jobs.
//!
//! - Plugin cgroup/v1 (up to Slurm 22.05 the only one): `slurm/uid_1000/job_123/step_0`, and `slurm_NODE` where
//!   several daemons run on one machine.
//! - Plugin cgroup/v2: `system.slice/slurmstepd.scope/job_123/step_0/user/task_0`, and `NODE_slurmstepd.scope`.
//!
//! What is weighed is the job.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use evenhand_documents::{DocumentError, Table};
use evenhand_enforcers::cgroups::{Hierarchies, Listed};

use crate::discovery::paths::{children, last};
use crate::discovery::roll::{Found, Roll, such_as};
use crate::discovery::users::{Called, Users};
use crate::discovery::{Guest, GuestError, Registration, Source, limits};

pub(crate) const SOURCE: Registration = Registration {
    name: "slurm",
    about: "Slurm's jobs on this node, whose users are those of their folders or processes",
    build,
};

struct Slurm {
    hierarchies: Hierarchies,
    users: Users,
    roll: Roll,
    /// Jobs in which no process of a user runs, and the first of them.
    without: (usize, String),
}

fn build(table: &Table<'_>, hierarchies: &Hierarchies) -> Result<Box<dyn Source>, DocumentError> {
    let roll = Roll::read(table, &[])?;
    let without = (0, String::new());
    Ok(Box::new(Slurm { hierarchies: hierarchies.clone(), users: Users::default(), roll, without }))
}

fn number_after(name: &str, prefix: &str) -> Option<u32> {
    let digits = name.strip_prefix(prefix)?;
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

/// Whether it holds the users' folders of the plugin cgroup/v1.
fn is_legacy_root(name: &str) -> bool {
    name == "slurm" || name.starts_with("slurm_")
}

/// Whether it holds the jobs of the plugin cgroup/v2.
fn is_scope(name: &str) -> bool {
    name == "slurmstepd.scope" || name.ends_with("_slurmstepd.scope")
}

/// The user of the first process below a group that is not root's: each step has a process of Slurm itself.
fn user_of_processes(root: &Path, group: &Path, depth: usize) -> Option<u32> {
    // job / step / user / task, and whatever a job made for itself below.
    const DEEPEST: usize = 6;
    let listed = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    let uid = |pid: &str| Some(fs::metadata(root.join(pid)).ok()?.uid());
    let pids = listed.lines().filter(|line| !line.is_empty() && line.bytes().all(|b| b.is_ascii_digit()));
    if let Some(uid) = pids.filter_map(uid).find(|uid| *uid != 0) {
        return Some(uid);
    }
    if depth == DEEPEST {
        return None;
    }
    let mut below: Vec<_> =
        fs::read_dir(group).ok()?.flatten().filter(|e| e.file_type().is_ok_and(|t| t.is_dir())).collect();
    below.sort_by_key(fs::DirEntry::file_name);
    below.iter().find_map(|entry| user_of_processes(root, &entry.path(), depth + 1))
}

impl Slurm {
    /// The jobs right below `parent`; `uid` is whose they are, if the folders say so.
    fn jobs(&mut self, parent: &str, uid: Option<u32>) -> Result<(), GuestError> {
        for job in children(&self.hierarchies, parent)? {
            if !self.roll.has(&job.path, job.identity) && number_after(last(&job.path), "job_").is_some() {
                self.job(job, uid);
            }
        }
        Ok(())
    }

    fn job(&mut self, job: Listed, of_folder: Option<u32>) {
        let root = self.hierarchies.main().unwrap_or(Path::new(""));
        let running = user_of_processes(Path::new("/proc"), &root.join(&job.path), 0);
        let Some(uid) = of_folder.or(running) else {
            if self.without.0 == 0 {
                self.without.1.clone_from(&job.path);
            }
            self.without.0 += 1;
            return;
        };
        let (called, so) = match self.users.name(uid) {
            Called::So(owner) => (owner, true),
            Called::ForNow(owner) => (owner, false),
        };
        let found = Found {
            name: last(&job.path).trim_start_matches("job_").to_owned(),
            owner: Some(called),
            devices: Vec::new(),
            processors: limits::cpuset(&self.hierarchies, &job.path),
            memory_bytes: limits::memory(&self.hierarchies, &job.path),
        };
        // Slurm sets limits before it lets the user's processes in; until then the answer may be an early one.
        if so && running.is_some() {
            self.roll.keep(job.path, job.identity, Some(found));
        } else {
            self.roll.pass(&job.path, job.identity, &found);
        }
    }
}

impl Source for Slurm {
    fn look(&mut self) -> Result<Vec<Arc<Guest>>, GuestError> {
        self.users.begin();
        self.roll.begin();
        self.without.0 = 0;
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
        Ok(self.roll.end())
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks: Vec<String> = self.users.problem().map(str::to_owned).into_iter().collect();
        if self.without.0 > 0 {
            remarks.push(format!("no process of a user runs in {}", such_as(self.without.0, &self.without.1)));
        }
        self.roll.remarks(&mut remarks);
        remarks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_is_the_first_that_is_not_root() {
        let folder = tempfile::tempdir().unwrap();
        let (job, proc) = (folder.path().join("job_1"), folder.path().join("proc"));
        for (group, pids) in [("step_0/slurm", "7\n"), ("step_0/user/task_0", "9999\n8\nx\n")] {
            fs::create_dir_all(job.join(group)).unwrap();
            fs::write(job.join(group).join("cgroup.procs"), pids).unwrap();
        }
        // Process 7 is root's, or whoever runs this test.
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
    fn names_of_folders() {
        assert_eq!(number_after("job_123", "job_"), Some(123));
        for none in ["job_", "job_+1", "job_12x", "job_99999999999", "uid_1"] {
            assert_eq!(number_after(none, "job_"), None, "{none}");
        }
        assert!(is_legacy_root("slurm") && is_legacy_root("slurm_n1") && !is_legacy_root("slurmx"));
        assert!(is_scope("n1_slurmstepd.scope") && !is_scope("xslurmstepd.scope"));
    }
}
