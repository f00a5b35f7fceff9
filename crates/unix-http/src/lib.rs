//! HTTP GET requests over Unix sockets, with limits on everything that can wait or grow.
//!
//! Daemons such as slurmrestd and container engines serve HTTP/1.1 on a Unix socket. [`get`] sends one request and
//! returns the whole response. It blocks the calling thread, but never for longer than [`Limits::total`]: also not if
//! the daemon accepts no connections and its backlog is full, where `std::os::unix::net::UnixStream::connect` would
//! block without limit.
//!
//! HTTP itself is `hyper`'s; this crate adds the socket, the limits and errors that name them. [`listen`] and [`connect`] are
//! for programs that serve at such a socket themselves: what was left behind is replaced, and what is in use is not.
//!
//! ```no_run
//! use std::path::Path;
//! use evenhand_unix_http::{Limits, get};
//!
//! let response = get(Path::new("/run/docker.sock"), "/containers/json", &Limits::default())?;
//! assert_eq!(response.status, 200);
//! # Ok::<(), evenhand_unix_http::Error>(())
//! ```
mod socket_file;
mod write_before_read;

pub use self::socket_file::{SocketFile, connect, listen};

use std::error::Error as _;
use std::future::{Future, poll_fn};
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper::{Request, StatusCode};
use tokio::net::UnixStream;
use tokio::time::timeout;

use self::write_before_read::Stream;

/// Bounds on one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest time until the daemon's socket takes the connection.
    pub connect: Duration,
    /// The longest wait for the header of the response, and for each further piece of its body.
    pub read: Duration,
    /// The longest time for everything.
    pub total: Duration,
    /// The largest body of a response, in bytes.
    pub body: usize,
}

impl Limits {
    /// Returns limits that bound every step by the same time.
    #[must_use]
    pub fn within(total: Duration, body: usize) -> Limits {
        Limits { connect: total, read: total, total, body }
    }
}

impl Default for Limits {
    /// 2 s to connect, 10 s for each read, 60 s in total, 64 MiB.
    fn default() -> Limits {
        let seconds = Duration::from_secs;
        Limits { connect: seconds(2), read: seconds(10), total: seconds(60), body: 64 << 20 }
    }
}

/// A response of any status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status code: 200, 404, …
    pub status: u16,
    /// The body, without the transfer encoding.
    pub body: Vec<u8>,
}

impl Response {
    /// Returns the status code with its standard reason phrase, as in `404 Not Found`.
    #[must_use]
    pub fn status_line(&self) -> String {
        match StatusCode::from_u16(self.status) {
            Ok(status) => status.to_string(),
            Err(_) => self.status.to_string(),
        }
    }
}

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No connection can be made. The kind of the error tells a missing socket (`NotFound`) from one without a
    /// listener (`ConnectionRefused`) and from one that the user may not open (`PermissionDenied`).
    #[error("cannot connect: {0}")]
    Connect(#[source] io::Error),
    /// A limit on time has passed.
    #[error("no {awaited} within {} s", limit.as_secs_f64())]
    TimedOut {
        /// What did not come: `connection`, `response header`, …
        awaited: &'static str,
        /// The limit.
        limit: Duration,
    },
    /// The body is larger than [`Limits::body`].
    #[error("the response is larger than {limit} bytes")]
    TooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The connection failed after it was made.
    #[error("the connection failed: {0}")]
    Connection(#[source] io::Error),
    /// What was received is not a complete HTTP/1 response.
    #[error("not a complete HTTP response: {0}")]
    Protocol(String),
    /// The event loop cannot be created, as when no file descriptor is left.
    #[error("cannot start a client: {0}")]
    Start(#[source] io::Error),
}

impl Error {
    /// Separates failures of the socket from malformed responses, which `hyper` reports as I/O errors too.
    fn of(error: &hyper::Error) -> Error {
        use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
        let mut text = error.to_string();
        if let Some(source) = error.source() {
            match source.downcast_ref::<io::Error>() {
                Some(source) if ![InvalidData, InvalidInput, UnexpectedEof].contains(&source.kind()) => {
                    return Error::Connection(io::Error::new(source.kind(), source.to_string()));
                }
                _ => text = format!("{text}: {source}"),
            }
        }
        Error::Protocol(text)
    }
}

/// Requests `path` (which starts with a slash) from the daemon that listens at `socket`.
///
/// # Errors
/// Returns an error if there is no connection, a limit is exceeded, or the response is malformed or incomplete. A
/// status other than 200 is not an error.
///
/// # Panics
/// Panics if the calling thread runs asynchronous code of `tokio`.
pub fn get(socket: &Path, path: &str, limits: &Limits) -> Result<Response, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Start)?;
    runtime.block_on(within("complete response", limits.total, request(socket, path, limits)))
}

async fn within<T>(
    awaited: &'static str,
    limit: Duration,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    timeout(limit, work).await.unwrap_or(Err(Error::TimedOut { awaited, limit }))
}

async fn request(socket: &Path, path: &str, limits: &Limits) -> Result<Response, Error> {
    let stream = within("connection", limits.connect, connect_async(socket)).await?;
    let request = Request::get(path)
        .header("Host", "localhost")
        .header("Accept", "application/json")
        .header("Connection", "close")
        .body(String::new())
        .map_err(|error| Error::Protocol(error.to_string()))?;
    let response = async {
        let (mut sender, connection) = http1::handshake(Stream::new(stream)).await.map_err(|e| Error::of(&e))?;
        // It ends with the runtime. Its errors reach the sender.
        tokio::spawn(connection);
        sender.send_request(request).await.map_err(|e| Error::of(&e))
    };
    let response = within("response header", limits.read, response).await?;
    let status = response.status().as_u16();
    Ok(Response { status, body: collect(response.into_body(), limits).await? })
}

/// Connects. On Linux a non-blocking connect to a Unix socket with a full backlog fails with `EAGAIN` (unix(7)) and is
/// tried again, until the caller's limit ends that.
async fn connect_async(socket: &Path) -> Result<UnixStream, Error> {
    const PAUSE: Duration = Duration::from_millis(10);
    loop {
        match UnixStream::connect(socket).await {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => tokio::time::sleep(PAUSE).await,
            result => return result.map_err(Error::Connect),
        }
    }
}

/// Reads a body to its end. Memory grows with what is received, not with what is announced.
async fn collect(mut body: Incoming, limits: &Limits) -> Result<Vec<u8>, Error> {
    let too_large = Error::TooLarge { limit: limits.body };
    if body.size_hint().lower() > limits.body as u64 {
        return Err(too_large);
    }
    let mut bytes = Vec::new();
    loop {
        let frame = poll_fn(|context| Pin::new(&mut body).poll_frame(context));
        let frame = within("further piece of the response", limits.read, async {
            frame.await.transpose().map_err(|e| Error::of(&e))
        });
        let Some(frame) = frame.await? else { return Ok(bytes) };
        // Trailers are not used.
        let Ok(piece) = frame.into_data() else { continue };
        if piece.len() > limits.body - bytes.len() {
            return Err(too_large);
        }
        bytes.extend_from_slice(&piece);
    }
}
