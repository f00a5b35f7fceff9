//! The newest record of every node.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::exchange::fixed_point::max_elementwise;
use crate::exchange::{
    Fixed, MAX_NODES, NodeState, NodeStatus, Record, RecordError, RecordLimits, Totals, UserSums, add_elementwise,
};

/// How fast records lose their effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ageing {
    /// The interval at which nodes publish.
    pub interval: Duration,
    /// The number of intervals after which a record starts to age; each further interval halves it. Default 3.
    pub fresh_intervals: u32,
    /// The number of halvings after which a record no longer counts. Default 8.
    pub max_halvings: u32,
    /// The number of intervals after which a lost node is no longer listed. Default 1,000.
    pub forget_intervals: u32,
}

impl Ageing {
    /// Returns the default ageing for this interval.
    #[must_use]
    pub fn new(interval: Duration) -> Ageing {
        Ageing { interval, fresh_intervals: 3, max_halvings: 8, forget_intervals: 1000 }
    }

    /// Returns the age up to which a record counts in full.
    #[must_use]
    pub fn fresh_period(&self) -> Duration {
        self.interval.saturating_mul(self.fresh_intervals)
    }

    /// Returns the state of a record of this age.
    #[must_use]
    pub fn state(&self, age: Duration) -> NodeState {
        let Some(past) = age.checked_sub(self.fresh_period()).filter(|past| !past.is_zero()) else {
            return NodeState::Fresh;
        };
        let whole = past.as_nanos() / self.interval.as_nanos().max(1);
        match u32::try_from(whole + 1) {
            Ok(halvings) if halvings <= self.max_halvings => NodeState::Ageing { halvings },
            _ => NodeState::Lost,
        }
    }
}

/// The newest record of every node, and the totals over all nodes.
///
/// [`totals`](RecordStore::totals) never waits: it returns the totals of the records at hand. Line 8 of Listing 1 of Poullie
/// et al. (2016), "wait to receive heaviness set from all", would stop the whole cloud when one node stops.
///
/// Times are those of any monotonic clock with any origin; clocks of different nodes are never compared. The store holds
/// at most [`MAX_NODES`] records.
///
/// ```
/// use std::{collections::BTreeMap, time::Duration};
/// use evenhand_protocol::exchange::{Ageing, RecordStore, Fixed, RecordLimits, NodeState, Record, UserSums};
///
/// let one = Fixed::from_f64(1.0).ok_or("not a number")?;
/// let record = |node: &str, sequence| Record {
///     node: node.into(), incarnation: 1, sequence, digest: 7, supply: vec![one],
///     users: BTreeMap::from([("ada".into(), UserSums { terms: vec![one], workloads: 1 })]),
/// };
/// let second = Duration::from_secs(1);
/// let mut store = RecordStore::new(Ageing::new(second), RecordLimits::by_factor(one + one), "a");
/// store.publish(0 * second, record("a", 1));
/// store.receive(0 * second, record("b", 1));
/// assert_eq!(store.totals(3 * second).users["ada"].terms[0].to_f64(), 2.0);
/// // No further records: both age.
/// assert_eq!(store.totals(4 * second).state("b"), Some(&NodeState::Ageing { halvings: 2 }));
/// store.publish(4 * second, record("a", 2));
/// assert_eq!(store.totals(4 * second).users["ada"].terms[0].to_f64(), 1.25);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct RecordStore {
    ageing: Ageing,
    limits: RecordLimits,
    node: String,
    digest: Option<u64>,
    entries: BTreeMap<String, Entry>,
    isolated_since: Option<Duration>,
}

#[derive(Clone, Debug)]
struct Entry {
    /// The version of the newest record received, valid or not.
    version: (u64, u64),
    /// The time at which the newest valid record was received (or else the first record), minus the age that it had then;
    /// on a clock that is [`START`] ahead of the caller's.
    received_at: Duration,
    /// The newest valid record.
    record: Option<Record>,
    /// Why the newest record is not valid.
    error: Option<RecordError>,
}

/// Lets records be older than the origin of the caller's clock.
const START: Duration = Duration::from_secs(1 << 32);

/// What the store did with a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceiveOutcome {
    /// Stored: it is the newest of its node.
    Stored,
    /// Ignored: it or a newer one was received before.
    Duplicate,
    /// Rejected. The last valid record of the node continues to age.
    Rejected(RecordError),
}

impl RecordStore {
    /// Creates an empty store for this node.
    #[must_use]
    pub fn new(ageing: Ageing, limits: RecordLimits, node: &str) -> RecordStore {
        RecordStore {
            ageing,
            limits,
            node: node.to_owned(),
            digest: None,
            entries: BTreeMap::new(),
            isolated_since: None,
        }
    }

    /// Stores this node's own newest record. The records of other nodes are compared with its digest.
    pub fn publish(&mut self, now: Duration, record: Record) {
        self.digest = Some(record.digest);
        let received_at = now.saturating_add(START);
        let entry = Entry { version: record.version(), received_at, record: Some(record), error: None };
        self.entries.insert(self.node.clone(), entry);
    }

    /// Stores a record of another node. Records may come by any path, in any order and repeatedly. O(log nodes + users).
    pub fn receive(&mut self, now: Duration, record: Record) -> ReceiveOutcome {
        self.receive_aged(now, record, Duration::ZERO)
    }

