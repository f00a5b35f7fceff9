//! The freshest record of every node.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::exchange::fixed::raise_to;
use crate::exchange::{Fixed, Limits, MOST_NODES, NodeState, NodeStatus, Record, Refusal, Totals, UserSums, add_to};

/// How long a record counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ageing {
    /// How often nodes publish.
    pub interval: Duration,
    /// After how many intervals a record begins to age: each interval from then on halves it. 3 unless said.
    pub limit: u32,
    /// After how many halvings it does not count any more. 8 unless said.
    pub halvings: u32,
    /// After how many intervals a lost node is not shown any more. 1,000 unless said.
    pub shown: u32,
}

impl Ageing {
    /// As it is unless said otherwise.
    #[must_use]
    pub fn new(interval: Duration) -> Ageing {
        Ageing { interval, limit: 3, halvings: 8, shown: 1000 }
    }

    /// The age up to which a record counts in full.
    #[must_use]
    pub fn fresh(&self) -> Duration {
        self.interval.saturating_mul(self.limit)
    }

    /// What an age makes of a record.
    #[must_use]
    pub fn state(&self, age: Duration) -> NodeState {
        let Some(past) = age.checked_sub(self.fresh()).filter(|past| !past.is_zero()) else {
            return NodeState::Fresh;
        };
        let whole = past.as_nanos() / self.interval.as_nanos().max(1);
        match u32::try_from(whole + 1) {
            Ok(halvings) if halvings <= self.halvings => NodeState::Ageing { halvings },
            _ => NodeState::Lost,
        }
    }
}

/// The freshest record of every node, and the totals that follow.
///
/// It waits for nobody: [`totals`](Board::totals) answers with what there is. Line 8 of the paper's Listing 1
/// ("wait to receive heaviness set from all") stops the whole cloud when one node stops.
///
/// Times are those of any clock that does not go backwards, counted from any instant; nobody's clock is
/// compared with another's.
///
/// ```
/// use std::{collections::BTreeMap, time::Duration};
/// use evenhand_protocol::exchange::{Ageing, Board, Fixed, Limits, NodeState, Record, UserSums};
///
/// let one = Fixed::from_f64(1.0).ok_or("not a number")?;
/// let record = |node: &str, sequence| Record {
///     node: node.into(), incarnation: 1, sequence, digest: 7, supply: vec![one],
///     users: BTreeMap::from([("ada".into(), UserSums { terms: vec![one], guests: 1 })]),
/// };
/// let second = Duration::from_secs(1);
/// let mut board = Board::new(Ageing::new(second), Limits::by_factor(one + one), "a");
/// board.publish(0 * second, record("a", 1));
/// board.hear(0 * second, record("b", 1));
/// assert_eq!(board.totals(3 * second).users["ada"].terms[0].to_f64(), 2.0);
/// // Nothing is heard any more: both count less and less.
/// assert_eq!(board.totals(4 * second).state("b"), Some(&NodeState::Ageing { halvings: 2 }));
/// board.publish(4 * second, record("a", 2));
/// assert_eq!(board.totals(4 * second).users["ada"].terms[0].to_f64(), 1.25);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Board {
    ageing: Ageing,
    limits: Limits,
    node: String,
    digest: Option<u64>,
    entries: BTreeMap<String, Entry>,
    alone_since: Option<Duration>,
}

#[derive(Clone, Debug)]
struct Entry {
    /// Of the newest that was heard, in bounds or not.
    version: (u64, u64),
    /// When the last came that was in bounds, or else the first, less the age that it came with; on a clock that
    /// is [`START`] ahead of the caller's.
    heard: Duration,
    /// The newest that was in bounds.
    record: Option<Record>,
    /// Why the newest was not.
    refusal: Option<Refusal>,
}

/// What was said before the caller's clock began has a time, too.
const START: Duration = Duration::from_secs(1 << 32);

/// What became of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// It is the newest of its node.
    Newer,
    /// The same or a newer one was heard before: nothing has changed.
    Known,
    /// It does not count. The last that did goes on ageing.
    Refused(Refusal),
}

impl Board {
    /// An empty one, of this node.
    #[must_use]
    pub fn new(ageing: Ageing, limits: Limits, node: &str) -> Board {
        Board { ageing, limits, node: node.to_owned(), digest: None, entries: BTreeMap::new(), alone_since: None }
    }

    /// Takes this node's own newest record. Its digest is what others' are compared with.
    pub fn publish(&mut self, now: Duration, own: Record) {
        self.digest = Some(own.digest);
        let heard = now.saturating_add(START);
        let entry = Entry { version: own.version(), heard, record: Some(own), refusal: None };
        self.entries.insert(self.node.clone(), entry);
    }

    /// Takes another node's record, from wherever it comes, in whatever order and however often.
    pub fn hear(&mut self, now: Duration, record: Record) -> Heard {
        self.hear_aged(now, record, Duration::ZERO)
    }

