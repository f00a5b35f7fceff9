//! Sweeps on this machine. Those on a real Slurm are in tests/slurm at the root.

use crate::bench::{Bench, CSV, Ran};

const GRID: &str = "workload = \"w.csv\"\npolicy = [\"fifo\", \"drf\", \"sdrf\"]\ncapacity = [1.2, 2]\n";

fn bench() -> Bench {
    let bench = Bench::with("w.csv", CSV);
    bench.write("grid.toml", GRID);
    bench
}

#[test]
fn the_page_and_its_figures_do_not_depend_on_threads() {
    let bench = bench();
    for (threads, out) in [("1", "one"), ("4", "four")] {
        bench.run(&["sweep", "grid.toml", "--threads", threads, "--out", out]).done();
    }
    let figures = || std::fs::read_dir(bench.path("one/figures")).unwrap().map(|e| e.unwrap().file_name());
    assert!(figures().count() > 3);
    for name in figures().map(|name| format!("figures/{}", name.to_string_lossy())).chain(["index.html".into()]) {
        assert_eq!(bench.read(&format!("one/{name}")), bench.read(&format!("four/{name}")), "{name}");
    }
}

#[test]
fn a_sweep_leaves_a_row_a_point_and_json_says_the_same() {
    let bench = bench();
    let ran = bench.run(&["sweep", "grid.toml", "--out", "out", "--format", "json"]).done();
    assert_eq!(ran.json(), bench.json("out/sweep.json"));
    assert_eq!(ran.json()["points"].as_array().unwrap().len(), 6);
    let csv = bench.read("out/results.csv");
    assert_eq!(csv.lines().count(), 7);
    assert!(csv.starts_with("point,workload,seed,weights,until,no_blocking,capacity,policy,"), "{csv}");
    assert!(csv.contains("\n4,w.csv,,equal,finished,false,2,drf,,,,,"), "{csv}");
    assert!(bench.read("out/index.html").contains("<svg"));
    assert!(!csv.contains("elapsed") && !bench.read("out/sweep.json").contains("elapsed"));
    // A study says the same of the same runs.
    let study =
        ["study", "w.csv", "--policy", "fifo,drf,sdrf", "--capacity", "1.2,2", "--out", "s", "--format", "json"];
    let study = bench.run(&study).done().json();
    for (point, run) in ran.json()["points"].as_array().unwrap().iter().zip(study["runs"].as_array().unwrap()) {
        for field in
            ["policy", "mean_wait_s", "users_mean_wait_s", "jain_wait", "utilization", "decisions", "makespan_s"]
        {
            assert_eq!(point[field], run[field], "{field}");
        }
    }
}

#[test]
fn what_is_wrong_is_said_before_anything_is_written() {
    let bench = bench();
    bench.write("bad.toml", GRID.replace("drf\", \"sdrf", "drf\", \"srdf"));
    bench.refuses(&["sweep", "bad.toml"], 2, &["bad.toml:2:", "found \"srdf\"", "did you mean \"sdrf\"?", "^"]);
    bench.refuses(&["sweep", "no.toml"], 2, &["no.toml"]);
    bench.refuses(&["sweep", "grid.toml", "--memory", "much"], 2, &["--memory: found \"much\""]);
    bench.refuses(&["sweep"], 2, &["GRID.toml"]);
    bench.refuses(&["sweep", "status", "."], 2, &["is not the folder of a sweep"]);
    bench.refuses(&["sweep-task", ".", "0"], 2, &["is not the folder of a sweep"]);
    let before = bench.files();
    bench.run(&["sweep", "grid.toml", "--check"]).done();
    assert_eq!(bench.files(), before, "a check writes nothing");
    bench.run(&["sweep", "grid.toml", "--memory", "1Mi"]).refused(2, &["w.csv needs about 8.0 MiB", "--memory allows"]);
}

#[test]
fn without_slurm_the_engine_is_a_sentence() {
    let bench = bench();
    let mut command = bench.command(&["sweep", "grid.toml", "--engine", "slurm", "--out", "out"]);
    Ran::of(command.env("PATH", bench.path("")).output().unwrap())
        .refused(3, &["there is no squeue here", "--engine local"]);
}

#[cfg(unix)]
#[test]
fn an_interrupted_sweep_goes_on_where_it_was() {
    let bench = Bench::new();
    let grid = "generate = { tasks = 60000, users = 200, days = 1, seeds = [1, 2] }\npolicy = [\"fifo\", \"drf\", \"asset\"]\n\
                capacity = [0.5, 0.55, 0.6, 0.65, 0.7]\n";
    bench.write("grid.toml", grid);
    let sweep = ["sweep", "grid.toml", "--out", "out", "--threads", "1", "--format", "json"];
    let child = bench.command(&sweep).spawn().unwrap();
    let finished = || std::fs::read_dir(bench.path("out/points")).map_or(0, Iterator::count);
    let begun = std::time::Instant::now();
    while finished() < 3 {
        assert!(begun.elapsed().as_secs() < 60, "no point finishes");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(ran.status, 3, "{ran:?}");
    assert!(ran.stderr.contains("interrupted") && ran.stderr.contains("same command"), "{}", ran.stderr);
    let (done, missing) = (ran.json()["points"].clone(), ran.json()["missing"].clone());
    let (done, missing) = (done.as_array().unwrap().len(), missing.as_array().unwrap().len());
    assert!(done >= 3 && missing > 0 && done + missing == 30, "{done} {missing}");
    let whole = bench.run(&sweep).done().json();
    assert_eq!(whole, bench.run(&["sweep", "grid.toml", "--out", "fresh", "--format", "json"]).done().json());
    assert_eq!(bench.read("out/results.csv"), bench.read("fresh/results.csv"));
}
