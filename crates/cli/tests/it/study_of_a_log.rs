//! `evenhand study LOG`: what happened, the site's own question, and how far to trust the answer.

use crate::test_folder::{CSV, SWF, TestFolder};

fn texts<'a>(values: &'a serde_json::Value, key: &str) -> Vec<&'a str> {
    values.as_array().unwrap().iter().map(|value| value[key].as_str().unwrap_or("none")).collect()
}

#[test]
fn a_log_alone_is_asked_its_sites_question() {
    let folder = TestFolder::with("w.csv", CSV);
    let output = folder.run(&["study", "w.csv", "--format", "json"]).assert_succeeds();
    let summary = output.json();
    let runs = &summary["runs"];
    assert_eq!(texts(runs, "policy"), ["logged", "fifo", "fair-tree", "sdrf"]);
    assert_eq!(texts(runs, "scheduler"), ["none", "strict", "strict", "strict"]);
    // Second 5 to 9 the log's four tasks run at once: 1 + 2 + 1 + 1 cpu, 2 + 1 + 1 + 1 mem.
    assert_eq!(runs[1]["capacity"], serde_json::json!({"cpu": 5.0, "mem": 5.0}));
    assert!(output.stderr.contains("Capacity: 5 of cpu, the peak of use"), "{}", output.stderr);
    assert!(output.stderr.contains("Scheduler: strict, since only 0 of 4 jobs"), "{}", output.stderr);
    // In the log ann waits 0 and 4 s, bob 0 and 3 s; on 5 cpu nobody has to wait.
    let users = &runs[0]["users"];
    assert_eq!((&users[0]["mean_wait_s"], &users[1]["mean_wait_s"]), (&2.0.into(), &1.5.into()));
    assert_eq!((&runs[0]["mean_wait_s"], &runs[0]["mean_bounded_slowdown"]), (&1.75.into(), &1.0.into()));
    assert_eq!(runs[1]["mean_wait_s"], 0.0);
    assert_eq!(texts(&summary["comparisons"], "against"), ["logged-site"; 3]);
    assert_eq!(summary["comparisons"][0]["users_better"], 2);
    let trust = &summary["trust"];
    assert_eq!((&trust["policy"], &trust["mean_wait_ratio"]), (&"fifo".into(), &0.0.into()));
    assert!(trust["verdict"].as_str().unwrap().to_lowercase().contains("size"), "{trust}");
    assert!(trust["users_wait_rank_correlation"].is_null(), "all users wait equally in the simulation: {trust}");
    assert_eq!(trust["utilization_error"], 0.0, "in both all work is done within the first hour");
    let page = folder.read("evenhand-study/index.html");
    assert!(page.contains("How far to trust it"));
    // What happened has the files of every run.
    assert!(folder.read("evenhand-study/users.csv").contains("logged-site,logged,site,ann,"));
    assert!(folder.path("evenhand-study/tasks-logged-site.parquet").is_file());
}

#[test]
fn the_header_gives_processors_and_wall_times_give_easy() {
    let folder = TestFolder::with("lab.swf", SWF);
    let output = folder.run(&["study", "lab.swf", "--format", "json"]).assert_succeeds();
    let summary = output.json();
    assert_eq!(summary["runs"][1]["capacity"]["cpu"], 8.0);
    assert_eq!(texts(&summary["runs"], "scheduler"), ["none", "easy", "easy", "easy"]);
    assert!(output.stderr.contains("8 of cpu, MaxProcs of the log's header"), "{}", output.stderr);
    // A smaller number than the log holds at once is a contradiction; jobs run from 1 to 11 and from 6 to 16.
    folder.write("small.swf", SWF.replace("MaxProcs: 8", "MaxProcs: 5"));
    let output = folder.run(&["study", "small.swf", "--format", "json"]).assert_succeeds();
    assert!(output.stderr.contains("hold 6 of cpu at once, more than MaxProcs"), "{}", output.stderr);
    // Idle amounts are not defined where the log holds more than there is.
    assert!(output.json()["runs"][0]["waste"].is_null());
    let audit = folder.run(&["audit", "--history", "small.swf"]);
    assert!(audit.stderr.contains("more than MaxProcs"), "{}", audit.stderr);
}

#[test]
fn a_cluster_file_beside_the_log_is_its_capacity() {
    let folder = TestFolder::with("lab.swf", SWF);
    folder.write("lab.cluster.toml", "[[machines]]\nname = \"node\"\ncount = 3\ncpu = 4\n");
    let output = folder.run(&["study", "lab.swf", "--format", "json"]).assert_succeeds();
    let summary = output.json();
    assert!(output.stderr.contains("lab.cluster.toml, which stands beside the log"), "{}", output.stderr);
    assert_eq!(
        (&summary["runs"][0]["capacity"]["cpu"], &summary["runs"][1]["capacity"]["cpu"]),
        (&12.0.into(), &12.0.into())
    );
    assert_eq!(summary["runs"][1]["jobs"]["groups"][0]["machines"], 3);
}

