//! Sealed messages between nodes, over TCP.
//!
//! A connection goes one way: who opens it sends. The other first sends a random challenge and from then on nothing. TCP,
//! because records can be larger than a datagram, and what IP would cut into pieces is lost with any of them. A message
//! that cannot be sent at once is dropped: both protocols expect that, and neither wants old ones.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

use crate::transport::config::{Filter, Traffic};
use crate::transport::seal::{CHALLENGE, SALT, Seal, TAG};

/// The longest message: totals of the most users there may be, twice.
const MOST_BYTES: usize = 64 << 20;
/// The longest first message: an address and a name.
const MOST_GREETING: usize = 1024;
/// How many connections may be without a greeting at a time.
const MOST_STRANGERS: usize = 64;
/// How many messages may wait for one node.
const MOST_WAITING: usize = 16;
/// How long to wait for a connection, a greeting, or for a node to take a message and to say that it did.
const PATIENCE: Duration = Duration::from_secs(3);
/// After so long without a message a connection is closed.
const IDLE: Duration = Duration::from_secs(60);

/// A message that came.
pub(crate) struct Received {
    /// The address at which its sender listens.
    pub(crate) from: SocketAddr,
    /// What it is about.
    pub(crate) kind: u8,
    pub(crate) bytes: Vec<u8>,
}

/// What a node can be told by.
#[derive(Clone)]
pub(crate) struct Link(Arc<Inner>);

struct Inner {
    node: String,
    address: SocketAddr,
    key: [u8; 32],
    filter: Option<Filter>,
    connections: Mutex<HashMap<SocketAddr, mpsc::Sender<Vec<u8>>>>,
    counters: Arc<Counters>,
}

#[derive(Default)]
pub(crate) struct Counters {
    sent: AtomicU64,
    bytes_sent: AtomicU64,
    received: AtomicU64,
    bytes_received: AtomicU64,
    dropped: AtomicU64,
    refused: AtomicU64,
}

impl Counters {
    pub(crate) fn traffic(&self) -> Traffic {
        Traffic {
            sent: self.sent.load(Relaxed),
            bytes_sent: self.bytes_sent.load(Relaxed),
            received: self.received.load(Relaxed),
            bytes_received: self.bytes_received.load(Relaxed),
            dropped: self.dropped.load(Relaxed),
            refused: self.refused.load(Relaxed),
        }
    }
}

impl Link {
    /// Listens, and answers what comes.
    pub(crate) fn open(
        node: &str,
        address: SocketAddr,
        key: [u8; 32],
        filter: Option<Filter>,
        counters: Arc<Counters>,
        listener: TcpListener,
    ) -> (Link, mpsc::Receiver<Received>) {
        let connections = Mutex::new(HashMap::new());
        let link = Link(Arc::new(Inner { node: node.to_owned(), address, key, filter, connections, counters }));
        let (sender, receiver) = mpsc::channel(256);
        tokio::spawn(accept(link.clone(), listener, sender));
        (link, receiver)
    }

    /// Sends, if that is possible at once and now. Answers how long the message is on the wire.
    pub(crate) fn send(&self, to: SocketAddr, kind: u8, bytes: &[u8]) -> usize {
        let inner = &self.0;
        let length = 4 + 1 + bytes.len() + TAG;
        if !self.allows(to) || length > MOST_BYTES {
            inner.counters.dropped.fetch_add(1, Relaxed);
            return length;
        }
        let mut message = Vec::with_capacity(length);
        message.push(kind);
        message.extend_from_slice(bytes);
        let mut connections = inner.connections.lock().unwrap_or_else(PoisonError::into_inner);
        let message = match connections.get(&to).map(|open| open.try_send(message)) {
            Some(Ok(())) => return length,
            Some(Err(mpsc::error::TrySendError::Full(_))) => {
                inner.counters.dropped.fetch_add(1, Relaxed);
                return length;
            }
            // It has ended; this one goes on a new connection.
            Some(Err(mpsc::error::TrySendError::Closed(message))) => message,
            None => {
                let mut message = Vec::with_capacity(length);
                message.push(kind);
                message.extend_from_slice(bytes);
                message
            }
        };
        let (sender, receiver) = mpsc::channel(MOST_WAITING);
        if sender.try_send(message).is_ok() {
            connections.insert(to, sender);
            tokio::spawn(connection(self.clone(), to, receiver));
        }
        length
    }

    fn allows(&self, peer: SocketAddr) -> bool {
        self.0.filter.as_ref().is_none_or(|filter| filter.allows(peer))
    }
}

/// The outgoing side.
async fn connection(link: Link, to: SocketAddr, mut messages: mpsc::Receiver<Vec<u8>>) {
    let _ = outgoing(&link, to, &mut messages).await;
    messages.close();
    let mut left = 0;
    while messages.try_recv().is_ok() {
        left += 1;
    }
    link.0.counters.dropped.fetch_add(left, Relaxed);
    let mut connections = link.0.connections.lock().unwrap_or_else(PoisonError::into_inner);
    if connections.get(&to).is_some_and(mpsc::Sender::is_closed) {
        connections.remove(&to);
    }
}

