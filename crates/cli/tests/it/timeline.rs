//! `evenhand timeline`

use crate::test_folder::TestFolder;

const TWO: &str = include_str!("../../../../docs/examples/two-who-come.toml");
const PEAK: &str = include_str!("../../../../docs/examples/greedy-and-sporadic.toml");
const ONE_BY_ONE: &str = include_str!("../../../../docs/examples/one-by-one.toml");

#[test]
fn json_has_intervals_exactly_or_in_64_bits() {
    let folder = TestFolder::with("s.toml", TWO);
    let exact = folder.run(&["timeline", "s.toml", "--exact", "--format", "json"]).assert_succeeds().json();
    let begins: Vec<&str> =
        exact["intervals"].as_array().unwrap().iter().map(|i| i["from"].as_str().unwrap()).collect();
    assert_eq!(begins, ["0", "10", "20", "40"]);
    let second = &exact["intervals"][1];
    assert_eq!(second["users"][1]["tasks"], "2");
    assert_eq!(second["users"][0]["allocation"]["mem"], "12");
    assert_eq!(second["resources"][1]["utilization"], "7/9");
    assert_eq!((&exact["left"]["A"], &exact["left"]["B"]), (&"100".into(), &"40".into()));
    let float = folder.run(&["timeline", "s.toml", "--format", "json"]).assert_succeeds().json();
    assert_eq!(float["intervals"][2]["users"][1]["tasks"], 0.5);
    // Read from a pipe it is the same.
    let piped = folder.run_with_input(&["timeline", "-", "--format", "json"], TWO.as_bytes()).assert_succeeds().json();
    assert_eq!(piped, float);
}

#[test]
fn past_use_changes_rows_and_figures_of_a_stateful_mechanism() {
    let folder = TestFolder::with("s.toml", PEAK);
    let sdrf =
        ["timeline", "s.toml", "--mechanism", "sdrf", "--half-life", "8d", "--out", "figures", "--format", "json"];
    let record = folder.run(&sdrf).assert_succeeds().json();
    let first_together = &record["intervals"][1];
    let tasks = |user: usize| first_together["users"][user]["tasks"].as_f64().unwrap();
    let committed = first_together["users"][0]["commitment"]["cpu"].as_f64().unwrap();
    assert!((committed - 0.5 * (1.0 - 0.5f64.powf(1.25))).abs() < 1e-12, "{committed}");
    assert!((tasks(1) - tasks(0) - 100.0 * committed).abs() < 1e-9);
    assert!(first_together["users"][1]["tasks_at_end"].as_f64().unwrap() < tasks(1));
    assert!(folder.read("figures/use-1-cpu.svg").contains("class=\"area"));
    let csv = folder.read("figures/use-1-cpu.csv");
    assert!(csv.starts_with("time_s,greedy,sporadic\n0,1,0\n"), "{csv}");
    folder.assert_no_temporary_files();
}

#[test]
fn scenarios_that_a_mechanism_does_not_support_are_rejected() {
    let folder = TestFolder::with("two.toml", TWO);
    folder.write("one.toml", ONE_BY_ONE);
    folder.assert_rejects(&["timeline", "two.toml", "--mechanism", "max-min"], 2, &["second 0", "one resource"]);
    folder.assert_rejects(
        &["timeline", "two.toml", "--mechanism", "baa", "--irrevocable"],
        2,
        &["user 0 is \"A\"", "stay"],
    );
    folder.assert_rejects(&["timeline", "one.toml", "--irrevocable"], 2, &["baa only", "drf"]);
    folder.assert_rejects(
        &["timeline", "two.toml", "--mechanism", "sdrf", "--exact"],
        2,
        &["commitments", "irrational"],
    );
    folder.assert_rejects(&["timeline", "two.toml", "--mechanism", "dfr"], 2, &["\"dfr\"", "drf"]);
    folder.assert_rejects(
        &["timeline", "two.toml", "--mechanism", "sdrf", "--delta", "1"],
        2,
        &["delta", "less than 1"],
    );
    folder.assert_rejects(&["timeline", "two.toml", "--until", "soon"], 2, &["--until soon", "seconds, or a number"]);
    for zero in ["0", "0s"] {
        folder.assert_rejects(&["timeline", "two.toml", "--until", zero], 2, &["found 0, expected a time above 0"]);
    }
    folder.assert_rejects(&["timeline", "absent.toml"], 2, &["absent.toml"]);
}

#[test]
fn options_without_effect_and_figures_that_are_no_svg_are_refused() {
    let folder = TestFolder::with("two.toml", TWO);
    let run = |more: &[&str]| folder.run(&[&["timeline", "two.toml"], more].concat());
    run(&["--mechanism", "drf", "--half-life", "1d"])
        .assert_fails(2, &["--half-life: applies to the mechanism sdrf only"]);
    run(&["--resolution", "1s"]).assert_fails(2, &["--resolution: applies"]);
    run(&["--figure", "x.png"]).assert_fails(2, &["--figure: found \"x.png\"", "give x.svg"]);
    assert!(!folder.path("x.png").exists());
}
