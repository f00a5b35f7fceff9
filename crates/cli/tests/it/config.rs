//! `evenhand config`, and the published schema against what the agent reads.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn evenhand(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_evenhand")).args(arguments).output().unwrap()
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Checks a text as a file, and returns the error, if any.
fn problem(text: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agent.toml");
    std::fs::write(&file, text).unwrap();
    let output = evenhand(&["config", "check", file.to_str().unwrap()]);
    match output.status.code() {
        Some(0) => None,
        Some(2) => Some(String::from_utf8(output.stderr).unwrap()),
        other => panic!("status {other:?}: {}", String::from_utf8_lossy(&output.stderr)),
    }
}

fn schema() -> Value {
    let output = evenhand(&["config", "schema"]);
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A file with a key as the agent takes it.
fn write_key(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, "ab".repeat(32)).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// A folder with a copy of a configuration as `agent.toml`, and the files that it names, where the copy names them.
fn with_named_files(file: &Path) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let (key, quotas) = (folder.path().join("key"), folder.path().join("quotas.toml"));
    write_key(&key);
    std::fs::write(&quotas, "[default]\ncpu = 1\n").unwrap();
    let text = std::fs::read_to_string(file).unwrap();
    let text = text.replace("/etc/evenhand/key", key.to_str().unwrap());
    let text = text.replace("file = \"quotas.toml\"", &format!("file = {quotas:?}"));
    std::fs::write(folder.path().join("agent.toml"), text).unwrap();
    folder
}

/// The names of an object's properties.
fn properties(schema: &Value) -> Vec<String> {
    schema["properties"].as_object().unwrap().keys().cloned().collect()
}

/// The keys that the agent takes where `text` has an unknown one, from its own message.
fn known_keys(text: &str) -> Vec<String> {
    let error = problem(text).unwrap();
    let (_, list) = error.split_once("unknown field \"zzz\", expected one of: ").unwrap_or_else(|| panic!("{error}"));
    let list = list.lines().next().unwrap();
    list.split(", ").map(|key| key.trim().to_owned()).collect()
}

#[test]
fn the_configurations_of_packages_and_examples_are_valid() {
    for file in ["packaging/etc/agent.toml", "docs/examples/agent.toml"] {
        let folder = with_named_files(&repository().join(file));
        let output = evenhand(&["config", "check", folder.path().join("agent.toml").to_str().unwrap()]);
        assert!(output.status.success(), "{file}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(String::from_utf8_lossy(&output.stdout).contains("valid; metric deviation, law integral, every 10 s"));
    }
}

#[test]
fn credentials_of_a_unit_that_does_not_run_are_not_checked() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agent.toml");
    let check = |key: &str| {
        let peers = format!("[peers]\nlisten = \"127.0.0.1:9751\"\nkey = \"{key}\"\n");
        std::fs::write(&file, format!("[[guests]]\nfrom = \"user-slices\"\n{peers}")).unwrap();
        evenhand(&["config", "check", file.to_str().unwrap()])
    };
    if std::path::Path::new("/run/credentials/evenhand-agent.service").exists() {
        eprintln!("skipped: the agent's unit runs on this machine");
        return;
    }
    let output = check("credential:peers.key");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("the key and certificates are not checked"), "{text}");
    assert_eq!(check("/absent/peers.key").status.code(), Some(2));
}

#[test]
fn an_error_has_file_line_and_column_and_the_record_is_json() {
    let guests = "[[guests]]\nfrom = \"user-slices\"\n";
    let error = problem(&format!("{guests}[control]\nintervall = \"3s\"\n")).unwrap();
    assert!(error.contains("agent.toml:4:1") && error.contains("did you mean \"interval\""), "{error}");
    assert!(problem("[control]\n").unwrap().contains("guests"));
    let file = repository().join("packaging/etc/agent.toml");
    let output = evenhand(&["--format", "json", "config", "check", file.to_str().unwrap()]);
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(record[0]["valid"], Value::Bool(true));
    let missing = evenhand(&["config", "check", "/nonexistent/agent.toml"]);
    assert_ne!(missing.status.code(), Some(0));
}

