//! `[peers]` and `[network]`: whom this node talks to, and over which device guests send.

use std::net::SocketAddr;
use std::path::PathBuf;

use evenhand_documents::{DocumentError, Table};

use super::fields::{choice, parsed, path};

/// Whom this node talks to.
#[derive(Clone, Debug, PartialEq)]
pub struct PeersSection {
    /// Where this node listens, and what others see as its address.
    pub listen: SocketAddr,
    /// Where others reach this node, if that is another address.
    pub advertise: Option<SocketAddr>,
    /// Some of the others; those know the rest.
    pub seeds: Vec<SocketAddr>,
    /// The file with the key that all nodes share.
    pub key: PathBuf,
    /// How nodes learn of each other.
    pub ring: bool,
    /// After how many intervals without news a node's word begins to count less.
    pub fresh: u32,
    /// After how many intervals it counts no more. A node that has heard nobody for so long puts back what it wrote.
    pub lost: u32,
    /// The most of each resource that a node has, by `Control::ALL`: who claims more is not believed.
    pub largest: [Option<f64>; 4],
}

impl PeersSection {
    pub(super) fn read(table: &Table<'_>) -> Result<PeersSection, DocumentError> {
        table.deny_unknown(&["listen", "advertise", "seeds", "key", "exchange", "fresh", "lost", "largest"])?;
        let address = "an address and a port, as in 192.0.2.7:9751";
        let listen = table.required("listen", address)?;
        let mut seeds = Vec::new();
        if let Some(node) = table.get("seeds") {
            for entry in node.list()? {
                seeds.push(parsed(&entry, address)?);
            }
        }
        let count = |key, default: u32| -> Result<u32, DocumentError> {
            let accepts = |n: f64| n >= 1.0 && n.fract() == 0.0 && n <= 1e6;
            super::fields::number(table, key, default.into(), "a whole number of at least 1", accepts).map(|n| n as u32)
        };
        let (fresh, lost) = (count("fresh", 3)?, count("lost", 10)?);
        if lost <= fresh {
            let node = table.get("lost").or_else(|| table.get("fresh"));
            let said = format!("found lost = {lost} and fresh = {fresh}, expected lost to be more");
            return Err(node.map_or_else(|| table.error(&said), |node| node.error(&said)));
        }
        let mut largest = [None; 4];
        if let Some(node) = table.get("largest") {
            let of = node.table()?;
            of.deny_unknown(&evenhand_enforcers::cgroups::Control::ALL.map(|c| c.resource()))?;
            for control in evenhand_enforcers::cgroups::Control::ALL {
                let most = of.get(control.resource()).map(|node| node.positive().map(|q| q.to_f64())).transpose()?;
                largest[control as usize] = most;
            }
        }
        let kinds = [("gossip", false), ("ring", true)];
        Ok(PeersSection {
            listen: parsed(&listen, address)?,
            advertise: table.get("advertise").map(|node| parsed(&node, address)).transpose()?,
            seeds,
            key: PathBuf::from(table.required("key", "the file with the key that all nodes share")?.text()?),
            ring: table.get("exchange").map(|node| choice(&node, &kinds)).transpose()?.unwrap_or(false),
            fresh,
            lost,
            largest,
        })
    }
}

/// Over which device guests send.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkSection {
    /// Its name.
    pub device: String,
    /// Whether a queueing discipline that is there already, by somebody's hand, may be replaced.
    pub replace: bool,
}

impl NetworkSection {
    pub(super) fn read(table: &Table<'_>) -> Result<NetworkSection, DocumentError> {
        table.deny_unknown(&["device", "replace"])?;
        let device = table.required("device", "the name of a network device")?;
        let name = device.text()?;
        if name.is_empty() || name.len() > 15 || name.contains(['/', ' ', '\n']) {
            return Err(device.error("expected the name of a network device"));
        }
        let replace = table.get("replace").map(|node| node.flag()).transpose()?.unwrap_or(false);
        Ok(NetworkSection { device: name.to_owned(), replace })
    }
}

pub(super) fn file(table: &Table<'_>) -> Result<Option<PathBuf>, DocumentError> {
    table.deny_unknown(&["file"])?;
    path(table, "file")
}
