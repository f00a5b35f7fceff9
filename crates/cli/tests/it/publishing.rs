//! Every crate can be published: what a registry asks for, and one version and one oldest compiler for all.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Of the registry's list, the categories that are used here.
const CATEGORIES: [&str; 3] = ["algorithms", "command-line-utilities", "simulation"];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn metadata(options: &[&str]) -> Value {
    let cargo = Command::new(env!("CARGO"))
        .args(["metadata", "--offline", "--format-version", "1"])
        .args(options)
        .current_dir(repository())
        .output()
        .unwrap();
    assert!(cargo.status.success(), "{}", String::from_utf8_lossy(&cargo.stderr));
    serde_json::from_slice(&cargo.stdout).unwrap()
}

/// The quoted value of `key` in a TOML text.
fn value<'a>(text: &'a str, key: &str) -> &'a str {
    let line = text.lines().find(|line| line.starts_with(&format!("{key} = "))).unwrap();
    line.split('"').nth(1).unwrap()
}

/// Major and minor number.
fn number(version: &str) -> (u32, u32) {
    let mut parts = version.split('.').map(|part| part.parse().unwrap());
    (parts.next().unwrap(), parts.next().unwrap_or(0))
}

fn strings(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect()
}

#[test]
fn every_crate_has_what_a_registry_asks_for() {
    let metadata = metadata(&["--no-deps"]);
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 20);
    for package in packages {
        let name = package["name"].as_str().unwrap();
        assert!(package["publish"].is_null(), "{name} may be published");
        assert_eq!(package["license"], "MIT OR Apache-2.0", "{name}");
        assert!(package["description"].as_str().is_some_and(|text| text.len() > 20), "{name} has a description");
        let keywords = strings(&package["keywords"]);
        assert!(
            (1..=5).contains(&keywords.len()) && keywords.iter().all(|word| word.len() <= 20),
            "{name}: {keywords:?}"
        );
        let categories = strings(&package["categories"]);
        assert!(
            !categories.is_empty() && categories.iter().all(|one| CATEGORIES.contains(one)),
            "{name}: {categories:?}"
        );
        assert_eq!(package["metadata"]["docs"]["rs"]["all-features"], Value::Bool(true), "{name} on docs.rs");
        let folder = Path::new(package["manifest_path"].as_str().unwrap()).parent().unwrap();
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            let of = |folder: &Path| std::fs::read(folder.join(licence)).unwrap();
            assert_eq!(of(folder), of(&repository()), "{name}: the text of the licence is in its package");
        }
    }
}

#[test]
fn crates_of_the_workspace_require_each_other_in_the_same_version() {
    let metadata = metadata(&["--no-deps"]);
    for package in metadata["packages"].as_array().unwrap() {
        let (name, version) = (package["name"].as_str().unwrap(), package["version"].as_str().unwrap());
        for used in package["dependencies"].as_array().unwrap() {
            if used["name"].as_str().unwrap().starts_with("evenhand") {
                assert_eq!(used["req"], format!("={version}"), "{name} requires {}", used["name"]);
            }
        }
    }
}

#[test]
fn the_oldest_compiler_is_the_one_that_the_checks_use_and_no_dependency_needs_a_newer_one() {
    let read = |file: &str| std::fs::read_to_string(repository().join(file)).unwrap();
    let stated = number(value(&read("Cargo.toml"), "rust-version"));
    assert_eq!(stated, number(value(&read("rust-toolchain.toml"), "channel")));
    let metadata = metadata(&["--locked", "--filter-platform", "x86_64-unknown-linux-gnu"]);
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 200);
    for package in packages {
        let Some(needed) = package["rust_version"].as_str() else { continue };
        assert!(number(needed) <= stated, "{} {} needs Rust {needed}", package["name"], package["version"]);
    }
}
