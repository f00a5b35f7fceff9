//! The table of crates in the documentation names each crate, its layer and what it uses, and dependencies point down.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

const PAGE: &str = include_str!("../../../../docs/src/reference/layers-and-crates.md");

/// From the top down: a crate uses layers below its own, or its own.
const LAYERS: [&str; 7] = ["programs", "presentation", "products", "engines", "rules", "data", "ground"];

/// A row of the table: the crate's layer, counted from the top, and the crates that it uses.
#[derive(Debug, PartialEq)]
struct Crate {
    layer: usize,
    uses: BTreeSet<String>,
}

/// The rows of the table, by crate.
fn documented() -> BTreeMap<String, Crate> {
    let rows = PAGE.lines().filter(|line| line.starts_with("| ")).skip(1);
    rows.map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [layer, name, _, _, uses] = cells[..] else { panic!("five cells: {line}") };
        let layer = LAYERS.iter().position(|&known| known == layer).unwrap_or_else(|| panic!("a layer: {layer}"));
        let name = name.split('`').nth(1).unwrap().to_owned();
        let uses = uses.split(", ").filter(|name| !name.is_empty()).map(str::to_owned).collect();
        (name, Crate { layer, uses })
    })
    .collect()
}

/// What each crate of the workspace uses of the others, without what only its tests and benches use.
fn used() -> BTreeMap<String, BTreeSet<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let cargo = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root)
        .output()
        .unwrap();
    assert!(cargo.status.success(), "{}", String::from_utf8_lossy(&cargo.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&cargo.stdout).unwrap();
    let short = |name: &str| name.strip_prefix("evenhand-").unwrap_or("cli").to_owned();
    let dependencies = |package: &serde_json::Value| {
        let all = package["dependencies"].as_array().unwrap().iter();
        let own = all.filter(|one| one["kind"].is_null()).filter_map(|one| one["name"].as_str());
        own.filter(|name| name.starts_with("evenhand")).map(short).collect()
    };
    let packages = metadata["packages"].as_array().unwrap().iter();
    let members = packages.filter(|package| package["manifest_path"].as_str().unwrap().contains("/crates/"));
    members.map(|package| (short(package["name"].as_str().unwrap()), dependencies(package))).collect()
}

#[test]
fn the_documented_crates_are_those_of_the_workspace() {
    let documented: BTreeMap<String, BTreeSet<String>> =
        documented().into_iter().map(|(name, row)| (name, row.uses)).collect();
    assert_eq!(documented, used());
}

#[test]
fn dependencies_point_down() {
    let crates = documented();
    for (name, row) in &crates {
        for used in &row.uses {
            assert!(crates[used].layer >= row.layer, "{name} uses {used}, which is in a layer above it");
        }
    }
}
