//! The ring of paper 003 (section IV.D), corrected: a message goes around, to which each node adds its sums.
//!
//! There is a **view**: an epoch, a leader, and the members in the order of their names. In each interval the leader
//! starts a round: a **token** goes from member to member and back. It *collects* the sums of this round and
//! *distributes* what the round before has found, so that each node gets one message and sends one an interval,
//! of a size that depends on the users and not on the nodes. Every member finds the same totals to the
//! last bit.
//!
//! Failures. A member **acknowledges** a token; one that does not, after retries, is skipped and written into the token as missing,
//! and the leader installs the next epoch without it. A token that does not come back is given up: the next round starts anew.
//! Each copy of a token visits positions of the ring in ascending order, and each member takes one copy of a round:
//! nobody is in a result twice, whatever is lost, doubled or delayed. If no token comes for long, members **elect** a
//! leader (staggered timers, then Chang and Roberts). Leaders **probe** who is not in their view; where two views
//! meet, that of the higher epoch (then of the lesser leader) takes in the members of the other.
//!
//! Nobody waits for a round: [`Ring::totals`] answers with the last result, aged if it is old.

mod election;
mod hop;
mod membership;
mod message;
mod round;
mod sums;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

pub use message::{Message, Of, Token};
pub use sums::Sums;
pub use view::{Member, View, ViewId};

use crate::exchange::{Ageing, Limits, NodeState, NodeStatus, Record, Totals};
use hop::Hop;

/// How long the ring waits for what.
#[derive(Clone, Debug)]
pub struct RingSettings {
    /// How often a round starts, and what becomes of an old result.
    pub ageing: Ageing,
    /// After how long without an acknowledgement a message is sent again.
    pub hop_timeout: Duration,
    /// How often it is sent again before its receiver is skipped.
    pub retries: u32,
    /// How long a token may take for one hop, when all is well: a round of n nodes is given up when it has taken
    /// n times this, and the slack.
    pub hop_time: Duration,
    /// By how much later each next member in rank begins an election.
    pub stagger: Duration,
    /// What totals may be.
    pub limits: Limits,
    /// Where other nodes may be found.
    pub seeds: Vec<String>,
}

impl RingSettings {
    /// For an interval: a hop is tried four times within a quarter of it; at least a tenth of a second, and at most one.
    #[must_use]
    pub fn new(ageing: Ageing, limits: Limits, seeds: Vec<String>) -> RingSettings {
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

    /// How long a member is tried before it is skipped.
    pub(crate) fn skip_time(&self) -> Duration {
        self.hop_timeout.saturating_mul(self.retries + 1)
    }

    /// When a round of so many is given up. Some members may have to be skipped on the way.
    fn round_time(&self, members: usize) -> Duration {
        let hops = self.hop_time.saturating_mul(u32::try_from(members).unwrap_or(u32::MAX));
        self.ageing.interval + hops + 3 * self.skip_time()
    }
}

/// What happens to a node.
#[derive(Clone, Debug)]
pub enum Input {
    /// A message has come from this address.
    Message {
        /// Where answers go.
        from: String,
        /// It.
        message: Message,
    },
    /// Time has passed.
    Tick,
    /// The node's own newest record.
    Own(Record),
}

/// What a node does.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all are messages, and none is kept")]
pub enum Output {
    /// Send this.
    Send {
        /// To this address.
        to: String,
        /// It.
        message: Message,
    },
    /// A round is complete: [`Ring::result`] and [`Ring::totals`] are new.
    Completed,
}

/// A member of the ring. See [the module](self).
///
/// ```
/// use std::{collections::BTreeMap, time::Duration};
/// use evenhand_protocol::exchange::ring::{Input, Output, Ring, RingSettings};
/// use evenhand_protocol::exchange::{Ageing, Fixed, Limits, Record};
///
/// let one = Fixed::from_f64(1.0).ok_or("not a number")?;
/// let second = Duration::from_secs(1);
/// let settings = RingSettings::new(Ageing::new(second), Limits::by_factor(one + one), vec!["first".into()]);
/// let mut ring: BTreeMap<String, Ring> = ["first", "second", "third"]
///     .map(|node| (node.to_owned(), Ring::new(settings.clone(), node, 1, node)))
///     .into();
/// for tick in 0..40 {
///     let now = tick * second / 4;
///     let mut post: Vec<(String, Input)> = Vec::new();
///     for node in ring.keys() {
///         let record = Record { node: node.clone(), sequence: tick.into(), supply: vec![one], ..Record::default() };
///         post.push((node.clone(), Input::Own(record)));
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
    /// When the last token of the view came, or the view.
    seen: Duration,
    /// Who did not answer, in this view.
    suspects: BTreeSet<String>,
    /// Who was in a view and is not, and since when.
    lost: BTreeMap<String, (Member, Duration)>,
    token: Option<Hop>,
    election: Option<Hop>,
    /// As a leader.
    lead: Lead,
    /// The least name for which this node has passed on an election in this view, and when.
    candidate: Option<(String, Duration)>,
    elect_at: Duration,
    result: Option<(Arc<Sums>, Duration)>,
    alone_since: Option<Duration>,
    refused: u64,
}

/// What a leader keeps. It is of no use to others, but any member may become one.
#[derive(Clone, Debug, Default)]
struct Lead {
    /// When the round that is on its way started.
    under_way: Option<Duration>,
    next_start: Duration,
    /// A round of this view came back: all members know them.
    installed: bool,
    /// The members have changed, or somebody missed that they have.
    changed: bool,
    /// What is still to be distributed.
    distribute: Option<Arc<Sums>>,
    joins: BTreeMap<String, Member>,
    /// The highest epoch heard of.
    epoch: u64,
    next_probe: Duration,
    probed: usize,
}

