//! Reading problems, allocations and scenarios: valid and invalid files.
#![allow(clippy::unwrap_used)]

use evenhand_documents::{Document, DocumentError};
use evenhand_mechanisms::problem_files::{AllocationFile, ProblemFile, ScenarioFile};
use evenhand_mechanisms::{Arithmetic, Problem};
use evenhand_model::Rational;

const PAPER: &str = "\
[capacity]
mem = 18
cpu = 9
[[user]]
name = \"A\"
demand = { cpu = 1, mem = 4 }
[[user]]
name = \"B\"
weight = \"1/3\"
tasks = 10
demand = { cpu = 3, mem = 1 }
commitment = { cpu = 0.1 }
";

fn document(text: &str) -> Document {
    Document::parse("p", text, None).unwrap()
}

fn read(text: &str) -> Result<ProblemFile, DocumentError> {
    ProblemFile::read(&Document::parse("p", text, None)?, Arithmetic::Float)
}

fn rational(text: &str) -> Rational {
    evenhand_model::Quantity::parse(text).unwrap().exact().clone()
}

/// Returns the first line of the error, and the text that it underlines.
#[track_caller]
fn rejected<T: std::fmt::Debug>(result: Result<T, DocumentError>) -> (String, String) {
    let text = result.unwrap_err().to_string();
    let mut lines = text.lines();
    let first = lines.next().unwrap().strip_prefix("p:").unwrap().to_string();
    let lines: Vec<Vec<char>> = lines.map(|line| line.chars().collect()).collect();
    let at = lines.iter().position(|line| line.contains(&'^')).unwrap_or_else(|| panic!("no caret: {text}"));
    let marked = lines[at].iter().enumerate().filter(|(_, c)| **c == '^');
    (first, marked.filter_map(|(i, _)| lines[at - 1].get(i)).collect())
}

#[test]
fn a_problem_in_shares_of_capacity() {
    let file = read(PAPER).unwrap();
    assert_eq!(file.resources, ["mem", "cpu"], "as in the file, not by name");
    let problem = file.problem().unwrap();
    assert_eq!(problem.demand(0), [rational("2/9"), rational("1/9")]);
    assert_eq!(problem.demand(1), [rational("1/18"), rational("1/3")]);
    assert_eq!((problem.weight(0), problem.weight(1)), (&Rational::ONE, &rational("1/3")));
    assert_eq!((problem.limit(0), problem.limit(1)), (None, Some(&rational("10"))));
    assert_eq!(problem.commitment(1).unwrap(), [rational("0"), rational("1/10")]);
    assert_eq!(problem.commitment(0).unwrap(), [rational("0"), rational("0")]);
    assert!(problem.account_tree().is_none());
}

#[test]
fn json_of_the_same_shape_is_the_same_problem() {
    let json = r#"{"capacity": {"mem": 18, "cpu": 9}, "user": [
        {"name": "A", "demand": {"cpu": 1, "mem": 4}},
        {"name": "B", "weight": "1/3", "tasks": 10, "demand": {"cpu": 3, "mem": 1}, "commitment": {"cpu": 0.1}}]}"#;
    assert_eq!(read(json).unwrap(), read(PAPER).unwrap());
}

