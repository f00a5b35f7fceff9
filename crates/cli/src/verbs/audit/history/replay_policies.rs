//! Replays of the same tasks under policies, and their audits.

use std::borrow::Cow;

use evenhand_audit::{Audit, History, Property, Window};
use evenhand_model::{Capacity, Workload};
use evenhand_policies::{Decay, Registration};
use evenhand_study::{PolicyInputs, ReplayError, starts_under};
use serde::Serialize;

use super::record::{PropertyRecord, property_records, seconds};
use super::tables::hours;
use crate::arguments::policy_settings::policy_failure;
use crate::failure::Failure;
use crate::output::table::Table;

/// Audit of one policy's replay.
#[derive(Debug, Serialize)]
pub(super) struct PolicyRecord {
    policy: &'static str,
    delta: Option<f64>,
    /// Sum over users.
    waiting_s: f64,
    properties: Vec<PropertyRecord>,
}

/// Replays the workload on `pool` under each policy and audits the result in the same window of time.
pub(super) fn audit_replays(
    workload: &Workload,
    pool: &Capacity,
    inputs: &PolicyInputs,
    properties: &[Property],
    window: Window,
    policies: &[Registration],
    decay: Decay,
) -> Result<Vec<PolicyRecord>, Failure> {
    if policies.is_empty() {
        return Ok(Vec::new());
    }
    let tasks = match workload.columns().count {
        Some(_) => Cow::Owned(workload.clone().expanded()),
        None => Cow::Borrowed(workload),
    };
    let audit = |policy: &Registration| {
        let decay = policy.needs_decay.then_some(decay);
        let starts = starts_under(&tasks, pool, inputs, policy.name, decay).map_err(|error| match error {
            ReplayError::Policy(error) => policy_failure(error),
            error => failed(policy, &error),
        })?;
        let history = History::with_starts(&tasks, &starts).map_err(|e| failed(policy, &e))?;
        let audit: Audit = history.audit(pool, &inputs.weights, properties, window).map_err(|e| failed(policy, &e))?;
        Ok(PolicyRecord {
            policy: policy.name,
            delta: decay.map(|d| d.delta()),
            waiting_s: seconds(audit.waiting_ns),
            properties: property_records(&audit),
        })
    };
    policies.iter().map(audit).collect()
}

fn failed(policy: &Registration, error: &dyn std::fmt::Display) -> Failure {
    Failure::Input(format!("--policy {}: {error}", policy.name))
}

/// Formats the user-hours of complaint by property, in the recorded history and under each policy.
pub(super) fn table(waiting_s: f64, history: &[PropertyRecord], policies: &[PolicyRecord]) -> String {
    let names = policies.iter().map(|p| p.policy);
    let mut table = Table::new(1, ["user-hours", "recorded"].into_iter().chain(names));
    let mut row = |name: &str, recorded: f64, replayed: &mut dyn Iterator<Item = f64>| {
        let cells = std::iter::once(recorded).chain(replayed).map(hours);
        table.row(std::iter::once(name.to_string()).chain(cells).collect());
    };
    row("waiting", waiting_s, &mut policies.iter().map(|p| p.waiting_s));
    for (i, property) in history.iter().enumerate() {
        row(property.property, property.complaint_s, &mut policies.iter().map(|p| p.properties[i].complaint_s));
    }
    format!("The same tasks replayed under policies on this capacity\n\n{}", table.render())
}
