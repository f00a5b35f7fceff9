//! `evenhand study`

use std::path::{Path, PathBuf};
use std::sync::Arc;

use evenhand_model::{AccountTree, Quantity, Weights, Workload};
use evenhand_policies::{Decay, PolicySettings, Registry};
use evenhand_study::record::{MethodRecord, RunRecord, StudyRecord};
use evenhand_study::{
    AccountsFile, Backfill, CapacityAsked, JobRules, Live, Plan, PlanError, PolicyInputs, Question, TaskFormat,
    WorkloadWithAccounts, read_cluster, read_pool, read_weights,
};
use evenhand_workload::generate::{GenerateOptions, TraceModel, generate};

use crate::args::{Common, StudyArgs, Until};
use crate::console::{Console, json};
use crate::decay;
use crate::failure::Failure;
use crate::machines;
use crate::metrics;
use crate::policy_args::{named_policies, policy_failure};
use crate::progress;
use crate::table::Table;
use crate::workload::load;

/// What a study without a workload replays: small enough for a first look, large enough to show
/// queues that build and drain.
const DEFAULT_TASKS: u64 = 200_000;
const DEFAULT_USERS: u32 = 100;
const DEFAULT_DAYS: f64 = 29.0;

pub(crate) fn run(args: &StudyArgs, common: &Common, registry: &Registry, console: &Console) -> Result<(), Failure> {
    // Reading a trace may take minutes: what is wrong with the command line is said before.
    let asked = Asked::parse(args, registry)?;
    let (workload, source) = workload(args, common, console)?;
    let (workload, accounts) = placed(args, workload, console)?;
    let question = question(args, asked, accounts, registry, &workload, console)?;
    let plan = Plan::new(workload, &question).map_err(|error| match error {
        PlanError::Policy(error) => policy_failure(error),
        error => Failure::input(error),
    })?;
    plan.notes().iter().for_each(|note| console.note(note));
    let live = Arc::new(Live::new(&plan));
    stop_on_interrupt(&live)?;
    let format = match (args.tasks_csv, args.no_tasks) {
        (true, _) => TaskFormat::Csv,
        (_, true) => TaskFormat::None,
        _ => TaskFormat::Parquet,
    };
    let method = method(args, &question, common)?;
    let record = progress::watch(&live, plan.tasks(), console.shows_progress(), || {
        plan.run(&args.out, &source, method, format, &live)
    })
    .map_err(|e| Failure::new(&e, e.is_environment()))?;
    let report =
        evenhand_report::write_study_report(&args.out, &record).map_err(|e| Failure::Environment(e.to_string()))?;
    if console.is_json() {
        let text = json(&record.without_series())?;
        console.result(&text)?;
    } else {
        let names = |run: &RunRecord| [capacity_name(run), policy_name(run, &record)];
        let text = summary(&record) + &metrics::summary(&record, names) + &machines::summary(&record);
        console.result(&text)?;
        console.result(&format!("\nReport: {}", report.index.display()))?;
    }
    match record.missing.as_slice() {
        [] => Ok(()),
        missing => Err(Failure::Environment(format!(
            "interrupted; the report has {} of {} runs, without {}. Run the same command again to finish: finished runs are kept",
            record.runs.len(),
            record.runs.len() + missing.len(),
            missing.join(", ")
        ))),
    }
}

/// The workload and where it came from.
fn workload(args: &StudyArgs, common: &Common, console: &Console) -> Result<(Workload, String), Failure> {
    if let Some(path) = &args.workload {
        return Ok((load(path, &args.trace, common, console)?, path.display().to_string()));
    }
    let options = GenerateOptions {
        model: TraceModel::Google2011,
        tasks: DEFAULT_TASKS,
        users: DEFAULT_USERS,
        days: DEFAULT_DAYS,
        seed: common.seed(),
    };
    let source = format!(
        "generated like {}: {DEFAULT_TASKS} tasks of {DEFAULT_USERS} users over {DEFAULT_DAYS} days, seed {}",
        options.model, options.seed
    );
    console.note(&format!("No workload named, so one is {source}."));
    Ok((generate(&options).map_err(Failure::input)?, source))
}

/// What the command line alone says about the grid.
struct Asked {
    capacities: Vec<CapacityText>,
    decays: Vec<(String, Decay)>,
    settings: PolicySettings,
}

/// A capacity as typed.
pub(crate) enum CapacityText {
    Multiple(String, Quantity),
    File(PathBuf),
}

impl Asked {
    fn parse(args: &StudyArgs, registry: &Registry) -> Result<Asked, Failure> {
        named_policies(registry, &args.policy)?;
        if args.no_blocking && args.backfill != Backfill::None {
            let problem =
                "--no-blocking: backfilling already looks behind a task that does not fit; leave one of the two out";
            return Err(Failure::Input(problem.into()));
        }
        args.policies.refuse_unused(registry, &args.policy)?;
        let capacities = args.capacity.iter().map(|text| capacity_text(text)).collect::<Result<_, _>>()?;
        Ok(Asked { capacities, decays: decays(args)?, settings: args.policies.settings(registry)? })
    }
}

