//! Ctrl-C during a study.

#![cfg(unix)]

use std::process::Command;
use std::time::{Duration, Instant};

use crate::test_folder::{ProgramOutput, TestFolder};

#[test]
fn an_interrupted_study_keeps_finished_runs_and_the_same_command_completes_it() {
    let folder = TestFolder::new();
    let generate = ["workload", "generate", "--tasks", "150000", "--users", "300", "--days", "1", "-o", "w.parquet"];
    folder.run(&generate).assert_succeeds();
    let study = [
        "study",
        "w.parquet",
        "--out",
        "out",
        "--threads",
        "1",
        "--no-tasks",
        "--policy",
        "fifo,drf,asset,sdrf",
        "--capacity",
        "0.5,0.55,0.6,0.65,0.7",
        "--delta",
        "0.99,0.9999,0.999999",
        "--format",
        "json",
    ];
    let all_runs = 5 * (3 + 3);
    let child = folder.command(&study).spawn().unwrap();
    let finished = || {
        std::fs::read_dir(folder.path("out/runs"))
            .map_or(0, |d| d.filter(|e| e.as_ref().unwrap().path().extension().is_some_and(|x| x == "json")).count())
    };
    let begun = Instant::now();
    while finished() < 3 {
        assert!(begun.elapsed() < Duration::from_secs(60), "no run finishes");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = ProgramOutput::of(child.wait_with_output().unwrap());
    assert_eq!(output.status, 3, "{output:?}");
    assert!(output.stderr.contains("interrupted") && output.stderr.contains("same command"), "{}", output.stderr);
    folder.assert_no_temporary_files();

    // What is there is whole, and what is not is named.
    let summary = folder.json("out/summary.json");
    assert_eq!(output.json(), summary);
    let (runs, missing) = (summary["runs"].as_array().unwrap(), summary["missing"].as_array().unwrap());
    assert!(runs.len() >= 3 && !missing.is_empty(), "{} runs, {missing:?}", runs.len());
    assert_eq!(runs.len() + missing.len(), all_runs);
    for id in missing {
        assert!(output.stderr.contains(id.as_str().unwrap()), "{id} is not in: {}", output.stderr);
        assert!(folder.read("out/index.html").contains(id.as_str().unwrap()), "the report names {id}");
    }

    // The same command does only the rest: what was finished keeps even its time.
    let whole = folder.run(&study).assert_succeeds().json();
    assert!(whole["missing"].as_array().unwrap().is_empty());
    let completed = whole["runs"].as_array().unwrap();
    assert_eq!(completed.len(), all_runs);
    assert!(runs.iter().all(|run| completed.contains(run)));
}

/// Conservative backfilling decides about every waiting job at each early finish, which takes minutes here; the signal of
/// a service manager ends it before the next decision.
#[test]
fn sigterm_ends_conservative_backfilling() {
    let folder = TestFolder::new();
    let generate = ["workload", "generate", "--tasks", "150000", "--users", "300", "--days", "1", "-o", "w.parquet"];
    folder.run(&generate).assert_succeeds();
    let study =
        ["study", "w.parquet", "--out", "out", "--policy", "drf", "--capacity", "0.3", "--backfill", "conservative"];
    let child = folder.command(&study).spawn().unwrap();
    let begun = Instant::now();
    while !folder.path("out").exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "the study does not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
    // Until the queue is long.
    std::thread::sleep(Duration::from_secs(2));
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    let output = ProgramOutput::of(child.wait_with_output().unwrap());
    assert_eq!(output.status, 3, "{output:?}");
    assert!(output.stderr.contains("interrupted") && output.stderr.contains("drf-0.3"), "{}", output.stderr);
}
