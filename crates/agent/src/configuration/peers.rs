//! The sections `[peers]` and `[network]`: the exchange with other nodes, and the device for network traffic.

use std::net::SocketAddr;
use std::path::PathBuf;

use evenhand_documents::{DocumentError, Node, Table};
use evenhand_enforcers::cgroups::{PerResource, Resource};
use evenhand_protocol::transport::TlsFiles;

use super::fields::{choice, parsed, secret};
use super::section::Section;

/// The exchange with other nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct PeersSection {
    /// The address at which this node listens, and by which others know it.
    pub listen: SocketAddr,
    /// The address at which others reach this node, if it differs.
    pub advertise: Option<SocketAddr>,
    /// Some of the other nodes, from which this one learns the rest.
    pub seeds: Vec<SocketAddr>,
    /// The file with the key that all nodes share.
    pub key: PathBuf,
    /// This node's certificate; without one, connections have no TLS.
    pub tls: Option<TlsFiles>,
    /// Whether records travel along a ring, rather than by gossip.
    pub ring: bool,
    /// The number of intervals without a record after which a node begins to count less.
    pub fresh: u32,
    /// The number of intervals after which it no longer counts.
    pub lost: u32,
    /// The largest supply of each resource that a node has: records that claim more are refused.
    pub largest: PerResource<Option<f64>>,
}

impl PeersSection {
    pub(super) fn read(table: &Section<'_>) -> Result<PeersSection, DocumentError> {
        table.deny_unknown(&["listen", "advertise", "seeds", "key", "tls", "exchange", "fresh", "lost", "largest"])?;
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
            let problem = format!("found lost = {lost} and fresh = {fresh}, expected lost to be greater");
            return Err(node.map_or_else(|| table.error(&problem), |node| node.error(&problem)));
        }
        let mut largest = PerResource::default();
        if let Some(node) = table.get("largest") {
            let table = node.table()?;
            table.deny_unknown(&Resource::ALL.map(|resource| resource.name()))?;
            for resource in Resource::ALL {
                let value = table.get(resource.name()).map(|node| node.positive().map(|q| q.to_f64())).transpose()?;
                largest[resource] = value;
            }
        }
        let kinds = [("gossip", false), ("ring", true)];
        let listens: SocketAddr = parsed(&listen, address)?;
        let advertise: Option<SocketAddr> = table.get("advertise").map(|node| parsed(&node, address)).transpose()?;
        if advertise.unwrap_or(listens).ip().is_unspecified() {
            let node = table.get("advertise").unwrap_or(listen);
            return Err(node.error(format!(
                "found {:?}, which stands for all addresses, expected advertise = the one at which other nodes reach this node",
                node.text()?
            )));
        }
        Ok(PeersSection {
            listen: listens,
            advertise,
            seeds,
            key: secret(&table.required("key", "the file with the key that all nodes share")?)?,
            tls: table.get("tls").map(|node| tls(&node.table()?)).transpose()?,
            ring: table.get("exchange").map(|node| choice(&node, &kinds)).transpose()?.unwrap_or(false),
            fresh,
            lost,
            largest,
        })
    }
}

fn tls(table: &Table<'_>) -> Result<TlsFiles, DocumentError> {
    table.deny_unknown(&["certificate", "key", "authorities"])?;
    let path = |key, what| secret(&table.required(key, what)?);
    Ok(TlsFiles {
        certificate: path("certificate", "the file with this node's certificate in PEM")?,
        key: path("key", "the file with the private key of this node's certificate in PEM")?,
        authorities: path("authorities", "the file with the certificates that sign those of nodes in PEM")?,
    })
}

/// The device through which the machine sends.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkSection {
    /// The name of the device.
    pub device: String,
    /// Whether a queueing discipline that another program configured may be replaced.
    pub replace: bool,
}

impl NetworkSection {
    pub(super) fn read(table: &Section<'_>) -> Result<NetworkSection, DocumentError> {
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

/// Reads the file that a section of one key names, with the key's value for errors.
pub(super) fn file<'d>(table: &Section<'d>) -> Result<Option<(PathBuf, Node<'d>)>, DocumentError> {
    table.deny_unknown(&["file"])?;
    let Some(node) = table.get("file") else { return Ok(None) };
    Ok(Some((PathBuf::from(node.text()?), node)))
}
