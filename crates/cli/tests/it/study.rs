//! `evenhand study`

use std::time::SystemTime;

use serde_json::Value;

use crate::test_folder::{CSV, TestFolder};

fn without_elapsed(mut summary: Value) -> Value {
    for run in summary["runs"].as_array_mut().unwrap() {
        assert!(run.as_object_mut().unwrap().remove("elapsed_s").is_some());
    }
    summary
}

fn modified(folder: &TestFolder, name: &str) -> SystemTime {
    std::fs::metadata(folder.path(name)).unwrap().modified().unwrap()
}

/// Returns a folder with a workload in which users wait.
fn generated() -> TestFolder {
    let folder = TestFolder::new();
    folder.run(&["workload", "generate", "--tasks", "5000", "--users", "12", "-o", "w.parquet"]).assert_succeeds();
    folder
}

/// README's first command.
#[test]
fn a_study_without_arguments_generates_a_workload_and_writes_a_report() {
    let folder = TestFolder::new();
    let output = folder.run(&["study"]).assert_succeeds();
    assert!(output.stderr.contains("No workload given"), "{}", output.stderr);
    for word in ["fifo", "drf", "sdrf", "0.5", "0.75", "1.0", "evenhand-study/index.html"] {
        assert!(output.stdout.contains(word), "{word} is not in: {}", output.stdout);
    }
    let files = folder.files();
    for file in ["index.html", "summary.json", "users.csv", "tasks-fifo-0.5.parquet", "tasks-sdrf-1.0.parquet"] {
        assert!(files.contains(std::path::Path::new(&format!("evenhand-study/{file}"))), "{file} in {files:?}");
    }
    assert!(files.iter().any(|p| p.extension().is_some_and(|e| e == "svg")), "{files:?}");
    folder.assert_no_temporary_files();
    let summary = folder.json("evenhand-study/summary.json");
    assert_eq!((&summary["workload"]["tasks"], &summary["workload"]["users"]), (&200_000.into(), &100.into()));
    assert_eq!(summary["runs"].as_array().unwrap().len(), 9);
    // What it finds is what the study is for: the policies differ, and no task is lost.
    for run in summary["runs"].as_array().unwrap() {
        let totals = &run["totals"];
        let number = |name: &str| totals[name].as_u64().unwrap();
        assert_eq!(number("submitted"), 200_000);
        assert_eq!(number("completed") + number("rejected"), 200_000, "{}", run["id"]);
    }
    let page = folder.read("evenhand-study/index.html");
    for outside in ["src=\"http", "href=\"http", "url(http", "@import"] {
        assert!(!page.contains(outside), "the report reaches for the network: {outside}");
    }
}

#[test]
fn json_output_is_one_document_and_nothing_else() {
    let folder = TestFolder::with("w.csv", CSV);
    let output = folder.run(&["study", "w.csv", "--format", "json"]).assert_succeeds();
    assert_eq!(output.json(), folder.json("evenhand-study/summary.json"));
    assert!(!output.stderr.is_empty(), "notes are on standard error");
    let output = folder.run(&["study", "w.csv", "--format", "json", "--quiet"]).assert_succeeds();
    assert_eq!(output.stderr, "");
    let output = folder.run(&["--quiet", "study", "w.csv"]).assert_succeeds();
    assert_eq!(output.stderr, "");
}