#[test]
fn a_pool_may_be_given_in_line_and_another_policy_compared_with() {
    let folder = TestFolder::with("w.csv", CSV);
    let args = ["study", "w.csv", "--policy", "fifo,drf", "--against", "drf", "--capacity", "cpu=3,mem=3,cpu=4,mem=4"];
    let summary =
        folder.run(&[&args[..], &["--scheduler", "easy", "--format", "json"]].concat()).assert_succeeds().json();
    assert_eq!(
        texts(&summary["runs"], "id"),
        ["fifo-cpu_3_mem_3", "drf-cpu_3_mem_3", "fifo-cpu_4_mem_4", "drf-cpu_4_mem_4"]
    );
    assert_eq!(summary["runs"][2]["capacity"], serde_json::json!({"cpu": 4.0, "mem": 4.0}));
    assert_eq!(texts(&summary["comparisons"], "run"), ["fifo-cpu_3_mem_3", "fifo-cpu_4_mem_4"]);
    assert_eq!(texts(&summary["comparisons"], "against"), ["drf-cpu_3_mem_3", "drf-cpu_4_mem_4"]);
    assert_eq!(summary["runs"][0]["scheduler"], "easy");
    let old = folder.run(&[&args[..], &["--backfill", "easy", "--format", "json"]].concat()).assert_succeeds().json();
    assert_eq!(old["runs"], summary["runs"], "--backfill is another name, so that finished runs are found again");
}

#[test]
fn what_cannot_be_asked_of_a_log_is_rejected_with_a_remedy() {
    let folder = TestFolder::with("w.csv", CSV);
    folder.assert_rejects(
        &["study", "w.csv", "--against", "asset"],
        2,
        &["--against: found \"asset\"", "logged, fifo"],
    );
    folder.assert_rejects(&["study", "w.csv", "--capacity", "cpu=3"], 2, &["found no mem", "cpu, mem"]);
    folder.assert_rejects(&["study", "w.csv", "--capacity", "cpu=3,mem=x"], 2, &["\"mem=x\"", "expected a number"]);
    folder.assert_rejects(&["study", "w.csv", "--scheduler", "fast"], 2, &["strict, easy, conservative"]);
    folder.assert_rejects(
        &["study", "w.csv", "--scheduler", "easy:reserve=few"],
        2,
        &["found \"few\", expected how many jobs have a reservation, or all"],
    );
    folder.assert_rejects(
        &["study", "w.csv", "--scheduler", "easy", "--backfill", "none"],
        2,
        &["cannot be used with"],
    );
    folder.assert_rejects(&["study", "w.csv", "--scheduler", "easy", "--no-blocking"], 2, &["--no-blocking"]);
    // Without waits there are no starts.
    folder.write("new.swf", SWF.replace(" 1 10 2 ", " -1 10 2 ").replace(" 1 10 4 ", " -1 10 4 "));
    folder.assert_rejects(
        &["study", "new.swf", "--policy", "logged,fifo"],
        2,
        &["no original starts", "leave logged out"],
    );
    let output = folder.run(&["study", "new.swf", "--format", "json"]).assert_succeeds();
    assert_eq!(texts(&output.json()["runs"], "policy"), ["fifo", "fair-tree", "sdrf"]);
    assert!(output.json()["trust"].is_null());
}

#[test]
fn a_note_that_holds_for_all_policies_is_printed_once() {
    let folder = TestFolder::with(
        "log.swf",
        "; MaxProcs: 8\n1 0 1 100 2 -1 -1 2 10 -1 1 1 1 1 1 -1 -1 -1\n2 5 1 10 4 -1 -1 4 10 -1 1 2 1 1 1 -1 -1 -1\n",
    );
    folder.write("c.toml", "[[machines]]\nname = \"m\"\ncpu = 8\n[[queues]]\nname = \"long\"\nproperties = [\"m\"]\n");
    let study = ["study", "log.swf", "--capacity", "c.toml", "--policy", "fifo,drf,sdrf", "--scheduler", "easy"];
    let notes = folder.run(&[&study[..], &["--no-tasks", "--out", "out"]].concat()).assert_succeeds().stderr;
    for note in [
        "1 job ran longer than its requested wall time; its run time is used as the estimate.",
        "2 jobs are in queues that the cluster file does not define (1); such jobs may use all machines, without limits.",
    ] {
        assert_eq!(notes.matches(note).count(), 1, "{note}\n{notes}");
    }
}

#[test]
fn the_first_sentences_of_a_report_name_the_log_and_the_sites_capacity() {
    let folder = TestFolder::with("log.swf", SWF);
    let study = ["study", "log.swf", "--policy", "logged,fifo", "--repeat", "2", "--no-tasks", "--out", "out"];
    folder.run(&study).assert_succeeds();
    let page = folder.read("out/index.html");
    for sentence in [
        "under fifo, and as logged, on the site&#x27;s own capacity (8 processors). Which users wait less than as logged",
        "At the site&#x27;s own capacity",
        "As logged, the mean over users of mean waits is",
    ] {
        assert!(page.contains(sentence), "{sentence}");
    }
    let from_lead = page.split_once("class=\"lead\"").unwrap().1;
    let answer = from_lead.split("<section id=\"users\">").next().unwrap_or_default();
    assert!(!answer.contains("under logged"));
    // An interval whose ends are printed alike says nothing.
    for interval in page.split(", in 95\u{a0}% of repeats ").skip(1) {
        let ends = interval.split(')').next().unwrap_or_default().split(';').next().unwrap_or_default();
        let (high, low) = ends.split_once(" to ").unwrap();
        assert_ne!(high, low, "{interval:.80}");
    }
}
