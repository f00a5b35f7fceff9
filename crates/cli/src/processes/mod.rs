//! `evenhand processes`

mod files;
mod shown;

use std::path::{Path, PathBuf};

use evenhand_documents::Document;
use evenhand_model::{Quantity, Span, Time};
use evenhand_processes::{
    BottleneckInterval, Ensemble, Outcome, Parameters, Reading, Recording, SCHEDULERS, Scenario, SchedulerRegistration,
    Statistic, SteadyState, SteadyStateError, compare_steady_state, ensemble, read_programs, read_scenario,
    scheduler_named,
};

use crate::args::{Common, ProcessesArgs};
use crate::console::Console;
use crate::failure::Failure;

/// Under one scheduler: all runs, and the first one whole.
pub(crate) struct Ran {
    pub(crate) scheduler: &'static SchedulerRegistration,
    pub(crate) scenario: Scenario,
    pub(crate) ensemble: Ensemble,
    pub(crate) first: Outcome,
    pub(crate) recording: Recording,
    /// What the scenario's own run settled into, or why that is not known.
    pub(crate) settled: Result<SteadyState, SteadyStateError>,
}

/// Points of a mean curve.
const POINTS: u64 = 400;

pub(crate) fn run(args: &ProcessesArgs, common: &Common, console: &Console) -> Result<(), Failure> {
    let scenario = read(&args.inputs)?;
    let parameters = parameters(args, common, scenario.parameters())?;
    let schedulers = schedulers(&args.scheduler, &parameters)?;
    if args.check {
        return console.result(&shown::explained(&with(&scenario, &parameters)?, console.is_json())?);
    }
    let mut all = Vec::new();
    for scheduler in schedulers {
        let rules = Parameters { scheduler: scheduler.name.to_string(), ..parameters.clone() };
        all.push(ran(scheduler, with(&scenario, &rules)?, args.runs as usize, args.out.is_some()));
    }
    let text = if console.is_json() { shown::json(&all)? } else { shown::tables(&all) };
    if let Some(folder) = &args.out {
        files::write(folder, &all)?;
    }
    console.result(&text)?;
    if let Some(folder) = &args.out {
        console.note(&format!("Page, figures and data: {}", folder.display()));
    }
    Ok(())
}

fn with(scenario: &Scenario, parameters: &Parameters) -> Result<Scenario, Failure> {
    scenario.with_parameters(parameters.clone()).map_err(Failure::input)
}

/// Programs that all start at 0 under the paper's rules, or a scenario.
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

/// What the command line says goes before what the scenario says.
fn parameters(args: &ProcessesArgs, common: &Common, own: &Parameters) -> Result<Parameters, Failure> {
    let mut parameters = own.clone();
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
    let own = [parameters.scheduler.clone()];
    let names = if names.is_empty() { &own } else { names };
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

/// One run has the scenario's own seed; of several, each has its own, and the first is kept whole.
fn ran(scheduler: &'static SchedulerRegistration, scenario: Scenario, runs: usize, is_drawn: bool) -> Ran {
    let seed = if runs == 1 { scenario.parameters().seed } else { scenario.run_seed(0) };
    let asked = if is_drawn { Recording::new().with_priorities() } else { Recording::new().merged() };
    let mut recording = asked;
    let first = scenario.observe(seed, &mut recording);
    recording.close(first.end);
    let step = Span::from_nanos((first.end.nanos() / POINTS).max(1));
    let ensemble = match runs {
        1 => of_one(&first),
        _ => ensemble(&scenario, runs, is_drawn.then_some(step)),
    };
    let settled = compare_steady_state(&scenario);
    Ran { scheduler, scenario, ensemble, first, recording, settled }
}

/// The statistics of one run.
fn of_one(outcome: &Outcome) -> Ensemble {
    let one = |value: Option<f64>| Statistic::of(value.into_iter());
    Ensemble {
        finish: outcome.finish.iter().map(|at| one(at.map(Time::secs_f64))).collect(),
        used: outcome.used.iter().map(|all| all.iter().map(|used| one(Some(used.secs_f64()))).collect()).collect(),
        outcomes: vec![outcome.clone()],
        curves: None,
    }
}

impl Ran {
    /// When the resource counted as a bottleneck, in the first run.
    pub(crate) fn bottlenecks(&self, resource: usize) -> Vec<&BottleneckInterval> {
        self.recording.bottlenecks.iter().filter(|b| b.resource as usize == resource).collect()
    }
}
