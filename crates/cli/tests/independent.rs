//! `evenhand study` and `evenhand allocate` against the independent programs in `tests/independent` (Python).
//!
//! A few dozen generated traces here; hundreds, and real ones, with
//! `python3 tests/independent/compare.py target/release/evenhand --cases 1000`
//! and `python3 tests/independent/compare_allocate.py target/release/evenhand --cases 3000`.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

use std::path::Path;
use std::process::Command;

#[test]
fn both_programs_start_every_task_at_the_same_nanosecond() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/independent/compare.py");
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: there is no python3");
        return;
    }
    // As many cases as finish in half a minute, but at least ten.
    let output = Command::new("python3")
        .arg(&script)
        .args([env!("CARGO_BIN_EXE_evenhand"), "--cases", "120", "--seconds", "30", "--threads", "2"])
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}\n{}", String::from_utf8_lossy(&output.stderr));
    let compared: u32 = printed.rsplit_once(" compared").unwrap().0.lines().last().unwrap().parse().unwrap();
    assert!(compared >= 10, "{printed}");
    eprintln!("{printed}");
}

#[test]
fn both_programs_divide_alike() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/independent/compare_allocate.py");
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: there is no python3");
        return;
    }
    let output =
        Command::new("python3").arg(&script).args([env!("CARGO_BIN_EXE_evenhand"), "--cases", "150"]).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}\n{}", String::from_utf8_lossy(&output.stderr));
    eprintln!("{printed}");
}
