//! `evenhand agent doctor`

use evenhand_agent::left_over;
use evenhand_enforcers::cgroups::{ProbeReport, SystemRoot};

use super::{kernel_failure, read_configuration};
use crate::arguments::DoctorArgs;
use crate::failure::{Failure, Outcome};
use crate::output::console::Console;
use crate::output::fold_lines::{COLUMNS, fold_lines, table_width};
use crate::output::table::Table;

/// Prints the findings. The outcome is negative if no resource can be divided.
pub(super) fn run(args: &DoctorArgs, console: &Console) -> Result<Outcome, Failure> {
    let configuration =
        args.config.as_deref().map(read_configuration).transpose()?.map(|(configuration, _)| configuration);
    let mut findings =
        evenhand_agent::diagnose(configuration.as_ref(), &SystemRoot::default()).map_err(kernel_failure)?;
    let left = configuration.as_ref().and_then(|configuration| left_over(configuration, &findings.hierarchies));
    findings.observations.extend(left);
    if console.is_json() {
        console.json(&record(&findings))?;
    } else {
        console.result(&tables(&findings))?;
    }
    let any = findings.resources.iter().any(|row| row.supported);
    Ok(if any { Outcome::Done } else { Outcome::DoesNotHold })
}

/// Formats the findings for people.
pub(super) fn tables(findings: &ProbeReport) -> String {
    let mut table = Table::new(4, ["resource", "works", "by", "found"]);
    for row in &findings.resources {
        let works = if row.supported { "yes" } else { "no" };
        let by = if row.mechanism.is_empty() { "-" } else { &row.mechanism };
        table.row(vec![row.resource.to_string(), works.into(), by.into(), row.reason.clone()]);
    }
    let mut text = table.render_folded(table_width());
    let mut line = |line: String| text.push_str(&format!("\n{}", fold_lines(&line, COLUMNS, "  ")));
    for row in &findings.resources {
        if let Some(advice) = &row.advice {
            line(format!("{}: {advice}", row.resource));
        }
    }
    if !findings.observations.is_empty() {
        line(String::new());
    }
    for remark in &findings.observations {
        line(format!("{}: {}; {}", remark.subject, remark.found, remark.consequence));
    }
    text
}

/// Returns the JSON record.
fn record(findings: &ProbeReport) -> serde_json::Value {
    let rows = findings.resources.iter().map(|row| {
        serde_json::json!({
            "resource": row.resource.name(), "works": row.supported, "by": row.mechanism, "found": row.reason, "advice": row.advice,
        })
    });
    let remarks = findings.observations.iter().map(
        |remark| serde_json::json!({ "what": remark.subject, "found": remark.found, "matters": remark.consequence }),
    );
    serde_json::json!({ "resources": rows.collect::<Vec<_>>(), "remarks": remarks.collect::<Vec<_>>() })
}
