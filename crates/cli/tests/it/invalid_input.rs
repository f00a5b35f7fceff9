//! Invalid input is reported in a sentence: the file, the line, what was found, what to do.

use crate::test_folder::{CSV, SWF, TestFolder, compressed};

/// Asserts that all verbs that read this invalid trace reject it with an error that contains all parts.
#[track_caller]
fn assert_trace_rejected(name: &str, content: impl AsRef<[u8]>, expected: &[&str]) {
    let folder = TestFolder::with(name, content);
    folder.assert_rejects(&["study", name, "--out", "out"], 2, expected);
    folder.assert_rejects(&["workload", "describe", name], 2, expected);
    folder.assert_rejects(&["workload", "import", name, "-o", "new.parquet"], 2, expected);
}

/// Asserts that `study` rejects these options.
#[track_caller]
fn assert_option_rejected(args: &[&str], expected: &[&str]) {
    let folder = TestFolder::with("w.csv", CSV);
    let mut all = vec!["study", "w.csv", "--out", "out"];
    all.extend(args);
    folder.assert_rejects(&all, 2, expected);
}

/// Asserts that `study` rejects a file that an option names.
#[track_caller]
fn assert_file_rejected(option: &str, name: &str, content: &str, expected: &[&str]) {
    let folder = TestFolder::with("w.csv", CSV);
    folder.write(name, content);
    folder.assert_rejects(&["study", "w.csv", "--out", "out", option, name], 2, expected);
}

#[test]
fn truncated_compressed_files_are_rejected() {
    let long: String = (0..5000).map(|i| format!("{i},{i},{},u{},{i},1,1\n", i + 7, i % 13)).collect();
    for (tool, name) in [("gzip", "w.csv.gz"), ("zstd", "w.csv.zst")] {
        let Some(whole) = compressed(tool, &long) else { continue };
        assert_trace_rejected(name, &whole[..whole.len() / 2], &[name, "truncated", "fetch the file again"]);
        // The data is complete, the checksum at the end is not.
        assert_trace_rejected(name, &whole[..whole.len() - 3], &[name, "fetch the file again"]);
    }
}

#[test]
fn invalid_rows_of_the_seven_column_csv_are_rejected() {
    assert_trace_rejected(
        "w.csv",
        "0,0,10,ann,1,1,2\n0,0,10,bob,2,2\n",
        &["w.csv:2:", "found 6 columns, expected 7", "--lenient"],
    );
    assert_trace_rejected(
        "w.csv",
        "0,0,10,ann,1,1,2\n0,10,0,ann,1,1,2\n",
        &["w.csv:2:6: found finish", "before start", "--lenient"],
    );
    assert_trace_rejected(
        "w.csv",
        "0,0,10,ann,1,1,2\n-1,0,10,ann,1,1,2\n",
        &["w.csv:2:1: found \"-1\"", "submit", "microseconds"],
    );
    assert_trace_rejected("w.csv", "0,0,10,ann,1,-1,2\n", &["w.csv:1:14: found \"-1\"", "cpu", "not negative"]);
    assert_trace_rejected("w.csv", "0,0,10,ann,1,nan,2\n", &["w.csv:1:14: found \"nan\"", "cpu"]);
    assert_trace_rejected(
        "w.csv",
        b"0,0,10,ann,1,1,2\n0,0,10,\xff\xfe,1,1,2\n",
        &["w.csv:2:8: found \"\\xff\\xfe\"", "UTF-8"],
    );
}

#[test]
fn invalid_jobs_of_swf_are_rejected() {
    let second = |job: &str| SWF.replace("2 5 1 10 4 -1 -1 4 10 -1 1 2 1 1 1 -1 -1 -1", job);
    let bad = |job: &str, expected: &[&str]| assert_trace_rejected("w.swf", second(job), expected);
    bad("1 5 1 10 4 -1 -1 4 10 -1 1 2 1 1 1 -1 -1 -1", &["w.swf:5:1: found job 1 after job 1", "--relaxed"]);
    bad("2 5 1 10 4 -1 -1 4 10 -1 1 2 1 1 1 -1 -1 -1 9", &["w.swf:5:", "19 columns, expected 18", "--relaxed"]);
    bad("2 5.5 1 10 4 -1 -1 4 10 -1 1 2 1 1 1 -1 -1 -1", &["w.swf:5:3: found \"5.5\"", "field 2", "--relaxed"]);
    bad("2 5 1 -10 4 -1 -1 4 10 -1 1 2 1 1 1 -1 -1 -1", &["w.swf:5:7: found \"-10\"", "run time (field 4)"]);
    bad("2 5 1 10 4", &["w.swf:5:", "found 5 columns, expected 18"]);
}

