//! What runs beside the services: the clock, Slurm, and the running agent.

use std::time::{SystemTime, UNIX_EPOCH};

use evenhand_agent::{Configuration, Status, request};
use evenhand_model::counted;

use super::{Finding, State, answer};

/// Examines whether the clock is synchronised. With other nodes it has to be: their records are compared by age.
pub(super) fn clock(has_peers: bool) -> Finding {
    match answer("timedatectl", &["show", "--property=NTPSynchronized", "--value"]) {
        Ok(text) if text == "yes" => Finding::fine("clock", "synchronised"),
        Ok(_) => {
            let state = if has_peers { State::Problem } else { State::Note };
            let remedy = "timedatectl set-ntp true, or a service such as chrony";
            Finding { state, ..Finding::note("clock", "not synchronised", remedy) }
        }
        Err(error) => Finding::note("clock", error, "check by hand that it is synchronised"),
    }
}

/// Examines whether Slurm's commands reach a controller, where there are such commands. That they do not is a problem where
/// a service needs them.
pub(super) fn slurm(is_needed: bool) -> Option<Finding> {
    let state = if is_needed { State::Problem } else { State::Note };
    let failure = |found, remedy| Some(Finding { state, ..Finding::note("Slurm", found, remedy) });
    let version = match answer("scontrol", &["--version"]) {
        Ok(version) => version,
        Err(error) if error.starts_with("there is no ") => return None,
        Err(error) => return failure(error, "the driver and the pages need Slurm's commands"),
    };
    let ping = answer("scontrol", &["ping"]).unwrap_or_else(|error| error);
    let line = ping.lines().next().unwrap_or_default();
    let found = format!("{version}, {line}");
    match ping.contains(" is UP") {
        true => Some(Finding::fine("Slurm", found)),
        false => failure(found, "the driver and the pages need the controller"),
    }
}

/// Asks the running agent, if its socket is there.
pub(super) fn agent(configuration: &Configuration) -> Option<Finding> {
    let socket = &configuration.node.socket;
    if !socket.exists() {
        return None;
    }
    let name = "running agent";
    let text = match request(socket, "status") {
        Ok(text) => text,
        Err(error) => {
            let found = format!("{}: {error}", socket.display());
            return Some(Finding::problem(
                name,
                found,
                "as root, or as a member of the socket's group; else restart it",
            ));
        }
    };
    let Ok(status) = serde_json::from_str::<Status>(&text) else {
        return Some(Finding::problem(
            name,
            "its answer is that of another version",
            "systemctl restart evenhand-agent",
        ));
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64());
    let writes = if status.applied { "writes weights" } else { "dry run" };
    let found = format!(
        "{writes}, {}, {}, {}, {}",
        counted(status.updates, "update", "updates"),
        counted(status.workloads.len(), "workload", "workloads"),
        counted(status.nodes.len(), "node", "nodes"),
        counted(status.warnings.len(), "remark", "remarks")
    );
    Some(match (now - status.at_s, status.warnings.is_empty()) {
        (late, _) if late > 3.0 * status.interval_s + 10.0 => {
            Finding::problem(name, format!("no update for {late:.0} s"), "journalctl -u evenhand-agent")
        }
        (_, false) => Finding::note(name, found, "evenhand agent status"),
        _ => Finding::fine(name, found),
    })
}
