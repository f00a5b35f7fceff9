//! Reads the configuration of the agent from a TOML file.

mod changed_defaults;
mod fields;
mod heaviness_and_control_law;
mod node;
mod peers;
mod places;
mod section;
mod sources;

use std::fmt;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use evenhand_documents::{Document, DocumentError, Node, Table};
use evenhand_enforcers::cgroups::{Hierarchies, ProtectedCgroups};

use crate::discovery::Discovery;
use crate::trusted_files::{TrustError, check_trusted};

pub use self::changed_defaults::ChangedDefault;
pub(crate) use self::fields::is_not_loaded;
pub use self::heaviness_and_control_law::{ControlSection, HeavinessSection, Law};
pub use self::node::{NodeSection, Speed};
pub use self::peers::{NetworkSection, PeersSection};
pub use self::places::AgentPlaces;
pub use self::sources::{ConfigurationSources, likely_variable};

use self::fields::parsed;
use self::section::Section;

/// The JSON Schema (draft 7) of the configuration and its drop-in files, for editors: with every key, its type and limits, and its
/// default.
pub const CONFIGURATION_SCHEMA: &str = include_str!("agent.schema.json");

/// The sections of a configuration.
const SECTIONS: [&str; 8] = ["node", "heaviness", "control", "guests", "quotas", "network", "peers", "metrics"];

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
    /// The error of [`NodeSection::under`], if there is no such group on this machine: at its key.
    pub missing_under: Option<Box<DocumentError>>,
    /// The error of [`quotas`](Configuration::quotas), if there is no such file: at its key.
    pub missing_quotas: Option<Box<DocumentError>>,
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
        Configuration::of_layers(document.root()?, &[], hierarchies, protected)
    }

    /// Reads a configuration from all its sources, of which later ones are stronger.
    ///
    /// # Errors
    /// Returns an error with the position of an invalid or missing value.
    pub fn read_sources(
        sources: &ConfigurationSources,
        hierarchies: &Hierarchies,
        protected: ProtectedCgroups,
    ) -> Result<Configuration, DocumentError> {
        let mut roots = sources.documents.iter().map(Document::root).collect::<Result<Vec<_>, _>>()?;
        let first = roots.remove(0);
        Configuration::of_layers(first, &roots, hierarchies, protected)
    }

    fn of_layers(
        first: Table<'_>,
        others: &[Table<'_>],
        hierarchies: &Hierarchies,
        protected: ProtectedCgroups,
    ) -> Result<Configuration, DocumentError> {
        first.deny_unknown(&SECTIONS)?;
        others.iter().try_for_each(|root| root.deny_unknown(&SECTIONS))?;
        let section = |name| Section::of(&first, others, name);
        let optional = |name| section(name).map(Section::if_present);
        let rules = others.iter().rev().find_map(|root| root.get("guests")).map_or_else(
            || first.required("guests", "a table [[guests]] for each kind of group that may be given weights"),
            Ok,
        )?;
        let tables = rules.list()?.map(|rule| rule.table()).collect::<Result<Vec<_>, _>>()?;
        if tables.is_empty() {
            return Err(rules.error("expected at least one [[guests]]: only the groups that it names are changed"));
        }
        let mut discovery = Discovery::read(tables, hierarchies, protected)?;
        let node_section = section("node")?;
        let node = NodeSection::read(&node_section)?;
        discovery.limit_to(&node.under);
        let metrics = match optional("metrics")? {
            None => None,
            Some(table) => {
                table.deny_unknown(&["listen"])?;
                let expected = "an address and a port, as in 127.0.0.1:9750";
                Some(parsed(&table.required("listen", expected)?, expected)?)
            }
        };
        let quotas_section = optional("quotas")?;
        let quotas = match &quotas_section {
            Some(table) => peers::file(table)?,
            None => None,
        };
        Ok(Configuration {
            missing_under: node::missing_under(&node_section, &node, hierarchies).map(Box::new),
            node,
            heaviness: HeavinessSection::read(&section("heaviness")?)?,
            control: ControlSection::read(&section("control")?)?,
            network: optional("network")?.map(|table| NetworkSection::read(&table)).transpose()?,
            peers: optional("peers")?.map(|table| PeersSection::read(&table)).transpose()?,
            missing_quotas: quotas.as_ref().and_then(|(path, node)| missing_file(path, node)).map(Box::new),
            quotas: quotas.map(|(path, _)| path),
            metrics,
            discovery,
        })
    }
}

/// Returns the error of a file that does not exist, at the key that names it.
fn missing_file(path: &Path, node: &Node<'_>) -> Option<DocumentError> {
    let error = path.metadata().err().filter(|error| error.kind() == ErrorKind::NotFound)?;
    Some(node.error(format!("{}: {error}; expected a file that can be read", path.display())))
}

impl Configuration {
    /// Checks that only root and the user who runs this process can change the files of quotas, owners and tables, which decide
    /// what an agent writes.
    ///
    /// # Errors
    /// Returns the first violation.
    pub fn check_trusted_files(&self) -> Result<(), TrustError> {
        let files = self.quotas.as_deref().into_iter().chain(self.discovery.files());
        // One that is not there has an error of its own.
        files.filter(|file| file.exists()).try_for_each(check_trusted)
    }
}

impl fmt::Debug for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Configuration {
            node,
            heaviness,
            control,
            network,
            peers,
            quotas,
            metrics,
            discovery: _,
            missing_under: _,
            missing_quotas: _,
        } = self;
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
