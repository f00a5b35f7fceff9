//! `evenhand audit` as a user meets it.

use serde_json::json;

use crate::allocate::PAPER;
use crate::bench::{Bench, Ran};

fn audit(allocation: &str, args: &[&str]) -> Ran {
    let bench = Bench::with("p.toml", PAPER);
    bench.write("a.json", allocation);
    bench.run(&[&["audit", "p.toml", "a.json"], args].concat())
}

fn tasks(a: &str, b: &str) -> String {
    format!(r#"{{"users": [{{"name": "A", "tasks": {a}}}, {{"name": "B", "tasks": {b}}}]}}"#)
}

#[track_caller]
fn complains(ran: &Ran, lines: &[&str]) {
    assert_eq!(ran.status, 1, "{ran:?}");
    for line in lines {
        assert!(ran.stdout.lines().any(|l| l == *line), "{line:?} is not in\n{}", ran.stdout);
    }
}

const PROPERTIES: [&str; 2] = ["--property", "feasible,pareto,sharing_incentive,envy_free"];

#[test]
fn an_allocation_without_complaints() {
    let ran = audit(&tasks("3", "2"), &PROPERTIES).done();
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 4, "{}", ran.stdout);
    assert!(lines.iter().all(|line| line.contains(" holds: ")), "{}", ran.stdout);
    assert_eq!(audit(&tasks("3", "2"), &[&PROPERTIES[..], &["--format", "json"]].concat()).done().json(), json!([]));
}

#[test]
fn a_finding_a_line_in_the_problems_units() {
    // 10 of 9 CPUs.
    let ran = audit(&tasks("1", "3"), &PROPERTIES);
    complains(
        &ran,
        &[
            "feasible: cpu: has 10, due 9; over by 1 cpu",
            // Half of everything: 4.5 CPUs and 9 GB, in which 2.25 tasks (1, 4) fit.
            "sharing_incentive: A on mem: has 1 tasks, due 2.25; short by 1.25 (1.25 cpu, 5 mem)",
        ],
    );
    assert!(ran.stdout.contains("\nfeasible violated: a resource"), "{}", ran.stdout);
    let ran = audit(&tasks("1", "1"), &["--property", "pareto"]);
    // 5 CPUs and 13 GB are left: 3.25 tasks (1, 4), or 5/3 (3, 1).
    complains(&ran, &["pareto: A on mem: has 1 tasks, due 4.25; short by 3.25 (3.25 cpu, 13 mem)"]);
    complains(&ran, &["pareto: B on cpu: has 1 tasks, due 2.667; short by 1.667 (5 cpu, 1.667 mem)"]);
    // A would rather have 6 CPUs and 6 GB.
    let ran = audit(&tasks("1", "6"), &["--property", "envy_free"]);
    complains(&ran, &["envy_free: A against B on mem: has 1 tasks, due 1.5; short by 0.5 (0.5 cpu, 2 mem)"]);
    let ran = audit(&tasks("-1", "2"), &["--property", "feasible"]);
    complains(&ran, &["feasible: A: has -1 tasks, due 0; short by 1 (1 cpu, 4 mem)"]);
}

#[test]
fn findings_as_json_exact_ones_as_fractions() {
    let args = ["--property", "envy_free", "--format", "json"];
    let float = audit(&tasks("1", "6"), &args);
    assert_eq!(float.status, 1);
    let expected = json!([{"property": "envy_free", "who": "A", "against": "B", "on": "mem", "measure": "tasks",
        "has": 1.0, "due": 1.5, "by": 0.5, "amount": {"cpu": 0.5, "mem": 2.0}}]);
    assert_eq!(float.json(), expected);
    let exact = audit(&tasks("\"1\"", "\"6\""), &[&args[..], &["--tolerance", "0"]].concat());
    let expected = json!([{"property": "envy_free", "who": "A", "against": "B", "on": "mem", "measure": "tasks",
        "has": "1", "due": "3/2", "by": "1/2", "amount": {"cpu": "1/2", "mem": "2"}}]);
    assert_eq!(exact.json(), expected);
}

#[test]
fn the_tolerance_decides_what_counts() {
    let slightly = tasks("3", "2.0000001");
    assert_eq!(audit(&slightly, &["--property", "feasible", "--tolerance", "1e-6"]).status, 0);
    assert_eq!(audit(&slightly, &["--property", "feasible"]).status, 1);
    let thirds = tasks("2.999999999999999", "2");
    assert_eq!(audit(&thirds, &["--property", "pareto"]).status, 0);
    assert_eq!(audit(&thirds, &["--property", "pareto", "--tolerance", "0"]).status, 1);
}

