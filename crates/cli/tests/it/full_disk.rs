//! Writing to a full disk or a full output.

#![cfg(unix)]

use std::process::Command;

use crate::test_folder::{ProgramOutput, TestFolder};

/// Runs the program with files limited to `kilobytes`; writing more fails, as on a full disk.
fn run_limited(folder: &TestFolder, kilobytes: u32, args: &[&str]) -> ProgramOutput {
    let mut command = Command::new("bash");
    // The limit is in blocks of 1,024 bytes; the signal XFSZ is ignored, so that the
    // write itself fails.
    let script = format!("trap '' XFSZ; ulimit -f {kilobytes}; exec \"$0\" \"$@\"");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_evenhand")]).args(args);
    command.current_dir(folder.path(""));
    ProgramOutput::of(command.output().unwrap())
}

fn workload(folder: &TestFolder) {
    folder.run(&["workload", "generate", "--tasks", "20000", "--users", "10", "-o", "w.parquet"]).assert_succeeds();
}

#[test]
fn a_failed_write_leaves_no_partial_file() {
    if Command::new("bash").arg("--version").output().is_err() {
        eprintln!("skipped: there is no bash to limit the size of files with");
        return;
    }
    let folder = TestFolder::new();
    workload(&folder);
    let before = folder.files();
    let generate = ["workload", "generate", "--tasks", "100000", "--users", "10", "-o", "big.parquet"];
    run_limited(&folder, 8, &generate).assert_fails(3, &["big.parquet"]);
    assert_eq!(folder.files(), before, "nothing is left behind");
    for tasks in [&["--tasks-csv"][..], &[]] {
        let study = [&["study", "w.parquet", "--out", "out", "--policy", "fifo", "--capacity", "0.5"], tasks].concat();
        run_limited(&folder, 8, &study).assert_fails(3, &["out/"]);
        folder.assert_no_temporary_files();
        assert!(!folder.path("out/summary.json").exists(), "no summary of a study that failed");
        assert!(!folder.path("out/index.html").exists(), "no report of a study that failed");
    }
    // Without the limit, the same command finishes.
    folder.run(&["study", "w.parquet", "--out", "out", "--policy", "fifo", "--capacity", "0.5"]).assert_succeeds();
    assert!(folder.path("out/index.html").exists());
}

/// A small file system of its own, unmounted when dropped.
struct Mount<'a>(&'a std::path::Path);

impl Drop for Mount<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

#[test]
fn a_full_file_system_is_a_failure_of_the_environment() {
    let folder = TestFolder::new();
    workload(&folder);
    let small = folder.path("small");
    std::fs::create_dir(&small).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"]).arg(&small).output();
    if !mounted.is_ok_and(|o| o.status.success()) {
        eprintln!("skipped: this user may not mount a small file system");
        return;
    }
    let _mount = Mount(&small);
    let study = ["study", "w.parquet", "--out", "small/out"];
    folder.run(&study).assert_fails(3, &["small/out/", "No space left on device"]);
    folder.assert_no_temporary_files();
    assert!(!folder.path("small/out/index.html").exists());
    let import = ["workload", "generate", "--tasks", "100000", "--users", "9", "-o", "small/w.parquet"];
    folder.run(&import).assert_fails(3, &["small/w.parquet", "No space left on device"]);
    assert!(!folder.path("small/w.parquet").exists());
    folder.assert_no_temporary_files();
}

#[test]
fn a_full_standard_output_is_a_failure_of_the_environment() {
    let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") else {
        eprintln!("skipped: there is no /dev/full");
        return;
    };
    let folder = TestFolder::with("w.csv", crate::test_folder::CSV);
    let output = folder.command(&["workload", "describe", "w.csv", "--format", "json"]).stdout(full).output().unwrap();
    ProgramOutput::of(output).assert_fails(3, &["No space left on device"]);
}
