//! JSON record of `audit --history`.

use std::path::Path;

use evenhand_audit::{Audit, Calendar, Finding, History, Summary};
use evenhand_model::calendar::date_and_time;
use evenhand_model::{Capacity, UserId, Workload, counted};
use evenhand_report::audit_page::EntitlementRecord;
use serde::Serialize;

use super::replay_policies::PolicyRecord;
use super::tables::hours;
use crate::arguments::Release;
use crate::inputs::release::wait_from;
use crate::output::human_units::period;

/// Result of the audit, with names instead of indices, and in seconds.
#[derive(Debug, Serialize)]
pub(super) struct AuditRecord<'a> {
    pub(super) history: String,
    pub(super) tasks: u64,
    /// Number of users, each once, in however many accounts.
    pub(super) users: usize,
    /// Number of rows without a start.
    pub(super) left_out: usize,
    pub(super) from_s: f64,
    pub(super) until_s: f64,
    /// From when on jobs wait.
    pub(super) jobs_wait_from: &'static str,
    /// In the workload's own units.
    pub(super) capacity: Vec<ResourceRecord<'a>>,
    pub(super) capacity_is: &'a str,
    /// Sum over users.
    pub(super) waiting_s: f64,
    pub(super) properties: Vec<PropertyRecord>,
    /// The user whose findings these are; absent if they are those of all users.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) findings_of: Option<String>,
    /// Findings, the worst first.
    pub(super) findings: Vec<FindingRecord<'a>>,
    /// Header of the column of first instants.
    #[serde(skip)]
    pub(super) first_is: &'static str,
    /// Audits of replays of the same tasks under policies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) policies: Vec<PolicyRecord>,
    /// Entitlement, demand and use of accounts and users.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) entitlements: Option<EntitlementRecord>,
}

#[derive(Debug, Serialize)]
pub(super) struct ResourceRecord<'a> {
    pub(super) name: &'a str,
    pub(super) unit: &'a str,
    pub(super) capacity: f64,
    pub(super) peak: f64,
}

#[derive(Debug, Serialize)]
pub(super) struct PropertyRecord {
    pub(super) property: &'static str,
    pub(super) holds: bool,
    pub(super) findings: usize,
    pub(super) users: usize,
    /// Sum over users; for `feasible`, over resources.
    pub(super) complaint_s: f64,
    pub(super) share_of_waiting: Option<f64>,
    #[serde(skip)]
    pub(super) statement: &'static str,
}

#[derive(Debug, Serialize)]
pub(super) struct FindingRecord<'a> {
    pub(super) property: &'static str,
    pub(super) who: Option<&'a str>,
    pub(super) against: Option<&'a str>,
    pub(super) on: Option<&'a str>,
    pub(super) duration_s: f64,
    pub(super) intervals: u64,
    pub(super) longest_s: f64,
    pub(super) first_s: f64,
    pub(super) share_hours: Option<f64>,
    /// The first instant as text: a date if the trace has dates, else exact seconds.
    #[serde(skip)]
    pub(super) first: String,
}

pub(super) fn seconds(ns: u128) -> f64 {
    ns as f64 / 1e9
}

pub(super) fn property_records(audit: &Audit) -> Vec<PropertyRecord> {
    let record = |s: &Summary| PropertyRecord {
        property: s.property.name(),
        holds: s.findings == 0,
        findings: s.findings,
        users: s.users,
        complaint_s: seconds(s.complaint_ns),
        share_of_waiting: s.share_of_waiting,
        statement: s.property.statement(s.findings == 0),
    };
    audit.summaries.iter().map(record).collect()
}

impl<'a> AuditRecord<'a> {
    pub(super) fn new(
        path: &Path,
        history: &History<'a>,
        pool: &Capacity,
        pool_is: &'a str,
        audit: &Audit,
        calendar: Calendar,
        release: Release,
    ) -> AuditRecord<'a> {
        let workload: &'a Workload = history.workload();
        let resources = workload.resources().iter().zip(history.peak()).enumerate();
        let finding = |f: &Finding| {
            let user = |id: Option<UserId>| id.map(|u| workload.users()[u.index()].as_str());
            FindingRecord {
                property: f.property.name(),
                who: user(f.who),
                against: user(f.against),
                on: f.on.map(|r| workload.resources()[r].name.as_str()),
                duration_s: f.duration.secs_f64(),
                intervals: f.intervals,
                longest_s: f.longest.secs_f64(),
                first_s: f.first.secs_f64(),
                share_hours: f.share_hours,
                first: calendar.local_seconds(f.first).and_then(date_and_time).unwrap_or_else(|| f.first.to_string()),
            }
        };
        AuditRecord {
            history: path.display().to_string(),
            tasks: workload.tasks(),
            users: workload.users().len(),
            left_out: history.left_out(),
            from_s: audit.from.secs_f64(),
            until_s: audit.until.secs_f64(),
            jobs_wait_from: wait_from(release),
            capacity: resources
                .map(|(r, (resource, peak))| ResourceRecord {
                    name: &resource.name,
                    unit: &resource.unit,
                    capacity: pool.units(r),
                    peak: resource.value(peak),
                })
                .collect(),
            capacity_is: pool_is,
            waiting_s: seconds(audit.waiting_ns),
            properties: property_records(audit),
            findings_of: None,
            findings: audit.findings.iter().map(finding).collect(),
            first_is: if calendar.origin.is_some() { "first at" } else { "first at s" },
            policies: Vec::new(),
            entitlements: None,
        }
    }

    /// Returns the details of the history that its page lists.
    pub(super) fn details(&self, import_summary: Option<&str>) -> Vec<(String, String)> {
        let length = period(self.until_s - self.from_s);
        let mut details = vec![
            ("Jobs".to_string(), format!("{} of {} over {length}", self.tasks, counted(self.users, "user", "users"))),
            ("Waiting".to_string(), format!("{} user-hours", hours(self.waiting_s))),
            ("Jobs wait from".to_string(), self.jobs_wait_from.to_string()),
        ];
        if self.left_out > 0 {
            details
                .push(("Left out".to_string(), counted(self.left_out, "row without a start", "rows without a start")));
        }
        details.extend(import_summary.map(|summary| ("Import".to_string(), summary.to_string())));
        details
    }
}
