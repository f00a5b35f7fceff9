//! `evenhand audit --history`

mod entitlements;
mod policies;
mod shown;

use std::path::{Path, PathBuf};

use clap::Args;
use evenhand_audit::{Audit, AuditError, Calendar, Finding, History, Property, Summary, Window};
use evenhand_model::calendar::date_and_time;
use evenhand_model::{Capacity, Span, Time, UserId, Workload, mean_use};
use evenhand_policies::{Order, Registry};
use evenhand_report::audit_page::{EntitlementRecord, write_audit_report};
use evenhand_study::{CapacityAsked, PolicyInputs};
use serde::Serialize;

use self::policies::PolicyRecord;
use crate::args::{Common, TraceArgs};
use crate::console::{Console, json};
use crate::decay;
use crate::failure::{Failure, Outcome};
use crate::policy_args::{PolicyArgs, named_policies};
use crate::study::{capacity, capacity_text, short, weights};
use crate::table::Table;
use crate::workload::load_and_tell;

/// How many findings the table has.
const SHOWN: usize = 20;

#[derive(Args, Debug)]
pub(crate) struct HistoryArgs {
    /// Audit a recorded history against the properties: a workload (Parquet) with original starts, or a trace in any
    /// importable format
    #[arg(long, value_name = "WORKLOAD", conflicts_with_all = ["problem", "allocation", "search_lies", "mechanism", "tolerance"])]
    pub(crate) history: Option<PathBuf>,
    /// Capacity during the history: a multiple of its mean use, or a file with a [pool] [default: the peak use of each
    /// resource]
    #[arg(long, value_name = "NUMBER|FILE", requires = "history")]
    pub(crate) capacity: Option<String>,
    /// Users' weights: TOML with [weights], or CSV user,weight (default: 1 each)
    #[arg(long, value_name = "FILE", requires = "history")]
    pub(crate) weights: Option<PathBuf>,
    /// Start the audit this long after the first submission: 7d, 12h
    #[arg(long, value_name = "TIME", requires = "history")]
    pub(crate) since: Option<String>,
    /// End the audit this long after the first submission
    #[arg(long, value_name = "TIME", requires = "history")]
    pub(crate) until: Option<String>,
    /// Also replay the same tasks under these policies, and audit the results
    #[arg(long, value_delimiter = ',', value_name = "NAME,…", requires = "history")]
    pub(crate) policy: Vec<String>,
    /// Half-life of past use in policies with a memory: 8d, 12h [default: a discount of 0.999999 per second]
    #[arg(long, value_name = "TIME", requires = "policy")]
    pub(crate) half_life: Option<String>,
    #[command(flatten)]
    pub(crate) policies: PolicyArgs,
    /// Also report entitlement, demand and use of accounts and users by week, and overuse while others waited. Accounts
    /// and shares: TOML with [[account]] and [[user]], as for study
    #[arg(long, value_name = "FILE", requires = "history", conflicts_with = "weights")]
    pub(crate) accounts: Option<PathBuf>,
    /// Folder for a page on entitlements with its figures and data; without --accounts, the trace's own accounts have
    /// equal shares
    #[arg(long, value_name = "DIR", requires = "history")]
    pub(crate) out: Option<PathBuf>,
    /// Offset of local time, in which times are printed and weeks begin, from the trace's clock (+1, -05:30) [default: 0]
    #[arg(long, value_name = "HOURS", requires = "history", allow_hyphen_values = true)]
    pub(crate) utc_offset: Option<String>,
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
}

