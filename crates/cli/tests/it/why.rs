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
    assert_eq!(what_if[0], serde_json::json!({"change": "no change (simulated)", "start": 100}));
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
fn proposals_of_a_simulation_that_misses_the_logged_start_have_a_warning() {
    let found = |log: String| {
        let folder = TestFolder::with("log.swf", log);
        let json = folder.run(&["why", "--log", "log.swf", "13", "--format", "json"]).assert_succeeds().json();
        let text = folder.run(&["why", "--log", "log.swf", "13"]).assert_succeeds().stdout;
        (json["what_if_miss_s"].as_i64(), json["what_if_misses"] == true, text)
    };
    let (miss_s, misses, text) = found(LOG.into());
    assert_eq!((miss_s, misses), (Some(0), false));
    assert!(!text.contains("weak evidence"), "{text}");
    // Something that the log does not show held the job back for an hour more.
    let (miss_s, misses, text) = found(LOG.replace("13 10 90 30", "13 10 3690 30"));
    assert_eq!((miss_s, misses), (Some(-3600), true));
    let sentence =
        "Without a change the simulation starts the job 1 h earlier than the log, so the other starts are weak";
    assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(sentence), "{text}");
}

#[test]
fn a_user_is_explained_by_all_jobs_together() {
    let folder = TestFolder::with("log.swf", LOG);
    let found = folder.run(&["why", "--log", "log.swf", "user:2", "--format", "json"]).assert_succeeds().json();
    assert_eq!((&found["job"], &found["jobs"], &found["waited_s"]), (&serde_json::Value::Null, &2.into(), &30.into()));
    assert_eq!(found["what_if_job"], 14);
    assert_eq!(found["overtaken_by"], 0);
    let seconds: i64 = found["blocked_by"].as_array().unwrap().iter().map(|b| b["s"].as_i64().unwrap()).sum();
    assert_eq!(seconds, 30);
    let text = folder.run(&["why", "--log", "log.swf", "user:2", "--from", "10"]).assert_succeeds().stdout;
    assert!(text.starts_with("1 job of user 2 waited 30 s"), "{text}");
}

#[test]
fn unknown_jobs_users_and_periods_are_reported() {
    let folder = TestFolder::with("log.swf", LOG);
    let run = |arguments: &[&str]| folder.run(&[&["why", "--log", "log.swf"], arguments].concat());
    run(&["13", "--from", "10"])
        .assert_fails(2, &["--from: found it with one job, expected it with all jobs of a user"]);
    run(&["user:2", "--seed", "x"]).assert_fails(2, &["for '--seed <SEED>': expected a whole number"]);
    run(&["99"]).assert_fails(2, &["log.swf: found no job 99 that started", "whose first is 11"]);
    run(&["all"]).assert_fails(2, &["WHO: found \"all\"", "user:NAME"]);
    run(&["user:7"]).assert_fails(2, &["WHO: log.swf: no user of this name in the log: \"7\""]);
    run(&["user:2", "--from", "1000"]).assert_fails(2, &["found no job of 2 that started"]);
}

/// An array of three tasks, a heterogeneous job of two components and a job that was requeued, on one processor.
const SACCT: &str = "\
JobID|JobIDRaw|User|Submit|Start|End|Elapsed|AllocCPUS|State
100_1|101|ann|2026-01-05T08:00:00|2026-01-05T08:00:00|2026-01-05T08:10:00|00:10:00|1|COMPLETED
100_2|102|ann|2026-01-05T08:00:00|2026-01-05T08:10:00|2026-01-05T08:20:00|00:10:00|1|COMPLETED
100_3|100|ann|2026-01-05T08:00:00|2026-01-05T08:20:00|2026-01-05T08:30:00|00:10:00|1|COMPLETED
200+0|200|bob|2026-01-05T08:01:00|2026-01-05T08:30:00|2026-01-05T08:40:00|00:10:00|1|COMPLETED
200+1|201|bob|2026-01-05T08:01:00|2026-01-05T08:30:00|2026-01-05T08:40:00|00:10:00|1|COMPLETED
300|300|cem|2026-01-05T08:02:00|2026-01-05T08:40:00|2026-01-05T08:41:00|00:01:00|1|NODE_FAIL
300|300|cem|2026-01-05T08:42:00|2026-01-05T08:50:00|2026-01-05T08:51:00|00:01:00|1|COMPLETED
";

