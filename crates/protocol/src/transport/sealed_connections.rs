//! Encrypted and authenticated messages between nodes over TCP.
//!
//! A connection is unidirectional: the node that opens it sends. The other node first sends a random challenge, and
//! nothing after it. TCP, because records can exceed a datagram, and a fragmented datagram is lost with any of its
//! fragments. A message that cannot be sent at once is dropped: both protocols tolerate loss, and outdated messages
//! have no value.
//!
//! With certificates, all of this takes place within TLS ([`tls`](super::tls)).

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::timeout;

use crate::transport::config::{PeerFilter, Traffic};
use crate::transport::connection_cipher::{CHALLENGE, ConnectionCipher, SALT, TAG};
use crate::transport::credentials::Loaded;
use crate::transport::shared_names::NameWatch;
use crate::transport::tls::is_certificate_of;

/// The maximum length of a message in bytes: twice the totals for the maximum number of users.
const MAX_MESSAGE_LEN: usize = 64 << 20;
/// The maximum length of the first message, which holds an address and a name.
const MAX_GREETING_LEN: usize = 1024;
/// The maximum number of connections that have not sent a greeting yet.
const MAX_UNAUTHENTICATED: usize = 64;
/// The number of messages that may be queued for one node.
const SEND_QUEUE_LEN: usize = 16;
/// The time limit for a connection, a greeting, and for sending and acknowledging a message.
const IO_TIMEOUT: Duration = Duration::from_secs(3);
/// The time without messages after which a connection is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// A received message.
pub(crate) struct ReceivedMessage {
    /// The address on which its sender listens.
    pub(crate) from: SocketAddr,
    /// The kind, which determines its protocol.
    pub(crate) kind: u8,
    pub(crate) bytes: Vec<u8>,
    /// The sender's name.
    pub(crate) node: Arc<str>,
    /// Whether a certificate proves the name.
    pub(crate) certified: bool,
}

/// Sends messages to other nodes and receives theirs.
#[derive(Clone)]
pub(crate) struct SealedConnections(Arc<Inner>);

struct Inner {
    node: String,
    address: SocketAddr,
    credentials: watch::Receiver<Arc<Loaded>>,
    filter: Option<PeerFilter>,
    connections: Mutex<HashMap<SocketAddr, mpsc::Sender<Vec<u8>>>>,
    counters: Arc<Counters>,
    names: Arc<NameWatch>,
}

#[derive(Default)]
pub(crate) struct Counters {
    sent: AtomicU64,
    bytes_sent: AtomicU64,
    received: AtomicU64,
    bytes_received: AtomicU64,
    dropped: AtomicU64,
    rejected: AtomicU64,
}

impl Counters {
    pub(crate) fn traffic(&self) -> Traffic {
        Traffic {
            sent: self.sent.load(Relaxed),
            bytes_sent: self.bytes_sent.load(Relaxed),
            received: self.received.load(Relaxed),
            bytes_received: self.bytes_received.load(Relaxed),
            dropped: self.dropped.load(Relaxed),
            rejected: self.rejected.load(Relaxed),
        }
    }
}

impl SealedConnections {
    /// Accepts connections and returns the received messages.
    pub(crate) fn open(
        node: &str,
        address: SocketAddr,
        credentials: watch::Receiver<Arc<Loaded>>,
        filter: Option<PeerFilter>,
        (counters, names): (Arc<Counters>, Arc<NameWatch>),
        listener: TcpListener,
    ) -> (SealedConnections, mpsc::Receiver<ReceivedMessage>) {
        let connections = Mutex::new(HashMap::new());
        let node = node.to_owned();
        let link =
            SealedConnections(Arc::new(Inner { node, address, credentials, filter, connections, counters, names }));
        let (sender, receiver) = mpsc::channel(256);
        tokio::spawn(accept(link.clone(), listener, sender));
        (link, receiver)
    }

    /// Sends a message if that is possible without waiting. Returns its length on the wire in bytes.
    pub(crate) fn send(&self, to: SocketAddr, kind: u8, bytes: &[u8]) -> usize {
        let inner = &self.0;
        let length = 4 + 1 + bytes.len() + TAG;
        if !self.allows(to) || length > MAX_MESSAGE_LEN {
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
            // The connection was closed; the message goes to a new one.
            Some(Err(mpsc::error::TrySendError::Closed(message))) => message,
            None => {
                let mut message = Vec::with_capacity(length);
                message.push(kind);
                message.extend_from_slice(bytes);
                message
            }
        };
        let (sender, receiver) = mpsc::channel(SEND_QUEUE_LEN);
        if sender.try_send(message).is_ok() {
            connections.insert(to, sender);
            tokio::spawn(connection(self.clone(), to, receiver));
        }
        length
    }

