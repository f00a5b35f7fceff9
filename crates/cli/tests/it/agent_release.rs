//! `evenhand agent release --from-journal`, where there is nothing to restore.

use evenhand_agent::Journal;

use crate::test_folder::TestFolder;

/// A folder with a configuration whose agent does not run, and whose state is in the folder.
fn folder() -> TestFolder {
    let folder = TestFolder::new();
    let (socket, state) = (folder.path("agent.sock"), folder.path("state"));
    folder.write(
        "agent.toml",
        format!("[[guests]]\nfrom = \"user-slices\"\n[node]\nsocket = {socket:?}\nstate = {state:?}\n"),
    );
    folder
}

const RELEASE: [&str; 5] = ["agent", "release", "--config", "agent.toml", "--from-journal"];

#[test]
fn a_file_that_is_no_journal_is_an_error() {
    let folder = folder();
    folder.write("notes.txt", "no journal");
    folder.write("empty", "");
    for name in ["notes.txt", "empty"] {
        let output = folder.run(&[&RELEASE[..], &[name]].concat());
        output.assert_fails(2, &[name, "expected a journal of the agent", "agent.redb", "nothing was changed"]);
    }
    let output = folder.run(&[&RELEASE[..], &["nowhere"]].concat());
    output.assert_fails(2, &["nowhere: no such file; nothing was changed"]);
    assert!(!folder.path("state").exists());
}

#[test]
fn a_journal_without_values_has_nothing_to_restore() {
    let folder = folder();
    drop(Journal::open(&folder.path("agent.redb")).unwrap());
    let output = folder.run(&[&RELEASE[..], &["agent.redb"]].concat()).assert_succeeds();
    assert!(output.stdout.contains("agent.redb is a whole journal without values of groups"), "{output:?}");
    assert!(!folder.path("state").exists());
}
