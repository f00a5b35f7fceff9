//! `evenhand when`

use std::fmt::Write as _;

use crate::test_folder::TestFolder;

/// A log of one processor: every hour two jobs of ten minutes, half a minute apart, so that the second waits 570 s.
fn log() -> String {
    let mut text = String::from("; Version: 2.2\n; MaxProcs: 1\n; UnixStartTime: 1693440000\n");
    for n in 0..600 {
        let (submit, wait) = (n / 2 * 3600 + n % 2 * 30, n % 2 * 570);
        writeln!(text, "{} {submit} {wait} 600 1 -1 -1 1 600 -1 1 {} 1 1 1 -1 -1 -1", n + 1, n % 3).unwrap();
    }
    text
}

#[test]
fn a_calibration_reports_coverage_and_losses_against_the_baselines() {
    let folder = TestFolder::with("log.swf", log());
    let run = |more: &[&str]| {
        let fixed = ["when", "--log", "log.swf", "--calibrate", "--format", "json"];
        folder.run(&[&fixed, more].concat()).assert_succeeds()
    };
    let found = run(&["--from", "720000", "--to", "1080000"]).json();
    assert_eq!(found["jobs"], 200);
    assert!(found["coverage_80"].as_f64().unwrap() > 0.9, "{found}");
    let loss = found["pinball_s"].as_f64().unwrap();
    // The jobs of a user wait 0 and 570 s in turns, so that half of their sum is far from each.
    let last_two = found["baselines"]["last_two_waits"]["pinball_s"].as_f64().unwrap();
    assert!(loss < 0.2 * last_two, "{found}");
    // All jobs run to their limits.
    assert_eq!(found["baselines"]["requested_limits"]["pinball_s"], 0.0);
    // The same period by dates, and the same bytes for any number of threads.
    let by_date = run(&["--from", "2023-09-08T08:00", "--to", "2023-09-12T12:00", "--threads", "1"]);
    assert_eq!(by_date.json(), found);
    assert_eq!(run(&["--from", "720000", "--to", "1080000", "--threads", "3"]).stdout, by_date.stdout);
    // A log of less than 28 days is taken from its first submission.
    assert_eq!(run(&[]).json()["from_s"], 0);
    let text = folder.run(&["when", "--log", "log.swf", "--calibrate", "--from", "100h"]).assert_succeeds().stdout;
    assert!(text.contains("each forecast with what was\n  known at its submission"), "{text}");
    assert!(text.contains("its median width is 0 s"), "{text}");
}

#[test]
fn periods_and_logs_from_which_nothing_can_be_forecast_are_reported() {
    let folder = TestFolder::with("log.swf", log());
    let run = |arguments: &[&str]| folder.run(&[&["when", "--log", "log.swf", "--calibrate"], arguments].concat());
    run(&["--from", "soon"]).assert_fails(2, &["--from: found \"soon\", expected seconds of the log"]);
    run(&["--from", "9000", "--to", "9000"]).assert_fails(2, &["--from", "before --to"]);
    run(&["--from", "9000000", "--to", "9900000"]).assert_fails(2, &["found no submission", "2023-08-31"]);
    folder.write("no-starts.swf", "1 0 -1 10 2 -1 -1 2 10 -1 1 1 1 1 1 -1 -1 -1\n");
    folder
        .run(&["when", "--log", "no-starts.swf", "--calibrate"])
        .assert_fails(2, &["no-starts.swf: the log has no start times; expected when jobs started"]);
}

#[test]
fn shapes_and_waiting_jobs_are_forecast_side_by_side() {
    let folder = TestFolder::with("log.swf", log());
    let run = |arguments: &[&str]| folder.run(&[&["when", "--log", "log.swf", "--format", "json"], arguments].concat());
    // Job 401 was submitted at second 720000; half a minute later job 402, which waits until 720600.
    let found = run(&["--at", "720100", "--shape", "1,10m", "--job", "402"]).assert_succeeds().json();
    assert_eq!((&found["at_s"], &found["waiting"]), (&720_100.into(), &1.into()));
    let forecasts = found["forecasts"].as_array().unwrap();
    assert_eq!((&forecasts[0]["shape"], &forecasts[1]["job"]), (&"1,10m".into(), &402.into()));
    assert_eq!(forecasts[1]["waited_s"], 70);
    let left = forecasts[1]["median_s"].as_i64().unwrap();
    assert!((490..=510).contains(&left), "{found}");
    assert_eq!(found["first"], "job 402");
    // At its submission, by default.
    let found = run(&["--job", "402"]).assert_succeeds().json();
    assert_eq!((&found["at_s"], &found["forecasts"][0]["median_s"]), (&720_030.into(), &570.into()));
    let text =
        folder.run(&["when", "--log", "log.swf", "--shape", "1,10m", "--shape", "1,1m"]).assert_succeeds().stdout;
    assert!(text.contains("80 % interval") && text.contains("Starts first: 1,1"), "{text}");
}

