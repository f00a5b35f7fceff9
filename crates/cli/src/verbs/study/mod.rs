//! `evenhand study`

mod class_table;
mod earlier_runs;
mod machine_lines;
mod memory_not_counted;
mod noise_table;
mod nuwt_table;
mod options_without_effect;
mod question;
pub(crate) mod site_folder;
#[cfg(feature = "slurm")]
mod slurm_settings;
mod trust_lines;
mod winners_and_losers;
mod work_table;

use std::sync::Arc;

use evenhand_model::memory::format_size;
use evenhand_model::{AccountTree, Workload, counted};
use evenhand_policies::{Decay, PolicySettings, Registry, SITE_RULE, SiteConfiguration};
use evenhand_study::record::{MethodRecord, RunRecord, StudyRecord};
use evenhand_study::{
    AccountsFile, Arrivals, Backfill, DEFAULT_REPEATS, JobRules, Live, PLACEMENTS, Plan, PlanError, PolicyInputs,
    Repeats, RequestedCapacity, SlurmOptions, StudyRequest, TaskFormat, Vary,
};
use evenhand_workload::generate::{GenerateOptions, TraceModel, generate};

use crate::arguments::decay;
use crate::arguments::policy_settings::policy_failure;
use crate::arguments::{Common, Release, StudyArgs, Until};
use crate::failure::Failure;
use crate::inputs::memory::{memory_limit, runs_at_a_time};
use crate::inputs::release::{released, wait_from};
use crate::inputs::weights_and_accounts::{note_mismatches, read_weights_or_equal};
use crate::inputs::workloads::read_workload;
use crate::output::console::{Console, to_json};
use crate::output::fold_lines::{COLUMNS, fold_lines, table_width};
use crate::output::human_units;
use crate::output::numbers::rounded;
use crate::output::progress::run_with_progress;
use crate::output::table::Table;
use crate::output::write_files::lock_folder;
use earlier_runs::note_earlier_runs;
use question::{GivenQuestion, Question, refuse_machine_options};
use site_folder::with_site_folder;

/// Size of the workload that a study without a workload generates: small enough for a first run, large enough for queues
/// that build and drain.
const DEFAULT_TASKS: u64 = 200_000;
const DEFAULT_USERS: u32 = 100;
const DEFAULT_DAYS: f64 = 29.0;

/// What is known of the site's own scheduler.
#[derive(Default)]
struct SiteScheduler {
    options: SlurmOptions,
    configuration: Option<SiteConfiguration>,
    /// Whether its Slurm does not count memory.
    leaves_memory_out: bool,
}

impl SiteScheduler {
    #[cfg(feature = "slurm")]
    fn read(args: &StudyArgs, console: &Console) -> Result<SiteScheduler, Failure> {
        slurm_settings::read(args, console)
    }

    #[cfg(not(feature = "slurm"))]
    fn read(_: &StudyArgs, _: &Console) -> Result<SiteScheduler, Failure> {
        Ok(SiteScheduler::default())
    }

    /// The policies of a program, and the site's own rule where it is known.
    fn policies(&self, registry: &Registry) -> Result<Registry, Failure> {
        match self.configuration {
            Some(_) => registry.clone().with(SITE_RULE).map_err(policy_failure),
            None => Ok(registry.clone()),
        }
    }
}

