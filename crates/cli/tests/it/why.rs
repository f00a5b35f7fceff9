//! `evenhand why`

use crate::test_folder::TestFolder;

/// 8 processors: user 1 takes 6 for 100 s, user 2 takes 2 for 50 s; user 3 wants 4 for 30 s and asks for 40 s; a later job of user 2
/// is backfilled.
const LOG: &str = "\
; MaxProcs: 8
; UnixStartTime: 1693440000
11 0 0 100 6 -1 -1 6 100 -1 1 1 1 1 1 -1 -1 -1
12 0 0 50 2 -1 -1 2 60 -1 1 2 1 1 1 -1 -1 -1
13 10 90 30 4 -1 -1 4 40 -1 1 3 1 1 1 -1 -1 -1
14 20 30 50 2 -1 -1 2 50 -1 1 2 1 1 1 -1 -1 -1
";

#[test]
fn a_job_is_explained_by_what_was_full_who_held_it_and_what_would_have_helped() {
    let folder = TestFolder::with("log.swf", LOG);
    let found = folder.run(&["why", "--log", "log.swf", "13", "--format", "json"]).assert_succeeds().json();
    assert_eq!((&found["job"], &found["user"], &found["waited_s"]), (&13.into(), &"3".into(), &90.into()));
    assert_eq!(found["blocked_by"], serde_json::json!([{"kind": "resource", "on": "cpu", "s": 90}]));
    let before = serde_json::json!([
        {"user": "1", "jobs": 1, "share": 0.75},
        {"user": "2", "jobs": 2, "share": 0.25},
    ]);
    assert_eq!(found["before"], before);
    assert_eq!(found["overtaken_by"], 1);
    assert_eq!(found["standing"]["jobs_before"], 0);
    let what_if = found["what_if"].as_array().unwrap();
    assert_eq!(what_if[0], serde_json::json!({"change": "none: as submitted, simulated", "start": 100}));
    let smaller = serde_json::json!({"change": "2 cpu instead of 4, running longer in proportion", "start": 50});
    assert!(what_if.contains(&smaller), "{found}");
    let text = folder.run(&["why", "--log", "log.swf", "13"]).assert_succeeds().stdout;
    for part in [
        "Job 13 of user 3 waited 1.5 min",
        "cpu: too little was free",
        "75 %",
        "2023-08-31 00:00:50",
        "MaxProcs of the log",
    ] {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
}

#[test]
fn a_user_is_explained_by_all_jobs_together() {
    let folder = TestFolder::with("log.swf", LOG);
    let found = folder.run(&["why", "--log", "log.swf", "user:2", "--format", "json"]).assert_succeeds().json();
    assert_eq!((&found["job"], &found["jobs"], &found["waited_s"]), (&serde_json::Value::Null, &2.into(), &30.into()));
    assert_eq!(found["what_if_job"], 14);
    let seconds: i64 = found["blocked_by"].as_array().unwrap().iter().map(|b| b["s"].as_i64().unwrap()).sum();
    assert_eq!(seconds, 30);
    let text = folder.run(&["why", "--log", "log.swf", "user:2", "--from", "10"]).assert_succeeds().stdout;
    assert!(text.starts_with("1 job of user 2 waited 30 s"), "{text}");
}

#[test]
fn unknown_jobs_users_and_periods_are_reported() {
    let folder = TestFolder::with("log.swf", LOG);
    let run = |arguments: &[&str]| folder.run(&[&["why", "--log", "log.swf"], arguments].concat());
    run(&["99"]).assert_fails(2, &["log.swf: found no job 99 that started", "whose first is 11"]);
    run(&["all"]).assert_fails(2, &["JOB: found \"all\"", "user:NAME"]);
    run(&["user:7"]).assert_fails(2, &["found no user \"7\""]);
    run(&["user:2", "--from", "1000"]).assert_fails(2, &["found no job of 2 that started"]);
}
