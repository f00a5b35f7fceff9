//! A segment tree over the free capacity of machines: finds the next machine on which a chunk fits.

use std::ops::Range;

use super::kind::fits;
use super::placements::Run;
use super::site::Site;

/// A tree of maxima over the machines' free amounts.
///
/// A node holds, for each resource, the maximum that is free on any machine below it. A chunk that does
/// not fit in that maximum fits on none of those machines, so the search for the first machine skips
/// whole subtrees.
#[derive(Clone, Debug)]
pub(crate) struct FreeCapacityTree {
    width: usize,
    machines: usize,
    /// Index of the first leaf: the number of machines rounded up to a power of two.
    leaves: usize,
    nodes: Vec<u64>,
    /// Nodes above changed leaves while several change together, and those above them.
    changed: Vec<Range<u32>>,
    above: Vec<Range<u32>>,
}

impl FreeCapacityTree {
    /// All machines empty.
    pub(crate) fn new(site: &Site, width: usize) -> FreeCapacityTree {
        let machines = site.len();
        let leaves = machines.next_power_of_two();
        let nodes = vec![0; 2 * leaves * width];
        let mut tree = FreeCapacityTree { width, machines, leaves, nodes, changed: Vec::new(), above: Vec::new() };
        for group in &site.groups {
            for m in group.first..group.first + group.count {
                let at = (leaves + m as usize) * width;
                tree.nodes[at..at + width].copy_from_slice(&group.has);
            }
        }
        (1..leaves).rev().for_each(|node| {
            tree.raise(node);
        });
        tree
    }

    /// Returns what is free on a machine.
    #[inline]
    pub(crate) fn of(&self, machine: u32) -> &[u64] {
        let at = (self.leaves + machine as usize) * self.width;
        &self.nodes[at..at + self.width]
    }

    /// Takes `copies` chunks of a machine.
    #[inline]
    pub(crate) fn take(&mut self, machine: u32, chunk: &[u64], copies: u32) {
        let at = (self.leaves + machine as usize) * self.width;
        let leaf = &mut self.nodes[at..at + self.width];
        leaf.iter_mut().zip(chunk).for_each(|(f, c)| *f -= c * u64::from(copies));
        self.climb(machine);
    }

    /// Gives `copies` chunks back to a machine.
    #[inline]
    pub(crate) fn give(&mut self, machine: u32, chunk: &[u64], copies: u32) {
        let at = (self.leaves + machine as usize) * self.width;
        let leaf = &mut self.nodes[at..at + self.width];
        leaf.iter_mut().zip(chunk).for_each(|(f, c)| *f += c * u64::from(copies));
        self.climb(machine);
    }

    /// Takes chunks of several machines, or gives them back, as `change` computes what is then free. Machines side by
    /// side share their way up.
    pub(crate) fn change_all(
        &mut self,
        held: impl Iterator<Item = Run>,
        chunk: &[u64],
        change: impl Fn(u64, u64) -> u64,
    ) {
        let mut changed = std::mem::take(&mut self.changed);
        changed.clear();
        let add = |changed: &mut Vec<Range<u32>>, nodes: Range<u32>| match changed.last_mut() {
            Some(last) if last.start <= nodes.start && nodes.start <= last.end => last.end = last.end.max(nodes.end),
            _ => changed.push(nodes),
        };
        for run in held {
            let first = self.leaves + run.machine as usize;
            let leaves = &mut self.nodes[first * self.width..][..run.machines as usize * self.width];
            match chunk {
                [amount] => {
                    let amount = amount * u64::from(run.chunks);
                    leaves.iter_mut().for_each(|free| *free = change(*free, amount));
                }
                _ => leaves.chunks_exact_mut(self.width).for_each(|free| {
                    free.iter_mut().zip(chunk).for_each(|(f, c)| *f = change(*f, c * u64::from(run.chunks)));
                }),
            }
            let last = first + run.machines as usize - 1;
            add(&mut changed, (first / 2) as u32..(last / 2) as u32 + 1);
        }
        let mut above = std::mem::take(&mut self.above);
        while changed.first().is_some_and(|nodes| nodes.start > 0) {
            above.clear();
            for node in changed.drain(..).flatten() {
                if self.raise(node as usize) {
                    add(&mut above, node / 2..node / 2 + 1);
                }
            }
            std::mem::swap(&mut changed, &mut above);
        }
        (self.changed, self.above) = (changed, above);
    }

    fn climb(&mut self, machine: u32) {
        let mut node = (self.leaves + machine as usize) / 2;
        while node > 0 && self.raise(node) {
            node /= 2;
        }
    }