#[test]
fn errors_in_problems_name_problem_and_position() {
    let cases: &[(&str, &str, &str, &str)] = &[
        // Original text, its replacement, the error, the underlined text.
        ("mem = 18", "mem = -18", "2:7: capacity of mem: found \"-18\", expected a number that is not neg", "-18"),
        ("mem = 18", "mem = nan", "2:7: capacity of mem: found \"nan\", expected a finite number", "nan"),
        ("mem = 18", "mem = \"0/0\"", "2:7: capacity of mem: found \"0/0\", a division by 0", "\"0/0\""),
        ("mem = 18", "mem = 1e400", "2:7: capacity of mem: found \"1e400\", which is too long or too large", "1e400"),
        ("mem = 18", "mem = \"much\"", "2:7: capacity of mem: found \"much\", expected a number: an int", "\"much\""),
        (
            "mem = 18",
            "mem = 0",
            "6:27: demand of \"A\" for mem: found a demand above 0, but the capacity of mem is 0",
            "4",
        ),
        ("cpu = 1,", "cpu = -1,", "6:18: demand of \"A\" for cpu: found \"-1\"", "-1"),
        ("cpu = 1,", "cpu = inf,", "6:18: demand of \"A\" for cpu: found \"inf\", expected a finite", "inf"),
        (
            "mem = 4 }",
            "men = 4 }",
            "6:21: demand of \"A\" names the resource \"men\", which has no capacity; expected one of: mem, cpu; did you mean \"mem\"?",
            "men",
        ),
        ("cpu = 1, mem = 4", "cpu = 0", "6:10: demand of \"A\": found nothing above 0", "{ cpu = 0 }"),
        ("cpu = 1, mem = 4", "", "6:10: demand of \"A\": found nothing above 0", "{  }"),
        ("{ cpu = 1, mem = 4 }", "3", "6:10: demand of \"A\": found a number, expected a table", "3"),
        ("demand = { cpu = 1, mem = 4 }", "", "4:1: user \"A\": found no demand, expected what one task", "[[user]]"),
        ("name = \"B\"", "name = \"A\"", "8:8: name of the user: found \"A\" a second time", "\"A\""),
        ("name = \"B\"", "name = 7", "8:8: name of the user: found the number 7, expected a text in quotes", "7"),
        ("name = \"B\"", "name = ''", "8:8: name of the user: found an empty text", "''"),
        ("name = \"B\"", "", "7:1: the user: found no name", "[[user]]"),
        ("weight = \"1/3\"", "weight = 0", "9:10: weight of \"B\": found \"0\", expected a number greater than 0", "0"),
        ("weight = \"1/3\"", "wieght = 1", "9:1: unknown field \"wieght\", expected one of: name, weight", "wieght"),
        ("tasks = 10", "tasks = -1", "10:9: tasks of \"B\": found \"-1\"", "-1"),
        ("tasks = 10", "tasks = [1]", "10:9: tasks of \"B\": found a list, expected a number", "[1]"),
        ("cpu = 0.1", "cpu = -0.1", "12:22: commitment of \"B\" for cpu: found \"-0.1\"", "-0.1"),
        ("cpu = 0.1", "gpu = 0.1", "12:16: commitment of \"B\" names the resource \"gpu\"", "gpu"),
        (
            "tasks = 10",
            "account = \"x\"",
            "10:11: account of \"B\": found \"x\", expected the name of an [[account]]",
            "\"x\"",
        ),
        ("[capacity]\nmem = 18\ncpu = 9\n", "", "1:1: the document: found no capacity, expected [capacity]", "["),
        ("mem = 18\ncpu = 9", "", "1:1: capacity: found no resource", "[capacity]"),
        ("cpu = 9", "mem = 9", "3:1: \"mem\" occurs a second time", "mem"),
        (
            "[capacity]",
            "[capacities]",
            "1:2: unknown field \"capacities\", expected one of: capacity, user, account; did you mean \"capacity\"?",
            "capacities",
        ),
    ];
    for (found, put, says, marked) in cases {
        assert!(PAPER.contains(found), "{found}");
        let (error, underlined) = rejected(read(&PAPER.replacen(found, put, 1)));
        assert!(error.starts_with(says), "{put}: {error}");
        assert_eq!(&underlined, marked, "{error}");
    }
    assert!(
        rejected(read("[capacity]\ncpu = 1\n"))
            .0
            .starts_with("1:1: the document: found no user, expected at least one")
    );
    assert!(rejected(read("user = []\n[capacity]\ncpu = 1\n")).0.starts_with("1:8: user: found no user"));
    assert!(
        rejected(read("{\"capacity\": {}, \"user\": 3}")).0.starts_with("1:26: user: found a number, expected a list")
    );
    assert!(rejected(read("[]")).0.starts_with("1:1: the document: found a list, expected a table"));
}

#[test]
fn a_capacity_of_0_without_demand_is_valid() {
    let file = read("[capacity]\ncpu = 1\ngpu = 0\n[[user]]\nname = 'A'\ndemand = { cpu = 1, gpu = 0 }\n").unwrap();
    assert_eq!(file.problem().unwrap().demand(0), [Rational::ONE, Rational::ZERO]);
}

