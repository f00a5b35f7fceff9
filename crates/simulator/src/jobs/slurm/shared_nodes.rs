//! Nodes on which jobs use what suspended jobs hold.
//!
//! A job that is suspended keeps all that it holds against jobs that may not preempt it (gang scheduling of slurmctld
//! keeps its rows). A job that may takes its processors over, so that more is held than there is: what is free is never
//! below zero, and what is missing is owed. Memory and other resources are not taken over; with select/linear, which
//! counts no memory, the whole node is.

use super::super::kind::Kind;
use super::super::placements::Placements;
use super::nodes::Nodes;

impl Nodes<'_> {
    /// Allows jobs to use what suspended ones hold.
    pub(super) fn allow_sharing(&mut self) {
        self.owed = vec![0; self.free.len()];
    }

    /// Takes what a job holds, more than is free where it uses what suspended jobs hold.
    pub(super) fn take_over(&mut self, kind: &Kind, held: &Placements) {
        for (node, chunks) in held.iter() {
            let at = node as usize * self.width;
            let mut missing = vec![0; self.width];
            self.held(kind, node, chunks, |resource, amount| {
                missing[resource] = amount.saturating_sub(self.free[at + resource]);
            });
            for (resource, missing) in missing.into_iter().enumerate().filter(|(_, missing)| *missing > 0) {
                self.set_free(node, resource, self.free[at + resource] + missing);
                self.owed[at + resource] += missing;
            }
        }
        self.take(kind, held);
    }

    /// Makes free what a job that can be suspended leaves to one that may preempt it.
    pub(super) fn lend(&mut self, kind: &Kind, held: &Placements) {
        for (node, chunks) in held.iter() {
            if self.is_whole(kind) {
                self.give_on(kind, node, chunks);
                continue;
            }
            let (processors, _) = self.processors_held(kind, node, chunks);
            self.set_free(node, self.processors, self.processors_on(node) + processors);
            self.settle(node);
        }
    }

    /// Settles what is owed on a node with what is free there.
    pub(super) fn settle(&mut self, node: u32) {
        let at = node as usize * self.width;
        for resource in 0..self.width {
            let owed = self.owed.get(at + resource).copied().unwrap_or(0);
            let settled = owed.min(self.free[at + resource]);
            if settled > 0 {
                self.owed[at + resource] -= settled;
                self.set_free(node, resource, self.free[at + resource] - settled);
            }
        }
    }

    /// What is owed on a node, by resource; empty if no job can be suspended.
    pub(super) fn owed_on(&self, node: u32) -> &[u64] {
        let at = node as usize * self.width;
        self.owed.get(at..at + self.width).unwrap_or_default()
    }

    /// How many processors a job holds on a node, and how many the node has.
    pub(super) fn processors_held(&self, kind: &Kind, node: u32, chunks: u32) -> (u64, u64) {
        let has = self.site.groups[self.site.group_of(node)].has[self.processors];
        let held = if self.is_whole(kind) { has } else { kind.chunk[self.processors] * u64::from(chunks) };
        (held, has)
    }
}