fn wrong(option: &str, found: &str, expected: &str) -> Failure {
    Failure::Input(format!("{option}: found {found:?}, expected {expected}"))
}

/// The workload with its users in the accounts of the file, if there is one.
fn placed(args: &StudyArgs, workload: Workload, console: &Console) -> Result<(Workload, Option<AccountTree>), Failure> {
    let Some(path) = &args.accounts else { return Ok((workload, None)) };
    let placed = AccountsFile::read(path).and_then(|file| file.place(workload)).map_err(Failure::document)?;
    told_placed(path, &placed, console);
    Ok((placed.workload, Some(placed.tree)))
}

/// Notes what of the file of accounts and the workload does not match.
pub(crate) fn told_placed(path: &Path, placed: &WorkloadWithAccounts, console: &Console) {
    let note = |what: &str, names: &[String]| {
        if !names.is_empty() {
            console.note(&format!("{}: {what}: {}", path.display(), names.join(", ")));
        }
    };
    note("users that are not in the workload", &placed.unknown);
    note("accounts in which nobody of the workload is", &placed.empty);
    note("directly under the root, with 1 share each, go the workload's accounts", &placed.added);
}

fn question(
    args: &StudyArgs,
    asked: Asked,
    accounts: Option<AccountTree>,
    registry: &Registry,
    workload: &Workload,
    console: &Console,
) -> Result<Question, Failure> {
    let weights = match &accounts {
        Some(tree) => tree.weights(),
        None => weights(args.weights.as_deref(), workload, console)?,
    };
    let (registry, settings) = (registry.clone(), asked.settings);
    let inputs = PolicyInputs { registry, weights, accounts, settings, order: args.order };
    let capacities = asked.capacities.into_iter().map(|c| capacity(c, workload, console)).collect::<Result<_, _>>()?;
    Ok(Question {
        policies: args.policy.clone(),
        capacities,
        decays: asked.decays,
        inputs,
        blocking: !args.no_blocking,
        until_trace_end: args.until == Until::TraceEnd,
        jobs: JobRules { placement: args.placement, backfill: args.backfill },
    })
}

/// The weights of a file, or 1 each.
pub(crate) fn weights(path: Option<&Path>, workload: &Workload, console: &Console) -> Result<Weights, Failure> {
    let Some(path) = path else { return Ok(Weights::equal(workload.users().len())) };
    let (weights, unknown) = read_weights(path, workload.users()).map_err(Failure::document)?;
    if !unknown.is_empty() {
        console.note(&format!("{}: not in the workload: {}", path.display(), unknown.join(", ")));
    }
    Ok(weights)
}

pub(crate) fn capacity_text(text: &str) -> Result<CapacityText, Failure> {
    match Quantity::parse(text) {
        Ok(factor) if !factor.is_zero() => Ok(CapacityText::Multiple(text.to_string(), factor)),
        Err(_) if Path::new(text).exists() => Ok(CapacityText::File(text.into())),
        _ => {
            let expected = "a number greater than 0 (a multiple of the workload's mean use) or a file with a [pool] or [[machines]]";
            Err(wrong("--capacity", text, expected))
        }
    }
}

/// A multiple of R, or a file with a pool.
pub(crate) fn capacity(asked: CapacityText, workload: &Workload, console: &Console) -> Result<CapacityAsked, Failure> {
    let path = match asked {
        CapacityText::Multiple(text, factor) => return Ok(CapacityAsked::Multiple(text, factor)),
        CapacityText::File(path) => path,
    };
    let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    if let Some(cluster) = read_cluster(&path).map_err(Failure::document)? {
        return Ok(CapacityAsked::Machines(name, cluster));
    }
    let (units, unknown) = read_pool(&path, workload.resources()).map_err(Failure::document)?;
    if !unknown.is_empty() {
        console.note(&format!(
            "{}: the workload has no {}, so that part of the pool stays unused",
            path.display(),
            unknown.join(", ")
        ));
    }
    Ok(CapacityAsked::Pool(name, units))
}

fn decays(args: &StudyArgs) -> Result<Vec<(String, Decay)>, Failure> {
    if !args.half_life.is_empty() {
        return args.half_life.iter().map(|text| Ok((text.clone(), decay::of_half_life(text)?))).collect();
    }
    let default = [decay::DEFAULT_DELTA.to_string()];
    let deltas = if args.delta.is_empty() { &default[..] } else { &args.delta };
    deltas.iter().map(|text| Ok((text.clone(), decay::of_delta(text)?))).collect()
}

/// The first Ctrl-C stops the runs and leaves what is finished usable; the second stops at once.
fn stop_on_interrupt(live: &Arc<Live>) -> Result<(), Failure> {
    let live = Arc::clone(live);
    let mut before = false;
    ctrlc::set_handler(move || {
        if std::mem::replace(&mut before, true) {
            std::process::exit(3);
        }
        live.cancel();
    })
    .map_err(|e| Failure::Environment(format!("cannot listen for Ctrl-C: {e}")))
}

