//! `evenhand processes`

mod check_length;
mod describe_programs;
mod record;
mod tables;
mod write_figures;

use std::path::{Path, PathBuf};

use evenhand_documents::Document;
use evenhand_model::{Quantity, Span, Time};
use evenhand_processes::{
    BottleneckInterval, Ensemble, Outcome, Parameters, Reading, Recording, SCHEDULERS, Scenario, SchedulerRegistration,
    Statistic, SteadyState, SteadyStateError, compare_steady_state, ensemble, read_programs, read_scenario,
    scheduler_named,
};

use crate::arguments::{Common, ProcessesArgs};
use crate::failure::Failure;
use crate::output::console::Console;

/// Runs of a scenario under one scheduler: statistics of all runs, and a recording of the first.
pub(crate) struct SchedulerRuns {
    pub(crate) scheduler: &'static SchedulerRegistration,
    pub(crate) scenario: Scenario,
    pub(crate) ensemble: Ensemble,
    pub(crate) first: Outcome,
    pub(crate) recording: Recording,
    /// Steady state of the run with the scenario's own seed, or why there is none to compare.
    pub(crate) settled: Result<SteadyState, SteadyStateError>,
}

/// Number of points of a mean curve.
const CURVE_POINTS: u64 = 400;

pub(crate) fn run(args: &ProcessesArgs, common: &Common, console: &Console) -> Result<(), Failure> {
    let scenario = read(&args.inputs)?;
    let parameters = parameters(args, common, scenario.parameters())?;
    let schedulers = schedulers(&args.scheduler, &parameters)?;
    if args.check {
        return console.result(&describe_programs::describe_programs(
            &with_parameters(&scenario, &parameters)?,
            console.is_json(),
        )?);
    }
    check_length::check_length(
        &with_parameters(&scenario, &parameters)?,
        schedulers.len(),
        args.runs,
        args.out.is_some(),
    )?;
    let mut all = Vec::new();
    for scheduler in schedulers {
        let rules = Parameters { scheduler: scheduler.name.to_string(), ..parameters.clone() };
        all.push(run_under(scheduler, with_parameters(&scenario, &rules)?, args.runs as usize, args.out.is_some()));
    }
    let text = if console.is_json() { record::to_record(&all)? } else { tables::tables(&all) };
    if let Some(folder) = &args.out {
        write_figures::write(folder, &all)?;
    }
    console.result(&text)?;
    if let Some(folder) = &args.out {
        console.note(&format!("Page, figures and data: {}", folder.display()));
    }
    Ok(())
}

fn with_parameters(scenario: &Scenario, parameters: &Parameters) -> Result<Scenario, Failure> {
    scenario.with_parameters(parameters.clone()).map_err(Failure::input)
}

/// Reads a scenario, or programs that all start at 0 with the paper's parameters.
fn read(inputs: &[PathBuf]) -> Result<Scenario, Failure> {
    let is_toml = |path: &PathBuf| path.extension().is_some_and(|e| e.eq_ignore_ascii_case("toml"));
    match inputs {
        [path] if is_toml(path) => {
            let document = Document::read(path).map_err(Failure::document)?;
            read_scenario(&document, path.parent().unwrap_or(Path::new(""))).map_err(Failure::document)
        }
        _ if inputs.iter().any(is_toml) => {
            Err(Failure::Input("found a scenario (.toml) beside other files, expected programs or one scenario".into()))
        }
        _ => {
            let clients = read_programs(inputs).map_err(Failure::document)?;
            Scenario::new(clients, Vec::new(), Parameters::default()).map_err(Failure::input)
        }
    }
}

/// Returns the parameters; options take precedence over the scenario's own.
fn parameters(args: &ProcessesArgs, common: &Common, of_scenario: &Parameters) -> Result<Parameters, Failure> {
    let mut parameters = of_scenario.clone();
    if let Some(name) = &args.reading {
        let found = Reading::ALL.into_iter().find(|reading| reading.name() == name);
        parameters.reading =
            found.ok_or_else(|| Failure::unknown("--reading", name, Reading::ALL.map(Reading::name)))?;
    }
    if let Some(text) = &args.horizon {
        parameters.horizon = Some(horizon(text)?);
    }
    parameters.seed = common.seed_given().unwrap_or(parameters.seed);
    Ok(parameters)
}

