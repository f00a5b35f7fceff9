//! The option `--threads`.

use crate::test_folder::TestFolder;

#[test]
fn more_threads_than_help_are_not_started_and_that_is_reported() {
    let folder = TestFolder::new();
    let output = folder.run(&["policies", "--threads", "1000000000"]).assert_succeeds();
    assert!(output.stderr.contains("--threads 1000000000: using "), "{}", output.stderr);
    let output = folder.run(&["policies", "--threads", "3"]).assert_succeeds();
    assert!(!output.stderr.contains("--threads"), "{}", output.stderr);
}