async fn outgoing(link: &Link, to: SocketAddr, messages: &mut mpsc::Receiver<Vec<u8>>) -> io::Result<()> {
    let inner = &link.0;
    let mut stream = timeout(PATIENCE, TcpStream::connect(to)).await??;
    stream.set_nodelay(true)?;
    give_up(&stream)?;
    let mut challenge = [0; CHALLENGE];
    timeout(PATIENCE, stream.read_exact(&mut challenge)).await??;
    let mut salt = [0; SALT];
    getrandom::fill(&mut salt).map_err(io::Error::other)?;
    let mut seal = Seal::new(&inner.key, challenge, salt);
    let greeting = Greeting { from: inner.address, node: inner.node.clone() }.encode();
    let mut first = salt.to_vec();
    first.extend(framed(&mut seal, greeting)?);
    timeout(PATIENCE, stream.write_all(&first)).await??;
    let (mut reader, mut writer) = stream.split();
    let mut nothing = [0; 1];
    loop {
        let message = tokio::select! {
            message = timeout(IDLE, messages.recv()) => message,
            // The other sends no more: this is its end.
            _ = reader.read(&mut nothing) => return Ok(()),
        };
        let Ok(Some(message)) = message else { return Ok(()) };
        let frame = framed(&mut seal, message)?;
        timeout(PATIENCE, writer.write_all(&frame)).await??;
        inner.counters.sent.fetch_add(1, Relaxed);
        inner.counters.bytes_sent.fetch_add(frame.len() as u64, Relaxed);
    }
}

/// What nobody acknowledges ends the connection, and the next message goes on a new one. TCP would go on trying for a quarter
/// of an hour, ever more seldom: after a partition it would be silent for about as long again.
fn give_up(stream: &TcpStream) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::net::sockopt::set_tcp_user_timeout(stream, PATIENCE.as_millis() as u32)?;
    #[cfg(not(target_os = "linux"))]
    let _ = stream;
    Ok(())
}

fn framed(seal: &mut Seal, mut message: Vec<u8>) -> io::Result<Vec<u8>> {
    seal.seal(&mut message).map_err(|_| io::Error::other("cannot be sealed"))?;
    let length = u32::try_from(message.len()).map_err(io::Error::other)?;
    let mut frame = length.to_be_bytes().to_vec();
    frame.append(&mut message);
    Ok(frame)
}

async fn accept(link: Link, listener: TcpListener, sender: mpsc::Sender<Received>) {
    let strangers = Arc::new(Semaphore::new(MOST_STRANGERS));
    loop {
        let Ok(permit) = Arc::clone(&strangers).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let (link, sender) = (link.clone(), sender.clone());
                tokio::spawn(async move {
                    let mut permit = Some(permit);
                    if incoming(&link, stream, &sender, || permit = None).await.is_err_and(|error| is_forged(&error)) {
                        link.0.counters.refused.fetch_add(1, Relaxed);
                    }
                });
            }
            // No file descriptors, for example: what is open goes on meanwhile.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

fn is_forged(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidData
}

/// The incoming side. `known` is called when the other has shown that it has the key.
async fn incoming(
    link: &Link,
    mut stream: TcpStream,
    sender: &mpsc::Sender<Received>,
    mut known: impl FnMut(),
) -> io::Result<()> {
    let inner = &link.0;
    let mut challenge = [0; CHALLENGE];
    getrandom::fill(&mut challenge).map_err(io::Error::other)?;
    timeout(PATIENCE, stream.write_all(&challenge)).await??;
    let mut salt = [0; SALT];
    timeout(PATIENCE, stream.read_exact(&mut salt)).await??;
    let mut seal = Seal::new(&inner.key, challenge, salt);
    let first = timeout(PATIENCE, read(&mut stream, &mut seal, MOST_GREETING)).await??;
    let forged = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let greeting = Greeting::decode(&first).ok_or_else(|| forged("no greeting"))?;
    // What this node itself has sent comes back from nobody.
    if greeting.node == inner.node || greeting.from == inner.address {
        return Err(forged("this node's own name or address"));
    }
    known();
    loop {
        let mut message = read(&mut stream, &mut seal, MOST_BYTES).await?;
        inner.counters.received.fetch_add(1, Relaxed);
        inner.counters.bytes_received.fetch_add((4 + message.len() + TAG) as u64, Relaxed);
        if message.is_empty() {
            return Err(forged("an empty message"));
        }
        if !link.allows(greeting.from) {
            inner.counters.dropped.fetch_add(1, Relaxed);
            continue;
        }
        let bytes = message.split_off(1);
        // Whoever is slow to take messages slows down those that send them.
        if sender.send(Received { from: greeting.from, kind: message[0], bytes }).await.is_err() {
            return Ok(());
        }
    }
}

async fn read(stream: &mut TcpStream, seal: &mut Seal, most: usize) -> io::Result<Vec<u8>> {
    let length = stream.read_u32().await? as usize;
    if length > most {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "too long"));
    }
    // Memory for what is there, not for what is announced.
    let mut message = Vec::with_capacity(length.min(1 << 16));
    let read = stream.take(length as u64).read_to_end(&mut message).await?;
    if read < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    seal.open(&mut message).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "not sealed with this key"))?;
    Ok(message)
}

/// Who sends, and from where.
struct Greeting {
    from: SocketAddr,
    node: String,
}

impl Greeting {
    fn encode(&self) -> Vec<u8> {
        format!("evenhand 1\n{}\n{}", self.from, self.node).into_bytes()
    }

    fn decode(bytes: &[u8]) -> Option<Greeting> {
        let mut lines = std::str::from_utf8(bytes).ok()?.splitn(3, '\n');
        if lines.next()? != "evenhand 1" {
            return None;
        }
        Some(Greeting { from: lines.next()?.parse().ok()?, node: lines.next()?.to_owned() })
    }
}
