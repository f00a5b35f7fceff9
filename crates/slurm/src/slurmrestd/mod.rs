//! The queue from slurmrestd over a Unix socket, instead of `squeue`.

mod jobs_as_squeue_table;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use evenhand_unix_http::{Limits, Response, get};
use thiserror::Error;

use crate::queue::Queue;
use crate::run_commands::{Call, CommandError, Commands, FailureKind, LocalCommands};

/// A version of slurmrestd's API: the last number of v0.0.38.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ApiVersion(pub u32);

impl ApiVersion {
    /// Returns the versions to try if none is given, from new to old: those of Slurm 26.05 to 22.05.
    fn known() -> impl Iterator<Item = ApiVersion> {
        (38..=45).rev().map(ApiVersion)
    }
}

impl fmt::Display for ApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v0.0.{}", self.0)
    }
}

/// Reads the queue from slurmrestd, and everything else from commands.
///
/// slurmrestd returns the same values as `squeue`, but names and forms change between versions. The response is therefore
/// converted to the table that `squeue` prints, and parsed as that.
#[derive(Debug)]
pub struct Rest<C = LocalCommands> {
    socket: PathBuf,
    version: Option<ApiVersion>,
    rest: C,
    /// The time limit of a request.
    pub time_limit: Duration,
    /// The largest response in bytes.
    pub max_response: usize,
    /// The version that was found; it does not change while a daemon runs.
    found: OnceLock<ApiVersion>,
}

impl<C: Commands> Rest<C> {
    /// Creates a client of the daemon that listens on `socket`, for this version of its API; `None` for the newest it offers.
    pub fn new(socket: impl Into<PathBuf>, version: Option<ApiVersion>, rest: C) -> Rest<C> {
        // The time limit of LocalCommands; about 4 kB for each job.
        let (time_limit, max_response) = (Duration::from_secs(120), 2 << 30);
        Rest { socket: socket.into(), version, rest, time_limit, max_response, found: OnceLock::new() }
    }

    /// Returns the queue as `squeue` prints it for [`Queue::call`], in the order of job ids.
    ///
    /// # Errors
    /// Returns an error if the daemon is not running, does not respond, rejects the request, or its response is not understood.
    pub fn queue(&self) -> Result<String, RestError> {
        let body = match self.version.or_else(|| self.found.get().copied()) {
            Some(version) => self.jobs(version)?.ok_or_else(|| self.not_offered(vec![version]))?,
            None => self.newest()?,
        };
        jobs_as_squeue_table::table(&body)
    }

    /// Tries versions from new to old: the response to an unknown version is short (404), and that to a known one is the
    /// result. The API description (/openapi/v3) is 80 kB for 22.05, and much longer for later releases.
    fn newest(&self) -> Result<Vec<u8>, RestError> {
        for version in ApiVersion::known() {
            if let Some(body) = self.jobs(version)? {
                self.found.get_or_init(|| version);
                return Ok(body);
            }
        }
        Err(self.not_offered(ApiVersion::known().collect()))
    }

    /// Requests all jobs; `None` if the daemon does not offer this version.
    fn jobs(&self, version: ApiVersion) -> Result<Option<Vec<u8>>, RestError> {
        let path = format!("/slurm/{version}/jobs");
        let limits = Limits::within(self.time_limit, self.max_response);
        let Response { status, body } =
            get(&self.socket, &path, &limits).map_err(|error| RestError::of(&self.socket, error))?;
        match status {
            200 => Ok(Some(body)),
            404 => Ok(None),
            401 | 403 => Err(RestError::Denied { socket: self.socket.clone(), message: excerpt(&body) }),
            status => {
                let message = jobs_as_squeue_table::complaints(&body).unwrap_or_else(|| excerpt(&body));
                Err(RestError::Reported { status, kind: FailureKind::of(&message), message })
            }
        }
    }

    fn not_offered(&self, versions: Vec<ApiVersion>) -> RestError {
        RestError::Versions { socket: self.socket.clone(), versions }
    }
}

impl<C: Commands> Commands for Rest<C> {
    fn run(&self, call: &Call) -> Result<String, CommandError> {
        if *call == Queue::call() { Ok(self.queue()?) } else { self.rest.run(call) }
    }
}

