//! Asks a container engine which containers run.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use evenhand_unix_http::{Limits, get};
use serde::Deserialize;

use crate::discovery::DiscoveryError;

/// The longest time for a whole response, connecting included. An engine that exceeds it is asked again later.
const TIME_LIMIT: Duration = Duration::from_secs(2);
/// The largest response, in bytes: some 10,000 containers with long labels.
const MAX_RESPONSE: usize = 64 << 20;

/// How to reach a container engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    /// The socket of the Docker Engine API, which Podman serves too.
    Socket(PathBuf),
    /// A program that understands `ps --no-trunc --format json`, as Podman does.
    Program(String),
}

/// A running container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Container {
    pub(super) id: String,
    pub(super) name: Option<String>,
    pub(super) labels: HashMap<String, String>,
}

/// The fields common to both responses (Docker Engine API, ContainerList; podman-ps(1)).
#[derive(Deserialize)]
struct ListedContainer {
    #[serde(rename = "Id")]
    id: String,
    #[serde(rename = "Names", default)]
    names: Option<Vec<String>>,
    #[serde(rename = "Labels", default)]
    labels: Option<HashMap<String, String>>,
}

impl Engine {
    /// Reads a path as a socket's and any other word as a program's name.
    pub(super) fn named(text: &str) -> Engine {
        match text.starts_with('/') {
            true => Engine::Socket(PathBuf::from(text)),
            false => Engine::Program(text.to_owned()),
        }
    }

    /// Returns all running containers.
    ///
    /// # Errors
    /// Returns an error if the engine does not respond within [`TIME_LIMIT`], or responds with anything but a list.
    pub(super) fn containers(&self) -> Result<Vec<Container>, DiscoveryError> {
        let response = match self {
            Engine::Socket(path) => request_list(path).map_err(|error| self.no_answer(error)),
            Engine::Program(program) => run(program).map_err(|error| self.no_answer(error)),
        }?;
        parse_containers(&response).map_err(|error| self.no_answer(error))
    }

    fn no_answer(&self, why: impl fmt::Display) -> DiscoveryError {
        DiscoveryError::NoAnswer { source_name: self.to_string(), why: why.to_string() }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Engine::Socket(path) => write!(f, "{}", path.display()),
            Engine::Program(program) => f.write_str(program),
        }
    }
}

fn parse_containers(json: &[u8]) -> Result<Vec<Container>, String> {
    let listed: Vec<ListedContainer> = match json.trim_ascii() {
        // Podman prints this if no container runs.
        b"" | b"null" => Vec::new(),
        json => serde_json::from_slice(json).map_err(|error| format!("expected a list of containers: {error}"))?,
    };
    let container = |listed: ListedContainer| {
        let name = listed.names.into_iter().flatten().next();
        let name = name.map(|name| name.trim_start_matches('/').to_owned()).filter(|name| !name.is_empty());
        Container { id: listed.id, name, labels: listed.labels.unwrap_or_default() }
    };
    Ok(listed.into_iter().map(container).collect())
}

/// Returns the body of the engine's response to ContainerList.
fn request_list(socket: &Path) -> Result<Vec<u8>, String> {
    let limits = Limits::within(TIME_LIMIT, MAX_RESPONSE);
    let response = get(socket, "/containers/json", &limits).map_err(|error| error.to_string())?;
    match response.status {
        200 => Ok(response.body),
        _ => Err(format!("it answers {}", response.status_line())),
    }
}

/// Returns what the program prints.
fn run(program: &str) -> Result<Vec<u8>, io::Error> {
    let mut child = Command::new(program)
        .args(["ps", "--no-trunc", "--format", "json"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let output = child.stdout.take();
    let (send, receive) = mpsc::channel();
    // Reads from a pipe have no time limit; this thread ends when the program does.
    std::thread::spawn(move || {
        let mut text = Vec::new();
        let limit = u64::try_from(MAX_RESPONSE).unwrap_or(u64::MAX);
        let read = output.map_or(Ok(0), |output| output.take(limit).read_to_end(&mut text));
        let _ = send.send(read.map(|_| text));
    });
    let read = receive.recv_timeout(TIME_LIMIT);
    if read.is_err() {
        child.kill()?;
    }
    let status = child.wait()?;
    let text = read.map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "no whole answer in time"))??;
    if status.success() { Ok(text) } else { Err(io::Error::other(format!("it ends with {status}"))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn responses_of_docker_and_podman_are_read() {
        let docker = br#"[{"Id":"a","Names":["/web"],"Image":"i","Labels":{"owner":"alice"}}]"#;
        let podman = br#" [{"Id":"b","Names":["db"],"Labels":null,"Pid":3}] "#;
        let found = [parse_containers(docker).unwrap(), parse_containers(podman).unwrap()].concat();
        let found: Vec<_> = found.iter().map(|c| (c.id.as_str(), c.name.as_deref(), c.labels.len())).collect();
        assert_eq!(found, [("a", Some("web"), 1), ("b", Some("db"), 0)]);
        assert!(parse_containers(b"null").unwrap().is_empty() && parse_containers(b"\n").unwrap().is_empty());
        assert!(parse_containers(b"{\"message\":\"no\"}").unwrap_err().contains("expected a list of containers"));
    }

    #[test]
    fn a_program_that_fails_or_is_missing_is_an_error() {
        assert!(Engine::named("evenhand-no-such-program").containers().is_err());
        let error = Engine::named("false").containers().unwrap_err().to_string();
        assert!(error.starts_with("false: it ends with"), "{error}");
    }

    proptest! {
        #[test]
        fn any_response_is_read_or_rejected(json in "(\\[|\\]|\\{|\\}|\"Id\":\"a\"|\"Names\":null|,|null|\\PC){0,12}") {
            let _ = parse_containers(json.as_bytes());
        }
    }
}
