//! How many connections are open at once, of all visitors and of each: one who opens hundreds and asks nothing must not keep the
//! others waiting.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use crate::identity::TrustedProxy;

/// The most connections at once.
const CONNECTIONS: usize = 512;

/// The most of these of one visitor.
pub(crate) const OF_ONE_VISITOR: usize = CONNECTIONS / 4;

/// The other side of a connection, as the system states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Origin {
    Address(IpAddr),
    User(u32),
}

/// Why a connection is not one of those that are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// The visitor has as many as one may have.
    OfVisitor,
    /// There are as many as there may be.
    All,
}

/// Counts open connections.
#[derive(Debug)]
pub(crate) struct Connections {
    proxy: Option<TrustedProxy>,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    all: usize,
    by_origin: HashMap<Origin, usize>,
}

/// A place among the connections, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    connections: Arc<Connections>,
    origin: Origin,
}

impl Connections {
    /// `proxy` is the origin of many visitors.
    pub(crate) fn new(proxy: Option<TrustedProxy>) -> Connections {
        Connections { proxy, open: Mutex::default() }
    }

    /// Takes a place for a connection.
    ///
    /// # Errors
    /// Returns why there is none.
    pub(crate) fn place(self: &Arc<Self>, origin: Origin) -> Result<Place, Full> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.all >= CONNECTIONS {
            return Err(Full::All);
        }
        let of_origin = open.by_origin.entry(origin).or_default();
        if *of_origin >= OF_ONE_VISITOR && !self.is_of_many(origin) {
            return Err(Full::OfVisitor);
        }
        *of_origin += 1;
        open.all += 1;
        Ok(Place { connections: Arc::clone(self), origin })
    }

    /// Whether many visitors have this origin: that of the proxy, and an address of this machine, which all its users have.
    fn is_of_many(&self, origin: Origin) -> bool {
        match (origin, self.proxy) {
            (Origin::Address(address), Some(TrustedProxy::Address(proxy))) => {
                address.is_loopback() || address == proxy.to_canonical()
            }
            (Origin::Address(address), _) => address.is_loopback(),
            (Origin::User(uid), Some(TrustedProxy::User(proxy))) => uid == proxy,
            (Origin::User(_), _) => false,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.connections.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.all -= 1;
        if let Some(of_origin) = open.by_origin.get_mut(&self.origin) {
            *of_origin -= 1;
            if *of_origin == 0 {
                open.by_origin.remove(&self.origin);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(connections: &Arc<Connections>, origin: Origin) -> Vec<Place> {
        std::iter::from_fn(|| connections.place(origin).ok()).collect()
    }

    #[test]
    fn one_visitor_leaves_places_for_others() {
        let connections = Arc::new(Connections::new(Some(TrustedProxy::User(33))));
        let (ann, bob, proxy) = (Origin::User(1000), Origin::User(1001), Origin::User(33));
        let mut of_ann = take(&connections, ann);
        assert_eq!(of_ann.len(), OF_ONE_VISITOR);
        assert_eq!(connections.place(ann).unwrap_err(), Full::OfVisitor);
        assert!(connections.place(bob).is_ok());
        of_ann.pop();
        assert_eq!(take(&connections, ann).len(), 1);
        // The proxy brings many visitors.
        let of_proxy = take(&connections, proxy);
        assert_eq!(of_proxy.len() + of_ann.len(), CONNECTIONS);
        assert_eq!(connections.place(bob).unwrap_err(), Full::All);
        drop((of_ann, of_proxy));
        let open = connections.open.lock().unwrap();
        assert!(open.all == 0 && open.by_origin.is_empty(), "{open:?}");
    }

    #[test]
    fn an_address_of_this_machine_is_that_of_many() {
        let address = |text: &str| Origin::Address(text.parse().unwrap());
        let connections = || Arc::new(Connections::new(Some(TrustedProxy::parse("10.0.0.9").unwrap())));
        for (origin, most) in [("127.0.0.1", CONNECTIONS), ("10.0.0.9", CONNECTIONS), ("10.0.0.7", OF_ONE_VISITOR)] {
            assert_eq!(take(&connections(), address(origin)).len(), most, "{origin}");
        }
    }
}
