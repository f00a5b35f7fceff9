//! `evenhand agent run`

mod requests;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use evenhand_agent::{
    Agent, Configuration, ConfigurationSources, ControlSocket, Released, Update, WorkloadStatus, assemble,
    longest_silence,
};
use evenhand_enforcers::cgroups::{HostLock, Resource, SystemRoot};
use evenhand_model::counted;
use serde::Serialize;

use self::requests::{Request, WaitOutcome, answer, request_answer, wait_for_next_update};
use super::prometheus_metrics::metrics;
use super::{assemble_failure, configuration_of, doctor, misspelt_variables, read_configuration};
use crate::arguments::AgentRunArgs;
use crate::failure::Failure;
use crate::interrupts::{SecondSignal, ignore_signals_without_meaning, on_interrupt};
use crate::output::console::Console;
use crate::output::serve_metrics;
use crate::service_manager::ServiceManager;

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

/// What a configuration says of the process itself; a reload does not change where it listens.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Places {
    socket: PathBuf,
    metrics: Option<SocketAddr>,
}

/// An agent that runs, by one reading of its configuration.
struct Running {
    agent: Agent,
    interval: Duration,
    /// Held as long as the agent may write.
    _lock: Option<HostLock>,
}

/// Reads the configuration, as an agent with these options may use it.
fn read(args: &AgentRunArgs, console: &Console) -> Result<(Configuration, ConfigurationSources, Places), Failure> {
    let (configuration, sources) = read_configuration(&args.config)?;
    // What the configuration names, an agent with --apply writes with its rights.
    if args.apply {
        sources.check_trusted().map_err(Failure::input)?;
    }
    let added = sources.files().iter().skip(1).map(|file| file.display().to_string());
    for source in added.chain(sources.variables().iter().cloned()) {
        console.note(&format!("{} is changed by {source}.", args.config.display()));
    }
    for sentence in misspelt_variables(&sources) {
        console.note(&format!("Warning: the agent {sentence}"));
    }
    let places = Places { socket: configuration.node.socket.clone(), metrics: configuration.metrics };
    Ok((configuration, sources, places))
}

/// Starts an agent, which has not made an update yet.
fn start(configuration: Configuration, args: &AgentRunArgs, console: &Console) -> Result<Running, Failure> {
    let interval = configuration.control.interval;
    let assembly = assemble(configuration, args.apply, &SystemRoot::default()).map_err(assemble_failure)?;
    console.note(&doctor::tables(&assembly.report));
    Ok(Running { agent: assembly.agent, interval, _lock: assembly.lock })
}

/// Reports what the agent does from now on.
fn announce(running: &Running, args: &AgentRunArgs, console: &Console) {
    console.note(&format!(
        "{} every {} s{}.",
        if args.apply { "Setting weights" } else { "Dry run, nothing is written (--apply writes): would set weights" },
        running.interval.as_secs_f64(),
        if args.updates.is_some() { "" } else { ", until stopped" }
    ));
}

