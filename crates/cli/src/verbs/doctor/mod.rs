//! `evenhand doctor`: examines the whole installation, and changes nothing.

mod answers;
mod files;
mod units;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use evenhand_child_process::{Limits, RunError, run as run_command};
use evenhand_policies::Registry;

use crate::arguments::InstallationArgs;
use crate::failure::{Failure, Outcome};
use crate::output::console::Console;
use crate::output::fold_lines::{COLUMNS, fold_lines, table_width};
use crate::output::table::Table;

/// How long a program of the system may take to answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// What was found about one part of the installation.
#[derive(Clone, Debug, PartialEq)]
struct Finding {
    subject: String,
    state: State,
    found: String,
    /// What an operator does about it.
    remedy: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// As it should be.
    Fine,
    /// Worth knowing.
    Note,
    /// To be repaired.
    Problem,
}

impl State {
    /// The word in tables and JSON.
    fn word(self) -> &'static str {
        match self {
            State::Fine => "ok",
            State::Note => "note",
            State::Problem => "problem",
        }
    }
}

impl Finding {
    fn fine(subject: impl Into<String>, found: impl Into<String>) -> Finding {
        Finding { subject: subject.into(), state: State::Fine, found: found.into(), remedy: None }
    }

    fn note(subject: impl Into<String>, found: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { state: State::Note, remedy: Some(remedy.into()), ..Finding::fine(subject, found) }
    }

    fn problem(subject: impl Into<String>, found: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { state: State::Problem, remedy: Some(remedy.into()), ..Finding::fine(subject, found) }
    }
}

/// Prints the findings. The outcome is negative if there is a problem.
pub(super) fn run(args: &InstallationArgs, registry: &Registry, console: &Console) -> Result<Outcome, Failure> {
    let root = args.root.clone().unwrap_or_else(|| PathBuf::from("/"));
    if !root.is_dir() {
        return Err(Failure::Input(format!("--root: {} is no folder", root.display())));
    }
    let mut findings = vec![Finding::fine("program", concat!("evenhand ", env!("CARGO_PKG_VERSION")))];
    let configuration = files::read_configuration(&root, &mut findings);
    findings.extend(files::options_and_rights(&root, registry));
    if args.root.is_none() {
        findings.extend(other_programs());
        findings.extend(units::check());
        findings.push(answers::clock(configuration.as_ref().is_some_and(|it| it.peers.is_some())));
        findings.extend(answers::slurm(units::need_slurm(&findings)));
        findings.extend(configuration.as_ref().and_then(answers::agent));
    }
    let problems = findings.iter().filter(|finding| finding.state == State::Problem).count();
    if console.is_json() {
        console.json(&record(&findings, problems))?;
    } else {
        console.result(&text(&findings))?;
    }
    Ok(if problems == 0 { Outcome::Done } else { Outcome::DoesNotHold })
}

/// Compares the program with others of its name, which a service or an operator may start instead.
fn other_programs() -> Vec<Finding> {
    let own = std::env::current_exe().ok().and_then(|path| path.canonicalize().ok());
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain(["/usr/bin".into(), "/usr/local/bin".into()]);
    let found: BTreeSet<PathBuf> =
        places.filter_map(|folder| folder.join("evenhand").canonicalize().ok()).filter(|path| path.is_file()).collect();
    let others = found.into_iter().filter(|path| Some(path) != own.as_ref());
    others.filter_map(|path| other_program(&path)).collect()
}

/// Returns a finding unless the program has this one's version.
fn other_program(path: &Path) -> Option<Finding> {
    let this = concat!("evenhand ", env!("CARGO_PKG_VERSION"));
    let version = answer(path, &["--version"]).unwrap_or_else(|error| error);
    let found = format!("{} is {version}, and this is {this}", path.display());
    (version != this).then(|| Finding::problem("program", found, format!("remove or upgrade {}", path.display())))
}

/// Returns what a program prints, without the white space around it, or why it has no answer.
fn answer(program: impl AsRef<Path>, arguments: &[&str]) -> Result<String, String> {
    let (program, limits) = (program.as_ref(), Limits { time: ANSWER_LIMIT, output: 1 << 20, ..Limits::default() });
    let name = program.display();
    let finished = match run_command(Command::new(program).args(arguments), None, &limits) {
        Ok(finished) => finished,
        Err(RunError::Start(error)) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(format!("there is no {name}"));
        }
        Err(error) => return Err(format!("{name}: {error}")),
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if finished.status.success() {
        return Ok(text(&finished.stdout));
    }
    let error = text(&finished.stderr);
    let line = error.lines().next().map_or_else(|| finished.status.to_string(), str::to_owned);
    // Many programs begin with their own name.
    Err(if line.starts_with(&format!("{name}: ")) { line } else { format!("{name}: {line}") })
}

fn text(findings: &[Finding]) -> String {
    let mut table = Table::new(3, ["part", "state", "found"]);
    for finding in findings {
        table.row(vec![finding.subject.clone(), finding.state.word().into(), finding.found.clone()]);
    }
    let mut text = table.render_folded(table_width());
    let remedies = findings.iter().filter_map(|finding| Some((&finding.subject, finding.remedy.as_ref()?)));
    for (subject, remedy) in remedies {
        text.push('\n');
        text.push_str(&fold_lines(&format!("{subject}: {remedy}."), COLUMNS, "  "));
    }
    text
}

fn record(findings: &[Finding], problems: usize) -> serde_json::Value {
    let rows = findings.iter().map(|finding| {
        serde_json::json!({
            "part": finding.subject, "state": finding.state.word(), "found": finding.found, "remedy": finding.remedy,
        })
    });
    serde_json::json!({
        "version": env!("CARGO_PKG_VERSION"), "problems": problems, "findings": rows.collect::<Vec<_>>(),
    })
}
