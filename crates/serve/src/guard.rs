//! What holds for every request: its method, its size, its visitor, its rate, its time, its headers.

use std::time::{Duration, Instant};

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::header::{ALLOW, CONTENT_LENGTH, RETRY_AFTER, TRANSFER_ENCODING};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;

use crate::connection_shares::Full;
use crate::identity::Peer;
use crate::routes::{Shared, Site};
use crate::visibility::Viewer;

/// The time in which a request is answered.
const ANSWER_TIME: Duration = Duration::from_secs(20);

/// The address at which a monitor asks whether the server works. It costs nothing, and is not counted.
pub(crate) const HEALTH: &str = "/healthz";

/// A client, whose requests share one rate limit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Client {
    User(String),
    Peer(Peer),
}

/// What an answer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Page,
    Json,
}

/// Who visits, and the way from the page that is asked for to the overview.
#[derive(Clone, Debug)]
pub(crate) struct Visitor {
    pub(crate) viewer: Viewer,
    pub(crate) root: String,
}

/// What holds for every request.
pub(crate) async fn guard(
    State(site): Shared,
    Extension(peer): Extension<Peer>,
    Extension(full): Extension<Option<Full>>,
    mut request: Request,
    next: Next,
) -> Response {
    let format = format_of(&request);
    let root = root_of(request.uri().path());
    let response = match admit(&site, &peer, full, &request) {
        Err(refusal) => refusal.response(&site, format, root),
        Ok(viewer) => {
            request.extensions_mut().insert(Visitor { viewer, root: root.clone() });
            let late = || Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the answer took too long");
            match tokio::time::timeout(ANSWER_TIME, next.run(request)).await {
                Ok(response) => response,
                Err(_) => late().response(&site, format, root),
            }
        }
    };
    with_security_headers(response)
}

/// Why a request is not answered.
struct Refusal {
    status: StatusCode,
    message: String,
    retry_after: Option<Duration>,
}

impl Refusal {
    fn new(status: StatusCode, message: impl Into<String>) -> Refusal {
        Refusal { status, message: message.into(), retry_after: None }
    }

    fn response(self, site: &Site, format: Format, root: String) -> Response {
        let visitor = Visitor { viewer: Viewer::Anonymous, root };
        let mut response = site.message(format, self.status, &self.message, &visitor);
        if let Some(wait) = self.retry_after {
            let seconds = HeaderValue::from(wait.as_secs() + 1);
            response.headers_mut().insert(RETRY_AFTER, seconds);
        }
        if self.status == StatusCode::METHOD_NOT_ALLOWED {
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        }
        response
    }
}

/// Returns who visits, if the request may be answered.
fn admit(site: &Site, peer: &Peer, full: Option<Full>, request: &Request) -> Result<Viewer, Refusal> {
    let named = peer.viewer(request.headers(), site.user_header.as_ref());
    let client = match &named {
        Ok(Viewer::User(name)) => Client::User(name.clone()),
        _ => Client::Peer(peer.clone()),
    };
    // A monitor that shares its address with visitors would otherwise take their many requests for a server that is down.
    let is_limited = request.uri().path() != HEALTH;
    if let Some(full) = full.filter(|_| is_limited) {
        let (status, message) = match full {
            Full::OfVisitor => (
                StatusCode::TOO_MANY_REQUESTS,
                "too many open connections of one visitor; close some, or ask again later",
            ),
            Full::All => (StatusCode::SERVICE_UNAVAILABLE, "too many open connections; ask again later"),
        };
        return Err(Refusal { retry_after: Some(Duration::ZERO), ..Refusal::new(status, message) });
    }
    if let Err(wait) = if is_limited { site.limit.request(client, Instant::now()) } else { Ok(()) } {
        let refusal = Refusal::new(StatusCode::TOO_MANY_REQUESTS, "too many requests; ask again later");
        return Err(Refusal { retry_after: Some(wait), ..refusal });
    }
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        return Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "this site is read-only; expected GET or HEAD"));
    }
    let headers = request.headers();
    let empty = headers.get(CONTENT_LENGTH).is_none_or(|length| length == "0");
    if !empty || headers.contains_key(TRANSFER_ENCODING) {
        return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "expected a request without a body"));
    }
    named.map_err(|error| Refusal::new(StatusCode::BAD_REQUEST, error.to_string()))
}

/// Returns the way from a page to the overview, `../` for each folder of its path: links are relative, so that a proxy may
/// serve the site below any path.
fn root_of(path: &str) -> String {
    "../".repeat(path.bytes().skip(1).filter(|&byte| byte == b'/').count())
}

pub(crate) fn format_of(request: &Request) -> Format {
    if request.uri().path().starts_with("/api/") { Format::Json } else { Format::Page }
}

/// Headers that keep a browser from running, framing or storing anything.
fn with_security_headers(mut response: Response) -> Response {
    const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; \
        frame-ancestors 'none'";
    let all = [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
        ("cache-control", "private, no-store"),
    ];
    let headers: &mut HeaderMap = response.headers_mut();
    for (name, value) in all {
        headers.entry(HeaderName::from_static(name)).or_insert(HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_to_the_overview_has_a_step_for_each_folder() {
        for (path, root) in
            [("/", ""), ("/queue", ""), ("/jobs/7", "../"), ("/a/b/c", "../../"), ("/jobs/a%2Fb", "../")]
        {
            assert_eq!(root_of(path), root, "{path}");
        }
    }
}
