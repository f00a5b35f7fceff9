//! `evenhand workload`

use crate::test_folder::{CSV, SWF, TestFolder, compressed};

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
        let folder = TestFolder::with(name, content);
        let described = folder.run(&["workload", "describe", name, "--format", "json"]).assert_succeeds().json();
        assert_eq!((&described["tasks"], &described["users"]), (&tasks.into(), &users.into()), "{name}: {described}");
        // Named, it is the same; so is the store it is imported into.
        let named =
            folder.run(&["workload", "describe", name, "--from", format, "--format", "json"]).assert_succeeds().json();
        assert_eq!(named, described, "{name}");
        folder.run(&["workload", "import", name, "-o", "w.parquet"]).assert_succeeds();
        folder.assert_no_temporary_files();
        let stored = folder.run(&["workload", "describe", "w.parquet", "--format", "json"]).assert_succeeds().json();
        assert_eq!(stored, described, "{name}");
        let table = folder.run(&["workload", "describe", name]).assert_succeeds();
        assert!(table.stdout.contains(&format!("{tasks} task")), "{}", table.stdout);
        // And it can be studied.
        folder.run(&["study", name, "--capacity", "1.5", "--quiet", "--out", "out"]).assert_succeeds();
    }
}

#[test]
fn compressed_files_folders_and_standard_input_give_the_same_trace() {
    let folder = TestFolder::with("w.csv", CSV);
    let whole = folder.run(&["workload", "describe", "w.csv", "--format", "json"]).assert_succeeds().stdout;
    let describe =
        |what: &str| folder.run(&["workload", "describe", what, "--format", "json"]).assert_succeeds().stdout;
    for (tool, name) in [("gzip", "p.csv.gz"), ("zstd", "p.csv.zst")] {
        let Some(bytes) = compressed(tool, CSV) else { continue };
        folder.write(name, &bytes);
        assert_eq!(describe(name), whole, "{name}");
        let piped = folder.run_with_input(&["workload", "describe", "-", "--format", "json"], &bytes).assert_succeeds();
        assert_eq!(piped.stdout, whole, "{name} piped");
    }
    let piped =
        folder.run_with_input(&["workload", "describe", "-", "--format", "json"], CSV.as_bytes()).assert_succeeds();
    assert_eq!(piped.stdout, whole);
    std::fs::create_dir(folder.path("shards")).unwrap();
    let lines: Vec<&str> = CSV.split_inclusive('\n').collect();
    folder.write("shards/part-0.csv", lines[..2].concat());
    folder.write("shards/part-1.csv", lines[2..].concat());
    assert_eq!(describe("shards"), whole);
    let piped =
        folder.run_with_input(&["study", "-", "--out", "out", "--format", "json"], CSV.as_bytes()).assert_succeeds();
    assert_eq!(piped.json()["workload"]["tasks"], 4);
}

#[test]
fn lenient_counts_skipped_rows() {
    let folder = TestFolder::with("w.csv", format!("{CSV}5,5,1,zoe,1,1,1\n6,6\n"));
    let output = folder.run(&["workload", "describe", "w.csv", "--lenient", "--format", "json"]).assert_succeeds();
    assert_eq!(output.json()["tasks"], 4);
    assert!(output.stderr.contains("Read 6 rows"), "{}", output.stderr);
    assert_eq!(output.stderr.matches("malformed, expected").count(), 2, "one of each kind: {}", output.stderr);
}

#[test]
fn the_same_seed_generates_the_same_file() {
    let folder = TestFolder::new();
    for like in ["google2011", "metacentrum"] {
        let generate = |seed: &str, threads: &str| {
            let args = ["workload", "generate", "--like", like, "--tasks", "3000", "--users", "20", "--seed", seed];
            folder.run(&[&args[..], &["--threads", threads, "-o", "w.parquet"]].concat()).assert_succeeds();
            std::fs::read(folder.path("w.parquet")).unwrap()
        };
        let first = generate("1", "1");
        assert_eq!(generate("1", "2"), first, "{like}");
        assert_ne!(generate("2", "1"), first, "{like}");
    }
}

