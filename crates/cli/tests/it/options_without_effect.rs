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
