//! The agent of this machine, asked for the page of the nodes.

use std::path::PathBuf;

use evenhand_serve::{AgentNode, AgentReader, AgentRecord, AgentUser};

use super::reported_silence::Silence;
use crate::output::console::Console;
use crate::verbs::agent::query_status;

/// An agent at its control socket, whose silence is reported.
pub(super) struct LocalAgent {
    socket: PathBuf,
    silence: Silence,
}

impl LocalAgent {
    pub(super) fn new(socket: PathBuf, console: Console) -> LocalAgent {
        LocalAgent { socket, silence: Silence::new("The agent", console) }
    }
}

impl AgentReader for LocalAgent {
    fn read(&mut self) -> Result<AgentRecord, String> {
        let status = query_status(&self.socket).map_err(|failure| failure.to_string());
        self.silence.asked(status.as_ref().err().map(String::as_str));
        let status = status?;
        let nodes = status.nodes.into_iter().map(|node| AgentNode {
            name: node.name,
            age_s: node.age_s,
            state: node.state,
            fresh: node.fresh,
        });
        let users = status.users.into_iter().map(|user| AgentUser {
            name: user.name,
            workloads: user.workloads,
            heaviness: user.heaviness,
            shares: user.shares,
            entitlements: user.entitlements,
        });
        Ok(AgentRecord {
            node: status.node,
            at_s: status.at_s,
            applied: status.applied,
            interval_s: status.interval_s,
            nodes: nodes.collect(),
            users: users.collect(),
            hidden: false,
        })
    }
}