pub(crate) fn run(
    path: &Path,
    args: &HistoryArgs,
    names: &[String],
    common: &Common,
    registry: &Registry,
    console: &Console,
) -> Result<Outcome, Failure> {
    // Reading a trace may take minutes: what is wrong with the command line is said before.
    let properties = properties(names)?;
    let asked = args.capacity.as_deref().map(capacity_text).transpose()?;
    let since = args.since.as_deref().map(|text| span("--since", text)).transpose()?;
    let until = args.until.as_deref().map(|text| span("--until", text)).transpose()?;
    if since.unwrap_or(Span::ZERO) >= until.unwrap_or(Span::MAX) {
        return Err(Failure::Input("--until: expected a longer time than that of --since".into()));
    }
    let policies = named_policies(registry, &args.policy)?;
    args.policies.refuse_unused(registry, &args.policy)?;
    let settings = args.policies.settings(registry)?;
    let decay = decay::of_either(None, args.half_life.as_deref())?;
    let ahead = entitlements::ahead(args.utc_offset.as_deref())?;
    let (workload, told) = load_and_tell(path, &args.trace, common, console)?;
    let (workload, shares) = entitlements::placed(args, workload, console)?;
    let weights = match &shares {
        Some(shares) => shares.tree.weights(),
        None => weights(args.weights.as_deref(), &workload, console)?,
    };
    let history = History::original(&workload).map_err(|e| refusal(path, &e))?;
    let asked = asked.map(|asked| capacity(asked, &workload, console)).transpose()?;
    let (pool, pool_is) = pool(asked, &history)?;
    let first = workload.columns().submit.first().copied().unwrap_or_default();
    let window =
        Window { from: since.map_or(Time::ZERO, |s| first + s), until: until.map_or(Time::MAX, |span| first + span) };
    let audit = history.audit(&pool, &weights, &properties, window).map_err(|e| refusal(path, &e))?;
    let inputs = PolicyInputs {
        registry: registry.clone(),
        weights,
        accounts: shares.as_ref().map(|shares| shares.tree.clone()),
        settings,
        order: Order::Auto,
    };
    let policies = policies::audits(&workload, &pool, &inputs, &properties, window, &policies, decay)?;
    let calendar = entitlements::calendar(&workload, ahead);
    let entitlements =
        shares.map(|shares| entitlements::record(&history, &shares, (&pool, &pool_is), calendar, window));
    let entitlements = entitlements.transpose().map_err(|e| refusal(path, &e))?;
    let record = Record { policies, entitlements, ..Record::new(path, &history, &pool, &pool_is, &audit, calendar) };
    if let (Some(out), Some(entitlements)) = (&args.out, &record.entitlements) {
        let page = EntitlementRecord {
            source: record.history.clone(),
            details: record.facts(told.as_deref()),
            ..entitlements.clone()
        };
        let written = write_audit_report(out, &page).map_err(|e| Failure::Environment(e.to_string()))?;
        console.note(&format!("Wrote {} and its data.", written.index.display()));
    }
    let text = if console.is_json() { json(&record)? } else { record.tables() };
    console.result(&text)?;
    Ok(if record.findings.is_empty() { Outcome::Done } else { Outcome::DoesNotHold })
}

/// The properties of these names, or all.
fn properties(names: &[String]) -> Result<Vec<Property>, Failure> {
    if names.is_empty() {
        return Ok(Property::ALL.to_vec());
    }
    names.iter().map(|name| name.parse().map_err(|e| Failure::Input(format!("--property: {e}")))).collect()
}

fn span(option: &str, text: &str) -> Result<Span, Failure> {
    Span::parse(text).map_err(|e| Failure::Input(format!("{option}: {e}")))
}

fn refusal(path: &Path, error: &AuditError) -> Failure {
    let remedy = match error {
        AuditError::NoStarts => "; use `evenhand study` to simulate it under a policy",
        _ => "",
    };
    Failure::Input(format!("{}: {error}{remedy}", path.display()))
}

/// The capacity, and what it is.
fn pool(asked: Option<CapacityAsked>, history: &History<'_>) -> Result<(Capacity, String), Failure> {
    let workload = history.workload();
    let (pool, pool_is) = match asked {
        None => (history.peak_capacity(), "the peak use".into()),
        Some(CapacityAsked::Multiple(name, factor)) => {
            (Capacity::multiple(workload.resources(), &mean_use(workload), &factor), format!("{name} R"))
        }
        Some(CapacityAsked::Pool(name, units)) => (Capacity::new(workload.resources(), units), name),
        // The history is what it was: all machines together are the pool.
        Some(CapacityAsked::Machines(name, cluster)) => {
            let total = cluster.total(workload.resources());
            (Capacity::new(workload.resources(), total.map_err(|e| Failure::Input(format!("--capacity: {e}")))?), name)
        }
    };
    Ok((pool.map_err(|e| Failure::Input(format!("--capacity: {e}")))?, pool_is))
}

/// What was found, with names and in seconds.
#[derive(Debug, Serialize)]
struct Record<'a> {
    history: String,
    tasks: u64,
    users: usize,
    /// Rows without a start.
    left_out: usize,
    from_s: f64,
    until_s: f64,
    /// In the workload's own units.
    capacity: Vec<ResourceRecord<'a>>,
    capacity_is: &'a str,
    /// Summed over users.
    waiting_s: f64,
    properties: Vec<PropertyRecord>,
    /// The worst first.
    findings: Vec<FindingRecord<'a>>,
    /// What the column of first instants is called.
    #[serde(skip)]
    first_is: &'static str,
    /// The same tasks under policies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    policies: Vec<PolicyRecord>,
    /// What accounts and users were entitled to, wanted and got.
    #[serde(skip_serializing_if = "Option::is_none")]
    entitlements: Option<EntitlementRecord>,
}

