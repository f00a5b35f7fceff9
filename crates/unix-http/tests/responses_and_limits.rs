//! Responses of every form, and limits on daemons that do not respond well.
#![allow(clippy::unwrap_used)]

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use evenhand_unix_http::{Error, Limits, Response, get};
use proptest::prelude::*;

const BODY: usize = 100;

fn limits() -> Limits {
    Limits::within(Duration::from_secs(20), BODY)
}

fn short() -> Limits {
    Limits::within(Duration::from_millis(200), BODY)
}

/// Serves one connection.
fn serve(socket: &Path, serve: impl FnOnce(UnixStream) + Send + 'static) -> thread::JoinHandle<()> {
    let listener = UnixListener::bind(socket).unwrap();
    thread::spawn(move || serve(listener.accept().unwrap().0))
}

fn read_request(stream: &mut UnixStream) -> String {
    let (mut request, mut byte) = (Vec::new(), [0]);
    while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) > 0 {
        request.push(byte[0]);
    }
    String::from_utf8(request).unwrap()
}

fn response_to(bytes: &[u8]) -> Result<Response, Error> {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let bytes = bytes.to_vec();
    let server = serve(&socket, move |mut stream| {
        read_request(&mut stream);
        let _ = stream.write_all(&bytes);
    });
    let response = get(&socket, "/", &limits());
    server.join().unwrap();
    response
}

#[test]
fn a_body_ends_at_its_length_at_the_last_chunk_or_at_the_end_of_the_stream() {
    let text = |bytes: &str| {
        let response = response_to(bytes.as_bytes()).unwrap();
        (response.status, String::from_utf8(response.body).unwrap())
    };
    let ok = |text: &str| (200, text.to_owned());
    assert_eq!(text("HTTP/1.1 200 OK\r\ncontent-LENGTH: 4\r\n\r\nbodymore"), ok("body"));
    assert_eq!(text("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n[]rest"), ok("[]"));
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(text(&format!("{chunked}3;x=y\r\nbod\r\n00B\r\ny, in parts\r\n0\r\n\r\n")), ok("body, in parts"));
    assert_eq!(text("HTTP/1.0 200 OK\n\nto the end"), ok("to the end"));
    assert_eq!(text("HTTP/1.0 200 OK\r\n\r\n[]"), ok("[]"));
    assert_eq!(text("HTTP/1.1 404 NOT FOUND\r\nContent-Length: 0\r\n\r\n"), (404, String::new()));
}

#[test]
fn malformed_and_incomplete_responses_are_protocol_errors() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for bytes in [
        String::new(),
        "SSH-2.0-x\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\nA: b".to_owned(),
        "HTTP/1.1 200 OK\r\nno header\r\n\r\n".to_owned(),
        format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(300)),
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbody".to_owned(),
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n".to_owned(),
        format!("{chunked}x\r\n"),
        format!("{chunked}40\r\n"),
        format!("{chunked}2\r\nbody\r\n"),
        format!("{chunked}1"),
        format!("{chunked}1\r\n["),
        format!("{chunked}1\r\n[\r\n"),
        format!("{chunked}ffffffffffffffffff\r\n["),
    ] {
        let error = response_to(bytes.as_bytes()).unwrap_err();
        assert!(matches!(error, Error::Protocol(_)), "{bytes:?}: {error:?}");
    }
}

#[test]
fn a_body_beyond_the_limit_is_an_error_however_it_is_sent() {
    let header = "HTTP/1.1 200 OK\r\n";
    for bytes in [
        format!("{header}Content-Length: 101\r\n\r\n"),
        format!("{header}\r\n{}", "x".repeat(101)),
        format!("{header}Transfer-Encoding: chunked\r\n\r\n65\r\n{}\r\n0\r\n\r\n", "x".repeat(101)),
    ] {
        let error = response_to(bytes.as_bytes()).unwrap_err();
        assert!(matches!(error, Error::TooLarge { limit: BODY }), "{bytes:?}: {error:?}");
    }
    assert_eq!(response_to(format!("{header}\r\n{}", "x".repeat(100)).as_bytes()).unwrap().body.len(), 100);
}

#[test]
fn the_request_is_http_1_1_and_asks_to_close() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let server = serve(&socket, |mut stream| {
        let request = read_request(&mut stream);
        let request = request.to_ascii_lowercase();
        assert!(request.starts_with("get /containers/json?all=1 http/1.1\r\n"), "{request}");
        assert!(request.contains("host: localhost\r\n") && request.contains("connection: close\r\n"), "{request}");
        stream.write_all(b"HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n").unwrap();
    });
    let response = get(&socket, "/containers/json?all=1", &limits()).unwrap();
    server.join().unwrap();
    assert_eq!(response.status_line(), "503 Service Unavailable");
}

