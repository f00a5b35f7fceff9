//! Metrics for Prometheus: the text exposition format, and a server for one page.
//!
//! A few metric families need no metrics library; see
//! <https://prometheus.io/docs/instrumenting/exposition_formats/>.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::failure::Failure;

/// The largest number of connections at a time; further ones are closed at once.
const CONNECTIONS: usize = 64;
/// The time in which a client has to send its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// The time in which a client has to take the answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// The largest request with its header, in bytes.
const LARGEST_REQUEST: usize = 8 << 10;

/// Serves the text that `text` returns at each request, from now on. Returns the address, with the actual port if
/// `address` has port 0.
///
/// Each connection has a thread of its own, so that slow and idle clients do not delay others; their number and the time of
/// each are limited.
pub(crate) fn serve(
    option: &str,
    address: SocketAddr,
    text: impl Fn() -> String + Send + Sync + 'static,
) -> Result<SocketAddr, Failure> {
    let failed = |e| Failure::Environment(format!("{option}: cannot listen on {address}: {e}"));
    let listener = TcpListener::bind(address).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let text = Arc::new(text);
    let open = Arc::new(AtomicUsize::new(0));
    thread::spawn(move || {
        loop {
            let Ok((stream, _)) = listener.accept() else {
                // For example, no file descriptors are left.
                thread::sleep(Duration::from_millis(100));
                continue;
            };
            let connection = Connection::count(&open);
            if connection.number > CONNECTIONS {
                continue;
            }
            let text = Arc::clone(&text);
            // If there is no thread, the connection is closed.
            let _ = thread::Builder::new().name("metrics".into()).spawn(move || {
                answer(stream, &*text);
                drop(connection);
            });
        }
    });
    Ok(address)
}

/// A connection among those that are open.
struct Connection {
    open: Arc<AtomicUsize>,
    number: usize,
}

