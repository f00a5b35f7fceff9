//! The page about the command line documents every verb and every option of the program, and no others.

use std::collections::BTreeMap;
use std::process::Command;

const PAGE: &str = include_str!("../../../../docs/src/reference/command-line.md");

/// Returns the output of `evenhand VERB… --help`.
fn help(verb: &[String]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_evenhand")).args(verb).arg("--help").output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the verbs that can be run, each with its help, including the verbs of verbs.
pub(crate) fn verbs() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![Vec::new()];
    while let Some(verb) = open.pop() {
        let text = help(&verb);
        let lines = text.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
        // The second line of a description is indented further.
        let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
        let below: Vec<&str> = names.filter_map(|line| line.split_whitespace().next()).collect();
        for name in below.iter().filter(|name| **name != "help") {
            open.push(verb.iter().cloned().chain([name.to_string()]).collect());
        }
        let runs = text.lines().any(|line| line.starts_with("Usage: ") && !line.contains("<COMMAND>"));
        if !verb.is_empty() && (below.is_empty() || runs) {
            found.insert(verb.join(" "), text);
        }
    }
    found
}

/// Returns the sections of the page by heading.
fn sections() -> BTreeMap<&'static str, &'static str> {
    PAGE.split("\n## ").skip(1).map(|section| section.split_once('\n').unwrap()).collect()
}

/// Returns the long options in a text, each once.
pub(crate) fn options(text: &str, begins: impl Fn(&str) -> bool) -> Vec<String> {
    let lines = text.lines().filter(|line| begins(line));
    let words = lines.flat_map(|line| line.split(|c: char| c.is_whitespace() || "`,=[(|.;".contains(c)));
    let mut found: Vec<String> =
        words.filter(|word| word.starts_with("--") && word.len() > 2).map(str::to_owned).collect();
    found.sort();
    found.dedup();
    found
}

#[test]
fn the_page_documents_every_verb_and_every_option() {
    let (verbs, sections) = (verbs(), sections());
    let anywhere = ["Common options", "Trace options"].map(|name| sections[name]).concat();
    let mut missing = Vec::new();
    for (verb, text) in &verbs {
        let Some(section) = sections.get(verb.as_str()) else {
            missing.push(format!("no section {verb}"));
            continue;
        };
        let documented = options(&format!("{section}\n{anywhere}"), |_| true);
        let own = options(text, |line| line.trim_start().starts_with('-') && line.starts_with("  "));
        missing.extend(own.iter().filter(|one| !documented.contains(one)).map(|one| format!("{verb} {one}")));
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn every_verb_on_the_page_exists() {
    let verbs = verbs();
    let others = ["Common options", "Exit status", "Signals", "Trace options"];
    let unknown: Vec<&str> =
        sections().into_keys().filter(|name| !others.contains(name) && !verbs.contains_key(*name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
