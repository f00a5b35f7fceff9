//! `evenhand agent release`: of a journal where there is nothing to restore, and by the answers of a running agent. And the
//! end of an agent whose output cannot be written.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use evenhand_agent::{ControlSocket, Entry, Journal};
use evenhand_enforcers::cgroups::{Group, Hierarchies, SavedState};

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

/// Writes a journal with the values of a group that has ended.
fn write_journal(folder: &TestFolder, name: &str) {
    let parent = folder.path(name).parent().unwrap().to_owned();
    std::fs::create_dir_all(&parent).unwrap();
    std::fs::set_permissions(parent, Permissions::from_mode(0o700)).unwrap();
    let saved = SavedState([("cgroup-v1/cpu.shares".to_owned(), "1024".to_owned())].into());
    let group = Group { path: "evenhand-none/g".into(), ..Group::default() };
    Journal::open(&folder.path(name)).unwrap().put(&[Entry { group, identity: 1, saved }]).unwrap();
}

#[test]
fn a_journal_is_restored_without_a_configuration() {
    let folder = TestFolder::new();
    write_journal(&folder, "agent.redb");
    let output = folder.run(&["agent", "release", "--from-journal", "agent.redb"]).assert_succeeds();
    assert_eq!(output.stdout, "0 groups have their old values again.\n");
    let output =
        folder.run(&["--format", "json", "agent", "release", "--from-journal", "agent.redb"]).assert_succeeds();
    assert_eq!(output.json()["complete"], true, "{output:?}");
    assert_eq!(output.json()["message"], "0 groups have their old values again.", "{output:?}");
    // As long as an agent runs with the journal, it is not for others.
    let _agent = Journal::open(&folder.path("agent.redb")).unwrap();
    folder
        .run(&["agent", "release", "--from-journal", "agent.redb"])
        .assert_fails(3, &["agent.redb", "another agent is running with it"]);
}

#[test]
fn an_error_of_the_configuration_does_not_keep_values_from_being_restored() {
    let folder = folder();
    let valid = folder.read("agent.toml");
    let release = ["agent", "release", "--config", "agent.toml"];
    for wrong in ["[contrl]\ngain = 1\n", "[[guests]]\nfrom = \"table\"\nfile = \"no-such-file\"\n"] {
        folder.write("agent.toml", format!("{}{wrong}", valid.replace("[[guests]]\nfrom = \"user-slices\"\n", "")));
        write_journal(&folder, "state/agent.redb");
        let output = folder.run(&release).assert_succeeds();
        assert_eq!(output.stdout, "0 groups have their old values again.\n");
        assert!(output.stderr.contains("agent.toml:") && output.stderr.contains("nevertheless"), "{output:?}");
        assert_eq!(Journal::open(&folder.path("state/agent.redb")).unwrap().entries().unwrap(), []);
    }
    // Where the state is not known, the usual folder would be that of another agent.
    folder.write("agent.toml", format!("{valid}[node"));
    folder.run(&release).assert_fails(2, &["agent.toml:", "nothing was changed", "--from-journal FILE"]);
    folder
        .run(&["agent", "release", "--config", "nowhere.toml"])
        .assert_fails(2, &["nowhere.toml", "nothing was changed", "--from-journal FILE"]);
}

#[test]
fn an_agent_goes_on_after_a_reload_that_cannot_be_assembled() {
    if Hierarchies::detect().unwrap().main().is_none() {
        eprintln!("skipped: no control groups are mounted");
        return;
    }
    let folder = folder();
    let valid = folder.read("agent.toml");
    let socket = folder.path("agent.sock");
    let of_socket = |verb: &str| folder.run(&["agent", verb, "--socket", socket.to_str().unwrap()]);
    let mut agent = folder.command(&["agent", "run", "--config", "agent.toml"]).spawn().unwrap();
    let begun = Instant::now();
    while of_socket("status").status != 0 && begun.elapsed() < Duration::from_secs(60) {
        if agent.try_wait().unwrap().is_some() {
            eprintln!("skipped: no agent runs on this machine");
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    folder.write("agent.toml", format!("{valid}under = \"evenhand-none\"\n"));
    of_socket("reload").assert_fails(2, &["evenhand-none", "goes on with the earlier configuration"]);
    of_socket("status").assert_succeeds();
    folder.write("agent.toml", valid);
    of_socket("reload").assert_succeeds();
    agent.kill().unwrap();
    agent.wait().unwrap();
}

#[test]
fn a_journal_that_others_may_write_or_replace_is_refused() {
    let folder = folder();
    write_journal(&folder, "state/agent.redb");
    let release = |with: &[&str]| folder.run(&[&["agent", "release", "--config", "agent.toml"], with].concat());
    let allow = |name: &str, mode| std::fs::set_permissions(folder.path(name), Permissions::from_mode(mode)).unwrap();
    let refused = |what: &str| {
        for with in [&[][..], &["--from-journal", "state/agent.redb"]] {
            release(with).assert_fails(2, &[what, "users other than its owner may write it", "chmod go-w"]);
        }
    };
    allow("state", 0o775);
    refused("state: ");
    allow("state", 0o700);
    allow("state/agent.redb", 0o602);
    refused("agent.redb: ");
    allow("state/agent.redb", 0o644);
    release(&[]).assert_succeeds();
}