#[test]
fn the_schema_has_every_key_that_the_agent_takes() {
    let schema = schema();
    let guests = "[[guests]]\nfrom = \"user-slices\"\n";
    let section = |name: &str| schema["properties"][name].clone();
    let peers = "[peers]\nlisten = \"127.0.0.1:1\"\nkey = \"k\"\n";
    let cases = [
        (schema.clone(), format!("zzz = 1\n{guests}")),
        (section("node"), format!("{guests}[node]\nzzz = 1\n")),
        (section("heaviness"), format!("{guests}[heaviness]\nzzz = 1\n")),
        (section("control"), format!("{guests}[control]\nzzz = 1\n")),
        (section("quotas"), format!("{guests}[quotas]\nzzz = 1\n")),
        (section("network"), format!("{guests}[network]\nzzz = 1\n")),
        (section("metrics"), format!("{guests}[metrics]\nzzz = 1\n")),
        (section("peers"), format!("{guests}{peers}zzz = 1\n")),
        (section("peers")["properties"]["largest"].clone(), format!("{guests}{peers}largest = {{ zzz = 1 }}\n")),
    ];
    for (part, text) in cases {
        let (stated, known) = (properties(&part), known_keys(&text));
        assert!(known.len() > 1 || text.contains("quotas") || text.contains("metrics"), "{known:?}");
        let missing: Vec<&String> = known.iter().filter(|key| !stated.contains(key)).collect();
        assert!(missing.is_empty(), "the schema lacks {missing:?}, which the agent takes in:\n{text}");
    }
}

#[test]
fn the_schema_has_every_source_and_its_keys() {
    let schema = schema();
    let guest = &schema["properties"]["guests"]["items"];
    let error = problem("[[guests]]\nfrom = \"zzz\"\n").unwrap();
    let (_, list) = error.split_once("expected one of: ").unwrap_or_else(|| panic!("{error}"));
    let sources: Vec<&str> = list.lines().next().unwrap().split(", ").map(str::trim).collect();
    let mut stated: Vec<&str> =
        guest["properties"]["from"]["enum"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    stated.sort_unstable();
    // Other names of the source of containers.
    let mut known = [&sources[..], &["docker", "podman"]].concat();
    known.sort_unstable();
    assert_eq!(stated, known);
    let stated = properties(guest);
    for source in known {
        let known = known_keys(&format!("[[guests]]\nfrom = \"{source}\"\nzzz = 1\n"));
        let missing: Vec<&String> = known.iter().filter(|key| !stated.contains(key)).collect();
        assert!(missing.is_empty(), "the schema lacks {missing:?} of {source}");
    }
}

/// A folder with a valid `agent.toml`, and its path.
fn with_configuration() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agent.toml");
    std::fs::write(&file, "[control]\ninterval = \"10s\"\nlaw = \"linear\"\n[[guests]]\nfrom = \"user-slices\"\n")
        .unwrap();
    (folder, file)
}

fn drop_in(file: &Path, name: &str, text: &str) {
    let folder = file.with_extension("toml.d");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(name), text).unwrap();
}