#[test]
fn quantities_beyond_64_bits_are_rejected_unless_exact() {
    let tiny =
        "[capacity]\ncpu = \"1e60/1e-60\"\n[[user]]\nname = 'A'\ndemand = { cpu = \"1e-60/1e60\" }\nweight = 1\n";
    // The share is 1e-240; a share of 1e-360 would round to 0.
    read(tiny).unwrap();
    let capacity = format!("\"1{}e60/1e-60\"", "0".repeat(59));
    let demand = format!("\"1e-60/1{}e60\"", "0".repeat(59));
    let tinier = tiny.replace("\"1e60/1e-60\"", &capacity).replace("\"1e-60/1e60\"", &demand);
    let (error, underlined) = rejected(read(&tinier));
    assert!(
        error.starts_with("5:18: demand of \"A\" for cpu: a demand that, as a share of the capacity, is too small"),
        "{error}"
    );
    assert!(error.ends_with("or --exact"), "{error}");
    assert_eq!(underlined, demand);
    let exact = ProblemFile::read(&document(&tinier), Arithmetic::Exact).unwrap().problem().unwrap();
    assert!(!exact.demand(0)[0].is_zero());
    let huge = tiny.replace("\"1e60/1e-60\"", &demand).replacen(
        "{ cpu = \"1e-60/1e60\" }",
        &format!("{{ cpu = {capacity} }}"),
        1,
    );
    assert!(rejected(read(&huge)).0.contains("as a share of the capacity, is too large"), "{huge}");
}

const ACCOUNTS: &str = "\
[capacity]
cpu = 1
[[account]]
name = 'optics'
parent = 'physics'
[[account]]
name = 'physics'
weight = 3
[[account]]
name = 'empty'
parent = 'physics'
weight = 100
[[user]]
name = 'A'
account = 'optics'
demand = { cpu = 1 }
[[user]]
name = 'B'
account = 'physics'
weight = 2
demand = { cpu = 1 }
[[user]]
name = 'C'
demand = { cpu = 1 }
";

#[test]
fn accounts_in_any_order_without_those_that_have_no_user() {
    let problem: Problem<Rational> = read(ACCOUNTS).unwrap().problem().unwrap();
    assert_eq!(problem.account_tree().unwrap().accounts().len(), 2);
    // physics has 3 of 4, of which optics 1 of 3 and B 2 of 3.
    let entitlements: Vec<String> = (0..3).map(|u| problem.entitlement(u).to_string()).collect();
    assert_eq!(entitlements, ["1/4", "1/2", "1/4"]);
}

#[test]
fn errors_in_accounts_name_problem_and_position() {
    let with = |found: &str, put: &str| {
        assert!(ACCOUNTS.contains(found));
        rejected(read(&ACCOUNTS.replacen(found, put, 1)))
    };
    let (error, underlined) = with("weight = 3", "parent = 'optics'");
    assert!(error.starts_with("5:10: parent of \"optics\": found a cycle (optics, in physics, in optics)"), "{error}");
    assert_eq!(underlined, "'physics'");
    assert!(with("weight = 3", "parent = 'physics'").0.contains("found a cycle (physics, in physics)"));
    assert!(with("parent = 'physics'", "parent = 'phisics'").0.ends_with("did you mean \"physics\"?"));
    assert!(
        with("name = 'physics'", "name = 'optics'")
            .0
            .starts_with("7:8: name of the account: found \"optics\" a second")
    );
    assert!(
        with("weight = 3", "weight = 0")
            .0
            .starts_with("8:10: weight of \"physics\": found \"0\", expected a number gr")
    );
    assert!(with("account = 'optics'", "account = 'optik'").0.starts_with("15:11: account of \"A\": found \"optik\""));
}

