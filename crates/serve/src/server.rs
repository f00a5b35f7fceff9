//! The server: sockets, connections with limits on their number and time, and an orderly end.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use evenhand_unix_http::{SocketFile, listen};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::connection_shares::{Connections, Full, Origin, Place};
use crate::identity::{Peer, TrustedProxy, UserNames};

/// The most connections at once beyond those that have a place: each is answered once, so that a monitor learns that the server works and
/// a visitor why there is no answer. Further ones are closed, or wait in the system's queue while all places are taken.
const SPARE_CONNECTIONS: usize = 64;
/// The time for the header of the request of such a connection.
const SPARE_HEADER_TIME: Duration = Duration::from_secs(2);
/// The time for the header of a request, and between two requests of a connection.
const HEADER_TIME: Duration = Duration::from_secs(10);
/// The largest header of a request, in bytes.
const LARGEST_HEADER: usize = 16 << 10;
/// The time after which a connection takes no further request.
const CONNECTION_TIME: Duration = Duration::from_secs(60);
/// The time in which open requests are answered at the end.
pub const END_TIME: Duration = Duration::from_secs(5);

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// At an address.
    Tcp(SocketAddr),
    /// At a Unix socket. Everybody on the machine may connect: the system says who does.
    Unix(PathBuf),
}

/// Why the server cannot listen.
#[derive(Debug, Error)]
#[error("cannot listen on {place}: {source}")]
pub struct ListenError {
    /// The address or the path.
    pub place: String,
    /// The system's error.
    pub source: io::Error,
}

enum Listener {
    Tcp(TcpListener),
    /// The file is removed at the end.
    Unix(UnixListener, SocketFile),
}

/// A server that listens.
pub(crate) struct Server {
    listener: Listener,
    router: Router,
    connections: Arc<Connections>,
}

/// The right of a connection to be answered.
enum Slot {
    /// In full.
    Place { _place: Place },
    /// Once, and with a refusal of all but the question of a monitor.
    Spare { full: Full, _permit: OwnedSemaphorePermit },
}

/// Ends a server; may be used on any thread.
#[derive(Clone, Debug)]
pub struct Stop(Arc<watch::Sender<bool>>);

impl Default for Stop {
    fn default() -> Stop {
        Stop(Arc::new(watch::Sender::new(false)))
    }
}

impl Stop {
    /// Ends the server: open requests are answered within five seconds.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Server {
    /// Listens. `proxy` brings many visitors.
    pub(crate) async fn bind(
        listen: &Listen,
        router: Router,
        proxy: Option<TrustedProxy>,
    ) -> Result<Server, ListenError> {
        let listener = match listen {
            Listen::Tcp(address) => {
                let failed = |source| ListenError { place: address.to_string(), source };
                Listener::Tcp(TcpListener::bind(address).await.map_err(failed)?)
            }
            Listen::Unix(path) => {
                let failed = |source| ListenError { place: path.display().to_string(), source };
                let (listener, file) = bind_socket(path).map_err(failed)?;
                Listener::Unix(listener, file)
            }
        };
        Ok(Server { listener, router, connections: Arc::new(Connections::new(proxy)) })
    }

    /// The place with the port that the system chose, as people open it.
    pub(crate) fn place(&self) -> String {
        match &self.listener {
            Listener::Tcp(listener) => {
                listener.local_addr().map_or("an unknown address".into(), |address| format!("http://{address}/"))
            }
            Listener::Unix(_, file) => file.path().display().to_string(),
        }
    }

    /// Answers until it is stopped.
    pub(crate) async fn run(self, stop: &Stop) {
        let mut stopped = stop.0.subscribe();
        let spare = Arc::new(Semaphore::new(SPARE_CONNECTIONS));
        let names = Arc::new(UserNames::default());
        let mut open = JoinSet::new();
        loop {
            while open.try_join_next().is_some() {}
            let (router, ending) = (self.router.clone(), stop.0.subscribe());
            let accepted = tokio::select! {
                _ = stopped.wait_for(|stopped| *stopped) => break,
                accepted = accept(&self.listener) => accepted,
            };
            let Ok(accepted) = accepted else {
                // For example, no file descriptors are left.
                sleep(Duration::from_millis(100)).await;
                continue;
            };
            let slot = tokio::select! {
                _ = stopped.wait_for(|stopped| *stopped) => break,
                slot = self.slot(accepted.origin(), &spare) => slot,
            };
            let Some(slot) = slot else { continue };
            match accepted {
                Accepted::Tcp(stream, address) => {
                    open.spawn(serve(stream, Peer::at(address), slot, router, ending));
                }
                Accepted::Unix(stream, uid) => {
                    let names = Arc::clone(&names);
                    open.spawn(async move {
                        // The name service may be slow.
                        let name = tokio::task::spawn_blocking(move || names.of(uid)).await.ok().flatten();
                        serve(stream, Peer::Unix(uid, name), slot, router, ending).await;
                    });
                }
            }
        }
        drop(self.listener);
        let _ = timeout(END_TIME, async { while open.join_next().await.is_some() {} }).await;
    }

    /// Returns the slot of a new connection; none if it is to be closed. Waits for one while all are taken.
    async fn slot(&self, origin: Origin, spare: &Arc<Semaphore>) -> Option<Slot> {
        let full = match self.connections.place(origin) {
            Ok(place) => return Some(Slot::Place { _place: place }),
            Err(full) => full,
        };
        let permit = match full {
            Full::OfVisitor => Arc::clone(spare).try_acquire_owned().ok(),
            Full::All => Arc::clone(spare).acquire_owned().await.ok(),
        };
        permit.map(|permit| Slot::Spare { full, _permit: permit })
    }
}

enum Accepted {
    Tcp(tokio::net::TcpStream, SocketAddr),
    Unix(tokio::net::UnixStream, u32),
}

impl Accepted {
    fn origin(&self) -> Origin {
        match self {
            Accepted::Tcp(_, address) => Origin::Address(address.ip().to_canonical()),
            Accepted::Unix(_, uid) => Origin::User(*uid),
        }
    }
}

async fn accept(listener: &Listener) -> io::Result<Accepted> {
    match listener {
        Listener::Tcp(listener) => listener.accept().await.map(|(stream, address)| Accepted::Tcp(stream, address)),
        Listener::Unix(listener, _) => {
            let (stream, _) = listener.accept().await?;
            let uid = stream.peer_cred()?.uid();
            Ok(Accepted::Unix(stream, uid))
        }
    }
}

/// Answers the requests of a connection.
async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
    slot: Slot,
    router: Router,
    mut stopped: watch::Receiver<bool>,
) {
    let full = match &slot {
        Slot::Place { .. } => None,
        Slot::Spare { full, .. } => Some(*full),
    };
    let service = TowerToHyperService::new(router.layer(Extension(peer)).layer(Extension(full)));
    let header_time = if full.is_some() { SPARE_HEADER_TIME } else { HEADER_TIME };
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(header_time).max_buf_size(LARGEST_HEADER);
    builder.keep_alive(full.is_none());
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        // A client that went away, or sent no HTTP.
        _ = connection.as_mut() => return,
        () = sleep(CONNECTION_TIME) => {}
        _ = stopped.wait_for(|stopped| *stopped) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = timeout(END_TIME, connection).await;
}

/// Binds a Unix socket, where a socket at which nobody listens any more may be in the way.
fn bind_socket(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
    let (listener, file) = listen(path, 0o666)?;
    listener.set_nonblocking(true)?;
    Ok((UnixListener::from_std(listener)?, file))
}
