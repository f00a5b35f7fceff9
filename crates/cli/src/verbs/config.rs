//! `evenhand config`: the agent's configuration, checked before it is used.

use evenhand_agent::{CONFIGURATION_SCHEMA, Configuration, Law};

use super::agent::read_configuration;
use crate::arguments::{ConfigCheckArgs, ConfigVerb};
use crate::failure::Failure;
use crate::output::console::Console;

pub(crate) fn run(verb: &ConfigVerb, console: &Console) -> Result<(), Failure> {
    match verb {
        ConfigVerb::Check(args) => check(args, console),
        ConfigVerb::Schema => console.document(CONFIGURATION_SCHEMA.trim_end()),
    }
}

/// Reads every file as `agent run` does, up to the first invalid one.
fn check(args: &ConfigCheckArgs, console: &Console) -> Result<(), Failure> {
    let mut records = Vec::new();
    let mut lines = Vec::new();
    for file in &args.files {
        let (configuration, sources) = read_configuration(file)?;
        // A dry run takes it nevertheless.
        let distrust = sources.check_trusted().err().map(|error| error.to_string());
        let added: Vec<String> = sources.files().iter().skip(1).map(|file| file.display().to_string()).collect();
        let settings = summary(&configuration);
        lines.push(format!("{}: valid; {settings}", file.display()));
        lines.extend(added.iter().chain(sources.variables()).map(|source| format!("  changed by {source}")));
        lines.extend(distrust.iter().map(|why| format!("  agent run --apply refuses it: {why}")));
        records.push(serde_json::json!({
            "file": file.display().to_string(), "valid": true, "settings": settings, "refused_with_apply": distrust,
            "drop_ins": added, "variables": sources.variables(),
        }));
    }
    if console.is_json() { console.json(&records) } else { console.document(&lines.join("\n")) }
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
