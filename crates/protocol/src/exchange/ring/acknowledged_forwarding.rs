//! Forwards a message to the next member that acknowledges it.

use std::time::Duration;

use super::{Acknowledged, Message, Output, Ring, ViewId};

/// A message that is not yet acknowledged.
#[derive(Clone, Debug)]
pub(super) struct InFlight {
    message: Message,
    target: String,
    tries: u32,
    pub(super) deadline: Duration,
}

/// The next hop from this node.
pub(super) enum NextHop {
    /// A member that is not suspected.
    Member(String),
    /// All other members are suspected.
    ThisNode,
    /// The leader is suspected, and a token must not pass it.
    SuspectedLeader,
}

impl Ring {
    /// Returns the next hop. A token ends at the leader, an election passes around the whole ring.
    fn next(&self, past_leader: bool) -> NextHop {
        let Some(position) = self.view.position(&self.me.node) else { return NextHop::ThisNode };
        for member in self.view.after(position) {
            if !self.suspects.contains(&member.node) {
                return NextHop::Member(member.node.clone());
            }
            if !past_leader && member.node == self.view.id.leader {
                return NextHop::SuspectedLeader;
            }
        }
        NextHop::ThisNode
    }

    /// Returns the members between this node and `next`.
    fn skipped(&self, next: &str) -> Vec<String> {
        let position = self.view.position(&self.me.node).unwrap_or(0);
        self.view.after(position).map(|member| member.node.clone()).take_while(|name| name != next).collect()
    }

    /// Sends a message to the next member that is not suspected.
    pub(super) fn forward(&mut self, now: Duration, message: Message, out: &mut Vec<Output>) {
        let past_leader = matches!(message, Message::Election { .. });
        match self.next(past_leader) {
            NextHop::Member(target) => {
                let skipped = self.skipped(&target);
                let message = addressed(message, &target, skipped);
                let deadline = now + self.settings.hop_timeout;
                self.send(&target, message.clone(), out);
                let hop = Some(InFlight { message, target, tries: 1, deadline });
                if past_leader {
                    self.election = hop;
                } else {
                    self.token = hop;
                }
            }
            NextHop::ThisNode => match message {
                Message::Token(mut token) => {
                    let missing = self.skipped(&self.me.node);
                    add_names(&mut token.collect.missing, missing);
                    self.returned(now, token.collect, out);
                }
                Message::Election { .. } => self.win(now, out),
                _ => {}
            },
            NextHop::SuspectedLeader => self.elect(now, out),
        }
    }

    fn send(&self, node: &str, message: Message, out: &mut Vec<Output>) {
        if let Some(member) = self.view.member(node) {
            out.push(Output::Send { to: member.address.clone(), message });
        }
    }

    pub(super) fn token_timer(&mut self, now: Duration, out: &mut Vec<Output>) {
        if let Some(hop) = self.token.take() {
            self.token = self.retry(now, hop, out);
        }
    }

    pub(super) fn election_timer(&mut self, now: Duration, out: &mut Vec<Output>) {
        if let Some(hop) = self.election.take() {
            self.election = self.retry(now, hop, out);
        }
    }

    /// Retransmits a message whose deadline has passed, or skips the member after the last retry. Returns the message that is
    /// still unacknowledged.
    fn retry(&mut self, now: Duration, mut hop: InFlight, out: &mut Vec<Output>) -> Option<InFlight> {
        if now < hop.deadline {
            return Some(hop);
        }
        if hop.tries <= self.settings.retries {
            hop.tries += 1;
            hop.deadline = now + self.settings.hop_timeout;
            self.send(&hop.target, hop.message.clone(), out);
            return Some(hop);
        }
        self.suspects.insert(hop.target);
        let is_token = matches!(hop.message, Message::Token(_));
        self.forward(now, hop.message, out);
        if is_token { self.token.take() } else { self.election.take() }
    }

    pub(super) fn on_ack(&mut self, view: &ViewId, of: &Acknowledged, from: &str) {
        if *view != self.view.id {
            return;
        }
        // The acknowledgement may arrive after its sender was suspected: the sender is alive, and the message need not be
        // forwarded past it.
        let matches = |hop: &InFlight| match (&hop.message, of) {
            (Message::Token(token), Acknowledged::Token(round)) => token.round == *round,
            (Message::Election { candidate, .. }, Acknowledged::Election(acked)) => candidate == acked,
            _ => false,
        };
        let slot = if matches!(of, Acknowledged::Token(_)) { &mut self.token } else { &mut self.election };
        if slot.as_ref().is_some_and(matches) {
            *slot = None;
        }
        self.suspects.remove(from);
    }
}

/// Sets the receiver of a message and adds the skipped members.
fn addressed(message: Message, target: &str, skipped: Vec<String>) -> Message {
    match message {
        Message::Token(mut token) => {
            token.to = target.to_owned();
            add_names(&mut token.collect.missing, skipped);
            Message::Token(token)
        }
        Message::Election { view, from, candidate, mut suspects, .. } => {
            add_names(&mut suspects, skipped);
            Message::Election { view, to: target.to_owned(), from, candidate, suspects }
        }
        other => other,
    }
}

fn add_names(list: &mut Vec<String>, names: Vec<String>) {
    for name in names {
        if !list.contains(&name) {
            list.push(name);
        }
    }
}
