//! The socket for requests to the running agent.
//!
//! A request is a line with one word, an answer is one line.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use evenhand_unix_http::{SocketFile, connect, listen};

/// The time for a request and its answer, connecting included.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The time in which a client has to send its request after it has connected.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// The longest request, in bytes.
const LONGEST_REQUEST: usize = 64;
/// The number of threads that answer. Further clients wait in the queue of the socket.
const THREADS: usize = 4;

/// Serves requests until it is dropped.
#[derive(Debug)]
pub struct ControlSocket {
    /// Removed at the end.
    _file: SocketFile,
}

impl ControlSocket {
    /// Starts to listen, and answers each word with the line that `handle` returns for it. Root may send requests, and the
    /// owner and group of the socket (mode 660).
    ///
    /// # Errors
    /// Returns an error if the socket cannot be created, if another process listens there, or if something other than a socket
    /// is there, which is not touched. An abandoned socket is replaced.
    pub fn listen(path: &Path, handle: impl Fn(&str) -> String + Send + Sync + 'static) -> io::Result<ControlSocket> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder)?;
        }
        let (listener, file) = listen(path, 0o660)?;
        let handle = Arc::new(handle);
        for number in 0..THREADS {
            let (listener, handle) = (listener.try_clone()?, Arc::clone(&handle));
            thread::Builder::new().name(format!("requests-{number}")).spawn(move || {
                loop {
                    match listener.accept() {
                        Ok((stream, _)) => answer(&stream, &*handle),
                        // For example, no file descriptors are left.
                        Err(_) => thread::sleep(Duration::from_millis(100)),
                    }
                }
            })?;
        }
        Ok(ControlSocket { _file: file })
    }
}

fn late() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "no answer in time")
}

/// A connection with one deadline for all that is read and written, rather than one for each piece.
struct Timed<'a> {
    stream: &'a UnixStream,
    deadline: Instant,
}

impl Timed<'_> {
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(late()) } else { Ok(Some(left)) }
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(buffer)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads a line of at most `longest` bytes; what comes after its end is dropped.
fn read_line(mut from: impl Read, longest: usize) -> io::Result<String> {
    let mut line = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let space = buffer.len().min(longest - line.len());
        let read = from.read(&mut buffer[..space])?;
        line.extend_from_slice(&buffer[..read]);
        if let Some(end) = line.iter().position(|byte| *byte == b'\n') {
            line.truncate(end);
        } else if read > 0 && line.len() < longest {
            continue;
        }
        return String::from_utf8(line).map_err(|_| io::ErrorKind::InvalidData.into());
    }
}

fn answer(stream: &UnixStream, handle: &dyn Fn(&str) -> String) {
    let request = Timed { stream, deadline: Instant::now() + REQUEST_TIMEOUT };
    if let Ok(word) = read_line(request, LONGEST_REQUEST) {
        let mut text = handle(word.trim());
        text.push('\n');
        let mut writer = Timed { stream, deadline: Instant::now() + TIMEOUT };
        let _ = writer.write_all(text.as_bytes());
    }
}

/// Sends a request to the agent that listens at this socket, and returns its answer.
///
/// # Errors
/// Returns an error if no agent listens there, if it ends without an answer, or if the answer does not arrive within five
/// seconds.
pub fn request(path: &Path, word: &str) -> io::Result<String> {
    request_within(path, word, TIMEOUT)
}

/// As [`request`], with another limit of the time for the answer.
///
/// # Errors
/// Returns the errors of [`request`].
pub fn request_within(path: &Path, word: &str, limit: Duration) -> io::Result<String> {
    let deadline = Instant::now() + limit;
    let stream = connect(path, TIMEOUT.min(limit))?;
    let mut timed = Timed { stream: &stream, deadline };
    // In one write: the agent may answer and close before a second one.
    timed.write_all(format!("{word}\n").as_bytes())?;
    let mut answer = read_line(timed, LONGEST_ANSWER)?;
    if answer.is_empty() {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the agent ended without an answer"));
    }
    answer.push('\n');
    Ok(answer)
}

/// The longest answer, in bytes: the status of some hundred thousand workloads.
const LONGEST_ANSWER: usize = 256 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn requests_are_answered() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run/agent.sock");
        let socket = ControlSocket::listen(&path, |word| format!("{word}!")).unwrap();
        assert_eq!(request(&path, "status").unwrap(), "status!\n");
        assert_eq!(request(&path, &"x".repeat(60)).unwrap(), format!("{}!\n", "x".repeat(60)));
        assert_eq!(ControlSocket::listen(&path, str::to_owned).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(socket);
        assert!(!path.exists());
        // A socket that a crash left behind.
        drop(UnixListener::bind(&path).unwrap());
        ControlSocket::listen(&path, str::to_owned).unwrap();
    }

    #[test]
    fn a_process_that_listens_and_does_not_accept_delays_nobody_without_a_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.sock");
        let _stopped = UnixListener::bind(&path).unwrap();
        // Until its queue is full.
        let mut waiting = Vec::new();
        while let Ok(stream) = connect(&path, Duration::from_millis(20)) {
            waiting.push(stream);
        }
        assert!(!waiting.is_empty());
        let in_use = ControlSocket::listen(&path, str::to_owned).unwrap_err();
        assert_eq!(in_use.kind(), io::ErrorKind::AddrInUse);
        assert_eq!(request(&path, "status").unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(path.exists());
    }

    #[test]
    fn an_agent_that_ends_without_an_answer_or_answers_late_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let ended = thread::spawn(move || drop(read_line(&listener.accept().unwrap().0, 100)));
        assert_eq!(request(&path, "release").unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        ended.join().unwrap();
        let slow = folder.path().join("slow.sock");
        let _socket = ControlSocket::listen(&slow, |word| {
            thread::sleep(Duration::from_millis(300));
            word.to_owned()
        });
        assert!(request_within(&slow, "release", Duration::from_millis(50)).is_err());
        assert_eq!(request_within(&slow, "release", Duration::from_secs(10)).unwrap(), "release\n");
    }

    #[test]
    fn idle_clients_are_dropped_so_that_others_are_answered() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.sock");
        let _socket = ControlSocket::listen(&path, |word| format!("{word}!")).unwrap();
        let idle: Vec<UnixStream> = (0..THREADS).map(|_| UnixStream::connect(&path).unwrap()).collect();
        assert_eq!(request(&path, "status").unwrap(), "status!\n");
        // An endless request is cut off.
        let mut endless = UnixStream::connect(&path).unwrap();
        endless.write_all(&[b'x'; LONGEST_REQUEST]).unwrap();
        assert_eq!(read_line(&endless, 100).unwrap(), format!("{}!", "x".repeat(LONGEST_REQUEST)));
        drop(idle);
    }
}
