//! `evenhand workload`

use crate::bench::{Bench, CSV, SWF, packed};

const GOOGLE: &str = "\
5000000,,7,0,,0,alice,0,2,0.5,0.25,0,0
6000000,,7,0,11,1,alice,0,2,0.5,0.25,0,0
9000000,,7,0,11,4,alice,0,2,0.5,0.25,0,0
";

const SACCT: &str = "\
JobID|User|Account|State|Submit|Start|End|ElapsedRaw|AllocTRES
1|ann|phys|COMPLETED|2024-01-01T00:00:00|2024-01-01T00:00:05|2024-01-01T00:01:05|60|billing=2,cpu=2,mem=4G,node=1
2|bob|chem|COMPLETED|2024-01-01T00:00:10|2024-01-01T00:00:15|2024-01-01T00:00:45|30|billing=1,cpu=1,mem=1.5G,node=1
";

const BATSIM: &str = r#"{"nb_res": 4,
 "jobs": [{"id": "1", "subtime": 0, "walltime": 100, "res": 2, "profile": "short"},
          {"id": "2", "subtime": 5, "walltime": 100, "res": 1, "profile": "short"}],
 "profiles": {"short": {"type": "delay", "delay": 10}}}"#;

#[test]
fn every_format_is_recognised_and_described() {
    let formats = [
        ("w.csv", CSV, "sdrf-csv", 4, 2),
        ("w.swf", SWF, "swf", 2, 2),
        ("part-00000-of-00500.csv", GOOGLE, "google2011", 1, 1),
        ("w.sacct", SACCT, "sacct", 2, 2),
        ("w.json", BATSIM, "batsim", 2, 1),
    ];
    for (name, content, format, tasks, users) in formats {
        let bench = Bench::with(name, content);
        let described = bench.run(&["workload", "describe", name, "--format", "json"]).done().json();
        assert_eq!((&described["tasks"], &described["users"]), (&tasks.into(), &users.into()), "{name}: {described}");
        // Named, it is the same; so is the store it is imported into.
        let named = bench.run(&["workload", "describe", name, "--from", format, "--format", "json"]).done().json();
        assert_eq!(named, described, "{name}");
        bench.run(&["workload", "import", name, "-o", "w.parquet"]).done();
        bench.holds_nothing_half_written();
        let stored = bench.run(&["workload", "describe", "w.parquet", "--format", "json"]).done().json();
        assert_eq!(stored, described, "{name}");
        let table = bench.run(&["workload", "describe", name]).done();
        assert!(table.stdout.contains(&format!("{tasks} task")), "{}", table.stdout);
        // And it can be studied.
        bench.run(&["study", name, "--capacity", "1.5", "--quiet", "--out", "out"]).done();
    }
}

#[test]
fn packed_files_folders_and_standard_input_are_the_same_trace() {
    let bench = Bench::with("w.csv", CSV);
    let whole = bench.run(&["workload", "describe", "w.csv", "--format", "json"]).done().stdout;
    let describe = |what: &str| bench.run(&["workload", "describe", what, "--format", "json"]).done().stdout;
    for (tool, name) in [("gzip", "p.csv.gz"), ("zstd", "p.csv.zst")] {
        let Some(bytes) = packed(tool, CSV) else { continue };
        bench.write(name, &bytes);
        assert_eq!(describe(name), whole, "{name}");
        let piped = bench.run_with_input(&["workload", "describe", "-", "--format", "json"], &bytes).done();
        assert_eq!(piped.stdout, whole, "{name} piped");
    }
    let piped = bench.run_with_input(&["workload", "describe", "-", "--format", "json"], CSV.as_bytes()).done();
    assert_eq!(piped.stdout, whole);
    std::fs::create_dir(bench.path("shards")).unwrap();
    let lines: Vec<&str> = CSV.split_inclusive('\n').collect();
    bench.write("shards/part-0.csv", lines[..2].concat());
    bench.write("shards/part-1.csv", lines[2..].concat());
    assert_eq!(describe("shards"), whole);
    let piped = bench.run_with_input(&["study", "-", "--out", "out", "--format", "json"], CSV.as_bytes()).done();
    assert_eq!(piped.json()["workload"]["tasks"], 4);
}

#[test]
fn lenient_counts_what_it_skips() {
    let bench = Bench::with("w.csv", format!("{CSV}5,5,1,zoe,1,1,1\n6,6\n"));
    let ran = bench.run(&["workload", "describe", "w.csv", "--lenient", "--format", "json"]).done();
    assert_eq!(ran.json()["tasks"], 4);
    assert!(ran.stderr.contains("Read 6 rows"), "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("1 malformed").count(), 2, "one of each kind: {}", ran.stderr);
}

#[test]
fn the_same_seed_is_the_same_file() {
    let bench = Bench::new();
    for like in ["google2011", "metacentrum"] {
        let generate = |seed: &str, threads: &str| {
            let args = ["workload", "generate", "--like", like, "--tasks", "3000", "--users", "20", "--seed", seed];
            bench.run(&[&args[..], &["--threads", threads, "-o", "w.parquet"]].concat()).done();
            std::fs::read(bench.path("w.parquet")).unwrap()
        };
        let first = generate("1", "1");
        assert_eq!(generate("1", "2"), first, "{like}");
        assert_ne!(generate("2", "1"), first, "{like}");
    }
}

#[test]
fn describe_draws() {
    let bench = Bench::new();
    bench.run(&["workload", "generate", "--tasks", "2000", "--users", "20", "-o", "w.parquet"]).done();
    bench.run(&["workload", "describe", "w.parquet", "--plot", "figures"]).done();
    let drawn = bench.files().into_iter().filter(|p| p.extension().is_some_and(|e| e == "svg")).count();
    assert!(drawn > 2, "{:?}", bench.files());
}