#[test]
fn missing_and_empty_files_are_rejected() {
    let folder = TestFolder::new();
    folder.assert_rejects(&["study", "none.csv", "--out", "out"], 2, &["none.csv: No such file", "check the path"]);
    std::fs::create_dir(folder.path("shards")).unwrap();
    let expected = ["shards: found no file to read in this folder", "name the files explicitly"];
    folder.assert_rejects(&["study", "shards", "--out", "out"], 2, &expected);
    folder.assert_rejects(&["workload", "import", "shards", "-o", "w.parquet"], 2, &expected);
    for name in ["w.csv", "w.swf", "w.parquet"] {
        assert_trace_rejected(name, "", &[name, "empty"]);
    }
    assert_trace_rejected("w.parquet", "PAR1 and then nothing of the kind", &["w.parquet"]);
    if let Some(empty) = compressed("gzip", "") {
        assert_trace_rejected("w.csv.gz", empty, &["w.csv.gz", "empty"]);
    }
    let output = folder.run_with_input(&["workload", "describe", "-"], b"");
    output.assert_fails(2, &["<stdin>", "empty"]);
}

#[cfg(unix)]
#[test]
fn a_file_without_read_permission_is_a_failure_of_the_environment() {
    use std::os::unix::fs::PermissionsExt;
    let folder = TestFolder::with("w.csv", CSV);
    std::fs::set_permissions(folder.path("w.csv"), std::fs::Permissions::from_mode(0o000)).unwrap();
    if std::fs::read(folder.path("w.csv")).is_ok() {
        eprintln!("skipped: this user reads every file, whatever its permissions");
        return;
    }
    folder.assert_rejects(&["study", "w.csv", "--out", "out"], 3, &["w.csv", "ermission denied"]);
}

#[test]
fn a_format_that_does_not_match_the_file_is_rejected() {
    let folder = TestFolder::with("w.swf", SWF);
    folder.write("w.csv", CSV);
    let describe = |from, file, expected: &[&str]| {
        folder.assert_rejects(&["workload", "describe", "--from", from, file], 2, expected);
    };
    describe("sdrf-csv", "w.swf", &["w.swf: found a file that looks like", "Standard Workload Format", "--from swf"]);
    describe("swf", "w.csv", &["w.csv: ", "pass --from sdrf-csv"]);
    describe("batsim", "w.csv", &["w.csv: ", "expected a Batsim workload; pass --from sdrf-csv"]);
    describe("sacct", "w.csv", &["w.csv: ", "expected output of Slurm's sacct; pass --from sdrf-csv"]);
    describe("google2011", "w.csv", &["w.csv: ", "--from sdrf-csv"]);
    describe("pdf", "w.csv", &["'pdf'", "swf, google2011, google-2019, sdrf-csv, sacct"]);
    folder.write("letter.txt", "Dear operator,\nplease find enclosed our history.\n");
    folder.assert_rejects(&["workload", "describe", "letter.txt"], 2, &["letter.txt", "--from"]);
}

#[test]
fn invalid_policies_are_rejected() {
    assert_option_rejected(&["--policy", "fifo,fair"], &["--policy", "\"fair\"", "fifo, drf, asset, sdrf"]);
    assert_option_rejected(&["--policy", ""], &["--policy", "\"\"", "fifo, drf, asset, sdrf"]);
    assert_option_rejected(&["--policy", "drf,drf"], &["drf is named twice"]);
}

#[test]
fn invalid_multifactor_settings_are_rejected() {
    assert_option_rejected(&["--multifactor", "none.toml"], &["--multifactor", "--policy"]);
    let folder = TestFolder::with("w.csv", CSV);
    let refused = |text: &str, expected: &[&str]| {
        folder.write("m.toml", text);
        folder.assert_rejects(&["study", "w.csv", "--policy", "multifactor", "--multifactor", "m.toml"], 2, expected);
    };
    refused("[weights]\nage = 1.5\n", &["m.toml:2:7: weight of age", "whole number"]);
    refused("[weights]\nfair_share = 1\n", &["m.toml:2:1: ", "did you mean \"fairshare\""]);
    refused("[tres]\nfpga = 1\n", &["m.toml:2:1: ", "cpu, mem"]);
    refused("[weights\n", &["m.toml:1:"]);
}

