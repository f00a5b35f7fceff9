//! `evenhand manual`, which packages call.

use std::process::Command;

/// Returns the pages' names, sorted.
fn pages(folder: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn every_verb_has_a_page_with_its_options_and_hidden_verbs_have_none() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("new/man1");
    let output = Command::new(env!("CARGO_BIN_EXE_evenhand"))
        .arg("manual")
        .arg(&target)
        .args(["--date", "2026-11-22"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let names = pages(&target);
    for page in ["evenhand.1", "evenhand-study.1", "evenhand-agent.1", "evenhand-agent-run.1", "evenhand-slurm-plan.1"]
    {
        assert!(names.iter().any(|name| name == page), "{page} is not among {names:?}");
    }
    assert!(names.iter().all(|name| !name.contains("help") && !name.contains("sweep-task")), "{names:?}");
    let text = std::fs::read_to_string(target.join("evenhand-agent-run.1")).unwrap();
    assert!(text.starts_with(".ie"), "{text}");
    assert!(text.contains(".TH evenhand-agent-run 1 2026-11-22 \"evenhand "), "{text}");
    assert!(text.contains(r"\-\-apply") && text.contains("/etc/evenhand/agent.toml"), "{text}");
    // The names of policies come from the registry and are no part of the options' declaration.
    let study = std::fs::read_to_string(target.join("evenhand-study.1")).unwrap();
    assert!(study.contains("fair\\-tree"), "{study}");
}

#[test]
fn the_date_is_a_date() {
    let folder = tempfile::tempdir().unwrap();
    let run = |date: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_evenhand"));
        command.arg("manual").arg(folder.path()).args(["--date", date, "--format", "json"]).output().unwrap()
    };
    let output = run("2026-13-45");
    assert_eq!((output.status.code(), pages(folder.path()).len()), (Some(2), 0));
    assert!(String::from_utf8_lossy(&output.stderr).contains("expected a date such as 2026-11-25"));
    let output = run("undated");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["pages"], pages(folder.path()).len());
}

#[test]
fn a_folder_that_cannot_be_made_is_a_failure_of_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_evenhand")).arg("manual").arg(file.join("man1")).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("file/man1"));
}
