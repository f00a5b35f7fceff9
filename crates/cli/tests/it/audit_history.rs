//! `evenhand audit --history`

use serde_json::Value;

use crate::test_folder::TestFolder;

/// ann fills the two processors and queues two more jobs; bob submits a job a second later, which waits for all of hers
/// although no job of his runs.
const QUEUE: &str = "\
; Version: 2.2
; MaxProcs: 2
; UnixStartTime: 0
1 0 0 100 1 -1 -1 1 100 -1 1 1 1 1 1 -1 -1 -1
2 0 0 100 1 -1 -1 1 100 -1 1 1 1 1 1 -1 -1 -1
3 0 100 100 1 -1 -1 1 100 -1 1 1 1 1 1 -1 -1 -1
4 0 100 100 1 -1 -1 1 100 -1 1 1 1 1 1 -1 -1 -1
5 1 199 100 1 -1 -1 1 100 -1 1 2 1 1 1 -1 -1 -1
";

fn audit(args: &[&str]) -> Value {
    let folder = TestFolder::with("queue.swf", QUEUE);
    let output = folder.run(&[&["audit", "--history", "queue.swf", "--format", "json"], args].concat());
    assert_eq!(output.status, 1, "{output:?}");
    serde_json::from_str(&output.stdout).unwrap()
}

fn complaint_s(properties: &Value, name: &str) -> f64 {
    let all = properties["properties"].as_array().unwrap();
    all.iter().find(|p| p["property"] == name).unwrap()["complaint_s"].as_f64().unwrap()
}

#[test]
fn a_policy_causes_fewer_complaints_than_the_recorded_queue() {
    let found = audit(&["--policy", "fifo,drf"]);
    let [fifo, drf] = found["policies"].as_array().unwrap().as_slice() else { panic!("{found}") };
    // bob waited from 1 to 200; under drf he has the first processor that is free, at 100.
    assert_eq!(complaint_s(&found, "no_justified_complaint"), 199.0);
    assert_eq!((&fifo["policy"], complaint_s(fifo, "no_justified_complaint")), (&Value::from("fifo"), 199.0));
    assert_eq!((&drf["policy"], complaint_s(drf, "no_justified_complaint")), (&Value::from("drf"), 99.0));
    assert!(drf["delta"].is_null());
    // Of the last 150 s of the past, the window counts for policies too.
    let late = audit(&["--policy", "drf", "--since", "50s"]);
    assert_eq!(complaint_s(&late, "no_justified_complaint"), 150.0);
    assert_eq!(complaint_s(&late["policies"][0], "no_justified_complaint"), 50.0);
    assert!(audit(&[]).get("policies").is_none());
}

#[test]
fn the_answer_about_a_user_comes_first() {
    let folder = TestFolder::with("queue.swf", QUEUE);
    let printed = |user: &str| folder.run(&["audit", "--history", "queue.swf", "--user", user]).stdout;
    let found = printed("2");
    assert!(found.starts_with("User 2 has "), "{found}");
    let place = |text: &str| found.find(text).unwrap_or_else(|| panic!("{text}: {found}"));
    assert!(place("no_justified_complaint  ") < place("5 tasks of 2 users"), "{found}");
    let none = printed("1");
    assert!(none.starts_with("User 1 has no finding."), "{none}");
}

#[test]
fn unknown_policies_and_half_lives_without_a_policy_are_rejected() {
    let folder = TestFolder::with("queue.swf", QUEUE);
    let run = |args: &[&str]| folder.run(&[&["audit", "--history", "queue.swf"], args].concat());
    run(&["--policy", "fair"]).assert_fails(2, &["--policy: found \"fair\", expected one of: fifo, drf"]);
    run(&["--policy", "sdrf", "--half-life", "0s"]).assert_fails(2, &["the half-life is 0"]);
    run(&["--half-life", "8d"]).assert_fails(2, &["--policy"]);
}

