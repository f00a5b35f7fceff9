//! How much memory runs need, and which may begin.
//!
//! Estimates, which err on the side of more: a task takes 56 bytes while and after its workload is loaded (submission,
//! run time, user, demand, original start, places by user, and what reading holds for a while), and 24 bytes in each
//! run (its start, its wait, its place among those running); each run takes 8 MiB besides. Measured on a generated
//! month of 4 million tasks: 250 MiB to load it, against 214 MiB estimated for the workload and 100 MiB for a run;
//! 193 MiB for one run in all, 206 MiB for two at a time.

use std::collections::BTreeMap;

const WORKLOAD_BYTES: u64 = 56;
const RUN_BYTES: u64 = 24;
const RUN_BASE: u64 = 8 << 20;

/// The memory that a workload needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// To load it and hold it, in bytes.
    pub workload: u64,
    /// For each run of it at a time, in bytes.
    pub run: u64,
}

impl Need {
    /// Of a workload of so many tasks.
    pub fn of_tasks(tasks: u64) -> Need {
        Need {
            workload: tasks.saturating_mul(WORKLOAD_BYTES),
            run: tasks.saturating_mul(RUN_BYTES).saturating_add(RUN_BASE),
        }
    }

    /// The least with which there is any result.
    pub fn least(&self) -> u64 {
        self.workload.saturating_add(self.run)
    }
}

/// What may be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Load this workload.
    Load(usize),
    /// Run this one of the points, whose workload is loaded.
    Run(usize),
    /// Nothing, until something that was begun ends.
    Wait,
    /// Nothing any more.
    Done,
}

/// Who may begin: points in their order, as long as what is held stays within a budget.
///
/// Points come in the order given and never overtake one another: their workloads come one after another, so whatever
/// blocks the first in line ends by itself, and a workload is let go after its last point.
#[derive(Clone, Debug)]
pub struct Ledger {
    budget: u64,
    held: u64,
    /// The workload of each point.
    points: Vec<usize>,
    next: usize,
    workloads: BTreeMap<usize, Slot>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    need: Need,
    /// Points that have not ended.
    left: usize,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Absent,
    Loading,
    Loaded,
}

impl Ledger {
    /// For points of these workloads, each of whose [least](Need::least) needs fits the budget.
    pub fn new(budget: u64, points: Vec<usize>, needs: &BTreeMap<usize, Need>) -> Ledger {
        let mut workloads = BTreeMap::new();
        for &workload in &points {
            let need = needs.get(&workload).copied().unwrap_or(Need { workload: 0, run: 0 });
            workloads.entry(workload).or_insert(Slot { need, left: 0, state: State::Absent }).left += 1;
        }
        Ledger { budget, held: 0, points, next: 0, workloads }
    }

    /// What may be done next; it counts as begun.
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

    /// A workload is loaded, and is known better now. Whether it fits the budget; if not it is let go, and its points
    /// are passed over.
    pub fn loaded(&mut self, workload: usize, need: Need) -> bool {
        let fits = need.least() <= self.budget;
        let Some(slot) = self.workloads.get_mut(&workload) else { return fits };
        if fits {
            self.held = self.held - slot.need.workload + need.workload;
            (slot.need, slot.state) = (need, State::Loaded);
        } else {
            self.pass_over(workload);
        }
        fits
    }

    /// A workload cannot be loaded: its points are passed over.
    pub fn pass_over(&mut self, workload: usize) {
        if let Some(slot) = self.workloads.remove(&workload) {
            if slot.state != State::Absent {
                self.held -= slot.need.workload;
            }
            while self.points.get(self.next) == Some(&workload) {
                self.next += 1;
            }
        }
    }

    /// Notes that a point ended. Returns the workload that no point needs any more, if there is one.
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

    /// The bytes held by what was begun and did not end.
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
        /// Whatever ends first: the budget holds, nothing stands still, every point runs once and in order, but those
        /// of workloads that turn out too large.
        #[test]
        fn points_run_once_within_the_budget_and_never_wait_for_nothing(
            sizes in prop::collection::vec((1u64..40, 1u64..40, 0usize..6, 1u64..60), 1..6),
            workers in 1usize..5,
            room in 0u64..60,
            choices in prop::collection::vec(0usize..5, 200),
        ) {
            let needs: BTreeMap<usize, Need> =
                sizes.iter().enumerate().map(|(w, s)| (w, Need { workload: s.0, run: s.1 })).collect();
            let points: Vec<usize> =
                sizes.iter().enumerate().flat_map(|(w, s)| std::iter::repeat_n(w, s.2)).collect();
            let budget = needs.values().map(Need::least).max().unwrap_or(0) + room;
            let mut ledger = Ledger::new(budget, points.clone(), &needs);
            let (mut busy, mut ran, mut dropped) = (Vec::new(), Vec::new(), Vec::new());
            let mut choices = choices.into_iter().cycle();
            loop {
                let next = if busy.len() < workers { ledger.begin() } else { Next::Wait };
                match next {
                    Next::Load(w) => busy.push(Busy::Loading(w)),
                    Next::Run(p) => {
                        ran.push(p);
                        busy.push(Busy::Running(p));
                    }
                    Next::Wait | Next::Done => {
                        if busy.is_empty() {
                            prop_assert_eq!(next, Next::Done, "waits for nothing");
                            break;
                        }
                        match busy.remove(choices.next().unwrap() % busy.len()) {
                            // What is found differs from what was guessed, but never by more than was guessed.
                            Busy::Loading(w) => {
                                let found = Need { workload: sizes[w].3.min(sizes[w].0), run: sizes[w].3 };
                                if !ledger.loaded(w, found) {
                                    dropped.push(w);
                                }
                            }
                            Busy::Running(p) => { ledger.ended(p); }
                        }
                    }
                }
                prop_assert!(ledger.held() <= budget);
            }
            prop_assert_eq!(ledger.held(), 0);
            let expected: Vec<usize> = (0..points.len()).filter(|p| !dropped.contains(&points[*p])).collect();
            prop_assert_eq!(ran, expected);
        }
    }

    #[test]
    fn a_large_workload_waits_until_it_is_alone() {
        let needs = BTreeMap::from([(0, Need { workload: 10, run: 10 }), (1, Need { workload: 50, run: 40 })]);
        let mut ledger = Ledger::new(90, vec![0, 0, 1], &needs);
        assert_eq!(ledger.begin(), Next::Load(0));
        assert_eq!(ledger.begin(), Next::Wait, "it is being loaded");
        assert!(ledger.loaded(0, needs[&0]));
        assert_eq!((ledger.begin(), ledger.begin()), (Next::Run(0), Next::Run(1)));
        assert_eq!(ledger.begin(), Next::Load(1), "30 of 90 are held");
        assert!(ledger.loaded(1, needs[&1]));
        assert_eq!(ledger.begin(), Next::Wait, "80 of 90 are held");
        assert_eq!((ledger.ended(0), ledger.ended(1)), (None, Some(0)));
        assert_eq!((ledger.begin(), ledger.begin()), (Next::Run(2), Next::Done));
    }
}
