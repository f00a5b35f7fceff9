//! Aggregation in a ring, after Poullie et al. (2016), section IV.D, with failure handling: a token goes around, and each
//! node adds its sums.
//!
//! The nodes form a **view**: an epoch, a leader, and the members in the order of their names. In each interval the leader
//! starts a round, in which a **token** passes from member to member and back. It *collects* the sums of this round and
//! *distributes* the result of the previous one. Each node therefore sends and receives one message in each interval,
//! whose size depends on the number of users and not of nodes. All members obtain identical totals, bit for bit.
//!
//! Failures. A member **acknowledges** the token. A member that does not, after retries, is skipped and recorded in the
//! token as missing, and the leader installs the next epoch without it. If a token does not come back, the leader starts
//! the next round. Each copy of a token visits the members in ascending order, and each member accepts one copy of a
//! round, so no member is counted twice, whatever messages are lost, duplicated or delayed. If no token arrives for long,
//! members **elect** a leader (with staggered timeouts, by the algorithm of Chang and Roberts). Leaders **probe** known
//! nodes outside their view; where two views meet, the one with the higher epoch (then with the smaller leader name)
//! admits the members of the other.
//!
//! No node waits for a round: [`Ring::totals`] returns the last result, aged if it is old.

mod acknowledged_forwarding;
mod leader_election;
mod membership_view;
mod message;
mod round_sums;
mod token_round;
mod view_discovery;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

pub use membership_view::{Member, View, ViewId};
pub use message::{Acknowledged, Message, Token};
pub use round_sums::RoundSums;

use crate::exchange::{Ageing, NodeState, NodeStatus, Record, RecordLimits, Totals};
use acknowledged_forwarding::InFlight;

/// The timing and limits of a ring.
#[derive(Clone, Debug)]
pub struct RingSettings {
    /// The interval between rounds, and how results age.
    pub ageing: Ageing,
    /// The time after which an unacknowledged message is sent again.
    pub hop_timeout: Duration,
    /// The number of retransmissions before a member is skipped.
    pub retries: u32,
    /// The expected time for one hop. A round of n nodes is abandoned after n times this, plus the interval and time for
    /// retransmissions.
    pub hop_time: Duration,
    /// The additional election timeout for each position in the ring.
    pub stagger: Duration,
    /// Limits on totals.
    pub limits: RecordLimits,
    /// Addresses at which other nodes may be found.
    pub seeds: Vec<String>,
}

impl RingSettings {
    /// Returns settings for an interval: a hop is tried four times within a quarter of it, within 0.1 s to 1 s.
    #[must_use]
    pub fn new(ageing: Ageing, limits: RecordLimits, seeds: Vec<String>) -> RingSettings {
        let hop_timeout = (ageing.interval / 16).clamp(Duration::from_millis(25), Duration::from_millis(250));
        RingSettings {
            ageing,
            hop_timeout,
            retries: 3,
            hop_time: Duration::from_millis(5),
            stagger: hop_timeout,
            limits,
            seeds,
        }
    }

    /// Returns the time until a member that does not acknowledge is skipped.
    pub(crate) fn skip_time(&self) -> Duration {
        self.hop_timeout.saturating_mul(self.retries + 1)
    }

    /// Returns the time after which a round is abandoned. It allows for a few members to be skipped.
    fn round_time(&self, members: usize) -> Duration {
        let hops = self.hop_time.saturating_mul(u32::try_from(members).unwrap_or(u32::MAX));
        self.ageing.interval + hops + 3 * self.skip_time()
    }
}

/// An event at a node.
#[derive(Clone, Debug)]
pub enum Input {
    /// A message was received from this address.
    Message {
        /// The address for replies.
        from: String,
        /// The message.
        message: Message,
    },
    /// A timer may have expired.
    Tick,
    /// The newest record of this node.
    LocalRecord(Record),
}

/// An action of a node.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all are messages, and none is kept")]
pub enum Output {
    /// Send a message.
    Send {
        /// The address of the receiver.
        to: String,
        /// The message.
        message: Message,
    },
    /// A round is complete: [`Ring::result`] and [`Ring::totals`] have changed.
    Completed,
}

