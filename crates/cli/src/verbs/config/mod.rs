//! `evenhand config`: configurations of the services, checked before they are used.

pub(super) mod service_options;

use std::path::Path;

use evenhand_agent::{CONFIGURATION_SCHEMA, ChangedDefault, Configuration, Law};
use evenhand_policies::Registry;
use serde_json::{Value, json};

use super::agent::read_configuration;
use crate::arguments::{ConfigCheckArgs, ConfigVerb};
use crate::failure::Failure;
use crate::output::console::Console;

pub(crate) fn run(verb: &ConfigVerb, registry: &Registry, console: &Console) -> Result<(), Failure> {
    match verb {
        ConfigVerb::Check(args) => check(args, registry, console),
        ConfigVerb::Schema => console.document(CONFIGURATION_SCHEMA.trim_end()),
    }
}

/// Reads every file as its service does, up to the first invalid one.
fn check(args: &ConfigCheckArgs, registry: &Registry, console: &Console) -> Result<(), Failure> {
    if args.changes && console.is_json() {
        let problem =
            "--changes: adds lines to the text, and the JSON has all changes; leave it out with --format json";
        return Err(Failure::Input(problem.into()));
    }
    let mut records = Vec::new();
    let mut lines = Vec::new();
    for file in &args.files {
        let (record, text) = match file.extension().is_some_and(|extension| extension == "env") {
            true => check_options(file, registry)?,
            false => check_agent(file, args.changes)?,
        };
        records.push(record);
        lines.extend(text);
    }
    if console.is_json() { console.json(&records) } else { console.document(&lines.join("\n")) }
}

fn check_options(file: &Path, registry: &Registry) -> Result<(Value, Vec<String>), Failure> {
    let services = service_options::check(file, registry)?;
    let commands: Vec<&str> = services.iter().map(|service| service.command.as_str()).collect();
    let settings = if commands.is_empty() { "no options".to_owned() } else { commands.join(", ") };
    let record = json!({ "file": file.display().to_string(), "valid": true, "settings": settings });
    Ok((record, vec![format!("{}: valid; {settings}", file.display())]))
}

/// Reads a configuration of the agent. `changes`: whether the lines have the defaults that have changed.
fn check_agent(file: &Path, changes: bool) -> Result<(Value, Vec<String>), Failure> {
    let (configuration, sources) = read_configuration(file)?;
    // A dry run takes it nevertheless.
    let distrust = sources.check_trusted().err().map(|error| error.to_string());
    let added: Vec<String> = sources.files().iter().skip(1).map(|file| file.display().to_string()).collect();
    let changed = configuration.changed_defaults(&sources).map_err(Failure::document)?;
    let settings = summary(&configuration);
    let mut lines = vec![format!("{}: valid; {settings}", file.display())];
    lines.extend(added.iter().chain(sources.variables()).map(|source| format!("  changed by {source}")));
    lines.extend(distrust.iter().map(|why| format!("  agent run --apply refuses it: {why}")));
    if changes {
        lines.extend(changed.iter().map(changed_default));
        if changed.is_empty() {
            lines.push("  no default that it relies on was another one in earlier versions".to_owned());
        }
    }
    let changed: Vec<Value> = changed
        .iter()
        .map(|it| {
            json!({
                "file": it.file, "line": it.line, "column": it.column, "key": format!("{}.{}", it.section, it.key),
                "since": it.since, "before": it.before, "now": it.now, "keeps": it.keeps,
            })
        })
        .collect();
    let record = json!({
        "file": file.display().to_string(), "valid": true, "settings": settings, "refused_with_apply": distrust,
        "drop_ins": added, "variables": sources.variables(), "changed_defaults": changed,
    });
    Ok((record, lines))
}

/// Says what another default means for those who upgrade.
fn changed_default(it: &ChangedDefault) -> String {
    let ChangedDefault { file, line, column, section, key, since, before, now, keeps } = it;
    format!(
        "  {file}:{line}:{column}: [{section}] has no {key}. Its default since {since}: {now}; before: {before}. To keep that: \
         {key} = {keeps}"
    )
}

/// Names what distinguishes one configuration from another.
fn summary(configuration: &Configuration) -> String {
    let law = match configuration.control.law {
        Law::Integral(_) => "integral",
        Law::Linear => "linear",
    };
    let peers = match &configuration.peers {
        None => "alone".to_owned(),
        Some(peers) if peers.ring => format!("peers by ring at {}", peers.listen),
        Some(peers) => format!("peers by gossip at {}", peers.listen),
    };
    let resources: Vec<&str> = configuration.control.controls.iter().map(|resource| resource.name()).collect();
    format!(
        "metric {}, law {law}, every {} s, sets {}, {peers}",
        configuration.heaviness.name,
        configuration.control.interval.as_secs_f64(),
        resources.join(", ")
    )
}
