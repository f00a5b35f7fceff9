//! `evenhand timeline`

use crate::bench::Bench;

const TWO: &str = include_str!("../../../../docs/examples/two-who-come.toml");
const PEAK: &str = include_str!("../../../../docs/examples/greedy-and-sporadic.toml");
const ONE_BY_ONE: &str = include_str!("../../../../docs/examples/one-by-one.toml");

#[test]
fn intervals_as_json_exactly_and_in_floats() {
    let bench = Bench::with("s.toml", TWO);
    let exact = bench.run(&["timeline", "s.toml", "--exact", "--format", "json"]).done().json();
    let begins: Vec<&str> =
        exact["intervals"].as_array().unwrap().iter().map(|i| i["from"].as_str().unwrap()).collect();
    assert_eq!(begins, ["0", "10", "20", "40"]);
    let second = &exact["intervals"][1];
    assert_eq!(second["users"][1]["tasks"], "2");
    assert_eq!(second["users"][0]["allocation"]["mem"], "12");
    assert_eq!(second["resources"][1]["utilization"], "7/9");
    assert_eq!((&exact["left"]["A"], &exact["left"]["B"]), (&"100".into(), &"40".into()));
    let float = bench.run(&["timeline", "s.toml", "--format", "json"]).done().json();
    assert_eq!(float["intervals"][2]["users"][1]["tasks"], 0.5);
    // Read from a pipe it is the same.
    let piped = bench.run_with_input(&["timeline", "-", "--format", "json"], TWO.as_bytes()).done().json();
    assert_eq!(piped, float);
}

#[test]
fn a_memory_shows_in_rows_and_figures() {
    let bench = Bench::with("s.toml", PEAK);
    let sdrf =
        ["timeline", "s.toml", "--mechanism", "sdrf", "--half-life", "8d", "--out", "figures", "--format", "json"];
    let record = bench.run(&sdrf).done().json();
    let first_together = &record["intervals"][1];
    let tasks = |user: usize| first_together["users"][user]["tasks"].as_f64().unwrap();
    let committed = first_together["users"][0]["commitment"]["cpu"].as_f64().unwrap();
    assert!((committed - 0.5 * (1.0 - 0.5f64.powf(1.25))).abs() < 1e-12, "{committed}");
    assert!((tasks(1) - tasks(0) - 100.0 * committed).abs() < 1e-9);
    assert!(first_together["users"][1]["tasks_at_end"].as_f64().unwrap() < tasks(1));
    assert!(bench.read("figures/use-1-cpu.svg").contains("class=\"area"));
    let csv = bench.read("figures/use-1-cpu.csv");
    assert!(csv.starts_with("time_s,greedy,sporadic\n0,1,0\n"), "{csv}");
    bench.holds_nothing_half_written();
}

#[test]
fn what_cannot_be_divided_over_time_is_refused_in_a_sentence() {
    let bench = Bench::with("two.toml", TWO);
    bench.write("one.toml", ONE_BY_ONE);
    bench.refuses(&["timeline", "two.toml", "--mechanism", "max-min"], 2, &["second 0", "one resource"]);
    bench.refuses(&["timeline", "two.toml", "--mechanism", "baa", "--irrevocable"], 2, &["user 0 is \"A\"", "stay"]);
    bench.refuses(&["timeline", "one.toml", "--irrevocable"], 2, &["baa only", "drf"]);
    bench.refuses(&["timeline", "two.toml", "--mechanism", "sdrf", "--exact"], 2, &["commitments", "irrational"]);
    bench.refuses(&["timeline", "two.toml", "--mechanism", "dfr"], 2, &["\"dfr\"", "drf"]);
    bench.refuses(&["timeline", "two.toml", "--mechanism", "sdrf", "--delta", "1"], 2, &["delta", "less than 1"]);
    bench.refuses(&["timeline", "two.toml", "--until", "soon"], 2, &["--until soon"]);
    bench.refuses(&["timeline", "absent.toml"], 2, &["absent.toml"]);
}
