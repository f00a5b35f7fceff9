//! Estimates the memory of runs, and decides which may start within a memory budget.
//!
//! The estimates are on the high side: a task takes 56 bytes during and after the loading of its workload (submission,
//! run time, user, demand, original start, index by user, and buffers of the reader), and 24 bytes in each run (start,
//! wait, entry in the list of running tasks); each run takes another 8 MiB. Measured on a generated month of 4 million
//! tasks: 250 MiB to load it, where 214 MiB are estimated for the workload and 100 MiB for a run; 193 MiB in total with
//! one run, 206 MiB with two at a time.

use std::collections::BTreeMap;

const WORKLOAD_BYTES: u64 = 56;
const RUN_BYTES: u64 = 24;
const RUN_BASE: u64 = 8 << 20;

/// The memory that a workload needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryNeed {
    /// The memory for the loaded workload, in bytes.
    pub workload: u64,
    /// The memory for each concurrent run, in bytes.
    pub run: u64,
}

impl MemoryNeed {
    /// Estimates the need of a workload with this number of tasks.
    pub fn of_tasks(tasks: u64) -> MemoryNeed {
        MemoryNeed {
            workload: tasks.saturating_mul(WORKLOAD_BYTES),
            run: tasks.saturating_mul(RUN_BYTES).saturating_add(RUN_BASE),
        }
    }

    /// Returns the memory for the workload and one run, in bytes.
    pub fn minimum(&self) -> u64 {
        self.workload.saturating_add(self.run)
    }
}

/// The next action of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Load this workload.
    Load(usize),
    /// Run the point with this index; its workload is loaded.
    Run(usize),
    /// Wait until an action in progress ends.
    Wait,
    /// Stop: all points have been started.
    Done,
}

/// Starts points in their order while the memory in use stays within a budget.
///
/// Points start in the given order and never overtake one another. Points of a workload are adjacent, so the first
/// waiting point always waits for actions that end, and a workload is released after its last point.
#[derive(Clone, Debug)]
pub struct MemoryBudget {
    budget: u64,
    held: u64,
    /// The workload of each point.
    points: Vec<usize>,
    next: usize,
    workloads: BTreeMap<usize, Slot>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    need: MemoryNeed,
    /// The number of points that have not ended.
    left: usize,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Absent,
    Loading,
    Loaded,
}

impl MemoryBudget {
    /// Creates a budget, in bytes, for points of these workloads. The [minimum](MemoryNeed::minimum) of each workload
    /// must fit the budget.
    pub fn new(budget: u64, points: Vec<usize>, needs: &BTreeMap<usize, MemoryNeed>) -> MemoryBudget {
        let mut workloads = BTreeMap::new();
        for &workload in &points {
            let need = needs.get(&workload).copied().unwrap_or(MemoryNeed { workload: 0, run: 0 });
            workloads.entry(workload).or_insert(Slot { need, left: 0, state: State::Absent }).left += 1;
        }
        MemoryBudget { budget, held: 0, points, next: 0, workloads }
    }

    /// Returns the next action and counts it as started.
    pub fn begin(&mut self) -> Next {
        let Some(&workload) = self.points.get(self.next) else { return Next::Done };
        let Some(slot) = self.workloads.get_mut(&workload) else { return Next::Done };
        let (bytes, next) = match slot.state {
            State::Loading => return Next::Wait,
            State::Absent => (slot.need.workload, Next::Load(workload)),
            State::Loaded => (slot.need.run, Next::Run(self.next)),
        };
        if self.held + bytes > self.budget {
            return Next::Wait;
        }
        self.held += bytes;
        match next {
            Next::Load(_) => slot.state = State::Loading,
            _ => self.next += 1,
        }
        next
    }

    /// Notes that a workload is loaded, with its actual need. Returns whether it fits the budget; otherwise releases it
    /// and skips its points.
    pub fn loaded(&mut self, workload: usize, need: MemoryNeed) -> bool {
        let fits = need.minimum() <= self.budget;
        let Some(slot) = self.workloads.get_mut(&workload) else { return fits };
        if fits {
            self.held = self.held - slot.need.workload + need.workload;
            (slot.need, slot.state) = (need, State::Loaded);
        } else {
            self.skip_workload(workload);
        }
        fits
    }

