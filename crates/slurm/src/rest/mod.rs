//! The queue from slurmrestd over a socket of the machine, in place of `squeue`.

mod http;
mod jobs;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use thiserror::Error;

use self::http::Answer;
use crate::commands::{Call, CommandError, Commands, Complaint, System};
use crate::queue::Queue;

/// A version of slurmrestd's interface: the last number of v0.0.38.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ApiVersion(pub u32);

impl ApiVersion {
    /// What is asked for if no version is given, from new to old: those of Slurm 26.05 to 22.05.
    fn known() -> impl Iterator<Item = ApiVersion> {
        (38..=45).rev().map(ApiVersion)
    }
}

impl fmt::Display for ApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v0.0.{}", self.0)
    }
}

/// Asks slurmrestd for the queue, and the commands for all else.
///
/// Slurm's daemon makes the same numbers of it as `squeue` does, but names and shapes change from version to version.
/// What it answers is therefore made into the text that `squeue` prints, and read as that.
#[derive(Debug)]
pub struct Rest<C = System> {
    socket: PathBuf,
    version: Option<ApiVersion>,
    rest: C,
    /// How long one answer may take.
    pub patience: Duration,
    /// The most bytes of one answer.
    pub most: usize,
    /// What was found out; it does not change while a daemon runs.
    found: OnceLock<ApiVersion>,
}

impl<C: Commands> Rest<C> {
    /// Of the daemon that listens at `socket`, in this version of its interface; `None`: in the newest that it offers.
    pub fn new(socket: impl Into<PathBuf>, version: Option<ApiVersion>, rest: C) -> Rest<C> {
        // As System; some 4 kB a job.
        let (patience, most) = (Duration::from_secs(120), 2 << 30);
        Rest { socket: socket.into(), version, rest, patience, most, found: OnceLock::new() }
    }

    /// The queue as `squeue` prints it for [`Queue::call`], in the order of the jobs' numbers.
    ///
    /// # Errors
    /// If the daemon is not there, does not answer, refuses, or answers what is not understood.
    pub fn queue(&self) -> Result<String, RestError> {
        let body = match self.version.or_else(|| self.found.get().copied()) {
            Some(version) => self.jobs(version)?.ok_or_else(|| self.without(vec![version]))?,
            None => self.newest()?,
        };
        jobs::table(&body)
    }

    /// Versions are tried, from new to old: a version that is not offered is a line of text (404), the one that is
    /// answers at once. The daemon's own description (/openapi/v3) is 80 kB on 22.05, and far more on later releases.
    fn newest(&self) -> Result<Vec<u8>, RestError> {
        for version in ApiVersion::known() {
            if let Some(body) = self.jobs(version)? {
                self.found.get_or_init(|| version);
                return Ok(body);
            }
        }
        Err(self.without(ApiVersion::known().collect()))
    }

    /// What the daemon says about all jobs; `None` if it does not offer this version.
    fn jobs(&self, version: ApiVersion) -> Result<Option<Vec<u8>>, RestError> {
        let path = format!("/slurm/{version}/jobs");
        let Answer { status, body } = http::get(&self.socket, &path, self.patience, self.most)?;
        match status {
            200 => Ok(Some(body)),
            404 => Ok(None),
            401 | 403 => Err(RestError::Denied { socket: self.socket.clone(), said: http::said(&body) }),
            status => {
                let said = jobs::complaints(&body).unwrap_or_else(|| http::said(&body));
                Err(RestError::Refused { status, complaint: Complaint::of(&said), said })
            }
        }
    }

    fn without(&self, versions: Vec<ApiVersion>) -> RestError {
        RestError::Versions { socket: self.socket.clone(), versions }
    }
}

impl<C: Commands> Commands for Rest<C> {
    fn run(&self, call: &Call) -> Result<String, CommandError> {
        if *call == Queue::call() { Ok(self.queue()?) } else { self.rest.run(call) }
    }
}

/// Why slurmrestd does not tell the queue.
#[derive(Debug, Error)]
pub enum RestError {
    /// There is no such socket.
    #[error("there is no socket {}: start slurmrestd with unix:{}, or read the queue by squeue", socket.display(), socket.display())]
    Absent {
        /// Where it should be.
        socket: PathBuf,
    },
    /// The socket is there, and nobody listens.
    #[error("nobody listens at {}: slurmrestd has ended without taking its socket away; start it again", socket.display())]
    Silent {
        /// Where it should be.
        socket: PathBuf,
    },
    /// The user may not ask it.
    #[error(
        "slurmrestd at {} does not answer this user{}; with rest_auth/local it answers the user it runs as, and root",
        socket.display(), after(said)
    )]
    Denied {
        /// Where it is.
        socket: PathBuf,
        /// What it said, if anything.
        said: String,
    },
    /// The connection failed.
    #[error("cannot ask slurmrestd at {}: {source}", socket.display())]
    Connection {
        /// Where it is.
        socket: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It did not answer in time.
    #[error("slurmrestd at {} did not answer within {seconds} s", socket.display())]
    Late {
        /// Where it is.
        socket: PathBuf,
        /// How long it was waited for.
        seconds: u64,
    },
    /// The answer is too long.
    #[error("slurmrestd at {} answers more than {most} bytes: read the queue by squeue", socket.display())]
    Long {
        /// Where it is.
        socket: PathBuf,
        /// How many bytes are allowed.
        most: usize,
    },
    /// What answers does not speak HTTP.
    #[error("what listens at {} does not answer as slurmrestd: {what}", socket.display())]
    Foreign {
        /// Where it is.
        socket: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// It does not offer a version that is understood.
    #[error(
        "slurmrestd at {} offers none of {}: start it with -s openapi/v0.0.38 (Slurm 22.05), -s openapi/slurmctld (23.11 on)",
        socket.display(), listed(versions)
    )]
    Versions {
        /// Where it is.
        socket: PathBuf,
        /// Which were asked for.
        versions: Vec<ApiVersion>,
    },
    /// It has no answer.
    #[error("slurmrestd: {said} (status {status}){}", complaint.remedy())]
    Refused {
        /// Of HTTP.
        status: u16,
        /// What it said.
        said: String,
        /// What that means.
        complaint: Complaint,
    },
    /// The answer is no JSON.
    #[error("slurmrestd answers what is no JSON: {source}")]
    NotJson {
        /// Where and why.
        source: serde_json::Error,
    },
    /// The JSON has another shape.
    #[error("slurmrestd: {path}: found {found}, expected {expected}; this version of its interface is not understood")]
    Shape {
        /// Which field: `jobs[3].time_limit.number`.
        path: String,
        /// What is there, shortened.
        found: String,
        /// What should be.
        expected: String,
    },
    /// Indices of an array are left out.
    #[error("slurmrestd shortens the indices of arrays ({path}): start it with SLURM_BITSTR_LEN=0 in its environment")]
    Shortened {
        /// Which field.
        path: String,
    },
}

fn after(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(": {said}") }
}

fn listed(versions: &[ApiVersion]) -> String {
    versions.iter().map(ApiVersion::to_string).collect::<Vec<_>>().join(", ")
}

impl RestError {
    /// Why a connection, or what goes over it, failed.
    fn of(socket: &Path, source: io::Error) -> RestError {
        let socket = socket.to_path_buf();
        match source.kind() {
            io::ErrorKind::NotFound => RestError::Absent { socket },
            io::ErrorKind::ConnectionRefused => RestError::Silent { socket },
            io::ErrorKind::PermissionDenied => RestError::Denied { socket, said: String::new() },
            _ => RestError::Connection { socket, source },
        }
    }
}

#[cfg(test)]
mod tests;
