//! A leader that does not answer is replaced: Chang and Roberts' election, around the ring that is left.

use std::time::Duration;

use super::{Member, Message, Of, Output, Ring, ViewId};

impl Ring {
    /// Begins one, for this node.
    pub(super) fn elect(&mut self, now: Duration, out: &mut Vec<Output>) {
        // Should it get lost: another time.
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
            // Its sender has missed that there is another view.
            if self.view.id.supersedes(view) {
                self.hint(&from.address, out);
            }
            return;
        }
        let of = Of::Election(candidate.clone());
        let ack = Message::Ack { view: view.clone(), of, from: self.me.node.clone() };
        out.push(Output::Send { to: from.address.clone(), message: ack });
        // A leader that lives needs no other: its next token ends the election.
        if self.leads() {
            return;
        }
        self.suspects.extend(suspects.iter().cloned());
        // Whoever is spoken of as living is tried again, or the election would pass by its own candidate.
        for name in [&self.me.node, &from.node, &candidate] {
            self.suspects.remove(name);
        }
        // An election may have ended with its candidate: what was passed on long ago does not count.
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

    /// This node leads from now on, without all who did not answer.
    pub(super) fn win(&mut self, now: Duration, out: &mut Vec<Output>) {
        self.election = None;
        self.lead.changed = true;
        self.start_round(now, out);
    }
}