#[test]
fn a_second_study_into_a_folder_leaves_no_figures_of_the_first_and_names_its_runs() {
    let folder = TestFolder::with("w.csv", CSV);
    let study = |policies: &str| {
        let args = ["study", "w.csv", "--policy", policies, "--capacity", "cpu=3,mem=3", "--out", "out"];
        folder.run(&args).assert_succeeds()
    };
    let of = |policy: &str| {
        let mut files: Vec<String> = folder.files().into_iter().map(|p| p.to_string_lossy().into_owned()).collect();
        files.retain(|file| file.contains(policy));
        files
    };
    let first = study("fifo,drf,asset");
    assert!(!first.stderr.contains("finished run"), "{}", first.stderr);
    let figures = of("figures/user-waits-asset");
    assert!(!figures.is_empty(), "{:?}", folder.files());
    std::fs::write(folder.path("out/figures/notes-on-asset.svg"), "mine").unwrap();
    let second = study("fifo,drf");
    assert!(
        second.stderr.contains("out also has 1 finished run that this study does not ask for"),
        "{}",
        second.stderr
    );
    assert_eq!(of("figures/user-waits-asset"), Vec::<String>::new());
    assert!(!of("figures/user-waits-drf").is_empty(), "{:?}", folder.files());
    // What the first study simulated stays for a third, and files of others stay.
    assert_eq!(folder.read("out/figures/notes-on-asset.svg"), "mine");
    let asset = "runs/asset-cpu_3_mem_3";
    assert_eq!(of(asset).len(), 1, "{:?}", folder.files());
    let written = modified(&folder, &of(asset)[0]);
    study("fifo,drf,asset");
    assert_eq!(of("figures/user-waits-asset"), figures);
    assert_eq!(modified(&folder, &of(asset)[0]), written);
}

/// Users ann and bob on 3 cpu and 3 mem, worked out by hand.
#[test]
fn waits_and_utilization_agree_with_a_calculation_by_hand() {
    let folder = TestFolder::with("w.csv", CSV);
    folder.write("small.toml", "[pool]\ncpu = 3\nmem = 3\n");
    let args = ["study", "w.csv", "--policy", "fifo,drf", "--capacity", "small.toml", "--tasks-csv", "--out", "out"];
    folder.run(&args).assert_succeeds();
    // Both first tasks fill the pool until second 10; then each user's second one starts.
    let rows = "\
row,user,submit_s,start_s,duration_s,wait_s,state
0,ann,0.000000000,0.000000000,10.000000000,0.000000000,completed
1,bob,0.000000000,0.000000000,10.000000000,0.000000000,completed
2,ann,1.000000000,10.000000000,4.000000000,9.000000000,completed
3,bob,2.000000000,10.000000000,4.000000000,8.000000000,completed
";
    assert_eq!(folder.read("out/tasks-fifo-small.csv"), rows);
    assert_eq!(folder.read("out/tasks-drf-small.csv"), rows);
    let summary = folder.json("out/summary.json");
    let users = &summary["runs"][0]["users"];
    assert_eq!((&users[0]["name"], &users[0]["mean_wait_s"]), (&"ann".into(), &4.5.into()));
    assert_eq!((&users[1]["name"], &users[1]["mean_wait_s"]), (&"bob".into(), &4.0.into()));
    // R: cpu (10 + 20 + 4 + 4) / 10 over the ten seconds from the first start to the last finish.
    assert_eq!(summary["workload"]["mean_use"]["cpu"], 3.8);
    assert_eq!(folder.read("out/users.csv").lines().count(), 1 + 4);
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let folder = generated();
    for threads in ["1", "2"] {
        let args = ["study", "w.parquet", "--tasks-csv", "--threads", threads, "--out", threads];
        folder.run(&args).assert_succeeds();
    }
    let summary = |threads: &str| without_elapsed(folder.json(&format!("{threads}/summary.json")));
    let (mut one, mut two) = (summary("1"), summary("2"));
    // The command that repeats it names its own folder.
    one["method"]["command"].take();
    two["method"]["command"].take();
    assert_eq!(one, two);
    let in_folder = |threads: &str| -> Vec<String> {
        let files = folder.files().into_iter().filter(|p| p.starts_with(threads) && folder.path("").join(p).is_file());
        files.map(|p| p.strip_prefix(threads).unwrap().to_string_lossy().into_owned()).collect()
    };
    assert_eq!(in_folder("1"), in_folder("2"));
    let same: Vec<String> = in_folder("1").into_iter().filter(|f| f.ends_with(".csv") || f.ends_with(".svg")).collect();
    assert!(same.len() > 10, "{same:?}");
    for file in same {
        assert_eq!(folder.read(&format!("1/{file}")), folder.read(&format!("2/{file}")), "{file}");
    }
}

