//! `evenhand doctor`: installations in a temporary folder, and programs in the place of the system's.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Runs `evenhand doctor` with these options and only the programs of `path`; returns the status and the record.
fn doctor(options: &[&str], path: &Path) -> (Option<i32>, Value) {
    let output = Command::new(env!("CARGO_BIN_EXE_evenhand"))
        .args(["--format", "json", "doctor"])
        .args(options)
        .env("PATH", path)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let record = serde_json::from_str(&text);
    (output.status.code(), record.unwrap_or_else(|_| panic!("{text}{}", String::from_utf8_lossy(&output.stderr))))
}

fn write(path: &Path, text: &str, mode: u32) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// The state and the text of the findings about a part whose name ends so.
fn about<'a>(record: &'a Value, part: &str) -> Vec<(&'a str, &'a str)> {
    let findings = record["findings"].as_array().unwrap().iter();
    let these = findings.filter(|one| one["part"].as_str().unwrap().ends_with(part));
    these.map(|one| (one["state"].as_str().unwrap(), one["found"].as_str().unwrap())).collect()
}

const CONFIGURATION: &str =
    "[[guests]]\nfrom = \"user-slices\"\n[peers]\nlisten = \"127.0.0.1:9751\"\nkey = \"/etc/evenhand/key\"\n";

/// An installation without a problem.
fn installation() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let etc = root.path().join("etc/evenhand");
    write(&etc.join("agent.toml"), CONFIGURATION, 0o644);
    write(&etc.join("key"), "secret", 0o600);
    write(&etc.join("slurm.env"), "", 0o644);
    let state = root.path().join("var/lib/evenhand");
    fs::create_dir_all(&state).unwrap();
    fs::set_permissions(&state, Permissions::from_mode(0o700)).unwrap();
    root
}

#[test]
fn an_installation_below_a_folder_is_examined_without_asking_services() {
    let root = installation();
    let (status, record) = doctor(&["--root", root.path().to_str().unwrap()], root.path());
    assert_eq!(status, Some(0), "{record}");
    assert_eq!(record["problems"], 0);
    assert_eq!(about(&record, "agent.toml"), [("ok", "valid")]);
    assert_eq!(about(&record, "etc/evenhand/key"), [("ok", "0 days old")]);
    assert_eq!(about(&record, "slurm.env"), [("ok", "valid, and only its owner may write it")]);
    assert_eq!(about(&record, "var/lib/evenhand"), [("ok", "state, closed to others")]);
    assert!(about(&record, ".service").is_empty() && about(&record, "clock").is_empty());
}

#[test]
fn options_that_a_service_would_refuse_are_a_problem_with_their_place() {
    let root = installation();
    write(&root.path().join("etc/evenhand/slurm.env"), "EVENHAND_SLURM_OPTIONS=--polcy sdrf\n", 0o644);
    let (status, record) = doctor(&["--root", root.path().to_str().unwrap()], root.path());
    assert_eq!(status, Some(1), "{record}");
    let [(state, found)] = about(&record, "slurm.env")[..] else { panic!("{record}") };
    assert!(state == "problem" && found.contains("slurm.env:1:24: ") && found.contains("--polcy"), "{found}");
}