#[test]
fn jobs_that_do_not_wait_and_invalid_shapes_are_reported() {
    let folder = TestFolder::with("log.swf", log());
    let run = |arguments: &[&str]| folder.run(&[&["when", "--log", "log.swf"], arguments].concat());
    run(&["--job", "402", "--at", "720700"])
        .assert_fails(2, &["job 402 does not wait", "runs since", "expected --at from"]);
    run(&["--job", "402", "--at", "730000"]).assert_fails(2, &["job 402 does not wait", "it ran from"]);
    run(&["--job", "402", "--at", "720000"]).assert_fails(2, &["is submitted at"]);
    run(&["--job", "9999"])
        .assert_fails(2, &["log.swf: found no job 9999 that started", "whose first is 1 and whose last is 600"]);
    run(&["--shape", "4 nodes"]).assert_fails(2, &["--shape: found \"4 nodes\"", "4x16cpu,2h"]);
    run(&["--shape", "1,1h", "--user", "zoe"]).assert_fails(2, &["--user: found \"zoe\""]);
    run(&["--shape", "1,1h", "--calibrate"]).assert_fails(2, &["cannot be used with"]);
    run(&[]).assert_fails(2, &["found nothing to forecast", "--shape SHAPE", "--job JOB", "--calibrate"]);
}

#[test]
fn a_shape_that_the_site_cannot_hold_is_refused() {
    let folder = TestFolder::with("log.swf", log());
    let run = |arguments: &[&str]| folder.run(&[&["when", "--log", "log.swf"], arguments].concat());
    run(&["--shape", "1,10m", "--shape", "2x1cpu,10m"]).assert_fails(
        2,
        &[
            "--shape: found \"2x1cpu,10m\", which needs 2 cpu, expected at most 1",
            "(MaxProcs of the log)",
            "--capacity",
        ],
    );
    run(&["--shape", "2x1cpu,10m", "--capacity", "2"]).assert_succeeds();
    // Without a header the most that was in use counts.
    folder.write("log.swf", log().replace("; MaxProcs: 1\n", ""));
    run(&["--shape", "2x1cpu,10m"]).assert_fails(2, &["expected at most 1", "(the most in use at once)"]);
    run(&["--capacity", "2", "--calibrate"]).assert_fails(2, &["--capacity", "cannot be used with"]);
}

#[test]
fn wrong_scripts_and_shapes_are_reported_before_slurm_is_asked() {
    let folder = TestFolder::with("job.sh", "#!/bin/sh\n#SBATCH -n 4\n#SBATCH --time=soon\nsrun x\n");
    let run = |arguments: &[&str]| folder.run(&[&["slurm", "when"], arguments].concat());
    run(&["--script", "job.sh"]).assert_fails(2, &["job.sh:3: found \"soon\", expected a time limit"]);
    run(&["--script", "none.sh"]).assert_fails(2, &["--script: none.sh"]);
    run(&["--shape", "4x16gpu,2h"]).assert_fails(2, &["--shape: found \"4x16gpu,2h\""]);
    run(&["--shape", "4,2h", "--history", "long"]).assert_fails(2, &["--history"]);
    run(&[]).assert_fails(2, &["required"]);
}

const COLUMNS: &str = "submit=submit,eligible=eligible,start=start,end=end,cpu=cpu,user=user";

/// A log of one processor: a job each hour, of which every second one was held until it started.
fn held_log() -> String {
    let mut text = String::from("submit,eligible,start,end,cpu,user\n");
    for n in 0..400 {
        let (submit, held) = (n * 3600, n % 2 * 1200);
        writeln!(text, "{submit},{0},{0},{1},1,u{2}", submit + held, submit + held + 600, n % 3).unwrap();
    }
    text
}

#[test]
fn waits_count_from_the_submission_or_from_when_jobs_became_eligible() {
    let folder = TestFolder::with("log.csv", held_log());
    let run = |more: &[&str]| {
        let fixed = [
            "when",
            "--log",
            "log.csv",
            "--csv-columns",
            COLUMNS,
            "--calibrate",
            "--from",
            "720000",
            "--format",
            "json",
        ];
        folder.run(&[&fixed, more].concat()).assert_succeeds()
    };
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let submit = run(&[]);
    let note = "200 of 400 jobs became eligible after the submission (dependencies, holds, begin times); their waits count from \
                the submission. --release eligible counts from when they became eligible.";
    assert!(words(&submit.stderr).contains(note), "{}", submit.stderr);
    assert!(!words(&run(&["--release", "submit"]).stderr).contains("eligible"));
    let eligible = run(&["--release", "eligible"]);
    assert!(
        words(&eligible.stderr).contains("200 of 400 jobs became eligible after the submission"),
        "{}",
        eligible.stderr
    );
    // No job waited once it was eligible; from the submission a user's jobs wait 0 and 1200 s in turns.
    let last_two = |found: &serde_json::Value| found["baselines"]["last_two_waits"]["pinball_s"].as_f64().unwrap();
    assert_eq!((last_two(&submit.json()), last_two(&eligible.json())), (300.0, 0.0));
    assert_eq!((&eligible.json()["pinball_s"], &eligible.json()["jobs"]), (&0.0.into(), &200.into()));
    // Jobs keep their names.
    let job = |more: &[&str]| {
        let fixed = ["when", "--log", "log.csv", "--csv-columns", COLUMNS, "--job", "400", "--format", "json"];
        folder.run(&[&fixed, more].concat()).assert_succeeds().json()["at_s"].as_i64().unwrap()
    };
    assert_eq!((job(&[]), job(&["--release", "eligible"])), (399 * 3600, 399 * 3600 + 1200));
}
