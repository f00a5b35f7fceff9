//! Discovers nodes outside the view: at the start, after a restart, after a partition.

use std::time::Duration;

use super::{Member, Message, Output, Ring, ViewId};
use crate::exchange::MAX_NODES;

/// The limit on forwarding a join request, since two nodes may briefly take each other for the leader.
const MAX_JOIN_HOPS: u8 = 3;

impl Ring {
    /// As the leader, probes one known node outside the view in each interval.
    pub(super) fn probe_timer(&mut self, now: Duration, out: &mut Vec<Output>) {
        if now < self.lead.next_probe {
            return;
        }
        self.lead.next_probe = now + self.settings.ageing.interval;
        let inside = |address: &String| self.view.members.iter().any(|member| member.address == *address);
        let lost = self.lost.values().map(|(member, _)| &member.address);
        let outside: Vec<&String> = lost.chain(&self.settings.seeds).filter(|address| !inside(address)).collect();
        if let Some(address) = outside.get(self.lead.probed % outside.len().max(1)) {
            let message = Message::Probe { view: self.view.id.clone(), leader: self.me.clone() };
            out.push(Output::Send { to: (*address).clone(), message });
            self.lead.probed += 1;
        }
    }

    /// Informs a node of this node's view.
    pub(super) fn hint(&self, to: &str, out: &mut Vec<Output>) {
        if let Some(leader) = self.view.leader() {
            let (view, leader) = (self.view.id.clone(), leader.clone());
            let message = Message::Hint { view, leader, from: self.me.clone() };
            out.push(Output::Send { to: to.to_owned(), message });
        }
    }

    pub(super) fn on_probe(&mut self, now: Duration, view: &ViewId, leader: Member, out: &mut Vec<Output>) {
        if *view == self.view.id || leader.node == self.me.node {
            return;
        }
        if view.supersedes(&self.view.id) && (self.leads() || self.is_overdue(now)) {
            self.join(&leader, out);
        } else {
            self.hint(&leader.address, out);
        }
    }

    pub(super) fn on_hint(&mut self, now: Duration, view: ViewId, leader: Member, from: Member, out: &mut Vec<Output>) {
        if view == self.view.id || from.node == self.me.node {
            return;
        }
        if leader.node == self.me.node {
            // The sender follows this node in a view that this node has left, or that its previous incarnation created.
            self.admit(&view, vec![from]);
        } else if !view.supersedes(&self.view.id) {
            self.hint(&leader.address, out);
        } else if self.leads() || self.is_overdue(now) {
            self.join(&leader, out);
        } else if let Some(mine) = self.view.leader() {
            let to = mine.address.clone();
            out.push(Output::Send { to, message: Message::Hint { view, leader, from } });
        }
    }

    /// Requests admission: a leader for all its members, another node for itself.
    fn join(&self, leader: &Member, out: &mut Vec<Output>) {
        let members = if self.leads() { self.view.members.clone() } else { vec![self.me.clone()] };
        let message = Message::Join { view: self.view.id.clone(), members, hops: 0 };
        out.push(Output::Send { to: leader.address.clone(), message });
    }

    pub(super) fn on_join(&mut self, view: &ViewId, members: Vec<Member>, hops: u8, out: &mut Vec<Output>) {
        if self.leads() {
            self.admit(view, members);
        } else if hops < MAX_JOIN_HOPS
            && let Some(leader) = self.view.leader()
        {
            let message = Message::Join { view: view.clone(), members, hops: hops + 1 };
            out.push(Output::Send { to: leader.address.clone(), message });
        }
    }

    /// Registers nodes to be admitted in the next epoch.
    fn admit(&mut self, view: &ViewId, members: Vec<Member>) {
        if !self.leads() {
            return;
        }
        self.lead.epoch = self.lead.epoch.max(view.epoch);
        for member in members {
            if member.node == self.me.node {
                continue;
            }
            match self.view.member(&member.node) {
                Some(known) if known.incarnation > member.incarnation => continue,
                // It does not know yet that it is a member; until a round is complete every token lists the members.
                Some(known) if *known == member && !self.lead.installed => continue,
                _ => {}
            }
            let fits = self.view.members.len() + self.lead.joins.len() < MAX_NODES;
            let newer = self.lead.joins.get(&member.node).is_none_or(|known| known.incarnation <= member.incarnation);
            if fits && newer {
                self.suspects.remove(&member.node);
                self.lead.joins.insert(member.node.clone(), member);
            }
        }
    }

    /// Returns whether no token has arrived for longer than a round may take.
    fn is_overdue(&self, now: Duration) -> bool {
        now.saturating_sub(self.last_activity) > self.settings.round_time(self.view.members.len())
    }
}