#[test]
fn allocations_by_name_in_any_order() {
    let problem = read(PAPER).unwrap();
    let of = |text: &str, mechanism| AllocationFile::read(&document(text), &problem, mechanism);
    let tasks = |text: &str, mechanism| of(text, mechanism).unwrap().tasks;
    let plain = r#"{"users": [{"name": "B", "tasks": 2.5}, {"name": "A", "tasks": "54/13", "level": 3}]}"#;
    assert_eq!(tasks(plain, None), [rational("54/13"), rational("5/2")]);
    assert_eq!(tasks("users = [{ name = 'A', tasks = -1 }, { name = 'B', tasks = 0 }]", None)[0], -Rational::ONE);
    let object = |name: &str, a: u32| {
        format!(r#"{{"mechanism": "{name}", "users": [{{"name": "A", "tasks": {a}}}, {{"name": "B", "tasks": 0}}]}}"#)
    };
    let one = format!("[{}]", object("drf", 3));
    assert_eq!(of(&one, None).unwrap().mechanism.as_deref(), Some("drf"));
    let two = format!("[{},{}]", object("drf", 3), object("bmf", 4));
    assert_eq!(tasks(&two, Some("bmf"))[0], rational("4"));
    assert!(rejected(of(&two, None)).0.contains("found 2 allocations, expected one; choose by --mechanism: drf, bmf"));
    assert!(
        rejected(of(&two, Some("baa"))).0.contains("found no allocation of baa, expected one; there are: drf, bmf")
    );
    assert!(rejected(of("[]", None)).0.contains("found an empty list"));
    let missing = r#"{"users": [{"name": "B", "tasks": 2.5}]}"#;
    assert!(rejected(of(missing, None)).0.starts_with("1:11: users: found no tasks of \"A\" (1 of 2 users)"));
    let twice = plain.replace("\"A\"", "\"B\"");
    assert_eq!(rejected(of(&twice, None)).1, "\"B\"");
    assert!(rejected(of(&twice, None)).0.starts_with("1:50: name: found \"B\" a second time"));
    assert!(
        rejected(of(&plain.replace("\"A\"", "\"C\""), None)).0.contains("found \"C\", expected a user of the problem")
    );
    assert!(rejected(of(&plain.replace("2.5", "true"), None)).0.contains("tasks of \"B\": found true or false"));
    assert!(rejected(of(&plain.replace("tasks", "task"), None)).0.contains("user \"B\": found no tasks"));
    assert!(rejected(of("{\"user\": []}", None)).0.contains("found no users, expected users = ["));
}

const SCENARIO: &str = "\
[capacity]
cpu = 10
[[user]]
name = 'A'
tasks = 8
demand = { cpu = 1 }
leave = '1m'
[[user]]
name = 'B'
demand = { cpu = 2 }
arrive = 10
[[user]]
name = 'C'
demand = { cpu = 4 }
phases = [
  { from = 30, until = '1h' },
  { from = 0, until = \"61/2\", tasks = 1, demand = { cpu = 3 } },
]
";

fn scenario(text: &str) -> Result<ScenarioFile, DocumentError> {
    ScenarioFile::read(&Document::parse("p", text, None)?, Arithmetic::Float)
}

#[test]
fn phases_take_tasks_and_demand_from_their_user() {
    let file = scenario(&SCENARIO.replace("61/2", "59/2")).unwrap();
    let phases = |user: usize| -> Vec<String> {
        let text = |n: &Option<Rational>| n.as_ref().map_or("-".to_string(), ToString::to_string);
        let phases = &file.users[user].phases;
        phases.iter().map(|p| format!("{} {} {}x{}", p.from, text(&p.until), text(&p.tasks), p.demand[0])).collect()
    };
    assert_eq!(phases(0), ["0 60 8x1"]);
    assert_eq!(phases(1), ["10 - -x2"]);
    assert_eq!(phases(2), ["0 59/2 1x3", "30 3600 -x4"]);
}

#[test]
fn errors_in_times_name_problem_and_position() {
    let (error, underlined) = rejected(scenario(SCENARIO));
    assert!(
        error.starts_with("16:12: from of \"C\": found a phase that starts before another one has ended"),
        "{error}"
    );
    assert_eq!(underlined, "30");
    let good = SCENARIO.replace("61/2", "30");
    scenario(&good).unwrap();
    let with = |found: &str, put: &str| {
        assert!(good.contains(found));
        rejected(scenario(&good.replacen(found, put, 1))).0
    };
    assert!(
        with("arrive = 10", "arrive = 10\nleave = 10")
            .starts_with("12:9: leave of \"B\": found a time that is not after")
    );
    assert!(with("leave = '1m'", "leave = 0").starts_with("7:9: leave of \"A\": found 0"));
    assert!(
        with("leave = '1m'", "leave = 'soon'").starts_with("7:9: leave of \"A\": found \"soon\", expected seconds")
    );
    assert!(with("leave = '1m'", "leave = -1").contains("not negative"));
    assert!(with("until = '1h'", "until = 30").contains("until of \"C\": found a time that is not after from"));
    assert!(with("until = \"30\", ", "").contains("found a phase that starts before another one has ended"));
    assert!(with("from = 0, ", "").contains("a phase of \"C\": found no from"));
    assert!(with("phases = [", "arrive = 1\nphases = [").contains("arrive: found both arrive and phases of \"C\""));
    assert!(with("demand = { cpu = 4 }", "").contains("a phase of \"C\": found no demand"));
    assert!(with("demand = { cpu = 2 }", "").contains("user \"B\": found no demand"));
    assert!(with("demand = { cpu = 3 }", "demand = { cpu = 0 }").contains("demand of \"C\": found nothing above 0"));
    let (begin, _) = good.split_once("phases").unwrap();
    assert!(rejected(scenario(&format!("{begin}phases = []\n"))).0.contains("found no phase of \"C\""));
    // A problem has no times.
    assert!(rejected(read(&good)).0.starts_with("7:1: unknown field \"leave\""));
}
