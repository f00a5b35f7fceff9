//! Replaces a failed leader: the election of Chang and Roberts (1979) around the remaining ring.

use std::time::Duration;

use super::{Acknowledged, Member, Message, Output, Ring, ViewId};

impl Ring {
    /// Starts an election with this node as the candidate.
    pub(super) fn elect(&mut self, now: Duration, out: &mut Vec<Output>) {
        // In case the election is lost, another one starts later.
        self.postpone_election(now);
        self.token = None;
        self.candidate = Some((self.me.node.clone(), now));
        self.suspects.insert(self.view.id.leader.clone());
        self.suspects.remove(&self.me.node);
        self.pass_on(now, self.me.node.clone(), Vec::new(), out);
    }

    pub(super) fn on_election(
        &mut self,
        now: Duration,
        view: &ViewId,
        from: Member,
        candidate: String,
        suspects: Vec<String>,
        out: &mut Vec<Output>,
    ) {
        if *view != self.view.id {
            // The sender does not know the newer view yet.
            if self.view.id.supersedes(view) {
                self.hint(&from.address, out);
            }
            return;
        }
        let of = Acknowledged::Election(candidate.clone());
        let ack = Message::Ack { view: view.clone(), of, from: self.me.node.clone() };
        out.push(Output::Send { to: from.address.clone(), message: ack });
        // A live leader ends the election with its next token.
        if self.leads() {
            return;
        }
        self.suspects.extend(suspects.iter().cloned());
        // These nodes are evidently alive. If they stayed suspected, the election would skip its own candidate.
        for name in [&self.me.node, &from.node, &candidate] {
            self.suspects.remove(name);
        }
        // The candidate may have failed since, so an old election is ignored.
        let valid = self.settings.round_time(self.view.members.len());
        self.candidate.take_if(|(_, at)| now.saturating_sub(*at) > valid);
        let best = if candidate < self.me.node { candidate.clone() } else { self.me.node.clone() };
        if candidate == self.me.node {
            self.win(now, out);
        } else if self.candidate.as_ref().is_none_or(|(before, _)| best < *before) {
            self.candidate = Some((best.clone(), now));
            self.pass_on(now, best, suspects, out);
        }
        self.postpone_election(now);
    }

    fn pass_on(&mut self, now: Duration, candidate: String, suspects: Vec<String>, out: &mut Vec<Output>) {
        let view = self.view.id.clone();
        let from = self.me.clone();
        let message = Message::Election { view, to: String::new(), from, candidate, suspects };
        self.forward(now, message, out);
    }

    /// Makes this node the leader, without the members that did not acknowledge.
    pub(super) fn win(&mut self, now: Duration, out: &mut Vec<Output>) {
        self.election = None;
        self.lead.changed = true;
        self.start_round(now, out);
    }
}
