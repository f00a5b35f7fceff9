//! `evenhand reproduce`

use crate::bench::{Bench, SWF};

#[test]
fn verdicts_figures_and_a_page() {
    let bench = Bench::new();
    // With 2000 tasks, Figures 4 and 5 need not agree with the 32 million of the paper; Figures 1 and 2 do.
    let ran = bench.run(&["reproduce", "001", "--tasks", "2000", "--out", "figures"]);
    assert!(ran.status <= 1 && ran.stdout.lines().all(|line| line.starts_with("001/figure-")), "{ran:?}");
    assert!(ran.stdout.lines().take(10).all(|line| line.contains("  holds  ")), "{}", ran.stdout);
    for figure in ["1a", "1b", "2a", "2b", "4", "4-each", "5"] {
        assert!(bench.read(&format!("figures/sadok-figure-{figure}.svg")).contains("</svg>"));
        assert!(bench.read(&format!("figures/sadok-figure-{figure}.csv")).lines().count() > 2);
    }
    assert!(bench.read("figures/index.html").contains("sadok/figure-2b"));
    bench.holds_nothing_half_written();
    let again = bench.run(&["reproduce", "001/figure-2", "--format", "json"]).done().json();
    assert_eq!(again[1]["verdicts"][1]["holds"], true);
}

#[test]
fn a_statement_that_does_not_hold_gives_status_1_and_the_seed_decides_random_draws() {
    let bench = Bench::new();
    let run = |seed: &str| bench.run(&["reproduce", "002/figure-1", "--seed", seed]);
    let (first, again, other) = (run("1"), run("1"), run("2"));
    assert_eq!(first.status, 1, "{first:?}");
    assert!(first.stdout.contains("does not hold"), "{}", first.stdout);
    assert_eq!(first.stdout, again.stdout);
    assert_ne!(first.stdout, other.stdout);
}

#[test]
fn unknown_experiments_and_unsuitable_traces_are_refused() {
    let bench = Bench::with("w.swf", SWF);
    bench.refuses(&["reproduce", "001/figure-9"], 2, &["001/figure-9", "sadok/figure-1a"]);
    bench.refuses(&["reproduce", "002/figure-1", "--data", "w.swf"], 2, &["cpu (processors)", "largest machine"]);
}

#[test]
fn a_trace_runs_beside_the_generated_month() {
    let bench = Bench::with("w.swf", SWF);
    let ran = bench.run(&["reproduce", "001/figure-5", "--tasks", "2000", "--data", "w.swf"]);
    for workload in ["generated month: most users", "trace: most users"] {
        assert!(ran.stdout.contains(workload), "{ran:?}");
    }
    let without = bench.run(&["reproduce", "001/figure-5", "--tasks", "2000"]);
    assert!(without.stdout.contains("on a real trace: skipped") && !without.stdout.contains("trace: most users"));
    bench.refuses(&["reproduce", "001/figure-5", "--tasks", "600"], 2, &["627 users", "600"]);
}
