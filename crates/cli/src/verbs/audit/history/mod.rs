//! `evenhand audit --history`

mod entitlement_record;
mod entitlement_tables;
mod record;
mod replay_policies;
mod tables;

use std::path::Path;

use evenhand_audit::{AuditError, History, Property, Window};
use evenhand_model::duration_text::duration;
use evenhand_model::{Capacity, CapacityError, Span, Time, Workload, mean_use};
use evenhand_policies::{Order, Registry};
use evenhand_report::audit_page::{EntitlementRecord, write_audit_report};
use evenhand_study::{PolicyInputs, RequestedCapacity, peak_above_stated, site_capacity, stated_processors};

use self::record::AuditRecord;
use crate::arguments::decay;
use crate::arguments::policy_settings::policies_of;
use crate::arguments::{AuditArgs, Common, Release};
use crate::failure::{Failure, Outcome};
use crate::inputs::capacity::{parse_capacity, read_capacity};
use crate::inputs::release::released;
use crate::inputs::weights_and_accounts::read_weights_or_equal;
use crate::inputs::workloads::read_workload_with_summary;
use crate::output::console::{Console, to_json};
use crate::output::write_files::lock_folder;

/// The description of a capacity that nothing states.
const PEAK_USE: &str = "the peak use";

/// Refuses a window that begins after all jobs have ended: every property would hold of nothing. `first` is the first submission.
fn refuse_empty_window(window: &Window, workload: &Workload, first: Time) -> Result<(), Failure> {
    let columns = workload.columns();
    let end = |row: usize| workload.start(row).unwrap_or(columns.submit[row]).checked_add(columns.duration[row]);
    let last = (0..workload.len()).filter_map(end).max().unwrap_or_default();
    if window.from < last || window.from == Time::ZERO {
        return Ok(());
    }
    let whole = duration((last - first).secs_f64());
    Err(Failure::Input(format!(
        "--since: nothing of the history lies after it; it ends {whole} after the first submission"
    )))
}

/// Audits the history at `path`.
pub(super) fn run(
    path: &Path,
    audit_args: &AuditArgs,
    common: &Common,
    registry: &Registry,
    console: &Console,
) -> Result<Outcome, Failure> {
    // Reading a trace may take minutes, so the options are checked first.
    let args = &audit_args.history;
    let properties = properties(&audit_args.property)?;
    let capacity = args.capacity.as_deref().map(parse_capacity).transpose()?;
    let since = args.since.as_deref().map(|text| span("--since", text)).transpose()?;
    let until = args.until.as_deref().map(|text| span("--until", text)).transpose()?;
    if since.unwrap_or(Span::ZERO) >= until.unwrap_or(Span::MAX) {
        return Err(Failure::Input("--until: expected a longer time than that of --since".into()));
    }
    let policies = policies_of("--policy", registry, &args.policy, &[])?;
    args.policies.refuse_unused(registry, &args.policy)?;
    let settings = args.policies.settings(registry)?;
    let decay = decay::parse_decay(None, args.half_life.as_deref())?;
    let offset_ns = entitlement_record::parse_utc_offset(args.utc_offset.as_deref())?;
    let (workload, import_summary) = read_workload_with_summary(path, &args.trace, common, console)?;
    let users = workload.users().len();
    // --since and --until count from there, whenever jobs begin to wait.
    let first = workload.columns().submit.first().copied().unwrap_or_default();
    // Nobody had a claim to the start of a job that could not start yet.
    let release = args.release.unwrap_or(Release::Eligible);
    let workload = released(workload, release, args.release.is_some(), console);
    let (workload, shares) = entitlement_record::place_in_accounts(args, workload, console)?;
    let weights = match &shares {
        Some(shares) => shares.tree.weights(),
        None => read_weights_or_equal(args.weights.as_deref(), &workload, console)?,
    };
    if let Some(user) = audit_args.user.as_deref().filter(|user| workload.user_id(user).is_none()) {
        return Err(Failure::unknown("--user", user, workload.users().iter().map(String::as_str)));
    }
    let history = History::original(&workload).map_err(|e| audit_failure(path, &e))?;
    if capacity.is_none()
        && let Some(excess) = peak_above_stated(&workload)
    {
        console.note(&excess.warning());
    }
    let capacity = capacity.map(|capacity| read_capacity(capacity, &workload, console)).transpose()?;
    let (pool, pool_is) = pool(capacity, &history)?;
    let window =
        Window { from: since.map_or(Time::ZERO, |s| first + s), until: until.map_or(Time::MAX, |span| first + span) };
    refuse_empty_window(&window, &workload, first)?;
    let calendar = entitlement_record::calendar(&workload, offset_ns);
    let capacity_is = (&pool, pool_is.as_str());
    let entitlements = match (&shares, &args.out) {
        (Some(shares), _) => Some(entitlement_record::record(&history, shares, capacity_is, calendar, window)),
        (None, Some(_)) => {
            let (placed, shares) = entitlement_record::place_in_accounts_of_trace(args, &workload, &weights)?;
            let history = History::original(&placed).map_err(|e| audit_failure(path, &e))?;
            Some(entitlement_record::record(&history, &shares, capacity_is, calendar, window))
        }
        (None, None) => None,
    };
    let entitlements = entitlements.transpose().map_err(|e| audit_failure(path, &e))?;
    let audit = history.audit(&pool, &weights, &properties, window).map_err(|e| audit_failure(path, &e))?;
    let inputs = PolicyInputs {
        registry: registry.clone(),
        weights,
        accounts: shares.as_ref().map(|shares| shares.tree.clone()),
        settings,
        order: Order::Auto,
        site: None,
    };
    let policies = replay_policies::audit_replays(&workload, &pool, &inputs, &properties, window, &policies, decay)?;
    let record = AuditRecord::new(path, &history, &pool, &pool_is, &audit, calendar, release);
    let mut record = AuditRecord { users, policies, entitlements, ..record };
    if let Some(user) = &audit_args.user {
        record.findings.retain(|finding| finding.who == Some(user));
        record.findings_of = Some(user.clone());
    }
    if let (Some(out), Some(entitlements)) = (&args.out, &record.entitlements) {
        let page = EntitlementRecord {
            source: record.history.clone(),
            details: record.details(import_summary.as_deref()),
            ..entitlements.clone()
        };
        let _lock = lock_folder(out)?;
        let written = write_audit_report(out, &page).map_err(|e| Failure::Environment(e.to_string()))?;
        console.note(&format!("Wrote {} and its data.", written.index.display()));
    }
    let text = if console.is_json() { to_json(&record)? } else { record.tables() };
    console.result(&text)?;
    Ok(if record.findings.is_empty() { Outcome::Done } else { Outcome::DoesNotHold })
}