#[test]
fn invalid_billing_is_rejected() {
    assert_option_rejected(&["--billing", "most"], &["--billing", "\"most\"", "max or sum", "+license=10"]);
    assert_option_rejected(&["--billing", "max:cpu=1,+gpu=2"], &["--billing", "\"gpu\"", "cpu, mem"]);
    assert_option_rejected(&["--billing", "max:cpu=0,+mem=0"], &["--billing", "greater than 0"]);
}

#[test]
fn invalid_decays_are_rejected() {
    for bad in ["0", "1", "1.5", "-0.5", "nan", "x", ""] {
        let arg = format!("--delta={bad}");
        assert_option_rejected(&[&arg], &["--delta", &format!("found {bad:?}"), "greater than 0 and less than 1"]);
    }
    assert_option_rejected(&["--half-life", "0s"], &["--half-life 0s", "half-life is 0", "policy drf"]);
    assert_option_rejected(&["--half-life", "0"], &["--half-life 0", "number and a unit"]);
    assert_option_rejected(
        &["--half-life", "8d", "--delta", "0.9"],
        &["--delta", "cannot be used with", "--half-life"],
    );
}

/// Options that do nothing with what was given: each alone, beside arguments that are otherwise right.
#[test]
fn options_without_effect_are_rejected() {
    let folder = TestFolder::with("w.csv", CSV);
    folder.write("w.swf", SWF);
    let pool = ["--capacity", "cpu=4,mem=4", "--no-tasks", "--out", "out"];
    let study = |args: &[&str], expected: &[&str]| {
        let all: Vec<&str> = ["study", "w.csv"].iter().chain(&pool).chain(args).copied().collect();
        folder.assert_rejects(&all, 2, expected);
    };
    study(&["--placement", "best-fit"], &["--placement needs machines", "[[machines]]"]);
    study(&["--layout", "packed"], &["--layout needs machines", "[[machines]]"]);
    study(&["--vary", "weeks", "--repeat", "1"], &["--vary: says what varies between repeats", "--repeat"]);
    study(
        &["--policy", "fifo,drf", "--sdrf-key", "dominant"],
        &["--sdrf-key: is a setting of the policy sdrf", "--policy"],
    );
    for option in ["--explain", "--seconds", "--verbose", "--classes"] {
        study(&[option, "--format", "json"], &[option, "--format json"]);
    }
    let import = |file: &str, args: &[&str], expected: &[&str]| {
        let all: Vec<&str> = ["workload", "describe", file].iter().chain(args).copied().collect();
        folder.assert_rejects(&all, 2, expected);
    };
    import("w.csv", &["--swf-memory-unit", "B"], &["--swf-memory-unit: found a table of the SDRF", "leave it out"]);
    import("w.csv", &["--swf-memory-per", "node"], &["--swf-memory-per", "Standard Workload Format"]);
    import("w.csv", &["--processors", "requested"], &["--processors", "output of sacct"]);
    import("w.swf", &["--columns", "JobID,User"], &["--columns", "found a log in the Standard Workload Format"]);
    import("w.swf", &["--from", "swf", "--csv-columns", "submit=a,duration=b,cpu=c"], &["--csv-columns", "--from csv"]);
    // What only permits deviations is no error where there are none.
    for option in ["--relaxed", "--lenient"] {
        folder.run(&["workload", "describe", "w.csv", option]).assert_succeeds();
    }
    // A policy that remembers nothing: a note, because scripts try policies in turn with the same options.
    let all: Vec<&str> =
        ["study", "w.csv"].iter().chain(&pool).chain(&["--policy", "fifo", "--half-life", "1d"]).copied().collect();
    let output = folder.run(&all);
    assert!(output.stderr.contains("--half-life changes nothing"), "{}", output.stderr);
}

#[test]
fn invalid_capacities_are_rejected() {
    let missing = "there is no file none.toml";
    assert_option_rejected(&["--capacity=none.toml"], &["--capacity", missing, "greater than 0", "[pool]"]);
    for bad in ["-1", "nan", ""] {
        assert_option_rejected(
            &[&format!("--capacity={bad}")],
            &["--capacity", &format!("found {bad:?}"), "greater than 0", "[pool]"],
        );
    }
    assert_option_rejected(&["--capacity", "0.5,0"], &["--capacity: found \"0\"", "greater than 0"]);
    assert_option_rejected(&["--capacity", "1,1"], &["capacity 1 is named twice"]);
    assert_file_rejected("--capacity", "c.toml", "", &["c.toml:1:1: no [pool]", "cpu, mem"]);
    assert_file_rejected("--capacity", "c.toml", "cpu = 1\nmem = 1\n", &["c.toml:1:1: no [pool]", "cpu, mem"]);
    assert_file_rejected("--capacity", "c.toml", "[pool]\ncpu = 1\n", &["c.toml:1:", "no mem"]);
    assert_file_rejected("--capacity", "c.toml", "[pool]\ncpu = 0\nmem = 1\n", &["c.toml:2:7: ", "greater than 0"]);
    assert_file_rejected("--capacity", "c.toml", "[pool\n", &["c.toml:1:"]);
    assert_file_rejected("--capacity", "w.csv", CSV, &["w.csv:1:"]);
}