#[test]
fn tasks_of_arrays_and_components_are_named_as_slurm_names_them() {
    let folder = TestFolder::with("arr.sacct", SACCT);
    let run = |job: &str| folder.run(&["why", "--log", "arr.sacct", job, "--format", "json"]).assert_succeeds();
    let task = run("100_2").json();
    assert_eq!((&task["job"], &task["job_id"], &task["waited_s"]), (&102.into(), &"100_2".into(), &600.into()));
    let component = run("200+0").json();
    assert_eq!((&component["job_id"], &component["waited_s"]), (&"200+0".into(), &1740.into()));
    // The id of an array is also the raw number of one of its tasks.
    let array = run("100");
    assert_eq!(array.json()["job_id"], "100_3");
    let note = "100 names 3 jobs that started: 100_1, 100_2, 100_3; 100_3, which waited longest, is taken.";
    assert!(array.stderr.contains(note), "{}", array.stderr);
    assert_eq!(run("101").json()["job_id"], "100_1");
    let requeued = run("300");
    assert_eq!(requeued.json()["waited_s"], 38 * 60);
    let note = "The log has 2 records of job 300; the one that waited longest is taken.";
    assert!(requeued.stderr.contains(note), "{}", requeued.stderr);
    let text = folder.run(&["why", "--log", "arr.sacct", "100_2"]).assert_succeeds().stdout;
    assert!(text.starts_with("Job 100_2 of user ann waited 10 min"), "{text}");
    let text = folder.run(&["why", "--log", "arr.sacct", "user:ann"]).assert_succeeds().stdout.replace("\n  ", " ");
    assert!(text.contains("waited 30 min in total") && text.contains("Changes of job 100_3, which"), "{text}");
    folder
        .run(&["why", "--log", "arr.sacct", "100_9"])
        .assert_fails(2, &["found no job 100_9", "whose first is 100_1"]);
    // A waiting job of `when` has the same names.
    let at = ["when", "--log", "arr.sacct", "--at", "2026-01-05T08:05", "--job", "100_2", "--format", "json"];
    let found = folder.run(&at).assert_succeeds().json();
    assert_eq!((&found["forecasts"][0]["job"], &found["forecasts"][0]["job_id"]), (&102.into(), &"100_2".into()));
}

#[test]
fn jobs_of_pbs_are_named_with_and_without_their_server_and_a_stored_workload_by_their_places() {
    let record = |id: &str, start: u64| {
        format!(
            "01/05/2026 08:{start:02}:30;E;{id};user=ann queue=workq ctime=1767600000 qtime=1767600000 etime=1767600000 \
             start={} end={} Resource_List.ncpus=1 resources_used.ncpus=1\n",
            1_767_600_000 + start * 60,
            1_767_600_030 + start * 60
        )
    };
    let log = [record("112470.torque1.grid", 1), record("112471[3].torque1.grid", 2)].concat();
    let folder = TestFolder::with("pbs.log", log);
    let run = |job: &str| folder.run(&["why", "--log", "pbs.log", job, "--format", "json"]).assert_succeeds().json();
    for name in ["112470", "112470.torque1", "112470.torque1.grid"] {
        assert_eq!(
            (&run(name)["job_id"], &run(name)["waited_s"]),
            (&"112470.torque1.grid".into(), &60.into()),
            "{name}"
        );
    }
    assert_eq!(run("112471[3]")["waited_s"], 120);
    folder.run(&["workload", "import", "pbs.log", "-o", "w.parquet"]).assert_succeeds();
    let stored = folder.run(&["why", "--log", "w.parquet", "2", "--format", "json"]).assert_succeeds();
    assert_eq!(stored.json()["waited_s"], 120);
    assert!(stored.stderr.contains("no ids of jobs; 2 is a place in it by submission"), "{}", stored.stderr);
    folder.run(&["why", "--log", "w.parquet", "112470"]).assert_fails(
        2,
        &["the log has no ids of jobs", "whose first is 1 and whose last is 2", "give the log itself"],
    );
}

#[test]
fn a_job_that_asked_for_no_wall_time_is_given_none() {
    let folder = TestFolder::with("log.swf", LOG.replace("4 40 -1 1 3", "4 -1 -1 1 3"));
    let text = folder.run(&["why", "--log", "log.swf", "13"]).assert_succeeds().stdout.replace("\n  ", " ");
    assert!(text.contains("needs 4 cpu and asked for no wall time"), "{text}");
    assert!(!text.contains("a wall time of") && text.contains("2 cpu instead of 4"), "{text}");
    let text = folder.run(&["why", "--log", "log.swf", "12"]).assert_succeeds().stdout.replace("\n  ", " ");
    assert!(text.contains("asked for 1 min"), "{text}");
}

