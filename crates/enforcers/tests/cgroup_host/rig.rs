//! Creates control groups and processes for a test, and removes them when the test ends.

use std::fs;
use std::io;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use evenhand_enforcers::cgroups::{Group, Hierarchies};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};

/// Serializes the tests that measure ratios.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
static NUMBER: AtomicUsize = AtomicUsize::new(0);

/// A parent group in each hierarchy, and the processes in its children.
pub(crate) struct Rig {
    pub(crate) hierarchies: Hierarchies,
    pub(crate) parent: String,
    roots: Vec<(String, PathBuf)>,
    children: Vec<Running>,
    _turn: MutexGuard<'static, ()>,
}

/// A child process; killed when the rig is dropped.
#[derive(Clone)]
pub(crate) struct Running(Arc<Mutex<Child>>);

impl Running {
    pub(crate) fn wait(&mut self) {
        self.0.lock().unwrap().wait().unwrap();
    }
}

/// Creates a parent group. Returns `None` unless these v1 controllers can be written.
pub(crate) fn rig(needed: &[&str]) -> Option<Rig> {
    let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let hierarchies = Hierarchies::detect().unwrap();
    if let Some(missing) = needed.iter().find(|c| !hierarchies.legacy.contains_key(**c)) {
        eprintln!("skipped: version 1 has no controller {missing} here");
        return None;
    }
    let mut roots: Vec<(String, PathBuf)> = Vec::new();
    let unified = hierarchies.unified.iter().map(|root| (String::new(), root.clone()));
    let wanted = hierarchies.legacy.iter().filter(|(c, _)| ["cpu", "cpuacct", "memory", "blkio"].contains(&c.as_str()));
    for (name, root) in wanted.map(|(c, r)| (c.clone(), r.clone())).chain(unified) {
        // Two controllers may share a hierarchy.
        if !roots.iter().any(|(_, other)| *other == root) {
            roots.push((name, root));
        }
    }
    let parent = format!("evenhand-test-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let rig = Rig { hierarchies, parent, roots, children: Vec::new(), _turn: turn };
    for (_, root) in &rig.roots {
        if let Err(error) = fs::create_dir(root.join(&rig.parent)) {
            eprintln!("skipped: no group can be created in {}: {error}", root.display());
            return None;
        }
    }
    Some(rig)
}

/// Repeats a measurement until it is in range, at most this often, because other processes disturb it.
pub(crate) fn within(attempts: usize, range: RangeInclusive<f64>, mut measure: impl FnMut() -> f64) {
    let mut seen = Vec::new();
    for _ in 0..attempts {
        let value = measure();
        seen.push(value);
        if range.contains(&value) {
            return eprintln!("measured {seen:.2?}");
        }
    }
    panic!("{seen:.2?} is not in {range:?}");
}

impl Rig {
    /// Creates a group in every hierarchy that does not have it.
    pub(crate) fn group(&mut self, name: &str) -> Group {
        let path = format!("{}/{name}", self.parent);
        for (_, root) in &self.roots {
            match fs::create_dir(root.join(&path)) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => panic!("{error}"),
                _ => {}
            }
        }
        Group { path, ..Group::default() }
    }

    /// Runs a command in a group, optionally on one processor only.
    pub(crate) fn run(&mut self, group: &Group, command: &[&str], processor: Option<usize>) -> Running {
        // The process waits for a line until it has been moved to its group.
        let waiting = ["-c", "read go && exec \"$@\"", "sh"];
        let child = Command::new("sh").args(waiting).args(command).stdin(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = child.unwrap();
        let pid = child.id();
        let mut go = child.stdin.take().unwrap();
        let running = Running(Arc::new(Mutex::new(child)));
        self.children.push(running.clone());
        for (_, root) in &self.roots {
            fs::write(root.join(&group.path).join("cgroup.procs"), pid.to_string()).unwrap();
        }
        if let Some(processor) = processor {
            let mut set = CpuSet::new();
            set.set(processor.min(std::thread::available_parallelism().unwrap().get() - 1));
            sched_setaffinity(Pid::from_raw(pid as i32), &set).unwrap();
        }
        io::Write::write_all(&mut go, b"\n").unwrap();
        running
    }

    fn folder(&self, controller: &str, group: &Group) -> Option<PathBuf> {
        let root = match controller {
            "" => self.hierarchies.unified.as_ref(),
            name => self.hierarchies.legacy.get(name),
        };
        Some(root?.join(&group.path))
    }

    pub(crate) fn has(&self, controller: &str, group: &Group, file: &str) -> bool {
        self.folder(controller, group).is_some_and(|folder| fs::read(folder.join(file)).is_ok())
    }

    pub(crate) fn read(&self, controller: &str, group: &Group, file: &str) -> Option<String> {
        fs::read_to_string(self.folder(controller, group)?.join(file)).ok()
    }

    pub(crate) fn write(&self, controller: &str, group: &Group, file: &str, text: &str) {
        fs::write(self.folder(controller, group).unwrap().join(file), text).unwrap();
    }

    pub(crate) fn remove(&self, controller: &str, group: &Group) {
        remove(&self.folder(controller, group).unwrap());
    }

    pub(crate) fn remove_all(&self, group: &Group) {
        self.roots.iter().for_each(|(_, root)| remove(&root.join(&group.path)));
    }

    /// Kills all processes.
    pub(crate) fn stop(&mut self) {
        // Includes their children: all processes in the groups, which belong to this test.
        for (_, root) in &self.roots {
            let Ok(groups) = fs::read_dir(root.join(&self.parent)) else { continue };
            for group in groups.flatten().filter(|group| group.path().is_dir()) {
                let inside = fs::read_to_string(group.path().join("cgroup.procs")).unwrap_or_default();
                for pid in inside.lines().filter_map(|line| line.parse().ok()).filter_map(Pid::from_raw) {
                    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
                }
            }
        }
        for child in self.children.drain(..) {
            let mut child = child.0.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Removes a group, which is possible once its last process has been reaped.
fn remove(folder: &PathBuf) {
    for _ in 0..200 {
        match fs::remove_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => sleep(Duration::from_millis(10)),
            _ => return,
        }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.stop();
        for (_, root) in &self.roots {
            let parent = root.join(&self.parent);
            for group in fs::read_dir(&parent).into_iter().flatten().flatten() {
                if group.path().is_dir() {
                    remove(&group.path());
                }
            }
            remove(&parent);
        }
    }
}