/// A daemon that rejects a user by the credentials of the socket reads nothing.
#[test]
fn a_response_sent_before_the_request_is_read_is_returned() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..20 {
        let socket = folder.path().join(number.to_string());
        let server = serve(&socket, |mut stream| {
            stream.write_all(b"HTTP/1.1 401 X\r\nContent-Length: 2\r\n\r\nno").unwrap();
        });
        let response = get(&socket, "/", &limits()).unwrap();
        assert_eq!((response.status, response.body), (401, b"no".to_vec()));
        server.join().unwrap();
    }
}

#[test]
fn errors_tell_a_missing_socket_from_one_without_a_listener() {
    let folder = tempfile::tempdir().unwrap();
    let kind = |name: &str| match get(&folder.path().join(name), "/", &limits()) {
        Err(Error::Connect(error)) => error.kind(),
        other => panic!("{other:?}"),
    };
    assert_eq!(kind("missing"), ErrorKind::NotFound);
    drop(UnixListener::bind(folder.path().join("closed")).unwrap());
    assert_eq!(kind("closed"), ErrorKind::ConnectionRefused);
}

/// The standard library's connect blocks here for ever.
#[test]
fn connecting_to_a_full_backlog_fails_within_the_limit() {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let address = SocketAddrUnix::new(&path).unwrap();
    let socket = |flags| socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
    let listener = socket(SocketFlags::CLOEXEC);
    bind(&listener, &address).unwrap();
    listen(&listener, 1).unwrap();
    // The backlog holds one connection more than its number.
    let waiting: Vec<_> = (0..8)
        .map(|_| {
            let client = socket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK);
            let result = connect(&client, &address).map_err(io::Error::from);
            (client, result)
        })
        .collect();
    assert_eq!(waiting.last().unwrap().1.as_ref().unwrap_err().kind(), ErrorKind::WouldBlock, "the backlog is full");

    let begun = Instant::now();
    let limits = Limits { connect: Duration::from_millis(200), ..limits() };
    let error = get(&path, "/", &limits).unwrap_err();
    assert!(matches!(error, Error::TimedOut { awaited: "connection", .. }), "{error:?}");
    let elapsed = begun.elapsed();
    assert!(elapsed >= limits.connect && elapsed < Duration::from_secs(10), "{elapsed:?}");
}

#[test]
fn connecting_succeeds_once_a_full_backlog_empties() {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
    bind(&listener, &SocketAddrUnix::new(&path).unwrap()).unwrap();
    listen(&listener, 0).unwrap();
    let waiting = UnixStream::connect(&path).unwrap();
    let listener = UnixListener::from(listener);
    let server = thread::spawn(move || {
        thread::sleep(Duration::from_millis(100));
        drop(listener.accept().unwrap());
        let (mut stream, _) = listener.accept().unwrap();
        read_request(&mut stream);
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
    });
    assert_eq!(get(&path, "/", &limits()).unwrap().status, 200);
    server.join().unwrap();
    drop(waiting);
}

#[test]
fn a_daemon_that_sends_nothing_or_byte_after_byte_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let begun = Instant::now();
    let path = folder.path().join("silent");
    let silent = UnixListener::bind(&path).unwrap();
    let error = get(&path, "/", &short()).unwrap_err();
    assert!(matches!(error, Error::TimedOut { .. }), "{error:?}");
    drop(silent);

    let drip = |name: &str, header: &'static str| {
        let path = folder.path().join(name);
        let server = serve(&path, move |mut stream| {
            let _ = stream.write_all(header.as_bytes());
            while stream.write_all(b"A: b\r\n").is_ok() {
                thread::sleep(Duration::from_millis(20));
            }
        });
        (path, server)
    };
    let (path, server) = drip("header", "HTTP/1.1 200 OK\r\n");
    let error = get(&path, "/", &Limits { read: Duration::from_millis(200), ..limits() }).unwrap_err();
    assert!(matches!(error, Error::TimedOut { awaited: "response header", .. }), "{error:?}");
    server.join().unwrap();
    // Every read is quick enough here, so only the total is exceeded.
    let (path, server) = drip("body", "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
    let limits = Limits { total: Duration::from_millis(200), body: 1 << 20, ..limits() };
    let error = get(&path, "/", &limits).unwrap_err();
    assert!(matches!(error, Error::TimedOut { awaited: "complete response", .. }), "{error:?}");
    server.join().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(10));
}

proptest! {
    #[test]
    fn any_bytes_are_a_bounded_response_or_an_error(
        bytes in prop::collection::vec(any::<u8>(), 0..80),
        text in "(HTTP/1\\.[01] 200 OK\r\n|Transfer-Encoding: chunked\r\n|Content-Length: [0-9]{0,22}\r\n|\r\n|[0-9a-f]{1,17}|\\[|\\]|\\PC){0,10}",
    ) {
        for bytes in [&bytes[..], text.as_bytes()] {
            if let Ok(response) = response_to(bytes) {
                prop_assert!(response.body.len() <= BODY);
            }
        }
    }
}