    /// Stores a record that was relayed by a node which received it `age` ago. Without the age, records of lost nodes would
    /// be fresh to every node that joins.
    pub fn receive_aged(&mut self, now: Duration, record: Record, age: Duration) -> ReceiveOutcome {
        let received_at = now.saturating_add(START).saturating_sub(age);
        if record.node == self.node {
            // This node's own records come back from others. Only a newer version than its own indicates a second node of the
            // same name.
            let own = self.entries.get(&self.node).map_or((0, 0), |own| own.version);
            return if record.version() > own {
                ReceiveOutcome::Rejected(RecordError::OwnName)
            } else {
                ReceiveOutcome::Duplicate
            };
        }
        let version = record.version();
        if self.entries.get(&record.node).is_some_and(|entry| entry.version >= version) {
            return ReceiveOutcome::Duplicate;
        }
        let checked = self.limits.check(&record);
        if matches!(checked, Err(RecordError::Name)) {
            return ReceiveOutcome::Rejected(RecordError::Name);
        }
        if !self.entries.contains_key(&record.node) {
            self.evict_oldest();
        }
        let entry = self.entries.entry(record.node.clone()).or_insert(Entry {
            version,
            received_at,
            record: None,
            error: None,
        });
        entry.version = version;
        match checked {
            Ok(()) => {
                *entry = Entry { version, received_at, record: Some(record), error: None };
                ReceiveOutcome::Stored
            }
            Err(error) => {
                entry.error = Some(error.clone());
                ReceiveOutcome::Rejected(error)
            }
        }
    }

    /// Returns the version of the newest record received from a node; it and older ones need not be sent again.
    #[must_use]
    pub fn version(&self, node: &str) -> Option<(u64, u64)> {
        self.entries.get(node).map(|entry| entry.version)
    }

    /// Returns the records that count with their ages, to relay them.
    pub fn records(&self, now: Duration) -> impl Iterator<Item = (&Record, Duration)> {
        let now = now.saturating_add(START);
        let age = move |entry: &'_ Entry| now.saturating_sub(entry.received_at);
        self.entries.values().filter_map(move |entry| Some((entry.record.as_ref()?, age(entry))))
    }

    /// Returns the sums over all nodes whose records count at this time. O(nodes x users).
    ///
    /// Nodes with the same records of the same age compute identical totals, bit for bit.
    pub fn totals(&mut self, now: Duration) -> Totals {
        let now = now.saturating_add(START);
        let mut totals = Totals::default();
        let mut latest = None;
        let mut isolated = true;
        for (name, entry) in &mut self.entries {
            let age = now.saturating_sub(entry.received_at);
            let by_age = if entry.record.is_some() { self.ageing.state(age) } else { NodeState::Lost };
            let foreign = match (&entry.record, self.digest) {
                (Some(record), Some(ours)) if record.digest != ours => {
                    Some(RecordError::Digest { theirs: record.digest, ours })
                }
                _ => None,
            };
            let halvings = match (&foreign, &by_age) {
                (None, NodeState::Fresh) => Some(0),
                (None, NodeState::Ageing { halvings }) => Some(*halvings),
                _ => None,
            };
            if *name != self.node {
                isolated &= halvings != Some(0);
                latest = latest.max(Some(entry.received_at.saturating_add(self.ageing.fresh_period())));
            }
            match (&entry.record, halvings) {
                (Some(record), Some(halvings)) => add(&mut totals, record, halvings),
                _ if by_age == NodeState::Lost => entry.record = None,
                _ => {}
            }
            if by_age == NodeState::Lost && age > self.ageing.interval.saturating_mul(self.ageing.forget_intervals) {
                continue;
            }
            let state = entry.error.clone().or(foreign).map_or(by_age, NodeState::Rejected);
            totals.nodes.push(NodeStatus { name: name.clone(), age, state });
        }
        if isolated {
            let since = latest.unwrap_or(now).min(now).saturating_sub(START);
            self.isolated_since.get_or_insert(since);
        } else {
            self.isolated_since = None;
        }
        totals.isolated_since = self.isolated_since;
        totals
    }

    /// Removes the record that was received longest ago if the store is full.
    fn evict_oldest(&mut self) {
        if self.entries.len() < MAX_NODES {
            return;
        }
        let others = self.entries.iter().filter(|(name, _)| **name != self.node);
        if let Some(name) = others.min_by_key(|(_, entry)| entry.received_at).map(|(name, _)| name.clone()) {
            self.entries.remove(&name);
        }
    }
}

fn add(totals: &mut Totals, record: &Record, halvings: u32) {
    let aged = |numbers: &[Fixed]| numbers.iter().map(|n| n.halved(halvings)).collect::<Vec<_>>();
    let supply = aged(&record.supply);
    add_elementwise(&mut totals.supply, &supply);
    max_elementwise(&mut totals.largest, &supply);
    for (user, sums) in &record.users {
        let sums = UserSums { terms: aged(&sums.terms), workloads: sums.workloads };
        match totals.users.get_mut(user) {
            Some(total) => total.add(&sums),
            None => {
                totals.users.insert(user.clone(), sums);
            }
        }
    }
}