impl Connection {
    fn count(open: &Arc<AtomicUsize>) -> Connection {
        Connection { open: Arc::clone(open), number: open.fetch_add(1, Ordering::Relaxed) + 1 }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Answers the request of a connection.
fn answer(mut stream: TcpStream, text: &dyn Fn() -> String) {
    let Some(request) = read_request(&mut stream) else { return };
    let (method, path) = method_and_path(&request);
    let (status, more, body) = match (method, path) {
        (b"GET" | b"HEAD", b"/metrics" | b"/") => ("200 OK", "", text()),
        (_, b"/metrics" | b"/") => {
            ("405 Method Not Allowed", "Allow: GET, HEAD\r\n", "this page is read-only; expected GET or HEAD\n".into())
        }
        _ => ("404 Not Found", "", "only /metrics is served\n".into()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\n{more}Content-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    // HEAD has the header of GET, with its length, and no body.
    let answer = if method == b"HEAD" { head } else { head + &body };
    let deadline = Instant::now() + ANSWER_TIMEOUT;
    let mut left = answer.as_bytes();
    while !left.is_empty() {
        let Some(time) = time_left(deadline) else { return };
        match stream.set_write_timeout(Some(time)).and_then(|()| stream.write(left)) {
            Ok(written) if written > 0 => left = &left[written..],
            _ => return,
        }
    }
}

/// Returns the method and the path of a request, without the query.
fn method_and_path(request: &[u8]) -> (&[u8], &[u8]) {
    let mut words = request.split(|byte| byte.is_ascii_whitespace());
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    (method, target.split(|byte| *byte == b'?').next().unwrap_or_default())
}

/// Reads the request up to the empty line after its header; `None` if it does not come in time, or is too large.
fn read_request(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let deadline = Instant::now() + REQUEST_TIMEOUT;
    let mut request = Vec::new();
    let mut buffer = [0; 1024];
    loop {
        stream.set_read_timeout(Some(time_left(deadline)?)).ok()?;
        let read = stream.read(&mut buffer).ok()?;
        request.extend_from_slice(&buffer[..read]);
        // A client that closes its side early has sent all of it.
        if read == 0 || request.windows(4).any(|end| end == b"\r\n\r\n") {
            return Some(request);
        }
        if request.len() > LARGEST_REQUEST {
            return None;
        }
    }
}

fn time_left(deadline: Instant) -> Option<Duration> {
    Some(deadline.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero())
}

/// The largest number of users, and of workloads, with series of their own: Prometheus keeps every series that it ever saw,
/// and a site may have a million users.
pub(crate) const LABELLED: usize = 200;

/// The user label of the sum of all users without series of their own. No user of a system can have this name.
pub(crate) const REST: &str = "(rest)";

/// Returns per-user values by resource for the first [`LABELLED`] users, and the sums of all others as those of [`REST`].
pub(crate) fn by_user_and_resource<'a>(
    users: impl IntoIterator<Item = (Vec<(&'a str, &'a str)>, Vec<(&'a str, f64)>)>,
) -> Vec<(Vec<(&'a str, &'a str)>, f64)> {
    let mut rows = Vec::new();
    let mut rest: BTreeMap<&str, f64> = BTreeMap::new();
    for (index, (labels, values)) in users.into_iter().enumerate() {
        for (resource, value) in values {
            if index < LABELLED {
                rows.push((labels.iter().copied().chain([("resource", resource)]).collect(), value));
            } else {
                *rest.entry(resource).or_default() += value;
            }
        }
    }
    rows.extend(rest.into_iter().map(|(resource, sum)| (vec![("user", REST), ("resource", resource)], sum)));
    rows
}

/// Metric families in the text exposition format.
#[derive(Debug, Default)]
pub(crate) struct MetricsText(String);

impl MetricsText {
    /// Adds a family: its name, its type (`gauge` or `counter`), its help text, and its values by labels.
    pub(crate) fn family<'a>(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        values: impl IntoIterator<Item = (Vec<(&'a str, &'a str)>, f64)>,
    ) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in values {
            let labels: Vec<String> = labels.iter().map(|(k, v)| format!("{k}=\"{}\"", escaped(v))).collect();
            let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
            let _ = writeln!(self.0, "{name}{labels} {value}");
        }
    }

    pub(crate) fn finish(self) -> String {
        self.0
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_answers_with_the_text_at_metrics_and_404_elsewhere() {
        let mut text = MetricsText::default();
        text.family("a", "gauge", "An a.", [(vec![], 1.5), (vec![("user", "x\"y")], 2.0)]);
        let text = text.finish();
        let address = serve("--metrics", "127.0.0.1:0".parse().unwrap(), move || text.clone()).unwrap();
        let get = |request: &str| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        };
        let answer = get("GET /metrics HTTP/1.1\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.ends_with("# HELP a An a.\n# TYPE a gauge\na 1.5\na{user=\"x\\\"y\"} 2\n"), "{answer}");
        let length = format!("Content-Length: {}\r\n", answer.split_once("\r\n\r\n").unwrap().1.len());
        let head = get("HEAD /metrics?x=1 HTTP/1.1\r\n\r\n");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains(&length), "{head}");
        assert!(head.ends_with("\r\n\r\n"), "no body: {head}");
        for request in ["GET /secret HTTP/1.1\r\n\r\n", "GET /metricsx HTTP/1.1\r\n\r\n", "POST /x HTTP/1.1\r\n\r\n"] {
            assert!(get(request).starts_with("HTTP/1.1 404"), "{request}");
        }
        let post = get("POST /metrics HTTP/1.1\r\n\r\n");
        assert!(post.starts_with("HTTP/1.1 405 ") && post.contains("\r\nAllow: GET, HEAD\r\n"), "{post}");
        assert!(get("\r\n\r\n").starts_with("HTTP/1.1 404"), "no request");
    }

    #[test]
    fn users_beyond_the_limit_are_summed_by_resource() {
        let names: Vec<String> = (0..LABELLED + 3).map(|user| format!("u{user}")).collect();
        let users = names.iter().map(|name| (vec![("user", name.as_str())], vec![("cpu", 0.5), ("mem", 0.25)]));
        let rows = by_user_and_resource(users);
        assert_eq!(rows.len(), 2 * LABELLED + 2);
        assert_eq!(rows[0], (vec![("user", "u0"), ("resource", "cpu")], 0.5));
        assert_eq!(rows[2 * LABELLED], (vec![("user", REST), ("resource", "cpu")], 1.5));
        assert_eq!(rows[2 * LABELLED + 1], (vec![("user", REST), ("resource", "mem")], 0.75));
    }

    #[test]
    fn idle_clients_do_not_delay_a_scrape_and_their_number_is_limited() {
        let address = serve("--metrics", "127.0.0.1:0".parse().unwrap(), || "a 1\n".into()).unwrap();
        // Fewer than the limit: each could take the time of a request, were they served one after another.
        let idle: Vec<TcpStream> = (0..CONNECTIONS - 1).map(|_| TcpStream::connect(address).unwrap()).collect();
        let scrape = || {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
            let mut answer = String::new();
            let _ = stream.read_to_string(&mut answer);
            answer
        };
        assert!(scrape().ends_with("a 1\n"));
        // Clients that drip a header without end are dropped, and with them the connections above the limit.
        let mut dripping: Vec<TcpStream> = (0..CONNECTIONS).map(|_| TcpStream::connect(address).unwrap()).collect();
        while !scrape().ends_with("a 1\n") {
            dripping.iter_mut().chain(&mut idle.iter().map(|s| s.try_clone().unwrap()).collect::<Vec<_>>()).for_each(
                |stream| {
                    let _ = stream.write_all(b"X");
                },
            );
            thread::sleep(Duration::from_millis(50));
        }
        let mut endless = TcpStream::connect(address).unwrap();
        let _ = endless.write_all(&vec![b'x'; 4 * LARGEST_REQUEST]);
        let mut answer = Vec::new();
        let _ = endless.read_to_end(&mut answer);
        assert!(answer.is_empty());
    }
}
