//! The main scheduler: strict order within each partition, and blocking that spreads through shared nodes.

use evenhand_model::Time;
use evenhand_policies::Policy;

use super::super::kind::Kind;
use super::engine::Engine;
use super::node_set::NodeSet;
use super::results::Activity;
use crate::SimulationError;

/// The state of a partition in a pass.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// A job of it waits for nodes: they are out of reach for later jobs of all partitions.
    Failed,
}

impl Engine<'_> {
    /// A pass over the queue: `full`, or over its first `default_queue_depth` jobs.
    pub(super) fn main_pass(&mut self, now: Time, full: bool, policy: &mut dyn Policy) -> Result<(), SimulationError> {
        if self.waits_for_completion(now) || !self.pending.is_any() {
            return Ok(());
        }
        self.begin_walk(now, policy);
        let result = self.walk_main(now, full, policy);
        self.notify(now, policy);
        self.end_walk(policy);
        result
    }

    fn walk_main(&mut self, now: Time, full: bool, policy: &mut dyn Policy) -> Result<(), SimulationError> {
        let mut available = self.closed.up().clone();
        let mut is_all_available = true;
        let mut state = vec![State::Open; self.partitions.len()];
        let mut of_partition = vec![0u32; self.partitions.len()];
        let (mut depth, mut starts) = (0u32, 0u32);
        let mut usable = NodeSet::empty(self.nodes.len());
        let mut waiting = self.waiting.clone();
        'jobs: while let Some(row) = self.next_in_order(now, policy) {
            self.progress.check()?;
            let attempts = self.attempts_of(row);
            (0..attempts).for_each(|at| waiting[self.attempt(row, at).0] -= 1);
            // A job that names several partitions is a record of the queue for each.
            for at in 0..attempts {
                let (p, able) = self.attempt(row, at);
                let most = self.options.partition_job_depth;
                if most > 0 && of_partition[p] >= most {
                    continue;
                }
                of_partition[p] += 1;
                // Slurm compares before it counts, so that one more job is looked at.
                if !full && depth > self.options.default_queue_depth {
                    break 'jobs;
                }
                depth += 1;
                if state[p] != State::Open {
                    let is_last = at + 1 == attempts;
                    if is_last && (0..state.len()).all(|p| waiting[p] == 0 || state[p] == State::Failed) {
                        break 'jobs;
                    }
                    continue;
                }
                if self.limits.exceeds_limit(row) {
                    if self.options.assoc_limit_stop {
                        state[p] = State::Failed;
                        available.remove_all(&self.partitions[p]);
                        is_all_available = false;
                    }
                    continue;
                }
                let kind = self.kind(row);
                usable.copy_from(&self.partitions[p]);
                // A job that is too large for each of its partitions is tried on the nodes of all.
                usable.add_all(able);
                usable.keep(&available);
                if !usable.has(self.nodes.nodes_at_least(kind)) {
                    state[p] = State::Failed;
                    available.remove_all(&self.partitions[p]);
                    is_all_available = false;
                    continue;
                }
                if self.limits.lacks_licences(row) {
                    // So that nobody takes what backfill plans for it.
                    if self.options.bf_licenses {
                        break 'jobs;
                    }
                    continue;
                }
                let number = self.jobs.kind[row as usize] as usize;
                let latest = now.nanos().saturating_add(self.planned_length(row));
                let mut held = if self.is_known_not_to_fit(number) {
                    None
                } else {
                    usable.copy_from(able);
                    usable.keep(&available);
                    let held = self.nodes.choose(kind, &usable);
                    // In its other partitions it may fit.
                    if held.is_none() && is_all_available && attempts == 1 {
                        self.note_that_does_not_fit(number);
                    }
                    match held.is_some() && self.closed.keep_open(row, now.nanos(), latest, &mut usable) {
                        true => self.nodes.choose(kind, &usable),
                        false => held,
                    }
                };
                if held.is_none() && self.preemption.is_on() {
                    usable.copy_from(self.attempt(row, at).1);
                    usable.keep(&available);
                    self.closed.keep_open(row, now.nanos(), latest, &mut usable);
                    let lenders = self.lenders(now.nanos(), row, at);
                    held = self.choose_over(&self.nodes, &lenders, kind, &usable, false);
                    if held.is_none() {
                        // It starts in a later pass, when what it preempts has ended.
                        self.preempt(now, row, at, &usable);
                    }
                }
                match held {
                    Some(held) => {
                        self.start(now, row, held, Activity::Main)?;
                        starts += 1;
                        if starts == self.options.sched_max_job_start {
                            break 'jobs;
                        }
                        break;
                    }
                    None if let Some(nodes) = self.closed.nodes_of_reservation(row, now.nanos()) => {
                        available.remove_all(nodes);
                        is_all_available = false;
                    }
                    None if self.reserves_nothing(now, row) => {}
                    None => {
                        usable.copy_from(self.attempt(row, at).1);
                        usable.keep(&available);
                        self.closed.keep_open(row, now.nanos(), latest, &mut usable);
                        // Nodes that are down, closed or reserved are in its way, and not jobs: it is passed over.
                        if !self.waits_for_jobs(kind, &usable) {
                            continue;
                        }
                        state[p] = State::Failed;
                        available.remove_all(&self.partitions[p]);
                        is_all_available = false;
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether a job waits for other jobs on these nodes: they hold it when they are empty (`runable_avail` of slurmctld), or
    /// jobs have whole nodes and some have one (`nodes_busy`).
    fn waits_for_jobs(&self, kind: &Kind, nodes: &NodeSet) -> bool {
        let is_busy = || nodes.iter().any(|node| self.nodes.jobs_on(node) > 0);
        self.nodes.chunks_when_empty(kind, nodes) >= u128::from(kind.copies)
            || (self.nodes.whole && !self.preemption.is_on() && is_busy())
    }
}