#[test]
fn invalid_weights_are_rejected() {
    for bad in ["0", "nan", "-1", "x", ""] {
        assert_file_rejected(
            "--weights",
            "x.csv",
            &format!("bob,2\nann,{bad}\n"),
            &["x.csv:2:5: weight of ann", "greater than 0"],
        );
    }
    assert_file_rejected(
        "--weights",
        "x.toml",
        "[weights]\nann = 0\n",
        &["x.toml:2:7: weight of ann", "greater than 0"],
    );
    assert_file_rejected(
        "--weights",
        "x.toml",
        "[weights]\nann = nan\n",
        &["x.toml:2:7: weight of ann", "greater than 0"],
    );
    for (file, text, expected) in [
        ("x.csv", "", "expected lines user,weight"),
        ("x.csv", "user,weight\n# nobody\n", "expected lines user,weight"),
        ("x.toml", "", "expected [weights]"),
        ("x.toml", "[weights]\n", "expected [weights]"),
    ] {
        assert_file_rejected("--weights", file, text, &[&format!("{file}:1:1: found no weight"), expected]);
    }
    assert_file_rejected("--weights", "x.csv", "ann\n", &["x.csv:1:1: found \"ann\"", "user,weight"]);
    assert_option_rejected(&["--weights", "none.csv"], &["none.csv", "No such file"]);
}

/// Without a remedy that no verb accepts, such as `-- -1`.
#[test]
fn negative_values_are_rejected_by_the_option_that_has_them() {
    for (option, value, expected) in [
        ("--repeat", "-1", "-1 is not in 1..=1000"),
        ("--capacity", "-1", "expected a number greater than 0"),
        ("--delta", "-0.5", "greater than 0 and less than 1"),
        ("--seed", "-1", "expected a whole number, 0 or more"),
        ("--threads", "-2", "1 or more"),
        ("--memory", "-1", "expected a size such as 8Gi"),
        ("--half-life", "-1d", "begins with -1, expected one without a minus sign"),
    ] {
        let folder = TestFolder::with("w.csv", CSV);
        let found = folder.assert_rejects(&["study", "w.csv", option, value], 2, &[expected]).stderr;
        assert!(!found.contains("-- -"), "{found}");
    }
}

#[test]
fn sizes_of_generated_workloads_are_rejected_by_their_options() {
    let folder = TestFolder::new();
    for (option, value, expected) in [
        ("--tasks", "0", "--tasks: found 0 tasks, expected at least 1"),
        ("--users", "0", "--users: found 0 users, expected at least 1"),
        ("--users", "11", "--users: found 11 users and 10 tasks, expected at least one task for each user"),
        ("--days", "0", "--days: found 0 days, expected a number greater than 0"),
        ("--days", "-1", "--days: found -1 days, expected a number greater than 0"),
        ("--days", "1e99", "--days: found 1e99 days, expected a number greater than 0 and at most 36525"),
        ("--memory", "1", "or generate fewer tasks"),
    ] {
        let sizes = [("--tasks", "10"), ("--users", "2")].into_iter().filter(|(name, _)| *name != option);
        let sizes: Vec<&str> = sizes.flat_map(|(name, value)| [name, value]).collect();
        let args = [&["workload", "generate", "-o", "w.parquet", option, value], &sizes[..]].concat();
        folder.assert_rejects(&args, if option == "--memory" { 3 } else { 2 }, &[expected]);
    }
}

#[test]
fn invalid_numbers_of_threads_are_rejected() {
    assert_option_rejected(&["--threads", "0"], &["--threads", "0", "1 or more"]);
    assert_option_rejected(&["--threads", "many"], &["--threads", "many"]);
}

#[test]
fn options_are_checked_before_a_long_trace_is_read() {
    let folder = TestFolder::new();
    // The trace does not exist, so an error about the option shows that it was checked first.
    for args in [["--policy", "fair"], ["--delta", "2"], ["--half-life", "x"], ["--capacity", "x"]] {
        let all = [["study", "none.csv"].as_slice(), &args].concat();
        folder.assert_rejects(&all, 2, &[args[0]]);
    }
}

