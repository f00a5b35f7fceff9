//! `evenhand processes` and the experiments of paper 000.

use crate::bench::Bench;

const RED: &str = "# Priority:\n33\n# Requests:\nloop 1\nCPU_CS 20 0 NORM\n";
const BLUE: &str = "# Priority:\n67\n# Requests:\nloop 1\nidle 5 0 NORM\nCPU_CS 15 0 NORM\n";
const RANDOM: &str = "# Priority:\n1\n# Requests:\nloop 20\nCPU_CS 0.2 0.1 NORM\nDISK 0.3 0 EXP\n";

fn two() -> Bench {
    let bench = Bench::with("red.prog", RED);
    bench.write("blue.prog", BLUE);
    bench
}

#[test]
fn programs_run_and_shares_are_held_against_the_theory() {
    let bench = two();
    let json = bench.run(&["processes", "red.prog", "blue.prog", "--format", "json"]).done().json();
    let run = &json[0];
    assert_eq!(run["processes"][0]["finish_s"]["mean"], 35.0);
    let blue = run["processes"][1]["finish_s"]["mean"].as_f64().unwrap();
    // 27.4 s if shares were exact; a window's accounting is exact to a quantum or two in 3 s.
    assert!((27.0..27.6).contains(&blue), "{blue}");
    let long = &run["long_run"];
    assert_eq!(long["from_s"], 8.0);
    assert!(long["difference"].as_f64().unwrap() < 0.02 && long["complaints"].as_array().unwrap().is_empty());
    assert!((long["processes"][1]["shares"][0]["divided"].as_f64().unwrap() - 0.67).abs() < 1e-9);
    let text = bench.run(&["processes", "red.prog", "blue.prog"]).done().stdout;
    assert!(
        text.contains("No process has a justified complaint") && text.contains("CPU_CS is a bottleneck: 2.8 to"),
        "{text}"
    );
}

#[test]
fn schedulers_are_compared_with_their_justified_complaints() {
    let bench = two();
    let args = ["processes", "red.prog", "blue.prog", "--scheduler", "bottleneck,round-robin"];
    let text = bench.run(&args).done().stdout;
    let complain: Vec<&str> =
        text.lines().find(|l| l.starts_with("justified complaint")).unwrap().split("  ").collect();
    let complain: Vec<&str> = complain.iter().map(|c| c.trim()).filter(|c| !c.is_empty()).collect();
    assert_eq!(complain, ["justified complaint", "none", "blue"], "{text}");
    bench.refuses(&["processes", "red.prog", "--scheduler", "strid"], 2, &["--scheduler", "stride"]);
    bench.refuses(&["processes", "red.prog", "--reading", "locally"], 2, &["--reading", "per-resource"]);
    bench.refuses(&["processes", "red.prog", "--horizon", "soon"], 2, &["--horizon soon"]);
}

#[test]
fn many_runs_are_the_same_on_any_number_of_threads() {
    let bench = Bench::with("a.prog", RANDOM);
    bench.write("b.prog", RANDOM);
    let run = |threads: &str, seed: &str| {
        let args = ["processes", "a.prog", "b.prog", "--runs", "30", "--threads", threads, "--seed", seed];
        bench.run(&args).done().stdout
    };
    let (one, two) = (run("1", "5"), run("2", "5"));
    assert_eq!(one, two);
    assert!(one.contains("of 30 runs") && one.contains(" ± "), "{one}");
    assert_ne!(one, run("1", "6"));
}

#[test]
fn the_folder_has_a_page_figures_and_intervals_that_add_up() {
    let bench = Bench::with("a.prog", RANDOM);
    bench.write("b.prog", RANDOM);
    bench.run(&["processes", "a.prog", "b.prog", "--runs", "3", "--out", "new/folder", "--quiet"]).done();
    for name in ["gantt", "use", "use-1-CPU_CS", "use-2-DISK", "priorities", "mean", "mean-2-DISK"] {
        assert!(bench.read(&format!("new/folder/{name}.svg")).contains("</svg>"), "{name}");
        assert!(bench.read(&format!("new/folder/{name}.csv")).lines().count() > 2, "{name}");
    }
    assert!(bench.read("new/folder/index.html").contains("</html>"));
    let intervals = bench.read("new/folder/intervals.csv");
    let mut at = 0.0;
    for line in intervals.lines().filter(|l| l.starts_with("service,DISK,")) {
        let cells: Vec<&str> = line.split(',').collect();
        let (from, until): (f64, f64) = (cells[5].parse().unwrap(), cells[6].parse().unwrap());
        assert!(from >= at && until > from, "the disk serves one at a time: {line}");
        at = until;
    }
    bench.holds_nothing_half_written();
}

#[test]
fn check_says_in_words_what_a_program_does_and_bad_ones_are_shown() {
    let bench = two();
    let text = bench.run(&["processes", "blue.prog", "--check"]).done().stdout;
    assert!(text.contains("idle for exactly 5 s") && text.contains("in quanta of 0.1 s"), "{text}");
    bench.write("bad.prog", RED.replace("NORM", "NROM"));
    bench.refuses(&["processes", "bad.prog"], 2, &["bad.prog:5:13", "\"NROM\"", "NORM, UNIF or EXP", "^"]);
    bench.write("bad.toml", "[[client]]\nprogram = \"red.prog\"\nentitlment = 3\n");
    bench.refuses(&["processes", "bad.toml"], 2, &["bad.toml:3:1", "entitlement", "^"]);
    bench.refuses(&["processes", "bad.toml", "red.prog"], 2, &["one scenario"]);
    bench.refuses(&["processes", "absent.prog"], 2, &["absent.prog"]);
}

#[test]
fn statements_of_zeldes_and_feitelson_hold() {
    let bench = Bench::new();
    for figure in ["figure-2", "figure-3", "figure-7", "figure-14"] {
        let ran = bench.run(&["reproduce", &format!("000/{figure}"), "--out", "out"]).done();
        assert!(ran.stdout.lines().any(|line| line.contains("holds")), "{}", ran.stdout);
        assert!(bench.read(&format!("out/zeldes-feitelson-{figure}-gantt.svg")).contains("bottleneck"));
    }
}