/// Returns the properties of these names, or all.
fn properties(names: &[String]) -> Result<Vec<Property>, Failure> {
    if names.is_empty() {
        return Ok(Property::ALL.to_vec());
    }
    names.iter().map(|name| name.parse().map_err(|e| Failure::Input(format!("--property: {e}")))).collect()
}

fn span(option: &str, text: &str) -> Result<Span, Failure> {
    Span::parse(text).map_err(|e| Failure::Input(format!("{option}: {e}")))
}

fn audit_failure(path: &Path, error: &AuditError) -> Failure {
    let remedy = match error {
        AuditError::NoStarts => "; use `evenhand study` to simulate it under a policy",
        _ => "",
    };
    Failure::Input(format!("{}: {error}{remedy}", path.display()))
}

/// Returns the capacity that the log's header states, if its jobs fit into it, else the peak of use; and which.
fn stated_pool(history: &History<'_>) -> (Result<Capacity, CapacityError>, String) {
    let workload = history.workload();
    // On a capacity that users exceed, no other finding would be reliable.
    if let Some(excess) = peak_above_stated(workload) {
        return (history.peak_capacity(), format!("{PEAK_USE}, since {}", excess.comparison()));
    }
    match stated_processors(workload) {
        Some((key, _)) => {
            let others = if workload.resources().len() > 1 { "; the peak use of other resources" } else { "" };
            let site = site_capacity(workload);
            (Capacity::new(workload.resources(), site.units), format!("{key} of the log's header{others}"))
        }
        None => (history.peak_capacity(), PEAK_USE.into()),
    }
}

/// Returns the capacity, and a description of it.
fn pool(capacity: Option<RequestedCapacity>, history: &History<'_>) -> Result<(Capacity, String), Failure> {
    let workload = history.workload();
    let (pool, pool_is) = match capacity {
        None => stated_pool(history),
        Some(RequestedCapacity::Multiple(name, factor)) => {
            (Capacity::multiple(workload.resources(), &mean_use(workload), &factor), format!("{name} R"))
        }
        Some(RequestedCapacity::Pool(name, units)) => (Capacity::new(workload.resources(), units), name),
        // A history records no machines, so all machines together are the pool.
        Some(RequestedCapacity::Machines(name, cluster)) => {
            let total = cluster.total(workload.resources());
            (Capacity::new(workload.resources(), total.map_err(|e| Failure::Input(format!("--capacity: {e}")))?), name)
        }
    };
    Ok((pool.map_err(|e| Failure::Input(format!("--capacity: {e}")))?, pool_is))
}