pub(crate) fn run(args: &StudyArgs, common: &Common, registry: &Registry, console: &Console) -> Result<(), Failure> {
    console.refuse_table_options(&[
        ("--seconds", args.seconds),
        ("--verbose", args.verbose),
        ("--classes", args.classes),
    ])?;
    let args = &with_site_folder(args, console)?;
    // Reading a trace may take minutes, so the options are checked first.
    if !args.vary.is_empty() && args.repeat == Some(1) {
        return Err(Failure::Input(
            "--vary: says what varies between repeats, and --repeat 1 is none; give --repeat 10".into(),
        ));
    }
    let scheduler = SiteScheduler::read(args, console)?;
    let registry = &scheduler.policies(registry)?;
    let options = CheckedOptions::parse(args, registry)?;
    let (workload, source) = workload(args, common, console)?;
    let workload = match scheduler.leaves_memory_out {
        true => memory_not_counted::leave_memory_out(workload, console)?,
        false => workload,
    };
    let (workload, accounts) = place_in_accounts(args, workload, console)?;
    let CheckedOptions { question, decays, settings } = options;
    let question = question.complete(args, registry, &workload, console)?;
    #[cfg(feature = "slurm")]
    slurm_settings::note_if_unused(args, &question, scheduler.leaves_memory_out, console);
    let release = args.release.unwrap_or(match question.scheduler {
        Backfill::Slurm => Release::Eligible,
        _ => Release::Submit,
    });
    let workload = released(workload, release, args.release.is_some(), console);
    let machines = |capacity: &RequestedCapacity| matches!(capacity, RequestedCapacity::Machines(..));
    if !question.capacities.iter().any(machines) {
        refuse_machine_options(args)?;
    }
    if question.scheduler == Backfill::Slurm {
        refuse_for_slurm(args, &question, machines)?;
    }
    let limit = memory_limit(args.trace.memory);
    let at_a_time = runs_at_a_time(&source, workload.tasks(), limit)?;
    let inputs = policy_inputs(args, settings, accounts, registry, &workload, console)?;
    let cluster = question.capacities.iter().find_map(|capacity| match capacity {
        RequestedCapacity::Machines(_, cluster) => Some(cluster),
        _ => None,
    });
    let site = scheduler.configuration.map(|site| match cluster {
        Some(cluster) => site.with_cluster(cluster),
        None => site,
    });
    let inputs = PolicyInputs { site, ..inputs };
    let capacities: Vec<String> = question.capacity_names.iter().map(|name| console.stated(name.as_ref())).collect();
    let capacities = capacities.join(", ");
    let request = study_request(args, question, decays, inputs, scheduler.options);
    let plan = Plan::new(workload, &request).map_err(|error| match error {
        PlanError::Policy(error) => policy_failure(error),
        error => Failure::input(error),
    })?;
    let plan = plan.with_arrivals(args.arrivals).map_err(Failure::input)?;
    let repeats = repeats(args, common, &plan);
    let mut plan = plan.repeated(repeats.clone()).map_err(Failure::input)?;
    plan.list_all_users = args.list_all_users;
    plan.notes().iter().for_each(|note| console.note(note));
    let live = Arc::new(Live::new(&plan));
    let runs = Arc::clone(&live);
    // Finished runs stay usable.
    console.stop_on_interrupt(move || runs.cancel())?;
    let format = match (args.tasks_csv, args.no_tasks) {
        (true, _) => TaskFormat::Csv,
        (_, true) => TaskFormat::None,
        _ if cfg!(not(feature = "formats")) => {
            console.note("Tasks are written as CSV: this evenhand was built without Parquet, the feature `formats`.");
            TaskFormat::Csv
        }
        _ => TaskFormat::Parquet,
    };
    let method = method(args, &request, release, capacities, &repeats, common, console)?;
    let _lock = lock_folder(&args.out)?;
    let threads = rayon::current_num_threads().min(plan.runs.len()).max(1);
    if at_a_time < threads {
        console.note(&format!(
            "{at_a_time} of {} runs at a time, because more do not fit in {} of memory ({}).",
            plan.runs.len(),
            format_size(limit.bytes),
            limit.reason
        ));
    }
    let threads = threads.min(at_a_time);
    let pool = match console.host() {
        Some(host) => host.thread_pool(threads),
        None => rayon::ThreadPoolBuilder::new().num_threads(threads).build(),
    };
    let pool = pool.map_err(|e| Failure::Environment(format!("cannot start threads: {e}; pass fewer --threads")))?;
    let record = run_with_progress(&live, plan.tasks(), console, || {
        pool.install(|| plan.run(&args.out, &source, method, format, &live))
    })
    .map_err(|e| Failure::new(&e, e.is_environment()))?;
    for (run, why) in live.runs.iter().filter_map(|run| Some((&run.id, run.damage()?))) {
        console.note(&format!("Run {run} was in the folder and is done again: {why}."));
    }
    let report =
        evenhand_report::write_study_report(&args.out, &record).map_err(|e| Failure::Environment(e.to_string()))?;
    note_earlier_runs(&plan, &args.out, console);
    if console.is_json() {
        let text = to_json(&record.summary(args.list_all_users))?;
        console.result(&text)?;
    } else {
        let names = |run: &RunRecord| [capacity_name(run), policy_name(run, &record)];
        let mut text = table(&record, args);
        if args.verbose {
            text += &nuwt_table::table(&record, names);
        }
        if args.classes {
            let wait = |s: f64| if args.seconds { rounded(s) } else { human_units::duration(s) };
            text += &class_table::table(&record, names, wait, against(&record));
        }
        text += &machine_lines::lines(&record);
        text += &fold_lines(&trust_lines::lines(&record), COLUMNS, "       ");
        console.result(&text)?;
        console.result(&format!("\nReport: {}", report.index.display()))?;
        if let Some(cost) =
            noise_table::cost(&record, rayon::current_num_threads()).filter(|_| console.shows_progress())
        {
            console.note(&cost);
        }
    }
    match record.missing.as_slice() {
        [] => match &record.repeats {
            Some(repeats) if repeats.done < repeats.asked => Err(Failure::Environment(format!(
                "interrupted; the intervals are from {} of {} repeats. Run the same command again to finish: finished \
                 repeats are kept",
                repeats.done, repeats.asked
            ))),
            _ => Ok(()),
        },
        missing => Err(Failure::Environment(format!(
            "interrupted; the report has {} of {} runs, without {}. Run the same command again to finish: finished runs are kept",
            record.runs.len(),
            record.runs.len() + missing.len(),
            missing.join(", ")
        ))),
    }
}

