//! Everything that is wrong is told in a sentence: the file, the line, what was found, what to do.

use crate::bench::{Bench, CSV, SWF, packed};

/// A trace with something wrong, the place it must name and what else it must say.
#[track_caller]
fn trace(name: &str, content: impl AsRef<[u8]>, says: &[&str]) {
    let bench = Bench::with(name, content);
    bench.refuses(&["study", name, "--out", "out"], 2, says);
    bench.refuses(&["workload", "describe", name], 2, says);
    bench.refuses(&["workload", "import", name, "-o", "w.parquet"], 2, says);
}

#[track_caller]
fn option(args: &[&str], says: &[&str]) {
    let bench = Bench::with("w.csv", CSV);
    let mut all = vec!["study", "w.csv", "--out", "out"];
    all.extend(args);
    bench.refuses(&all, 2, says);
}

#[track_caller]
fn file_option(option: &str, name: &str, content: &str, says: &[&str]) {
    let bench = Bench::with("w.csv", CSV);
    bench.write(name, content);
    bench.refuses(&["study", "w.csv", "--out", "out", option, name], 2, says);
}

#[test]
fn a_truncated_gz() {
    let long: String = (0..5000).map(|i| format!("{i},{i},{},u{},{i},1,1\n", i + 7, i % 13)).collect();
    for (tool, name) in [("gzip", "w.csv.gz"), ("zstd", "w.csv.zst")] {
        let Some(whole) = packed(tool, &long) else { continue };
        trace(name, &whole[..whole.len() / 2], &[name, "truncated", "fetch the file again"]);
        // All data is there, the check sum at the end is not.
        trace(name, &whole[..whole.len() - 3], &[name, "fetch the file again"]);
    }
}

#[test]
fn rows_of_the_seven_column_csv() {
    trace("w.csv", "0,0,10,ann,1,1,2\n0,0,10,bob,2,2\n", &["w.csv:2:", "found 6 columns, expected 7", "--lenient"]);
    trace("w.csv", "0,0,10,ann,1,1,2\n0,10,0,ann,1,1,2\n", &["w.csv:2:6: found finish", "before start", "--lenient"]);
    trace("w.csv", "0,0,10,ann,1,1,2\n-1,0,10,ann,1,1,2\n", &["w.csv:2:1: found \"-1\"", "submit", "microseconds"]);
    trace("w.csv", "0,0,10,ann,1,-1,2\n", &["w.csv:1:14: found \"-1\"", "cpu", "not negative"]);
    trace("w.csv", "0,0,10,ann,1,nan,2\n", &["w.csv:1:14: found \"nan\"", "cpu"]);
    trace("w.csv", b"0,0,10,ann,1,1,2\n0,0,10,\xff\xfe,1,1,2\n", &["w.csv:2:8: found \"\\xff\\xfe\"", "UTF-8"]);
}

#[test]
fn jobs_of_swf() {
    let second = |job: &str| SWF.replace("2 5 1 10 4 -1 -1 4 10 -1 1 2 1 1 1 -1 -1 -1", job);
    let bad = |job: &str, says: &[&str]| trace("w.swf", second(job), says);
    bad("1 5 1 10 4 -1 -1 4 10 -1 1 2 1 1 1 -1 -1 -1", &["w.swf:5:1: found job 1 after job 1", "--relaxed"]);
    bad("2 5 1 10 4 -1 -1 4 10 -1 1 2 1 1 1 -1 -1 -1 9", &["w.swf:5:", "19 columns, expected 18", "--relaxed"]);
    bad("2 5.5 1 10 4 -1 -1 4 10 -1 1 2 1 1 1 -1 -1 -1", &["w.swf:5:3: found \"5.5\"", "field 2", "--relaxed"]);
    bad("2 5 1 -10 4 -1 -1 4 10 -1 1 2 1 1 1 -1 -1 -1", &["w.swf:5:7: found \"-10\"", "run time (field 4)"]);
    bad("2 5 1 10 4", &["w.swf:5:", "found 5 columns, expected 18"]);
}

