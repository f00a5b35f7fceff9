//! The state machine that selects the attempts of Google's tasks that become tasks of the workload.
//!
//! A task, identified by its job and index, is submitted, scheduled and ended. After EVICT, FAIL or KILL it can be
//! submitted again, which is a new attempt with its own submission. This interpretation gives exactly the rows of the
//! SDRF authors' filter.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::parse_event::{Event, Kind};
use crate::import::summary::Tally;

/// An attempt that becomes a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::import) struct Kept {
    /// The index of its SUBMIT event among all events: the order of the trace.
    pub(in crate::import) row: u64,
    /// The submission in microseconds, like `start` and `end`.
    pub(in crate::import) submit: u64,
    pub(in crate::import) start: u64,
    pub(in crate::import) end: u64,
    pub(in crate::import) user: u32,
    /// The CPU request in billionths, like `mem`.
    pub(in crate::import) cpu: u64,
    pub(in crate::import) mem: u64,
    /// Whether the request had more than nine decimals.
    pub(in crate::import) rounded: bool,
}

/// An attempt that has not ended.
#[derive(Clone, Copy)]
struct Attempt {
    row: u64,
    submit: u64,
    start: Option<u64>,
    user: u32,
    missing: bool,
    cpu: u64,
    mem: u64,
    rounded: bool,
}

/// The reason why an attempt is dropped, in the order of the summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DropReason {
    BeforeTrace,
    AtZero,
    Evicted,
    Killed,
    Lost,
    MissingInfo,
    NotScheduled,
    NoRequest,
    Resubmitted,
    Waiting,
    Running,
}

const REASONS: [(DropReason, &str); 11] = [
    (DropReason::BeforeTrace, "submitted before the first row of this part of the trace"),
    (DropReason::AtZero, "submitted at time 0, before the trace began"),
    (DropReason::Evicted, "evicted"),
    (DropReason::Killed, "killed"),
    (DropReason::Lost, "lost"),
    (DropReason::MissingInfo, "missing information"),
    (DropReason::NotScheduled, "ended without being scheduled"),
    (DropReason::NoRequest, "no CPU or memory request"),
    (DropReason::Resubmitted, "submitted again before an end was recorded"),
    (DropReason::Waiting, "still waiting at the end"),
    (DropReason::Running, "still running at the end"),
];

/// The attempts that have not ended, and the counts of dropped ones.
#[derive(Default)]
pub(in crate::import) struct Attempts {
    live: HashMap<(u64, u32), Attempt, BuildHasherDefault<KeyHasher>>,
    rows: u64,
    dropped: [u64; REASONS.len()],
}

impl Attempts {
    /// Processes one event; returns the attempt that it ends, if that is kept. `user` maps the user of the event to
    /// that of the trace.
    pub(in crate::import) fn process(&mut self, event: &Event, user: impl Fn(u32) -> u32) -> Option<Kept> {
        self.rows += 1;
        let key = (event.job, event.index);
        match event.kind {
            Kind::Submit => {
                let attempt = Attempt {
                    row: self.rows,
                    submit: event.time,
                    start: None,
                    user: user(event.user),
                    missing: event.missing,
                    cpu: event.cpu,
                    mem: event.mem,
                    rounded: event.rounded,
                };
                if self.live.insert(key, attempt).is_some() {
                    self.drop(DropReason::Resubmitted);
                }
                None
            }
            Kind::Schedule => {
                if let Some(attempt) = self.live.get_mut(&key) {
                    attempt.start = Some(event.time);
                    attempt.missing |= event.missing;
                }
                None
            }
            end => {
                let Some(attempt) = self.live.remove(&key) else {
                    self.drop(DropReason::BeforeTrace);
                    return None;
                };
                match attempt.ended(event.time, end, event.missing) {
                    Ok(kept) => Some(kept),
                    Err(why) => {
                        self.drop(why);
                        None
                    }
                }
            }
        }
    }

    /// Returns how many ends there were so far of attempts whose submission was not seen.
    pub(in crate::import) fn ends_without_submission(&self) -> u64 {
        self.dropped[DropReason::BeforeTrace as usize]
    }

    fn drop(&mut self, why: DropReason) {
        self.dropped[why as usize] += 1;
    }

    /// Counts the dropped attempts, among them those that have not ended.
    pub(in crate::import) fn finish(mut self, tally: &mut Tally) {
        for attempt in std::mem::take(&mut self.live).into_values() {
            self.drop(match attempt {
                Attempt { submit: 0, .. } => DropReason::AtZero,
                Attempt { start: None, .. } => DropReason::Waiting,
                _ => DropReason::Running,
            });
        }
        for (why, reason) in REASONS {
            let n = self.dropped[why as usize];
            if n > 0 {
                tally.dropped.add(reason.into(), n);
            }
        }
    }
}

impl Attempt {
    fn ended(self, end: u64, kind: Kind, missing: bool) -> Result<Kept, DropReason> {
        if self.submit == 0 {
            return Err(DropReason::AtZero);
        }
        match kind {
            Kind::Evict => return Err(DropReason::Evicted),
            Kind::Kill => return Err(DropReason::Killed),
            Kind::Lost => return Err(DropReason::Lost),
            Kind::Submit | Kind::Schedule | Kind::Fail | Kind::Finish => {}
        }
        if self.missing || missing {
            return Err(DropReason::MissingInfo);
        }
        let start = self.start.ok_or(DropReason::NotScheduled)?;
        if self.cpu == 0 || self.mem == 0 {
            return Err(DropReason::NoRequest);
        }
        let Attempt { row, submit, user, cpu, mem, rounded, .. } = self;
        Ok(Kept { row, submit, start, end, user, cpu, mem, rounded })
    }
}