/// Checks a file under environment variables; returns the status, what was printed, and the error.
fn check_with(file: &Path, variables: &[(&str, &str)]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_evenhand"))
        .args(["config", "check", file.to_str().unwrap()])
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn drop_in_files_change_single_keys_in_the_order_of_their_names() {
    let (_folder, file) = with_configuration();
    drop_in(&file, "20-site.toml", "[control]\ninterval = \"3s\"\n");
    drop_in(&file, "10-vendor.toml", "[control]\ninterval = \"7s\"\n[heaviness]\nmetric = \"greediness\"\n");
    drop_in(&file, ".hidden.toml", "not TOML");
    drop_in(&file, "backup.toml.old", "not TOML");
    let (status, printed, error) = check_with(&file, &[]);
    assert_eq!(status, Some(0), "{error}");
    assert!(printed.contains("metric greediness, law linear, every 3 s"), "{printed}");
    let (first, second) = (printed.find("10-vendor.toml").unwrap(), printed.find("20-site.toml").unwrap());
    assert!(first < second && !printed.contains("hidden") && !printed.contains("old"), "{printed}");
}

#[test]
fn a_drop_in_file_replaces_a_list_as_a_whole() {
    let (_folder, file) = with_configuration();
    drop_in(&file, "a.toml", "[[guests]]\nfrom = \"libvirt\"\nzzz = 1\n");
    let (status, _, error) = check_with(&file, &[]);
    assert_eq!(status, Some(2));
    assert!(error.contains("agent.toml.d/a.toml:3:1") && error.contains("zzz"), "{error}");
}

#[test]
fn an_error_is_located_in_the_drop_in_file_that_has_it() {
    let (_folder, file) = with_configuration();
    drop_in(&file, "a.toml", "\n[control]\nintervall = \"3s\"\n");
    let (status, _, error) = check_with(&file, &[]);
    assert_eq!(status, Some(2));
    assert!(error.contains("agent.toml.d/a.toml:3:1") && error.contains("did you mean \"interval\""), "{error}");
    drop_in(&file, "a.toml", "[contro]\ninterval = \"3s\"\n");
    assert!(check_with(&file, &[]).2.contains("a.toml:1:2"), "an unknown section");
}

#[test]
fn environment_variables_are_stronger_than_files() {
    let (_folder, file) = with_configuration();
    drop_in(&file, "a.toml", "[control]\ninterval = \"3s\"\n");
    let variables = [
        ("EVENHAND_AGENT__CONTROL__INTERVAL", "5s"),
        ("EVENHAND_AGENT__CONTROL__CONTROLS", "[\"cpu\", \"mem\"]"),
        ("EVENHAND_AGENT__METRICS__LISTEN", "127.0.0.1:9750"),
        ("EVENHAND_AGENT_OPTIONS", "--apply"),
    ];
    let (status, printed, error) = check_with(&file, &variables);
    assert_eq!(status, Some(0), "{error}");
    assert!(printed.contains("every 5 s, sets cpu, mem, alone"), "{printed}");
    assert!(printed.contains("changed by EVENHAND_AGENT__CONTROL__INTERVAL"), "{printed}");
    assert!(!printed.contains("EVENHAND_AGENT_OPTIONS"), "{printed}");
}

#[test]
fn an_invalid_variable_is_named() {
    let (_folder, file) = with_configuration();
    for (name, value, expected) in [
        ("EVENHAND_AGENT__CONTROL__INTERVALL", "5s", "did you mean \"interval\""),
        ("EVENHAND_AGENT__CONTROL__INTERVAL", "soon", "interval"),
        ("EVENHAND_AGENT__CONTROL", "5s", "EVENHAND_AGENT__SECTION__KEY"),
        // A value is one value, whatever lines it has.
        ("EVENHAND_AGENT__CONTROL__PROTECTED", "0.5\nlaw = \"linear\"", "protected"),
    ] {
        let (status, printed, error) = check_with(&file, &[(name, value)]);
        assert_eq!(status, Some(2), "{name}={value}: {printed}");
        assert!(error.contains(name) && error.contains(expected), "{error}");
    }
}

#[test]
fn a_folder_of_drop_in_files_that_others_may_write_is_not_trusted() {
    use std::os::unix::fs::PermissionsExt;
    let (_folder, file) = with_configuration();
    drop_in(&file, "a.toml", "");
    let folder = file.with_extension("toml.d");
    assert!(!check_with(&file, &[]).1.contains("refuses"), "as it was made");
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    let printed = check_with(&file, &[]).1;
    assert!(printed.contains("agent run --apply refuses it") && printed.contains("agent.toml.d"), "{printed}");
}

/// Configurations as earlier versions had them in their packages, their documentation and their tests; the name has the day.
fn recorded_configurations() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded/configurations");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 7, "{files:?}");
    files
}