#[test]
fn an_output_that_cannot_be_written_is_a_failure_of_the_environment() {
    let folder = TestFolder::with("w.csv", CSV);
    folder.assert_rejects(&["study", "w.csv", "--out", "w.csv"], 3, &["w.csv"]);
    folder.assert_rejects(&["workload", "import", "w.csv", "-o", "none/w.parquet"], 3, &["none"]);
    folder.assert_rejects(
        &["workload", "generate", "--tasks", "10", "--users", "2", "-o", "none/w.parquet"],
        3,
        &["none"],
    );
}

/// A table of three columns, whose second row is `row`.
fn table(row: &str) -> TestFolder {
    TestFolder::with("t.csv", format!("at,took,cores\n0,10,1\n{row}\n"))
}

const COLUMNS: [&str; 5] = ["workload", "describe", "t.csv", "--csv-columns", "submit=at,duration=took,cpu=cores"];

#[test]
fn numbers_that_are_too_large_are_called_too_large() {
    for (row, words) in [
        ("1e18,10,1", "t.csv:3:1: found \"1e18\", expected a time of at most 4611686018 s"),
        ("0,1e18,1", "t.csv:3:3: found \"1e18\", expected at most 4611686018 s"),
        ("0,10,1e19", "t.csv:3:6: found \"1e19\", expected an amount of cpu of at most 999999999999999999"),
        ("0,10,x", "t.csv:3:6: found \"x\", expected an amount of cpu, a number that is not negative"),
    ] {
        table(row).assert_rejects(&COLUMNS, 2, &[words]);
    }
}

#[test]
fn an_unclosed_quotation_mark_is_an_error_with_its_place() {
    let words = ["t.csv:3:1: found \"\\\"0,10,1\"", "a quotation mark that is closed in the same line"];
    table("\"0,10,1").assert_rejects(&COLUMNS, 2, &words);
    let header = TestFolder::with("t.csv", "\"at,took,cores\n0,10,1\n");
    header.assert_rejects(&COLUMNS, 2, &["t.csv:1:1: found", "quotation mark"]);
    assert!(table("\"0\",10,1").run(&COLUMNS).status == 0);
}

#[test]
fn relaxed_is_offered_only_where_it_helps() {
    let log = |submit: &str| SWF.replace("2 5 1 10 4", &format!("2 {submit} 1 10 4"));
    // A decimal is accepted with --relaxed.
    let decimal = TestFolder::with("t.swf", log("5.5"));
    decimal.assert_rejects(&["workload", "describe", "t.swf"], 2, &["t.swf:5:3: found \"5.5\"", "--relaxed"]);
    decimal.run(&["workload", "describe", "t.swf", "--relaxed"]).assert_succeeds();
    // A time after all time is not, whether it has a decimal or not.
    let late = TestFolder::with("t.swf", log("9999999999999.5"));
    let refused = late.assert_rejects(&["workload", "describe", "t.swf"], 2, &["t.swf:5:3:", "a time below 146 years"]);
    assert!(!refused.stderr.contains("--relaxed"), "{refused:?}");
    late.assert_rejects(&["workload", "describe", "t.swf", "--relaxed"], 2, &["a time below 146 years"]);
}

#[test]
fn a_missing_capacity_file_is_called_missing() {
    assert_option_rejected(
        &["--capacity", "pools.toml"],
        &["--capacity: there is no file pools.toml", "check the path"],
    );
    assert_option_rejected(&["--capacity", "a/pool"], &["there is no file a/pool"]);
    assert_option_rejected(&["--capacity", "half"], &["found \"half\"", "expected a number greater than 0"]);
}

#[test]
fn a_pipe_is_announced_and_read() {
    let folder = TestFolder::new();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        folder.path("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let writer = std::thread::spawn({
        let pipe = folder.path("pipe");
        move || std::fs::write(pipe, CSV)
    });
    let output = folder.run(&["workload", "describe", "pipe"]).assert_succeeds();
    assert!(output.stderr.contains("pipe is a pipe; reading it waits"), "{output:?}");
    writer.join().unwrap().unwrap();
}

#[test]
fn a_server_prints_no_results_and_so_refuses_their_format() {
    TestFolder::new()
        .run(&["serve", "--format", "json"])
        .assert_fails(2, &["--format json: serve prints no results", "/api/v1"]);
}