/// Hashes jobs and indexes, which are counters of the trace: one multiplication distributes them well enough, at a
/// third of the cost of the standard hasher.
#[derive(Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.write_u64(u64::from(b)));
    }

    fn write_u32(&mut self, n: u32) {
        self.write_u64(u64::from(n));
    }

    fn write_u64(&mut self, n: u64) {
        // The golden ratio. The high half of the product holds the mixed bits; the table uses both halves.
        let product = u128::from(self.0 ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// The reference model: all events of one task together, attempt by attempt.
    fn naive(events: &[Event]) -> (Vec<Kept>, BTreeMap<&'static str, u64>) {
        let mut by_task: BTreeMap<(u64, u32), Vec<(u64, Event)>> = BTreeMap::new();
        for (i, e) in events.iter().enumerate() {
            by_task.entry((e.job, e.index)).or_default().push((i as u64 + 1, *e));
        }
        let (mut kept, mut dropped) = (Vec::new(), BTreeMap::new());
        for events in by_task.values() {
            // Before the first submission there are only ends; each later run starts with a SUBMIT.
            let is_submit = |e: &(u64, Event)| e.1.kind == Kind::Submit;
            let is_end = |e: &(u64, Event)| !matches!(e.1.kind, Kind::Submit | Kind::Schedule);
            let runs: Vec<&[(u64, Event)]> = events.chunk_by(|_, b| !is_submit(b)).collect();
            for (n, run) in runs.iter().enumerate() {
                let orphan_ends = |rest: &[(u64, Event)]| rest.iter().filter(|e| is_end(e)).count() as u64;
                if !is_submit(&run[0]) {
                    *dropped.entry("before").or_insert(0) += orphan_ends(run);
                    continue;
                }
                let submit = run[0].1;
                let Some(end) = run.iter().position(is_end) else {
                    let scheduled = run.iter().any(|e| e.1.kind == Kind::Schedule);
                    let why = match () {
                        () if n + 1 < runs.len() => "again",
                        () if submit.time == 0 => "zero",
                        () if scheduled => "running",
                        () => "waiting",
                    };
                    *dropped.entry(why).or_insert(0) += 1;
                    continue;
                };
                *dropped.entry("before").or_insert(0) += orphan_ends(&run[end + 1..]);
                let start = run[..end].iter().rfind(|e| e.1.kind == Kind::Schedule).map(|e| e.1.time);
                let ok = submit.time > 0
                    && matches!(run[end].1.kind, Kind::Finish | Kind::Fail)
                    && run[..=end].iter().all(|e| !e.1.missing)
                    && submit.cpu > 0
                    && submit.mem > 0;
                match start.filter(|_| ok) {
                    Some(start) => kept.push(Kept {
                        row: run[0].0,
                        submit: submit.time,
                        start,
                        end: run[end].1.time,
                        user: submit.user,
                        cpu: submit.cpu,
                        mem: submit.mem,
                        rounded: submit.rounded,
                    }),
                    None => *dropped.entry("filtered").or_insert(0) += 1,
                }
            }
        }
        kept.sort_by_key(|k| k.row);
        dropped.retain(|_, n| *n > 0);
        (kept, dropped)
    }

    fn event() -> impl Strategy<Value = (u64, u64, u32, Kind, bool, u64, u64)> {
        use Kind::*;
        let kind = prop::sample::select(vec![
            Submit, Submit, Submit, Schedule, Schedule, Schedule, Evict, Fail, Finish, Finish, Kill, Lost,
        ]);
        let missing = prop::sample::select(vec![false, false, false, false, false, false, true]);
        (0u64..3, 0u64..3, 0u32..2, kind, missing, 0u64..4, 0u64..4)
    }

    proptest! {
        #[test]
        fn the_state_machine_equals_the_reference_model(steps in prop::collection::vec(event(), 0..60)) {
            let mut time = 0;
            let events: Vec<Event> = steps.into_iter().map(|(gap, job, index, kind, missing, cpu, mem)| {
                time += gap;
                Event { time, job, index, kind, missing, user: index, cpu, mem, rounded: cpu == 3 }
            }).collect();
            let mut attempts = Attempts::default();
            let mut kept: Vec<Kept> = events.iter().filter_map(|e| attempts.process(e, |u| u)).collect();
            kept.sort_by_key(|k| k.row);
            let mut tally = Tally::default();
            attempts.finish(&mut tally);
            let mut dropped = BTreeMap::new();
            for (reason, n) in tally.dropped.0 {
                let why = REASONS.iter().find(|(_, r)| *r == reason).unwrap().0;
                *dropped.entry(match why {
                    DropReason::BeforeTrace => "before",
                    // The reference model distinguishes attempts at time 0 that have ended from others.
                    DropReason::AtZero => "zero",
                    DropReason::Resubmitted => "again",
                    DropReason::Waiting => "waiting",
                    DropReason::Running => "running",
                    _ => "filtered",
                }).or_insert(0) += n;
            }
            let (naive_kept, mut naive_dropped) = naive(&events);
            prop_assert_eq!(kept, naive_kept);
            // In the reference model, filtered attempts include those at time 0 that ended.
            let sum = |d: &mut BTreeMap<&'static str, u64>| d.remove("zero").unwrap_or(0) + d.remove("filtered").unwrap_or(0);
            prop_assert_eq!(sum(&mut dropped), sum(&mut naive_dropped));
            prop_assert_eq!(dropped, naive_dropped);
        }
    }
}
