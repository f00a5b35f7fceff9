//! From the agent to its [`Status`], and from that to an answer to "why".

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::discovery::Guest;
use evenhand_enforcers::cgroups::{Control, GroupId, parent};
use evenhand_protocol::exchange::NodeState;

use crate::agent::Agent;
use crate::configuration::Law;
use crate::status::{GuestStatus, NodeStatus, ResourceStatus, Status, UserStatus};

/// From this part of a resource on in use, it is a bottleneck.
const BOTTLENECK: f64 = 0.95;

impl Agent {
    /// What it did at the last update, at so many seconds since 1970.
    pub fn status(&self, at_s: f64) -> Status {
        let named = |numbers: &[f64]| -> BTreeMap<String, f64> {
            self.parts.terms.resources.iter().map(|c| c.resource().to_owned()).zip(numbers.iter().copied()).collect()
        };
        let guest = |(slot, outcome): (&crate::slots::Slot, crate::round::Outcome)| {
            let load = Control::ALL.iter().map(|c| (c.resource().to_owned(), slot.load[*c as usize])).collect();
            let written =
                Control::ALL.iter().filter_map(|c| Some((c.resource().to_owned(), slot.written[*c as usize]?)));
            GuestStatus {
                name: slot.guest.name.clone(),
                owner: slot.guest.owner.clone(),
                path: slot.guest.group.path.clone(),
                load,
                heaviness: outcome.heaviness,
                precedence: outcome.precedence,
                weight: outcome.weight,
                written: written.collect(),
            }
        };
        let mut guests: Vec<GuestStatus> = self.slots.iter().zip(self.round.outcomes()).map(guest).collect();
        guests.sort_by(|a, b| b.precedence.total_cmp(&a.precedence).then_with(|| a.path.cmp(&b.path)));
        let mut users: Vec<UserStatus> = self
            .round
            .users(&self.totals)
            .into_iter()
            .map(|(name, of)| UserStatus {
                name,
                heaviness: of.heaviness,
                shares: named(&of.shares),
                entitlements: named(&of.entitlements),
                guests: of.guests,
            })
            .collect();
        users.sort_by(|a, b| b.heaviness.total_cmp(&a.heaviness).then_with(|| a.name.cmp(&b.name)));
        let integral = matches!(self.parts.control.law, Law::Integral(_));
        Status {
            node: self.parts.node.clone(),
            at_s,
            applied: self.is_applied(),
            interval_s: self.parts.control.interval.as_secs_f64(),
            updates: self.updates,
            metric: self.parts.metric.clone(),
            law: if integral { "integral" } else { "linear" }.into(),
            gain: self.round.gains().filter(|_| integral).reduce(f64::min),
            alone_s: (self.alone > 0).then(|| f64::from(self.alone) * self.parts.control.interval.as_secs_f64()),
            resources: Control::ALL.iter().map(|c| (c.resource().to_owned(), self.resource(*c))).collect(),
            users,
            guests,
            nodes: self.totals.nodes.iter().map(node).collect(),
            remarks: self.remarks.clone(),
            totals: self.counts,
        }
    }

    /// Who has this number.
    pub fn guest_of(&self, id: GroupId) -> Option<&Guest> {
        self.slots.guest_of(id)
    }

    /// Whether weights are written; else what would be is only said.
    pub fn is_applied(&self) -> bool {
        self.parts.journal.is_some()
    }

    fn resource(&self, control: Control) -> ResourceStatus {
        let supply = self.parts.terms.supply[control as usize];
        let used: f64 = self.slots.iter().map(|slot| slot.load[control as usize]).sum();
        let controlled = self.parts.control.controls.contains(&control);
        ResourceStatus {
            supply,
            used,
            bottleneck: supply > 0.0 && used >= BOTTLENECK * supply,
            enforced_by: self.parts.enforced_by[control as usize].clone().filter(|_| controlled),
        }
    }
}

fn node(status: &evenhand_protocol::exchange::NodeStatus) -> NodeStatus {
    let state = match &status.state {
        NodeState::Fresh => "counts in full".into(),
        NodeState::Ageing { halvings } => format!("late: halved {halvings} times"),
        NodeState::Lost => "not heard for too long: does not count".into(),
        NodeState::Rejected(why) => format!("refused: {why}"),
    };
    let fresh = status.state == NodeState::Fresh;
    NodeStatus { name: status.name.clone(), age_s: status.age.as_secs_f64(), state, fresh }
}

impl Status {
    /// Why a user's guests have the weights that they have, in sentences; `None` if nobody has this name.
    pub fn why(&self, name: &str) -> Option<String> {
        let user = self.users.iter().find(|user| user.name == name)?;
        let mut text = String::new();
        let nodes = self.nodes.iter().filter(|node| node.fresh).count().max(1);
        let place = self.users.iter().filter(|other| other.heaviness > user.heaviness).count() + 1;
        let _ = writeln!(
            text,
            "{name} has a heaviness of {:+.3} by the metric {} (0 is just what is due): number {place} of {} users, over {nodes} node{}.",
            user.heaviness,
            self.metric,
            self.users.len(),
            if nodes == 1 { "" } else { "s" }
        );
        for (resource, share) in &user.shares {
            let due = user.entitlements.get(resource).copied().unwrap_or(0.0);
            let _ =
                writeln!(text, "  {resource}: has {:.1} % of the cloud, {:.1} % are due", 100.0 * share, 100.0 * due);
        }
        let mine: Vec<&GuestStatus> = self.guests.iter().filter(|guest| guest.owner == name).collect();
        if mine.is_empty() {
            let _ = writeln!(text, "On {} nothing of {name}'s runs; {} run elsewhere.", self.node, user.guests);
        }
        for guest in mine {
            let siblings = self.guests.iter().filter(|other| parent(&other.path) == parent(&guest.path));
            let lighter = siblings.clone().filter(|other| other.precedence < guest.precedence).count();
            let all = siblings.count().saturating_sub(1);
            let _ = writeln!(
                text,
                "{} on {}: h_v {:.3} + h_u {:+.3} = h_p {:.3}, heavier than {lighter} of the {all} it is weighed against; weight {:.3}.",
                guest.name, self.node, guest.heaviness, user.heaviness, guest.precedence, guest.weight
            );
            let written: Vec<String> =
                guest.written.iter().map(|(resource, value)| format!("{resource} {value}")).collect();
            if !written.is_empty() {
                let word = if self.applied { "written" } else { "would be written" };
                let _ = writeln!(text, "  {word}: {}", written.join(", "));
            }
            let tight = self.resources.iter().filter(|(_, of)| of.bottleneck && of.enforced_by.is_some());
            let tight: Vec<&str> = tight.map(|(name, _)| name.as_str()).collect();
            let _ = match tight.as_slice() {
                [] => writeln!(text, "  nothing on {} is used up, so the weight holds nobody back now", self.node),
                some => writeln!(text, "  used up on {}: {}; there the weight decides", self.node, some.join(", ")),
            };
        }
        Some(text.trim_end().to_owned())
    }
}
