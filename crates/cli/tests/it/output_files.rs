//! Outputs that are no regular files.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::process::Command;

use crate::test_folder::TestFolder;

const GENERATE: [&str; 7] = ["workload", "generate", "--tasks", "100", "--users", "3", "-o"];

fn generate(output: &str) -> Vec<&str> {
    [&GENERATE[..], &[output]].concat()
}

#[test]
fn a_pipe_is_written_to_and_not_replaced() {
    let folder = TestFolder::new();
    folder.run(&generate("file.parquet")).assert_succeeds();
    let made = rustix::fs::mknodat(
        rustix::fs::CWD,
        folder.path("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    );
    made.unwrap();
    let reader = std::thread::spawn({
        let pipe = folder.path("pipe");
        move || fs::read(pipe).unwrap()
    });
    let args = generate("pipe");
    let mut writer = folder.command(&args).spawn().unwrap();
    // A writer that does not open the pipe leaves the reader waiting: give the reader its end of file.
    let status = writer.wait().unwrap();
    assert!(fs::symlink_metadata(folder.path("pipe")).unwrap().file_type().is_fifo(), "the pipe was replaced");
    assert!(status.success());
    assert_eq!(reader.join().unwrap(), fs::read(folder.path("file.parquet")).unwrap());
}

#[test]
fn a_link_is_followed_and_the_permissions_of_its_target_stay() {
    let folder = TestFolder::new();
    folder.write("target", "old");
    fs::set_permissions(folder.path("target"), fs::Permissions::from_mode(0o600)).unwrap();
    symlink("target", folder.path("link")).unwrap();
    folder.run(&generate("link")).assert_succeeds();
    assert!(fs::symlink_metadata(folder.path("link")).unwrap().is_symlink());
    assert_eq!(fs::metadata(folder.path("target")).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(fs::read(folder.path("target")).unwrap().starts_with(b"PAR1"));
}

#[test]
fn folders_sockets_and_links_to_nothing_are_refused() {
    let folder = TestFolder::new();
    fs::create_dir(folder.path("folder")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(folder.path("socket")).unwrap();
    symlink("absent", folder.path("link")).unwrap();
    for (output, words) in [("folder", "is a folder"), ("socket", "is a socket"), ("link", "target does not exist")] {
        folder.assert_rejects(&generate(output), 3, &[output, words]);
    }
}

#[test]
fn a_missing_folder_and_a_file_in_place_of_a_folder_are_named() {
    let folder = TestFolder::with("file", "");
    let output =
        folder.assert_rejects(&generate("absent/w.parquet"), 3, &["the folder absent does not exist; create it"]);
    assert!(!output.stderr.contains(".partial"), "{}", output.stderr);
    let study = ["study", "--policy", "fifo", "--out", "file"];
    folder.assert_rejects(&study, 3, &["cannot use the folder file: file is a file, not a folder; name another"]);
}

#[test]
fn a_hyphen_is_standard_output_or_refused_and_never_a_file() {
    let folder = TestFolder::new();
    folder.run(&generate("w.parquet")).assert_succeeds();
    let export = ["workload", "export", "w.parquet", "--to", "swf"];
    let unnamed = folder.run(&export).assert_succeeds().stdout;
    assert!(unnamed.starts_with(';'), "{unnamed}");
    assert_eq!(folder.run(&[&export[..], &["-o", "-"]].concat()).assert_succeeds().stdout, unnamed);
    let words = ["expected the name of a file", "./- is a file of that name"];
    folder.assert_rejects(&generate("-"), 2, &words);
    folder.assert_rejects(&["workload", "import", "w.swf", "-o", "-"], 2, &words);
    assert_eq!(folder.files(), BTreeSet::from(["w.parquet".into()]));
    folder.run(&generate("./-")).assert_succeeds();
    assert_eq!(folder.files(), BTreeSet::from(["-".into(), "w.parquet".into()]));
}

#[test]
fn json_of_a_command_that_writes_a_file_is_all_that_it_prints() {
    let folder = TestFolder::new();
    let json = |arguments: &[&str]| folder.run(&[arguments, &["--format", "json"]].concat()).assert_succeeds().json();
    let written = json(&generate("w.parquet"));
    assert_eq!((&written["tasks"], &written["written"]), (&100.into(), &"w.parquet".into()));
    let written = json(&["workload", "export", "w.parquet", "--to", "evalys-csv", "-o", "w.csv"]);
    assert_eq!((&written["format"], &written["written"]), (&"evalys-csv".into(), &"w.csv".into()));
    assert!(written["tasks"].as_u64().is_some_and(|tasks| tasks > 0) && written["losses"].is_array(), "{written}");
}

#[test]
fn partial_files_of_killed_processes_are_removed_by_the_next() {
    let folder = TestFolder::new();
    folder.run(&generate("w.parquet")).assert_succeeds();
    let study = ["study", "w.parquet", "--policy", "fifo", "--capacity", "0.5", "--out", "out"];
    folder.run(&study).assert_succeeds();
    let before = folder.files();
    for name in [".evenhand-a1b2c3.partial", "out/.evenhand-a1b2c3.partial", "out/runs/.evenhand-a1b2c3.partial"] {
        folder.write(name, "half");
    }
    fs::remove_file(folder.path("out/runs/fifo-0.5.json")).unwrap();
    folder.run(&generate("w.parquet")).assert_succeeds();
    folder.run(&study).assert_succeeds();
    assert_eq!(folder.files(), before);
}

#[test]
fn a_study_killed_while_it_writes_leaves_nothing_that_the_next_keeps() {
    let folder = TestFolder::new();
    folder.run(&["workload", "generate", "--tasks", "30000", "--users", "30", "-o", "w.parquet"]).assert_succeeds();
    let study = ["study", "w.parquet", "--policy", "fifo,drf", "--capacity", "0.5,0.7", "--out", "out"];
    let mut child = folder.command(&study).spawn().unwrap();
    // At the first sign of a result, whichever it is.
    while folder.files().iter().all(|name| !name.starts_with("out/runs")) {
        assert!(child.try_wait().unwrap().is_none_or(|status| status.success()), "the study failed");
        std::thread::yield_now();
    }
    assert!(Command::new("kill").args(["-KILL", &child.id().to_string()]).status().unwrap().success());
    child.wait().unwrap();
    folder.run(&study).assert_succeeds();
    folder.assert_no_temporary_files();
}
