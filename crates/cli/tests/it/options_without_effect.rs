//! Options that change nothing beside others: notes, because scripts try inputs and policies in turn with the same options.

use crate::test_folder::{CSV, SWF, TestFolder};

#[test]
fn options_of_reading_a_log_change_nothing_of_a_stored_workload() {
    let folder = TestFolder::with("w.swf", SWF);
    folder.run(&["workload", "import", "w.swf", "-o", "w.parquet"]).assert_succeeds();
    let notes = |options: &[&str]| {
        folder.run(&[&["workload", "describe", "w.parquet"], options].concat()).assert_succeeds().stderr
    };
    let note = notes(&["--swf-memory-unit", "MB"]);
    assert!(note.contains("--swf-memory-unit changes nothing: w.parquet is a stored workload"), "{note}");
    let note = notes(&["--columns", "JobID,User", "--swf-memory-per", "job"]);
    assert!(
        note.contains("--columns and --swf-memory-per change nothing") && note.contains("import it again"),
        "{note}"
    );
    // What only permits deviations changes nothing of a log without them either.
    assert_eq!(notes(&["--relaxed", "--lenient"]), "");
    assert_eq!(notes(&[]), "");
}

#[test]
fn the_sharing_incentive_is_an_option_of_baa() {
    let problem = "[capacity]\ncpu = 9\nmem = 18\ngpu = 9\n[[user]]\nname = \"A\"\ndemand = { cpu = 1, mem = 4 }\n";
    let folder = TestFolder::with("p.toml", problem);
    let notes = |args: &[&str]| folder.run(&[args, &["--sharing-incentive=false"]].concat()).stderr;
    for verb in [&["allocate", "p.toml"][..], &["timeline", "p.toml"], &["audit", "p.toml", "--search-lies"]] {
        let unused = notes(&[verb, &["--mechanism", "drf"]].concat());
        assert!(unused.contains("--sharing-incentive changes nothing: it is for the mechanism baa"), "{unused}");
        let used = notes(&[verb, &["--mechanism", "baa"]].concat());
        assert!(!used.contains("changes nothing"), "{used}");
    }
    folder.write("a.json", "{\"users\": [{\"name\": \"A\", \"tasks\": 1}]}");
    let check = ["audit", "p.toml", "a.json", "--sharing-incentive"];
    folder.assert_rejects(&check, 2, &["--sharing-incentive: applies to --search-lies only"]);
}

#[test]
fn options_of_policies_that_a_study_does_not_have_change_nothing() {
    let folder = TestFolder::with("w.csv", CSV);
    folder.write("weights.csv", "ann,2\n");
    let notes = |policies: &str, options: &[&str]| {
        let study = ["study", "w.csv", "--capacity", "cpu=4,mem=4", "--no-tasks", "--out", "out", "--policy", policies];
        folder.run(&[&study[..], options].concat()).assert_succeeds().stderr
    };
    for (options, unused, used, words) in [
        (["--half-life", "1d"], "fifo,drf", "sdrf", "--half-life changes nothing: no policy of --policy discounts"),
        (["--order", "scan"], "fifo,drf", "drf,sdrf", "--order changes nothing: no policy of --policy remembers"),
        (["--weights", "weights.csv"], "fifo", "fifo,drf", "--weights changes no wait"),
    ] {
        let note = notes(unused, &options);
        assert!(note.contains(words), "{note}");
        let note = notes(used, &options);
        assert!(!note.contains("changes no"), "{note}");
    }
}

#[cfg(feature = "slurm")]
#[test]
fn what_a_site_s_folder_has_is_not_dropped_in_silence() {
    let folder = TestFolder::with("log.swf", SWF);
    std::fs::create_dir(folder.path("lab")).unwrap();
    folder.write("lab/cluster.toml", "[[machines]]\nname = \"n\"\ncpu = 8\n");
    folder.write("lab/accounts.toml", "[[account]]\nname = \"art\"\n[[user]]\nname = \"1\"\naccount = \"art\"\n");
    folder.write("lab/slurm.conf", "ClusterName=lab\nPriorityType=priority/multifactor\nPriorityDecayHalfLife=7-0\n");
    folder.write("weights.csv", "1,2\n");
    let notes = |options: &[&str]| {
        let study = ["study", "log.swf", "--site", "lab", "--repeat", "1", "--out", "out"];
        folder.run(&[&study[..], options].concat()).assert_succeeds().stderr
    };
    let weighted = notes(&["--policy", "fifo,drf", "--weights", "weights.csv"]);
    let left_out = "The accounts of lab/accounts.toml are left out: the weights of weights.csv take their place.";
    assert!(weighted.contains(left_out), "{weighted}");
    assert!(!notes(&["--policy", "fifo,drf"]).contains("left out"));
    let halved = notes(&["--policy", "logged,site", "--half-life", "1d"]);
    let why = "--half-life changes nothing: the policy site forgets as slurm.conf says (PriorityDecayHalfLife)";
    assert!(halved.contains(why), "{halved}");
}
