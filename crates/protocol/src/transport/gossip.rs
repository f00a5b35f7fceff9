//! Gossip on chitchat, over sealed connections.
//!
//! chitchat (Scuttlebutt reconciliation, van Renesse et al. 2008) tells who lives, where, and of which version each
//! node's record is; who lacks one asks its node for it. Records themselves are not gossiped: a value that does not fit
//! into 64 KiB is never sent, three meetings begun at once bring the same values three times, and each is compressed
//! anew. With records of 1.6 kB that did not keep up with 20 nodes on one core.

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
use crate::transport::link::{Link, Received};
use crate::transport::running::{Gossiped, Shared};

const GOSSIP: u8 = 20;
/// "Send me your record."
const WANT: u8 = 21;
const RECORD: u8 = 22;

/// How often nodes meet in an interval: news reaches three others each time, and three times as many from there.
const MEETINGS: u32 = 2;
const KEY: &str = "version";

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
    let mut state = State { chitchat, own: Arc::new(Vec::new()) };
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
    /// This node's record.
    own: Arc<Vec<u8>>,
}

impl State {
    /// Says what is new here, and asks for what is new elsewhere.
    async fn look(&mut self, link: &Link, shared: &Shared<Gossiped>) {
        let chitchat = self.chitchat.chitchat();
        let mut chitchat = chitchat.lock().await;
        let own = shared.lock().own.take();
        if let Some((record, bytes)) = own {
            self.own = Arc::new(bytes);
            let value = format!("{} {}", record.incarnation, record.sequence);
            chitchat.self_node_state().set(KEY, value);
        }
        // Only those that live: chitchat tells newcomers of the dead, too.
        let me = chitchat.self_chitchat_id().clone();
        for id in chitchat.live_nodes().filter(|id| **id != me) {
            let value = chitchat.node_state(id).and_then(|state| state.get(KEY));
            let Some(version) = value.and_then(version) else { continue };
            // It is asked for again at each look until it has come.
            if shared.lock().board.version(&id.node_id).is_none_or(|known| known < version) {
                link.send(id.gossip_advertise_addr, WANT, &[]);
            }
        }
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
