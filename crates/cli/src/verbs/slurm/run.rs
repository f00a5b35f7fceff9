//! `evenhand slurm run`

use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use evenhand_model::Span;
use evenhand_policies::Registry;
use evenhand_slurm::queue_driver::{
    COMMAND_LIMIT, DriveError, DriveOptions, Driver, EXIT_LIMIT, SavedState, SavedStateError, TickOutcome,
    longest_silence,
};
use evenhand_slurm::{Call, CommandError, Commands, Configuration, LocalCommands, PlanOptions};
use serde::Serialize;

use super::prometheus_metrics::metrics;
use super::release::restored_sentence;
use super::{parse_time, plan_options, read_failure};
use crate::arguments::SlurmRunArgs;
use crate::failure::{Failure, Outcome};
use crate::interrupts::{SecondSignal, ignore_signals_without_meaning, on_interrupt};
use crate::output::console::Console;
use crate::output::serve_metrics;
use crate::service_manager::ServiceManager;

/// The time limit of a command at the end: a hung query leaves time for a write.
const EXIT_COMMAND_LIMIT: Duration = Duration::from_secs(3);
/// The part of [`EXIT_LIMIT`] for everything but commands.
const EXIT_RESERVE: Duration = Duration::from_secs(2);

/// One update, as a line of JSON.
#[derive(Debug, Serialize)]
struct UpdateRecord<'a> {
    at_s: f64,
    waiting: usize,
    running: usize,
    places: usize,
    changes: usize,
    put_back: usize,
    left: usize,
    left_alone: usize,
    applied: bool,
    took_s: f64,
    refused: Option<&'a str>,
    error: Option<String>,
}

/// Totals since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) looks: u64,
    pub(super) changes: u64,
    pub(super) errors: u64,
}

/// The text of the metrics, which each update replaces while it is served.
#[derive(Clone, Debug, Default)]
struct Page(Arc<Mutex<String>>);

impl Page {
    fn set(&self, text: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }

    fn get(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Commands each of which is reported when it has ended: an update has many, and each has a limit of its own.
struct ReportedCommands<'a> {
    commands: LocalCommands,
    manager: &'a ServiceManager,
}

impl Commands for ReportedCommands<'_> {
    fn run(&self, call: &Call) -> Result<String, CommandError> {
        let output = self.commands.run(call);
        self.manager.progressed();
        output
    }
}

/// What the options state.
pub(crate) struct RunSettings {
    plan: PlanOptions,
    /// How far back finished jobs count.
    memory: Span,
    interval: Duration,
    give_up: Duration,
}

impl RunSettings {
    /// Reads the options, without Slurm.
    pub(crate) fn read(args: &SlurmRunArgs, registry: &Registry) -> Result<RunSettings, Failure> {
        let (plan, memory) = plan_options::plan_options(&args.order, registry, args.depth)?;
        let span = |option: &str, text: &str| {
            let span = Span::parse(text).map_err(|e| Failure::Input(format!("{option}: {e}")))?;
            if span < Span::from_secs(1) {
                return Err(Failure::Input(format!("{option}: found {text}, expected at least 1s")));
            }
            Ok(Duration::from_nanos(span.nanos()))
        };
        let (interval, give_up) = (span("--interval", &args.interval)?, span("--give-up", &args.give_up)?);
        Ok(RunSettings { plan, memory, interval, give_up })
    }
}

pub(super) fn run(args: &SlurmRunArgs, registry: &Registry, console: &Console) -> Result<Outcome, Failure> {
    let RunSettings { plan, memory, interval, give_up } = RunSettings::read(args, registry)?;
    let (signal, signalled) = channel();
    ignore_signals_without_meaning()?;
    let stop = on_interrupt(SecondSignal::IsIgnored, move || _ = signal.send(()))?;
    let manager = ServiceManager::of_process();
    let commands = LocalCommands { timeout: COMMAND_LIMIT, stop: stop.clone(), ..LocalCommands::default() };
    let slurm = ReportedCommands { commands, manager: &manager };
    // Made when everything is restored, since its deadline begins then.
    let at_exit = OnceLock::new();
    let configuration = Configuration::read(&slurm).map_err(read_failure)?;
    if configuration.get("PriorityType").is_some_and(|t| !t.contains("multifactor")) {
        return Err(Failure::Environment(
            "this Slurm has no site factors (PriorityType is not priority/multifactor); no order can be set".into(),
        ));
    }
    let page = Page::default();
    if let Some(address) = args.metrics {
        let served = page.clone();
        serve_metrics::serve("--metrics", address, move || served.get())?;
    }
    make_folder_of(&args.state)?;
    let store = SavedState::open(&args.state).map_err(state_failure)?;
    let options = DriveOptions {
        plan: plan.clone(),
        apply: args.apply,
        max_changes: args.rate.saturating_mul(interval.as_secs().max(1) as usize).max(1),
        history: memory,
        cluster: configuration.cluster().map(String::from),
        configuration: Some(configuration),
    };
    let mut driver = Driver::new(&slurm, &store, options).map_err(state_failure)?;
    console.note(&format!(
        "{} {} places in the order of {} every {} s{}.",
        if args.apply { "Keeping" } else { "Dry run, nothing is written (--apply writes): would keep" },
        args.depth,
        plan.policy,
        interval.as_secs(),
        if args.looks.is_some() { "" } else { ", until stopped" }
    ));
    let mut totals = Totals::default();
    let mut no_answer_since: Option<Instant> = None;
    let ended = loop {
        let begun = Instant::now();
        let mut update = driver.tick(parse_time::now());
        totals.looks += 1;
        let took = begun.elapsed();
        // The signal has ended the command that ran.
        if stop.is_set() && update.is_err() {
            break Ok(());
        }
        // After a long silence the queue may have changed: restore everything, then order it again.
        if args.apply && update.is_ok() && no_answer_since.is_some_and(|since| since.elapsed() > give_up) {
            match driver.release() {
                Ok(outcome) => console.note(&format!(
                    "The Slurm controller did not answer for too long. {}",
                    restored_sentence(&outcome)
                )),
                // It is silent again: what it did not restore is tried again after its next answer.
                Err(error) => update = Err(error),
            }
        }
        match &update {
            Ok(tick) => {
                no_answer_since = None;
                totals.changes += if args.apply { tick.changes.len() as u64 } else { 0 };
            }
            Err(error) if error.is_transient() => {
                totals.errors += 1;
                no_answer_since.get_or_insert(begun);
            }
            Err(_) => {}
        }
        if let Err(failure) = print_update(&update, took, args.apply, console) {
            break Err(failure);
        }
        if args.metrics.is_some() {
            page.set(metrics(&update, &plan, took, totals));
        }
        if let Err(error) = update
            && !error.is_transient()
        {
            break Err(drive_failure(error));
        }
        // Also where the controller is away: the service works, and tries again.
        manager.passed(longest_silence(interval));
        if args.looks.is_some_and(|looks| totals.looks >= looks) {
            break Ok(());
        }
        match signalled.recv_timeout(interval.saturating_sub(begun.elapsed())) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => break Ok(()),
        }
    };
    manager.stopping();
    let restored = restore_unless_kept(&mut driver, &at_exit, args, console);
    if let (Err(_), Err(failure)) = (&ended, &restored) {
        console.error(&failure.to_string());
    }
    ended.and(restored).map(|()| Outcome::Done)
}

