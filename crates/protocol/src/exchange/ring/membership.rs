//! How nodes find each other: at the start, after a restart, after a partition.

use std::time::Duration;

use super::{Member, Message, Output, Ring, ViewId};
use crate::exchange::MOST_NODES;

/// Two nodes may take each other for the leader for a moment.
const MOST_HOPS: u8 = 3;

impl Ring {
    /// As a leader: looks for one node an interval of those that are not in the view, if there are any.
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

    /// Tells of the view that this node is in.
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
            // It follows this node, in a view that this node has left or that its former life made.
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

    /// Asks to be taken in: a leader with all its members, another for itself.
    fn join(&self, leader: &Member, out: &mut Vec<Output>) {
        let members = if self.leads() { self.view.members.clone() } else { vec![self.me.clone()] };
        let message = Message::Join { view: self.view.id.clone(), members, hops: 0 };
        out.push(Output::Send { to: leader.address.clone(), message });
    }

    pub(super) fn on_join(&mut self, view: &ViewId, members: Vec<Member>, hops: u8, out: &mut Vec<Output>) {
        if self.leads() {
            self.admit(view, members);
        } else if hops < MOST_HOPS
            && let Some(leader) = self.view.leader()
        {
            let message = Message::Join { view: view.clone(), members, hops: hops + 1 };
            out.push(Output::Send { to: leader.address.clone(), message });
        }
    }

    /// Remembers who comes in with the next epoch.
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
                // It has missed that it is in; until a round is complete its members are told with each token.
                Some(known) if *known == member && !self.lead.installed => continue,
                _ => {}
            }
            let room = self.view.members.len() + self.lead.joins.len() < MOST_NODES;
            let newer = self.lead.joins.get(&member.node).is_none_or(|known| known.incarnation <= member.incarnation);
            if room && newer {
                self.suspects.remove(&member.node);
                self.lead.joins.insert(member.node.clone(), member);
            }
        }
    }

    /// Whether no token has come for longer than one should take.
    fn is_overdue(&self, now: Duration) -> bool {
        now.saturating_sub(self.seen) > self.settings.round_time(self.view.members.len())
    }
}
