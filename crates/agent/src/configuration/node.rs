//! The section `[node]`: the resources and files of this node.

use std::path::PathBuf;

use evenhand_documents::DocumentError;
use evenhand_enforcers::cgroups::{PerResource, Resource};

use super::fields::{number, path};
use super::section::Section;

/// The resources and files of this node, as far as they are configured.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeSection {
    /// The node's name for other nodes; `None`: the host name.
    pub name: Option<String>,
    /// The supply in processors, bytes, and bytes per second; `None`: to be determined.
    pub supply: PerResource<Option<f64>>,
    /// The speed of a processor.
    pub speed: Speed,
    /// The directory for the state that survives a crash.
    pub state: PathBuf,
    /// The socket for requests to the running agent.
    pub socket: PathBuf,
    /// The group below which workloads are managed; empty: the whole machine.
    pub under: String,
}

/// How CPU seconds of this node are converted to those of the reference node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speed {
    /// By this factor.
    Given(f64),
    /// By the ratio of the kernel's BogoMIPS to those of the reference node, as in Poullie et al. (2016).
    BogoMips {
        /// The BogoMIPS of a processor of the reference node.
        reference: f64,
    },
    /// By the ratio of the result of a short benchmark, which runs once, to that of the reference node.
    Benchmark {
        /// The result of the reference node, in millions of rounds per second.
        reference: f64,
    },
}

impl Default for NodeSection {
    fn default() -> NodeSection {
        NodeSection {
            name: None,
            supply: PerResource::default(),
            speed: Speed::Given(1.0),
            state: PathBuf::from("/var/lib/evenhand"),
            socket: PathBuf::from("/run/evenhand/agent.sock"),
            under: String::new(),
        }
    }
}

impl NodeSection {
    pub(super) fn read(table: &Section<'_>) -> Result<NodeSection, DocumentError> {
        table.deny_unknown(&["name", "cpu", "mem", "disk", "net", "speed", "reference", "state", "socket", "under"])?;
        let mut section = NodeSection::default();
        if let Some(node) = table.get("name") {
            let name = node.text()?;
            if name.is_empty() || name.chars().any(char::is_control) {
                return Err(node.error("expected a name"));
            }
            section.name = Some(name.to_owned());
        }
        for resource in Resource::ALL {
            let Some(node) = table.get(resource.name()) else { continue };
            section.supply[resource] = Some(node.positive()?.to_f64());
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

fn speed(table: &Section<'_>) -> Result<Speed, DocumentError> {
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