/// Eight processors. chem fills them for two days and has more jobs in the queue; physics and bio wait for their shares. In the
/// week after, bio waits for half a day. Times have no zone; one job never started.
const ACCOUNTING: &str = "\
JobID|User|Account|Partition|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|ReqTRES|AllocTRES
1|cora|chem|batch|COMPLETED|2026-03-02T08:00:00|2026-03-02T08:00:00|2026-03-04T08:00:00|172800|2880|cpu=8,node=1|cpu=8,node=1
2|paul|physics|batch|COMPLETED|2026-03-02T20:00:00|2026-03-04T08:00:00|2026-03-05T08:00:00|86400|1440|cpu=4,node=1|cpu=4,node=1
3|cora|chem|batch|COMPLETED|2026-03-02T21:00:00|2026-03-04T08:00:00|2026-03-06T08:00:00|172800|2880|cpu=4,node=1|cpu=4,node=1
4|bela|bio|batch|COMPLETED|2026-03-03T08:00:00|2026-03-05T08:00:00|2026-03-05T20:00:00|43200|720|cpu=2,node=1|cpu=2,node=1
5|pia|physics|batch|CANCELLED by 1004|2026-03-04T09:00:00|None|2026-03-04T10:00:00|0|60|cpu=1,node=1|
6|carl|chem|batch|COMPLETED|2026-03-09T08:00:00|2026-03-09T08:00:00|2026-03-10T08:00:00|86400|1440|cpu=4,node=1|cpu=4,node=1
7|paul|physics|batch|COMPLETED|2026-03-09T08:00:00|2026-03-09T08:00:00|2026-03-10T08:00:00|86400|1440|cpu=4,node=1|cpu=4,node=1
8|bela|bio|batch|TIMEOUT|2026-03-09T20:00:00|2026-03-10T08:00:00|2026-03-10T14:00:00|21600|360|cpu=2,node=1|cpu=2,node=1
";

const SHARES: &str = "[[account]]\nname = \"physics\"\nshares = 2\n[[account]]\nname = \"bio\"\n";

fn accounting() -> TestFolder {
    let folder = TestFolder::with("jobs.txt", ACCOUNTING);
    folder.write("shares.toml", SHARES);
    folder
}

#[test]
fn use_of_accounts_is_compared_with_their_entitlements() {
    let folder = accounting();
    let output = folder.run(&["audit", "--history", "jobs.txt", "--accounts", "shares.toml", "--format", "json"]);
    assert_eq!(output.status, 1, "{output:?}");
    assert!(
        output
            .stderr
            .contains("shares.toml: accounts of the workload that the file does not name, which get 1 share each"),
        "{}",
        output.stderr
    );
    let found = &output.json()["entitlements"];
    let weeks: Vec<&Value> = found["weeks"].as_array().unwrap().iter().map(|w| &w["label"]).collect();
    assert_eq!(weeks, ["2026-03-02", "2026-03-09"]);
    assert_eq!(
        (&found["weeks"][0]["from"], &found["weeks"][0]["until"]),
        (&"2026-03-02 08:00".into(), &"2026-03-09 00:00".into())
    );
    let accounts = &found["levels"][0];
    assert_eq!((&accounts["kind"], &found["levels"][1]["kind"]), (&"account".into(), &"user".into()));
    let number = |name: &str| accounts["parties"].as_array().unwrap().iter().position(|p| p["name"] == name).unwrap();
    let of = |week: usize, name: &str| {
        let own = |w: &&Value| w["week"] == week && w["party"] == number(name);
        accounts["weeks"].as_array().unwrap().iter().find(own).unwrap()["uses"][0].clone()
    };
    let numbers = |week, name| {
        let u = of(week, name);
        ["entitled", "entitled_among_active", "wanted", "got", "unmet", "over"]
            .map(|key| u[key].as_f64().unwrap().round())
    };
    // The first week has 160 of its hours in this past. physics waited 36 h for 4, and output them for 24.
    assert_eq!(numbers(0, "physics"), [640.0, 640.0, 240.0, 96.0, 144.0, 0.0]);
    // bio waited 48 h for 2, and output them for 12.
    assert_eq!(numbers(0, "bio"), [320.0, 320.0, 120.0, 24.0, 96.0, 0.0]);
    // chem: 8 of 8 for 48 h, then 4, and 4 more waited for 35 h. It was entitled to all until Monday 20:00, to a third
    // for 12 h, a quarter until Thursday 08:00, half until 20:00, all from then on.
    let over = 12.0 * (8.0 - 8.0 / 3.0) + 24.0 * 6.0 + 24.0 * 2.0;
    assert_eq!(numbers(0, "chem"), [320.0, 320.0, 576.0 + 140.0, 576.0, 0.0, over]);
    assert_eq!(of(1, "bio")["against"], serde_json::json!([{"party": number("chem"), "over": 24.0}]));
    let pairs: Vec<_> = accounts["waited_while"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| {
            (
                p["victim"].as_u64().unwrap() as usize,
                p["holder"].as_u64().unwrap() as usize,
                p["over"][0].as_f64().unwrap().round(),
            )
        })
        .collect();
    let mut expected = [(number("physics"), number("chem"), 144.0), (number("bio"), number("chem"), 120.0)];
    expected.sort_by_key(|pair| pair.0);
    assert_eq!(pairs, expected);
    let complaints: Vec<_> = accounts["complaints"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| (c["party"].as_u64().unwrap() as usize, c["from"].as_str().unwrap(), c["until"].as_str().unwrap()))
        .collect();
    assert_eq!(
        complaints,
        [
            (number("physics"), "2026-03-02 20:00", "2026-03-04 08:00"),
            (number("bio"), "2026-03-03 08:00", "2026-03-05 08:00"),
            (number("bio"), "2026-03-09 20:00", "2026-03-10 08:00"),
        ]
    );
    assert!(found["levels"][1].get("weeks").is_none(), "users' weeks are in the CSV");
    // Where clocks are nine hours behind, that Monday's morning was Sunday's evening.
    let output = folder.run(&[
        "audit",
        "--history",
        "jobs.txt",
        "--accounts",
        "shares.toml",
        "--format",
        "json",
        "--utc-offset",
        "-9",
    ]);
    let weeks = &output.json()["entitlements"]["weeks"];
    assert_eq!((&weeks[0]["label"], &weeks[0]["until"]), (&"2026-02-23".into(), &"2026-03-02 00:00".into()));
    assert_eq!(weeks.as_array().unwrap().len(), 3);
}

