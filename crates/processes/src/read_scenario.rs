//! Reads scenario files.
//!
//! ```toml
//! [parameters]              # all optional; here the defaults, the paper's
//! window = 3                # T, in seconds (or "3s")
//! threshold = 0.9           # busy for more than this part of T: a bottleneck
//! grace = 1
//! quantum = 0.1
//! recalculate = 0.1         # g; default: the quantum
//! reading = "per-resource"  # global, normalized
//! ties = "lag"              # fifo
//! scheduler = "bottleneck"  # round-robin, lottery, stride, least-use, dominant-share
//! seed = 1
//! horizon = 100             # default: none
//!
//! [[resource]]              # only where it differs from the defaults
//! name = "DISK"
//! servers = 2
//! preemptive = false        # default: whether the name ends in _CS
//! quantum = 0.1
//!
//! [[client]]
//! name = "red"              # default: the program file's name
//! entitlement = 34          # default: the program's priority
//! start = 0
//! program = "red.prog"      # a path from the scenario's folder, or the program itself in '''…'''
//! # or threads = ["a.prog", "b.prog"], which share the entitlement
//! asynchronous = { resources = ["DISK"], depth = 2 }
//! suspend = [{ from = 5, until = 7 }]
//! ```

use std::path::{Path, PathBuf};

use evenhand_documents::{Document, DocumentError, Node, Source, Table, did_you_mean};
use evenhand_model::{Quantity, Span, Time};

use crate::parse_program::LONGEST;
use crate::program::Program;
use crate::scenario::{Asynchronous, Client, Parameters, Reading, ResourceSettings, Scenario, TieBreak};

/// Reads programs as clients that start at 0, named after their files. Files of the same name are distinguished by a
/// number.
///
/// # Errors
/// Returns an error if a file cannot be read or is not a program.
pub fn read_programs(paths: &[PathBuf]) -> Result<Vec<Client>, DocumentError> {
    let mut clients: Vec<Client> = Vec::new();
    for path in paths {
        let program = Program::read(path)?;
        let stem = path.file_stem().map_or_else(|| "process".into(), |s| s.to_string_lossy().into_owned());
        let mut name = stem.clone();
        let mut number = 2;
        while clients.iter().any(|c| c.name == name) {
            name = format!("{stem}-{number}");
            number += 1;
        }
        clients.push(Client::new(name, program));
    }
    Ok(clients)
}

/// Reads a scenario; paths of programs are relative to `folder`.
///
/// # Errors
/// Returns an error if a field is unknown or has an invalid value, or if a program cannot be read.
pub fn read_scenario(document: &Document, folder: &Path) -> Result<Scenario, DocumentError> {
    let root = document.root()?;
    root.deny_unknown(&["parameters", "resource", "client"])?;
    let parameters = match root.get("parameters") {
        Some(node) => parameters(&node.table()?)?,
        None => Parameters::default(),
    };
    let mut resources = Vec::new();
    if let Some(list) = root.get("resource") {
        for node in list.list()? {
            resources.push(resource(&node.table()?, &parameters)?);
        }
    }
    let expected = "at least one [[client]]";
    let mut clients = Vec::new();
    for node in root.required("client", expected)?.list()? {
        clients.push(client(&node.table()?, folder, document.source().name())?);
    }
    Scenario::new(clients, resources, parameters).map_err(|problem| root.error(problem.to_string()))
}

fn parameters(table: &Table<'_>) -> Result<Parameters, DocumentError> {
    table.deny_unknown(&[
        "window",
        "threshold",
        "grace",
        "quantum",
        "recalculate",
        "reading",
        "ties",
        "scheduler",
        "seed",
        "horizon",
    ])?;
    let defaults = Parameters::default();
    let or = |key: &str, default: Span| table.get(key).map_or(Ok(default), |node| seconds(&node));
    let recalculation = table.get("recalculate").map(|node| seconds(&node)).transpose()?;
    let horizon = table.get("horizon").map(|node| time(&node)).transpose()?;
    Ok(Parameters {
        window: or("window", defaults.window)?,
        threshold: table
            .get("threshold")
            .map_or(Ok(defaults.threshold), |n| n.quantity().map(|q| q.exact().clone()))?,
        grace: or("grace", defaults.grace)?,
        quantum: or("quantum", defaults.quantum)?,
        recalculation,
        reading: choice(table, "reading", &Reading::ALL.map(|r| (r.name(), r)), defaults.reading)?,
        ties: choice(table, "ties", &TieBreak::ALL.map(|t| (t.name(), t)), defaults.ties)?,
        scheduler: table.get("scheduler").map_or(Ok(defaults.scheduler), |n| n.text().map(String::from))?,
        seed: table.get("seed").map_or(Ok(defaults.seed), |node| whole(&node, u64::MAX))?,
        horizon,
    })
}

