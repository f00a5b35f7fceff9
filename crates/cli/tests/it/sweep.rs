//! Sweeps on this machine. Those on a real Slurm are in tests/slurm at the root.

use crate::test_folder::{CSV, ProgramOutput, TestFolder};

const GRID: &str = "workload = \"w.csv\"\npolicy = [\"fifo\", \"drf\", \"sdrf\"]\ncapacity = [1.2, 2]\n";

fn folder() -> TestFolder {
    let folder = TestFolder::with("w.csv", CSV);
    folder.write("grid.toml", GRID);
    folder
}

#[test]
fn the_page_and_its_figures_do_not_depend_on_threads() {
    let folder = folder();
    for (threads, out) in [("1", "one"), ("4", "four")] {
        folder.run(&["sweep", "grid.toml", "--threads", threads, "--out", out]).assert_succeeds();
    }
    let figures = || std::fs::read_dir(folder.path("one/figures")).unwrap().map(|e| e.unwrap().file_name());
    assert!(figures().count() > 3);
    for name in figures().map(|name| format!("figures/{}", name.to_string_lossy())).chain(["index.html".into()]) {
        assert_eq!(folder.read(&format!("one/{name}")), folder.read(&format!("four/{name}")), "{name}");
    }
}

#[test]
fn a_sweep_writes_a_row_per_point_and_json_has_the_same_numbers() {
    let folder = folder();
    let output = folder.run(&["sweep", "grid.toml", "--out", "out", "--format", "json"]).assert_succeeds();
    assert_eq!(output.json(), folder.json("out/sweep.json"));
    assert_eq!(output.json()["points"].as_array().unwrap().len(), 6);
    let csv = folder.read("out/results.csv");
    assert_eq!(csv.lines().count(), 7);
    assert!(csv.starts_with("point,workload,seed,weights,until,no_blocking,capacity,policy,"), "{csv}");
    assert!(csv.contains("\n4,w.csv,,equal,finished,false,2,drf,,,,,"), "{csv}");
    assert!(folder.read("out/index.html").contains("<svg"));
    assert!(!csv.contains("elapsed") && !folder.read("out/sweep.json").contains("elapsed"));
    // A study of the same runs gives the same numbers.
    let study =
        ["study", "w.csv", "--policy", "fifo,drf,sdrf", "--capacity", "1.2,2", "--out", "s", "--format", "json"];
    let study = folder.run(&study).assert_succeeds().json();
    for (point, run) in output.json()["points"].as_array().unwrap().iter().zip(study["runs"].as_array().unwrap()) {
        for field in
            ["policy", "mean_wait_s", "users_mean_wait_s", "jain_wait", "utilization", "decisions", "makespan_s"]
        {
            assert_eq!(point[field], run[field], "{field}");
        }
    }
}

#[test]
fn invalid_input_is_rejected_before_anything_is_written() {
    let folder = folder();
    folder.write("bad.toml", GRID.replace("drf\", \"sdrf", "drf\", \"srdf"));
    folder.assert_rejects(&["sweep", "bad.toml"], 2, &["bad.toml:2:", "found \"srdf\"", "did you mean \"sdrf\"?", "^"]);
    folder.assert_rejects(&["sweep", "no.toml"], 2, &["no.toml"]);
    folder.assert_rejects(&["sweep", "grid.toml", "--memory", "much"], 2, &["--memory: found \"much\""]);
    folder.assert_rejects(&["sweep"], 2, &["GRID.toml"]);
    folder.assert_rejects(&["sweep", "status", "."], 2, &["is not the folder of a sweep"]);
    folder.assert_rejects(&["sweep-task", ".", "0"], 2, &["is not the folder of a sweep"]);
    let before = folder.files();
    folder.run(&["sweep", "grid.toml", "--check"]).assert_succeeds();
    assert_eq!(folder.files(), before, "a check writes nothing");
    folder
        .run(&["sweep", "grid.toml", "--memory", "1Mi"])
        .assert_fails(2, &["w.csv needs about 8.0 MiB", "--memory allows"]);
}

#[test]
fn options_of_job_arrays_are_rejected_without_them() {
    let folder = folder();
    for option in [&["--partition", "p"][..], &["--chunk", "4"], &["--wait"]] {
        let all = [&["sweep", "grid.toml", "--out", "out"][..], option].concat();
        folder.assert_rejects(&all, 2, &[option[0], "has an effect on job arrays only; add --engine slurm"]);
        folder.assert_rejects(&[&all[..], &["--check"]].concat(), 2, &[option[0]]);
    }
    assert!(!folder.path("out").exists());
}

#[test]
fn the_engine_slurm_without_slurm_is_a_failure_of_the_environment() {
    let folder = folder();
    let mut command = folder.command(&["sweep", "grid.toml", "--engine", "slurm", "--out", "out"]);
    ProgramOutput::of(command.env("PATH", folder.path("")).output().unwrap())
        .assert_fails(3, &["there is no squeue here", "--engine local"]);
}

#[cfg(unix)]
#[test]
fn the_same_command_continues_an_interrupted_sweep() {
    let folder = TestFolder::new();
    let grid = "generate = { tasks = 60000, users = 200, days = 1, seeds = [1, 2] }\npolicy = [\"fifo\", \"drf\", \"asset\"]\n\
                capacity = [0.5, 0.55, 0.6, 0.65, 0.7]\n";
    folder.write("grid.toml", grid);
    let sweep = ["sweep", "grid.toml", "--out", "out", "--threads", "1", "--format", "json"];
    let child = folder.command(&sweep).spawn().unwrap();
    let finished = || std::fs::read_dir(folder.path("out/points")).map_or(0, Iterator::count);
    let begun = std::time::Instant::now();
    while finished() < 3 {
        assert!(begun.elapsed().as_secs() < 60, "no point finishes");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = ProgramOutput::of(child.wait_with_output().unwrap());
    assert_eq!(output.status, 3, "{output:?}");
    assert!(output.stderr.contains("interrupted") && output.stderr.contains("same command"), "{}", output.stderr);
    let (done, missing) = (output.json()["points"].clone(), output.json()["missing"].clone());
    let (done, missing) = (done.as_array().unwrap().len(), missing.as_array().unwrap().len());
    assert!(done >= 3 && missing > 0 && done + missing == 30, "{done} {missing}");
    let whole = folder.run(&sweep).assert_succeeds().json();
    assert_eq!(
        whole,
        folder.run(&["sweep", "grid.toml", "--out", "fresh", "--format", "json"]).assert_succeeds().json()
    );
    assert_eq!(folder.read("out/results.csv"), folder.read("fresh/results.csv"));
}
