//! Jobs of Slurm's accounting as JSON, beside what its text has.

use super::*;

/// A job of `sacct --json` with these states, as JSON, and times.
fn sacct_job(id: u32, states: &str, times: &str) -> String {
    format!(
        r#"{{"job_id":{id},"user":"ann","account":"a","partition":"p","stdout":"/home/ann/out","state":{{"current":{states}}},
"time":{{"submission":1000,"eligible":1000,{times}}},"tres":{{"allocated":[{{"type":"cpu","name":"","count":4}}]}}}}"#
    )
}

#[test]
fn runs_of_requeued_jobs_are_kept_in_json_as_in_text() {
    let run = r#""start":1010,"end":4610,"elapsed":3600,"suspended":0"#;
    let last = sacct_job(1, r#"["COMPLETED"]"#, r#""start":5000,"end":8600,"elapsed":3600,"suspended":0"#);
    for states in [
        r#"["REQUEUED"]"#,
        r#""REQUEUED""#,
        r#"["NODE_FAIL","REQUEUED"]"#,
        r#"["PENDING","REQUEUED"]"#,
        r#"["REQUEUE_HOLD"]"#,
    ] {
        for run in [run, r#""start":1010,"end":4610"#] {
            let text = format!(r#"{{"jobs":[{},{last}]}}"#, sacct_job(1, states, run));
            let found = read(Format::Auto, &text);
            let expected = ["1000 1010 3600 - ann a p cpu=4", "1000 5000 3600 - ann a p cpu=4"];
            assert_eq!((rows(&found), dropped(&found)), (expected.map(str::to_string).to_vec(), vec![]), "{states}");
        }
        // It waits for its next run.
        for waits in [r#""start":0,"end":0,"elapsed":0"#, r#""start":9000,"end":9000,"elapsed":0"#] {
            let text = format!(r#"{{"jobs":[{},{last}]}}"#, sacct_job(1, states, waits));
            assert_eq!(dropped(&read(Format::Auto, &text)), [("never started", 1)], "{states}");
        }
    }
}

#[test]
fn the_time_in_which_a_job_was_suspended_is_not_run_time_in_json() {
    for (times, expected) in [
        (r#""start":1010,"end":2210,"elapsed":900,"suspended":300"#, "900"),
        (r#""start":1010,"end":2210,"elapsed":{"set":true,"infinite":false,"number":900}"#, "900"),
        // Versions and tools that lack the elapsed time.
        (r#""start":1010,"end":2210,"suspended":300"#, "900"),
        (r#""start":1010,"end":2210,"elapsed":0,"suspended":300"#, "900"),
        (r#""start":1010,"end":2210,"elapsed":0,"suspended":1200"#, "0"),
        (r#""start":1010,"end":2210,"elapsed":0,"suspended":1700000000"#, "1200"),
        (r#""start":1010,"end":2210,"elapsed":0"#, "1200"),
        (r#""start":1010,"end":2210"#, "1200"),
    ] {
        let text = format!(r#"{{"jobs":[{}]}}"#, sacct_job(1, r#"["COMPLETED"]"#, times));
        assert_eq!(rows(&read(Format::Auto, &text)), [format!("1000 1010 {expected} - ann a p cpu=4")], "{times}");
    }
    // What a job that runs has run so far is not its run time.
    let runs = sacct_job(2, r#"["RUNNING"]"#, r#""start":1010,"end":0,"elapsed":500"#);
    let ended = sacct_job(1, r#"["COMPLETED"]"#, r#""start":1010,"end":2210,"elapsed":1200"#);
    let found = read(Format::Auto, &format!(r#"{{"jobs":[{runs},{ended}]}}"#));
    assert_eq!((rows(&found).len(), dropped(&found)), (1, vec![("still running", 1)]));
}

#[test]
fn slurm_jobs_as_json_lines() {
    let line = |id: u32| {
        sacct_job(id, r#"["COMPLETED"]"#, r#""start":1010,"end":2210,"elapsed":1200"#).replace('\n', "") + "\n"
    };
    let lines = line(1) + &line(2);
    for format in [Format::Auto, Format::SlurmJson] {
        let found = read(format, &lines);
        assert_eq!((rows(&found).len(), found.summary.format), (2, Format::SlurmJson));
        assert_eq!(found.workload, read(format, &format!("[{},{}]", line(1), line(2))).workload);
    }
    // The place of a malformed job is in its line.
    let found = refused(&options(Format::SlurmJson), lines.replace("4}]", "4000000000000000000}]"));
    assert!(found.starts_with("trace:1:1: found an amount"), "{found}");
    let found = refused(&options(Format::Auto), r#"{"stdout": "{\"jobs\": []}", "returncode": 0}"#);
    assert!(found.contains("the record of a command") && found.contains("jq -r .stdout"), "{found}");
}