/// Why the queue cannot be read from slurmrestd.
#[derive(Debug, Error)]
pub enum RestError {
    /// There is no such socket.
    #[error("there is no socket {}: start slurmrestd with unix:{}, or read the queue by squeue", socket.display(), socket.display())]
    Absent {
        /// The path of the socket.
        socket: PathBuf,
    },
    /// The socket exists, but no process listens on it.
    #[error("no process listens on {}: slurmrestd has ended without removing its socket; start it again", socket.display())]
    NoListener {
        /// The path of the socket.
        socket: PathBuf,
    },
    /// The user is not permitted to use it.
    #[error(
        "slurmrestd at {} rejects this user{}; with rest_auth/local it serves the user it runs as, and root",
        socket.display(), suffix(message)
    )]
    Denied {
        /// The path of the socket.
        socket: PathBuf,
        /// The message of the daemon, if any.
        message: String,
    },
    /// The connection failed.
    #[error("cannot connect to slurmrestd at {}: {source}", socket.display())]
    Connection {
        /// The path of the socket.
        socket: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The daemon did not respond in time.
    #[error("slurmrestd at {} did not respond within {seconds} s", socket.display())]
    TimedOut {
        /// The path of the socket.
        socket: PathBuf,
        /// The time limit in seconds.
        seconds: u64,
    },
    /// The response is too large.
    #[error("the response of slurmrestd at {} exceeds {limit} bytes: read the queue by squeue", socket.display())]
    TooLarge {
        /// The path of the socket.
        socket: PathBuf,
        /// The limit in bytes.
        limit: usize,
    },
    /// The response is not HTTP.
    #[error("the process that listens on {} is not slurmrestd: {message}", socket.display())]
    Protocol {
        /// The path of the socket.
        socket: PathBuf,
        /// The error in the response.
        message: String,
    },
    /// The daemon does not offer a version that is understood.
    #[error(
        "slurmrestd at {} offers none of {}: start it with -s openapi/v0.0.38 (Slurm 22.05), -s openapi/slurmctld (23.11 on)",
        socket.display(), listed(versions)
    )]
    Versions {
        /// The path of the socket.
        socket: PathBuf,
        /// The versions that were requested.
        versions: Vec<ApiVersion>,
    },
    /// The daemon reports an error.
    #[error("slurmrestd: {message} (status {status}){}", kind.remedy())]
    Reported {
        /// The HTTP status.
        status: u16,
        /// The message of the daemon.
        message: String,
        /// The kind of failure.
        kind: FailureKind,
    },
    /// The response is not JSON.
    #[error("the response of slurmrestd is not JSON: {source}")]
    NotJson {
        /// The position and cause.
        source: serde_json::Error,
    },
    /// The JSON has an unexpected form.
    #[error("slurmrestd: {path}: found {found}, expected {expected}; this version of its API is not understood")]
    Shape {
        /// The path of the field: `jobs[3].time_limit.number`.
        path: String,
        /// The value of the field, shortened.
        found: String,
        /// The expected value, in words.
        expected: String,
    },
    /// The task ids of an array are abbreviated.
    #[error(
        "slurmrestd abbreviates the task ids of arrays ({path}): start it with SLURM_BITSTR_LEN=0 in its environment"
    )]
    Shortened {
        /// The path of the field.
        path: String,
    },
}

fn suffix(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

fn listed(versions: &[ApiVersion]) -> String {
    versions.iter().map(ApiVersion::to_string).collect::<Vec<_>>().join(", ")
}

impl RestError {
    /// Adds the socket, and what to do.
    fn of(socket: &Path, error: evenhand_unix_http::Error) -> RestError {
        use evenhand_unix_http::Error;
        let socket = socket.to_path_buf();
        match error {
            Error::Connect(source) => match source.kind() {
                io::ErrorKind::NotFound => RestError::Absent { socket },
                io::ErrorKind::ConnectionRefused => RestError::NoListener { socket },
                io::ErrorKind::PermissionDenied => RestError::Denied { socket, message: String::new() },
                _ => RestError::Connection { socket, source },
            },
            Error::TimedOut { limit, .. } => RestError::TimedOut { socket, seconds: limit.as_secs() },
            Error::TooLarge { limit } => RestError::TooLarge { socket, limit },
            Error::Protocol(message) => RestError::Protocol { socket, message },
            Error::Connection(source) | Error::Start(source) => RestError::Connection { socket, source },
            other => RestError::Connection { socket, source: io::Error::other(other) },
        }
    }
}

/// Returns the beginning of a short text, on one line.
fn excerpt(body: &[u8]) -> String {
    const MAX_LEN: usize = 200;
    let text = String::from_utf8_lossy(&body[..body.len().min(MAX_LEN)]);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