#[test]
fn a_second_study_computes_only_changed_runs() {
    let folder = generated();
    let study = |more: &[&str]| {
        let args = [&["study", "w.parquet", "--out", "out", "--repeat", "1", "--format", "json"], more].concat();
        folder.run(&args).assert_succeeds()
    };
    let first = study(&["--policy", "fifo,sdrf", "--capacity", "0.5,0.7"]).json();
    let stamp = |run: &str| modified(&folder, &format!("out/tasks-{run}.parquet"));
    let before = ["fifo-0.5", "sdrf-0.5", "fifo-0.7", "sdrf-0.7"].map(stamp);

    // The same again: the same summary, the time of the runs included, and no file of a run touched.
    assert_eq!(study(&["--policy", "fifo,sdrf", "--capacity", "0.5,0.7"]).json(), first);
    assert_eq!(["fifo-0.5", "sdrf-0.5", "fifo-0.7", "sdrf-0.7"].map(stamp), before);

    // Another delta is another sdrf; fifo knows no delta.
    let other = study(&["--policy", "fifo,sdrf", "--capacity", "0.5,0.7", "--delta", "0.99"]).json();
    assert_eq!((&other["runs"][0], &other["runs"][2]), (&first["runs"][0], &first["runs"][2]));
    assert_ne!(other["runs"][1], first["runs"][1]);
    assert_eq!(other["runs"][1]["delta"], 0.99);
    assert_eq!([stamp("fifo-0.5"), stamp("fifo-0.7")], [before[0], before[2]]);

    // One more capacity: only its runs are new.
    let more = study(&["--policy", "fifo", "--capacity", "0.5,0.6,0.7"]).json();
    assert_eq!((&more["runs"][0], &more["runs"][2]), (&first["runs"][0], &first["runs"][2]));

    // Another workload under the same name: everything is new.
    folder
        .run(&["workload", "generate", "--tasks", "5000", "--users", "12", "--seed", "7", "-o", "w.parquet"])
        .assert_succeeds();
    let fresh = study(&["--policy", "fifo", "--capacity", "0.5"]).json();
    assert_ne!(fresh["runs"][0]["users"], first["runs"][0]["users"]);
}

#[test]
fn users_with_a_higher_weight_wait_less() {
    // Two users alike, and a pool for a tenth of what they submit at once.
    let tasks: String = (0..200).map(|i| format!("0,0,10000000,{},{i},1,1\n", ["ann", "bob"][i % 2])).collect();
    let folder = TestFolder::with("w.csv", tasks);
    folder.write("pool.toml", "[pool]\ncpu = 20\nmem = 20\n");
    let study = |out: &str, more: &[&str]| {
        let args = [&["study", "w.csv", "--policy", "drf", "--capacity", "pool.toml", "--out", out], more].concat();
        folder.run(&args).assert_succeeds();
        folder.json(&format!("{out}/summary.json"))["runs"][0]["users"].clone()
    };
    let equal = study("equal", &[]);
    let second = &equal[1];
    folder.write("weights.csv", format!("user,weight\n{},1000\n", second["name"].as_str().unwrap()));
    let favoured = study("weighted", &["--weights", "weights.csv"]);
    let wait = |users: &Value| {
        let user = users.as_array().unwrap().iter().find(|u| u["name"] == second["name"]).unwrap();
        user["mean_wait_s"].as_f64().unwrap()
    };
    assert!(wait(&favoured) < wait(&equal) * 0.9, "{} against {}", wait(&favoured), wait(&equal));
    let ones: String =
        equal.as_array().unwrap().iter().map(|u| format!("{},3\n", u["name"].as_str().unwrap())).collect();
    folder.write("weights.csv", ones);
    assert_eq!(study("threes", &["--weights", "weights.csv"]), equal, "only ratios of weights matter");
}