fn horizon(text: &str) -> Result<Time, Failure> {
    let nanos = Quantity::parse(text).ok().and_then(|q| q.nano());
    let span = Span::parse(text).ok().or_else(|| nanos.and_then(Span::checked_from_nanos));
    let span = span.filter(|s| *s > Span::ZERO);
    span.map(|s| Time::ZERO + s).ok_or_else(|| {
        Failure::Input(format!("--horizon {text}: expected seconds above 0 (100), or a duration (90s, 2h)"))
    })
}

fn schedulers(names: &[String], parameters: &Parameters) -> Result<Vec<&'static SchedulerRegistration>, Failure> {
    let default = [parameters.scheduler.clone()];
    let names = if names.is_empty() { &default } else { names };
    let mut found: Vec<&'static SchedulerRegistration> = Vec::new();
    for name in names {
        let scheduler = scheduler_named(name)
            .ok_or_else(|| Failure::unknown("--scheduler", name, SCHEDULERS.iter().map(|s| s.name)))?;
        if found.iter().any(|s| s.name == scheduler.name) {
            return Err(Failure::Input(format!("--scheduler: found {name:?} twice, expected each once")));
        }
        found.push(scheduler);
    }
    Ok(found)
}

/// Runs a scenario under a scheduler. A single run has the scenario's own seed; of several runs, each has its own seed, and
/// the first is recorded.
fn run_under(
    scheduler: &'static SchedulerRegistration,
    scenario: Scenario,
    runs: usize,
    is_drawn: bool,
) -> SchedulerRuns {
    let seed = if runs == 1 { scenario.parameters().seed } else { scenario.run_seed(0) };
    let mut recording = if is_drawn { Recording::new().with_priorities() } else { Recording::new().without_services() };
    let first = scenario.observe(seed, &mut recording);
    recording.close(first.end);
    let step = Span::from_nanos((first.end.nanos() / CURVE_POINTS).max(1));
    let ensemble = match runs {
        1 => single_run(&first),
        _ => ensemble(&scenario, runs, is_drawn.then_some(step)),
    };
    let settled = compare_steady_state(&scenario);
    SchedulerRuns { scheduler, scenario, ensemble, first, recording, settled }
}

/// Returns the statistics of a single run.
fn single_run(outcome: &Outcome) -> Ensemble {
    let one = |value: Option<f64>| Statistic::of(value.into_iter());
    Ensemble {
        finish: outcome.finish.iter().map(|at| one(at.map(Time::secs_f64))).collect(),
        used: outcome.used.iter().map(|all| all.iter().map(|used| one(Some(used.secs_f64()))).collect()).collect(),
        outcomes: vec![outcome.clone()],
        curves: None,
    }
}

impl SchedulerRuns {
    /// Returns when the resource was a bottleneck in the first run.
    pub(crate) fn bottlenecks(&self, resource: usize) -> Vec<&BottleneckInterval> {
        self.recording.bottlenecks.iter().filter(|b| b.resource as usize == resource).collect()
    }

    /// Returns the mean fraction of a resource's time that a process used.
    pub(crate) fn share(&self, client: usize, resource: usize) -> f64 {
        let servers = f64::from(self.scenario.resources()[resource].servers);
        let of = |o: &Outcome| match o.end.secs_f64() {
            0.0 => 0.0,
            end => o.used[client][resource].secs_f64() / end / servers,
        };
        Statistic::of(self.ensemble.outcomes.iter().map(of)).mean
    }

    /// Returns how long a process waited, in seconds.
    pub(crate) fn waited(&self, client: usize) -> Statistic {
        Statistic::of(self.ensemble.outcomes.iter().map(move |o| o.waited[client].secs_f64()))
    }
}
