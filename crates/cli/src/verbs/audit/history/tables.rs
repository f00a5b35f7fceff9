//! Tables of `audit --history`.

use evenhand_audit::Property;
use evenhand_model::counted;

use super::record::AuditRecord;
use super::{entitlement_tables, replay_policies};
use crate::output::fold_lines::{COLUMNS, fold_lines, table_width};
use crate::output::human_units;
use crate::output::numbers::rounded;
use crate::output::table::{Table, printable};

/// Largest number of findings in the table.
const MAX_FINDINGS: usize = 20;

impl AuditRecord<'_> {
    /// Formats the history, the worst findings, each property, and the comparison with policies.
    pub(super) fn tables(&self) -> String {
        let pool: Vec<String> =
            self.capacity.iter().map(|r| format!("{} {}", r.name, human_units::amount(r.capacity, r.unit))).collect();
        let mut parts = Vec::new();
        if let Some(user) = &self.findings_of {
            parts.extend(self.answer_about(user));
        }
        parts.push(format!(
            "{} of {} over {}, {} user-hours of waiting\nCapacity: {} ({})",
            counted(self.tasks, "task", "tasks"),
            counted(self.users, "user", "users"),
            human_units::period(self.until_s - self.from_s),
            hours(self.waiting_s),
            pool.join(", "),
            self.capacity_is
        ));
        if self.left_out > 0 {
            parts.push(format!(
                "{} left out.",
                counted(self.left_out, "row without a start is", "rows without a start are")
            ));
        }
        if let Some(entitlements) = &self.entitlements {
            parts.extend(entitlement_tables::tables(entitlements));
        }
        if self.findings_of.is_none() && !self.findings.is_empty() {
            parts.push(self.worst());
        }
        parts.extend(self.verdicts());
        if self.properties.iter().any(|p| p.property == Property::Feasible.name() && !p.holds) {
            parts.push(
                "Users held more than the capacity: either the capacity or the trace is incorrect, so the other findings are not reliable.".into(),
            );
        }
        if !self.policies.is_empty() {
            parts.push(replay_policies::table(self.waiting_s, &self.properties, &self.policies));
        }
        // Of tables no line is folded: names may be of any length.
        let fold = |part: String| if part.contains("\n---") { part } else { fold_lines(&part, COLUMNS, "  ") };
        parts.into_iter().map(fold).collect::<Vec<_>>().join("\n\n")
    }

    /// The findings of the user who is asked about.
    fn answer_about(&self, user: &str) -> Vec<String> {
        let user = printable(user);
        if self.findings.is_empty() {
            return vec![format!("User {user} has no finding. All that follows is on all users.")];
        }
        let found = counted(self.findings.len(), "finding", "findings");
        vec![format!("User {user} has {found}. All that follows the next table is on all users."), self.worst()]
    }

    fn worst(&self) -> String {
        let header =
            ["who", "property", "against", "on", "hours", "intervals", "longest h", self.first_is, "share-hours"];
        let mut table = Table::new(4, header);
        for f in self.findings.iter().take(MAX_FINDINGS) {
            let name = |name: Option<&str>| name.unwrap_or("-").to_string();
            table.row(vec![
                name(f.who),
                f.property.to_string(),
                name(f.against),
                name(f.on),
                hours(f.duration_s),
                f.intervals.to_string(),
                hours(f.longest_s),
                f.first.clone(),
                f.share_hours.map_or("-".into(), rounded),
            ]);
        }
        let rest = self.findings.len().saturating_sub(MAX_FINDINGS);
        let more = if rest > 0 { format!("\nand {rest} more; --format json has all") } else { String::new() };
        let table = table.fit(table_width(), &["longest h", "intervals", "share-hours"]);
        format!("{}{more}", table.render())
    }

    /// The table of the properties, and their statements.
    fn verdicts(&self) -> [String; 2] {
        let mut table = Table::new(1, ["property", "findings", "users", "user-hours", "of waiting"]);
        for p in &self.properties {
            table.row(vec![
                p.property.to_string(),
                p.findings.to_string(),
                p.users.to_string(),
                hours(p.complaint_s),
                p.share_of_waiting.map_or("-".into(), |share| format!("{:.1} %", 100.0 * share)),
            ]);
        }
        let verdicts = self
            .properties
            .iter()
            .map(|p| format!("{} {}: {}", p.property, if p.holds { "holds" } else { "violated" }, p.statement));
        [table.render(), verdicts.collect::<Vec<_>>().join("\n")]
    }
}

/// Formats a time in hours.
pub(super) fn hours(seconds: f64) -> String {
    rounded(seconds / 3600.0)
}
