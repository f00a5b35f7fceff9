//! `evenhand policies`: the available policies and their settings.

use evenhand_policies::{Registration, Registry, SITE_RULE};
use evenhand_study::LOGGED;
use serde::Serialize;

use crate::arguments::PoliciesArgs;
use crate::arguments::policy_settings::policies_of;
use crate::failure::Failure;
use crate::output::console::Console;
use crate::output::fold_lines::{COLUMNS, fold_lines};

/// What a study takes for a policy without its being one of the registry.
const OF_STUDIES: [(&str, &str); 2] = [
    (LOGGED, "as a policy of study, what happened by the log's own starts"),
    (
        SITE_RULE.name,
        "as a policy of study with --site or --slurm-conf, the rule of the site's own Slurm, as its slurm.conf has it",
    ),
];

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
            let lines = format!("# {} = …\n#     {}\n#     {}; default: {}", s.key, s.help, s.value, s.default);
            fold_lines(&lines, COLUMNS, "#     ") + "\n"
        };
        let settings: String = self.settings.iter().map(setting).collect();
        let settings = if settings.is_empty() { "# no settings\n".to_string() } else { settings };
        let decay = if self.needs_decay { "; forgets by --half-life or --delta" } else { "" };
        let summary = fold_lines(&format!("# {}{decay}", self.summary), COLUMNS, "# ");
        format!("{summary}\n[{}]\n{settings}", self.name)
    }
}

pub(crate) fn run(args: &PoliciesArgs, registry: &Registry, console: &Console) -> Result<(), Failure> {
    let chosen = match args.names.as_slice() {
        [] => registry.policies().to_vec(),
        names => {
            if let Some((name, what)) = OF_STUDIES.iter().find(|(name, _)| names.iter().any(|given| given == name)) {
                return Err(Failure::Input(format!("NAME: {name:?} has no section of settings: {what}")));
            }
            policies_of("NAME", registry, names, &[])?
        }
    };
    let records: Vec<PolicyRecord> = chosen.iter().map(PolicyRecord::new).collect();
    if console.is_json() {
        return console.json(&records);
    }
    if !args.names.is_empty() {
        let sections: Vec<String> = records.iter().map(PolicyRecord::section).collect();
        return console.document(sections.join("\n").trim_end());
    }
    console.result(&listing(&records))
}

/// Returns a line for each policy, and one for the names of its settings, folded at the width of tables.
fn listing(records: &[PolicyRecord]) -> String {
    let width = records.iter().map(|record| record.name.len()).max().unwrap_or(0);
    let indent = " ".repeat(width + 2);
    let mut lines = Vec::new();
    for record in records {
        lines.push(fold_lines(&format!("{:<width$}  {}", record.name, record.summary), COLUMNS, &indent));
        let mut keys: Vec<&str> = record.settings.iter().map(|s| s.key.split('.').next().unwrap_or(s.key)).collect();
        keys.dedup();
        if !keys.is_empty() {
            let keys = format!("{indent}settings: {}", keys.join(", "));
            lines.push(fold_lines(&keys, COLUMNS, &format!("{indent}          ")));
        }
    }
    for (name, what) in OF_STUDIES {
        lines.push(fold_lines(&format!("{name:<width$}  {what}"), COLUMNS, &indent));
    }
    lines.join("\n")
}