#[test]
fn configurations_of_earlier_versions_are_valid_and_the_defaults_that_changed_since_are_listed() {
    // What each left to a default that is another one now; the others set it, or have been written since.
    let relied: [(&str, &[&str]); 4] = [
        ("2026-11-21-every-key.toml", &["control.idle"]),
        ("2026-11-22-example.toml", &["control.least", "control.most", "control.idle", "peers.largest"]),
        ("2026-11-22-package.toml", &["control.least", "control.most", "control.idle"]),
        ("2026-11-23-package.toml", &["control.least", "control.most", "control.idle"]),
    ];
    for file in recorded_configurations() {
        let folder = with_named_files(&file);
        let named = match file.extension().is_some_and(|extension| extension == "toml") {
            true => folder.path().join("agent.toml"),
            false => file.clone(),
        };
        let output = evenhand(&["--format", "json", "config", "check", named.to_str().unwrap()]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "an earlier version took this file: an upgrade may not refuse it: {error}");
        let record: Value = serde_json::from_slice(&output.stdout).unwrap();
        let name = file.file_name().unwrap().to_str().unwrap();
        let Some((_, expected)) = relied.iter().find(|(known, _)| *known == name) else {
            assert!(name.ends_with(".env"), "{name} has no entry in the list above");
            continue;
        };
        let changed = record[0]["changed_defaults"].as_array().unwrap();
        let keys: Vec<&str> = changed.iter().map(|it| it["key"].as_str().unwrap()).collect();
        assert_eq!(&keys[..], *expected, "{name}");
    }
}

