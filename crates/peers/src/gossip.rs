//! Gossip on chitchat, over sealed connections.
//!
//! chitchat (Scuttlebutt reconciliation, van Renesse et al. 2008) spreads a value a node and tells who lives. What two
//! nodes tell each other at once it limits to a datagram of 64 KiB, over whatever transport, and a value that does not
//! fit is never sent. So a record that is small is the value itself; of a large one the value says only which
//! it is, and whoever wants it asks its node.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use chitchat::transport::{Socket, Transport};
use chitchat::{
    ChitchatConfig, ChitchatHandle, ChitchatId, ChitchatMessage, Deserializable, FailureDetectorConfig, Serializable,
    Version, spawn_chitchat,
};
use evenhand_exchange::Record;
use tokio::sync::mpsc;

use crate::base64;
use crate::config::Config;
use crate::link::{Link, Received};
use crate::running::{Gossiped, Shared};

const GOSSIP: u8 = 20;
/// "Send me your record."
const WANT: u8 = 21;
const RECORD: u8 = 22;

/// The longest record that is a value itself, so that a datagram holds a few.
const MOST_INLINE: usize = 12 << 10;
/// How often nodes gossip in an interval: news reaches three others each time, and three times as many from there.
const MEETINGS: u32 = 4;
const KEY: &str = "record";

/// Runs until the connections end.
pub(crate) async fn run(
    config: &Config,
    address: SocketAddr,
    link: Link,
    mut received: mpsc::Receiver<Received>,
    shared: &Arc<Shared<Gossiped>>,
) {
    let (to_chitchat, from_link) = mpsc::channel(256);
    let transport = LinkTransport { link: link.clone(), received: Mutex::new(Some(from_link)) };
    let meeting = config.interval / MEETINGS;
    let settings = ChitchatConfig {
        chitchat_id: ChitchatId::new(config.node.clone(), config.incarnation, address),
        cluster_id: "evenhand".to_owned(),
        gossip_interval: meeting,
        listen_addr: address,
        seed_nodes: config.seeds.iter().map(SocketAddr::to_string).collect(),
        failure_detector_config: FailureDetectorConfig {
            initial_interval: meeting,
            max_interval: 10 * config.interval,
            dead_node_grace_period: 100 * config.interval,
            ..FailureDetectorConfig::default()
        },
        marked_for_deletion_grace_period: 100 * config.interval,
        catchup_callback: None,
        extra_liveness_predicate: None,
    };
    let Ok(chitchat) = spawn_chitchat(settings, Vec::new(), &transport).await else { return };
    let mut state = State { chitchat, seen: HashMap::new(), own: Arc::new(Vec::new()) };
    let mut look = tokio::time::interval(meeting);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            message = received.recv() => match message {
                None => return,
                Some(Received { from, kind: GOSSIP, bytes }) => {
                    // Dropped if chitchat is behind: it gossips again.
                    let _ = to_chitchat.try_send((from, bytes));
                }
                Some(Received { from, kind: WANT, .. }) => {
                    if !state.own.is_empty() {
                        link.send(from, RECORD, &state.own);
                    }
                }
                Some(Received { kind: RECORD, bytes, .. }) => hear(shared, &bytes),
                Some(_) => {}
            },
            _ = look.tick() => state.look(&link, shared).await,
        }
    }
}

fn hear(shared: &Shared<Gossiped>, bytes: &[u8]) {
    if let Ok(record) = Record::decode(bytes) {
        let now = shared.now();
        shared.lock().board.hear(now, record);
    }
}

struct State {
    chitchat: ChitchatHandle,
    /// The version of each node's value that was taken.
    seen: HashMap<ChitchatId, Version>,
    /// This node's record, if it is a large one.
    own: Arc<Vec<u8>>,
}

impl State {
    /// Publishes what is new here, and takes what is new elsewhere.
    async fn look(&mut self, link: &Link, shared: &Shared<Gossiped>) {
        let chitchat = self.chitchat.chitchat();
        let mut chitchat = chitchat.lock().await;
        let own = shared.lock().own.take();
        if let Some((record, bytes)) = own {
            let value = if bytes.len() <= MOST_INLINE {
                self.own = Arc::new(Vec::new());
                format!("={}", base64::encode(&bytes))
            } else {
                self.own = Arc::new(bytes);
                format!("@{} {}", record.incarnation, record.sequence)
            };
            chitchat.self_node_state().set(KEY, value);
        }
        // Only of those that live: what a dead node has said is passed on to newcomers too, and would be
        // fresh to them.
        let me = chitchat.self_chitchat_id().clone();
        let mut live = HashMap::new();
        for id in chitchat.live_nodes().filter(|id| **id != me) {
            let Some(value) = chitchat.node_state(id).and_then(|state| state.get_versioned(KEY)) else { continue };
            live.insert(id.clone(), value.version);
            if self.seen.get(id) == Some(&value.version) {
                continue;
            }
            if let Some(text) = value.value.strip_prefix('=') {
                if let Some(bytes) = base64::decode(text) {
                    hear(shared, &bytes);
                }
            } else if let Some(version) = value.value.strip_prefix('@').and_then(version) {
                let known = shared.lock().board.version(&id.node_id);
                if known.is_none_or(|known| known < version) {
                    link.send(id.gossip_advertise_addr, WANT, &[]);
                    // It is asked for again until it has come.
                    live.remove(id);
                }
            }
        }
        self.seen = live;
    }
}

fn version(text: &str) -> Option<(u64, u64)> {
    let (incarnation, sequence) = text.split_once(' ')?;
    Some((incarnation.parse().ok()?, sequence.parse().ok()?))
}

/// What came for chitchat: from whom, and the bytes.
type Post = mpsc::Receiver<(SocketAddr, Vec<u8>)>;

/// What chitchat sends and receives by.
struct LinkTransport {
    link: Link,
    received: Mutex<Option<Post>>,
}

#[async_trait]
impl Transport for LinkTransport {
    async fn open(&self, _: SocketAddr) -> anyhow::Result<Box<dyn Socket>> {
        let received = self.received.lock().unwrap_or_else(PoisonError::into_inner).take();
        let received = received.ok_or_else(|| anyhow::anyhow!("opened twice"))?;
        Ok(Box::new(LinkSocket { link: self.link.clone(), received }))
    }
}

struct LinkSocket {
    link: Link,
    received: Post,
}

#[async_trait]
impl Socket for LinkSocket {
    async fn send(&mut self, to: SocketAddr, message: ChitchatMessage) -> anyhow::Result<()> {
        self.link.send(to, GOSSIP, &message.serialize_to_vec());
        Ok(())
    }

    async fn recv(&mut self) -> anyhow::Result<(SocketAddr, ChitchatMessage)> {
        loop {
            let (from, bytes) = self.received.recv().await.ok_or_else(|| anyhow::anyhow!("the end"))?;
            if let Ok(message) = ChitchatMessage::deserialize(&mut bytes.as_slice()) {
                return Ok((from, message));
            }
        }
    }
}