#[test]
fn out_writes_a_page_with_figures_and_data() {
    let folder = accounting();
    let run = |out: &str| folder.run(&["audit", "--history", "jobs.txt", "--accounts", "shares.toml", "--out", out]);
    let output = run("one");
    assert_eq!(output.status, 1, "{output:?}");
    let sentence = "In the week of 2026-03-02 account physics received 144 cpu-hours (11.3 % of cpu) less than it was entitled \
                    to and asked for at the time. Over the week it demanded 18.8 % and received 7.5 %. Overuse meanwhile: \
                    chem (144 cpu-hours).";
    // On the terminal it is folded.
    let words: Vec<&str> = output.stdout.split_whitespace().collect();
    assert!(words.join(" ").contains(sentence), "{}", output.stdout);
    assert!(output.stderr.contains("index.html and its data"), "{}", output.stderr);
    let page = folder.read("one/index.html");
    assert!(page.replace(['\u{a0}', '\u{202f}'], " ").contains(sentence));
    assert!(page.contains("never started (1)"), "what the import left out");
    let weeks = folder.read("one/weeks.csv");
    assert_eq!(weeks.lines().count(), 1 + 6 + 6, "{weeks}");
    assert!(
        weeks.contains("\naccount,physics,2026-03-02,1772438400,1773014400,cpu,,1280,0.5,0.5,640,640,240,96,144,0\n"),
        "{weeks}"
    );
    assert_eq!(folder.read("one/complaints.csv").lines().count(), 1 + 3 + 3);
    run("two");
    for name in ["index.html", "weeks.csv", "waited-while.csv", "complaints.csv", "figures/weeks-cpu-physics.svg"] {
        assert_eq!(folder.read(&format!("one/{name}")), folder.read(&format!("two/{name}")), "{name}");
    }
    // Without a file the trace's own accounts share equally.
    let output = folder.run(&["audit", "--history", "jobs.txt", "--out", "three"]);
    assert!(output.stdout.contains("Shares: Not given: the trace's accounts have equal shares"), "{}", output.stdout);
    let physics = output.stdout.lines().find(|line| line.starts_with("physics ")).unwrap();
    assert_eq!(physics.split_whitespace().nth(1), Some("33.3"));
}