#[test]
fn a_changed_default_has_its_place_and_the_line_that_keeps_the_earlier_one() {
    let (folder, file) = with_configuration();
    let check = || {
        let output = evenhand(&["config", "check", "--changes", file.to_str().unwrap()]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    // The linear law has none of the settings of the integral one.
    assert!(check().contains("no default that it relies on was another one"), "{}", check());
    let key = folder.path().join("key");
    write_key(&key);
    let peers = &format!("[peers]\nlisten = \"192.0.2.1:9751\"\nkey = {key:?}\n");
    let text = format!("[[guests]]\nfrom = \"user-slices\"\n[control]\ninterval = \"10s\"\n{peers}");
    std::fs::write(&file, &text).unwrap();
    let printed = check();
    for expected in [
        "agent.toml:3:1: [control] has no least. Its default since 2026-11-22: 0.1; before: 0.01. To keep that: least = 0.01",
        "[control] has no most. Its default since 2026-11-22: 10; before: 100. To keep that: most = 100",
        "agent.toml:5:1: [peers] has no largest",
    ] {
        assert!(printed.contains(expected), "{expected}\nis not in\n{printed}");
    }
    // What is printed is what a file takes.
    let output = evenhand(&["--format", "json", "config", "check", file.to_str().unwrap()]);
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut sections = [("control", String::new()), ("peers", String::new())];
    for it in record[0]["changed_defaults"].as_array().unwrap() {
        let (section, key) = it["key"].as_str().unwrap().split_once('.').unwrap();
        let lines = &mut sections.iter_mut().find(|(name, _)| *name == section).unwrap().1;
        lines.push_str(&format!("{key} = {}\n", it["keeps"].as_str().unwrap()));
    }
    let [(_, control), (_, peers)] = sections;
    let text = text.replace("[control]\n", &format!("[control]\n{control}"));
    std::fs::write(&file, text.replace("[peers]\n", &format!("[peers]\n{peers}"))).unwrap();
    assert!(check().contains("no default that it relies on was another one"), "{}", check());
    let both = evenhand(&["--format", "json", "config", "check", "--changes", file.to_str().unwrap()]);
    assert_eq!(both.status.code(), Some(2));
}

/// Checks options of services; returns the status, what was printed, and the error.
fn check_options(text: &str) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("service.env");
    std::fs::write(&file, text).unwrap();
    check_with(&file, &[])
}

#[test]
fn options_of_services_are_checked_as_their_units_give_them() {
    for file in ["agent.env", "slurm.env", "serve.env"] {
        let path = repository().join("packaging/etc").join(file);
        let (status, printed, error) = check_with(&path, &[]);
        assert_eq!(status, Some(0), "{error}");
        assert!(printed.contains(&format!("{file}: valid;")), "{printed}");
    }
    let (status, printed, _) = check_options("# of this site\nEVENHAND_SLURM_OPTIONS=\"--policy drf \\\n --apply\"\n");
    assert_eq!(status, Some(0));
    assert!(printed.contains("valid; slurm run --policy drf --apply"), "{printed}");
    // The units add the options to these commands.
    for (service, command) in [
        ("agent", "--format json agent run"),
        ("slurm", "--format json slurm run --state /var/lib/evenhand-slurm/slurm.redb"),
        ("serve", "serve --socket /run/evenhand-serve/socket"),
    ] {
        let unit = repository().join(format!("packaging/systemd/evenhand-{service}.service"));
        let variable = format!("EVENHAND_{}_OPTIONS", service.to_uppercase());
        let line = format!("ExecStart=/usr/bin/evenhand {command} ${variable}\n");
        assert!(std::fs::read_to_string(unit).unwrap().contains(&line), "{line}");
    }
}

#[test]
fn an_invalid_option_of_a_service_has_file_line_and_column() {
    for (text, place, problem) in [
        ("EVENHAND_SLURM_OPTIONS=--policy drf --aply\n", "1:37", "'--aply'"),
        ("\nEVENHAND_SLURM_OPTIONS=--apply \\\n  --policy dfr\n", "3:3", "did you mean \"drf\""),
        ("EVENHAND_SLURM_OPTIONS=--interval=soon\n", "1:24", "--interval"),
        ("EVENHAND_SLURM_OPTIONS=--depth many\n", "1:32", "invalid value 'many'"),
        ("EVENHAND_SLURM_OPTIONS='--state /var/lib/x'\n", "1:25", "cannot be used multiple times"),
        ("EVENHAND_SERVE_OPTIONS=--rate 0\n", "1:24", "expected at least 1"),
        ("EVENHAND_SERVE_OPTIONS=--metrics 127.0.0.1:1 --listen 127.0.0.1:2\n", "1:46", "cannot be used with"),
        ("EVENHAND_AGENT_OPTIONS=--apply now\n", "1:32", "'now'"),
        ("EVENHAND_AGENT_OPTIONS=--help\n", "1:1", "prints a help text"),
        ("\nEVENHAND_AGENT__CONTROL__GAIN=zzz\n", "2:1", "GAIN: gain: found \"zzz\", expected a number"),
        ("EVENHAND_AGENT__CONTROL=5s\n", "1:1", "EVENHAND_AGENT__SECTION__KEY"),
        ("EVENHAND_AGENT_CONTROL__GAIN=1\n", "1:1", "did you mean \"EVENHAND_AGENT__CONTROL__GAIN\"?"),
        ("# options\n  garbage line\n", "2:3", "found \"garbage line\", expected NAME=VALUE"),
        ("EVENHAND_SLURM_OPTION=--apply\n", "1:1", "did you mean \"EVENHAND_SLURM_OPTIONS\""),
    ] {
        let (status, printed, error) = check_options(text);
        assert_eq!(status, Some(2), "{text}: {printed}");
        assert!(error.contains(&format!("service.env:{place}: ")) && error.contains(problem), "{text}{error}");
    }
}

#[test]
fn files_that_a_configuration_names_are_read_as_the_agent_reads_them() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, file) = with_configuration();
    let own = std::fs::read_to_string(&file).unwrap();
    let path = |name: &str| folder.path().join(name);
    let check = |section: &str, expected: &str| {
        std::fs::write(&file, format!("{own}{section}")).unwrap();
        let (status, printed, error) = check_with(&file, &[]);
        assert_eq!(status, Some(if expected.is_empty() { 0 } else { 2 }), "{section}: {printed}{error}");
        assert!(
            error.contains(expected) && (expected.is_empty() || printed.is_empty()),
            "{expected}: {printed}{error}"
        );
    };
    let key = path("key");
    let peers = format!("[peers]\nlisten = \"127.0.0.1:9751\"\nkey = {key:?}\n");
    check(&peers, "key: ");
    write_key(&key);
    check(&peers, "");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    check(&peers, "644");
    write_key(&key);
    std::fs::write(&key, "short").unwrap();
    check(&peers, "key: ");
    write_key(&key);
    let tls = path("tls.pem");
    check(&format!("{peers}tls = {{ certificate = {tls:?}, key = {tls:?}, authorities = {tls:?} }}\n"), "tls.pem: ");
    let quotas = path("quotas.toml");
    let section = format!("[quotas]\nfile = {quotas:?}\n");
    check(&section, "quotas.toml: ");
    std::fs::write(&quotas, "[default]\ncpu = \"many\"\n").unwrap();
    check(&section, "quotas.toml:2:7");
    std::fs::write(&quotas, "[default]\ncpu = 4\n").unwrap();
    check(&section, "");
}

