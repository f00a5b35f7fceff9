//! `evenhand agent doctor`

use evenhand_enforcers::cgroups::{Findings, Places};

use super::args::DoctorArgs;
use super::{configuration, kernel};
use crate::console::Console;
use crate::failure::{Failure, Outcome};
use crate::table::Table;

/// Status 1 if nothing at all can be enforced.
pub(super) fn run(args: &DoctorArgs, console: &Console) -> Result<Outcome, Failure> {
    let configuration = args.config.as_deref().map(configuration).transpose()?;
    let findings = evenhand_agent::doctor(configuration.as_ref(), &Places::default()).map_err(kernel)?;
    if console.is_json() {
        console.json(&json(&findings))?;
    } else {
        console.result(&text(&findings))?;
    }
    let any = findings.rows.iter().any(|row| row.able);
    Ok(if any { Outcome::Done } else { Outcome::DoesNotHold })
}

pub(super) fn text(findings: &Findings) -> String {
    let mut table = Table::new(4, ["resource", "works", "by", "found"]);
    for row in &findings.rows {
        let works = if row.able { "yes" } else { "no" };
        let by = if row.by.is_empty() { "-" } else { &row.by };
        table.row(vec![row.control.to_string(), works.into(), by.into(), row.why.clone()]);
    }
    let mut text = table.render();
    for row in &findings.rows {
        if let Some(advice) = &row.advice {
            text.push_str(&format!("\n{}: {advice}", row.control));
        }
    }
    if !findings.remarks.is_empty() {
        text.push('\n');
    }
    for remark in &findings.remarks {
        text.push_str(&format!("\n{}: {}. {}", remark.what, remark.found, remark.matters));
    }
    text
}

fn json(findings: &Findings) -> serde_json::Value {
    let rows = findings.rows.iter().map(|row| {
        serde_json::json!({
            "resource": row.control.resource(), "works": row.able, "by": row.by, "found": row.why, "advice": row.advice,
        })
    });
    let remarks = findings
        .remarks
        .iter()
        .map(|remark| serde_json::json!({ "what": remark.what, "found": remark.found, "matters": remark.matters }));
    serde_json::json!({ "resources": rows.collect::<Vec<_>>(), "remarks": remarks.collect::<Vec<_>>() })
}