pub(super) fn run(args: &AgentRunArgs, console: &Console) -> Result<(), Failure> {
    let (configuration, mut sources, places) = read(args, console)?;
    // Before the journal is read: a signal that came while the agent starts would end it, with what an earlier run left as it is.
    let (sender, requests) = channel();
    let end = sender.clone();
    ignore_signals_without_meaning()?;
    on_interrupt(SecondSignal::IsIgnored, move || _ = end.send(Request::End))?;
    let mut running = start(configuration, args, console)?;
    let requester = sender.clone();
    let _answers = ControlSocket::listen(&places.socket, move |word| answer(&requester, word))
        .map_err(|e| Failure::Environment(format!("{}: {e}", places.socket.display())))?;
    if let Some(address) = places.metrics {
        let requester = sender.clone();
        let text =
            move || request_answer(&requester, Request::Status).map_or_else(String::new, |status| metrics(&status));
        serve_metrics::serve("metrics.listen", address, text)?;
    }
    announce(&running, args, console);
    let manager = ServiceManager::of_process();
    let begun = Instant::now();
    let mut release_request = None;
    let mut updates = 0;
    let mut nothing_runs = false;
    let ended = loop {
        let now = begun.elapsed();
        let update = match running.agent.update(now) {
            Ok(update) => update,
            Err(error) => break Err(Failure::Environment(error.to_string())),
        };
        updates += 1;
        // By the common exit, which restores: the disk of a log may be full.
        if let Err(failure) = print_update(&running.agent, &update, console) {
            break Err(failure);
        }
        manager.passed(longest_silence(running.interval));
        // Once for each time that the last workload ends.
        if !nothing_runs {
            update.why_nothing.iter().for_each(|why| console.note(&format!("No workload: {why}.")));
        }
        nothing_runs = !update.why_nothing.is_empty();
        if args.updates.is_some_and(|maximum| updates >= maximum) {
            break Ok(());
        }
        match wait_for_next_update(&requests, &running.agent, begun + now + running.interval) {
            WaitOutcome::Update => {}
            WaitOutcome::Reload(answer) => match reread(args, &places, console) {
                Err(failure) => {
                    console.failure(&failure);
                    let _ = answer.send(Err(failure.to_string()));
                }
                Ok((configuration, read_now)) => {
                    manager.reloading();
                    // Groups that are no workloads any more keep nothing, whatever fails from here on.
                    if args.apply && !args.keep {
                        // What is left is in the journal, by which the next agent tries again at each update, and at its end.
                        report_released(&running.agent.release(), console);
                    }
                    // The lock, the journal and the address of the exchange are for one agent at a time.
                    drop(running);
                    let answered = match start(configuration, args, console) {
                        Ok(started) => {
                            (running, sources) = (started, read_now);
                            Ok(args.config.display().to_string())
                        }
                        // Valid, and not for this machine as it is: what is in use stays, as with an invalid one.
                        Err(failure) => {
                            console.failure(&failure);
                            running = start(configuration_of(&sources)?.map_err(Failure::document)?, args, console)?;
                            Err(format!("{failure}; the agent goes on with the earlier configuration"))
                        }
                    };
                    let _ = answer.send(answered);
                    announce(&running, args, console);
                }
            },
            WaitOutcome::End => break Ok(()),
            WaitOutcome::Release(answer) => {
                release_request = Some(answer);
                break Ok(());
            }
        }
    };
    manager.stopping();
    if args.apply && (!args.keep || release_request.is_some() || ended.is_err()) {
        let released = running.agent.release();
        let is_complete = report_released(&released, console);
        if let Some(answer) = release_request {
            let _ = answer.send(released);
            // Gives the thread that answers the client time to write before the process exits.
            std::thread::sleep(Duration::from_millis(100));
        }
        if !is_complete {
            return ended.and(Err(Failure::Environment(
                "not all groups have their old values again; the journal keeps them for the next start or `evenhand agent release`"
                    .into(),
            )));
        }
    }
    ended
}

/// Reads the configuration again. What is in use stays if it is invalid, or changes what only a restart can change.
fn reread(
    args: &AgentRunArgs,
    places: &Places,
    console: &Console,
) -> Result<(Configuration, ConfigurationSources), Failure> {
    let (configuration, sources, found) = read(args, console)?;
    if found == *places {
        return Ok((configuration, sources));
    }
    let key = if found.socket == places.socket { "[metrics] listen" } else { "[node] socket" };
    Err(Failure::Input(format!(
        "{}: {key} is another than that of the running agent, which goes on as it was; restart it to change this",
        args.config.display()
    )))
}

/// Reports what was restored. Returns whether that is all.
fn report_released(released: &Released, console: &Console) -> bool {
    let is_complete = released.failed.is_empty();
    match (is_complete, released_sentence(released)) {
        (true, sentence) => console.note(&sentence),
        (false, sentence) => console.error(&sentence),
    }
    is_complete
}

/// Describes what was restored.
pub(super) fn released_sentence(released: &Released) -> String {
    let groups = counted(released.groups, "group has its", "groups have their");
    let failed: Vec<String> = released.failed.iter().map(|failed| format!(" {failed}.")).collect();
    format!("{groups} old values again.{}", failed.concat())
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
    console.document(&format!(
        "{}, {}, {}; {changed}",
        counted(update.workloads, "workload", "workloads"),
        counted(update.users, "user", "users"),
        counted(update.nodes, "node", "nodes")
    ))
}

/// Returns the time in seconds since 1970.
fn since_1970() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::arguments::Common;
    use crate::host::Host;

    #[derive(Parser)]
    struct Options {
        #[command(flatten)]
        common: Common,
    }

    #[test]
    fn what_could_not_be_restored_is_an_error_and_what_was_is_a_note() {
        let report = |failed: Vec<String>| {
            let options = Options::parse_from(["evenhand", "--quiet"]);
            let console = Console::hosted(&options.common, &[], &Host::default());
            let is_complete = report_released(&Released { groups: 1, failed, ..Released::default() }, &console);
            (is_complete, console.take_captured().error)
        };
        assert_eq!(report(Vec::new()), (true, None));
        let error = "1 group has its old values again. no bus.".to_owned();
        assert_eq!(report(vec!["no bus".into()]), (false, Some(error)));
    }
}
