//! Metrics for Prometheus: the text exposition format, and a server for one page.
//!
//! A few metric families need no metrics library; see
//! <https://prometheus.io/docs/instrumenting/exposition_formats/>.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::failure::Failure;

/// Serves the text that `text` returns at each request, from now on. Returns the address, with the actual port if
/// `address` has port 0.
pub(crate) fn serve(
    option: &str,
    address: SocketAddr,
    text: impl Fn() -> String + Send + 'static,
) -> Result<SocketAddr, Failure> {
    let failed = |e| Failure::Environment(format!("{option}: cannot listen on {address}: {e}"));
    let listener = TcpListener::bind(address).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    thread::spawn(move || listener.incoming().flatten().for_each(|stream| answer(stream, &text)));
    Ok(address)
}

/// Answers one request per connection; slow clients time out.
fn answer(mut stream: TcpStream, text: &dyn Fn() -> String) {
    let _ = stream.set_read_timeout(Some(Duration::from_secs(2)));
    let _ = stream.set_write_timeout(Some(Duration::from_secs(2)));
    let mut request = [0; 1024];
    let read = stream.read(&mut request).unwrap_or(0);
    let is_get = request[..read].starts_with(b"GET /metrics") || request[..read].starts_with(b"GET / ");
    let (status, body) = match is_get {
        true => ("200 OK", text()),
        false => ("404 Not Found", "only /metrics is served\n".into()),
    };
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
}

/// Text that the program replaces while it is served.
#[derive(Clone, Debug, Default)]
pub(crate) struct Page(Arc<Mutex<String>>);

impl Page {
    pub(crate) fn set(&self, text: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }

    pub(crate) fn get(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
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
        let page = Page::default();
        let served = page.clone();
        let address = serve("--metrics", "127.0.0.1:0".parse().unwrap(), move || served.get()).unwrap();
        page.set(text.finish());
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
        assert!(get("GET /secret HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
    }
}