#[test]
fn a_task_larger_than_the_pool_is_rejected_and_counted() {
    let folder = TestFolder::with("w.csv", CSV);
    folder.write("tiny.toml", "[pool]\ncpu = 1\nmem = 1\n");
    let output = folder
        .run(&["study", "w.csv", "--policy", "drf", "--capacity", "tiny.toml", "--format", "json"])
        .assert_succeeds();
    let users = &output.json()["runs"][0]["users"];
    for user in 0..2 {
        assert_eq!((&users[user]["submitted"], &users[user]["rejected"]), (&2.into(), &1.into()));
    }
}

/// The log itself is the first repeat: everything of a study without repeats is in one with them, unchanged.
#[test]
fn repeats_add_intervals_and_change_nothing_else() {
    let folder = generated();
    let study = |out: &str, more: &[&str]| {
        let args = ["study", "w.parquet", "--policy", "fifo,drf", "--capacity", "0.6", "--tasks-csv", "--out", out];
        folder.run(&[&args[..], more].concat()).assert_succeeds().stdout
    };
    study("plain", &["--repeat", "1"]);
    let printed = study("one", &["--repeat", "4", "--threads", "1"]);
    study("two", &["--repeat", "4", "--threads", "2"]);
    for file in ["tasks-fifo-0.6.csv", "tasks-drf-0.6.csv", "accounts.csv"] {
        assert_eq!(folder.read(&format!("plain/{file}")), folder.read(&format!("one/{file}")), "{file}");
    }
    for file in
        ["users.csv", "figures/reduction.csv"].iter().filter(|file| folder.path(&format!("one/{file}")).exists())
    {
        assert_eq!(folder.read(&format!("one/{file}")), folder.read(&format!("two/{file}")), "{file}");
    }
    let users = folder.read("one/users.csv");
    assert!(users.starts_with("run,policy,capacity,user,"), "{users}");
    let (header, first) = (users.lines().next().unwrap(), users.lines().nth(1).unwrap());
    assert!(header.ends_with(",wait_low_s,wait_high_s,difference_low_s,difference_high_s,beyond_noise"), "{header}");
    assert_eq!(header.split(',').count(), first.split(',').count());
    let plain_users = folder.read("plain/users.csv");
    for (line, plain) in users.lines().zip(plain_users.lines()) {
        assert!(line.starts_with(&format!("{plain},")), "{line} {plain}");
    }
    let mut summary = without_elapsed(folder.json("one/summary.json"));
    let mut other = without_elapsed(folder.json("two/summary.json"));
    summary["method"].take();
    other["method"].take();
    assert_eq!(summary, other, "the number of threads changes nothing");
    assert_eq!(summary["repeats"]["done"], 4);
    assert_eq!(summary["repeats"]["vary"], serde_json::json!(["ties", "arrivals"]));
    let has_interval = |record: &serde_json::Value, key: &str| {
        let interval = record[key].as_array().unwrap();
        assert!(interval[0].as_f64().unwrap() <= interval[1].as_f64().unwrap());
    };
    for run in summary["runs"].as_array_mut().unwrap() {
        assert!(run.as_object_mut().unwrap().remove("noise").is_some());
        for class in run["classes"].as_array_mut().unwrap() {
            ["wait_interval_s", "slowdown_interval"].iter().for_each(|key| has_interval(class, key));
            ["wait_interval_s", "slowdown_interval", "difference_interval_s", "beyond_noise"].iter().for_each(|key| {
                class.as_object_mut().unwrap().remove(*key);
            });
        }
        for user in run["users"].as_array_mut().unwrap() {
            has_interval(user, "wait_interval_s");
            ["wait_interval_s", "difference_interval_s", "beyond_noise"].iter().for_each(|key| {
                user.as_object_mut().unwrap().remove(*key);
            });
        }
    }
    let comparison = summary["comparisons"][0].as_object_mut().unwrap();
    assert_eq!(comparison.remove("repeats"), Some(4.into()));
    let beyond = ["users_better", "users_worse"].map(|key| {
        let beyond = comparison.remove(&format!("{key}_beyond_noise")).unwrap().as_u64().unwrap();
        assert!(beyond <= comparison[key].as_u64().unwrap());
        beyond
    });
    assert!(comparison.remove("noise").is_some());
    for class in comparison["classes"].as_array_mut().unwrap() {
        has_interval(class, "mean_wait_reduction_interval");
        let class = class.as_object_mut().unwrap();
        class.retain(|key, _| !key.ends_with("_beyond_noise") && key != "mean_wait_reduction_interval");
    }
    summary.as_object_mut().unwrap().remove("repeats");
    let mut plain = without_elapsed(folder.json("plain/summary.json"));
    plain["method"].take();
    assert_eq!(summary, plain);
    assert!(printed.contains("4 repeats; what varies: ties, arrivals within"), "{printed}");
    let row = printed.lines().find(|line| line.contains(" drf ")).unwrap();
    assert!(beyond.iter().all(|count| row.contains(&count.to_string())), "{row}");
}

