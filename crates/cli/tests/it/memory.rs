//! Workloads that do not fit in memory, and what is done about it.

use std::process::Command;

use crate::test_folder::{ProgramOutput, TestFolder, compressed};

/// Two resources of many tasks of two users.
fn trace(rows: u64) -> String {
    (0..rows).map(|i| format!("{0},{0},{1},u{2},{i},1,1\n", i * 1000, i * 1000 + 5000, i % 2)).collect()
}

#[test]
fn a_trace_that_does_not_fit_is_refused_before_it_is_read() {
    let folder = TestFolder::with("t.csv", trace(100_000));
    let describe = ["workload", "describe", "t.csv", "--memory", "2Mi"];
    let words = ["t.csv: found ", "tasks (estimated)", "expected at most 2.0 MiB (--memory)", "larger --memory"];
    folder.assert_rejects(&describe, 3, &words);
    folder.run(&["workload", "import", "t.csv", "-o", "w.parquet", "--memory", "100Mi"]).assert_succeeds();
    // A stored workload is refused by the number of its rows.
    let study = ["study", "w.parquet", "--out", "out", "--memory", "2Mi"];
    folder.assert_rejects(&study, 3, &["w.parquet: found 100000 tasks", "(--memory)", "import a part"]);
    folder.assert_rejects(&["workload", "describe", "w.parquet", "--memory", "2Mi"], 3, &["100000 tasks"]);
    let generate = ["workload", "generate", "--tasks", "1000000000000", "-o", "g.parquet"];
    folder.assert_rejects(&generate, 3, &["--tasks: found 1000000000000 tasks"]);
}

#[test]
fn a_trace_of_unknown_size_is_refused_when_what_was_read_does_not_fit() {
    let folder = TestFolder::new();
    let refused = folder.run_with_input(&["workload", "describe", "-", "--memory", "2Mi"], trace(100_000).as_bytes());
    refused.assert_fails(3, &["<stdin>: found ", "tasks so far", "(--memory)"]);
    assert!(folder.files().is_empty());
}

/// Returns the tasks of a stored workload in a format of text.
fn exported(folder: &TestFolder, workload: &str, format: &str) -> String {
    folder.run(&["workload", "export", workload, "--to", format]).assert_succeeds().stdout
}

#[test]
fn a_trace_larger_than_the_memory_is_imported_in_parts() {
    // Not in the order of submission, in two files, with ties.
    let lines: Vec<String> = trace(60_000).lines().map(|line| format!("{line}\n")).collect();
    let (even, odd): (Vec<_>, Vec<_>) = lines.iter().enumerate().partition(|(i, _)| i % 2 == 0);
    let joined =
        |lines: Vec<(usize, &String)>| lines.into_iter().rev().map(|(_, line)| line.as_str()).collect::<String>();
    let (even, odd) = (joined(even), joined(odd));
    let folder = TestFolder::with("a.csv", even.clone() + &odd);
    folder.write("b.csv", odd + &even);
    let import = |output: &str, memory: &str| {
        let args = ["workload", "import", "a.csv", "b.csv", "-o", output, "--memory", memory, "--format", "json"];
        folder.run(&args).assert_succeeds().stdout.replace(output, "OUTPUT")
    };
    assert_eq!(import("large.parquet", "2Mi"), import("small.parquet", "1Gi"));
    assert_eq!(exported(&folder, "large.parquet", "sdrf-csv"), exported(&folder, "small.parquet", "sdrf-csv"));
    // From a pipe, whose size is not known.
    let piped = ["workload", "import", "-", "-o", "piped.parquet", "--memory", "2Mi"];
    let both = folder.read("a.csv") + &folder.read("b.csv");
    folder.run_with_input(&piped, both.as_bytes()).assert_succeeds();
    assert_eq!(exported(&folder, "piped.parquet", "sdrf-csv"), exported(&folder, "small.parquet", "sdrf-csv"));
    assert_eq!(folder.files().len(), 5, "no temporary file is left: {:?}", folder.files());
}

#[test]
fn accounting_larger_than_the_memory_is_imported_in_parts() {
    let folder = TestFolder::new();
    let swf = |i: u64| format!("{} {} 5 10 4 -1 -1 4 60 -1 1 {} 1 -1 1 -1 -1 -1\n", i + 1, i * 3, i % 7);
    folder.write("log.swf", "; MaxProcs: 64\n".to_string() + &(0..40_000).map(swf).collect::<String>());
    let second =
        |i: u64| format!("2024-01-{:02}T{:02}:{:02}:{:02}", 1 + i / 86_400, i / 3600 % 24, i / 60 % 60, i % 60);
    let job = |i: u64| {
        let (submit, end) = (second(i), second(i + 60));
        format!(
            "{i}|u{}|physics|batch|normal|COMPLETED|{submit}|{submit}|{end}|60|60|cpu=2,mem=4G|cpu=2,mem=4G\n",
            i % 9
        )
    };
    let header = "JobID|User|Account|Partition|QOS|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|ReqTRES|AllocTRES\n";
    folder.write("jobs.txt", header.to_string() + &(0..40_000).map(job).collect::<String>());
    for name in ["log.swf", "jobs.txt"] {
        let import = |output: &str, memory: &str| {
            let args = ["workload", "import", name, "-o", output, "--memory", memory, "--format", "json"];
            folder.run(&args).assert_succeeds().stdout.replace(output, "OUTPUT")
        };
        assert_eq!(import("large.parquet", "2Mi"), import("small.parquet", "1Gi"), "{name}");
        let describe = |output: &str| folder.run(&["workload", "describe", output]).assert_succeeds().stdout;
        assert_eq!(describe("large.parquet"), describe("small.parquet"), "{name}");
        assert_eq!(exported(&folder, "large.parquet", "swf"), exported(&folder, "small.parquet", "swf"), "{name}");
    }
}

