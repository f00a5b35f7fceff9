//! A disk that is full.

#![cfg(unix)]

use std::process::Command;

use crate::bench::{Bench, Ran};

/// Runs with files limited to `kilobytes`: where writing more fails, as on a full disk.
fn run_limited(bench: &Bench, kilobytes: u32, args: &[&str]) -> Ran {
    let mut command = Command::new("bash");
    // The limit is in blocks of 1,024 bytes; the signal that comes with it is ignored, so that the
    // write itself fails.
    let script = format!("trap '' XFSZ; ulimit -f {kilobytes}; exec \"$0\" \"$@\"");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_evenhand")]).args(args);
    command.current_dir(bench.path(""));
    Ran::of(command.output().unwrap())
}

fn workload(bench: &Bench) {
    bench.run(&["workload", "generate", "--tasks", "20000", "--users", "10", "-o", "w.parquet"]).done();
}

#[test]
fn files_that_may_not_grow() {
    if Command::new("bash").arg("--version").output().is_err() {
        eprintln!("skipped: there is no bash to limit the size of files with");
        return;
    }
    let bench = Bench::new();
    workload(&bench);
    let before = bench.files();
    let generate = ["workload", "generate", "--tasks", "100000", "--users", "10", "-o", "big.parquet"];
    run_limited(&bench, 8, &generate).refused(3, &["big.parquet"]);
    assert_eq!(bench.files(), before, "nothing is left behind");
    for tasks in [&["--tasks-csv"][..], &[]] {
        let study = [&["study", "w.parquet", "--out", "out", "--policy", "fifo", "--capacity", "0.5"], tasks].concat();
        run_limited(&bench, 8, &study).refused(3, &["out/"]);
        bench.holds_nothing_half_written();
        assert!(!bench.path("out/summary.json").exists(), "no summary of a study that failed");
        assert!(!bench.path("out/index.html").exists(), "no report of a study that failed");
    }
    // With room again the same command finishes.
    bench.run(&["study", "w.parquet", "--out", "out", "--policy", "fifo", "--capacity", "0.5"]).done();
    assert!(bench.path("out/index.html").exists());
}

/// A small file system of its own, unmounted when dropped.
struct Mount<'a>(&'a std::path::Path);

impl Drop for Mount<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

#[test]
fn a_full_file_system() {
    let bench = Bench::new();
    workload(&bench);
    let small = bench.path("small");
    std::fs::create_dir(&small).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"]).arg(&small).output();
    if !mounted.is_ok_and(|o| o.status.success()) {
        eprintln!("skipped: this user may not mount a small file system");
        return;
    }
    let _mount = Mount(&small);
    let study = ["study", "w.parquet", "--out", "small/out"];
    bench.run(&study).refused(3, &["small/out/", "No space left on device"]);
    bench.holds_nothing_half_written();
    assert!(!bench.path("small/out/index.html").exists());
    let import = ["workload", "generate", "--tasks", "100000", "--users", "9", "-o", "small/w.parquet"];
    bench.run(&import).refused(3, &["small/w.parquet", "No space left on device"]);
    assert!(!bench.path("small/w.parquet").exists());
    bench.holds_nothing_half_written();
}

#[test]
fn standard_output_that_is_full() {
    let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") else {
        eprintln!("skipped: there is no /dev/full");
        return;
    };
    let bench = Bench::with("w.csv", crate::bench::CSV);
    let output = bench.command(&["workload", "describe", "w.csv", "--format", "json"]).stdout(full).output().unwrap();
    Ran::of(output).refused(3, &["No space left on device"]);
}
