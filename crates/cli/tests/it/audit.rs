//! `evenhand audit` of allocations and mechanisms

use serde_json::json;

use crate::allocate::PAPER;
use crate::test_folder::{ProgramOutput, TestFolder};

fn audit(allocation: &str, args: &[&str]) -> ProgramOutput {
    let folder = TestFolder::with("p.toml", PAPER);
    folder.write("a.json", allocation);
    folder.run(&[&["audit", "p.toml", "a.json"], args].concat())
}

fn tasks(a: &str, b: &str) -> String {
    format!(r#"{{"users": [{{"name": "A", "tasks": {a}}}, {{"name": "B", "tasks": {b}}}]}}"#)
}

#[track_caller]
/// Asserts that the audit has findings, and that these lines are among them.
fn assert_findings(output: &ProgramOutput, lines: &[&str]) {
    assert_eq!(output.status, 1, "{output:?}");
    for line in lines {
        assert!(output.stdout.lines().any(|l| l == *line), "{line:?} is not in\n{}", output.stdout);
    }
}

const PROPERTIES: [&str; 2] = ["--property", "feasible,pareto,sharing_incentive,envy_free"];

#[test]
fn an_allocation_without_findings_has_status_0() {
    let output = audit(&tasks("3", "2"), &PROPERTIES).assert_succeeds();
    // Verdicts, without what is folded below them.
    let lines: Vec<&str> = output.stdout.lines().filter(|line| !line.starts_with(' ')).collect();
    assert_eq!(lines.len(), 4, "{}", output.stdout);
    assert!(lines.iter().all(|line| line.contains(" holds: ")), "{}", output.stdout);
    assert_eq!(
        audit(&tasks("3", "2"), &[&PROPERTIES[..], &["--format", "json"]].concat()).assert_succeeds().json(),
        json!([])
    );
}

#[test]
fn each_finding_is_a_line_in_the_problems_units() {
    // 10 of 9 CPUs.
    let output = audit(&tasks("1", "3"), &PROPERTIES);
    assert_findings(
        &output,
        &[
            "feasible: cpu: has 10, due 9; over by 1 cpu",
            // Half of everything: 4.5 CPUs and 9 GB, in which 2.25 tasks (1, 4) fit.
            "sharing_incentive: A on mem: has 1 tasks, due 2.25; short by 1.25 (1.25 cpu, 5 mem)",
        ],
    );
    assert!(output.stdout.contains("\nfeasible violated: a resource"), "{}", output.stdout);
    let output = audit(&tasks("1", "1"), &["--property", "pareto"]);
    // 5 CPUs and 13 GB are left: 3.25 tasks (1, 4), or 5/3 (3, 1).
    assert_findings(&output, &["pareto: A on mem: has 1 tasks, due 4.25; short by 3.25 (3.25 cpu, 13 mem)"]);
    assert_findings(&output, &["pareto: B on cpu: has 1 tasks, due 2.667; short by 1.667 (5 cpu, 1.667 mem)"]);
    // A would rather have 6 CPUs and 6 GB.
    let output = audit(&tasks("1", "6"), &["--property", "envy_free"]);
    assert_findings(&output, &["envy_free: A against B on mem: has 1 tasks, due 1.5; short by 0.5 (0.5 cpu, 2 mem)"]);
    let output = audit(&tasks("-1", "2"), &["--property", "feasible"]);
    assert_findings(&output, &["feasible: A: has -1 tasks, due 0; short by 1 (1 cpu, 4 mem)"]);
}

#[test]
fn json_has_all_findings_and_exact_numbers_as_fractions() {
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
fn differences_within_the_tolerance_are_no_findings() {
    let slightly = tasks("3", "2.0000001");
    assert_eq!(audit(&slightly, &["--property", "feasible", "--tolerance", "1e-6"]).status, 0);
    assert_eq!(audit(&slightly, &["--property", "feasible"]).status, 1);
    let thirds = tasks("2.999999999999999", "2");
    assert_eq!(audit(&thirds, &["--property", "pareto"]).status, 0);
    assert_eq!(audit(&thirds, &["--property", "pareto", "--tolerance", "0"]).status, 1);
}

#[test]
fn the_output_of_allocate_can_be_audited() {
    let folder = TestFolder::with("p.toml", PAPER);
    for arguments in [&["--exact"][..], &[]] {
        let args = [&["allocate", "p.toml", "--mechanism", "drf,asset", "--format", "json"], arguments].concat();
        folder.write("a.json", folder.run(&args).assert_succeeds().stdout);
        let property = PROPERTIES;
        let audit = [&["audit", "p.toml", "a.json"], &property[..]].concat();
        folder.run(&audit).assert_fails(2, &["found 2 allocations, expected one; choose by --mechanism: drf, asset"]);
        folder.run(&[&audit[..], &["--mechanism", "drf"]].concat()).assert_succeeds();
        folder.run(&[&audit[..], &["--mechanism", "ceei"]].concat()).assert_fails(2, &["found no allocation of ceei"]);
    }
    let piped = folder.run_with_input(&["audit", "p.toml", "-"], tasks("3", "2").as_bytes());
    assert!(piped.status <= 1, "{piped:?}");
}

#[test]
fn an_invalid_command_line_or_file_is_rejected() {
    let folder = TestFolder::with("p.toml", PAPER);
    folder.write("a.json", tasks("3", "2"));
    let assert_rejects = |args: &[&str], expected: &[&str]| {
        folder.assert_rejects(&[&["audit"], args].concat(), 2, expected);
    };
    assert_rejects(&["p.toml"], &["ALLOCATION"]);
    assert_rejects(
        &["p.toml", "a.json", "--property", "parето"],
        &["--property: found", "expected one of: feasible, pareto"],
    );
    assert_rejects(&["p.toml", "a.json", "--property", "envyfree"], &["did you mean \"envy_free\"?"]);
    for bad in ["-1", "1", "x", "nan"] {
        assert_rejects(
            &["p.toml", "a.json", &format!("--tolerance={bad}")],
            &["--tolerance: found", "from 0 to less than 1"],
        );
    }
    assert_rejects(&["-", "-"], &["found - for both files"]);
    assert_rejects(&["p.toml", "a.json", "--search-lies", "--mechanism", "drf"], &["cannot be used with"]);
    assert_rejects(&["p.toml", "--search-lies"], &["--mechanism"]);
    assert_rejects(&["p.toml", "--search-lies", "--mechanism", "drf", "--user", "C"], &["--user: found \"C\""]);
    folder.write("a.json", tasks("3", "2").replace("\"B\"", "\"C\""));
    assert_rejects(&["p.toml", "a.json"], &["a.json:1:48: name: found \"C\", expected a user of the problem", "^^^"]);
    folder.write("a.json", r#"{"users": [{"name": "A", "tasks": 1}]}"#);
    assert_rejects(&["p.toml", "a.json"], &["a.json:1:11: users: found no tasks of \"B\" (1 of 2 users)"]);
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

fn search(mechanism: &str, more: &[&str]) -> ProgramOutput {
    let folder = TestFolder::with("p.toml", MARKET);
    let args = ["audit", "p.toml", "--search-lies", "--mechanism", mechanism, "--tries", "300"];
    folder.run(&[&args[..], more].concat())
}

#[test]
fn a_strategy_proof_mechanism_has_no_profitable_misreport() {
    let drf = search("drf,sdrf", &[]).assert_succeeds();
    let lines: Vec<&str> = drf.stdout.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(lines.len(), 2, "{drf:?}");
    assert!(lines[0].starts_with("drf: none of ") && lines[0].ends_with(" misreports is profitable"), "{drf:?}");
    let mut found = search("drf", &["--format", "json", "--user", "B"]).assert_succeeds().json();
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