#[test]
fn describe_writes_figures() {
    let folder = TestFolder::new();
    folder.run(&["workload", "generate", "--tasks", "2000", "--users", "20", "-o", "w.parquet"]).assert_succeeds();
    folder.run(&["workload", "describe", "w.parquet", "--plot", "figures"]).assert_succeeds();
    let drawn = folder.files().into_iter().filter(|p| p.extension().is_some_and(|e| e == "svg")).count();
    assert!(drawn > 2, "{:?}", folder.files());
}

#[test]
fn a_stored_workload_keeps_requested_processors_for_later() {
    // The second job requests half of what it was allocated, so that with the first one both fit.
    let log = "1 0 0 100 4 -1 -1 4 200 -1 1 1 1 1 1 1 -1 -1\n2 10 90 100 8 -1 -1 4 200 -1 1 2 1 1 1 1 -1 -1\n";
    let folder = TestFolder::with("log.swf", log);
    folder.run(&["workload", "import", "log.swf", "-o", "both.parquet"]).assert_succeeds();
    let asked = ["--processors", "requested"];
    folder.run(&[&["workload", "import", "log.swf", "-o", "asked.parquet"], &asked[..]].concat()).assert_succeeds();
    let wait = |file: &str, options: &[&str]| {
        let study = ["study", file, "--policy", "fifo", "--capacity", "cpu=8", "--format", "json", "--out", "out"];
        let output = folder.run(&[&study, options].concat()).assert_succeeds();
        (output.json()["runs"][0]["mean_wait_s"].as_f64().unwrap(), output.stderr)
    };
    assert_eq!([wait("log.swf", &[]).0, wait("both.parquet", &[]).0], [45.0; 2]);
    assert_eq!([wait("log.swf", &asked).0, wait("both.parquet", &asked).0], [0.0; 2]);
    let (of_asked, notes) = wait("asked.parquet", &asked);
    assert_eq!((of_asked, wait("asked.parquet", &[]).0), (0.0, 0.0));
    assert!(notes.contains("asked.parquet keeps no requested amounts apart"), "{notes}");
    // An export to the format that has both writes both.
    let exported = folder.run(&["workload", "export", "both.parquet", "--to", "swf"]).assert_succeeds().stdout;
    assert!(exported.contains("\n2 10 90 100 8 -1 -1 4 200 "), "{exported}");
}

/// A stored workload is no trace: what it is, and what to do with it.
#[test]
fn a_stored_workload_is_no_input_of_an_import_and_not_read_from_standard_input() {
    let folder = TestFolder::with("w.swf", SWF);
    folder.run(&["workload", "import", "w.swf", "-o", "w.parquet"]).assert_succeeds();
    let import = ["workload", "import", "w.parquet", "-o", "again.parquet"];
    let stored = "found a workload that evenhand stored, expected a trace of jobs";
    folder.assert_rejects(&import, 2, &["w.parquet: ", stored, "needs no import"]);
    let named = [&import[..], &["--from", "swf"]].concat();
    folder.assert_rejects(&named, 2, &["found a Parquet file", "Standard Workload Format; leave --from out"]);
    let bytes = std::fs::read(folder.path("w.parquet")).unwrap();
    for args in [&["workload", "describe", "-"][..], &["workload", "import", "-", "-o", "again.parquet"]] {
        folder.run_with_input(args, &bytes).assert_fails(2, &["<stdin>: ", stored, "give the path of its file"]);
    }
    // A file that is called - is not standard input.
    folder.write("-", &bytes);
    let piped = folder.run_with_input(&["workload", "describe", "-", "--format", "json"], CSV.as_bytes());
    assert_eq!(piped.assert_succeeds().json()["tasks"], 4);
}
