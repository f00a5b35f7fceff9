//! Gossip with chitchat over sealed connections.
//!
//! chitchat (Scuttlebutt reconciliation, van Renesse et al. 2008) distributes which nodes are alive, their addresses,
//! and the version of each node's record. A node that lacks a record requests it from its owner. The records themselves
//! are not gossiped, because chitchat never sends a value that exceeds 64 KiB, three concurrent gossip rounds transfer
//! the same values three times, and each is compressed again. With records of 1.6 kB that did not keep up with 20 nodes
//! on one core.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use crate::exchange::Record;
use async_trait::async_trait;
use chitchat::transport::{Socket, Transport};
use chitchat::{
    ChitchatConfig, ChitchatHandle, ChitchatId, ChitchatMessage, Deserializable, FailureDetectorConfig, Serializable,
    spawn_chitchat,
};
use tokio::sync::mpsc;

use crate::transport::config::Config;
use crate::transport::exchange_thread::{GossipState, Shared};
use crate::transport::sealed_connections::{ReceivedMessage, SealedConnections};

const GOSSIP: u8 = 20;
/// Requests a record.
const REQUEST: u8 = 21;
const RECORD: u8 = 22;

/// The number of gossip rounds in each interval. In each round an update reaches three more nodes from every informed
/// node.
const GOSSIP_ROUNDS: u32 = 2;
const KEY: &str = "version";

/// Runs until the connections are closed.
pub(crate) async fn run(
    config: &Config,
    address: SocketAddr,
    link: SealedConnections,
    mut received: mpsc::Receiver<ReceivedMessage>,
    shared: &Arc<Shared<GossipState>>,
) {
    let (to_chitchat, from_link) = mpsc::channel(256);
    let transport = SealedTransport { link: link.clone(), received: Mutex::new(Some(from_link)) };
    let gossip_interval = config.interval / GOSSIP_ROUNDS;
    let settings = ChitchatConfig {
        chitchat_id: ChitchatId::new(config.node.clone(), config.incarnation, address),
        cluster_id: "evenhand".to_owned(),
        gossip_interval,
        listen_addr: address,
        seed_nodes: config.seeds.iter().map(SocketAddr::to_string).collect(),
        failure_detector_config: FailureDetectorConfig {
            initial_interval: gossip_interval,
            max_interval: 10 * config.interval,
            dead_node_grace_period: 100 * config.interval,
            ..FailureDetectorConfig::default()
        },
        marked_for_deletion_grace_period: 100 * config.interval,
        catchup_callback: None,
        extra_liveness_predicate: None,
    };
    let Ok(chitchat) = spawn_chitchat(settings, Vec::new(), &transport).await else { return };
    let mut state = State { chitchat, own: Arc::new(Vec::new()) };
    let mut timer = tokio::time::interval(gossip_interval);
    timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            message = received.recv() => match message {
                None => return,
                Some(ReceivedMessage { from, kind: GOSSIP, bytes, .. }) => {
                    // Dropped if chitchat is behind; gossip is repeated.
                    let _ = to_chitchat.try_send((from, bytes));
                }
                Some(ReceivedMessage { from, kind: REQUEST, .. }) => {
                    if !state.own.is_empty() {
                        link.send(from, RECORD, &state.own);
                    }
                }
                Some(ReceivedMessage { kind: RECORD, bytes, node, certified, .. }) => {
                    receive(&link, shared, certified.then_some(&*node), &bytes);
                }
                Some(_) => {}
            },
            _ = timer.tick() => state.announce_and_request(&link, shared).await,
        }
    }
}

/// Stores a record, which comes from its own node; where certificates prove names, a record of another node is a forgery.
fn receive(link: &SealedConnections, shared: &Shared<GossipState>, certified: Option<&str>, bytes: &[u8]) {
    if let Ok(record) = Record::decode(bytes) {
        if certified.is_some_and(|sender| sender != record.node) {
            link.reject();
            return;
        }
        let now = shared.now();
        shared.lock().store.receive(now, record);
    }
}

struct State {
    chitchat: ChitchatHandle,
    /// This node's encoded record.
    own: Arc<Vec<u8>>,
}

impl State {
    /// Announces this node's new version, and requests newer records of other nodes.
    async fn announce_and_request(&mut self, link: &SealedConnections, shared: &Shared<GossipState>) {
        let chitchat = self.chitchat.chitchat();
        let mut chitchat = chitchat.lock().await;
        let outgoing = shared.lock().outgoing.take();
        if let Some((record, bytes)) = outgoing {
            self.own = Arc::new(bytes);
            let value = format!("{} {}", record.incarnation, record.sequence);
            chitchat.self_node_state().set(KEY, value);
        }
        // Live nodes only: chitchat also lists dead nodes to new members.
        let me = chitchat.self_chitchat_id().clone();
        for id in chitchat.live_nodes().filter(|id| **id != me) {
            let value = chitchat.node_state(id).and_then(|state| state.get(KEY));
            let Some(version) = value.and_then(version) else { continue };
            // The request is repeated in each round until the record arrives.
            if shared.lock().store.version(&id.node_id).is_none_or(|known| known < version) {
                link.send(id.gossip_advertise_addr, REQUEST, &[]);
            }
        }
    }
}

fn version(text: &str) -> Option<(u64, u64)> {
    let (incarnation, sequence) = text.split_once(' ')?;
    Some((incarnation.parse().ok()?, sequence.parse().ok()?))
}

/// Messages for chitchat: the sender's address and the bytes.
type ChitchatMessages = mpsc::Receiver<(SocketAddr, Vec<u8>)>;

/// The transport of chitchat.
struct SealedTransport {
    link: SealedConnections,
    received: Mutex<Option<ChitchatMessages>>,
}

#[async_trait]
impl Transport for SealedTransport {
    async fn open(&self, _: SocketAddr) -> anyhow::Result<Box<dyn Socket>> {
        let received = self.received.lock().unwrap_or_else(PoisonError::into_inner).take();
        let received = received.ok_or_else(|| anyhow::anyhow!("opened twice"))?;
        Ok(Box::new(SealedSocket { link: self.link.clone(), received }))
    }
}

struct SealedSocket {
    link: SealedConnections,
    received: ChitchatMessages,
}

#[async_trait]
impl Socket for SealedSocket {
    async fn send(&mut self, to: SocketAddr, message: ChitchatMessage) -> anyhow::Result<()> {
        self.link.send(to, GOSSIP, &message.serialize_to_vec());
        Ok(())
    }

    async fn recv(&mut self) -> anyhow::Result<(SocketAddr, ChitchatMessage)> {
        loop {
            let (from, bytes) =
                self.received.recv().await.ok_or_else(|| anyhow::anyhow!("the connections are closed"))?;
            if let Ok(message) = ChitchatMessage::deserialize(&mut bytes.as_slice()) {
                return Ok((from, message));
            }
        }
    }
}