fn method(args: &StudyArgs, question: &Question, common: &Common) -> Result<MethodRecord, Failure> {
    let PolicyInputs { registry, settings, .. } = &question.inputs;
    let names = |list: &[String]| list.join(", ");
    let decays: Vec<String> =
        question.decays.iter().map(|(_, d)| format!("delta = {} a second, tau = {} s", d.delta(), d.tau_s())).collect();
    let parameter = |name: &str, value: String| (name.to_string(), value);
    let mut parameters = vec![
        parameter("policies", names(&args.policy)),
        parameter("capacities", names(&args.capacity)),
        parameter("decay of stateful policies", decays.join("; ")),
    ];
    parameters.extend(args.policies.first_parameters(registry, settings, &args.policy)?);
    parameters.extend([
        match &args.accounts {
            None => parameter("weights", args.weights.as_ref().map_or("1 each".into(), |p| p.display().to_string())),
            Some(path) => parameter("accounts", path.display().to_string()),
        },
        parameter(
            "a task that does not fit",
            if args.no_blocking { "sets its user aside, the next user is tried" } else { "stops scheduling" }.into(),
        ),
        parameter("backfilling", question.jobs.backfill_name().into()),
        parameter("placement on machines", question.jobs.placement_name().into()),
        parameter(
            "a run ends",
            match args.until {
                Until::Finished => "when every accepted task has finished".into(),
                Until::TraceEnd => "at the last event of the trace".into(),
            },
        ),
        parameter("structure that orders users of stateful policies", args.order.name().into()),
    ]);
    parameters.extend(args.policies.other_parameters(registry, settings, &args.policy)?);
    if args.workload.is_none() {
        parameters.push(parameter("seed", common.seed().to_string()));
    }
    Ok(MethodRecord { command: command_line(), version: env!("CARGO_PKG_VERSION").to_string(), parameters })
}

/// What was typed, quoted for a shell where it must be; the program by its name.
fn command_line() -> String {
    let quoted = |argument: String| {
        let plain = |c: char| c.is_alphanumeric() || "-_./,=:+@%".contains(c);
        if !argument.is_empty() && argument.chars().all(plain) {
            return argument;
        }
        format!("'{}'", argument.replace('\'', "'\\''"))
    };
    let arguments = std::env::args_os().skip(1).map(|a| quoted(a.to_string_lossy().into_owned()));
    std::iter::once("evenhand".to_string()).chain(arguments).collect::<Vec<_>>().join(" ")
}

fn summary(record: &StudyRecord) -> String {
    let w = &record.workload;
    let mean_use: Vec<String> = w
        .mean_use
        .iter()
        .map(|(name, value)| {
            format!("{name} {} {}", short(*value), w.units.get(name).map_or("", |u| u)).trim_end().to_string()
        })
        .collect();
    let mut table = Table::new(
        2,
        [
            "capacity",
            "policy",
            "mean wait s",
            "users' mean s",
            "utilisation",
            "Jain",
            "better",
            "worse",
            "completed",
            "M tasks/s",
        ],
    );
    for run in &record.runs {
        let comparison = record.comparisons.iter().find(|c| c.run == run.id);
        let against = |count: Option<u64>| count.map_or("-".into(), |c| c.to_string());
        table.row(vec![
            capacity_name(run),
            policy_name(run, record),
            run.mean_wait_s.map_or("-".into(), short),
            run.users_mean_wait_s.map_or("-".into(), short),
            utilisation(run),
            run.jain_wait.map_or("-".into(), |j| format!("{j:.3}")),
            against(comparison.map(|c| c.users_better)),
            against(comparison.map(|c| c.users_worse)),
            run.totals.completed.to_string(),
            format!("{:.1}", run.totals.started as f64 / run.elapsed_s.max(1e-9) / 1e6),
        ]);
    }
    format!(
        "{} tasks of {} users over {:.1} days; mean use R: {}\n\n{}\n\nbetter, worse: users whose mean wait is lower or higher than under {} at the same capacity",
        w.tasks,
        w.users,
        w.span_s / 86_400.0,
        mean_use.join(", "),
        table.render(),
        record.runs.first().map_or("the first policy", |r| &r.policy)
    )
}

fn capacity_name(run: &RunRecord) -> String {
    if run.capacity_factor.is_some() { format!("{} R", run.capacity_name) } else { run.capacity_name.clone() }
}

/// With the decay where one study has several.
fn policy_name(run: &RunRecord, record: &StudyRecord) -> String {
    let alike = |r: &&RunRecord| r.policy == run.policy && r.capacity_name == run.capacity_name;
    match (run.delta, record.runs.iter().filter(alike).count()) {
        (Some(delta), n) if n > 1 => format!("{} {delta}", run.policy),
        _ => run.policy.clone(),
    }
}

fn utilisation(run: &RunRecord) -> String {
    let each = run.utilization.iter().map(|(name, u)| format!("{name} {:.0} %", 100.0 * u));
    each.collect::<Vec<_>>().join(", ")
}

/// Four digits, more for large numbers.
pub(crate) fn short(value: f64) -> String {
    match value.abs() {
        v if v == 0.0 || v >= 1000.0 => format!("{value:.0}"),
        v if v >= 1.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}