#[test]
fn a_complaint_that_one_tie_would_have_turned_is_marked_in_table_json_csv_and_page() {
    // Users 1 and 2 submit together; 1 holds both processors until 200, and 2 waits for one. At 300 user 2 comes later.
    let folder = TestFolder::with(
        "ties.swf",
        "1 0 0 200 2 -1 -1 2 -1 -1 1 1 -1 -1 -1 -1 -1 -1\n2 0 200 50 1 -1 -1 1 -1 -1 1 2 -1 -1 -1 -1 -1 -1\n\
         3 300 0 100 2 -1 -1 2 -1 -1 1 1 -1 -1 -1 -1 -1 -1\n4 301 99 50 1 -1 -1 1 -1 -1 1 2 -1 -1 -1 -1 -1 -1\n\
         5 900 0 10 1 -1 -1 1 -1 -1 1 1 -1 -1 -1 -1 -1 -1\n",
    );
    let printed = folder.run(&["audit", "--history", "ties.swf", "--out", "out"]).stdout;
    assert!(printed.contains("tie with: 1 of 2 complaints would not exist"), "{printed}");
    let rows: Vec<&str> =
        printed.lines().skip_while(|line| !line.starts_with("user with a complaint")).skip(2).take(2).collect();
    assert!(rows[0].ends_with("  1") && rows[1].ends_with("  -"), "the more harm comes first: {printed}");
    let output = folder.run(&["audit", "--history", "ties.swf", "--out", "json", "--format", "json"]);
    let level = output.json()["entitlements"]["levels"][0].clone();
    assert_eq!(level["complaints_turned_by_a_tie"], 1);
    let [turned, other] = &level["complaints"].as_array().unwrap()[..] else { panic!("{level}") };
    assert_eq!((&turned["tie_with"], other.get("tie_with")), (&0.into(), None));
    // One of two processors for 200 s, and for 99 s.
    let harm = |complaint: &serde_json::Value| (complaint["share_hours"].as_f64().unwrap() * 7200.0).round();
    assert_eq!([harm(turned), harm(other)], [200.0, 99.0]);
    assert!(folder.read("out/index.html").contains("One tie would have turned 1 of them"));
    let csv = folder.read("out/complaints.csv");
    assert!(csv.lines().nth(1).unwrap().ends_with(",1") && csv.lines().nth(2).unwrap().ends_with(','), "{csv}");
}

#[test]
fn a_trace_without_accounts_is_reported_by_user() {
    let folder = TestFolder::with("queue.swf", QUEUE);
    let output = folder.run(&["audit", "--history", "queue.swf", "--out", "out", "--format", "json"]);
    let found = &output.json()["entitlements"];
    assert_eq!(found["levels"].as_array().unwrap().len(), 1);
    assert_eq!((&found["levels"][0]["kind"], &found["weeks"][0]["label"]), (&"user".into(), &"week 1".into()));
    assert!(found["weeks_are"].as_str().unwrap().contains("no dates"));
    // bob waits from 1 to 200 for the one processor that is his, while ann holds both.
    let complaint = &found["levels"][0]["complaints"][0];
    assert_eq!((complaint["from_s"].as_f64(), complaint["until_s"].as_f64()), (Some(1.0), Some(200.0)));
    folder.write("weights.csv", "user,weight\n1,3\n2,1\n");
    let output = folder.run(&[
        "audit",
        "--history",
        "queue.swf",
        "--out",
        "out",
        "--weights",
        "weights.csv",
        "--format",
        "json",
    ]);
    assert_eq!(output.json()["entitlements"]["levels"][0]["parties"][0]["share"], 0.75);
}

#[test]
fn invalid_offsets_and_accounts_are_rejected() {
    let folder = accounting();
    let run = |args: &[&str]| folder.run(&[&["audit", "--history", "jobs.txt"], args].concat());
    run(&["--out", "out", "--utc-offset", "noon"]).assert_fails(2, &["--utc-offset: found \"noon\", expected hours"]);
    run(&["--accounts", "none.toml"]).assert_fails(2, &["none.toml"]);
    run(&["--accounts", "shares.toml", "--weights", "shares.toml"]).assert_fails(2, &["--weights"]);
}

/// User 1 has jobs in two groups, which are the accounts of a log; user 2 waits for them.
const TWO_GROUPS: &str = "\
; Version: 2.2
; MaxProcs: 2
1 0 0 100 2 -1 -1 2 100 -1 1 1 1 1 1 -1 -1 -1
2 0 100 100 2 -1 -1 2 100 -1 1 1 2 1 1 -1 -1 -1
3 1 199 100 1 -1 -1 1 100 -1 1 2 1 1 1 -1 -1 -1
";

#[test]
fn a_page_changes_no_finding_and_counts_each_user_once() {
    let folder = TestFolder::with("two.swf", TWO_GROUPS);
    let run = |more: &[&str]| {
        let fixed = ["audit", "--history", "two.swf", "--policy", "drf", "--format", "json"];
        let mut found = folder.run(&[&fixed, more].concat()).json();
        let entitlements = found.as_object_mut().unwrap().remove("entitlements");
        (found, entitlements)
    };
    let (without, none) = run(&[]);
    let (with, page) = run(&["--out", "page"]);
    assert_eq!(without, with);
    assert!(none.is_none() && page.is_some());
    assert_eq!(without["users"], 2);
    let html = folder.read("page/index.html");
    assert!(html.contains("2 users") && !html.contains("3 users"), "{html}");
    assert!(html.contains("A user of several accounts has a row for each"));
    // A file of accounts gives weights, and a user is counted once nevertheless.
    folder.write("none.toml", "");
    assert_eq!(run(&["--accounts", "none.toml"]).0["users"], 2);
}