/// Restores everything, unless `--keep` is given, within [`EXIT_LIMIT`] also if Slurm does not answer.
fn restore_unless_kept<'a>(
    driver: &mut Driver<'a>,
    at_exit: &'a OnceLock<LocalCommands>,
    args: &SlurmRunArgs,
    console: &Console,
) -> Result<(), Failure> {
    if !args.apply || args.keep {
        return Ok(());
    }
    driver.use_commands(at_exit.get_or_init(|| LocalCommands {
        timeout: EXIT_COMMAND_LIMIT,
        deadline: Some(Instant::now() + EXIT_LIMIT.saturating_sub(EXIT_RESERVE)),
        ..LocalCommands::default()
    }));
    let outcome = driver.release().map_err(|error| {
        let state = args.state.display();
        Failure::Environment(format!(
            "{error}. Jobs keep site factors, which are recorded: evenhand slurm release --state {state}, or the next \
             run, restores them"
        ))
    })?;
    console.note(&restored_sentence(&outcome));
    Ok(())
}

/// Prints an update.
fn print_update(
    update: &Result<TickOutcome, DriveError>,
    took: Duration,
    applied: bool,
    console: &Console,
) -> Result<(), Failure> {
    let empty = TickOutcome::default();
    let tick = update.as_ref().unwrap_or(&empty);
    let record = UpdateRecord {
        at_s: parse_time::now().secs_f64(),
        waiting: tick.waiting,
        running: tick.running,
        places: tick.plan.as_ref().map_or(0, |plan| plan.places.len()),
        changes: tick.changes.len(),
        put_back: tick.put_back,
        left: tick.deferred,
        left_alone: tick.set_by_others,
        applied,
        took_s: took.as_secs_f64(),
        refused: tick.rejection.as_deref(),
        error: update.as_ref().err().map(DriveError::to_string),
    };
    if console.is_json() {
        let line = serde_json::to_string(&record).map_err(|e| Failure::Environment(e.to_string()))?;
        return console.result(&line);
    }
    if let Some(error) = &record.error {
        console.error(error);
        return Ok(());
    }
    let word = if applied { "changed" } else { "would change" };
    let mut line = format!(
        "{} waiting, {} running; {word} {} of {} places in {:.2} s",
        record.waiting, record.running, record.changes, record.places, record.took_s
    );
    for (count, what) in [
        (record.put_back, "that started or ended put back"),
        (record.left, "left for the next update"),
        (record.left_alone, "not changed, because another program set them"),
    ] {
        if count > 0 {
            line.push_str(&format!("; {count} {what}"));
        }
    }
    if let Some(refused) = record.refused {
        line.push_str(&format!("; Slurm reports: {refused}"));
    }
    if let Some(why) = &tick.accounting_error {
        line.push_str(&format!("; finished jobs are known only from the queue ({why})"));
    }
    console.document(&line)
}

/// Creates the folder of a file.
fn make_folder_of(path: &Path) -> Result<(), Failure> {
    match path.parent().filter(|p| !p.as_os_str().is_empty()) {
        Some(folder) => crate::output::write_files::make_folder(folder),
        None => Ok(()),
    }
}

pub(super) fn state_failure(error: SavedStateError) -> Failure {
    Failure::Environment(format!("--state: {error}"))
}

pub(super) fn drive_failure(error: DriveError) -> Failure {
    Failure::Environment(error.to_string())
}
