//! `evenhand reproduce`

use std::path::Path;
use std::{fs, io};

use evenhand_reproduce::{
    EXPERIMENTS, Experiment, ExperimentResult, PAPERS, Recordings, Settings, Verdict, experiments_named, write_results,
};
use serde::Serialize;

use crate::arguments::{Common, ReproduceArgs};
use crate::failure::{Failure, Outcome};
use crate::inputs::workloads::read_workload;
use crate::output::console::Console;
use crate::output::fold_lines::{COLUMNS, fold_lines};
use crate::output::table::Table;
use crate::output::write_files::lock_folder;

pub(crate) fn run(args: &ReproduceArgs, common: &Common, console: &Console) -> Result<Outcome, Failure> {
    if args.what == "list" {
        return list(console).map(|()| Outcome::Done);
    }
    let experiments = experiments_named(&args.what);
    if experiments.is_empty() {
        let known: Vec<String> = EXPERIMENTS.iter().map(|e| e.name()).collect();
        return Err(Failure::Input(format!(
            "found {:?}, expected list, a paper or one of: {}",
            args.what,
            known.join(", ")
        )));
    }
    let settings = Settings::new(common.seed()).tasks(args.tasks);
    let settings = match &args.data {
        None => settings,
        Some(folder) if experiments.iter().all(|e| e.paper == "poullie") => settings.recordings(recordings(folder)?),
        Some(path) => settings.trace(Some(read_workload(path, &args.trace, common, console)?)),
    };
    let mut results: Vec<ExperimentResult> = Vec::new();
    for experiment in experiments {
        let outcome = experiment
            .run(&settings)
            .map_err(|e| Failure::new(format!("{}: {e}", name(experiment, &args.what)), e.is_environment()))?;
        results.push((experiment, outcome));
    }
    let _lock = args.out.as_deref().map(lock_folder).transpose()?;
    let page = args.out.as_ref().map(|folder| write_results(folder, &results)).transpose();
    let page = page.map_err(|e| Failure::new(&e, e.is_environment()))?;
    if console.is_json() {
        let records: Vec<ExperimentRecord> =
            results.iter().map(|result| ExperimentRecord::new(result, &args.what)).collect();
        console.json(&records)?;
    } else {
        let lines = results.iter().flat_map(|result| lines(result, &args.what));
        // The lines that follow are distinct from those that begin with an experiment.
        let folded: Vec<String> = lines.map(|line| fold_lines(&line, COLUMNS, "    ")).collect();
        console.result(&folded.join("\n"))?;
    }
    if let Some(page) = page {
        console.note(&format!("Figures: {}", page.display()));
    }
    let all_hold = results.iter().all(|(_, outcome)| outcome.verdicts.iter().all(|verdict| verdict.holds));
    Ok(if all_hold { Outcome::Done } else { Outcome::DoesNotHold })
}

/// Reads the recordings that tests/agent/guests.sh makes: a file of comma-separated values for each node and run.
fn recordings(folder: &Path) -> Result<Recordings, Failure> {
    let failed = |path: &Path, e: io::Error| {
        let environment = e.kind() != io::ErrorKind::NotFound && e.kind() != io::ErrorKind::NotADirectory;
        Failure::new(format!("{}: {e}", path.display()), environment)
    };
    let mut texts = Vec::new();
    for entry in fs::read_dir(folder).map_err(|e| failed(folder, e))? {
        let path = entry.map_err(|e| failed(folder, e))?.path();
        if path.extension().is_some_and(|e| e == "csv") {
            let text = fs::read_to_string(&path).map_err(|e| failed(&path, e))?;
            texts.push((path.file_stem().unwrap_or_default().to_string_lossy().into_owned(), text));
        }
    }
    let texts = texts.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    Recordings::read(texts).map_err(|e| Failure::Input(format!("{}: {e}", folder.display())))
}

fn list(console: &Console) -> Result<(), Failure> {
    if console.is_json() {
        let entries: Vec<serde_json::Value> = EXPERIMENTS
            .iter()
            .map(|e| serde_json::json!({"name": e.name(), "title": e.title, "setting": e.setting}))
            .collect();
        return console.json(&entries);
    }
    let mut table = Table::new(2, ["experiment", "what"]);
    for experiment in EXPERIMENTS {
        table.row(vec![experiment.name(), experiment.title.to_string()]);
    }
    // A title that is too long continues on the next line, in its column.
    let text = table.render();
    let indent = EXPERIMENTS.iter().map(|experiment| experiment.name().chars().count()).max().unwrap_or(0) + 2;
    let folded = text.lines().map(|line| match line.starts_with("---") {
        true => "-".repeat(line.len().min(COLUMNS)),
        false => fold_lines(line, COLUMNS, &" ".repeat(indent)),
    });
    console.result(&folded.collect::<Vec<_>>().join("\n"))
}

/// Returns the experiment's name, with the paper as the user typed it: by id (`sadok`) or by number (`001`).
fn name(experiment: &Experiment, typed: &str) -> String {
    let paper = typed.split('/').next().unwrap_or_default();
    match PAPERS.iter().find(|(_, number, _)| *number == paper) {
        Some((_, number, _)) => format!("{number}/{}", experiment.figure),
        None => experiment.name(),
    }
}

/// Returns a line for each verdict and note, each after the experiment's name.
fn lines((experiment, outcome): &ExperimentResult, typed: &str) -> Vec<String> {
    let name = name(experiment, typed);
    let verdict = |verdict: &Verdict| {
        let word = if verdict.holds { "holds         " } else { "does not hold " };
        format!("{name}  {word} {}: {}", verdict.statement, verdict.measured)
    };
    let note = |note: &String| format!("{name}  note           {note}");
    outcome.verdicts.iter().map(verdict).chain(outcome.notes.iter().map(note)).collect()
}

#[derive(Debug, Serialize)]
struct ExperimentRecord<'a> {
    name: String,
    title: &'static str,
    setting: &'static str,
    verdicts: Vec<VerdictRecord<'a>>,
    notes: &'a [String],
    figures: Vec<&'a str>,
}

#[derive(Debug, Serialize)]
struct VerdictRecord<'a> {
    statement: &'a str,
    measured: &'a str,
    holds: bool,
}

impl<'a> ExperimentRecord<'a> {
    fn new((experiment, outcome): &'a ExperimentResult, typed: &str) -> ExperimentRecord<'a> {
        let verdict = |v: &'a Verdict| VerdictRecord { statement: &v.statement, measured: &v.measured, holds: v.holds };
        ExperimentRecord {
            name: name(experiment, typed),
            title: experiment.title,
            setting: experiment.setting,
            verdicts: outcome.verdicts.iter().map(verdict).collect(),
            notes: &outcome.notes,
            figures: outcome.figures.iter().map(|figure| figure.figure.name()).collect(),
        }
    }
}
