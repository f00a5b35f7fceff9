//! Power failures and kills at any moment of a verb that writes results: the same command, run again, gives the same
//! bytes as without them.
//!
//! The program runs with a library that records its operations on files in order. From the record a test builds the disk
//! that a power failure at any point would have left, in two ways that file systems allow: everything that was not synced
//! is gone (entries of folders too); or renames and new entries reached the disk but the content that was not synced did
//! not. The same library kills the program (SIGKILL) before any operation or write.

mod crashed_disk;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use evenhand_model::random::Stream;
use serde_json::Value;

use self::crashed_disk::{Lost, OperationLog};
use crate::test_folder::{SWF, TestFolder};

/// How many power failures and how many kills each verb survives here; the moments are random, by seed.
const POWER_FAILURES: usize = 12;
const KILLS: usize = 12;

/// A verb that writes results, and the files that it needs.
struct Case {
    args: &'static [&'static str],
    files: &'static [(&'static str, &'static str)],
}

const IMPORT: Case = Case { args: &["workload", "import", "lab.swf", "-o", "w.parquet"], files: &[("lab.swf", SWF)] };

const STUDY: Case = Case {
    args: &["study", "t.swf", "--policy", "fifo,drf", "--capacity", "1.2,2", "--out", "out/study", "--threads", "2"],
    files: &[("t.swf", SWF)],
};

const SWEEP: Case = Case {
    args: &["sweep", "grid.toml", "--out", "out", "--threads", "2"],
    files: &[
        ("t.swf", SWF),
        ("grid.toml", "workload = \"t.swf\"\npolicy = [\"fifo\", \"drf\", \"sdrf\"]\ncapacity = [1.2, 2]\n"),
    ],
};

#[test]
fn an_import_survives_power_failures_and_kills() {
    survives(&IMPORT);
}

#[test]
fn a_study_survives_power_failures_and_kills() {
    survives(&STUDY);
}

#[test]
fn a_sweep_survives_power_failures_and_kills() {
    survives(&SWEEP);
}

impl Case {
    fn folder(&self) -> TestFolder {
        let folder = TestFolder::new();
        for (name, content) in self.files {
            folder.write(name, content);
        }
        folder
    }
}

fn survives(case: &Case) {
    let Some(recorder) = Recorder::build() else { return };
    let undisturbed = case.folder();
    undisturbed.run(case.args).assert_succeeds();
    let expected = results(&undisturbed.path(""));

    // Once with everything recorded: what was reported as written is on the disk.
    let recorded = case.folder();
    let mut command = recorded.command(case.args);
    recorder.load(&mut command, &recorded);
    assert!(command.output().unwrap().status.success());
    let log = OperationLog::read(&recorder.path("log"), &recorder.path("snapshots"), &recorded.path(""));
    assert!(log.len() >= 4, "the library records nothing");
    assert_eq!(results(&recorded.path("")), expected);
    let survived = TestFolder::new();
    log.write_disk_after(log.len(), Lost::EverythingUnsynced, &case_files(case), &survived.path(""));
    assert_eq!(results(&survived.path("")), expected, "reported as written, but a power failure loses it");

    let mut random = Stream::new(14, "moments", 0);
    for round in 0..POWER_FAILURES {
        let at = random.below(log.len() as u64) as usize;
        let lost = if round % 2 == 0 { Lost::EverythingUnsynced } else { Lost::UnsyncedContent };
        let disk = TestFolder::new();
        log.write_disk_after(at, lost, &case_files(case), &disk.path(""));
        disk.run(case.args).assert_succeeds();
        assert_eq!(results(&disk.path("")), expected, "power failure after operation {at}: {lost:?}");
        disk.assert_no_temporary_files();
    }

    let moments = std::fs::metadata(recorder.path("count")).unwrap().len();
    for _ in 0..KILLS {
        let at = 1 + random.below(moments);
        let folder = case.folder();
        let mut command = folder.command(case.args);
        recorder.load(&mut command, &folder);
        command.env("FAULT_KILL_AT", at.to_string());
        // With several threads, the number of operations differs from run to run: the last may never come.
        let status = command.output().unwrap().status;
        assert!(status.success() || status.code().is_none(), "{status}");
        folder.run(case.args).assert_succeeds();
        assert_eq!(results(&folder.path("")), expected, "killed before operation {at} of {moments}");
        folder.assert_no_temporary_files();
    }
}

fn case_files(case: &Case) -> BTreeMap<PathBuf, Vec<u8>> {
    case.files.iter().map(|(name, content)| (PathBuf::from(name), content.as_bytes().to_vec())).collect()
}

/// The library that records and kills, and where it records.
struct Recorder {
    folder: TestFolder,
}

impl Recorder {
    /// Compiles the library. Returns `None`, with a note, where there is no compiler for it.
    fn build() -> Option<Recorder> {
        let folder = TestFolder::new();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/power_failure/record_file_operations.c");
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o"])
            .arg(folder.path("record.so"))
            .arg(source)
            .output();
        match compiled {
            Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
            Err(e) => {
                eprintln!("skipped: cannot run the C compiler: {e}");
                return None;
            }
        }
        Some(Recorder { folder })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path(name)
    }

    /// Makes `command` record what it does in `root`, in place of what was recorded before.
    fn load(&self, command: &mut Command, root: &TestFolder) {
        for name in ["log", "count"] {
            std::fs::write(self.path(name), "").unwrap();
        }
        let _ = std::fs::remove_dir_all(self.path("snapshots"));
        std::fs::create_dir(self.path("snapshots")).unwrap();
        command.env("LD_PRELOAD", self.path("record.so"));
        command.env("FAULT_ROOT", std::fs::canonicalize(root.path("")).unwrap());
        for (variable, name) in [("FAULT_LOG", "log"), ("FAULT_COUNT", "count"), ("FAULT_SNAPSHOTS", "snapshots")] {
            command.env(variable, self.path(name));
        }
    }
}

/// Returns the content of all files below a folder, without the times that computations took, the folder, and what depends on them.
fn results(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for path in crate::test_folder::files_below(folder) {
        let (name, content) = (path.display().to_string(), std::fs::read(folder.join(&path)).unwrap());
        let text = String::from_utf8_lossy(&content).into_owned();
        // A lock file that a kill or a power failure left locks nothing. The study's page shows times.
        if name.ends_with(".evenhand-lock") || name.ends_with("timing.csv") || name.ends_with("study/index.html") {
            continue;
        }
        let text = match serde_json::from_str::<Value>(&text) {
            Ok(mut value) if name.ends_with(".json") => {
                remove_times_and_folder(&mut value);
                value.to_string()
            }
            _ => text,
        };
        found.insert(path, text);
    }
    found
}

fn remove_times_and_folder(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(remove_times_and_folder),
        Value::Object(fields) => {
            fields.retain(|name, _| !["elapsed_s", "check", "base"].contains(&name.as_str()));
            fields.values_mut().for_each(remove_times_and_folder);
        }
        _ => {}
    }
}