/// Slurm's scheduler plans nodes, and chooses them itself.
fn refuse_for_slurm(
    args: &StudyArgs,
    question: &Question,
    machines: impl Fn(&RequestedCapacity) -> bool,
) -> Result<(), Failure> {
    if !question.capacities.iter().all(machines) {
        let problem = "--scheduler slurm: it plans whole nodes, and the capacity has none; give --site SITE, or --capacity FILE with [[machines]]";
        return Err(Failure::Input(problem.into()));
    }
    match args.placement {
        Some(_) => Err(Failure::Input("--placement: Slurm chooses nodes by its own rule; leave it out".into())),
        None => Ok(()),
    }
}

/// Reads or generates the workload; also returns a description of its source.
fn workload(args: &StudyArgs, common: &Common, console: &Console) -> Result<(Workload, String), Failure> {
    if let Some(path) = &args.workload {
        return Ok((read_workload(path, &args.trace, common, console)?, console.stated(path)));
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
    console.note(&format!("No workload given; it is {source}."));
    Ok((generate(&options).map_err(Failure::input)?, source))
}

/// Options that are checked before the workload is read.
struct CheckedOptions {
    question: GivenQuestion,
    decays: Vec<(String, Decay)>,
    settings: PolicySettings,
}

impl CheckedOptions {
    fn parse(args: &StudyArgs, registry: &Registry) -> Result<CheckedOptions, Failure> {
        let question = GivenQuestion::parse(args, registry)?;
        Ok(CheckedOptions { question, decays: decays(args)?, settings: args.policies.settings(registry)? })
    }
}

/// Places the workload's users in the accounts of the file, if there is one.
fn place_in_accounts(
    args: &StudyArgs,
    workload: Workload,
    console: &Console,
) -> Result<(Workload, Option<AccountTree>), Failure> {
    let Some(path) = &args.accounts else { return Ok((workload, None)) };
    let placed = AccountsFile::read(path).and_then(|file| file.place(workload)).map_err(Failure::document)?;
    note_mismatches(path, &placed, console);
    Ok((placed.workload, Some(placed.tree)))
}

fn policy_inputs(
    args: &StudyArgs,
    settings: PolicySettings,
    accounts: Option<AccountTree>,
    registry: &Registry,
    workload: &Workload,
    console: &Console,
) -> Result<PolicyInputs, Failure> {
    let weights = match &accounts {
        Some(tree) => tree.weights(),
        None => read_weights_or_equal(args.weights.as_deref(), workload, console)?,
    };
    Ok(PolicyInputs { registry: registry.clone(), weights, accounts, settings, order: args.order, site: None })
}

fn study_request(
    args: &StudyArgs,
    question: Question,
    decays: Vec<(String, Decay)>,
    inputs: PolicyInputs,
    slurm: SlurmOptions,
) -> StudyRequest {
    StudyRequest {
        policies: question.policies,
        against: args.against.clone(),
        capacities: question.capacities,
        decays,
        inputs,
        blocking: !args.no_blocking,
        until_trace_end: args.until == Until::TraceEnd,
        jobs: JobRules {
            placement: args.placement.unwrap_or(PLACEMENTS[0].1),
            backfill: question.scheduler,
            layout: args.layout,
            slurm,
        },
    }
}

/// Returns how often the runs of `plan` are repeated, and what varies.
fn repeats(args: &StudyArgs, common: &Common, plan: &Plan) -> Repeats {
    let vary = match (args.vary.as_slice(), args.arrivals) {
        ([], Arrivals::Clock) => vec![Vary::Ties, Vary::Arrivals],
        // Submissions follow from what users wait for.
        ([], _) => vec![Vary::Ties],
        (vary, _) => vary.to_vec(),
    };
    // What varies is given for a reason, however long the repeats take.
    let default = || if args.vary.is_empty() { plan.default_repeats() } else { DEFAULT_REPEATS };
    Repeats { count: args.repeat.unwrap_or_else(default), vary, seed: common.seed() }
}

fn decays(args: &StudyArgs) -> Result<Vec<(String, Decay)>, Failure> {
    let default = [decay::DEFAULT_DELTA.to_string()];
    let deltas = if args.delta.is_empty() { &default[..] } else { &args.delta };
    let is_delta = args.half_life.is_empty();
    let (option, texts) = if is_delta { ("--delta", deltas) } else { ("--half-life", args.half_life.as_slice()) };
    let mut found: Vec<(String, Decay)> = Vec::new();
    for text in texts {
        let decay = if is_delta { decay::parse_delta(text)? } else { decay::parse_half_life(text)? };
        if let Some((same, _)) = found.iter().find(|(_, other)| *other == decay) {
            return Err(Failure::Input(format!("{option}: {same} and {text} are the same, expected each once")));
        }
        found.push((text.clone(), decay));
    }
    Ok(found)
}

fn method(
    args: &StudyArgs,
    request: &StudyRequest,
    release: Release,
    capacities: String,
    repeats: &Repeats,
    common: &Common,
    console: &Console,
) -> Result<MethodRecord, Failure> {
    let PolicyInputs { registry, settings, .. } = &request.inputs;
    let names = |list: &[String]| list.join(", ");
    let decays: Vec<String> =
        request.decays.iter().map(|(_, d)| format!("delta = {} a second, tau = {} s", d.delta(), d.tau_s())).collect();
    let parameter = |name: &str, value: String| (name.to_string(), value);
    let mut parameters = vec![
        parameter("policies", names(&request.policies)),
        parameter("capacities", capacities),
        parameter("decay of stateful policies", decays.join("; ")),
    ];
    parameters.extend(args.policies.general_parameters(registry, settings, &request.policies)?);
    parameters.extend([
        match &args.accounts {
            None => parameter("weights", args.weights.as_ref().map_or("1 each".into(), |path| console.stated(path))),
            Some(path) => parameter("accounts", console.stated(path)),
        },
        parameter(
            "a task that does not fit",
            if args.no_blocking { "sets its user aside, the next user is tried" } else { "stops scheduling" }.into(),
        ),
        parameter("scheduler", request.jobs.scheduler_name()),
        parameter("jobs wait from", wait_from(release).into()),
        parameter(
            "placement on machines",
            match request.jobs.backfill {
                Backfill::Slurm => "Slurm's".into(),
                _ => request.jobs.placement_name().into(),
            },
        ),
        parameter("layout of jobs on machines", request.jobs.layout.to_string()),
        parameter(
            "a run ends",
            match args.until {
                Until::Finished => "when every accepted task has finished".into(),
                Until::TraceEnd => "at the last event of the trace".into(),
            },
        ),
        parameter("structure that orders users of stateful policies", args.order.name().into()),
    ]);
    parameters.extend(args.policies.specific_parameters(registry, settings, &request.policies)?);
    if args.arrivals != Arrivals::Clock {
        parameters.push(parameter("arrivals", args.arrivals.name().into()));
    }
    if repeats.count > 1 {
        let Repeats { count, vary, .. } = repeats;
        let vary: Vec<&str> = vary.iter().map(|vary| vary.name()).collect();
        parameters.push(parameter("repeats", format!("{count}, in which vary: {}", vary.join(", "))));
    }
    if args.workload.is_none() || repeats.count > 1 {
        parameters.push(parameter("seed", common.seed().to_string()));
    }
    Ok(MethodRecord {
        command: console.command().to_string(),
        version: env!("CARGO_PKG_VERSION").to_string(),
        parameters,
    })
}

fn table(record: &StudyRecord, args: &StudyArgs) -> String {
    let w = &record.workload;
    let unit = |name: &str| w.units.get(name).map_or("", |unit| unit.as_str());
    let mean_use: Vec<String> =
        w.mean_use.iter().map(|(name, value)| format!("{name} {}", human_units::amount(*value, unit(name)))).collect();
    let (mean, users) = if args.seconds { ("mean wait s", "users' mean s") } else { ("mean wait", "users' mean") };
    let wait = |seconds: Option<f64>| match seconds {
        None => "-".into(),
        Some(seconds) if args.seconds => rounded(seconds),
        Some(seconds) => human_units::duration(seconds),
    };
    let is_repeated = record.repeats.is_some();
    let mut header = vec!["capacity", "policy", mean, users, "utilisation", "Jain", "better", "worse"];
    header.extend(is_repeated.then_some("noise"));
    header.push("completed");
    header.extend(args.verbose.then_some("M tasks/s"));
    let mut table = Table::new(2, header);
    for run in &record.runs {
        let comparison = record.comparisons.iter().find(|c| c.run == run.id);
        let count_of = |count: Option<u64>| count.map_or("-".into(), |c| c.to_string());
        let mark = if comparison.is_some_and(noise_table::within_noise) { noise_table::WITHIN_NOISE } else { "" };
        let mut row = vec![
            capacity_name(run),
            policy_name(run, record),
            wait(run.mean_wait_s),
            wait(run.users_mean_wait_s) + mark,
            utilisation(run),
            run.jain_wait.map_or("-".into(), |j| format!("{j:.3}")),
            count_of(comparison.map(|c| c.users_better_beyond_noise.unwrap_or(c.users_better))),
            count_of(comparison.map(|c| c.users_worse_beyond_noise.unwrap_or(c.users_worse))),
        ];
        row.extend(is_repeated.then(|| count_of(comparison.and_then(noise_table::users_within_noise))));
        row.push(run.totals.completed.to_string());
        // What happened was not simulated.
        let speed = || {
            let simulated = run.scheduler.as_ref();
            simulated
                .map_or("-".into(), |_| format!("{:.1}", run.totals.started as f64 / run.elapsed_s.max(1e-9) / 1e6))
        };
        row.extend(args.verbose.then(speed));
        table.row(row);
    }
    let table = table.fit(table_width(), &["completed", "Jain"]);
    let baseline = against(record);
    let length = human_units::period(w.span_s);
    let (tasks, users) = (counted(w.tasks, "task", "tasks"), counted(w.users, "user", "users"));
    let head = format!("{tasks} of {users} over {length}; mean use R: {}", mean_use.join(", "));
    let mut meaning =
        format!("better, worse: users whose mean wait falls or rises against {baseline} at the same capacity");
    if is_repeated {
        meaning += " beyond the noise; noise: users whose mean wait differs within it; ~: the mean over users does";
    }
    let mut text =
        format!("{}\n\n{}\n\n{}", fold_lines(&head, COLUMNS, "  "), table.render(), fold_lines(&meaning, COLUMNS, ""));
    if is_repeated {
        let names = |run: &RunRecord| [capacity_name(run), policy_name(run, record)];
        text += &noise_table::table(record, names, |seconds| wait(Some(seconds)), baseline);
    }
    text +=
        &work_table::table(record, |run| [capacity_name(run), policy_name(run, record)], |s| wait(Some(s)), baseline);
    text += &winners_and_losers::lines(record, |seconds| wait(Some(seconds)), policy_name, capacity_name);
    text
}

/// Returns the policy with which the others are compared.
fn against(record: &StudyRecord) -> &str {
    let id = record.comparisons.first().map(|comparison| &comparison.against);
    let run = id.and_then(|id| record.runs.iter().find(|run| run.id == *id)).or(record.runs.first());
    run.map_or("the first policy", |run| &run.policy)
}

fn capacity_name(run: &RunRecord) -> String {
    if run.capacity_factor.is_some() { format!("{} R", run.capacity_name) } else { run.capacity_name.clone() }
}

/// Returns the policy's name, with the discount if the study has several.
fn policy_name(run: &RunRecord, record: &StudyRecord) -> String {
    let alike = |r: &&RunRecord| r.policy == run.policy && r.capacity_name == run.capacity_name;
    match (run.delta, record.runs.iter().filter(alike).count()) {
        (Some(delta), n) if n > 1 => match &run.half_life {
            Some(half_life) => format!("{} {half_life}", run.policy),
            None => format!("{} {delta}", run.policy),
        },
        _ => run.policy.clone(),
    }
}

fn utilisation(run: &RunRecord) -> String {
    let each = run.utilization.iter().map(|(name, u)| format!("{name} {:.0} %", 100.0 * u));
    each.collect::<Vec<_>>().join(", ")
}
