//! `evenhand audit --history` as a user meets it.

use serde_json::Value;

use crate::bench::Bench;

/// ann fills the two processors and queues more of the same; bob, who comes a second later, waits for both of hers
/// though nothing of his runs.
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
    let bench = Bench::with("queue.swf", QUEUE);
    let ran = bench.run(&[&["audit", "--history", "queue.swf", "--format", "json"], args].concat());
    assert_eq!(ran.status, 1, "{ran:?}");
    serde_json::from_str(&ran.stdout).unwrap()
}

fn complaint_s(properties: &Value, name: &str) -> f64 {
    let all = properties["properties"].as_array().unwrap();
    all.iter().find(|p| p["property"] == name).unwrap()["complaint_s"].as_f64().unwrap()
}

#[test]
fn a_policy_leaves_less_to_complain_of_than_the_queue_did() {
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
fn policies_that_are_none_and_memories_of_no_policy() {
    let bench = Bench::with("queue.swf", QUEUE);
    let run = |args: &[&str]| bench.run(&[&["audit", "--history", "queue.swf"], args].concat());
    run(&["--policy", "fair"]).refused(2, &["--policy: found \"fair\", expected one of: fifo, drf"]);
    run(&["--policy", "sdrf", "--half-life", "0s"]).refused(2, &["the half-life is 0"]);
    run(&["--half-life", "8d"]).refused(2, &["--policy"]);
}
