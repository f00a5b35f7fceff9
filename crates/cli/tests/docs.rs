//! Runs the examples of the documentation and compares their output with the documented output.
//!
//! Each page with examples, README.md and those below docs/, is a test with the page's path as its name. Every block
//! marked `console` is run: a line `$ COMMAND` goes to a shell, in a folder that starts as a copy of docs/examples and is
//! kept for the rest of that page; the lines below it, up to the next command, are what it must print on both outputs.
//! `[..]` stands for anything within a line, a line `...` for any number of lines. A block marked `console no-test` is not
//! run (it would build something, or take long).
//!
//! With `UPDATE_DOCS=1` in the environment, the test replaces what differs by what the commands print; lines with `[..]`
//! and a line `...` stay where they still describe the output. Read the difference before you commit it.
#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Arguments, Failed, Trial};

/// One command and what it must print.
#[derive(Debug, PartialEq)]
struct Example {
    line: usize,
    command: String,
    expected: Vec<String>,
}

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let mut pages = vec![root.join("README.md")];
    pages.extend(pages_below(&root.join("docs")));
    // A test a page, so that pages run side by side.
    let mut tests: Vec<Trial> = Vec::new();
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        let examples = examples(&text);
        if examples.is_empty() {
            continue;
        }
        let name = page.strip_prefix(&root).unwrap().display().to_string();
        let files = root.join("docs/examples");
        tests.push(Trial::test(name, move || page_prints_what_it_shows(&page, &examples, &files)));
    }
    assert!(!tests.is_empty(), "there are pages with examples");
    tests.push(Trial::test("a_documented_difference_is_seen", || {
        a_documented_difference_is_seen();
        Ok(())
    }));
    tests.push(Trial::test("an_updated_page_keeps_its_blanks", || {
        an_updated_page_keeps_its_blanks();
        Ok(())
    }));
    tests.push(Trial::test("blocks_are_read_as_described", || {
        blocks_are_read_as_described();
        Ok(())
    }));
    libtest_mimic::run(&Arguments::from_args(), tests).exit();
}

/// Runs a page's examples in a folder that starts with copies of `files`.
fn page_prints_what_it_shows(page: &Path, examples: &[Example], files: &Path) -> Result<(), Failed> {
    let folder = tempfile::tempdir().unwrap();
    for file in entries(files).into_iter().filter(|path| path.is_file()) {
        fs::copy(&file, folder.path().join(file.file_name().unwrap())).unwrap();
    }
    let mut differences = String::new();
    let mut outputs = Vec::new();
    for example in examples {
        let (status, printed) = shell(&example.command, folder.path());
        if !status || !matches(&example.expected, &printed) {
            let ended = if status { "" } else { " (it failed)" };
            writeln!(differences, "{}:{}: $ {}{ended}", page.display(), example.line, example.command).unwrap();
            writeln!(differences, "--- documented\n{}", example.expected.join("\n")).unwrap();
            writeln!(differences, "--- printed\n{}\n", printed.join("\n")).unwrap();
            if status {
                let first = example.line + example.command.lines().count();
                outputs.push((first, example.expected.len(), updated(&example.expected, &printed)));
            }
        }
    }
    if differences.is_empty() {
        return Ok(());
    }
    if std::env::var_os("UPDATE_DOCS").is_some_and(|value| value == "1") {
        fs::write(page, rewritten(&fs::read_to_string(page).unwrap(), &outputs)).unwrap();
    }
    Err(differences.into())
}

/// The page with other outputs, each given by the number of its first line, how many lines it replaces, and its lines.
fn rewritten(text: &str, outputs: &[(usize, usize, Vec<String>)]) -> String {
    let mut lines: Vec<String> = text.lines().map(String::from).collect();
    // From the end, so that earlier line numbers stay valid.
    for (first, replaced, new) in outputs.iter().rev() {
        lines.splice(first - 1..first - 1 + replaced, new.iter().cloned());
    }
    lines.join("\n") + "\n"
}

/// What to document for a command that printed `printed` where `expected` was documented: what it printed, shortened and
/// blanked as the documented output was.
fn updated(expected: &[String], printed: &[String]) -> Vec<String> {
    let blanked = |line: &String| {
        let pattern = expected.iter().find(|e| e.contains("[..]") && line_matches(e, line));
        pattern.unwrap_or(line).clone()
    };
    let all: Vec<String> = printed.iter().map(blanked).collect();
    let is_gap = |line: &String| line == "...";
    let (first, last) = (expected.iter().position(is_gap), expected.iter().rposition(is_gap));
    let (Some(first), Some(last)) = (first, last) else { return all };
    let after = expected.len() - last - 1;
    if first + after >= all.len() {
        return all;
    }
    let gap = std::iter::once("...".to_string());
    all[..first].iter().cloned().chain(gap).chain(all[all.len() - after..].iter().cloned()).collect()
}

