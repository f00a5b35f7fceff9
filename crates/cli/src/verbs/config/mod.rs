//! `evenhand config`: configurations of the services, checked before they are used.

mod agent_variables;
pub(super) mod service_options;

use std::path::Path;

use evenhand_agent::{CONFIGURATION_SCHEMA, ChangedDefault, Configuration, Law, check_named_files};
use evenhand_policies::Registry;
use serde_json::{Value, json};

use super::agent::{assemble_failure, misspelt_variables, read_configuration};
use crate::arguments::{ConfigCheckArgs, ConfigVerb};
use crate::failure::Failure;
use crate::output::console::Console;

pub(crate) fn run(verb: &ConfigVerb, registry: &Registry, console: &Console) -> Result<(), Failure> {
    match verb {
        ConfigVerb::Check(args) => check(args, registry, console),
        ConfigVerb::Schema => console.document(CONFIGURATION_SCHEMA.trim_end()),
    }
}

/// Reads every file as its service does, and reports all that are invalid; the last error is the verb's own.
fn check(args: &ConfigCheckArgs, registry: &Registry, console: &Console) -> Result<(), Failure> {
    if args.changes && console.is_json() {
        let problem =
            "--changes: adds lines to the text, and the JSON has all changes; leave it out with --format json";
        return Err(Failure::Input(problem.into()));
    }
    let mut records = Vec::new();
    let mut lines = Vec::new();
    let mut failures = Vec::new();
    for file in &args.files {
        let checked = match file.extension().is_some_and(|extension| extension == "env") {
            true => check_options(file, registry),
            false => check_agent(file, args.changes),
        };
        match checked {
            Ok((record, text)) => {
                records.push(record);
                lines.extend(text);
            }
            Err(failure) => {
                let (file, error) = (file.display().to_string(), failure.plain_text());
                records.push(json!({ "file": file, "valid": false, "error": error }));
                failures.push(failure);
            }
        }
    }
    match console.is_json() {
        true => console.json(&records)?,
        false if lines.is_empty() => {}
        false => console.document(&lines.join("\n"))?,
    }
    // An invalid file determines the exit status, rather than one that cannot be read.
    failures.sort_by_key(|failure| failure.status() == 2);
    let Some(last) = failures.pop() else { return Ok(()) };
    failures.iter().for_each(|failure| console.failure(failure));
    Err(last)
}

fn check_options(file: &Path, registry: &Registry) -> Result<(Value, Vec<String>), Failure> {
    let services = service_options::check(file, registry)?;
    let settings = if services.is_empty() { "no options".to_owned() } else { services.join(", ") };
    let record = json!({ "file": file.display().to_string(), "valid": true, "settings": settings });
    Ok((record, vec![format!("{}: valid; {settings}", file.display())]))
}

/// Reads a configuration of the agent. `changes`: whether the lines have the defaults that have changed.
fn check_agent(file: &Path, changes: bool) -> Result<(Value, Vec<String>), Failure> {
    if !file.exists() {
        return Err(Failure::Input(format!("{}: there is no such file; check the path", file.display())));
    }
    let (mut configuration, sources) = read_configuration(file)?;
    let has_all = check_named_files(&mut configuration).map_err(assemble_failure)?;
    // A dry run takes it nevertheless.
    let trusted = sources.check_trusted().and_then(|()| configuration.check_trusted_files());
    let distrust = trusted.err().map(|error| error.to_string());
    // Only on the node itself is it an error.
    let missing_under = configuration.missing_under.as_ref().map(|error| error.to_string());
    let added: Vec<String> = sources.files().iter().skip(1).map(|file| file.display().to_string()).collect();
    let changed = configuration.changed_defaults(&sources).map_err(Failure::document)?;
    let settings = summary(&configuration);
    let mut lines = vec![format!("{}: valid; {settings}", file.display())];
    lines.extend(added.iter().chain(sources.variables()).map(|source| format!("  changed by {source}")));
    lines.extend(misspelt_variables(&sources).iter().map(|sentence| format!("  warning: the agent {sentence}")));
    if !has_all {
        lines.push(
            "  the key and certificates are not checked: systemd loads them when the agent's unit starts".to_owned(),
        );
    }
    let first_line = |text: &String| text.lines().next().unwrap_or_default().to_owned();
    lines
        .extend(missing_under.iter().map(|why| format!("  agent run refuses it on this machine: {}", first_line(why))));
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
    let misspelt: Vec<Value> =
        sources.misspelt().iter().map(|(name, likely)| json!({ "name": name, "likely": likely })).collect();
    let record = json!({
        "file": file.display().to_string(), "valid": true, "settings": settings, "refused_with_apply": distrust,
        "refused_here": missing_under.as_ref().map(first_line),
        "drop_ins": added, "variables": sources.variables(), "misspelt_variables": misspelt,
        "changed_defaults": changed,
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