    /// Notes that a workload cannot be loaded, and skips its points.
    pub fn skip_workload(&mut self, workload: usize) {
        if let Some(slot) = self.workloads.remove(&workload) {
            if slot.state != State::Absent {
                self.held -= slot.need.workload;
            }
            while self.points.get(self.next) == Some(&workload) {
                self.next += 1;
            }
        }
    }

    /// Notes that a point ended. Returns its workload if no other point needs it.
    pub fn ended(&mut self, point: usize) -> Option<usize> {
        let workload = *self.points.get(point)?;
        let slot = self.workloads.get_mut(&workload)?;
        self.held -= slot.need.run;
        slot.left -= 1;
        if slot.left > 0 {
            return None;
        }
        self.held -= slot.need.workload;
        self.workloads.remove(&workload);
        Some(workload)
    }

    /// Returns the bytes in use by actions in progress and loaded workloads.
    pub fn held(&self) -> u64 {
        self.held
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Copy, Debug)]
    enum Busy {
        Loading(usize),
        Running(usize),
    }

    proptest! {
        /// In any order of completions, memory stays within the budget, no worker waits without an action in progress,
        /// and every point runs once and in order, except those of workloads that turn out too large.
        #[test]
        fn points_run_once_within_the_budget_and_never_deadlock(
            sizes in prop::collection::vec((1u64..40, 1u64..40, 0usize..6, 1u64..60), 1..6),
            workers in 1usize..5,
            spare in 0u64..60,
            choices in prop::collection::vec(0usize..5, 200),
        ) {
            let needs: BTreeMap<usize, MemoryNeed> =
                sizes.iter().enumerate().map(|(w, s)| (w, MemoryNeed { workload: s.0, run: s.1 })).collect();
            let points: Vec<usize> =
                sizes.iter().enumerate().flat_map(|(w, s)| std::iter::repeat_n(w, s.2)).collect();
            let bytes = needs.values().map(MemoryNeed::minimum).max().unwrap_or(0) + spare;
            let mut budget = MemoryBudget::new(bytes, points.clone(), &needs);
            let (mut busy, mut ran, mut dropped) = (Vec::new(), Vec::new(), Vec::new());
            let mut choices = choices.into_iter().cycle();
            loop {
                let next = if busy.len() < workers { budget.begin() } else { Next::Wait };
                match next {
                    Next::Load(w) => busy.push(Busy::Loading(w)),
                    Next::Run(p) => {
                        ran.push(p);
                        busy.push(Busy::Running(p));
                    }
                    Next::Wait | Next::Done => {
                        if busy.is_empty() {
                            prop_assert_eq!(next, Next::Done, "waits without an action in progress");
                            break;
                        }
                        match busy.remove(choices.next().unwrap() % busy.len()) {
                            // The actual need differs from the estimate, but does not exceed it.
                            Busy::Loading(w) => {
                                let found = MemoryNeed { workload: sizes[w].3.min(sizes[w].0), run: sizes[w].3 };
                                if !budget.loaded(w, found) {
                                    dropped.push(w);
                                }
                            }
                            Busy::Running(p) => { budget.ended(p); }
                        }
                    }
                }
                prop_assert!(budget.held() <= bytes);
            }
            prop_assert_eq!(budget.held(), 0);
            let expected: Vec<usize> = (0..points.len()).filter(|p| !dropped.contains(&points[*p])).collect();
            prop_assert_eq!(ran, expected);
        }
    }

    #[test]
    fn a_large_workload_waits_until_the_others_are_released() {
        let needs =
            BTreeMap::from([(0, MemoryNeed { workload: 10, run: 10 }), (1, MemoryNeed { workload: 50, run: 40 })]);
        let mut budget = MemoryBudget::new(90, vec![0, 0, 1], &needs);
        assert_eq!(budget.begin(), Next::Load(0));
        assert_eq!(budget.begin(), Next::Wait, "it is being loaded");
        assert!(budget.loaded(0, needs[&0]));
        assert_eq!((budget.begin(), budget.begin()), (Next::Run(0), Next::Run(1)));
        assert_eq!(budget.begin(), Next::Load(1), "30 of 90 are held");
        assert!(budget.loaded(1, needs[&1]));
        assert_eq!(budget.begin(), Next::Wait, "80 of 90 are held");
        assert_eq!((budget.ended(0), budget.ended(1)), (None, Some(0)));
        assert_eq!((budget.begin(), budget.begin()), (Next::Run(2), Next::Done));
    }
}
