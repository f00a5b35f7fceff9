//! `evenhand agent release`

use evenhand_agent::{assemble, request};
use evenhand_enforcers::cgroups::SystemRoot;

use super::args::ReleaseArgs;
use super::{assembled, configuration};
use crate::console::Console;
use crate::failure::{Failure, Outcome};

pub(super) fn run(args: &ReleaseArgs, console: &Console) -> Result<Outcome, Failure> {
    let configuration = configuration(&args.config)?;
    if let Ok(answer) = request(&configuration.node.socket, "release") {
        console.result(answer.trim())?;
        return Ok(Outcome::Done);
    }
    let state = configuration.node.state.join("agent.redb");
    if !state.exists() {
        return Err(Failure::Input(format!("{}: there is no such file; nothing was written", state.display())));
    }
    let mut configuration = configuration;
    // Nobody has to be told.
    configuration.peers = None;
    let mut assembly = assemble(configuration, true, &SystemRoot::default()).map_err(assembled)?;
    let back = assembly.agent.release();
    let groups = if back.groups == 1 { "1 group has".into() } else { format!("{} groups have", back.groups) };
    console.result(&format!("{groups} what they had."))?;
    back.failed.iter().for_each(|failed| console.complain(failed));
    Ok(if back.failed.is_empty() { Outcome::Done } else { Outcome::DoesNotHold })
}
