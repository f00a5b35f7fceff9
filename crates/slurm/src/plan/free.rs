//! Which resources a pending job lacks.

use evenhand_model::{Nano, Resource};

use super::Lacks;
use super::policy_jobs::NANO;
use crate::nodes::Node;
use crate::queue::Job;

/// Free amounts of each resource, of the site and of each machine.
pub(super) struct Free {
    resources: Vec<String>,
    site: [Nano; 3],
    machines: Vec<[Nano; 3]>,
}

impl Free {
    pub(super) fn of(nodes: &[Node], resources: &[Resource]) -> Free {
        let left = |has: u64, held: u64| Nano::from(has.saturating_sub(held)) * NANO;
        let machine = |node: &Node| {
            [
                left(node.cpus, node.allocated_cpus),
                left(node.memory, node.allocated_memory),
                left(node.gpus(), node.allocated.gpus()),
            ]
        };
        let machines: Vec<[Nano; 3]> = nodes.iter().filter(|n| !n.is_unavailable()).map(machine).collect();
        let sum = |r: usize| machines.iter().map(|m| m[r]).sum();
        Free { resources: resources.iter().map(|r| r.name.clone()).collect(), site: [sum(0), sum(1), sum(2)], machines }
    }

    pub(super) fn lacks(&self, job: &Job) -> Lacks {
        let (asks, each) = (job.requested.demand(), job.requested_per_node());
        let place = |r: usize| self.resources.iter().position(|name| *name == ["cpu", "mem", "gpu"][r]);
        let short: Vec<(usize, Nano, Nano)> = (0..3)
            .filter(|r| asks[*r] > self.site[*r])
            .filter_map(|r| Some((place(r)?, asks[r], self.site[r])))
            .collect();
        if !short.is_empty() {
            return Lacks::AtSite(short);
        }
        let fits = |machine: &[Nano; 3]| (0..3).all(|r| each[r] <= machine[r]);
        let nodes = job.requested.nodes().or(job.nodes).unwrap_or(1).max(1);
        let fitting = self.machines.iter().filter(|m| fits(m)).count() as u64;
        if fitting >= nodes { Lacks::Nothing } else { Lacks::OnMachines }
    }
}