#[derive(Debug, Serialize)]
struct ResourceRecord<'a> {
    name: &'a str,
    unit: &'a str,
    capacity: f64,
    peak: f64,
}

#[derive(Debug, Serialize)]
struct PropertyRecord {
    property: &'static str,
    holds: bool,
    findings: usize,
    users: usize,
    /// Summed over users; for `feasible` over resources.
    complaint_s: f64,
    share_of_waiting: Option<f64>,
    #[serde(skip)]
    statement: &'static str,
}

#[derive(Debug, Serialize)]
struct FindingRecord<'a> {
    property: &'static str,
    who: Option<&'a str>,
    against: Option<&'a str>,
    on: Option<&'a str>,
    duration_s: f64,
    intervals: u64,
    longest_s: f64,
    first_s: f64,
    share_hours: Option<f64>,
    /// The first instant as people read it: a date if the trace has any, else exact seconds.
    #[serde(skip)]
    first: String,
}

fn seconds(ns: u128) -> f64 {
    ns as f64 / 1e9
}

fn property_records(audit: &Audit) -> Vec<PropertyRecord> {
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

impl<'a> Record<'a> {
    fn new(
        path: &Path,
        history: &History<'a>,
        pool: &Capacity,
        pool_is: &'a str,
        audit: &Audit,
        calendar: Calendar,
    ) -> Record<'a> {
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
        Record {
            history: path.display().to_string(),
            tasks: workload.tasks(),
            users: workload.users().len(),
            left_out: history.left_out(),
            from_s: audit.from.secs_f64(),
            until_s: audit.until.secs_f64(),
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
            findings: audit.findings.iter().map(finding).collect(),
            first_is: if calendar.origin.is_some() { "first at" } else { "first at s" },
            policies: Vec::new(),
            entitlements: None,
        }
    }

    /// What is to be known of the history on its page.
    fn facts(&self, told: Option<&str>) -> Vec<(String, String)> {
        let days = format!("{:.1} days", (self.until_s - self.from_s) / 86_400.0);
        let mut facts = vec![
            ("Jobs".to_string(), format!("{} of {} users over {days}", self.tasks, self.users)),
            ("Waiting".to_string(), format!("{} user-hours", hours(self.waiting_s))),
        ];
        if self.left_out > 0 {
            facts.push(("Left out".to_string(), format!("{} rows without a start", self.left_out)));
        }
        facts.extend(told.map(|told| ("Import".to_string(), told.to_string())));
        facts
    }

    /// What was looked at, the worst findings, then each property.
    fn tables(&self) -> String {
        let pool: Vec<String> = self
            .capacity
            .iter()
            .map(|r| format!("{} {} {}", r.name, short(r.capacity), r.unit).trim_end().to_string())
            .collect();
        let mut parts = vec![format!(
            "{} tasks of {} users over {:.1} days, {} user-hours of waiting; capacity: {} ({})",
            self.tasks,
            self.users,
            (self.until_s - self.from_s) / 86_400.0,
            hours(self.waiting_s),
            pool.join(", "),
            self.capacity_is
        )];
        if self.left_out > 0 {
            parts.push(format!("{} rows without a start are left out.", self.left_out));
        }
        if let Some(entitlements) = &self.entitlements {
            parts.extend(shown::tables(entitlements));
        }
        if !self.findings.is_empty() {
            parts.push(self.worst());
        }
        parts.push(self.verdicts());
        if self.properties.iter().any(|p| p.property == Property::Feasible.name() && !p.holds) {
            parts.push(
                "Users held more than the capacity: the capacity or the trace is wrong, and so is the audit.".into(),
            );
        }
        if !self.policies.is_empty() {
            parts.push(policies::table(self.waiting_s, &self.properties, &self.policies));
        }
        parts.join("\n\n")
    }

    fn worst(&self) -> String {
        let header =
            ["who", "property", "against", "on", "hours", "intervals", "longest h", self.first_is, "share-hours"];
        let mut table = Table::new(4, header);
        for f in self.findings.iter().take(SHOWN) {
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
                f.share_hours.map_or("-".into(), short),
            ]);
        }
        let rest = self.findings.len().saturating_sub(SHOWN);
        let more = if rest > 0 { format!("\nand {rest} more; --format json has all") } else { String::new() };
        format!("{}{more}", table.render())
    }

    fn verdicts(&self) -> String {
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
        let says = self
            .properties
            .iter()
            .map(|p| format!("{} {}: {}", p.property, if p.holds { "holds" } else { "violated" }, p.statement));
        format!("{}\n\n{}", table.render(), says.collect::<Vec<_>>().join("\n"))
    }
}

fn hours(seconds: f64) -> String {
    short(seconds / 3600.0)
}
