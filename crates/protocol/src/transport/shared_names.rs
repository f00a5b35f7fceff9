//! Recognises names that two nodes have at once, by the addresses from which each name is used.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::exchange::MAX_NODES;

/// For how many intervals two addresses have to be in use beside each other: longer than a node that has moved is still listed
/// at its earlier address.
const SETTLE: u32 = 5;
/// After how many intervals without a message an address is no longer in use. In a large cloud a node gossips with each other
/// one rarely.
const FORGET: u32 = 30;
/// The addresses of a name that are kept; more say nothing more.
const MOST_ADDRESSES: usize = 4;

/// A name that several nodes have: of their records only those of the node that started last count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedName {
    /// The name.
    pub name: String,
    /// The addresses of the nodes, sorted.
    pub addresses: Vec<SocketAddr>,
}

/// When messages came from an address.
#[derive(Clone, Copy)]
struct Use {
    first: Instant,
    last: Instant,
}

/// The addresses from which names are used.
pub(crate) struct NameWatch {
    interval: Duration,
    names: Mutex<Names>,
}

#[derive(Default)]
struct Names {
    uses: HashMap<String, BTreeMap<SocketAddr, Use>>,
    /// When the names that are no longer in use were removed.
    cleared: Option<Instant>,
}

impl NameWatch {
    /// Creates a watch over the names of nodes that exchange records at this interval.
    pub(crate) fn new(interval: Duration) -> NameWatch {
        NameWatch { interval, names: Mutex::default() }
    }

    /// Notes that a node of this name was active at an address.
    pub(crate) fn note(&self, name: &str, address: SocketAddr, now: Instant) {
        let mut names = self.lock();
        if !names.uses.contains_key(name) {
            // At most once per interval, since it looks at all of them.
            let is_due = names.cleared.is_none_or(|at| now.saturating_duration_since(at) >= self.interval);
            if names.uses.len() >= MAX_NODES && is_due {
                names.cleared = Some(now);
                names.uses.retain(|_, uses| uses.values().any(|of| self.is_in_use(of, now)));
            }
            if names.uses.len() >= MAX_NODES {
                return;
            }
            names.uses.insert(name.to_owned(), BTreeMap::new());
        }
        let Some(uses) = names.uses.get_mut(name) else { return };
        if uses.len() > 1 || !uses.contains_key(&address) {
            uses.retain(|_, of| self.is_in_use(of, now));
            if uses.len() >= MOST_ADDRESSES && !uses.contains_key(&address) {
                return;
            }
        }
        uses.entry(address).or_insert(Use { first: now, last: now }).last = now;
    }

    /// Returns the names that are shared, sorted.
    pub(crate) fn shared(&self, now: Instant) -> Vec<SharedName> {
        let settle = self.interval * SETTLE;
        let mut shared = Vec::new();
        for (name, uses) in &self.lock().uses {
            // Beside another one: each was used after the other one had been used for a while.
            let is_beside = |(address, of): (&SocketAddr, &Use)| {
                uses.iter()
                    .any(|(other, at)| other != address && of.last >= at.first + settle && at.last >= of.first + settle)
            };
            let in_use = uses.iter().filter(|(_, of)| self.is_in_use(of, now));
            let addresses: Vec<SocketAddr> = in_use.filter(|of| is_beside(*of)).map(|(address, _)| *address).collect();
            if addresses.len() > 1 {
                shared.push(SharedName { name: name.clone(), addresses });
            }
        }
        shared.sort_by(|a, b| a.name.cmp(&b.name));
        shared
    }

    fn is_in_use(&self, of: &Use, now: Instant) -> bool {
        now.saturating_duration_since(of.last) <= self.interval * FORGET
    }

    fn lock(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(10);

    fn at(port: u16) -> SocketAddr {
        ([192, 0, 2, 1], port).into()
    }

    #[test]
    fn a_name_is_shared_while_it_is_used_at_two_addresses_and_not_when_its_node_moves() {
        let watch = NameWatch::new(INTERVAL);
        let begin = Instant::now();
        let of = |interval: u32| begin + INTERVAL * interval;
        // The node b moves at 10, and is still listed at its earlier address for a while.
        for interval in 0..40 {
            let now = of(interval);
            watch.note("a", at(1), now);
            if interval < 13 {
                watch.note("b", at(2), now);
            }
            if interval >= 10 {
                watch.note("b", at(3), now);
            }
            assert_eq!(watch.shared(now), [], "{interval}");
        }
        // A second a starts at 40 and ends at 60.
        let found = |from: u32, to: u32, both: bool| -> Vec<bool> {
            let each = |interval| {
                let now = of(interval);
                watch.note("a", at(1), now);
                if both {
                    watch.note("a", at(4), now);
                }
                let shared = watch.shared(now);
                let expected = SharedName { name: "a".into(), addresses: vec![at(1), at(4)] };
                assert!(shared.iter().all(|found| *found == expected), "{shared:?}");
                !shared.is_empty()
            };
            (from..to).map(each).collect()
        };
        let shared = found(40, 60, true);
        assert_eq!(shared.iter().position(|is| *is), Some(SETTLE as usize), "{shared:?}");
        let shared = found(60, 100, false);
        assert_eq!(shared.iter().position(|is| !*is), Some(FORGET as usize), "{shared:?}");
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let watch = NameWatch::new(INTERVAL);
        let begin = Instant::now();
        for port in 1..100 {
            watch.note("a", at(port), begin);
        }
        assert_eq!(watch.lock().uses["a"].len(), MOST_ADDRESSES);
        for number in 0..2 * MAX_NODES {
            watch.note(&number.to_string(), at(1), begin);
        }
        assert_eq!(watch.lock().uses.len(), MAX_NODES);
        // Later there is space for others.
        watch.note("new", at(1), begin + INTERVAL * (FORGET + 1));
        assert_eq!(watch.lock().uses.len(), 1);
    }
}