    /// Takes another node's record from somebody else, who has had it for so long. Without that, what nodes that
    /// are gone have said would be fresh to every node that comes.
    pub fn hear_aged(&mut self, now: Duration, record: Record, age: Duration) -> Heard {
        let heard = now.saturating_add(START).saturating_sub(age);
        if record.node == self.node {
            // What others have heard of this node comes back to it. Only another version than any of its
            // own shows a second node of its name.
            let own = self.entries.get(&self.node).map_or((0, 0), |own| own.version);
            return if record.version() > own { Heard::Refused(Refusal::OwnName) } else { Heard::Known };
        }
        let version = record.version();
        if self.entries.get(&record.node).is_some_and(|entry| entry.version >= version) {
            return Heard::Known;
        }
        let checked = self.limits.check(&record);
        if matches!(checked, Err(Refusal::Name)) {
            return Heard::Refused(Refusal::Name);
        }
        if !self.entries.contains_key(&record.node) {
            self.make_room();
        }
        let entry =
            self.entries.entry(record.node.clone()).or_insert(Entry { version, heard, record: None, refusal: None });
        entry.version = version;
        match checked {
            Ok(()) => {
                *entry = Entry { version, heard, record: Some(record), refusal: None };
                Heard::Newer
            }
            Err(refusal) => {
                entry.refusal = Some(refusal.clone());
                Heard::Refused(refusal)
            }
        }
    }

    /// The newest version heard of a node: nothing up to it has to be sent here again.
    #[must_use]
    pub fn version(&self, node: &str) -> Option<(u64, u64)> {
        self.entries.get(node).map(|entry| entry.version)
    }

    /// The records that count at all with their ages, to pass on.
    pub fn records(&self, now: Duration) -> impl Iterator<Item = (&Record, Duration)> {
        let now = now.saturating_add(START);
        let known = move |entry: &'_ Entry| now.saturating_sub(entry.heard);
        self.entries.values().filter_map(move |entry| Some((entry.record.as_ref()?, known(entry))))
    }

    /// The sums over all nodes that count now.
    ///
    /// Nodes that have heard the same records at the same age answer the same, to the last bit.
    pub fn totals(&mut self, now: Duration) -> Totals {
        let now = now.saturating_add(START);
        let mut totals = Totals::default();
        let mut latest = None;
        let mut alone = true;
        for (name, entry) in &mut self.entries {
            let age = now.saturating_sub(entry.heard);
            let by_age = if entry.record.is_some() { self.ageing.state(age) } else { NodeState::Lost };
            let foreign = match (&entry.record, self.digest) {
                (Some(record), Some(ours)) if record.digest != ours => {
                    Some(Refusal::Digest { theirs: record.digest, ours })
                }
                _ => None,
            };
            let halvings = match (&foreign, &by_age) {
                (None, NodeState::Fresh) => Some(0),
                (None, NodeState::Ageing { halvings }) => Some(*halvings),
                _ => None,
            };
            if *name != self.node {
                alone &= halvings != Some(0);
                latest = latest.max(Some(entry.heard.saturating_add(self.ageing.fresh())));
            }
            match (&entry.record, halvings) {
                (Some(record), Some(halvings)) => add(&mut totals, record, halvings),
                _ if by_age == NodeState::Lost => entry.record = None,
                _ => {}
            }
            if by_age == NodeState::Lost && age > self.ageing.interval.saturating_mul(self.ageing.shown) {
                continue;
            }
            let state = entry.refusal.clone().or(foreign).map_or(by_age, NodeState::Refused);
            totals.nodes.push(NodeStatus { name: name.clone(), age, state });
        }
        if alone {
            let since = latest.unwrap_or(now).min(now).saturating_sub(START);
            self.alone_since.get_or_insert(since);
        } else {
            self.alone_since = None;
        }
        totals.alone_since = self.alone_since;
        totals
    }

    /// A board is bounded: the node that was heard least lately gives way.
    fn make_room(&mut self) {
        if self.entries.len() < MOST_NODES {
            return;
        }
        let others = self.entries.iter().filter(|(name, _)| **name != self.node);
        if let Some(name) = others.min_by_key(|(_, entry)| entry.heard).map(|(name, _)| name.clone()) {
            self.entries.remove(&name);
        }
    }
}

fn add(totals: &mut Totals, record: &Record, halvings: u32) {
    let aged = |numbers: &[Fixed]| numbers.iter().map(|n| n.halved(halvings)).collect::<Vec<_>>();
    let supply = aged(&record.supply);
    add_to(&mut totals.supply, &supply);
    raise_to(&mut totals.largest, &supply);
    for (user, sums) in &record.users {
        let sums = UserSums { terms: aged(&sums.terms), guests: sums.guests };
        match totals.users.get_mut(user) {
            Some(total) => total.add(&sums),
            None => {
                totals.users.insert(user.clone(), sums);
            }
        }
    }
}