/// The state machine of one member of the ring. See [the module](self).
///
/// ```
/// use std::{collections::BTreeMap, time::Duration};
/// use evenhand_protocol::exchange::ring::{Input, Output, Ring, RingSettings};
/// use evenhand_protocol::exchange::{Ageing, Fixed, RecordLimits, Record};
///
/// let one = Fixed::from_f64(1.0).ok_or("not a number")?;
/// let second = Duration::from_secs(1);
/// let settings = RingSettings::new(Ageing::new(second), RecordLimits::by_factor(one + one), vec!["first".into()]);
/// let mut ring: BTreeMap<String, Ring> = ["first", "second", "third"]
///     .map(|node| (node.to_owned(), Ring::new(settings.clone(), node, 1, node)))
///     .into();
/// for tick in 0..40 {
///     let now = tick * second / 4;
///     let mut post: Vec<(String, Input)> = Vec::new();
///     for node in ring.keys() {
///         let record = Record { node: node.clone(), sequence: tick.into(), supply: vec![one], ..Record::default() };
///         post.push((node.clone(), Input::LocalRecord(record)));
///         post.push((node.clone(), Input::Tick));
///     }
///     while let Some((to, input)) = post.pop() {
///         let Some(node) = ring.get_mut(&to) else { continue };
///         for output in node.step(now, input) {
///             if let Output::Send { to: next, message } = output {
///                 post.push((next, Input::Message { from: to.clone(), message }));
///             }
///         }
///     }
/// }
/// assert!(ring.values().all(|node| node.totals(10 * second).supply == [one + one + one]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Ring {
    settings: RingSettings,
    me: Member,
    own: Option<Record>,
    view: View,
    /// The newest round of the view in which this node took part.
    round: u64,
    /// When the last token of the view was received, or the view was adopted.
    last_activity: Duration,
    /// Members of this view that did not acknowledge.
    suspects: BTreeSet<String>,
    /// Former members, and since when.
    lost: BTreeMap<String, (Member, Duration)>,
    token: Option<InFlight>,
    election: Option<InFlight>,
    /// The state of a leader.
    lead: LeaderState,
    /// The smallest candidate whose election this node forwarded in this view, and when.
    candidate: Option<(String, Duration)>,
    elect_at: Duration,
    result: Option<(Arc<RoundSums>, Duration)>,
    isolated_since: Option<Duration>,
    rejected: u64,
}

/// The state of a leader. Other members have it too, since any of them may be elected.
#[derive(Clone, Debug, Default)]
struct LeaderState {
    /// When the current round was started.
    round_started: Option<Duration>,
    next_start: Duration,
    /// A round of this view is complete, so all members know the view.
    installed: bool,
    /// The members have changed, or a member has missed a change.
    changed: bool,
    /// The result that the next token distributes.
    distribute: Option<Arc<RoundSums>>,
    joins: BTreeMap<String, Member>,
    /// The highest epoch last_activity.
    epoch: u64,
    next_probe: Duration,
    probed: usize,
}

impl Ring {
    /// Creates a node that leads a view of itself alone and looks for others.
    ///
    /// `incarnation` must increase with each restart; `address` is where other nodes reach this one.
    #[must_use]
    pub fn new(settings: RingSettings, node: &str, incarnation: u64, address: &str) -> Ring {
        let me = Member { node: node.to_owned(), incarnation, address: address.to_owned() };
        let id = ViewId { epoch: 0, leader: node.to_owned(), incarnation };
        Ring {
            view: View::new(id, vec![me.clone()]),
            settings,
            me,
            own: None,
            round: 0,
            last_activity: Duration::ZERO,
            suspects: BTreeSet::new(),
            lost: BTreeMap::new(),
            token: None,
            election: None,
            lead: LeaderState::default(),
            candidate: None,
            elect_at: Duration::MAX,
            result: None,
            isolated_since: None,
            rejected: 0,
        }
    }

    /// Processes an event and returns the actions to take. `now` is a time on any monotonic clock.
    pub fn step(&mut self, now: Duration, input: Input) -> Vec<Output> {
        let mut out = Vec::new();
        match input {
            Input::LocalRecord(record) => self.own = Some(record),
            Input::Tick => self.tick(now, &mut out),
            Input::Message { from, message } => match message {
                Message::Token(token) => self.on_token(now, &from, token, &mut out),
                Message::Ack { view, of, from } => self.on_ack(&view, &of, &from),
                Message::Election { view, to, from, candidate, suspects } if to == self.me.node => {
                    self.on_election(now, &view, from, candidate, suspects, &mut out);
                }
                Message::Election { .. } => {}
                Message::Probe { view, leader } => self.on_probe(now, &view, leader, &mut out),
                Message::Hint { view, leader, from } => self.on_hint(now, view, leader, from, &mut out),
                Message::Join { view, members, hops } => self.on_join(&view, members, hops, &mut out),
            },
        }
        out
    }

    fn tick(&mut self, now: Duration, out: &mut Vec<Output>) {
        self.token_timer(now, out);
        self.election_timer(now, out);
        if self.leads() {
            self.round_timer(now, out);
            self.probe_timer(now, out);
        } else if now >= self.elect_at {
            self.elect(now, out);
        }
        self.update_isolation(now);
    }

