//! The examples of docs/src/reference/workload-sources.md are valid and mean what the page states.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;

use common::{Machine, lines};
use evenhand_agent::Quotas;
use evenhand_agent::discovery::SOURCES;
use evenhand_documents::{Document, Format};

const PAGE: &str = include_str!("../../../docs/src/reference/workload-sources.md");

/// Returns the text of each code block.
fn blocks() -> Vec<&'static str> {
    let parts = PAGE.split("```").skip(1).step_by(2);
    parts.filter_map(|part| part.strip_prefix("toml\n").or_else(|| part.strip_prefix("text\n"))).collect()
}

/// Returns the name of the file that a block shows, if its first line has it.
fn file_of(block: &str) -> Option<&str> {
    block.lines().next()?.strip_prefix("# /etc/evenhand/")
}

#[test]
fn every_example_is_accepted() {
    let machine = Machine::unified();
    let folder = machine.path("etc");
    std::fs::create_dir(&folder).unwrap();
    for (block, name) in blocks().iter().filter_map(|b| Some((b, file_of(b)?))) {
        machine.write(&format!("etc/{name}"), block);
    }
    let mut named = std::collections::BTreeSet::new();
    for block in blocks().into_iter().filter(|block| file_of(block).is_none()) {
        let text = block.replace("/etc/evenhand", folder.to_str().unwrap());
        let document = Document::parse("guests.md", &text, Some(Format::Toml)).unwrap();
        for node in document.root().unwrap().required("guests", "").unwrap().list().unwrap() {
            named.insert(node.table().unwrap().get("from").unwrap().text().unwrap().to_owned());
        }
        machine.discovery(&text).refresh();
    }
    assert_eq!(named, SOURCES.iter().map(|source| source.name.to_owned()).collect());
    for source in SOURCES {
        assert!(PAGE.contains(&format!("| `{}`", source.name)), "{}", source.name);
    }

    let tables = |name: &str| format!("[[guests]]\nfrom = 'table'\nfile = {:?}\n", folder.join(name));
    for group in ["machine.slice/experiment.scope", "lab.slice", "a group/with blanks"] {
        machine.group(group);
    }
    assert_eq!(
        lines(machine.discovery(&tables("guests.txt")).refresh()),
        [
            "a group/with blanks carol with blanks",
            "lab.slice bob lab.slice",
            "machine.slice/experiment.scope alice measure",
        ]
    );
    let mut discovery = machine.discovery(&tables("guests.toml"));
    assert_eq!(discovery.refresh().workloads[0].group.devices, ["tap0"]);

    let quotas = |name: &str| Quotas::open(Path::new(&folder.join(name))).unwrap();
    let (tables, lines) = (quotas("quotas.toml"), quotas("quotas.txt"));
    for user in ["alice", "carol"] {
        for resource in ["cpu", "mem", "net"] {
            assert_eq!(tables.amount(user, resource), lines.amount(user, resource));
        }
    }
    assert_eq!((tables.amount("bob", "cpu"), lines.amount("dora", "cpu")), (Some(8.0), Some(8.0)));
}

#[test]
fn the_groups_that_are_never_workloads_are_documented() {
    for path in ["system.slice", "user.slice", "machine.slice", "machine", "init.scope"] {
        assert!(PAGE.contains(&format!("`{path}`")), "{path}");
        let machine = Machine::unified();
        machine.group(path);
        let text = format!("[[guests]]\nfrom = 'pattern'\npattern = '{path}'\nowner = 'x'\n");
        assert_eq!(machine.discovery(&text).refresh().warnings.len(), 1);
    }
}