#[test]
fn files_that_are_not_there_or_hold_nothing() {
    let bench = Bench::new();
    bench.refuses(&["study", "none.csv", "--out", "out"], 2, &["none.csv: No such file", "check the path"]);
    std::fs::create_dir(bench.path("shards")).unwrap();
    let says = ["shards: found no file to read in this folder", "name the files themselves"];
    bench.refuses(&["study", "shards", "--out", "out"], 2, &says);
    bench.refuses(&["workload", "import", "shards", "-o", "w.parquet"], 2, &says);
    for name in ["w.csv", "w.swf", "w.parquet"] {
        trace(name, "", &[name, "empty"]);
    }
    trace("w.parquet", "PAR1 and then nothing of the kind", &["w.parquet"]);
    if let Some(empty) = packed("gzip", "") {
        trace("w.csv.gz", empty, &["w.csv.gz", "empty"]);
    }
    let ran = bench.run_with_input(&["workload", "describe", "-"], b"");
    ran.refused(2, &["<stdin>", "empty"]);
}

#[cfg(unix)]
#[test]
fn a_file_that_may_not_be_read() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::with("w.csv", CSV);
    std::fs::set_permissions(bench.path("w.csv"), std::fs::Permissions::from_mode(0o000)).unwrap();
    if std::fs::read(bench.path("w.csv")).is_ok() {
        eprintln!("skipped: this user reads every file, whatever its permissions");
        return;
    }
    bench.refuses(&["study", "w.csv", "--out", "out"], 3, &["w.csv", "ermission denied"]);
}

#[test]
fn a_format_that_does_not_match() {
    let bench = Bench::with("w.swf", SWF);
    bench.write("w.csv", CSV);
    let describe = |from, file, says: &[&str]| {
        bench.refuses(&["workload", "describe", "--from", from, file], 2, says);
    };
    describe("sdrf-csv", "w.swf", &["w.swf:1:", "expected 7 columns"]);
    describe("swf", "w.csv", &["w.csv:1:1", "job number"]);
    describe("batsim", "w.csv", &["w.csv: ", "not a Batsim workload"]);
    describe("sacct", "w.csv", &["w.csv: ", "first line", "sacct -X -P"]);
    describe("google2011", "w.csv", &["w.csv:1:"]);
    describe("pdf", "w.csv", &["\"pdf\"", "swf, google2011, sdrf-csv, sacct"]);
    bench.write("letter.txt", "Dear operator,\nplease find enclosed our history.\n");
    bench.refuses(&["workload", "describe", "letter.txt"], 2, &["letter.txt", "--from"]);
}

#[test]
fn policies() {
    option(&["--policy", "fifo,fair"], &["--policy", "\"fair\"", "fifo, drf, asset, sdrf"]);
    option(&["--policy", ""], &["--policy", "\"\"", "fifo, drf, asset, sdrf"]);
    option(&["--policy", "drf,drf"], &["drf is named twice"]);
}

#[test]
fn multifactor() {
    option(&["--multifactor", "none.toml"], &["--multifactor", "--policy"]);
    let bench = Bench::with("w.csv", CSV);
    let refused = |text: &str, says: &[&str]| {
        bench.write("m.toml", text);
        bench.refuses(&["study", "w.csv", "--policy", "multifactor", "--multifactor", "m.toml"], 2, says);
    };
    refused("[weights]\nage = 1.5\n", &["m.toml:2:7: weight of age", "whole number"]);
    refused("[weights]\nfair_share = 1\n", &["m.toml:2:1: ", "did you mean \"fairshare\""]);
    refused("[tres]\ngpu = 1\n", &["m.toml:2:1: ", "cpu, mem"]);
    refused("[weights\n", &["m.toml:1:"]);
}

