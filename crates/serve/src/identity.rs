//! Who visits: the peer of a Unix socket, or a header that a trusted proxy sets.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, HeaderName};
use nix::unistd::{Uid, User};
use thiserror::Error;

use crate::visibility::Viewer;

/// The longest user name in a header.
const LONGEST_NAME: usize = 256;

/// How long the name of a number is kept.
const NAME_KEPT: Duration = Duration::from_secs(300);

/// The other side of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Peer {
    /// An address.
    Tcp(IpAddr),
    /// A process of this machine: its user's number, and its name if it has one.
    Unix(u32, Option<String>),
}

/// Whose header is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustedProxy {
    /// A proxy at this address.
    Address(IpAddr),
    /// A proxy that runs as this user and comes by the Unix socket.
    User(u32),
}

/// A header with the user's name, and who may set it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserHeader {
    name: HeaderName,
    from: TrustedProxy,
}

/// Why the options on identity are wrong.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum IdentityError {
    /// The header has no valid name.
    #[error("--user-header: found {0:?}, expected the name of a header, such as X-Remote-User")]
    Header(String),
    /// The proxy is none.
    #[error(
        "--trusted-proxy: found {0:?}, expected an address, such as 127.0.0.1, or user:NAME with a user of this machine for a proxy \
         that comes by --socket"
    )]
    Proxy(String),
}

/// A request names its user in a way that is not understood.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the header with the user's name is there several times, or is no name; the proxy has to set it once")]
pub struct AmbiguousName;

impl TrustedProxy {
    /// Parses an address, or `user:NAME`.
    ///
    /// # Errors
    /// Returns an error for any other text, and for a user whom this machine does not know.
    pub fn parse(text: &str) -> Result<TrustedProxy, IdentityError> {
        let wrong = || IdentityError::Proxy(text.to_string());
        match text.strip_prefix("user:") {
            None => text.parse().map(TrustedProxy::Address).map_err(|_| wrong()),
            Some(name) => {
                let user = User::from_name(name).ok().flatten().ok_or_else(wrong)?;
                Ok(TrustedProxy::User(user.uid.as_raw()))
            }
        }
    }
}

impl UserHeader {
    /// Believes a header, if the proxy sets it.
    ///
    /// # Errors
    /// Returns an error if a header cannot have this name.
    pub fn new(name: &str, from: TrustedProxy) -> Result<UserHeader, IdentityError> {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| IdentityError::Header(name.to_string()))?;
        Ok(UserHeader { name, from })
    }

    /// Returns whose header is believed.
    pub fn proxy(&self) -> TrustedProxy {
        self.from
    }
}

impl Peer {
    /// Returns the peer at an address. An IPv4 address within IPv6 is the IPv4 address.
    pub fn at(address: SocketAddr) -> Peer {
        Peer::Tcp(address.ip().to_canonical())
    }

    /// Returns who visits. Who comes by the Unix socket is known without a header.
    ///
    /// # Errors
    /// Returns an error if the proxy's header is there several times, or is no name.
    pub fn viewer(&self, headers: &HeaderMap, believed: Option<&UserHeader>) -> Result<Viewer, AmbiguousName> {
        let proxy = believed.filter(|header| match (self, header.from) {
            (Peer::Tcp(address), TrustedProxy::Address(trusted)) => *address == trusted.to_canonical(),
            (Peer::Unix(uid, _), TrustedProxy::User(trusted)) => *uid == trusted,
            _ => false,
        });
        if let Some(header) = proxy {
            let mut values = headers.get_all(&header.name).iter();
            return match (values.next(), values.next()) {
                (None, _) => Ok(Viewer::Anonymous),
                (Some(value), None) => name_in(value.as_bytes()).ok_or(AmbiguousName),
                (Some(_), Some(_)) => Err(AmbiguousName),
            };
        }
        Ok(match self {
            Peer::Unix(_, Some(name)) => Viewer::User(name.clone()),
            Peer::Unix(_, None) | Peer::Tcp(_) => Viewer::Anonymous,
        })
    }
}

