//! Builds the [`Status`] of an agent, and explains a user's weights from it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use evenhand_enforcers::cgroups::{GroupId, Resource, parent};
use evenhand_model::counted;
use evenhand_protocol::exchange::NodeState;

use crate::admitted_workloads::AdmittedWorkload;
use crate::agent::Agent;
use crate::configuration::Law;
use crate::discovery::RunningWorkload;
use crate::fairness_round::WorkloadOutcome;
use crate::status::{NodeStatus, ResourceStatus, Status, UserStatus, WorkloadStatus};

/// A resource is a bottleneck from this part of its supply on.
const BOTTLENECK: f64 = 0.95;

impl Agent {
    /// Returns the state after the last update, at this number of seconds since 1970.
    pub fn status(&self, at_s: f64) -> Status {
        let resources = &self.parts.settings.resources;
        let by_name = |numbers: &[f64]| -> BTreeMap<String, f64> {
            resources.iter().map(|resource| resource.name().to_owned()).zip(numbers.iter().copied()).collect()
        };
        let mut workloads: Vec<WorkloadStatus> =
            self.workloads.iter().zip(self.round.outcomes()).map(workload_status).collect();
        workloads.sort_by(|a, b| b.precedence.total_cmp(&a.precedence).then_with(|| a.path.cmp(&b.path)));
        let mut users: Vec<UserStatus> = self
            .round
            .users(&self.totals)
            .into_iter()
            .map(|(name, of)| UserStatus {
                name,
                heaviness: of.heaviness,
                shares: by_name(&of.shares),
                entitlements: by_name(&of.entitlements),
                workloads: of.workloads,
            })
            .collect();
        users.sort_by(|a, b| b.heaviness.total_cmp(&a.heaviness).then_with(|| a.name.cmp(&b.name)));
        let integral = matches!(self.parts.control.law, Law::Integral(_));
        let interval_s = self.parts.control.interval.as_secs_f64();
        Status {
            node: self.parts.node.clone(),
            at_s,
            applied: self.is_applied(),
            interval_s,
            updates: self.updates,
            metric: self.parts.metric.clone(),
            law: if integral { "integral" } else { "linear" }.into(),
            gain: self.round.gains().filter(|_| integral).reduce(f64::min),
            alone_s: (self.isolated_updates > 0).then(|| f64::from(self.isolated_updates) * interval_s),
            resources: Resource::ALL.iter().map(|r| (r.name().to_owned(), self.resource_status(*r))).collect(),
            users,
            workloads,
            nodes: self.totals.nodes.iter().map(node_status).collect(),
            warnings: self.warnings.clone(),
            totals: self.counts,
        }
    }

    /// Returns the workload with this number.
    pub fn workload(&self, id: GroupId) -> Option<&RunningWorkload> {
        self.workloads.get(id)
    }

    /// Returns whether weights are written, rather than only reported.
    pub fn is_applied(&self) -> bool {
        self.parts.journal.is_some()
    }

    fn resource_status(&self, resource: Resource) -> ResourceStatus {
        let supply = self.parts.settings.supply[resource];
        // An empty sum of floating-point numbers is -0.
        let used = self.workloads.iter().fold(0.0, |used, admitted| used + admitted.load[resource]);
        let controlled = self.parts.control.controls.contains(&resource);
        ResourceStatus {
            supply,
            used,
            bottleneck: supply > 0.0 && used >= BOTTLENECK * supply,
            enforced_by: self.parts.enforced_by[resource].clone().filter(|_| controlled),
        }
    }
}

fn workload_status((admitted, outcome): (&AdmittedWorkload, WorkloadOutcome)) -> WorkloadStatus {
    let workload = &admitted.workload;
    let written = admitted.written.iter().filter_map(|(r, value)| Some((r.name().to_owned(), (*value)?)));
    WorkloadStatus {
        name: workload.name.clone(),
        owner: workload.owner.clone(),
        path: workload.group.path.clone(),
        load: admitted.load.iter().map(|(r, load)| (r.name().to_owned(), *load)).collect(),
        heaviness: outcome.heaviness,
        precedence: outcome.precedence,
        weight: outcome.weight,
        written: written.collect(),
    }
}

fn node_status(status: &evenhand_protocol::exchange::NodeStatus) -> NodeStatus {
    let state = match &status.state {
        NodeState::Fresh => "counts in full".into(),
        NodeState::Ageing { halvings } => format!("late: halved {halvings} times"),
        NodeState::Lost => "no record for too long: does not count".into(),
        NodeState::Rejected(why) => format!("refused: {why}"),
    };
    let fresh = status.state == NodeState::Fresh;
    NodeStatus { name: status.name.clone(), age_s: status.age.as_secs_f64(), state, fresh }
}

impl Status {
    /// Explains in sentences why a user's workloads have their weights; `None` if there is no such user.
    pub fn why(&self, name: &str) -> Option<String> {
        let user = self.users.iter().find(|user| user.name == name)?;
        let mut text = String::new();
        let nodes = self.nodes.iter().filter(|node| node.fresh).count().max(1);
        let rank = self.users.iter().filter(|other| other.heaviness > user.heaviness).count() + 1;
        let _ = writeln!(
            text,
            "{name} has a heaviness of {:+.3} by the metric {} (0 is exactly the entitlement): number {rank} of {}, over {}.",
            user.heaviness,
            self.metric,
            counted(self.users.len(), "user", "users"),
            counted(nodes, "node", "nodes")
        );
        for (resource, share) in &user.shares {
            let entitlement = user.entitlements.get(resource).copied().unwrap_or(0.0);
            let _ = writeln!(
                text,
                "  {resource}: has {:.1} % of the cloud, is entitled to {:.1} %",
                100.0 * share,
                100.0 * entitlement
            );
        }
        let own: Vec<&WorkloadStatus> = self.workloads.iter().filter(|workload| workload.owner == name).collect();
        if own.is_empty() {
            let _ = writeln!(
                text,
                "No workload of {name} runs on {}; {} elsewhere.",
                self.node,
                counted(user.workloads, "runs", "run")
            );
        }
        for workload in own {
            let siblings = self.workloads.iter().filter(|other| parent(&other.path) == parent(&workload.path));
            let lighter = siblings.clone().filter(|other| other.precedence < workload.precedence).count();
            let others = counted(siblings.count().saturating_sub(1), "other workload", "other workloads");
            let _ = writeln!(
                text,
                "{} on {}: h_v {:.3} + h_u {:+.3} = h_p {:.3}, heavier than {lighter} of {others} beside it; weight {:.3}.",
                workload.name, self.node, workload.heaviness, user.heaviness, workload.precedence, workload.weight
            );
            let written: Vec<String> =
                workload.written.iter().map(|(resource, value)| format!("{resource} {value}")).collect();
            if !written.is_empty() {
                let word = if self.applied { "written" } else { "would be written" };
                let _ = writeln!(text, "  {word}: {}", written.join(", "));
            }
            let scarce = self.resources.iter().filter(|(_, of)| of.bottleneck && of.enforced_by.is_some());
            let scarce: Vec<&str> = scarce.map(|(name, _)| name.as_str()).collect();
            let _ = match scarce.as_slice() {
                [] => writeln!(text, "  no resource of {} is used up, so the weight has no effect now", self.node),
                some => writeln!(text, "  used up on {}: {}; there the weight decides", self.node, some.join(", ")),
            };
        }
        Some(text.trim_end().to_owned())
    }
}
