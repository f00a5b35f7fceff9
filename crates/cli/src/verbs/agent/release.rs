//! `evenhand agent release`

use evenhand_agent::{assemble, request};
use evenhand_enforcers::cgroups::SystemRoot;

use super::{assemble_failure, read_configuration};
use crate::arguments::AgentReleaseArgs;
use crate::failure::{Failure, Outcome};
use crate::output::console::Console;

pub(super) fn run(args: &AgentReleaseArgs, console: &Console) -> Result<Outcome, Failure> {
    let configuration = read_configuration(&args.config)?;
    if let Ok(answer) = request(&configuration.node.socket, "release") {
        console.result(answer.trim())?;
        return Ok(Outcome::Done);
    }
    let state = configuration.node.state.join("agent.redb");
    if !state.exists() {
        return Err(Failure::Input(format!("{}: no such file; nothing was changed", state.display())));
    }
    let mut configuration = configuration;
    // Restoring needs no exchange with other nodes.
    configuration.peers = None;
    let mut assembly = assemble(configuration, true, &SystemRoot::default()).map_err(assemble_failure)?;
    let released = assembly.agent.release();
    let groups = if released.groups == 1 { "1 group has".into() } else { format!("{} groups have", released.groups) };
    console.result(&format!("{groups} their old values again."))?;
    released.failed.iter().for_each(|failed| console.error(failed));
    Ok(if released.failed.is_empty() { Outcome::Done } else { Outcome::DoesNotHold })
}