#[test]
fn what_allocate_prints_can_be_audited() {
    let bench = Bench::with("p.toml", PAPER);
    for arguments in [&["--exact"][..], &[]] {
        let args = [&["allocate", "p.toml", "--mechanism", "drf,asset", "--format", "json"], arguments].concat();
        bench.write("a.json", bench.run(&args).done().stdout);
        let property = PROPERTIES;
        let audit = [&["audit", "p.toml", "a.json"], &property[..]].concat();
        bench.run(&audit).refused(2, &["found 2 allocations, expected one; choose by --mechanism: drf, asset"]);
        bench.run(&[&audit[..], &["--mechanism", "drf"]].concat()).done();
        bench.run(&[&audit[..], &["--mechanism", "ceei"]].concat()).refused(2, &["found no allocation of ceei"]);
    }
    let piped = bench.run_with_input(&["audit", "p.toml", "-"], tasks("3", "2").as_bytes());
    assert!(piped.status <= 1, "{piped:?}");
}

#[test]
fn a_wrong_command_line_or_file() {
    let bench = Bench::with("p.toml", PAPER);
    bench.write("a.json", tasks("3", "2"));
    let refuses = |args: &[&str], says: &[&str]| {
        bench.refuses(&[&["audit"], args].concat(), 2, says);
    };
    refuses(&["p.toml"], &["ALLOCATION"]);
    refuses(&["p.toml", "a.json", "--property", "parето"], &["--property: found", "expected one of: feasible, pareto"]);
    refuses(&["p.toml", "a.json", "--property", "envyfree"], &["did you mean \"envy_free\"?"]);
    for bad in ["-1", "1", "x", "nan"] {
        refuses(&["p.toml", "a.json", &format!("--tolerance={bad}")], &["--tolerance: found", "from 0 to less than 1"]);
    }
    refuses(&["-", "-"], &["found - for both files"]);
    refuses(&["p.toml", "a.json", "--search-lies", "--mechanism", "drf"], &["cannot be used with"]);
    refuses(&["p.toml", "--search-lies"], &["--mechanism"]);
    refuses(&["p.toml", "--search-lies", "--mechanism", "drf", "--user", "C"], &["--user: found \"C\""]);
    bench.write("a.json", tasks("3", "2").replace("\"B\"", "\"C\""));
    refuses(&["p.toml", "a.json"], &["a.json:1:48: name: found \"C\", expected a user of the problem", "^^^"]);
    bench.write("a.json", r#"{"users": [{"name": "A", "tasks": 1}]}"#);
    refuses(&["p.toml", "a.json"], &["a.json:1:11: users: found no tasks of \"B\" (1 of 2 users)"]);
}

/// What a user needs of each resource: (1/4, 1) and (1, 1/2) of the capacities, 10 CPUs and 80 GB.
const MARKET: &str = "\
[capacity]
cpu = 10
mem = 80
[[user]]
name = \"A\"
tasks = 1
demand = { cpu = 2.5, mem = 80 }
[[user]]
name = \"B\"
tasks = 1
demand = { cpu = 10, mem = 40 }
";

fn search(mechanism: &str, more: &[&str]) -> Ran {
    let bench = Bench::with("p.toml", MARKET);
    let args = ["audit", "p.toml", "--search-lies", "--mechanism", mechanism, "--tries", "300"];
    bench.run(&[&args[..], more].concat())
}

#[test]
fn no_profitable_misreport_is_found_where_there_is_none() {
    let drf = search("drf,sdrf", &[]).done();
    let lines: Vec<&str> = drf.stdout.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(lines.len(), 2, "{drf:?}");
    assert!(lines[0].starts_with("drf: none of ") && lines[0].ends_with(" misreports is profitable"), "{drf:?}");
    let mut found = search("drf", &["--format", "json", "--user", "B"]).done().json();
    let tried = found[0]["tried"].take().as_u64().unwrap();
    assert!((100..=300).contains(&tried), "{tried}");
    assert_eq!(found, json!([{"mechanism": "drf", "tried": null, "refused": 0, "best": null}]));
}

#[test]
fn a_profitable_misreport_is_printed_in_the_problems_units() {
    let ceei = search("ceei", &["--user", "A"]);
    assert_eq!(ceei.status, 1, "{ceei:?}");
    for part in ["ceei: A gains ", " by misreporting", "gets tasks", "\nmisreport "] {
        assert!(ceei.stdout.contains(part), "{part:?} is not in\n{}", ceei.stdout);
    }
    let truth = ["truth", "2.5", "80", "1", "0.5714"];
    assert!(ceei.stdout.lines().any(|line| line.split_whitespace().eq(truth)), "{}", ceei.stdout);
    let found = search("ceei", &["--format", "json", "--user", "A"]);
    let json = found.json();
    let best = &json[0]["best"];
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    assert_eq!(best["user"], "A");
    assert!((number(&best["truthful_tasks"]) - 4.0 / 7.0).abs() < 1e-6, "{best}");
    // Twice the CPUs gain a sixth.
    assert!(number(&best["gain"]) > 0.166, "{best}");
    assert!(number(&best["declared_demand"]["cpu"]) / number(&best["declared_demand"]["mem"]) > 2.0 / 80.0, "{best}");
    assert_eq!(
        found.stdout,
        search("ceei", &["--format", "json", "--user", "A"]).stdout,
        "equal seeds find equal misreports"
    );
}
