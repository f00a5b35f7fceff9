//! `[node]`: what this machine has.

use std::path::PathBuf;

use evenhand_documents::{DocumentError, Table};
use evenhand_enforcers::cgroups::Control;

use super::fields::{number, path};

/// What this machine has, as far as the configuration says.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeSection {
    /// What other nodes call it. The machine's own name unless said.
    pub name: Option<String>,
    /// What there is by [`Control::ALL`]: processors, bytes, and bytes a second. `None`: to be found out.
    pub supply: [Option<f64>; 4],
    /// How fast a processor is.
    pub speed: Speed,
    /// Where what has to survive a crash is kept.
    pub state: PathBuf,
    /// The socket at which status and release are asked for.
    pub socket: PathBuf,
    /// The group below which everything is done; empty: all of the machine.
    pub under: String,
}

/// What a processor second of this node is worth in those of the reference node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speed {
    /// So much.
    Given(f64),
    /// The kernel's BogoMIPS over those of the reference node: what paper 003 does.
    BogoMips {
        /// Of a processor of the reference node.
        reference: f64,
    },
    /// The result of a short benchmark, made once and kept, over that of the reference node.
    Benchmark {
        /// Of the reference node, in millions of rounds a second.
        reference: f64,
    },
}

impl Default for NodeSection {
    fn default() -> NodeSection {
        NodeSection {
            name: None,
            supply: [None; 4],
            speed: Speed::Given(1.0),
            state: PathBuf::from("/var/lib/evenhand"),
            socket: PathBuf::from("/run/evenhand/agent.sock"),
            under: String::new(),
        }
    }
}

impl NodeSection {
    pub(super) fn read(table: &Table<'_>) -> Result<NodeSection, DocumentError> {
        table.deny_unknown(&["name", "cpu", "mem", "disk", "net", "speed", "reference", "state", "socket", "under"])?;
        let mut section = NodeSection::default();
        if let Some(node) = table.get("name") {
            let name = node.text()?;
            if name.is_empty() || name.chars().any(char::is_control) {
                return Err(node.error("expected a name"));
            }
            section.name = Some(name.to_owned());
        }
        for control in Control::ALL {
            let Some(node) = table.get(control.resource()) else { continue };
            section.supply[control as usize] = Some(node.positive()?.to_f64());
        }
        section.speed = speed(table)?;
        section.state = path(table, "state")?.unwrap_or(section.state);
        section.socket = path(table, "socket")?.unwrap_or(section.socket);
        if let Some(node) = table.get("under") {
            let under = node.text()?.trim_matches('/');
            if under.split('/').any(|part| part == ".." || part == ".") {
                return Err(node.error("expected the path of a control group, without . and .."));
            }
            section.under = under.to_owned();
        }
        Ok(section)
    }
}

fn speed(table: &Table<'_>) -> Result<Speed, DocumentError> {
    let reference = |kind: &str| -> Result<f64, DocumentError> {
        table.required("reference", &format!("the {kind} of the reference node"))?;
        number(table, "reference", 1.0, "a number greater than 0", |n| n > 0.0)
    };
    let unneeded = |speed| match table.get("reference") {
        Some(node) => Err(node.error("only needed with speed = \"bogomips\" or \"benchmark\"")),
        None => Ok(speed),
    };
    match table.get("speed") {
        None => unneeded(Speed::Given(1.0)),
        Some(node) if node.is_text() && node.text()? == "bogomips" => {
            Ok(Speed::BogoMips { reference: reference("BogoMIPS")? })
        }
        Some(node) if node.is_text() && node.text()? == "benchmark" => {
            Ok(Speed::Benchmark { reference: reference("benchmark result")? })
        }
        Some(node) => unneeded(Speed::Given(node.positive()?.to_f64())),
    }
}
