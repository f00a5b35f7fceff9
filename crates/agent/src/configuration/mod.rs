//! What an operator says, in one TOML file.

mod control;
mod fields;
mod node;
mod peers;

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::discovery::{Guests, Own};
use evenhand_documents::{Document, DocumentError};
use evenhand_enforcers::cgroups::Hierarchies;

pub use self::control::{ControlSection, HeavinessSection, Law};
pub use self::node::{NodeSection, Speed};
pub use self::peers::{NetworkSection, PeersSection};

use self::fields::{parsed, section};

/// All of it.
pub struct Configuration {
    /// What this machine has.
    pub node: NodeSection,
    /// What heaviness is.
    pub heaviness: HeavinessSection,
    /// How weights follow.
    pub control: ControlSection,
    /// Over which device guests send; `None`: the network is left alone.
    pub network: Option<NetworkSection>,
    /// Whom it talks to; `None`: nobody.
    pub peers: Option<PeersSection>,
    /// The file with what is due to users.
    pub quotas: Option<PathBuf>,
    /// Where Prometheus asks.
    pub metrics: Option<SocketAddr>,
    /// Who runs here.
    pub guests: Guests,
}

impl Configuration {
    /// From a document. What it does not say has its default; what it says and nobody knows is an error.
    ///
    /// # Errors
    /// At the place of what is wrong or not there.
    pub fn read(document: &Document, hierarchies: &Hierarchies, own: Own) -> Result<Configuration, DocumentError> {
        let root = document.root()?;
        root.deny_unknown(&["node", "heaviness", "control", "guests", "quotas", "network", "peers", "metrics"])?;
        let empty = Document::parse(document.source().name(), "", Some(evenhand_documents::Format::Toml))?;
        let empty = empty.root()?;
        let or_empty = |key| Ok::<_, DocumentError>(section(&root, key)?.unwrap_or_else(|| empty.clone()));
        let rules = root.required("guests", "a [[guests]] for each kind of group that may be weighed")?;
        let tables = rules.list()?.map(|rule| rule.table()).collect::<Result<Vec<_>, _>>()?;
        if tables.is_empty() {
            return Err(rules.error("expected at least one [[guests]]: only what is named there is touched"));
        }
        let guests = Guests::read(tables, hierarchies, own)?;
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
            guests,
        })
    }
}

impl fmt::Debug for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Configuration { node, heaviness, control, network, peers, quotas, metrics, guests: _ } = self;
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
