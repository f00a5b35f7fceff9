//! `evenhand reproduce`

use crate::test_folder::{SWF, TestFolder};

#[test]
fn an_experiment_prints_verdicts_and_writes_figures_and_a_page() {
    let folder = TestFolder::new();
    // With 2000 tasks, Figures 4 and 5 need not agree with the 32 million of the paper; Figures 1 and 2 do.
    let output = folder.run(&["reproduce", "001", "--tasks", "2000", "--out", "figures"]);
    let begins = |line: &&str| line.starts_with("001/figure-");
    assert!(
        output.status <= 1 && output.stdout.lines().all(|line| begins(&line) || line.starts_with("    ")),
        "{output:?}"
    );
    assert!(output.stdout.lines().filter(begins).take(10).all(|line| line.contains("  holds  ")), "{}", output.stdout);
    assert!(output.stdout.lines().all(|line| line.chars().count() <= 100), "{}", output.stdout);
    for figure in ["1a", "1b", "2a", "2b", "4", "4-each", "5"] {
        assert!(folder.read(&format!("figures/sadok-figure-{figure}.svg")).contains("</svg>"));
        assert!(folder.read(&format!("figures/sadok-figure-{figure}.csv")).lines().count() > 2);
    }
    assert!(folder.read("figures/index.html").contains("sadok/figure-2b"));
    folder.assert_no_temporary_files();
    let again = folder.run(&["reproduce", "001/figure-2", "--format", "json"]).assert_succeeds().json();
    assert_eq!(again[1]["verdicts"][1]["holds"], true);
}

#[test]
fn a_statement_that_does_not_hold_gives_status_1_and_the_seed_decides_random_draws() {
    let folder = TestFolder::new();
    let run = |seed: &str| folder.run(&["reproduce", "002/figure-1", "--seed", seed]);
    let (first, again, other) = (run("1"), run("1"), run("2"));
    assert_eq!(first.status, 1, "{first:?}");
    assert!(first.stdout.contains("does not hold"), "{}", first.stdout);
    assert_eq!(first.stdout, again.stdout);
    assert_ne!(first.stdout, other.stdout);
}

#[test]
fn unknown_experiments_and_unsuitable_traces_are_rejected() {
    let folder = TestFolder::with("w.swf", SWF);
    folder.assert_rejects(&["reproduce", "001/figure-9"], 2, &["001/figure-9", "sadok/figure-1a"]);
    folder.assert_rejects(
        &["reproduce", "002/figure-1", "--data", "w.swf"],
        2,
        &["cpu (processors)", "largest machine"],
    );
}

#[test]
fn a_given_trace_replaces_the_generated_month() {
    let folder = TestFolder::with("w.swf", SWF);
    let output = folder.run(&["reproduce", "001/figure-5", "--tasks", "2000", "--data", "w.swf"]);
    let unfolded = |text: &str| text.replace("\n    ", " ");
    for workload in ["generated month: most users", "trace: most users"] {
        assert!(unfolded(&output.stdout).contains(workload), "{output:?}");
    }
    let without = folder.run(&["reproduce", "001/figure-5", "--tasks", "2000"]);
    let without = unfolded(&without.stdout);
    assert!(without.contains("on a real trace: skipped") && !without.contains("trace: most users"));
    folder.assert_rejects(&["reproduce", "001/figure-5", "--tasks", "600"], 2, &["627 users", "600"]);
}
