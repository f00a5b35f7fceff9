//! Rounds: a token collects the sums of one round and distributes the result of the previous one.

use std::sync::Arc;
use std::time::Duration;

use super::{Acknowledged, Member, Message, Output, Ring, RoundSums, Token, View, ViewId};

impl Ring {
    /// As the leader, starts a round when it is due, and abandons one whose token does not come back.
    pub(super) fn round_timer(&mut self, now: Duration, out: &mut Vec<Output>) {
        match self.lead.round_started {
            Some(started) if now < started + self.settings.round_time(self.view.members.len()) => {}
            None if now < self.lead.next_start => {}
            _ => self.start_round(now, out),
        }
    }

    pub(super) fn start_round(&mut self, now: Duration, out: &mut Vec<Output>) {
        if self.lead.changed || !self.lead.joins.is_empty() {
            self.install(now);
        }
        self.round += 1;
        self.token = None;
        self.lead.round_started = Some(now);
        self.lead.next_start = now + self.settings.ageing.interval;
        let digest = self.own.as_ref().map_or(0, |own| own.digest);
        let mut collect = RoundSums { view: self.view.id.clone(), round: self.round, digest, ..RoundSums::default() };
        collect.contribute(&self.me.node, self.own.as_ref());
        let token = Token {
            view: self.view.id.clone(),
            round: self.round,
            to: String::new(),
            members: (!self.lead.installed).then(|| Arc::new(self.view.members.clone())),
            collect,
            distribute: self.lead.distribute.take(),
        };
        self.forward(now, Message::Token(token), out);
    }

    /// As the leader, installs the next epoch: without suspected members, with nodes that requested admission.
    fn install(&mut self, now: Duration) {
        let joins = std::mem::take(&mut self.lead.joins);
        let stays = |member: &&Member| !self.suspects.contains(&member.node) && !joins.contains_key(&member.node);
        let mut members: Vec<Member> = self.view.members.iter().filter(stays).cloned().collect();
        members.extend(joins.into_values());
        let distribute = self.lead.distribute.take();
        let epoch = self.lead.epoch.max(self.view.id.epoch).saturating_add(1);
        let id = ViewId { epoch, leader: self.me.node.clone(), incarnation: self.me.incarnation };
        self.adopt(now, View::new(id, members));
        self.lead.distribute = distribute;
        if self.view.members.len() == 1 {
            self.lead.installed = true;
        }
    }

    /// As the leader, completes a round whose token came back.
    pub(super) fn returned(&mut self, now: Duration, sums: RoundSums, out: &mut Vec<Output>) {
        self.lead.round_started = None;
        self.lead.installed = true;
        // Skipped members are not in the next epoch. One round without a member that is alive costs less than retries in
        // every round.
        for name in &sums.missing {
            self.suspects.insert(name.clone());
        }
        self.suspects.remove(&self.me.node);
        self.lead.changed |= !self.suspects.is_empty();
        let sums = Arc::new(sums);
        self.lead.distribute = Some(Arc::clone(&sums));
        self.accept_result(now, sums, out);
    }

    pub(super) fn on_token(&mut self, now: Duration, from: &str, token: Token, out: &mut Vec<Output>) {
        if token.to != self.me.node {
            return;
        }
        if token.view != self.view.id {
            if !token.view.supersedes(&self.view.id) {
                return;
            }
            // Without the list of members the token cannot be forwarded. The sender skips this node, which a probe finds again.
            let Some(members) = &token.members else { return };
            let view = View::new(token.view.clone(), members.as_ref().clone());
            if view.member(&self.me.node).is_none_or(|me| me.incarnation != self.me.incarnation) {
                return;
            }
            self.adopt(now, view);
        }
        let of = Acknowledged::Token(token.round);
        let ack = Message::Ack { view: token.view.clone(), of, from: self.me.node.clone() };
        out.push(Output::Send { to: from.to_owned(), message: ack });
        if self.leads() {
            if self.lead.round_started.is_some() && token.round == self.round {
                self.token = None;
                self.returned(now, token.collect, out);
            }
            return;
        }
        if token.round <= self.round {
            return;
        }
        self.round = token.round;
        self.token = None;
        self.election = None;
        self.candidate = None;
        // The leader started this round, so it is alive.
        self.suspects.remove(&self.view.id.leader);
        self.note_activity(now);
        let mut token = token;
        if let Some(found) = &token.distribute {
            self.accept_result(now, Arc::clone(found), out);
        }
        token.collect.contribute(&self.me.node, self.own.as_ref());
        self.forward(now, Message::Token(token), out);
    }
}
