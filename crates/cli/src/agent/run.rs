//! `evenhand agent run`

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use evenhand_agent::{Agent, ControlSocket, Released, Status, Update, WorkloadStatus, assemble};
use evenhand_enforcers::cgroups::{Resource, SystemRoot};
use serde::Serialize;

use super::args::RunArgs;
use super::families::families;
use super::{assembled, configuration, doctor};
use crate::console::Console;
use crate::exposition;
use crate::failure::Failure;

/// What wakes the loop between two updates.
enum Wish {
    /// The process is to end.
    End,
    /// Everything is to be put back, then the process is to end; the answer says how that went.
    Release(Sender<String>),
    /// Somebody wants to know.
    Status(Sender<Status>),
}

/// One update, for programs: a line of JSON.
#[derive(Debug, Serialize)]
struct Line<'a> {
    at_s: f64,
    update: u64,
    guests: usize,
    users: usize,
    nodes: usize,
    changes: Vec<ChangeLine<'a>>,
    applied: bool,
    took_s: f64,
    cpu_s: f64,
    remarks: &'a [String],
}

#[derive(Debug, Serialize)]
struct ChangeLine<'a> {
    guest: &'a str,
    owner: &'a str,
    resource: &'static str,
    value: u64,
    /// Why: the guest's h_p and weight.
    precedence: f64,
    weight: f64,
}

/// How long who asks is kept waiting by an update that goes on.
const PATIENCE: Duration = Duration::from_secs(4);

pub(super) fn run(args: &RunArgs, console: &Console) -> Result<(), Failure> {
    let configuration = configuration(&args.config)?;
    let (interval, metrics, socket) =
        (configuration.control.interval, configuration.metrics, configuration.node.socket.clone());
    let assembly = assemble(configuration, args.apply, &SystemRoot::default()).map_err(assembled)?;
    // Held until the end.
    let (mut agent, findings, _lock) = (assembly.agent, assembly.report, assembly.lock);
    console.note(&doctor::text(&findings));
    let (wish, wishes) = channel();
    let end = wish.clone();
    ctrlc::set_handler(move || _ = end.send(Wish::End))
        .map_err(|e| Failure::Environment(format!("cannot listen for signals: {e}")))?;
    let asked = wish.clone();
    let _answers = ControlSocket::listen(&socket, move |word| answer(&asked, word))
        .map_err(|e| Failure::Environment(format!("{}: {e}", socket.display())))?;
    if let Some(address) = metrics {
        let asked = wish.clone();
        let text = move || said(&asked, Wish::Status).map_or_else(String::new, |status| families(&status));
        exposition::serve("metrics.listen", address, text)?;
    }
    console.note(&format!(
        "{} every {} s{}.",
        if args.apply { "Weighing" } else { "Dry run, nothing is written (--apply writes): would weigh" },
        interval.as_secs_f64(),
        if args.updates.is_some() { "" } else { ", until stopped" }
    ));
    let begun = Instant::now();
    let mut asked_for = None;
    let mut updates = 0;
    let ended = loop {
        let now = begun.elapsed();
        let update = match agent.update(now) {
            Ok(update) => update,
            Err(error) => break Err(Failure::Environment(error.to_string())),
        };
        updates += 1;
        log(&agent, &update, console)?;
        if args.updates.is_some_and(|most| updates >= most) {
            break Ok(());
        }
        match wait(&wishes, &agent, begun + now + interval) {
            Waited::Next => {}
            Waited::End => break Ok(()),
            Waited::Release(answer) => {
                asked_for = Some(answer);
                break Ok(());
            }
        }
    };
    if args.apply && (!args.keep || asked_for.is_some() || ended.is_err()) {
        let back = put_back(&agent.release());
        console.note(&back);
        if let Some(answer) = asked_for {
            let _ = answer.send(back);
            // The thread that answers writes it before the process ends.
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    ended
}

enum Waited {
    Next,
    End,
    Release(Sender<String>),
}

/// Until the next update is due; answers who asks meanwhile.
fn wait(wishes: &Receiver<Wish>, agent: &Agent, until: Instant) -> Waited {
    loop {
        match wishes.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Wish::Status(answer)) => _ = answer.send(agent.status(since_1970())),
            Ok(Wish::Release(answer)) => return Waited::Release(answer),
            Ok(Wish::End) | Err(RecvTimeoutError::Disconnected) => return Waited::End,
            Err(RecvTimeoutError::Timeout) => return Waited::Next,
        }
    }
}

/// Asks the loop, and waits a while for what it says.
fn said<T>(wishes: &Sender<Wish>, wish: impl FnOnce(Sender<T>) -> Wish) -> Option<T> {
    let (answer, answered) = channel();
    wishes.send(wish(answer)).ok()?;
    answered.recv_timeout(PATIENCE).ok()
}

fn answer(wishes: &Sender<Wish>, word: &str) -> String {
    let late = || "{\"error\":\"the agent is busy or ending\"}".to_owned();
    match word {
        "status" => {
            let status = said(wishes, Wish::Status).map(|status| serde_json::to_string(&status));
            status.and_then(Result::ok).unwrap_or_else(late)
        }
        "release" => said(wishes, Wish::Release).unwrap_or_else(late),
        other => serde_json::json!({ "error": format!("found {other:?}, expected status or release") }).to_string(),
    }
}

fn put_back(back: &Released) -> String {
    let groups = if back.groups == 1 { "1 group has".into() } else { format!("{} groups have", back.groups) };
    let failed: Vec<String> = back.failed.iter().map(|failed| format!(" {failed}.")).collect();
    format!("{groups} what they had.{}", failed.concat())
}

fn log(agent: &Agent, update: &Update, console: &Console) -> Result<(), Failure> {
    if console.is_json() {
        let status = agent.status(since_1970());
        let guests: HashMap<&str, &WorkloadStatus> = status.workloads.iter().map(|of| (of.path.as_str(), of)).collect();
        let changes = update.changes.iter().filter_map(|change| {
            let guest = agent.workload(change.group)?;
            let of = guests.get(guest.group.path.as_str())?;
            Some(ChangeLine {
                guest: &guest.name,
                owner: &guest.owner,
                resource: change.resource.name(),
                value: change.value,
                precedence: of.precedence,
                weight: of.weight,
            })
        });
        let line = Line {
            at_s: status.at_s,
            update: status.updates,
            guests: update.workloads,
            users: update.users,
            nodes: update.nodes,
            changes: changes.collect(),
            applied: status.applied,
            took_s: status.totals.update_s,
            cpu_s: status.totals.update_cpu_s,
            remarks: &update.new_warnings,
        };
        let line = serde_json::to_string(&line).map_err(|e| Failure::Environment(e.to_string()))?;
        return console.result(&line);
    }
    update.new_warnings.iter().for_each(|news| console.complain(news));
    let by = |control: Resource| update.changes.iter().filter(|change| change.resource == control).count();
    let changed: Vec<String> = Resource::ALL
        .into_iter()
        .filter(|control| by(*control) > 0)
        .map(|control| format!("{} of {control}", by(control)))
        .collect();
    let word = if agent.is_applied() { "changed" } else { "would change" };
    let changed = if changed.is_empty() { format!("{word} nothing") } else { format!("{word} {}", changed.join(", ")) };
    console.result(&format!("{} guests, {} users, {} nodes; {changed}", update.workloads, update.users, update.nodes))
}

fn since_1970() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}