#[test]
fn billing() {
    option(&["--billing", "most"], &["--billing", "\"most\"", "max or sum", "+license=10"]);
    option(&["--billing", "max:cpu=1,+gpu=2"], &["--billing", "\"gpu\"", "cpu, mem"]);
    option(&["--billing", "max:cpu=0,+mem=0"], &["--billing", "greater than 0"]);
}

#[test]
fn decays() {
    for bad in ["0", "1", "1.5", "-0.5", "nan", "x", ""] {
        let arg = format!("--delta={bad}");
        option(&[&arg], &["--delta", &format!("found {bad:?}"), "greater than 0 and less than 1"]);
    }
    option(&["--half-life", "0s"], &["--half-life 0s", "half-life is 0", "policy drf"]);
    option(&["--half-life", "0"], &["--half-life 0", "number and a unit"]);
    option(&["--half-life", "8d", "--delta", "0.9"], &["--delta", "cannot be used with", "--half-life"]);
}

#[test]
fn capacities() {
    for bad in ["-1", "nan", "none.toml", ""] {
        option(&[&format!("--capacity={bad}")], &["--capacity", &format!("found {bad:?}"), "greater than 0", "[pool]"]);
    }
    option(&["--capacity", "0.5,0"], &["--capacity: found \"0\"", "greater than 0"]);
    option(&["--capacity", "1,1"], &["capacity 1 is named twice"]);
    file_option("--capacity", "c.toml", "", &["c.toml:1:1: no [pool]", "cpu, mem"]);
    file_option("--capacity", "c.toml", "cpu = 1\nmem = 1\n", &["c.toml:1:1: no [pool]", "cpu, mem"]);
    file_option("--capacity", "c.toml", "[pool]\ncpu = 1\n", &["c.toml:1:", "no mem"]);
    file_option("--capacity", "c.toml", "[pool]\ncpu = 0\nmem = 1\n", &["c.toml:2:7: ", "greater than 0"]);
    file_option("--capacity", "c.toml", "[pool\n", &["c.toml:1:"]);
    file_option("--capacity", "w.csv", CSV, &["w.csv:1:"]);
}

#[test]
fn weights() {
    for bad in ["0", "nan", "-1", "x", ""] {
        file_option(
            "--weights",
            "x.csv",
            &format!("bob,2\nann,{bad}\n"),
            &["x.csv:2:5: weight of ann", "greater than 0"],
        );
    }
    file_option("--weights", "x.toml", "[weights]\nann = 0\n", &["x.toml:2:7: weight of ann", "greater than 0"]);
    file_option("--weights", "x.toml", "[weights]\nann = nan\n", &["x.toml:2:7: weight of ann", "greater than 0"]);
    file_option("--weights", "x.csv", "ann\n", &["x.csv:1:1: found \"ann\"", "user,weight"]);
    option(&["--weights", "none.csv"], &["none.csv", "No such file"]);
}

#[test]
fn threads() {
    option(&["--threads", "0"], &["--threads", "0", "1 or more"]);
    option(&["--threads", "many"], &["--threads", "many"]);
}

#[test]
fn options_are_checked_before_a_long_trace_is_read() {
    let bench = Bench::new();
    // The trace is not there: what is said first is what is looked at first.
    for args in [["--policy", "fair"], ["--delta", "2"], ["--half-life", "x"], ["--capacity", "x"]] {
        let all = [["study", "none.csv"].as_slice(), &args].concat();
        bench.refuses(&all, 2, &[args[0]]);
    }
}

#[test]
fn an_output_that_cannot_be_written() {
    let bench = Bench::with("w.csv", CSV);
    bench.refuses(&["study", "w.csv", "--out", "w.csv"], 3, &["w.csv"]);
    bench.refuses(&["workload", "import", "w.csv", "-o", "none/w.parquet"], 3, &["none"]);
    bench.refuses(&["workload", "generate", "--tasks", "10", "--users", "2", "-o", "none/w.parquet"], 3, &["none"]);
}