/// The pages of a folder and of the folders in it, by path.
fn pages_below(folder: &Path) -> Vec<PathBuf> {
    let (folders, files): (Vec<_>, Vec<_>) = entries(folder).into_iter().partition(|path| path.is_dir());
    let pages = files.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages.chain(folders.iter().flat_map(|folder| pages_below(folder))).collect()
}

/// The entries of a folder, by name.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries
}

/// The commands of all `console` blocks. A command goes on in the next line after a backslash.
fn examples(text: &str) -> Vec<Example> {
    let mut found: Vec<Example> = Vec::new();
    let mut block = None;
    let mut continues = false;
    for (number, line) in text.lines().enumerate() {
        if let Some(mark) = line.strip_prefix("```") {
            block = match block {
                Some(_) => None,
                None => Some(mark.trim() == "console"),
            };
            continues = false;
            continue;
        }
        if block != Some(true) {
            continue;
        }
        match (line.strip_prefix("$ "), found.last_mut()) {
            (Some(command), _) => {
                let expected = Vec::new();
                found.push(Example { line: number + 1, command: command.to_string(), expected });
            }
            (None, Some(example)) if continues => {
                example.command.push('\n');
                example.command.push_str(line.strip_prefix("> ").unwrap_or(line));
            }
            (None, Some(example)) => example.expected.push(line.trim_end().to_string()),
            (None, None) => panic!("line {}: a console block starts with a command", number + 1),
        }
        continues = line.ends_with('\\') && found.last().is_some_and(|e| e.expected.is_empty());
    }
    found
}

/// Whether the command succeeded, and the lines it printed on both outputs.
fn shell(command: &str, folder: &Path) -> (bool, Vec<String>) {
    let binaries = Path::new(env!("CARGO_BIN_EXE_evenhand")).parent().unwrap();
    let path = format!("{}:{}", binaries.display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("sh")
        .args(["-c", &format!("exec 2>&1\n{command}")])
        .current_dir(folder)
        .env("PATH", path)
        .env("LC_ALL", "C.UTF-8")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    (output.status.success(), text.lines().map(|line| line.trim_end().to_string()).collect())
}

/// Whether lines are as documented. Blank lines at the end do not count.
fn matches(expected: &[String], printed: &[String]) -> bool {
    match expected.split_first() {
        None => printed.iter().all(String::is_empty),
        Some((first, rest)) if first == "..." => (0..=printed.len()).any(|skipped| matches(rest, &printed[skipped..])),
        Some((first, rest)) => match printed.split_first() {
            Some((line, more)) => line_matches(first, line) && matches(rest, more),
            None => expected.iter().all(String::is_empty),
        },
    }
}

/// Whether a line is as documented, with `[..]` for anything.
fn line_matches(expected: &str, line: &str) -> bool {
    match expected.split_once("[..]") {
        None => expected == line,
        Some((before, rest)) => line.strip_prefix(before).is_some_and(|line| {
            let ends = line.char_indices().map(|(at, _)| at).chain([line.len()]);
            ends.into_iter().any(|at| line_matches(rest, &line[at..]))
        }),
    }
}

fn a_documented_difference_is_seen() {
    let lines = |text: &str| text.lines().map(String::from).collect::<Vec<_>>();
    let same = |expected: &str, printed: &str| matches(&lines(expected), &lines(printed));
    assert!(same("a\nb\n\n", "a\nb"));
    assert!(same("a [..] c [..]", "a b c d"));
    assert!(same("a\n...\nd", "a\nb\nc\nd"));
    assert!(same("...\nd", "d"));
    assert!(!same("a", "b"));
    assert!(!same("a\nb", "a"));
    assert!(!same("a", "a\nb"));
    assert!(!same("a [..] c", "a b"));
    assert!(!same("a\n...\nd", "a\nb"));
}

fn an_updated_page_keeps_its_blanks() {
    let lines = |text: &str| text.lines().map(String::from).collect::<Vec<_>>();
    let same = |expected: &str, printed: &str, new: &str| {
        assert_eq!(updated(&lines(expected), &lines(printed)), lines(new));
    };
    same("a 1\nin [..] s", "a 2\nin 7 s\nb", "a 2\nin [..] s\nb");
    same("a\n...\nz 1", "b\nc\nd\nz 2", "b\n...\nz 2");
    same("a\n...\nz", "z", "z");
    let page = rewritten("x\n$ a\nold\n\n$ b\nold\ny\n", &[(3, 1, lines("new\nnew")), (6, 1, lines("other"))]);
    assert_eq!(page, "x\n$ a\nnew\nnew\n\n$ b\nother\ny\n");
}

fn blocks_are_read_as_described() {
    let text = "```console\n$ a \\\n> b\nout\n$ c\n```\n```console no-test\n$ d\n```\n```sh\n$ e\n```\n";
    let example = |line: usize, command: &str, expected: &[&str]| Example {
        line,
        command: command.to_string(),
        expected: expected.iter().map(|s| s.to_string()).collect(),
    };
    assert_eq!(examples(text), [example(2, "a \\\nb", &["out"]), example(5, "c", &[])]);
}