    /// Notes that a node of this name is known to be at an address.
    pub(crate) fn note_name(&self, node: &str, address: SocketAddr) {
        self.0.names.note(node, address, Instant::now());
    }

    /// Counts a message that its sender may not send.
    pub(crate) fn reject(&self) {
        self.0.counters.rejected.fetch_add(1, Relaxed);
    }

    fn allows(&self, peer: SocketAddr) -> bool {
        self.0.filter.as_ref().is_none_or(|filter| filter.allows(peer))
    }
}

/// Runs an outgoing connection.
async fn connection(link: SealedConnections, to: SocketAddr, mut messages: mpsc::Receiver<Vec<u8>>) {
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

async fn outgoing(link: &SealedConnections, to: SocketAddr, messages: &mut mpsc::Receiver<Vec<u8>>) -> io::Result<()> {
    let mut credentials = link.0.credentials.clone();
    let used = Arc::clone(&credentials.borrow_and_update());
    let stream = timeout(IO_TIMEOUT, TcpStream::connect(to)).await??;
    stream.set_nodelay(true)?;
    limit_acknowledgement_time(&stream)?;
    let sending = async {
        match &used.tls {
            None => send_messages(link, stream, &used, messages).await,
            Some(tls) => {
                let stream = timeout(IO_TIMEOUT, tls.connector.connect(to.ip().into(), stream)).await??;
                send_messages(link, stream, &used, messages).await
            }
        }
    };
    tokio::select! {
        ended = sending => ended,
        // The next message opens a connection with the new ones.
        _ = credentials.changed() => Ok(()),
    }
}

async fn send_messages(
    link: &SealedConnections,
    stream: impl AsyncRead + AsyncWrite,
    credentials: &Loaded,
    messages: &mut mpsc::Receiver<Vec<u8>>,
) -> io::Result<()> {
    let inner = &link.0;
    let (mut reader, mut writer) = tokio::io::split(stream);
    let mut challenge = [0; CHALLENGE];
    timeout(IO_TIMEOUT, reader.read_exact(&mut challenge)).await??;
    let mut salt = [0; SALT];
    getrandom::fill(&mut salt).map_err(io::Error::other)?;
    let key = credentials.keys.first().ok_or_else(|| io::Error::other("there is no key"))?;
    let mut seal = ConnectionCipher::new(key, challenge, salt);
    let greeting = Greeting { from: inner.address, node: inner.node.clone() }.encode();
    let mut first = salt.to_vec();
    first.extend(framed(&mut seal, greeting)?);
    timeout(IO_TIMEOUT, write(&mut writer, &first)).await??;
    let mut nothing = [0; 1];
    loop {
        let message = tokio::select! {
            message = timeout(IDLE_TIMEOUT, messages.recv()) => message,
            // The other node sends nothing, so this is the end of the connection.
            _ = reader.read(&mut nothing) => return Ok(()),
        };
        let Ok(Some(message)) = message else { return Ok(()) };
        let frame = framed(&mut seal, message)?;
        timeout(IO_TIMEOUT, write(&mut writer, &frame)).await??;
        inner.counters.sent.fetch_add(1, Relaxed);
        inner.counters.bytes_sent.fetch_add(frame.len() as u64, Relaxed);
    }
}

/// Writes all bytes to the network; TLS would otherwise keep some of them.
async fn write(writer: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<()> {
    writer.write_all(bytes).await?;
    writer.flush().await
}

/// Ends a connection when a message is not acknowledged in time, so that the next message opens a new one. TCP would
/// retry for a quarter of an hour with growing pauses, and after a partition stay silent for about as long again.
fn limit_acknowledgement_time(stream: &TcpStream) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::net::sockopt::set_tcp_user_timeout(stream, IO_TIMEOUT.as_millis() as u32)?;
    #[cfg(not(target_os = "linux"))]
    let _ = stream;
    Ok(())
}

fn framed(seal: &mut ConnectionCipher, mut message: Vec<u8>) -> io::Result<Vec<u8>> {
    seal.seal(&mut message).map_err(|_| io::Error::other("the message cannot be encrypted"))?;
    let length = u32::try_from(message.len()).map_err(io::Error::other)?;
    let mut frame = length.to_be_bytes().to_vec();
    frame.append(&mut message);
    Ok(frame)
}

async fn accept(link: SealedConnections, listener: TcpListener, sender: mpsc::Sender<ReceivedMessage>) {
    let unauthenticated = Arc::new(Semaphore::new(MAX_UNAUTHENTICATED));
    loop {
        let Ok(permit) = Arc::clone(&unauthenticated).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let (link, sender) = (link.clone(), sender.clone());
                tokio::spawn(async move {
                    let mut permit = Some(permit);
                    if incoming(&link, stream, &sender, || permit = None).await.is_err_and(|error| is_forged(&error)) {
                        link.0.counters.rejected.fetch_add(1, Relaxed);
                    }
                });
            }
            // For example, no file descriptors are left. Open connections continue.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

fn is_forged(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidData
}

/// Runs an incoming connection. Calls `known` when the other node has proved who it is.
async fn incoming(
    link: &SealedConnections,
    stream: TcpStream,
    sender: &mpsc::Sender<ReceivedMessage>,
    known: impl FnMut(),
) -> io::Result<()> {
    let mut credentials = link.0.credentials.clone();
    let used = Arc::clone(&credentials.borrow_and_update());
    let receiving = async {
        match &used.tls {
            None => receive_messages(link, stream, None, &used, sender, known).await,
            Some(tls) => {
                let no_tls = || forged("no TLS connection with a certificate of the authorities");
                let stream = timeout(IO_TIMEOUT, tls.acceptor.accept(stream)).await.map_err(|_| no_tls())?;
                let stream = stream.map_err(|_| no_tls())?;
                let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
                let certificate = certificates.first().cloned().ok_or_else(|| forged("no certificate"))?;
                receive_messages(link, stream, Some(&certificate), &used, sender, known).await
            }
        }
    };
    tokio::select! {
        ended = receiving => ended,
        // The other node connects again, and is examined by the new ones.
        _ = credentials.changed() => Ok(()),
    }
}

async fn receive_messages(
    link: &SealedConnections,
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    certificate: Option<&CertificateDer<'_>>,
    credentials: &Loaded,
    sender: &mpsc::Sender<ReceivedMessage>,
    mut known: impl FnMut(),
) -> io::Result<()> {
    let inner = &link.0;
    let mut challenge = [0; CHALLENGE];
    getrandom::fill(&mut challenge).map_err(io::Error::other)?;
    timeout(IO_TIMEOUT, write(&mut stream, &challenge)).await??;
    let mut salt = [0; SALT];
    timeout(IO_TIMEOUT, stream.read_exact(&mut salt)).await??;
    let first = timeout(IO_TIMEOUT, read_frame(&mut stream, MAX_GREETING_LEN)).await??;
    let opened = credentials.keys.iter().find_map(|key| {
        let mut seal = ConnectionCipher::new(key, challenge, salt);
        let mut greeting = first.clone();
        seal.open(&mut greeting).ok().map(|()| (seal, greeting))
    });
    let (mut seal, greeting) = opened.ok_or_else(|| forged("not encrypted with this key"))?;
    let greeting = Greeting::decode(&greeting).ok_or_else(|| forged("no greeting"))?;
    // Sealed with the challenge of this connection, so that it is of now: another node has this name.
    if greeting.node == inner.node && greeting.from != inner.address {
        link.note_name(&inner.node, inner.address);
        link.note_name(&inner.node, greeting.from);
    }
    // A reflected message of this node.
    if greeting.node == inner.node || greeting.from == inner.address {
        return Err(forged("this node's own name or address"));
    }
    if let Some(certificate) = certificate {
        is_certificate_of(certificate, &greeting.node).map_err(|_| forged("the certificate of another node"))?;
    }
    let (node, certified): (Arc<str>, _) = (greeting.node.into(), certificate.is_some());
    known();
    loop {
        let mut message = read_frame(&mut stream, MAX_MESSAGE_LEN).await?;
        seal.open(&mut message).map_err(|_| forged("not encrypted with this key"))?;
        inner.counters.received.fetch_add(1, Relaxed);
        inner.counters.bytes_received.fetch_add((4 + message.len() + TAG) as u64, Relaxed);
        if message.is_empty() {
            return Err(forged("an empty message"));
        }
        if !link.allows(greeting.from) {
            inner.counters.dropped.fetch_add(1, Relaxed);
            continue;
        }
        link.note_name(&node, greeting.from);
        let bytes = message.split_off(1);
        let node = Arc::clone(&node);
        let message = ReceivedMessage { from: greeting.from, kind: message[0], bytes, node, certified };
        // Backpressure: slow processing slows down the senders.
        if sender.send(message).await.is_err() {
            return Ok(());
        }
    }
}

fn forged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

/// Reads a message, which is still encrypted.
async fn read_frame(stream: &mut (impl AsyncRead + Unpin), max_len: usize) -> io::Result<Vec<u8>> {
    let length = stream.read_u32().await? as usize;
    if length > max_len {
        return Err(forged("too long"));
    }
    // Memory grows with what is received, not with what is announced.
    let mut message = Vec::with_capacity(length.min(1 << 16));
    let read = stream.take(length as u64).read_to_end(&mut message).await?;
    if read < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(message)
}

/// The first message on a connection: the sender's name and address.
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