/// Apache writes `(null)` where nobody logged in, and nginx nothing.
fn name_in(value: &[u8]) -> Option<Viewer> {
    let name = std::str::from_utf8(value).ok()?.trim();
    if name.is_empty() || name == "(null)" {
        return Some(Viewer::Anonymous);
    }
    let valid = name.len() <= LONGEST_NAME && !name.chars().any(|c| c.is_control() || c.is_whitespace() || c == ',');
    valid.then(|| Viewer::User(name.to_string()))
}

/// Names of users by number, as the name service knows them. A lookup may take long (LDAP).
#[derive(Debug, Default)]
pub(crate) struct UserNames(Mutex<HashMap<u32, (Instant, Option<String>)>>);

impl UserNames {
    pub(crate) fn of(&self, uid: u32) -> Option<String> {
        let now = Instant::now();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, (at, _)| now.saturating_duration_since(*at) < NAME_KEPT);
        if let Some((_, name)) = known.get(&uid) {
            return name.clone();
        }
        drop(known);
        let name = User::from_uid(Uid::from_raw(uid)).ok().flatten().map(|user| user.name);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(uid, (now, name.clone()));
        name
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_header_counts_only_from_the_proxy() {
        let header = |from| UserHeader::new("X-Remote-User", from).unwrap();
        let by_address = header(TrustedProxy::parse("127.0.0.1").unwrap());
        let by_user = header(TrustedProxy::parse("user:root").unwrap());
        let local = Peer::at("127.0.0.1:9".parse().unwrap());
        let mapped = Peer::at("[::ffff:127.0.0.1]:9".parse().unwrap());
        let other = Peer::at("10.0.0.7:9".parse().unwrap());
        let (root, bob) = (Peer::Unix(0, Some("root".into())), Peer::Unix(1000, Some("bob".into())));
        let named = |text: &str| Ok(if text.is_empty() { Viewer::Anonymous } else { Viewer::User(text.into()) });
        let table = [
            (&local, Some(&by_address), "ann"),
            (&mapped, Some(&by_address), "ann"),
            (&other, Some(&by_address), ""),
            (&local, None, ""),
            (&local, Some(&by_user), ""),
            (&root, Some(&by_user), "ann"),
            (&bob, Some(&by_user), "bob"),
            (&bob, Some(&by_address), "bob"),
            (&bob, None, "bob"),
        ];
        let headers =
            HeaderMap::from_iter([(HeaderName::from_static("x-remote-user"), HeaderValue::from_static("ann"))]);
        for (peer, believed, expected) in table {
            assert_eq!(peer.viewer(&headers, believed), named(expected), "{peer:?} {believed:?}");
        }
        // The proxy's own name is not that of its visitors.
        assert_eq!(root.viewer(&HeaderMap::new(), Some(&by_user)), Ok(Viewer::Anonymous));
    }

    #[test]
    fn a_name_is_one_word_and_there_once() {
        let believed = UserHeader::new("X-User", TrustedProxy::parse("::1").unwrap()).unwrap();
        let peer = Peer::at("[::1]:9".parse().unwrap());
        let viewer = |values: &[&'static str]| {
            let name = HeaderName::from_static("x-user");
            let all = values.iter().map(|value| (name.clone(), HeaderValue::from_static(value)));
            let mut headers = HeaderMap::new();
            all.for_each(|(name, value)| _ = headers.append(name, value));
            peer.viewer(&headers, Some(&believed))
        };
        assert_eq!(viewer(&["ann"]), Ok(Viewer::User("ann".into())));
        for nobody in ["", " ", "(null)"] {
            assert_eq!(viewer(&[nobody]), Ok(Viewer::Anonymous));
        }
        for wrong in [&["ann", "root"] as &[&str], &["ann, root"], &["ann root"]] {
            assert_eq!(viewer(wrong), Err(AmbiguousName), "{wrong:?}");
        }
        assert!(TrustedProxy::parse("localhost").is_err() && UserHeader::new("a b", TrustedProxy::User(0)).is_err());
    }
}
