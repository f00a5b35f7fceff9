//! `evenhand processes`, and experiments of Zeldes & Feitelson (2013)

use crate::test_folder::TestFolder;

const RED: &str = "# Priority:\n33\n# Requests:\nloop 1\nCPU_CS 20 0 NORM\n";
const BLUE: &str = "# Priority:\n67\n# Requests:\nloop 1\nidle 5 0 NORM\nCPU_CS 15 0 NORM\n";
const RANDOM: &str = "# Priority:\n1\n# Requests:\nloop 20\nCPU_CS 0.2 0.1 NORM\nDISK 0.3 0 EXP\n";

fn two() -> TestFolder {
    let folder = TestFolder::with("red.prog", RED);
    folder.write("blue.prog", BLUE);
    folder
}

#[test]
fn shares_are_compared_with_the_off_line_division() {
    let folder = two();
    let json = folder.run(&["processes", "red.prog", "blue.prog", "--format", "json"]).assert_succeeds().json();
    let run = &json[0];
    assert_eq!(run["processes"][0]["finish_s"]["mean"], 35.0);
    let blue = run["processes"][1]["finish_s"]["mean"].as_f64().unwrap();
    // 27.4 s if shares were exact; a window's accounting is exact to a quantum or two in 3 s.
    assert!((27.0..27.6).contains(&blue), "{blue}");
    let long = &run["long_run"];
    assert_eq!(long["from_s"], 8.0);
    assert!(long["difference"].as_f64().unwrap() < 0.02 && long["complaints"].as_array().unwrap().is_empty());
    assert!((long["processes"][1]["shares"][0]["divided"].as_f64().unwrap() - 0.67).abs() < 1e-9);
    let text = folder.run(&["processes", "red.prog", "blue.prog"]).assert_succeeds().stdout;
    assert!(
        text.contains("No process has a justified complaint") && text.contains("CPU_CS is a bottleneck: 2.8 to"),
        "{text}"
    );
}

#[test]
fn several_schedulers_are_compared_by_justified_complaints() {
    let folder = two();
    let args = ["processes", "red.prog", "blue.prog", "--scheduler", "bottleneck,round-robin"];
    let text = folder.run(&args).assert_succeeds().stdout;
    let complain: Vec<&str> =
        text.lines().find(|l| l.starts_with("justified complaint")).unwrap().split("  ").collect();
    let complain: Vec<&str> = complain.iter().map(|c| c.trim()).filter(|c| !c.is_empty()).collect();
    assert_eq!(complain, ["justified complaint", "none", "blue"], "{text}");
    folder.assert_rejects(&["processes", "red.prog", "--scheduler", "strid"], 2, &["--scheduler", "stride"]);
    folder.assert_rejects(&["processes", "red.prog", "--reading", "locally"], 2, &["--reading", "per-resource"]);
    folder.assert_rejects(&["processes", "red.prog", "--horizon", "soon"], 2, &["--horizon soon"]);
}

#[test]
fn several_runs_do_not_depend_on_the_number_of_threads() {
    let folder = TestFolder::with("a.prog", RANDOM);
    folder.write("b.prog", RANDOM);
    let run = |threads: &str, seed: &str| {
        let args = ["processes", "a.prog", "b.prog", "--runs", "30", "--threads", threads, "--seed", seed];
        folder.run(&args).assert_succeeds().stdout
    };
    let (one, two) = (run("1", "5"), run("2", "5"));
    assert_eq!(one, two);
    assert!(one.contains("mean ± standard deviation of 30"), "{one}");
    assert_ne!(one, run("1", "6"));
}