#[test]
fn classes_are_in_the_summary_and_printed_on_request() {
    let folder = generated();
    let args = ["study", "w.parquet", "--policy", "fifo,drf", "--capacity", "0.6", "--no-tasks", "--out", "out"];
    let plain = folder.run(&args).assert_succeeds().stdout;
    let printed = folder.run(&[&args[..], &["--classes"]].concat()).assert_succeeds().stdout;
    assert!(!plain.contains("sporadic") && printed.contains("sporadic") && printed.contains("long"), "{printed}");
    for run in folder.json("out/summary.json")["runs"].as_array().unwrap() {
        let classes = run["classes"].as_array().unwrap();
        let names: Vec<&str> = classes.iter().map(|class| class["class"].as_str().unwrap()).collect();
        assert_eq!(names, ["sporadic", "heavy", "small", "large", "short", "long"]);
        for pair in classes.chunks(2) {
            let tasks: u64 = pair.iter().map(|class| class["submitted"].as_u64().unwrap()).sum();
            assert_eq!(tasks, 5000, "{pair:?}");
        }
    }
}

/// A study that compares policies finds out what of a difference is luck, where that takes seconds.
#[test]
fn a_small_comparison_is_repeated_without_being_asked() {
    let folder = generated();
    let summary = |args: &[&str]| {
        let study = ["study", "w.parquet", "--capacity", "0.6", "--no-tasks", "--format", "json"];
        let args = [&study[..], args].concat();
        folder.run(&args).assert_succeeds().json()
    };
    let (mut default, mut asked) =
        (summary(&["--policy", "fifo,drf"]), summary(&["--policy", "fifo,drf", "--repeat", "10"]));
    default["method"].take();
    asked["method"].take();
    assert_eq!(default, asked);
    assert_eq!(default["repeats"]["done"], 10);
    assert!(summary(&["--policy", "fifo"])["repeats"].is_null(), "nothing is compared");
    // Ten repeats of 5,000 tasks in 15 runs under conservative backfilling cost as much as 22.5 million tasks in strict order.
    let scheduler = ["--policy", "fifo,drf,sdrf", "--scheduler", "conservative", "--capacity", "1.5,1.6,1.7,1.8,1.9"];
    let args = [&["study", "w.parquet", "--no-tasks", "--format", "json"], &scheduler[..]].concat();
    assert!(folder.run(&args).assert_succeeds().json()["repeats"].is_null());
}

#[test]
fn classes_of_a_repeated_study_are_printed_with_intervals_in_100_columns() {
    let folder = generated();
    let args = ["study", "w.parquet", "--policy", "fifo,drf", "--capacity", "0.6", "--no-tasks", "--out", "out"];
    let printed = folder.run(&[&args[..], &["--classes", "--repeat", "3"]].concat()).assert_succeeds().stdout;
    let row = printed.lines().find(|line| line.contains("drf") && line.contains("sporadic")).unwrap();
    let summary = folder.json("out/summary.json");
    let class = &summary["comparisons"][0]["classes"][0];
    let beyond = ["users_better_beyond_noise", "users_worse_beyond_noise"].map(|key| class[key].to_string());
    // An interval whose ends read the same is one time.
    assert!(row.ends_with(&format!("{:>6}  {:>5}", beyond[0], beyond[1])) && !row.contains("  -  "), "{row}");
    assert!(printed.contains("95 % of repeats ") && printed.contains("against fifo beyond the noise"), "{printed}");
    assert!(printed.lines().all(|line| line.chars().count() <= 100), "{printed}");
}

