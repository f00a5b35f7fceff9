//! `evenhand agent run`

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use evenhand_agent::{Agent, ControlSocket, Released, Status, Update, WorkloadStatus, assemble};
use evenhand_enforcers::cgroups::{Resource, SystemRoot};
use serde::Serialize;

use super::prometheus_metrics::metrics;
use super::{assemble_failure, doctor, read_configuration};
use crate::arguments::AgentRunArgs;
use crate::failure::Failure;
use crate::interrupts::{SecondSignal, on_interrupt};
use crate::output::console::Console;
use crate::output::serve_metrics;

/// Request that the loop handles between two updates.
enum Request {
    /// Exit.
    End,
    /// Restore everything and exit; the answer describes the result.
    Release(Sender<String>),
    /// Return the status.
    Status(Sender<Status>),
}

/// One update, as a line of JSON.
#[derive(Debug, Serialize)]
struct UpdateRecord<'a> {
    at_s: f64,
    update: u64,
    #[serde(rename = "guests")]
    workloads: usize,
    users: usize,
    nodes: usize,
    changes: Vec<ChangeRecord<'a>>,
    applied: bool,
    took_s: f64,
    cpu_s: f64,
    remarks: &'a [String],
    /// Where the sources looked, if no workload runs.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    why_nothing: &'a [String],
}

#[derive(Debug, Serialize)]
struct ChangeRecord<'a> {
    #[serde(rename = "guest")]
    workload: &'a str,
    owner: &'a str,
    resource: &'static str,
    value: u64,
    /// The workload's precedence h_p; it determines the weight.
    precedence: f64,
    weight: f64,
}

/// Time for which a client waits for an answer while an update is running.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(4);

pub(super) fn run(args: &AgentRunArgs, console: &Console) -> Result<(), Failure> {
    let (configuration, sources) = read_configuration(&args.config)?;
    // What the configuration names, an agent with --apply writes with its rights.
    if args.apply {
        sources.check_trusted().map_err(Failure::input)?;
    }
    let added = sources.files().iter().skip(1).map(|file| file.display().to_string());
    for source in added.chain(sources.variables().iter().cloned()) {
        console.note(&format!("{} is changed by {source}.", args.config.display()));
    }
    let (interval, metrics_address, socket) =
        (configuration.control.interval, configuration.metrics, configuration.node.socket.clone());
    // Before the journal is read: a signal that came while the agent starts would end it, with what an earlier run left as it is.
    let (sender, requests) = channel();
    let end = sender.clone();
    on_interrupt(SecondSignal::IsIgnored, move || _ = end.send(Request::End))?;
    let assembly = assemble(configuration, args.apply, &SystemRoot::default()).map_err(assemble_failure)?;
    // The lock is held until the end.
    let (mut agent, findings, _lock) = (assembly.agent, assembly.report, assembly.lock);
    console.note(&doctor::tables(&findings));
    let requester = sender.clone();
    let _answers = ControlSocket::listen(&socket, move |word| answer(&requester, word))
        .map_err(|e| Failure::Environment(format!("{}: {e}", socket.display())))?;
    if let Some(address) = metrics_address {
        let requester = sender.clone();
        let text =
            move || request_answer(&requester, Request::Status).map_or_else(String::new, |status| metrics(&status));
        serve_metrics::serve("metrics.listen", address, text)?;
    }
    console.note(&format!(
        "{} every {} s{}.",
        if args.apply { "Setting weights" } else { "Dry run, nothing is written (--apply writes): would set weights" },
        interval.as_secs_f64(),
        if args.updates.is_some() { "" } else { ", until stopped" }
    ));
    let begun = Instant::now();
    let mut release_request = None;
    let mut updates = 0;
    let mut nothing_runs = false;
    let ended = loop {
        let now = begun.elapsed();
        let update = match agent.update(now) {
            Ok(update) => update,
            Err(error) => break Err(Failure::Environment(error.to_string())),
        };
        updates += 1;
        print_update(&agent, &update, console)?;
        // Once for each time that the last workload ends.
        if !nothing_runs {
            update.why_nothing.iter().for_each(|why| console.note(&format!("No workload: {why}.")));
        }
        nothing_runs = !update.why_nothing.is_empty();
        if args.updates.is_some_and(|maximum| updates >= maximum) {
            break Ok(());
        }
        match wait_for_next_update(&requests, &agent, begun + now + interval) {
            WaitOutcome::Update => {}
            WaitOutcome::End => break Ok(()),
            WaitOutcome::Release(answer) => {
                release_request = Some(answer);
                break Ok(());
            }
        }
    };
    if args.apply && (!args.keep || release_request.is_some() || ended.is_err()) {
        let outcome = released_sentence(&agent.release());
        console.note(&outcome);
        if let Some(answer) = release_request {
            let _ = answer.send(outcome);
            // Gives the thread that answers the client time to write before the process exits.
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    ended
}

/// Reason why the wait between two updates ended.
enum WaitOutcome {
    Update,
    End,
    Release(Sender<String>),
}

/// Waits until the next update is due; answers status requests meanwhile.
fn wait_for_next_update(requests: &Receiver<Request>, agent: &Agent, until: Instant) -> WaitOutcome {
    loop {
        match requests.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Request::Status(answer)) => _ = answer.send(agent.status(since_1970())),
            Ok(Request::Release(answer)) => return WaitOutcome::Release(answer),
            Ok(Request::End) | Err(RecvTimeoutError::Disconnected) => return WaitOutcome::End,
            Err(RecvTimeoutError::Timeout) => return WaitOutcome::Update,
        }
    }
}

