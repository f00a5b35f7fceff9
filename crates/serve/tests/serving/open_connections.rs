//! A visitor who opens many connections and asks nothing.

use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use evenhand_serve::Listen;

use super::{Serving, exchange};

/// As the page on `serve` states.
const OF_ONE_VISITOR: usize = 128;

#[test]
fn a_visitor_has_a_share_of_the_connections_and_a_monitor_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let site = Serving::start("none", |options| {
        (options.listen, options.user_header) = (Listen::Unix(path.clone()), None);
    });
    let get = |address: &str| {
        let request = format!("GET {address} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        exchange(UnixStream::connect(&path).unwrap(), &request)
    };
    let idle: Vec<UnixStream> = (0..OF_ONE_VISITOR).map(|_| UnixStream::connect(&path).unwrap()).collect();
    let begin = Instant::now();
    let (status, head, body) = get("/api/v1/status");
    assert!(status == 429 && head.contains("retry-after: "), "{head}");
    assert!(body.contains("too many open connections of one visitor"), "{body}");
    assert_eq!(get("/healthz").0, 200);
    assert!(begin.elapsed() < Duration::from_secs(5), "none of the idle connections was waited for");
    drop(idle);
    let answered = (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        get("/api/v1/status").0 == 200
    });
    assert!(answered, "the closed connections do not count");
    drop(site);
}
