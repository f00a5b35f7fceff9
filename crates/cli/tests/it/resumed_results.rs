//! Results that a later command finds in its folder, and folders that another command uses.

use std::process::{Child, Command};

use crate::test_folder::{CSV, ProgramOutput, TestFolder};

const STUDY: [&str; 8] = ["study", "w.csv", "--policy", "fifo,drf", "--capacity", "1.2", "--out", "out"];

fn studied() -> TestFolder {
    let folder = TestFolder::with("w.csv", CSV);
    folder.run(&STUDY).assert_succeeds();
    folder
}

#[test]
fn a_study_repeats_runs_whose_files_are_not_as_they_were_written() {
    let folder = studied();
    let (tasks, users) =
        (std::fs::read(folder.path("out/tasks-drf-1.2.parquet")).unwrap(), folder.read("out/users.csv"));
    let again = folder.run(&STUDY).assert_succeeds();
    assert!(!again.stderr.contains("done again"), "{again:?}");

    folder.write("out/tasks-drf-1.2.parquet", "");
    let again = folder.run(&STUDY).assert_succeeds();
    assert!(again.stderr.contains("Run drf-1.2 was in the folder and is done again: out/tasks-drf-1.2.parquet"));
    assert!(!again.stderr.contains("fifo-1.2"), "{again:?}");
    assert_eq!(std::fs::read(folder.path("out/tasks-drf-1.2.parquet")).unwrap(), tasks);

    let edited =
        folder.read("out/runs/fifo-1.2.json").replacen("\"users_mean_wait_s\": 0", "\"users_mean_wait_s\": 9", 1);
    let edited = edited.replacen("\"started\": 4", "\"started\": 5", 1);
    folder.write("out/runs/fifo-1.2.json", edited);
    let again = folder.run(&STUDY).assert_succeeds();
    assert!(again.stderr.contains("Run fifo-1.2 was in the folder and is done again: out/runs/fifo-1.2.json"));
    assert_eq!(folder.read("out/users.csv"), users);
}

#[test]
fn a_sweep_repeats_points_whose_files_are_not_as_they_were_written() {
    let folder = TestFolder::with("w.csv", CSV);
    folder.write("grid.toml", "workload = \"w.csv\"\npolicy = [\"fifo\", \"drf\"]\ncapacity = [1.2, 2]\n");
    let sweep = ["sweep", "grid.toml", "--out", "out"];
    folder.run(&sweep).assert_succeeds();
    let results = folder.read("out/results.csv");
    let mut points: Vec<_> = folder.files().into_iter().filter(|name| name.starts_with("out/points/")).collect();
    points.retain(|name| folder.path("").join(name).is_file());
    let name = points[0].display().to_string();
    let text = folder.read(&name);
    for damaged in
        [text.replacen("\"submitted\": ", "\"submitted\": 1", 1), text[..text.len() / 2].into(), String::new()]
    {
        assert_ne!(damaged, text);
        folder.write(&name, &damaged);
        let again = folder.run(&sweep).assert_succeeds();
        assert!(again.stderr.contains(&format!("{name} is damaged")), "{again:?}");
        assert_eq!(folder.read("out/results.csv"), results);
    }
}

/// A process that is killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_folder_in_use_is_refused_with_who_uses_it() {
    let folder = TestFolder::with("w.csv", CSV);
    folder.run(&["workload", "generate", "--tasks", "200000", "--users", "100", "-o", "w.parquet"]).assert_succeeds();
    let slow = ["study", "w.parquet", "--capacity", "0.3,0.4,0.5,0.6", "--threads", "1", "--out", "out"];
    let first = Running(folder.command(&slow).spawn().unwrap());
    while !folder.path("out/.evenhand-lock").exists() || folder.read("out/.evenhand-lock").is_empty() {
        std::thread::yield_now();
    }
    let refused = folder.run(&STUDY);
    let text = format!("in use by process {} on ", first.0.id());
    refused.assert_fails(3, &["out", &text, "evenhand study w.parquet", "name another folder"]);
    // A process that is killed leaves no lock.
    let id = first.0.id().to_string();
    assert!(Command::new("kill").args(["-KILL", &id]).status().unwrap().success());
    drop(first);
    let second: ProgramOutput = folder.run(&STUDY);
    second.assert_succeeds();
    assert!(!folder.path("out/.evenhand-lock").exists());
}