/// Sends a request to the loop, and waits for the answer for a limited time.
fn request_answer<T>(requests: &Sender<Request>, request: impl FnOnce(Sender<T>) -> Request) -> Option<T> {
    let (answer, answered) = channel();
    requests.send(request(answer)).ok()?;
    answered.recv_timeout(ANSWER_TIMEOUT).ok()
}

/// Answers a word that a client wrote to the control socket.
fn answer(requests: &Sender<Request>, word: &str) -> String {
    let late = || "{\"error\":\"the agent is busy or ending\"}".to_owned();
    match word {
        "status" => {
            let status = request_answer(requests, Request::Status).map(|status| serde_json::to_string(&status));
            status.and_then(Result::ok).unwrap_or_else(late)
        }
        "release" => request_answer(requests, Request::Release).unwrap_or_else(late),
        other => serde_json::json!({ "error": format!("found {other:?}, expected status or release") }).to_string(),
    }
}

/// Describes what was restored.
fn released_sentence(released: &Released) -> String {
    let groups = if released.groups == 1 { "1 group has".into() } else { format!("{} groups have", released.groups) };
    let failed: Vec<String> = released.failed.iter().map(|failed| format!(" {failed}.")).collect();
    format!("{groups} their old values again.{}", failed.concat())
}

/// Prints an update.
fn print_update(agent: &Agent, update: &Update, console: &Console) -> Result<(), Failure> {
    if console.is_json() {
        let status = agent.status(since_1970());
        let statuses: HashMap<&str, &WorkloadStatus> =
            status.workloads.iter().map(|of| (of.path.as_str(), of)).collect();
        let changes = update.changes.iter().filter_map(|change| {
            let workload = agent.workload(change.group)?;
            let of = statuses.get(workload.group.path.as_str())?;
            Some(ChangeRecord {
                workload: &workload.name,
                owner: &workload.owner,
                resource: change.resource.name(),
                value: change.value,
                precedence: of.precedence,
                weight: of.weight,
            })
        });
        let record = UpdateRecord {
            at_s: status.at_s,
            update: status.updates,
            workloads: update.workloads,
            users: update.users,
            nodes: update.nodes,
            changes: changes.collect(),
            applied: status.applied,
            took_s: status.totals.update_s,
            cpu_s: status.totals.update_cpu_s,
            remarks: &update.new_warnings,
            why_nothing: &update.why_nothing,
        };
        let line = serde_json::to_string(&record).map_err(|e| Failure::Environment(e.to_string()))?;
        return console.result(&line);
    }
    update.new_warnings.iter().for_each(|warning| console.error(warning));
    let count = |control: Resource| update.changes.iter().filter(|change| change.resource == control).count();
    let changed: Vec<String> = Resource::ALL
        .into_iter()
        .filter(|control| count(*control) > 0)
        .map(|control| format!("{} of {control}", count(control)))
        .collect();
    let word = if agent.is_applied() { "changed" } else { "would change" };
    let changed = if changed.is_empty() { format!("{word} nothing") } else { format!("{word} {}", changed.join(", ")) };
    console
        .document(&format!("{} workloads, {} users, {} nodes; {changed}", update.workloads, update.users, update.nodes))
}

/// Returns the time in seconds since 1970.
fn since_1970() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}
