//! Options that change nothing beside others: notes, because scripts try inputs and policies in turn with the same options.

use crate::test_folder::{SWF, TestFolder};

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
}