    fn update_isolation(&mut self, now: Duration) {
        if self.view.members.len() > 1 {
            self.isolated_since = None;
        } else {
            self.isolated_since.get_or_insert(now);
        }
    }

    /// Returns when [`Input::Tick`] is due next. An earlier tick has no effect.
    #[must_use]
    pub fn next_tick(&self) -> Duration {
        let hops = [&self.token, &self.election].into_iter().flatten().map(|hop| hop.deadline).min();
        let own = if self.leads() {
            let round = match self.lead.round_started {
                Some(started) => started + self.settings.round_time(self.view.members.len()),
                None => self.lead.next_start,
            };
            round.min(self.lead.next_probe)
        } else {
            self.elect_at
        };
        hops.map_or(own, |hop| hop.min(own))
    }

    /// Returns the totals as this node knows them. Without a new result they age after the limit; finally they consist of this
    /// node's own record.
    #[must_use]
    pub fn totals(&self, now: Duration) -> Totals {
        let empty = Record { node: self.me.node.clone(), ..Record::default() };
        let own = self.own.as_ref().unwrap_or(&empty);
        let age = self.result.as_ref().map_or(Duration::MAX, |(_, at)| now.saturating_sub(*at));
        let state = self.settings.ageing.state(age);
        let none = RoundSums { digest: own.digest, ..RoundSums::default() };
        let sums = self.result.as_ref().map_or(&none, |(sums, _)| sums);
        let listed_age = if age == Duration::MAX { now } else { age };
        let mut totals = sums.totals(&self.view, own, listed_age, &state);
        for (name, (_, since)) in &self.lost {
            let status = NodeStatus { name: name.clone(), age: now.saturating_sub(*since), state: NodeState::Lost };
            totals.nodes.push(status);
        }
        totals.nodes.sort_by(|a, b| a.name.cmp(&b.name));
        totals.isolated_since = match &self.result {
            _ if self.isolated_since.is_some() => self.isolated_since,
            Some((_, at)) if state != NodeState::Fresh => Some(*at + self.settings.ageing.fresh_period()),
            Some(_) => None,
            None => Some(Duration::ZERO),
        };
        totals
    }

    /// Returns the last complete round that this node knows.
    #[must_use]
    pub fn result(&self) -> Option<&RoundSums> {
        self.result.as_ref().map(|(sums, _)| sums.as_ref())
    }

    /// Returns the view of this node.
    #[must_use]
    pub fn view(&self) -> &View {
        &self.view
    }

    /// Returns the number of results rejected because they exceeded the limits: some member is faulty.
    #[must_use]
    pub fn rejected_results(&self) -> u64 {
        self.rejected
    }

    /// Returns whether this node leads its view.
    #[must_use]
    pub fn leads(&self) -> bool {
        self.view.id.leader == self.me.node && self.view.id.incarnation == self.me.incarnation
    }

    fn accept_result(&mut self, now: Duration, sums: Arc<RoundSums>, out: &mut Vec<Output>) {
        if sums.check(&self.settings.limits).is_err() {
            self.rejected += 1;
            return;
        }
        self.result = Some((sums, now));
        out.push(Output::Completed);
    }

    /// Changes to another view.
    fn adopt(&mut self, now: Duration, view: View) {
        let before = std::mem::replace(&mut self.view, view);
        for member in before.members {
            if self.view.position(&member.node).is_none() {
                self.lost.insert(member.node.clone(), (member, now));
            }
        }
        self.lost.retain(|name, _| self.view.position(name).is_none());
        let listed_for = self.settings.ageing.interval.saturating_mul(self.settings.ageing.forget_intervals);
        self.lost.retain(|_, (_, since)| now.saturating_sub(*since) <= listed_for);
        self.round = 0;
        self.suspects.clear();
        self.token = None;
        self.election = None;
        self.candidate = None;
        let joins = std::mem::take(&mut self.lead.joins);
        self.lead =
            LeaderState { epoch: self.lead.epoch.max(self.view.id.epoch), next_probe: now, ..LeaderState::default() };
        // Nodes that requested admission know its view.
        if self.leads() {
            self.lead.joins = joins;
        }
        self.update_isolation(now);
        self.note_activity(now);
    }

    /// Records that the view is active.
    fn note_activity(&mut self, now: Duration) {
        self.last_activity = now;
        self.postpone_election(now);
    }

    fn postpone_election(&mut self, now: Duration) {
        let rank = self.view.position(&self.me.node).unwrap_or(0);
        let stagger = self.settings.stagger.saturating_mul(u32::try_from(rank).unwrap_or(u32::MAX));
        self.elect_at = now + 2 * self.settings.round_time(self.view.members.len()) + stagger;
    }
}
