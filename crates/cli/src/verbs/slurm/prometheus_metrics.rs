//! Metrics of `slurm run` for Prometheus.

use std::collections::BTreeMap;
use std::time::Duration;

use evenhand_policies::Standing;
use evenhand_slurm::queue_driver::{DriveError, TickOutcome};
use evenhand_slurm::{Party, PlanOptions};

use super::run::Totals;
use crate::output::serve_metrics::{LABELLED, MetricsText, by_user_and_resource};

/// Returns the metrics after an update.
pub(super) fn metrics(
    update: &Result<TickOutcome, DriveError>,
    options: &PlanOptions,
    took: Duration,
    totals: Totals,
) -> String {
    let mut text = MetricsText::default();
    let one = |value: f64| [(Vec::new(), value)];
    text.family("evenhand_looks_total", "counter", "Updates of the order.", one(totals.looks as f64));
    text.family("evenhand_changes_total", "counter", "Site factors written.", one(totals.changes as f64));
    text.family("evenhand_errors_total", "counter", "Updates without an answer from Slurm.", one(totals.errors as f64));
    text.family("evenhand_look_seconds", "gauge", "Duration of the last update.", one(took.as_secs_f64()));
    let up = f64::from(u8::from(update.is_ok()));
    text.family("evenhand_up", "gauge", "Whether Slurm answered at the last update.", one(up));
    let Ok(tick) = update else { return text.finish() };
    text.family("evenhand_jobs_waiting", "gauge", "Records of waiting jobs.", one(tick.waiting as f64));
    text.family("evenhand_jobs_running", "gauge", "Running jobs.", one(tick.running as f64));
    text.family(
        "evenhand_jobs_left_alone",
        "gauge",
        "Jobs whose site factor another program set.",
        one(tick.set_by_others as f64),
    );
    let Some(plan) = &tick.plan else { return text.finish() };
    // A waiting user's standing at the user's first place is the present one.
    let mut first: BTreeMap<usize, &Standing> = BTreeMap::new();
    plan.places.iter().for_each(|place| _ = first.entry(place.party).or_insert(&place.standing));
    // Those whose turn is next come first; the others' keys have no series.
    let mut first: Vec<(usize, &Standing)> = first.into_iter().collect();
    first.sort_by(|a, b| a.1.key.total_cmp(&b.1.key));
    let users = || first.iter().map(|(party, standing)| (&plan.parties[*party], *standing));
    for (name, help, of) in [
        (
            "evenhand_share",
            "Share of the capacity that a user with waiting jobs holds.",
            (|s| &s.shares) as fn(&Standing) -> &Vec<f64>,
        ),
        ("evenhand_commitment", "Past overuse that counts against a user.", |s| &s.commitments),
    ] {
        let rows = by_user_and_resource(users().map(|(party, standing)| {
            let values = plan.resources.iter().zip(of(standing)).map(|(resource, value)| (&*resource.name, *value));
            (labels(party).to_vec(), values.collect())
        }));
        text.family(name, "gauge", help, rows);
    }
    let parties = one(first.len() as f64);
    text.family("evenhand_users", "gauge", "Users with waiting jobs, each account counted apart.", parties);
    let rows = users().take(LABELLED).map(|(party, standing)| {
        let [user, account] = labels(party);
        (vec![("policy", options.policy.as_str()), user, account], standing.key)
    });
    text.family("evenhand_key", "gauge", "Key of the policy's order: the lowest is first.", rows);
    // Range of dominant share over entitlement among users with waiting jobs: 0 is fair at this moment.
    let over: Vec<f64> = users()
        .filter(|(party, _)| party.entitlement > 0.0)
        .map(|(party, s)| s.shares.iter().copied().fold(0.0, f64::max) / party.entitlement)
        .collect();
    let (low, high) = over.iter().fold((f64::INFINITY, 0.0f64), |(low, high), x| (low.min(*x), high.max(*x)));
    let error = if over.is_empty() { 0.0 } else { high - low };
    let help = "Largest minus smallest dominant share over entitlement, of users with waiting jobs.";
    text.family("evenhand_fairness_error", "gauge", help, one(error));
    text.finish()
}

/// Returns the labels of a user.
fn labels(party: &Party) -> [(&'static str, &str); 2] {
    [("user", &party.user), ("account", party.account.as_deref().unwrap_or(""))]
}
