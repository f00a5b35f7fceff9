//! The section `[node]`: the resources and files of this node.

use std::path::{Path, PathBuf};

use evenhand_documents::DocumentError;
use evenhand_enforcers::cgroups::{Hierarchies, PerResource, Resource};

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
        if let Some(node) = table.get("socket").filter(|_| !is_socket_path(&section.socket)) {
            let expected = format!("the path of a socket, of 1 to {LONGEST_SOCKET} bytes");
            return Err(node.error(format!("found {:?}, expected {expected}", section.socket)));
        }
        if let Some(node) = table.get("state").filter(|_| section.state.as_os_str().is_empty()) {
            return Err(node.error("found \"\", expected the path of a folder"));
        }
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

/// The longest path of a socket: `sun_path` has 108 bytes on Linux, of which the last is 0 (unix(7)).
const LONGEST_SOCKET: usize = 107;

fn is_socket_path(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    (1..=LONGEST_SOCKET).contains(&bytes.len()) && !bytes.contains(&0)
}

/// Returns the error of a group `under` that does not exist.
pub(super) fn missing_under(
    table: &Section<'_>,
    section: &NodeSection,
    hierarchies: &Hierarchies,
) -> Option<DocumentError> {
    let root = hierarchies.main().filter(|root| !section.under.is_empty() && !root.join(&section.under).is_dir())?;
    let problem = format!(
        "found {:?}, expected a control group that exists: there is none of this path in {}",
        section.under,
        root.display()
    );
    table.get("under").map(|node| node.error(problem))
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
