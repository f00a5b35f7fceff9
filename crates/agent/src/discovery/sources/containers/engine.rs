//! Asks a container engine which containers run.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use evenhand_child_process::Limits;
use evenhand_unix_http::get;
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
    /// Returns whether the engine is there, in words.
    pub(super) fn presence(&self) -> String {
        match self {
            Engine::Socket(path) if path.exists() => format!("the socket {} exists", path.display()),
            Engine::Socket(path) => format!("there is no socket {}", path.display()),
            Engine::Program(name) => {
                let folders = std::env::var_os("PATH").unwrap_or_default();
                let there = name.contains('/') && std::path::Path::new(name).exists()
                    || std::env::split_paths(&folders).any(|folder| folder.join(name).is_file());
                if there { format!("the program {name} exists") } else { format!("there is no program {name}") }
            }
        }
    }

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
    let limits = evenhand_unix_http::Limits::within(TIME_LIMIT, MAX_RESPONSE);
    let response = get(socket, "/containers/json", &limits).map_err(|error| error.to_string())?;
    match response.status {
        200 => Ok(response.body),
        _ => Err(format!("it answers {}", response.status_line())),
    }
}

/// Returns what the program prints.
fn run(program: &str) -> Result<Vec<u8>, String> {
    let limits = Limits { time: TIME_LIMIT, output: MAX_RESPONSE, ..Limits::default() };
    let mut command = Command::new(program);
    let finished = evenhand_child_process::run(command.args(["ps", "--no-trunc", "--format", "json"]), None, &limits)
        .map_err(|error| error.to_string())?;
    match finished.status.success() {
        true => Ok(finished.stdout),
        false => Err(format!("it ends with {}", finished.status)),
    }
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

    #[test]
    fn a_program_that_hangs_or_prints_without_end_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let program = |name: &str, script: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
            run(path.to_str().unwrap()).unwrap_err()
        };
        assert_eq!(program("endless", "exec cat /dev/zero"), format!("printed more than {MAX_RESPONSE} bytes"));
        assert_eq!(program("hung", "sleep 600 | cat"), "did not end within 2 s");
    }

    proptest! {
        #[test]
        fn any_response_is_read_or_rejected(json in "(\\[|\\]|\\{|\\}|\"Id\":\"a\"|\"Names\":null|,|null|\\PC){0,12}") {
            let _ = parse_containers(json.as_bytes());
        }
    }
}
