//! The section on how far the simulation can be trusted.

use evenhand_study::record::{ClaimRecord, StudyRecord, TrustRecord};
use serde::Serialize;

use super::user_and_fairness_tables::Cell;
use crate::format_numbers::{ABSENT, duration, grouped, percent, three_digits};

/// The agreement of one run with the log.
#[derive(Serialize)]
pub(super) struct TrustSection {
    policy: String,
    verdict: String,
    jobs: String,
    logged: String,
    simulated: String,
    /// Measures by name.
    measures: Vec<(&'static str, String)>,
    /// Each with whether it is trusted, and a sentence on why.
    claims: Vec<(String, &'static str, String)>,
    classes: Vec<ClassRow>,
    not_modelled: Vec<String>,
}

#[derive(Serialize)]
struct ClassRow {
    by: String,
    class: String,
    jobs: String,
    logged: Cell,
    simulated: Cell,
}

/// Returns the section, or `None` where the log has no starts to compare with.
pub(super) fn trust_section(record: &StudyRecord) -> Option<TrustSection> {
    let trust = record.trust.as_ref()?;
    let class = |class: &evenhand_study::record::ClassRecord| ClassRow {
        by: class.by.clone(),
        class: class.class.clone(),
        jobs: grouped(class.jobs),
        logged: Cell::duration(Some(class.logged_mean_wait_s)),
        simulated: Cell::duration(Some(class.mean_wait_s)),
    };
    Some(TrustSection {
        policy: trust.policy.clone(),
        verdict: trust.verdict.clone(),
        jobs: grouped(trust.jobs),
        logged: duration(trust.logged_mean_wait_s),
        simulated: duration(trust.mean_wait_s),
        measures: measures(trust),
        claims: trust.claims.iter().map(|c| (c.claim.clone(), verdict(c), sentence(&c.because))).collect(),
        classes: trust.classes.iter().map(class).collect(),
        not_modelled: trust.not_modelled.clone(),
    })
}

fn verdict(claim: &ClaimRecord) -> &'static str {
    match (claim.holds, claim.undecided) {
        (_, true) => "Not known",
        (true, _) => "Trusted",
        (false, _) => "Not trusted",
    }
}

/// Returns a clause as a sentence: the record's clauses also follow a colon, in the output of the command.
fn sentence(clause: &str) -> String {
    let mut characters = clause.chars();
    let first = characters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", characters.as_str())
}

fn measures(trust: &TrustRecord) -> Vec<(&'static str, String)> {
    let number = |value: Option<f64>| value.map_or(ABSENT.to_string(), three_digits);
    vec![
        ("Simulated over logged mean wait", number(trust.mean_wait_ratio)),
        ("Difference of utilisation, by hour", percent(trust.utilization_error)),
        ("Difference of the number of waiting jobs, by hour, over its mean", number(trust.queue_error)),
        ("Rank correlation of the users' mean waits", number(trust.users_wait_rank_correlation)),
        ("Rank correlation of the jobs' waits", number(trust.jobs_wait_rank_correlation)),
        ("Jobs that start within a minute of the logged start", percent(trust.starts_within.minute)),
        ("within ten minutes", percent(trust.starts_within.ten_minutes)),
        ("within an hour", percent(trust.starts_within.hour)),
    ]
}
