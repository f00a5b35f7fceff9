//! `evenhand slurm run` and `evenhand slurm release`

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use evenhand_model::Span;
use evenhand_policies::{Registry, Standing};
use evenhand_slurm::queue_driver::{
    DriveError, DriveOptions, Driver, ReleaseOutcome, SavedState, SavedStateError, TickOutcome,
};
use evenhand_slurm::{Configuration, LocalCommands, Party, PlanOptions};
use serde::Serialize;

use super::args::{ReleaseArgs, RunArgs};
use super::{failed, order, when};
use crate::console::Console;
use crate::exposition::{self, Page, Text};
use crate::failure::{Failure, Outcome};

/// One look, for programs: a line of JSON.
#[derive(Debug, Serialize)]
struct Look<'a> {
    at_s: f64,
    waiting: usize,
    running: usize,
    places: usize,
    changes: usize,
    left: usize,
    left_alone: usize,
    applied: bool,
    took_s: f64,
    refused: Option<&'a str>,
    error: Option<String>,
}

/// What has happened since the start.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    looks: u64,
    changes: u64,
    errors: u64,
}

pub(super) fn run(args: &RunArgs, registry: &Registry, console: &Console) -> Result<Outcome, Failure> {
    let (plan, memory) = order::options(&args.order, registry, args.depth)?;
    let span = |option: &str, text: &str| {
        let span = Span::parse(text).map_err(|e| Failure::Input(format!("{option}: {e}")))?;
        if span < Span::from_secs(1) {
            return Err(Failure::Input(format!("{option}: found {text}, expected at least 1s")));
        }
        Ok(Duration::from_nanos(span.nanos()))
    };
    let (interval, give_up) = (span("--interval", &args.interval)?, span("--give-up", &args.give_up)?);
    let slurm = LocalCommands { timeout: Duration::from_secs(60) };
    let configuration = Configuration::read(&slurm).map_err(failed)?;
    if configuration.get("PriorityType").is_some_and(|t| !t.contains("multifactor")) {
        return Err(Failure::Environment(
            "this Slurm has no site factors (PriorityType is not priority/multifactor); nothing can be ordered".into(),
        ));
    }
    let page = Page::default();
    if let Some(address) = args.metrics {
        let shown = page.clone();
        exposition::serve("--metrics", address, move || shown.get())?;
    }
    make_folder_of(&args.state)?;
    let store = SavedState::open(&args.state).map_err(store_failed)?;
    let options = DriveOptions {
        plan: plan.clone(),
        apply: args.apply,
        max_changes: args.rate.saturating_mul(interval.as_secs().max(1) as usize).max(1),
        history: memory,
        cluster: configuration.cluster().map(String::from),
        configuration: Some(configuration),
    };
    let mut driver = Driver::new(&slurm, &store, options).map_err(store_failed)?;
    let (stop, stopped) = channel();
    ctrlc::set_handler(move || _ = stop.send(()))
        .map_err(|e| Failure::Environment(format!("cannot listen for signals: {e}")))?;
    console.note(&format!(
        "{} {} places in the order of {} every {} s{}.",
        if args.apply { "Keeping" } else { "Dry run, nothing is written (--apply writes): would keep" },
        args.depth,
        plan.policy,
        interval.as_secs(),
        if args.looks.is_some() { "" } else { ", until stopped" }
    ));
    let mut totals = Totals::default();
    let mut silent_since: Option<Instant> = None;
    loop {
        let begun = Instant::now();
        let looked = driver.tick(when::now());
        totals.looks += 1;
        let took = begun.elapsed();
        match &looked {
            Ok(tick) => {
                // Silent for too long: who knows what was done meanwhile. All is put back, then ordered anew.
                if args.apply && silent_since.take().is_some_and(|since| since.elapsed() > give_up) {
                    let back = driver.release().map_err(drive_failed)?;
                    console.note(&format!("The controller was silent for too long. {}", put_back(&back)));
                }
                totals.changes += if args.apply { tick.changes.len() as u64 } else { 0 };
            }
            Err(error) if error.is_transient() => {
                totals.errors += 1;
                silent_since.get_or_insert(begun);
            }
            Err(_) => {}
        }
        log(&looked, took, args.apply, console)?;
        if args.metrics.is_some() {
            page.set(families(&looked, &plan, took, totals));
        }
        if let Err(error) = looked
            && !error.is_transient()
        {
            finish(&mut driver, args, console)?;
            return Err(drive_failed(error));
        }
        if args.looks.is_some_and(|looks| totals.looks >= looks) {
            break;
        }
        match stopped.recv_timeout(interval.saturating_sub(begun.elapsed())) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    finish(&mut driver, args, console)?;
    Ok(Outcome::Done)
}

/// At the end all is put back, unless it is to stay.
fn finish(driver: &mut Driver<'_>, args: &RunArgs, console: &Console) -> Result<(), Failure> {
    if args.apply && !args.keep {
        let back = driver.release().map_err(drive_failed)?;
        console.note(&put_back(&back));
    }
    Ok(())
}

pub(super) fn release(args: &ReleaseArgs, console: &Console) -> Result<Outcome, Failure> {
    if !args.state.exists() {
        return Err(Failure::Input(format!("{}: there is no such file; nothing was written", args.state.display())));
    }
    let slurm = LocalCommands::default();
    let store = SavedState::open(&args.state).map_err(store_failed)?;
    let options = DriveOptions {
        plan: PlanOptions {
            registry: Registry::built_in(),
            policy: String::new(),
            settings: Default::default(),
            decay: None,
            prices: BTreeMap::new(),
            speed_feature: None,
            depth: 0,
        },
        apply: true,
        max_changes: usize::MAX,
        history: Span::ZERO,
        cluster: None,
        configuration: None,
    };
    let back = Driver::new(&slurm, &store, options).map_err(store_failed)?.release().map_err(drive_failed)?;
    console.result(&put_back(&back))?;
    Ok(if back.rejection.is_none() { Outcome::Done } else { Outcome::DoesNotHold })
}

fn put_back(back: &ReleaseOutcome) -> String {
    let jobs = if back.jobs == 1 { "1 job has".into() } else { format!("{} jobs have", back.jobs) };
    let refused = back.rejection.as_ref().map_or(String::new(), |said| format!(" Slurm said: {said}."));
    format!("{jobs} the site factor 0 again.{refused}")
}

fn log(
    looked: &Result<TickOutcome, DriveError>,
    took: Duration,
    applied: bool,
    console: &Console,
) -> Result<(), Failure> {
    let empty = TickOutcome::default();
    let tick = looked.as_ref().unwrap_or(&empty);
    let look = Look {
        at_s: when::now().secs_f64(),
        waiting: tick.waiting,
        running: tick.running,
        places: tick.plan.as_ref().map_or(0, |plan| plan.places.len()),
        changes: tick.changes.len(),
        left: tick.deferred,
        left_alone: tick.set_by_others,
        applied,
        took_s: took.as_secs_f64(),
        refused: tick.rejection.as_deref(),
        error: looked.as_ref().err().map(DriveError::to_string),
    };
    if console.is_json() {
        let line = serde_json::to_string(&look).map_err(|e| Failure::Environment(e.to_string()))?;
        return console.result(&line);
    }
    if let Some(error) = &look.error {
        console.complain(error);
        return Ok(());
    }
    let word = if applied { "changed" } else { "would change" };
    let mut said = format!(
        "{} wait, {} run; {word} {} of {} places in {:.2} s",
        look.waiting, look.running, look.changes, look.places, look.took_s
    );
    for (count, what) in [(look.left, "left for the next look"), (look.left_alone, "left alone, set by others")] {
        if count > 0 {
            said.push_str(&format!("; {count} {what}"));
        }
    }
    if let Some(refused) = look.refused {
        said.push_str(&format!("; Slurm said: {refused}"));
    }
    if let Some(why) = &tick.accounting_error {
        said.push_str(&format!("; what ended is known from the queue only ({why})"));
    }
    console.result(&said)
}

fn families(looked: &Result<TickOutcome, DriveError>, options: &PlanOptions, took: Duration, totals: Totals) -> String {
    let mut text = Text::default();
    let one = |value: f64| [(Vec::new(), value)];
    text.family("evenhand_looks_total", "counter", "Looks at the queue.", one(totals.looks as f64));
    text.family("evenhand_changes_total", "counter", "Site factors written.", one(totals.changes as f64));
    text.family("evenhand_errors_total", "counter", "Looks without an answer.", one(totals.errors as f64));
    text.family("evenhand_look_seconds", "gauge", "How long the last look took.", one(took.as_secs_f64()));
    let up = f64::from(u8::from(looked.is_ok()));
    text.family("evenhand_up", "gauge", "Whether the last look had an answer.", one(up));
    let Ok(tick) = looked else { return text.finish() };
    text.family("evenhand_jobs_waiting", "gauge", "Records of waiting jobs.", one(tick.waiting as f64));
    text.family("evenhand_jobs_running", "gauge", "Running jobs.", one(tick.running as f64));
    text.family("evenhand_jobs_left_alone", "gauge", "Jobs whose priority others set.", one(tick.set_by_others as f64));
    let Some(plan) = &tick.plan else { return text.finish() };
    // Of each user who waits the standing before the first of the user's places: what holds now.
    let mut first: BTreeMap<usize, &Standing> = BTreeMap::new();
    plan.places.iter().for_each(|place| _ = first.entry(place.party).or_insert(&place.standing));
    let users = || first.iter().map(|(party, standing)| (&plan.parties[*party], *standing));
    for (name, help, of) in [
        ("evenhand_share", "Held of all there is, of users who wait.", (|s| &s.shares) as fn(&Standing) -> &Vec<f64>),
        ("evenhand_commitment", "Past over-use remembered.", |s| &s.commitments),
    ] {
        let rows = users().flat_map(|(party, standing)| {
            let [user, account] = labels(party);
            let values = plan.resources.iter().zip(of(standing));
            values.map(move |(resource, value)| (vec![user, account, ("resource", &*resource.name)], *value))
        });
        text.family(name, "gauge", help, rows);
    }
    let rows = users().map(|(party, standing)| {
        let [user, account] = labels(party);
        (vec![("policy", options.policy.as_str()), user, account], standing.key)
    });
    text.family("evenhand_key", "gauge", "What decides: the least goes first.", rows);
    // How far dominant shares over entitlements are apart among those who wait: 0 is fair by the moment.
    let over: Vec<f64> = users()
        .filter(|(party, _)| party.entitlement > 0.0)
        .map(|(party, s)| s.shares.iter().copied().fold(0.0, f64::max) / party.entitlement)
        .collect();
    let (low, high) = over.iter().fold((f64::INFINITY, 0.0f64), |(low, high), x| (low.min(*x), high.max(*x)));
    let error = if over.is_empty() { 0.0 } else { high - low };
    let help = "Largest less smallest dominant share over entitlement, of users who wait.";
    text.family("evenhand_fairness_error", "gauge", help, one(error));
    text.finish()
}

/// Who a number is about.
fn labels(party: &Party) -> [(&'static str, &str); 2] {
    [("user", &party.user), ("account", party.account.as_deref().unwrap_or(""))]
}

fn make_folder_of(path: &Path) -> Result<(), Failure> {
    match path.parent().filter(|p| !p.as_os_str().is_empty()) {
        Some(folder) => crate::outputs::make_folder(folder),
        None => Ok(()),
    }
}

fn store_failed(error: SavedStateError) -> Failure {
    Failure::Environment(format!("--state: {error}"))
}

fn drive_failed(error: DriveError) -> Failure {
    Failure::Environment(error.to_string())
}
