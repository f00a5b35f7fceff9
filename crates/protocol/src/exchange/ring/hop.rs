//! One message to the next member that answers.

use std::time::Duration;

use super::{Message, Of, Output, Ring, ViewId};

/// A message on its way to the next member.
#[derive(Clone, Debug)]
pub(super) struct Hop {
    message: Message,
    target: String,
    tries: u32,
    pub(super) deadline: Duration,
}

/// Who comes next.
pub(super) enum Next {
    /// A member that is not suspected.
    Member(String),
    /// Nobody before oneself.
    Oneself,
    /// The leader, who is suspected, and past whom a token cannot go.
    LostLeader,
}

impl Ring {
    /// Who comes after this node. A token ends at the leader, an election goes all around.
    fn next(&self, past_leader: bool) -> Next {
        let Some(position) = self.view.position(&self.me.node) else { return Next::Oneself };
        for member in self.view.after(position) {
            if !self.suspects.contains(&member.node) {
                return Next::Member(member.node.clone());
            }
            if !past_leader && member.node == self.view.id.leader {
                return Next::LostLeader;
            }
        }
        Next::Oneself
    }

    /// Who is skipped between this node and the next.
    fn skipped(&self, next: &str) -> Vec<String> {
        let position = self.view.position(&self.me.node).unwrap_or(0);
        self.view.after(position).map(|member| member.node.clone()).take_while(|name| name != next).collect()
    }

    /// Sends to the next that is not suspected.
    pub(super) fn forward(&mut self, now: Duration, message: Message, out: &mut Vec<Output>) {
        let past_leader = matches!(message, Message::Election { .. });
        match self.next(past_leader) {
            Next::Member(target) => {
                let skipped = self.skipped(&target);
                let message = addressed(message, &target, skipped);
                let deadline = now + self.settings.hop_timeout;
                self.send(&target, message.clone(), out);
                let hop = Some(Hop { message, target, tries: 1, deadline });
                if past_leader {
                    self.election = hop;
                } else {
                    self.token = hop;
                }
            }
            Next::Oneself => match message {
                Message::Token(mut token) => {
                    let missing = self.skipped(&self.me.node);
                    note(&mut token.collect.missing, missing);
                    self.returned(now, token.collect, out);
                }
                Message::Election { .. } => self.win(now, out),
                _ => {}
            },
            Next::LostLeader => self.elect(now, out),
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

    /// Sends again what is overdue, or skips who does not answer. Answers what is still on its way in
    /// the same place.
    fn retry(&mut self, now: Duration, mut hop: Hop, out: &mut Vec<Output>) -> Option<Hop> {
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

    pub(super) fn on_ack(&mut self, view: &ViewId, of: &Of, from: &str) {
        if *view != self.view.id {
            return;
        }
        // An acknowledgement may come after its sender was given up: it lives all the same, and the message
        // need go to nobody else.
        let matches = |hop: &Hop| match (&hop.message, of) {
            (Message::Token(token), Of::Token(round)) => token.round == *round,
            (Message::Election { candidate, .. }, Of::Election(acked)) => candidate == acked,
            _ => false,
        };
        let slot = if matches!(of, Of::Token(_)) { &mut self.token } else { &mut self.election };
        if slot.as_ref().is_some_and(matches) {
            *slot = None;
        }
        self.suspects.remove(from);
    }
}

/// Says for whom a message is, and who was skipped.
fn addressed(message: Message, target: &str, skipped: Vec<String>) -> Message {
    match message {
        Message::Token(mut token) => {
            token.to = target.to_owned();
            note(&mut token.collect.missing, skipped);
            Message::Token(token)
        }
        Message::Election { view, from, candidate, mut suspects, .. } => {
            note(&mut suspects, skipped);
            Message::Election { view, to: target.to_owned(), from, candidate, suspects }
        }
        other => other,
    }
}

fn note(list: &mut Vec<String>, names: Vec<String>) {
    for name in names {
        if !list.contains(&name) {
            list.push(name);
        }
    }
}