    /// Sets a node to the maximum of the two below; whether that changed it.
    fn raise(&mut self, node: usize) -> bool {
        let (width, mut changed) = (self.width, false);
        if width == 1 {
            let highest = self.nodes[2 * node].max(self.nodes[2 * node + 1]);
            return std::mem::replace(&mut self.nodes[node], highest) != highest;
        }
        for r in 0..width {
            let highest = self.nodes[2 * node * width + r].max(self.nodes[(2 * node + 1) * width + r]);
            let at = &mut self.nodes[node * width + r];
            changed |= *at != highest;
            *at = highest;
        }
        changed
    }

    /// The first machine from `from` on and below `to` on which `chunk` fits.
    #[inline]
    pub(crate) fn next(&self, from: u32, to: u32, chunk: &[u64]) -> Option<u32> {
        let to = (to as usize).min(self.machines);
        if from as usize >= to {
            return None;
        }
        let mut node = self.leaves + from as usize;
        loop {
            if fits(chunk, &self.nodes[node * self.width..][..self.width]) {
                if node >= self.leaves {
                    return Some((node - self.leaves) as u32);
                }
                node *= 2;
                continue;
            }
            // Continue with the next node to the right, climbing while the node is a right child.
            while node % 2 == 1 {
                node /= 2;
            }
            if node == 0 {
                return None;
            }
            node += 1;
            let depth = node.leading_zeros() - self.leaves.leading_zeros();
            if (node << depth) - self.leaves >= to {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::placements::runs_of;
    use super::*;
    use evenhand_model::{Cluster, MachineGroup, Rational, Resource, ResourceQuantity};
    use proptest::prelude::*;

    fn site(machines: u32) -> Site {
        let has = vec![ResourceQuantity::parse("4").unwrap(), ResourceQuantity::parse("4").unwrap()];
        let group = |name: &str, count| MachineGroup {
            hosts: Vec::new(),
            name: name.into(),
            count,
            capacity: has.clone(),
            speed: Rational::ONE,
            weight: 1,
            properties: Vec::new(),
        };
        let cluster = Cluster {
            resources: vec!["cpu".into(), "mem".into()],
            groups: vec![group("a", machines)],
            queues: Vec::new(),
            ..Cluster::default()
        };
        Site::machines(&cluster, &[Resource::new("cpu", ""), Resource::new("mem", "")]).unwrap()
    }

    proptest! {
        /// Against looking at one machine after another.
        #[test]
        fn the_next_machine_is_the_next_machine(
            machines in 1u32..20,
            takes in prop::collection::vec((0u32..20, [0u64..3, 0u64..3], any::<bool>()), 0..60),
            several in prop::collection::vec(0u32..20, 0..12),
            asks in prop::collection::vec((0u32..22, 0u32..22, [0u64..6, 0u64..6]), 1..10),
        ) {
            let mut tree = FreeCapacityTree::new(&site(machines), 2);
            let mut plain = vec![[4u64; 2]; machines as usize];
            let mut taken: Vec<(u32, [u64; 2])> = Vec::new();
            for (m, chunk, give) in takes {
                let m = m % machines;
                if give && let Some((m, chunk)) = taken.pop() {
                    tree.give(m, &chunk, 1);
                    (0..2).for_each(|r| plain[m as usize][r] += chunk[r]);
                } else if fits(&chunk, &plain[m as usize]) {
                    tree.take(m, &chunk, 1);
                    (0..2).for_each(|r| plain[m as usize][r] -= chunk[r]);
                    taken.push((m, chunk));
                }
            }
            // Several machines at once, in any order.
            for chunk in [[0, 1], [1, 0], [1, 2]] {
                let several: Vec<(u32, u32)> =
                    several.iter().map(|m| m % machines).filter(|&m| fits(&chunk, &plain[m as usize])).map(|m| (m, 1)).collect();
                let several: Vec<(u32, u32)> =
                    several.iter().enumerate().filter(|(i, held)| !several[..*i].contains(held)).map(|(_, held)| *held).collect();
                tree.change_all(runs_of(several.iter().copied()), &chunk, |free, amount| free - amount);
                several.iter().for_each(|(m, _)| (0..2).for_each(|r| plain[*m as usize][r] -= chunk[r]));
            }
            (0..machines).for_each(|m| assert_eq!(tree.of(m), plain[m as usize]));
            for (from, to, chunk) in asks {
                let next = (from..to.min(machines)).find(|&m| fits(&chunk, &plain[m as usize]));
                prop_assert_eq!(tree.next(from, to, &chunk), next);
            }
        }
    }
}
