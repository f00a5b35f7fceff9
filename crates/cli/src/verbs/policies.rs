//! `evenhand policies`: the available policies and their settings.

use evenhand_policies::{Registration, Registry};
use serde::Serialize;

use crate::arguments::PoliciesArgs;
use crate::arguments::policy_settings::named_policies;
use crate::failure::Failure;
use crate::output::console::Console;
use crate::output::table::Table;

#[derive(Debug, Serialize)]
struct PolicyRecord {
    name: &'static str,
    summary: &'static str,
    needs_decay: bool,
    settings: Vec<SettingRecord>,
}

#[derive(Debug, Serialize)]
struct SettingRecord {
    key: &'static str,
    value: &'static str,
    default: &'static str,
    help: &'static str,
}

impl PolicyRecord {
    fn new(registration: &Registration) -> PolicyRecord {
        let setting = |key: &evenhand_policies::SettingKey| SettingRecord {
            key: key.name,
            value: key.kind,
            default: key.default,
            help: key.help,
        };
        PolicyRecord {
            name: registration.name,
            summary: registration.summary,
            needs_decay: registration.needs_decay,
            settings: registration.keys().iter().map(setting).collect(),
        }
    }

    /// Formats the policy's section as TOML: a comment for each key, with its default.
    fn section(&self) -> String {
        let setting = |s: &SettingRecord| {
            format!("# {} = …\n#     {}\n#     {}; default: {}\n", s.key, s.help, s.value, s.default)
        };
        let settings: String = self.settings.iter().map(setting).collect();
        let settings = if settings.is_empty() { "# no settings\n".to_string() } else { settings };
        let decay = if self.needs_decay { "; forgets by --half-life or --delta" } else { "" };
        format!("# {}{decay}\n[{}]\n{settings}", self.summary, self.name)
    }
}

pub(crate) fn run(args: &PoliciesArgs, registry: &Registry, console: &Console) -> Result<(), Failure> {
    let chosen = match args.names.as_slice() {
        [] => registry.policies().to_vec(),
        names => named_policies(registry, names)?,
    };
    let records: Vec<PolicyRecord> = chosen.iter().map(PolicyRecord::new).collect();
    if console.is_json() {
        return console.json(&records);
    }
    if !args.names.is_empty() {
        let sections: Vec<String> = records.iter().map(PolicyRecord::section).collect();
        return console.result(sections.join("\n").trim_end());
    }
    let mut table = Table::new(3, ["policy", "goes first", "settings"]);
    for record in &records {
        let mut keys: Vec<&str> = record.settings.iter().map(|s| s.key.split('.').next().unwrap_or(s.key)).collect();
        keys.dedup();
        table.row(vec![record.name.into(), record.summary.into(), keys.join(", ")]);
    }
    console.result(&table.render())
}