#[test]
fn an_empty_folder_has_no_problem_and_a_missing_one_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let (status, record) = doctor(&["--root", root.path().to_str().unwrap()], root.path());
    assert_eq!((status, about(&record, "agent.toml")), (Some(0), vec![("ok", "not there")]));
    let output =
        Command::new(env!("CARGO_BIN_EXE_evenhand")).args(["doctor", "--root", "/nonexistent"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn rights_that_are_too_wide_are_problems_with_a_remedy() {
    let root = installation();
    let path = |file: &str| root.path().join(file);
    fs::set_permissions(path("etc/evenhand/key"), Permissions::from_mode(0o640)).unwrap();
    fs::set_permissions(path("etc/evenhand/slurm.env"), Permissions::from_mode(0o666)).unwrap();
    fs::set_permissions(path("var/lib/evenhand"), Permissions::from_mode(0o755)).unwrap();
    let (status, record) = doctor(&["--root", root.path().to_str().unwrap()], root.path());
    assert_eq!((status, &record["problems"]), (Some(1), &Value::from(3)), "{record}");
    assert_eq!(about(&record, "etc/evenhand/key"), [("problem", "others may read it (mode 640)")]);
    assert!(about(&record, "slurm.env")[0].1.contains("mode 666"));
    assert_eq!(about(&record, "var/lib/evenhand"), [("problem", "others may enter it (mode 755)")]);
    let remedies = record["findings"].as_array().unwrap().iter().filter(|one| one["state"] == "problem");
    assert!(remedies.clone().all(|one| one["remedy"].is_string()), "{record}");
}

#[test]
fn an_invalid_configuration_and_a_missing_key_are_problems() {
    let root = installation();
    fs::remove_file(root.path().join("etc/evenhand/key")).unwrap();
    let (_, record) = doctor(&["--root", root.path().to_str().unwrap()], root.path());
    assert_eq!(about(&record, "etc/evenhand/key")[0].0, "problem");
    write(&root.path().join("etc/evenhand/agent.toml"), "[controll]\n", 0o644);
    let (status, record) = doctor(&["--root", root.path().to_str().unwrap()], root.path());
    assert_eq!(status, Some(1));
    let (state, found) = about(&record, "agent.toml")[0];
    assert!(state == "problem" && found.contains("controll"), "{found}");
}

#[test]
fn a_key_of_more_than_a_year_is_worth_a_note() {
    let root = installation();
    let key = fs::File::options().write(true).open(root.path().join("etc/evenhand/key")).unwrap();
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(400 * 86_400);
    key.set_modified(old).unwrap();
    let (status, record) = doctor(&["--root", root.path().to_str().unwrap()], root.path());
    assert_eq!((status, about(&record, "etc/evenhand/key")), (Some(0), vec![("note", "400 days old")]));
}

#[test]
fn services_the_clock_and_slurm_are_asked() {
    let bin = tempfile::tempdir().unwrap();
    let program = |name: &str, text: &str| write(&bin.path().join(name), &format!("#!/bin/sh\n{text}\n"), 0o755);
    program(
        "systemctl",
        "case $2 in
        evenhand-agent.service) echo LoadState=loaded; echo ActiveState=failed; echo Result=watchdog; echo NRestarts=4 ;;
        evenhand-slurm.service) echo LoadState=loaded; echo ActiveState=active; echo NRestarts=0 ;;
        *) echo LoadState=not-found ;;
        esac",
    );
    program("timedatectl", "echo no");
    program("scontrol", "case $1 in ping) echo 'Slurmctld(primary) at head is DOWN' ;; *) echo slurm 24.05.2 ;; esac");
    program("evenhand", "echo evenhand 0.0.1");
    let (status, record) = doctor(&[], bin.path());
    assert_eq!(status, Some(1), "{record}");
    assert_eq!(about(&record, "evenhand-agent.service"), [("problem", "failed: watchdog, after 4 restarts")]);
    assert_eq!(about(&record, "evenhand-slurm.service"), [("ok", "runs")]);
    assert_eq!(about(&record, "evenhand-serve.service"), [("ok", "not installed")]);
    assert_eq!(about(&record, "clock")[0].1, "not synchronised");
    assert_eq!(about(&record, "Slurm"), [("problem", "slurm 24.05.2, Slurmctld(primary) at head is DOWN")]);
    let programs = about(&record, "program");
    assert!(programs.iter().any(|(state, found)| *state == "problem" && found.contains("evenhand 0.0.1")), "{record}");
}

#[test]
fn a_machine_without_systemd_and_slurm_has_notes() {
    let empty = tempfile::tempdir().unwrap();
    let (_, record) = doctor(&[], empty.path());
    assert_eq!(about(&record, "services"), [("note", "there is no systemctl")]);
    assert_eq!(about(&record, "clock"), [("note", "there is no timedatectl")]);
    assert!(about(&record, "Slurm").is_empty());
}
