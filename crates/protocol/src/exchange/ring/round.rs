//! Rounds: the token collects one and distributes the one before.

use std::sync::Arc;
use std::time::Duration;

use super::{Member, Message, Of, Output, Ring, Sums, Token, View, ViewId};

impl Ring {
    /// As a leader: starts a round when it is due, gives one up that does not come back.
    pub(super) fn round_timer(&mut self, now: Duration, out: &mut Vec<Output>) {
        match self.lead.under_way {
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
        self.lead.under_way = Some(now);
        self.lead.next_start = now + self.settings.ageing.interval;
        let digest = self.own.as_ref().map_or(0, |own| own.digest);
        let mut collect = Sums { view: self.view.id.clone(), round: self.round, digest, ..Sums::default() };
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

    /// As a leader: the next epoch, without who did not answer, with who wants to come in.
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

    /// As a leader: a round is back.
    pub(super) fn returned(&mut self, now: Duration, sums: Sums, out: &mut Vec<Output>) {
        self.lead.under_way = None;
        self.lead.installed = true;
        // Whoever was skipped, here or by others, is out in the next epoch. Without it for one round costs it
        // less than a try at it in every round costs all.
        for name in &sums.missing {
            self.suspects.insert(name.clone());
        }
        self.suspects.remove(&self.me.node);
        self.lead.changed |= !self.suspects.is_empty();
        let sums = Arc::new(sums);
        self.lead.distribute = Some(Arc::clone(&sums));
        self.take_result(now, sums, out);
    }

    pub(super) fn on_token(&mut self, now: Duration, from: &str, token: Token, out: &mut Vec<Output>) {
        if token.to != self.me.node {
            return;
        }
        if token.view != self.view.id {
            if !token.view.supersedes(&self.view.id) {
                return;
            }
            // Without the members there is nobody to pass it on to; whoever sent it goes on without this
            // node, which is found again by a probe.
            let Some(members) = &token.members else { return };
            let view = View::new(token.view.clone(), members.as_ref().clone());
            if view.member(&self.me.node).is_none_or(|me| me.incarnation != self.me.incarnation) {
                return;
            }
            self.adopt(now, view);
        }
        let of = Of::Token(token.round);
        let ack = Message::Ack { view: token.view.clone(), of, from: self.me.node.clone() };
        out.push(Output::Send { to: from.to_owned(), message: ack });
        if self.leads() {
            if self.lead.under_way.is_some() && token.round == self.round {
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
        // It started this round.
        self.suspects.remove(&self.view.id.leader);
        self.heard(now);
        let mut token = token;
        if let Some(found) = &token.distribute {
            self.take_result(now, Arc::clone(found), out);
        }
        token.collect.contribute(&self.me.node, self.own.as_ref());
        self.forward(now, Message::Token(token), out);
    }
}