fn resource(table: &Table<'_>, parameters: &Parameters) -> Result<ResourceSettings, DocumentError> {
    table.deny_unknown(&["name", "preemptive", "quantum", "servers"])?;
    let name = table.required("name", "the name that programs use")?;
    let mut settings = ResourceSettings::named(name.text()?, parameters);
    if let Some(node) = table.get("preemptive") {
        settings.preemptive = node.flag()?;
    }
    if let Some(node) = table.get("quantum") {
        settings.quantum = seconds(&node)?;
    }
    if let Some(node) = table.get("servers") {
        settings.servers = whole(&node, u64::from(u32::MAX))? as u32;
    }
    Ok(settings)
}

fn client(table: &Table<'_>, folder: &Path, document: &str) -> Result<Client, DocumentError> {
    table.deny_unknown(&["name", "entitlement", "start", "program", "threads", "asynchronous", "suspend"])?;
    let mut programs = Vec::new();
    let node = match (table.get("program"), table.get("threads")) {
        (Some(node), None) => {
            programs.push(program(&node, folder, document)?);
            node
        }
        (None, Some(list)) => {
            for node in list.list()? {
                programs.push(program(&node, folder, document)?);
            }
            list
        }
        (Some(one), Some(more)) => {
            return Err(one.error_against("found both program and threads, expected one of them", &more, "and here"));
        }
        (None, None) => return Err(table.error("found no program, expected program = \"FILE.prog\" or threads = […]")),
    };
    let name = match (table.get("name"), node.is_text().then(|| node.text()).transpose()?) {
        (Some(name), _) => name.text()?.to_string(),
        (None, Some(path)) if !is_inline(path) => {
            Path::new(path).file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default()
        }
        _ => return Err(table.error("found no name, expected name = \"…\"")),
    };
    let Some(first) = programs.first().cloned() else {
        return Err(node.error("found no program, expected at least one"));
    };
    let mut client = Client { threads: programs, ..Client::new(name, first) };
    if let Some(node) = table.get("entitlement") {
        client.entitlement = node.positive()?;
    }
    if let Some(node) = table.get("start") {
        client.start = time(&node)?;
    }
    if let Some(node) = table.get("asynchronous") {
        let table = node.table()?;
        table.deny_unknown(&["resources", "depth"])?;
        let list = table.required("resources", "a list of resources")?.list()?;
        let resources = list.map(|node| node.text().map(String::from)).collect::<Result<_, _>>()?;
        let depth = table.get("depth").map_or(Ok(1), |node| whole(&node, u64::from(u32::MAX)))? as u32;
        client.asynchronous = Some(Asynchronous { resources, depth });
    }
    if let Some(list) = table.get("suspend") {
        for node in list.list()? {
            let table = node.table()?;
            table.deny_unknown(&["from", "until"])?;
            let at = |key| table.required(key, "a time in seconds").and_then(|node| time(&node));
            client.suspensions.push((at("from")?, at("until")?));
        }
    }
    Ok(client)
}

/// Returns whether a text is a program itself, which has several lines, rather than a path.
fn is_inline(text: &str) -> bool {
    text.contains('\n')
}

fn program(node: &Node<'_>, folder: &Path, document: &str) -> Result<Program, DocumentError> {
    let text = node.text()?;
    if is_inline(text) {
        // Positions in errors are those of the program's own lines.
        return Program::of(&Source::new(format!("{document}, {} of a client", node.label()), text));
    }
    Program::read(&folder.join(text))
}

/// Reads a number of seconds, or a duration with a unit.
fn seconds(node: &Node<'_>) -> Result<Span, DocumentError> {
    let written = node.written()?;
    if let Ok(span) = Span::parse(written) {
        return Ok(span);
    }
    let nanos = Quantity::parse(written).ok().and_then(|q| q.nano()).filter(|n| *n <= LONGEST);
    nanos.and_then(Span::checked_from_nanos).ok_or_else(|| {
        node.error(format!(
            "found {written:?}, expected seconds with at maximum nine decimals (0.1) or a duration (\"90s\", \"1.5h\")"
        ))
    })
}

fn time(node: &Node<'_>) -> Result<Time, DocumentError> {
    seconds(node).map(|span| Time::ZERO + span)
}

fn whole(node: &Node<'_>, maximum: u64) -> Result<u64, DocumentError> {
    let written = node.written()?;
    let number = written.parse().ok().filter(|n| *n <= maximum);
    number.ok_or_else(|| node.error(format!("found {written:?}, expected a whole number from 0 to {maximum}")))
}

fn choice<T: Copy>(table: &Table<'_>, key: &str, all: &[(&str, T)], default: T) -> Result<T, DocumentError> {
    let Some(node) = table.get(key) else { return Ok(default) };
    let text = node.text()?;
    let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
    all.iter().find(|(name, _)| *name == text).map(|(_, value)| *value).ok_or_else(|| {
        let near = did_you_mean(text, names.iter().copied());
        node.error(format!("found {text:?}, expected one of: {}{near}", names.join(", ")))
    })
}
