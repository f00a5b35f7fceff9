//! As much of HTTP/1.1 (RFC 9112) as one GET over a socket of the machine needs.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use super::RestError;

/// The longest line of a header or before a chunk, and how many lines a header may have.
const LONGEST_LINE: u64 = 16 << 10;
const MOST_LINES: usize = 200;

/// What was answered.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// A stream that ends at a moment, however slowly bytes come.
struct Until {
    stream: UnixStream,
    end: Instant,
}

impl Until {
    fn left(&self) -> io::Result<Duration> {
        let left = self.end.saturating_duration_since(Instant::now());
        // No time at all would be taken for no limit.
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

impl Read for Until {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.left()?))?;
        self.stream.read(buffer)
    }
}

/// Asks for `path` and reads the answer, of at most `most` bytes, for no longer than `patience`.
pub(super) fn get(socket: &Path, path: &str, patience: Duration, most: usize) -> Result<Answer, RestError> {
    let end = Instant::now() + patience;
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
            RestError::Late { socket: socket.to_path_buf(), seconds: patience.as_secs() }
        }
        _ => RestError::of(socket, source),
    };
    let mut stream = Until { stream: connect(socket, patience).map_err(failed)?, end };
    let ask =
        format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\nConnection: close\r\n\r\n");
    let ask = |stream: &mut Until| {
        stream.stream.set_write_timeout(Some(stream.left()?))?;
        stream.stream.write_all(ask.as_bytes())
    };
    // A daemon that refuses closes without reading: what it said before that is the better answer.
    match ask(&mut stream) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(failed(error)),
        _ => {}
    }
    read(&mut BufReader::with_capacity(1 << 16, stream), most).map_err(|wrong| match wrong {
        Wrong::Read(error) => failed(error),
        Wrong::Long => RestError::Long { socket: socket.to_path_buf(), most },
        Wrong::Foreign(what) => RestError::Foreign { socket: socket.to_path_buf(), what },
    })
}

/// The standard library waits for ever for a daemon that takes no more connections.
fn connect(socket: &Path, patience: Duration) -> io::Result<UnixStream> {
    let (sender, receiver) = channel();
    let socket = socket.to_path_buf();
    thread::spawn(move || sender.send(UnixStream::connect(socket)));
    receiver.recv_timeout(patience).unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Why an answer cannot be read.
#[derive(Debug)]
pub(super) enum Wrong {
    Read(io::Error),
    Long,
    Foreign(String),
}

impl From<io::Error> for Wrong {
    fn from(error: io::Error) -> Wrong {
        Wrong::Read(error)
    }
}

fn foreign<T>(what: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong::Foreign(what.into()))
}

/// Reads one answer: of a length, in chunks, or to the end of the stream.
pub(super) fn read(stream: &mut impl BufRead, most: usize) -> Result<Answer, Wrong> {
    let first = line(stream)?;
    let mut words = first.split(' ');
    let status = match (words.next(), words.next().and_then(|word| word.parse().ok())) {
        (Some("HTTP/1.1" | "HTTP/1.0"), Some(status)) => status,
        _ => return foreign(format!("it begins with {}", crate::error::quoted(&first))),
    };
    let (mut length, mut chunks, mut lines) = (None, false, 0);
    loop {
        let header = line(stream)?;
        lines += 1;
        if header.is_empty() {
            break;
        }
        if lines > MOST_LINES {
            return foreign("its header does not end");
        }
        let Some((name, value)) = header.split_once(':') else { return foreign("a line of its header has no colon") };
        let value = value.trim();
        if name.eq_ignore_ascii_case("Content-Length") {
            let Ok(bytes) = value.parse::<u64>() else { return foreign("the length is no number") };
            length = Some(usize::try_from(bytes).unwrap_or(usize::MAX));
        } else if name.eq_ignore_ascii_case("Transfer-Encoding") {
            if !value.eq_ignore_ascii_case("chunked") {
                return foreign(format!("it is encoded as {}", crate::error::quoted(value)));
            }
            chunks = true;
        }
    }
    let mut body = Vec::new();
    match length {
        // Chunks count if both are there (RFC 9112, 6.3).
        _ if chunks => loop {
            let size = line(stream)?;
            let size = size.split(';').next().unwrap_or_default().trim();
            let Ok(size) = usize::from_str_radix(size, 16) else {
                return foreign("the length of a chunk is no number");
            };
            if size == 0 {
                break;
            }
            take(stream, size, most, &mut body)?;
            if !line(stream)?.is_empty() {
                return foreign("a chunk is longer than it says");
            }
        },
        Some(length) => take(stream, length, most, &mut body)?,
        None => {
            let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
            stream.take(limit).read_to_end(&mut body)?;
            if body.len() > most {
                return Err(Wrong::Long);
            }
        }
    }
    Ok(Answer { status, body })
}

/// The next `length` bytes. Room is made for what comes, not for what is promised.
fn take(stream: &mut impl BufRead, length: usize, most: usize, body: &mut Vec<u8>) -> Result<(), Wrong> {
    if length > most.saturating_sub(body.len()) {
        return Err(Wrong::Long);
    }
    let read = stream.take(u64::try_from(length).unwrap_or(u64::MAX)).read_to_end(body)?;
    if read < length {
        return foreign("it ends before its length");
    }
    Ok(())
}

/// A line without its end.
fn line(stream: &mut impl BufRead) -> Result<String, Wrong> {
    let mut bytes = Vec::new();
    stream.take(LONGEST_LINE).read_until(b'\n', &mut bytes)?;
    if bytes.pop() != Some(b'\n') {
        return foreign(if bytes.is_empty() { "it says nothing" } else { "a line of its header does not end" });
    }
    if bytes.last() == Some(&b'\r') {
        bytes.pop();
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// What a short answer says in words.
pub(super) fn said(body: &[u8]) -> String {
    const LONGEST: usize = 200;
    let text = String::from_utf8_lossy(&body[..body.len().min(LONGEST)]);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