impl Ring {
    /// A node by itself: it leads a view of one, and looks for others.
    ///
    /// `incarnation` must be larger after each restart, and `address` be where others reach it.
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
            seen: Duration::ZERO,
            suspects: BTreeSet::new(),
            lost: BTreeMap::new(),
            token: None,
            election: None,
            lead: Lead::default(),
            candidate: None,
            elect_at: Duration::MAX,
            result: None,
            alone_since: None,
            refused: 0,
        }
    }

    /// Takes what happens, and answers what is to be done. `now` is of any clock that does not go backwards.
    pub fn step(&mut self, now: Duration, input: Input) -> Vec<Output> {
        let mut out = Vec::new();
        match input {
            Input::Own(record) => self.own = Some(record),
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
        self.look_around(now);
    }

    fn look_around(&mut self, now: Duration) {
        if self.view.members.len() > 1 {
            self.alone_since = None;
        } else {
            self.alone_since.get_or_insert(now);
        }
    }

    /// When [`Input::Tick`] is due next; before that it does nothing.
    #[must_use]
    pub fn next_tick(&self) -> Duration {
        let hops = [&self.token, &self.election].into_iter().flatten().map(|hop| hop.deadline).min();
        let own = if self.leads() {
            let round = match self.lead.under_way {
                Some(started) => started + self.settings.round_time(self.view.members.len()),
                None => self.lead.next_start,
            };
            round.min(self.lead.next_probe)
        } else {
            self.elect_at
        };
        hops.map_or(own, |hop| hop.min(own))
    }

    /// The totals as this node knows them now. After the limit without a new result they age, and
    /// after that it has only its own record.
    #[must_use]
    pub fn totals(&self, now: Duration) -> Totals {
        let nobody = Record { node: self.me.node.clone(), ..Record::default() };
        let own = self.own.as_ref().unwrap_or(&nobody);
        let age = self.result.as_ref().map_or(Duration::MAX, |(_, at)| now.saturating_sub(*at));
        let state = self.settings.ageing.state(age);
        let none = Sums { digest: own.digest, ..Sums::default() };
        let sums = self.result.as_ref().map_or(&none, |(sums, _)| sums);
        let shown_age = if age == Duration::MAX { now } else { age };
        let mut totals = sums.totals(&self.view, own, shown_age, &state);
        for (name, (_, since)) in &self.lost {
            let status = NodeStatus { name: name.clone(), age: now.saturating_sub(*since), state: NodeState::Lost };
            totals.nodes.push(status);
        }
        totals.nodes.sort_by(|a, b| a.name.cmp(&b.name));
        totals.alone_since = match &self.result {
            _ if self.alone_since.is_some() => self.alone_since,
            Some((_, at)) if state != NodeState::Fresh => Some(*at + self.settings.ageing.fresh()),
            Some(_) => None,
            None => Some(Duration::ZERO),
        };
        totals
    }

    /// The last complete round that this node knows of.
    #[must_use]
    pub fn result(&self) -> Option<&Sums> {
        self.result.as_ref().map(|(sums, _)| sums.as_ref())
    }

    /// The view that this node is in.
    #[must_use]
    pub fn view(&self) -> &View {
        &self.view
    }

    /// How many results were out of bounds: somebody in the ring lies.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Whether this node leads its view.
    #[must_use]
    pub fn leads(&self) -> bool {
        self.view.id.leader == self.me.node && self.view.id.incarnation == self.me.incarnation
    }

    fn take_result(&mut self, now: Duration, sums: Arc<Sums>, out: &mut Vec<Output>) {
        if sums.check(&self.settings.limits).is_err() {
            self.refused += 1;
            return;
        }
        self.result = Some((sums, now));
        out.push(Output::Completed);
    }

    /// Goes over into another view.
    fn adopt(&mut self, now: Duration, view: View) {
        let before = std::mem::replace(&mut self.view, view);
        for member in before.members {
            if self.view.position(&member.node).is_none() {
                self.lost.insert(member.node.clone(), (member, now));
            }
        }
        self.lost.retain(|name, _| self.view.position(name).is_none());
        let shown = self.settings.ageing.interval.saturating_mul(self.settings.ageing.shown);
        self.lost.retain(|_, (_, since)| now.saturating_sub(*since) <= shown);
        self.round = 0;
        self.suspects.clear();
        self.token = None;
        self.election = None;
        self.candidate = None;
        let joins = std::mem::take(&mut self.lead.joins);
        self.lead = Lead { epoch: self.lead.epoch.max(self.view.id.epoch), next_probe: now, ..Lead::default() };
        // Who asked this node to be taken in asked its view.
        if self.leads() {
            self.lead.joins = joins;
        }
        self.look_around(now);
        self.heard(now);
    }

    /// A sign that the view lives.
    fn heard(&mut self, now: Duration) {
        self.seen = now;
        self.postpone_election(now);
    }

    fn postpone_election(&mut self, now: Duration) {
        let rank = self.view.position(&self.me.node).unwrap_or(0);
        let stagger = self.settings.stagger.saturating_mul(u32::try_from(rank).unwrap_or(u32::MAX));
        self.elect_at = now + 2 * self.settings.round_time(self.view.members.len()) + stagger;
    }
}
