//! Audits replays of the same tasks under policies.

use std::borrow::Cow;

use evenhand_audit::{Audit, History, Property, Window};
use evenhand_model::{Capacity, Workload};
use evenhand_policies::{Decay, Registration};
use evenhand_study::{PolicyInputs, ReplayError, starts_under};
use serde::Serialize;

use super::{PropertyRecord, hours, property_records, seconds};
use crate::failure::Failure;
use crate::policy_args::policy_failure;
use crate::table::Table;

/// The audit of one policy's history.
#[derive(Debug, Serialize)]
pub(super) struct PolicyRecord {
    policy: &'static str,
    delta: Option<f64>,
    /// Summed over users.
    waiting_s: f64,
    properties: Vec<PropertyRecord>,
}

/// Replays the workload on `pool` under each policy and audits the result in the same window of time.
pub(super) fn audits(
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

/// User-hours of complaint of each property, in the real history and under each policy.
pub(super) fn table(waiting_s: f64, history: &[PropertyRecord], policies: &[PolicyRecord]) -> String {
    let names = policies.iter().map(|p| p.policy);
    let mut table = Table::new(1, ["user-hours", "recorded"].into_iter().chain(names));
    let mut row = |name: &str, was: f64, would: &mut dyn Iterator<Item = f64>| {
        let cells = std::iter::once(was).chain(would).map(hours);
        table.row(std::iter::once(name.to_string()).chain(cells).collect());
    };
    row("waiting", waiting_s, &mut policies.iter().map(|p| p.waiting_s));
    for (i, property) in history.iter().enumerate() {
        row(property.property, property.complaint_s, &mut policies.iter().map(|p| p.properties[i].complaint_s));
    }
    format!("The same tasks replayed under policies on this capacity\n\n{}", table.render())
}