#[test]
fn a_header_that_the_jobs_exceed_is_named_with_both_numbers() {
    let folder = TestFolder::with("queue.swf", QUEUE.replace("MaxProcs: 2", "MaxProcs: 1"));
    let found = folder.run(&["audit", "--history", "queue.swf", "--out", "page", "--format", "json"]).json();
    let reason = "the peak use, since the log's jobs hold 2 of cpu at once, more than MaxProcs of its header (1)";
    assert_eq!(found["capacity_is"], reason);
    assert_eq!(found["entitlements"]["capacity_is"], format!("{reason}."));
    folder.write("queue.swf", QUEUE.replace("; MaxProcs: 2\n", ""));
    let found = folder.run(&["audit", "--history", "queue.swf", "--out", "page", "--format", "json"]).json();
    assert!(found["entitlements"]["capacity_is"].as_str().unwrap().contains("neither --capacity nor"), "{found}");
}

#[test]
fn short_histories_are_not_measured_in_days_and_lines_fit_the_width() {
    let folder = TestFolder::with("queue.swf", QUEUE);
    let printed = folder.run(&["audit", "--history", "queue.swf", "--out", "page"]).stdout;
    assert!(printed.starts_with("5 tasks of 2 users over 5 min, "), "{printed}");
    assert!(printed.lines().all(|line| line.chars().count() <= 100), "{printed}");
}

/// ann's job depends on bob's, which fills the machine for twelve hours, and starts as soon as it is eligible.
const DEPENDENT: &str = "\
JobID|User|Account|Partition|State|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|AllocTRES
1|bob|x|p|COMPLETED|2026-01-05T08:00:00|2026-01-05T08:00:00|2026-01-05T08:00:00|2026-01-05T20:00:00|43200|720|cpu=100,node=1
2|ann|x|p|COMPLETED|2026-01-05T08:00:00|2026-01-05T20:00:00|2026-01-05T20:00:00|2026-01-05T21:00:00|3600|60|cpu=1,node=1
";

#[test]
fn a_job_has_no_claim_before_it_is_eligible() {
    let folder = TestFolder::with("past.sacct", DEPENDENT);
    let run = |args: &[&str]| folder.run(&[&["audit", "--history", "past.sacct", "--format", "json"], args].concat());
    let eligible = run(&[]);
    assert_eq!(eligible.status, 0, "{eligible:?}");
    let note = "1 of 2 jobs became eligible after the submission (dependencies, holds, begin times); such a job is considered, \
                and its wait counts, from then on. --release submit counts from the submission.";
    assert!(eligible.stderr.split_whitespace().collect::<Vec<_>>().join(" ").contains(note), "{}", eligible.stderr);
    let found = eligible.json();
    assert_eq!((&found["waiting_s"], &found["jobs_wait_from"]), (&0.0.into(), &"when they became eligible".into()));
    let submit = run(&["--release", "submit"]);
    assert_eq!(submit.status, 1, "{submit:?}");
    assert!(!submit.stderr.contains("eligible"), "{}", submit.stderr);
    let found: Value = serde_json::from_str(&submit.stdout).unwrap();
    assert_eq!(complaint_s(&found, "no_justified_complaint"), 43_200.0);
    assert_eq!(found["jobs_wait_from"], "their submission");
    // A window counts from the first submission either way.
    let late = DEPENDENT.replace(
        "08:00:00|2026-01-05T08:00:00|2026-01-05T08:00:00",
        "08:00:00|2026-01-05T09:00:00|2026-01-05T09:00:00",
    );
    folder.write("late.sacct", late);
    let late = folder.run(&["audit", "--history", "late.sacct", "--since", "90m", "--format", "json"]);
    let from = |text: &str| serde_json::from_str::<Value>(text).unwrap()["from_s"].as_f64().unwrap();
    let nine = from(&folder.run(&["audit", "--history", "late.sacct", "--since", "60m", "--format", "json"]).stdout);
    assert_eq!(from(&late.stdout) - nine, 1800.0);
    assert_eq!(nine % 86_400.0, 32_400.0);
}
