//! Asking an engine which containers run.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::discovery::DiscoveryError;

/// An engine that does not answer by then is asked another time.
const TIME_LIMIT: Duration = Duration::from_secs(2);
/// Longer answers are nobody's containers.
const LARGEST: usize = 64 << 20;

/// Whom to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    /// The socket of Docker's interface, which Podman serves too.
    Socket(PathBuf),
    /// A program that understands `ps --no-trunc --format json`, as Podman's.
    Program(String),
}

/// A container that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Container {
    pub(super) id: String,
    pub(super) name: Option<String>,
    pub(super) labels: HashMap<String, String>,
}

/// What both answers have in common (Docker Engine API, ContainerList; podman-ps(1)).
#[derive(Deserialize)]
struct Listed {
    #[serde(rename = "Id")]
    id: String,
    #[serde(rename = "Names", default)]
    names: Option<Vec<String>>,
    #[serde(rename = "Labels", default)]
    labels: Option<HashMap<String, String>>,
}

impl Engine {
    /// A path is a socket's, any other word a program's.
    pub(super) fn named(text: &str) -> Engine {
        match text.starts_with('/') {
            true => Engine::Socket(PathBuf::from(text)),
            false => Engine::Program(text.to_owned()),
        }
    }

    /// All containers that run now.
    pub(super) fn containers(&self) -> Result<Vec<Container>, DiscoveryError> {
        let answer = match self {
            Engine::Socket(path) => asked(path).map_err(|error| self.silent(error)),
            Engine::Program(program) => run(program).map_err(|error| self.silent(error)),
        }?;
        containers_in(&answer).map_err(|why| self.silent(why))
    }

    fn silent(&self, why: impl fmt::Display) -> DiscoveryError {
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

fn containers_in(json: &[u8]) -> Result<Vec<Container>, String> {
    let listed: Vec<Listed> = match json.trim_ascii() {
        // Podman says so where nothing runs.
        b"" | b"null" => Vec::new(),
        json => serde_json::from_slice(json).map_err(|error| format!("expected a list of containers: {error}"))?,
    };
    let container = |listed: Listed| {
        let name = listed.names.into_iter().flatten().next();
        let name = name.map(|name| name.trim_start_matches('/').to_owned()).filter(|name| !name.is_empty());
        Container { id: listed.id, name, labels: listed.labels.unwrap_or_default() }
    };
    Ok(listed.into_iter().map(container).collect())
}

/// The body of the engine's answer. With HTTP/1.0 it ends with the connection.
fn asked(path: &PathBuf) -> Result<Vec<u8>, io::Error> {
    let end = Instant::now() + TIME_LIMIT;
    let mut socket = UnixStream::connect(path)?;
    socket.set_write_timeout(Some(TIME_LIMIT))?;
    socket.write_all(b"GET /containers/json HTTP/1.0\r\nHost: localhost\r\nAccept: application/json\r\n\r\n")?;
    let (mut answer, mut piece) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "no whole answer in time"));
        }
        socket.set_read_timeout(Some(left))?;
        match socket.read(&mut piece) {
            Ok(0) => break,
            Ok(n) => answer.extend_from_slice(&piece[..n]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        if answer.len() > LARGEST {
            return Err(io::Error::other("the answer has no end"));
        }
    }
    body(&answer).map_err(io::Error::other)
}

/// What is below the headers of an answer.
fn body(answer: &[u8]) -> Result<Vec<u8>, String> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut headers);
    let parsed = response.parse(answer).map_err(|error| format!("expected an answer in HTTP: {error}"))?;
    let httparse::Status::Complete(start) = parsed else { return Err("the answer ends in its headers".into()) };
    if response.code != Some(200) {
        let code = response.code.unwrap_or_default();
        return Err(format!("it answers {code} {}", response.reason.unwrap_or_default()));
    }
    let rest = &answer[start..];
    let header = |name: &str| response.headers.iter().find(|h| h.name.eq_ignore_ascii_case(name)).map(|h| h.value);
    if header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case(b"chunked")) {
        return unchunked(rest);
    }
    let length = header("content-length").and_then(|value| std::str::from_utf8(value).ok()?.trim().parse().ok());
    match length {
        Some(length) if length > rest.len() => Err("the answer ends before its end".into()),
        Some(length) => Ok(rest[..length].to_vec()),
        None => Ok(rest.to_vec()),
    }
}

