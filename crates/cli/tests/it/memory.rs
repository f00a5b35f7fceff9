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
    let import = ["workload", "import", "t.csv", "-o", "w.parquet", "--memory", "2Mi"];
    let words = ["t.csv: found ", "tasks (estimated)", "expected at most 2.0 MiB (--memory)", "larger --memory"];
    folder.assert_rejects(&import, 3, &words);
    folder.run(&[&import[..6], &["100Mi"]].concat()).assert_succeeds();
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
    let import = ["workload", "import", "-", "-o", "w.parquet", "--memory", "2Mi"];
    let refused = folder.run_with_input(&import, trace(100_000).as_bytes());
    refused.assert_fails(3, &["<stdin>: found ", "tasks so far", "(--memory)"]);
    assert!(folder.files().is_empty());
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