#[test]
fn a_study_starts_as_many_runs_at_a_time_as_fit() {
    let folder = TestFolder::with("t.csv", trace(2000));
    let study = ["study", "t.csv", "--policy", "fifo,drf", "--capacity", "0.5,1", "--threads", "4"];
    // A run needs 8 MiB and more.
    let little = folder.run(&[&study[..], &["--out", "little", "--memory", "12Mi"]].concat()).assert_succeeds();
    assert!(little.stderr.contains("1 of 4 runs at a time, because more do not fit in 12.0 MiB"), "{little:?}");
    let much = folder.run(&[&study[..], &["--out", "much", "--memory", "100Mi"]].concat()).assert_succeeds();
    assert!(!much.stderr.contains("at a time"), "{much:?}");
    assert_eq!(folder.read("little/users.csv"), folder.read("much/users.csv"));
}

#[test]
fn a_compressed_file_with_more_text_than_allowed_is_refused() {
    let folder = TestFolder::new();
    for (tool, name) in [("gzip", "t.csv.gz"), ("zstd", "t.csv.zst")] {
        let Some(packed) = compressed(tool, &(trace(10) + &"\n".repeat(3 << 20))) else { continue };
        folder.write(name, packed);
        let describe = ["workload", "describe", name];
        folder.run(&describe).assert_succeeds();
        let limited = [&describe[..], &["--max-unpacked", "1Mi"]].concat();
        folder.assert_rejects(&limited, 2, &[name, "more than 1.0 MiB of text", tool, "--max-unpacked"]);
    }
    folder.assert_rejects(&["workload", "describe", "x", "--max-unpacked", "all"], 2, &["expected a size such as 8Gi"]);
}

/// Runs the program with an address space of so many KiB. Returns `None`, with a note, without bash.
fn run_limited(folder: &TestFolder, kib: u64, args: &[&str]) -> Option<ProgramOutput> {
    let mut command = Command::new("bash");
    command.args(["-c", &format!("ulimit -v {kib}; exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_evenhand")]).args(args);
    // The allocator reserves address space for every arena, and makes more of them when the machine is busy.
    command.env("MALLOC_ARENA_MAX", "1");
    match command.current_dir(folder.path("")).output() {
        Ok(output) => Some(ProgramOutput::of(output)),
        Err(e) => {
            eprintln!("skipped: cannot run bash: {e}");
            None
        }
    }
}

#[test]
fn a_limit_on_address_space_is_respected() {
    let folder = TestFolder::new();
    let generate = ["workload", "generate", "--tasks", "20000000", "-o", "w.parquet", "--threads", "2"];
    let Some(refused) = run_limited(&folder, 400_000, &generate) else { return };
    refused.assert_fails(3, &["--tasks: found 20000000 tasks", "ulimit -v"]);
}

#[test]
fn an_allocation_that_fails_is_a_sentence_and_status_3() {
    let folder = TestFolder::new();
    let generate =
        ["workload", "generate", "--tasks", "20000000", "-o", "w.parquet", "--threads", "2", "--memory", "99Gi"];
    let Some(failed) = run_limited(&folder, 400_000, &generate) else { return };
    failed.assert_fails(3, &["memory allocation of ", " bytes failed"]);
    assert!(folder.files().iter().all(|name| name.to_string_lossy().ends_with(".partial")), "{:?}", folder.files());
}

#[test]
fn a_trace_larger_than_the_address_space_is_imported() {
    let folder = TestFolder::with("t.csv", trace(1_500_000));
    // In memory, its tasks would need 200 MiB and more.
    let import = ["workload", "import", "t.csv", "-o", "w.parquet", "--threads", "1"];
    let Some(imported) = run_limited(&folder, 180_000, &import) else { return };
    imported.assert_succeeds();
    let reads = folder.run(&["workload", "describe", "w.parquet", "--format", "json"]).assert_succeeds();
    let described: serde_json::Value = serde_json::from_str(&reads.stdout).unwrap();
    assert_eq!(described["tasks"], 1_500_000);
}
