//! Reads the configuration of the agent from a TOML file.

mod fields;
mod heaviness_and_control_law;
mod node;
mod peers;

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use evenhand_documents::{Document, DocumentError};
use evenhand_enforcers::cgroups::{Hierarchies, ProtectedCgroups};

use crate::discovery::Discovery;

pub use self::heaviness_and_control_law::{ControlSection, HeavinessSection, Law};
pub use self::node::{NodeSection, Speed};
pub use self::peers::{NetworkSection, PeersSection};

use self::fields::{parsed, section};

/// The JSON Schema (draft 7) of the configuration, for editors: with every key, its type, and its default.
pub const CONFIGURATION_SCHEMA: &str = include_str!("agent.schema.json");

/// The configuration of an agent.
pub struct Configuration {
    /// The resources and files of this node.
    pub node: NodeSection,
    /// How heaviness is computed.
    pub heaviness: HeavinessSection,
    /// How weights follow from heaviness.
    pub control: ControlSection,
    /// The device through which the machine sends; `None`: network traffic is not divided.
    pub network: Option<NetworkSection>,
    /// The exchange with other nodes; `None`: the node is alone.
    pub peers: Option<PeersSection>,
    /// The file with the entitlements of users.
    pub quotas: Option<PathBuf>,
    /// The address at which Prometheus reads the metrics.
    pub metrics: Option<SocketAddr>,
    /// The sources of running workloads.
    pub discovery: Discovery,
}

impl Configuration {
    /// Reads a document. Missing keys have their defaults; unknown keys are errors.
    ///
    /// # Errors
    /// Returns an error with the position of an invalid or missing value.
    pub fn read(
        document: &Document,
        hierarchies: &Hierarchies,
        protected: ProtectedCgroups,
    ) -> Result<Configuration, DocumentError> {
        let root = document.root()?;
        root.deny_unknown(&["node", "heaviness", "control", "guests", "quotas", "network", "peers", "metrics"])?;
        let empty = Document::parse(document.source().name(), "", Some(evenhand_documents::Format::Toml))?;
        let empty = empty.root()?;
        let or_empty = |key| Ok::<_, DocumentError>(section(&root, key)?.unwrap_or_else(|| empty.clone()));
        let rules = root.required("guests", "a table [[guests]] for each kind of group that may be given weights")?;
        let tables = rules.list()?.map(|rule| rule.table()).collect::<Result<Vec<_>, _>>()?;
        if tables.is_empty() {
            return Err(rules.error("expected at least one [[guests]]: only the groups that it names are changed"));
        }
        let discovery = Discovery::read(tables, hierarchies, protected)?;
        let metrics = match section(&root, "metrics")? {
            None => None,
            Some(table) => {
                table.deny_unknown(&["listen"])?;
                let expected = "an address and a port, as in 127.0.0.1:9750";
                Some(parsed(&table.required("listen", expected)?, expected)?)
            }
        };
        Ok(Configuration {
            node: NodeSection::read(&or_empty("node")?)?,
            heaviness: HeavinessSection::read(&or_empty("heaviness")?)?,
            control: ControlSection::read(&or_empty("control")?)?,
            network: section(&root, "network")?.map(|table| NetworkSection::read(&table)).transpose()?,
            peers: section(&root, "peers")?.map(|table| PeersSection::read(&table)).transpose()?,
            quotas: section(&root, "quotas")?.map(|table| peers::file(&table)).transpose()?.flatten(),
            metrics,
            discovery,
        })
    }
}

impl fmt::Debug for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Configuration { node, heaviness, control, network, peers, quotas, metrics, discovery: _ } = self;
        f.debug_struct("Configuration")
            .field("node", node)
            .field("heaviness", heaviness)
            .field("control", control)
            .field("network", network)
            .field("peers", peers)
            .field("quotas", quotas)
            .field("metrics", metrics)
            .finish_non_exhaustive()
    }
}
