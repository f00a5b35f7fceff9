//! `evenhand agent release`: of a journal where there is nothing to restore, and by the answers of a running agent. And the
//! end of an agent whose output cannot be written.

use evenhand_agent::{ControlSocket, Journal};

use crate::test_folder::{ProgramOutput, TestFolder};

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

#[test]
fn the_status_of_a_release_is_that_of_the_running_agents_answer() {
    let release = |answer: &'static str| {
        let folder = folder();
        let _agent = ControlSocket::listen(&folder.path("agent.sock"), move |_| answer.to_owned()).unwrap();
        folder.run(&["agent", "release", "--config", "agent.toml"])
    };
    let output = release("2 groups have their old values again.").assert_succeeds();
    assert_eq!(output.stdout, "2 groups have their old values again.\n");
    release(r#"{"failed":"1 group has its old values again. no bus."}"#).assert_fails(1, &["no bus"]);
    release(r#"{"error":"the agent is busy or ending"}"#).assert_fails(3, &["agent.sock", "busy or ending"]);
    // An agent that ends meanwhile: what it restored is not known, and the journal may still be in use.
    release("").assert_fails(3, &["agent.sock", "without an answer"]);
}

#[test]
fn an_agent_restores_also_when_its_output_cannot_be_written() {
    let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") else {
        eprintln!("skipped: there is no /dev/full");
        return;
    };
    let folder = folder();
    let run = ["agent", "run", "--config", "agent.toml", "--apply", "--updates", "2"];
    // Whether an agent may write here at all.
    let with_output = ProgramOutput::of(folder.command(&run).output().unwrap());
    if with_output.status != 0 {
        eprintln!("skipped: {with_output:?}");
        return;
    }
    let output = ProgramOutput::of(folder.command(&run).stdout(full).output().unwrap());
    output.assert_fails(3, &["old values again", "cannot write to standard output"]);
}
