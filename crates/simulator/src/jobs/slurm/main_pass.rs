//! The main scheduler: strict order within each partition, and blocking that spreads through shared nodes.

use evenhand_model::Time;
use evenhand_policies::Policy;

use super::super::kind::Kind;
use super::engine::Engine;
use super::looked_arrays::LookedArrays;
use super::node_set::NodeSet;
use super::results::Activity;
use crate::SimulationError;

/// What a pass leaves to later jobs.
struct Reach {
    /// The nodes that are up and not closed.
    available: NodeSet,
    /// Whether these are all that are up.
    is_all: bool,
    /// By partition: whether a job of it waits for nodes. Then these are out of reach for later jobs of all partitions.
    is_closed: Vec<bool>,
}

impl Reach {
    fn close(&mut self, partition: usize, nodes: &NodeSet) {
        self.is_closed[partition] = true;
        self.remove(nodes);
    }

    fn remove(&mut self, nodes: &NodeSet) {
        self.available.remove_all(nodes);
        self.is_all = false;
    }
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
        let is_closed = vec![false; self.partitions.len()];
        let mut reach = Reach { available: self.closed.up().clone(), is_all: true, is_closed };
        let mut of_partition = vec![0u32; self.partitions.len()];
        let (mut depth, mut starts) = (0u32, 0u32);
        let mut arrays = LookedArrays::default();
        let mut usable = NodeSet::empty(self.nodes.len());
        let mut waiting = self.waiting.clone();
        'jobs: while let Some(row) = self.next_in_order(now, policy) {
            self.progress.check()?;
            let attempts = self.attempts_of(row);
            (0..attempts).for_each(|at| waiting[self.attempt(row, at).0] -= 1);
            // A task that its array's throttle holds back is no record of the queue (`build_job_queue` of slurmctld).
            if self.limits.is_throttled(row) {
                continue;
            }
            let array = self.array_of(row);
            // A job that names several partitions is a record of the queue for each.
            for at in 0..attempts {
                let (p, able) = self.attempt(row, at);
                if !arrays.look(array, p) {
                    continue;
                }
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
                if reach.is_closed[p] {
                    let is_last = at + 1 == attempts;
                    if is_last && waiting.iter().zip(&reach.is_closed).all(|(waiting, closed)| *waiting == 0 || *closed)
                    {
                        break 'jobs;
                    }
                    continue;
                }
                if self.limits.exceeds_limit(row) {
                    if self.options.assoc_limit_stop {
                        reach.close(p, &self.partitions[p]);
                    }
                    continue;
                }
                let kind = self.kind(row);
                usable.copy_from(&self.partitions[p]);
                // A job that is too large for each of its partitions is tried on the nodes of all.
                usable.add_all(able);
                usable.keep(&reach.available);
                if !usable.has(self.nodes.nodes_at_least(kind)) {
                    reach.close(p, &self.partitions[p]);
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
                let mut held = if self.is_known_not_to_fit(number) {
                    None
                } else {
                    usable.copy_from(able);
                    usable.keep(&reach.available);
                    let held = self.nodes.choose(kind, &usable);
                    // In its other partitions it may fit.
                    if held.is_none() && reach.is_all && attempts == 1 {
                        self.note_that_does_not_fit(number);
                    }
                    let latest = now.nanos().saturating_add(self.planned_length(row));
                    match held.is_some() && self.closed.keep_open(row, now.nanos(), latest, &mut usable) {
                        true => self.nodes.choose(kind, &usable),
                        false => held,
                    }
                };
                if held.is_none() && self.preemption.is_on() {
                    let mut open = self.open_now(now, row, at);
                    open.keep(&reach.available);
                    let lenders = self.lenders(now.nanos(), row, at);
                    held = self.choose_over(&self.nodes, &lenders, kind, &open, false);
                    if held.is_none() {
                        // It starts in a later pass, when what it preempts has ended.
                        self.preempt(now, row, at, &open);
                    }
                }
                match held {
                    Some(held) => {
                        self.start(now, row, held, Activity::Main)?;
                        arrays.started(array, p);
                        starts += 1;
                        if starts == self.options.sched_max_job_start {
                            break 'jobs;
                        }
                        break;
                    }
                    None if let Some(nodes) = self.closed.nodes_of_reservation(row, now.nanos()) => {
                        reach.remove(nodes);
                    }
                    None if self.reserves_nothing(now, row) => {}
                    None => {
                        let mut open = self.open_now(now, row, at);
                        open.keep(&reach.available);
                        // Else nodes that are down, closed or reserved are in its way, and not jobs: it is passed over.
                        if self.waits_for_jobs(kind, &open) {
                            reach.close(p, &self.partitions[p]);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether a job waits for other jobs on these nodes: they hold it when they are empty (`runable_avail` of slurmctld), or
    /// some have nodes that it cannot share, as it or they have whole ones (`nodes_busy`).
    fn waits_for_jobs(&self, kind: &Kind, nodes: &NodeSet) -> bool {
        let is_busy = || nodes.iter().any(|node| self.nodes.is_busy(kind, node));
        self.nodes.hold_when_empty(kind, nodes) || (!self.preemption.is_on() && is_busy())
    }
}