#[test]
fn a_table_has_the_columns_that_fit_the_width() {
    let folder = generated();
    let args = ["study", "w.parquet", "--policy", "fifo,drf", "--capacity", "0.6", "--no-tasks", "--repeat", "3"];
    let header = |columns: &str| {
        let output = folder.command(&args).env("COLUMNS", columns).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().find(|line| line.starts_with("capacity")).unwrap_or_default().to_string()
    };
    assert!(header("140").contains("completed") && header("140").contains("noise"), "{}", header("140"));
    assert!(!header("80").contains("completed"), "{}", header("80"));
}

#[test]
fn what_cannot_vary_is_refused_with_what_was_expected() {
    let folder = TestFolder::with("w.csv", CSV);
    let weeks = ["study", "w.csv", "--repeat", "3", "--vary", "weeks"];
    folder.assert_rejects(&weeks, 2, &["expected two weeks or more"]);
    let luck = ["study", "w.csv", "--repeat", "3", "--vary", "luck"];
    folder.assert_rejects(&luck, 2, &["expected one of: ties, arrivals, weeks, users"]);
    folder.assert_rejects(&["study", "w.csv", "--repeat", "0"], 2, &["--repeat"]);
}

#[test]
fn the_terminal_names_what_a_pool_refused() {
    let folder = TestFolder::with("w.csv", CSV);
    let run = |capacity: &str| {
        let args = ["study", "w.csv", "--policy", "fifo,drf", "--repeat", "1", "--capacity", capacity];
        folder.run(&args).assert_succeeds().stdout
    };
    let text = run("cpu=1,mem=2");
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("refused")).collect();
    assert_eq!(lines, ["cpu=1,mem=2, refused: 1 job of 1 user: no pool of this size can hold them"]);
    assert!(run("0.001").contains("0.001, refused: 4 jobs of 2 users: no pool of this size can hold them"));
    assert!(!run("cpu=2,mem=2").contains("refused"));
}

#[test]
fn options_that_contradict_each_other_are_refused_before_the_log_is_read() {
    let folder = TestFolder::new();
    let run = |more: &[&str]| folder.run(&[&["study", "absent.swf", "--capacity", "0.5"], more].concat());
    run(&["--policy", "fifo,fifo"]).assert_fails(2, &["--policy: fifo is named twice"]);
    run(&["--policy", "fifo,drf", "--against", "drff"]).assert_fails(2, &["--against: found \"drff\"", "did you mean"]);
    run(&["--layout", "whole"]).assert_fails(2, &["--layout needs machines", "[[machines]]"]);
    run(&["--placement", "best-fit"]).assert_fails(2, &["--placement needs machines"]);
    run(&["--policy", "fiffo"]).assert_fails(2, &["--policy: found \"fiffo\"", "expected one of: logged, fifo"]);
}

#[test]
fn what_happened_is_listed_and_completed_beside_the_policies() {
    let folder = TestFolder::new();
    assert!(folder.run(&["study", "--policy", "help"]).assert_succeeds().stdout.contains("\nlogged "));
    let sections = folder.run(&["policies", "multifactor", "sdrf"]).assert_succeeds().stdout;
    for line in sections.lines() {
        assert!(line.is_empty() || line.starts_with("# ") || line.starts_with('['), "{line}");
        assert!(line.chars().count() <= 100, "{line}");
    }
    folder.run(&["policies", "fiffo"]).assert_fails(2, &["NAME: found \"fiffo\""]);
    assert!(folder.run(&["completions", "fish"]).assert_succeeds().stdout.contains("logged"));
}
