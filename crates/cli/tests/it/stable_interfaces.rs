//! What the page "What stays the same" promises, against what the last release recorded in `tests/recorded`: every verb
//! and option is still there, every field of the JSON that is printed has its place and its type, and a stored workload
//! reads as it did. Additions are welcome; `UPDATE_RECORDED=1 cargo test -p evenhand stable_interfaces` records them for a release.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::command_line_page::{options, verbs};

fn recorded(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded").join(file)
}

/// Holds the lines of a recorded file against those of now: none may be missing. Returns what is missing.
fn missing_lines(file: &str, now: &BTreeSet<String>) -> Vec<String> {
    let path = recorded(file);
    if std::env::var_os("UPDATE_RECORDED").is_some() {
        let lines: Vec<&str> = now.iter().map(String::as_str).collect();
        std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    }
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(text.lines().count() > 3, "{file} records nothing");
    text.lines().filter(|line| !now.contains(*line)).map(|line| format!("{file}: {line}")).collect()
}

/// Adds a line `PATH: TYPE` for each value below `value`. Elements of a list share a path, and so do the values of an
/// object whose keys are names of the input's and not of ours.
fn add_shape(value: &Value, path: &str, shape: &mut BTreeMap<String, BTreeSet<&'static str>>) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    shape.entry(path.to_string()).or_default().insert(kind);
    match value {
        Value::Array(elements) => elements.iter().for_each(|element| add_shape(element, &format!("{path}[]"), shape)),
        Value::Object(fields) => {
            fields.iter().for_each(|(name, field)| add_shape(field, &format!("{path}.{name}"), shape));
        }
        _ => {}
    }
}

fn shape_of(value: &Value) -> BTreeSet<String> {
    let mut shape = BTreeMap::new();
    add_shape(value, "", &mut shape);
    shape
        .into_iter()
        .map(|(path, kinds)| format!("{path}: {}", kinds.into_iter().collect::<Vec<_>>().join(" or ")))
        .collect()
}

/// A copy of docs/examples, in which commands may write.
fn examples() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples");
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            std::fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
        }
    }
    folder
}

/// Runs a command and returns what it printed as JSON, or the JSON file that it wrote. A finding is no failure.
fn json_of(folder: &Path, arguments: &str, file: Option<&str>) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_evenhand"))
        .args(["--quiet", "--format", "json"])
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .output()
        .unwrap();
    let status = output.status.code();
    assert!(matches!(status, Some(0 | 1)), "{arguments}: {status:?}: {}", String::from_utf8_lossy(&output.stderr));
    let bytes = file.map_or(output.stdout, |file| std::fs::read(folder.join(file)).unwrap());
    serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{arguments}: {error}"))
}

#[test]
fn every_recorded_verb_and_option_is_still_there() {
    let mut now = BTreeSet::new();
    for (verb, text) in verbs() {
        now.insert(verb.clone());
        now.extend(options(&text, |line| line.trim_start().starts_with('-')).iter().map(|o| format!("{verb} {o}")));
    }
    let missing = missing_lines("verbs.txt", &now);
    assert!(missing.is_empty(), "these are gone, and scripts may use them: {missing:#?}");
}

#[test]
fn every_recorded_field_has_its_place_and_its_type() {
    let commands = [
        ("study.txt", "study easy.swf --capacity pool.toml --policy fifo,drf --out s", Some("s/summary.json")),
        ("sweep.txt", "sweep grid.toml --out w", Some("w/sweep.json")),
        ("describe.txt", "workload describe lab.swf", None),
        ("allocate.txt", "allocate team.toml --mechanism drf", None),
        ("audit.txt", "audit team.toml team-now.json", None),
        ("audit-history.txt", "audit --history lab.swf --capacity pool.toml --policy fifo,drf", None),
        ("timeline.txt", "timeline tanks.toml", None),
        ("processes.txt", "processes red.prog green.prog blue.prog --runs 2", None),
        ("price.txt", "price cpu=1:mem=4Gi --cluster cluster.toml", None),
        ("policies.txt", "policies", None),
        ("why.txt", "why --log lab.swf 3", None),
    ];
    let folder = examples();
    let mut missing = Vec::new();
    for (file, arguments, written) in commands {
        missing.extend(missing_lines(file, &shape_of(&json_of(folder.path(), arguments, written))));
    }
    assert!(missing.is_empty(), "programs read these fields, and they are gone or of another type: {missing:#?}");
}

#[test]
fn a_recorded_store_reads_as_it_did() {
    let folder = examples();
    let (store, description) = (recorded("jobs.parquet"), recorded("jobs.json"));
    if std::env::var_os("UPDATE_RECORDED").is_some() {
        json_of(folder.path(), "workload import two-weeks.sacct -o jobs.parquet", None);
        std::fs::copy(folder.path().join("jobs.parquet"), &store).unwrap();
    }
    std::fs::copy(&store, folder.path().join("jobs.parquet")).unwrap();
    let now = json_of(folder.path(), "workload describe jobs.parquet", None);
    if std::env::var_os("UPDATE_RECORDED").is_some() {
        std::fs::write(&description, serde_json::to_string_pretty(&now).unwrap() + "\n").unwrap();
    }
    let then: Value = serde_json::from_slice(&std::fs::read(&description).unwrap()).unwrap();
    assert_eq!(then["tasks"], 7, "the recorded store has the seven jobs of two-weeks.sacct");
    let changed: Vec<&String> =
        then.as_object().unwrap().iter().filter(|(name, value)| now[*name] != **value).map(|(name, _)| name).collect();
    assert!(changed.is_empty(), "a stored workload reads differently: {changed:?}");
}

#[test]
fn a_field_that_is_gone_or_has_another_type_is_found() {
    let then = shape_of(&serde_json::json!({"runs": [{"wait_s": 1.5, "policy": "drf"}], "site": null}));
    let now = shape_of(&serde_json::json!({"runs": [{"wait_s": "1.5"}], "site": null, "new": 1}));
    let gone: Vec<&String> = then.difference(&now).collect();
    assert_eq!(gone, [".runs[].policy: string", ".runs[].wait_s: number"]);
}