#[test]
fn a_setting_that_is_out_of_range_has_its_own_place_and_key() {
    let error = problem("[[guests]]\nfrom = \"user-slices\"\n[control]\nleast = 5\n").unwrap();
    assert!(error.contains("agent.toml:4:9: least: found 5, expected above 0 and at most 1"), "{error}");
}

#[test]
fn a_variable_with_one_underscore_too_few_is_warned_of() {
    let (_folder, file) = with_configuration();
    for (name, is_ours) in [
        ("EVENHAND_AGENT_CONTROL__INTERVAL", true),
        ("EVENHAND_AGENT_CONTROL_INTERVAL", true),
        ("EVENHAND_AGENT_OPTIONS", false),
    ] {
        let (status, printed, error) = check_with(&file, &[(name, "5s")]);
        assert_eq!(status, Some(0), "{error}");
        let warning = format!("ignores the variable {name}; did you mean EVENHAND_AGENT__CONTROL__INTERVAL?");
        assert_eq!(printed.contains(&warning), is_ours, "{printed}");
    }
}

#[test]
fn variables_of_a_file_are_checked_on_the_configuration_beside_it() {
    let (folder, file) = with_configuration();
    let environment = folder.path().join("agent.env");
    std::fs::write(&environment, "EVENHAND_AGENT__PEERS__FRESH=20\n").unwrap();
    assert_eq!(check_with(&environment, &[]).0, Some(2), "peers have no address");
    std::fs::remove_file(&file).unwrap();
    assert_eq!(check_with(&environment, &[]).0, Some(0), "the configuration may have one");
}

#[test]
fn every_invalid_file_is_reported() {
    let (folder, good) = with_configuration();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (a, b) = (file("a.toml", "zzz = 1\n"), file("b.env", "EVENHAND_SLURM_OPTIONS=--aply\n"));
    let none = folder.path().join("none.toml").to_str().unwrap().to_owned();
    let files = [a.as_str(), &b, good.to_str().unwrap(), &none];
    let output = evenhand(&[&["config", "check"], &files[..]].concat());
    let (printed, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(2));
    assert!(error.contains("a.toml:1:1") && error.contains("b.env:1:24"), "{error}");
    assert!(error.contains("none.toml: there is no such file") && !error.contains("--config"), "{error}");
    assert!(printed.contains("agent.toml: valid"), "{printed}");
    let output = evenhand(&[&["--format", "json", "config", "check"], &files[..]].concat());
    assert_eq!(output.status.code(), Some(2));
    let records: Value = serde_json::from_slice(&output.stdout).unwrap();
    let valid: Vec<bool> = records.as_array().unwrap().iter().map(|it| it["valid"].as_bool().unwrap()).collect();
    assert_eq!(valid, [false, false, true, false]);
    assert!(records[0]["error"].as_str().unwrap().contains("a.toml:1:1"), "{records}");
}

#[test]
fn the_schema_has_every_metric() {
    let error = problem("[[guests]]\nfrom = \"user-slices\"\n[heaviness]\nmetric = \"zzz\"\n").unwrap();
    let (_, list) = error.split_once("expected one of: ").unwrap_or_else(|| panic!("{error}"));
    let mut known: Vec<&str> = list.lines().next().unwrap().split(", ").map(str::trim).collect();
    let schema = schema();
    let metrics = schema["properties"]["heaviness"]["properties"]["metric"]["enum"].as_array().unwrap();
    let mut stated: Vec<&str> = metrics.iter().map(|name| name.as_str().unwrap()).collect();
    known.sort_unstable();
    stated.sort_unstable();
    assert_eq!(stated, known);
    let page = std::fs::read_to_string(repository().join("docs/src/reference/agent.md")).unwrap();
    let row = page.lines().find(|line| line.starts_with("| `metric`")).unwrap();
    assert!(known.iter().all(|name| row.contains(&format!("`{name}`"))), "{row}");
}