#[test]
fn out_writes_a_page_figures_and_disjoint_intervals() {
    let folder = TestFolder::with("a.prog", RANDOM);
    folder.write("b.prog", RANDOM);
    folder.run(&["processes", "a.prog", "b.prog", "--runs", "3", "--out", "new/folder", "--quiet"]).assert_succeeds();
    for name in ["gantt", "use", "use-1-CPU_CS", "use-2-DISK", "priorities", "mean", "mean-2-DISK"] {
        assert!(folder.read(&format!("new/folder/{name}.svg")).contains("</svg>"), "{name}");
        assert!(folder.read(&format!("new/folder/{name}.csv")).lines().count() > 2, "{name}");
    }
    assert!(folder.read("new/folder/index.html").contains("</html>"));
    let intervals = folder.read("new/folder/intervals.csv");
    let mut at = 0.0;
    for line in intervals.lines().filter(|l| l.starts_with("service,DISK,")) {
        let cells: Vec<&str> = line.split(',').collect();
        let (from, until): (f64, f64) = (cells[5].parse().unwrap(), cells[6].parse().unwrap());
        assert!(from >= at && until > from, "the disk serves one at a time: {line}");
        at = until;
    }
    folder.assert_no_temporary_files();
}

#[test]
fn check_describes_programs_in_words_and_invalid_ones_are_reported_with_their_place() {
    let folder = two();
    let text = folder.run(&["processes", "blue.prog", "--check"]).assert_succeeds().stdout;
    assert!(text.contains("idle for exactly 5 s") && text.contains("in quanta of 0.1 s"), "{text}");
    folder.write("bad.prog", RED.replace("NORM", "NROM"));
    folder.assert_rejects(&["processes", "bad.prog"], 2, &["bad.prog:5:13", "\"NROM\"", "NORM, UNIF or EXP", "^"]);
    folder.write("bad.toml", "[[client]]\nprogram = \"red.prog\"\nentitlment = 3\n");
    folder.assert_rejects(&["processes", "bad.toml"], 2, &["bad.toml:3:1", "entitlement", "^"]);
    folder.assert_rejects(&["processes", "bad.toml", "red.prog"], 2, &["one scenario"]);
    folder.assert_rejects(&["processes", "absent.prog"], 2, &["absent.prog"]);
}

#[test]
fn a_run_that_would_take_hours_or_too_much_memory_is_refused_before_it_begins() {
    let folder = TestFolder::with("long.prog", RED.replace("loop 1", "loop 100000000000"));
    let refused = "found a scenario of about 720575940 services and delays in all its runs, expected at most 100000000; \
                   choose a longer quantum, fewer iterations or a lower --runs, or cut the runs off earlier with --horizon";
    folder.assert_rejects(&["processes", "long.prog"], 2, &[refused]);
    // What remedies it: a horizon. It is described whatever its length.
    folder.run(&["processes", "long.prog", "--horizon", "100"]).assert_succeeds();
    folder.run(&["processes", "long.prog", "--check"]).assert_succeeds();
    let runs = ["processes", "long.prog", "--horizon", "100", "--runs"];
    folder.assert_rejects(
        &[&runs[..], &["100000", "--scheduler", "stride,lottery"]].concat(),
        2,
        &["about 200000000 services and delays in all its runs"],
    );
    let out = ["processes", "long.prog", "--out", "out", "--horizon"];
    folder.assert_rejects(
        &[&out[..], &["2000000"]].concat(),
        2,
        &["about 20000000 services and delays, expected at most 10000000 with --out, which writes a row for each"],
    );
    folder.assert_rejects(
        &[&out[..], &["100", "--runs", "100000", "--scheduler", "stride,lottery,least-use"]].concat(),
        2,
        &["expected at most"],
    );
    folder.write("tiny.toml", "[parameters]\nquantum = 0.000000001\n[[client]]\nprogram = \"red.prog\"\n");
    folder.write("red.prog", RED);
    folder.assert_rejects(&["processes", "tiny.toml"], 2, &["about 2.0e10 services"]);
    assert!(!folder.path("out").exists());
}

#[test]
fn statements_of_zeldes_and_feitelson_hold() {
    let folder = TestFolder::new();
    for figure in ["figure-2", "figure-3", "figure-7", "figure-14"] {
        let output = folder.run(&["reproduce", &format!("000/{figure}"), "--out", "out"]).assert_succeeds();
        assert!(output.stdout.lines().any(|line| line.contains("holds")), "{}", output.stdout);
        assert!(folder.read(&format!("out/zeldes-feitelson-{figure}-gantt.svg")).contains("bottleneck"));
    }
}