#[test]
fn a_capacity_that_the_jobs_exceed_is_refused_or_warned_of() {
    let folder = TestFolder::with("log.swf", LOG);
    let run = |arguments: &[&str]| folder.run(&[&["why", "--log", "log.swf"], arguments].concat());
    run(&["13", "--capacity", "1"]).assert_fails(2, &["--capacity: found 1, expected at least 4: job 13 held 4 cpu"]);
    run(&["user:2", "--capacity", "1"]).assert_fails(2, &["expected at least 2"]);
    run(&["13", "--capacity", "4"]).assert_succeeds();
    folder.write("log.swf", LOG.replace("MaxProcs: 8", "MaxProcs: 3"));
    let warning = "the log's jobs hold 8 of cpu at once, more than MaxProcs of its header (3)";
    let output = run(&["13"]).assert_succeeds();
    assert!(output.stderr.contains(warning), "{}", output.stderr);
    assert!(output.stdout.contains("are not simulated, since it is larger than the site"), "{}", output.stdout);
    assert!(!run(&["13", "--capacity", "8"]).stderr.contains("Warning"));
    let output = folder.run(&["when", "--log", "log.swf", "--shape", "1,1h"]).assert_succeeds();
    assert!(output.stderr.contains(warning), "{}", output.stderr);
}

/// A machine of 100 processors that is empty from Monday at 8:00 on, where two jobs of one processor wait: job 2 for an
/// instant at which it becomes eligible, and job 3 for nothing that the log has.
const HELD: &str = "\
JobID|User|Account|Partition|State|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|AllocTRES
1|ann|x|p|COMPLETED|2026-01-04T00:00:00|2026-01-04T00:00:00|2026-01-04T00:00:00|2026-01-04T01:00:00|3600|60|cpu=100,node=1
2|ann|x|p|COMPLETED|2026-01-05T08:00:00|2026-01-05T20:00:00|2026-01-05T20:00:05|2026-01-05T21:00:05|3600|60|cpu=1,node=1
3|bob|x|p|COMPLETED|2026-01-05T08:01:00|2026-01-05T08:01:00|2026-01-05T09:01:00|2026-01-05T10:01:00|3600|60|cpu=1,node=1
";

const NOT_IN_LOG: &str = "limits, reservations or machines that the log does not show";

#[test]
fn the_time_before_a_job_is_eligible_is_a_part_of_its_own() {
    let folder = TestFolder::with("why.sacct", HELD);
    for who in ["2", "user:ann"] {
        let found = folder.run(&["why", "--log", "why.sacct", who, "--format", "json"]).assert_succeeds().json();
        let parts = serde_json::json!([
            {"kind": "not-eligible", "on": "dependency, hold or begin time", "s": 43_200},
            {"kind": "not-in-log", "on": NOT_IN_LOG, "s": 5},
        ]);
        assert_eq!((&found["blocked_by"], &found["waited_s"]), (&parts, &43_205.into()), "{who}");
        // Job 3 ran before job 2 was eligible.
        assert_eq!(found["before"], serde_json::json!([]));
        // A job comes when it becomes eligible: the simulation misses the start in the log by five seconds.
        assert_eq!(found["what_if_miss_s"], -5);
        let text = folder.run(&["why", "--log", "why.sacct", who]).assert_succeeds().stdout;
        assert!(text.contains("not eligible yet (dependency, hold or begin time)  "), "{text}");
    }
}

#[test]
fn only_eligible_jobs_for_which_too_little_is_free_are_before_another_one() {
    let folder = TestFolder::with("why.sacct", HELD);
    let found = |log: &str| {
        folder.write("why.sacct", log);
        folder.run(&["why", "--log", "why.sacct", "3", "--format", "json"]).assert_succeeds().json()
    };
    // Job 2 is not eligible, then eligible and small, then eligible and larger than the machine.
    let eligible = HELD.replace("2026-01-05T20:00:00|2026-01-05T20:00:05", "2026-01-05T08:00:00|2026-01-05T20:00:05");
    for log in [HELD, &eligible] {
        let found = found(log);
        assert_eq!(found["blocked_by"], serde_json::json!([{"kind": "not-in-log", "on": NOT_IN_LOG, "s": 3600}]));
        assert_eq!(found["standing"]["jobs_before"], i32::from(log == eligible));
    }
    let filled =
        eligible.replace("2026-01-04T01:00:00|3600", "2026-01-05T08:31:00|117060").replace("cpu=100", "cpu=60");
    let large =
        filled.replace("20:00:05|2026-01-05T21:00:05|3600|60|cpu=1,", "20:00:05|2026-01-05T21:00:05|3600|60|cpu=100,");
    let found = found(&large);
    let parts = serde_json::json!([
        {"kind": "earlier-jobs", "on": "jobs submitted before", "s": 1800},
        {"kind": "not-in-log", "on": NOT_IN_LOG, "s": 1800},
    ]);
    assert_eq!(found["blocked_by"], parts);
    let text = folder.run(&["why", "--log", "why.sacct", "3"]).assert_succeeds().stdout;
    assert!(text.contains("jobs submitted before, for which too little was free  "), "{text}");
}