fn unchunked(mut rest: &[u8]) -> Result<Vec<u8>, String> {
    let cut = || "the answer ends before its end".to_owned();
    let mut whole = Vec::new();
    loop {
        let (start, length) = match httparse::parse_chunk_size(rest) {
            Ok(httparse::Status::Complete((start, length))) => (start, usize::try_from(length).map_err(|_| cut())?),
            Ok(httparse::Status::Partial) => return Err(cut()),
            Err(_) => return Err("expected the size of a chunk".into()),
        };
        if length == 0 {
            return Ok(whole);
        }
        let end = start.checked_add(length).filter(|end| *end <= rest.len()).ok_or_else(cut)?;
        whole.extend_from_slice(&rest[start..end]);
        rest = rest[end..].strip_prefix(b"\r\n").ok_or_else(cut)?;
    }
}

/// What the program prints.
fn run(program: &str) -> Result<Vec<u8>, io::Error> {
    let mut child = Command::new(program)
        .args(["ps", "--no-trunc", "--format", "json"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let output = child.stdout.take();
    let (send, receive) = mpsc::channel();
    // Reading from a pipe has no time limit; this ends when the program does.
    std::thread::spawn(move || {
        let mut text = Vec::new();
        let limit = u64::try_from(LARGEST).unwrap_or(u64::MAX);
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
    fn answers_of_both_engines() {
        let docker = br#"[{"Id":"a","Names":["/web"],"Image":"i","Labels":{"owner":"alice"}}]"#;
        let podman = br#" [{"Id":"b","Names":["db"],"Labels":null,"Pid":3}] "#;
        let found = [containers_in(docker).unwrap(), containers_in(podman).unwrap()].concat();
        let found: Vec<_> = found.iter().map(|c| (c.id.as_str(), c.name.as_deref(), c.labels.len())).collect();
        assert_eq!(found, [("a", Some("web"), 1), ("b", Some("db"), 0)]);
        assert!(containers_in(b"null").unwrap().is_empty() && containers_in(b"\n").unwrap().is_empty());
        assert!(containers_in(b"{\"message\":\"no\"}").unwrap_err().contains("expected a list of containers"));
    }

    #[test]
    fn bodies_with_and_without_a_length() {
        let of = |text: &str| body(text.as_bytes()).map(|b| String::from_utf8(b).unwrap());
        assert_eq!(of("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n[]rest").unwrap(), "[]");
        assert_eq!(of("HTTP/1.0 200 OK\r\n\r\n[]").unwrap(), "[]");
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(of(&format!("{chunked}1\r\n[\r\n1;x\r\n]\r\n0\r\n\r\n")).unwrap(), "[]");
        for cut in ["1", "1\r\n", "1\r\n[", "5\r\n[\r\n", "ffffffffffffffff\r\n[", "1\r\n[\r\n"] {
            assert!(of(&format!("{chunked}{cut}")).is_err(), "{cut:?}");
        }
        assert!(of(&format!("{chunked}x\r\n")).unwrap_err().contains("size of a chunk"));
        assert!(of("HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\n[]").unwrap_err().contains("before its end"));
        assert!(of("HTTP/1.0 403 Forbidden\r\n\r\n").unwrap_err().contains("403 Forbidden"));
        assert!(of("HTTP/1.0 200 OK\r\n").unwrap_err().contains("headers"));
        assert!(of("SSH-2.0\r\n").is_err() && of("").is_err());
    }

    #[test]
    fn programs_that_fail_or_are_not_there() {
        assert!(Engine::named("evenhand-no-such-program").containers().is_err());
        let said = Engine::named("false").containers().unwrap_err().to_string();
        assert!(said.starts_with("false: it ends with"), "{said}");
    }

    proptest! {
        #[test]
        fn any_answer_is_read_or_refused(text in "(HTTP/1\\.[01] 200 OK\r\n|Transfer-Encoding: chunked\r\n|Content-Length: [0-9]{0,22}\r\n|\r\n|[0-9a-f]{1,17}|\\[|\\]|\\PC){0,10}") {
            if let Ok(found) = body(text.as_bytes()) {
                let _ = containers_in(&found);
            }
        }
    }
}
