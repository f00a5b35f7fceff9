//! Which attempts of Google's tasks count as tasks: the state machine over the events.
//!
//! A task, known by its job and index, is submitted, scheduled and ended; after EVICT, FAIL or
//! KILL it may be submitted again, which is a new attempt with its own submission. This is the
//! reading that gives exactly the rows that the SDRF authors' filter gives.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::event::{Event, Kind};
use crate::import::summary::Tally;

/// A task that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    /// The number of its SUBMIT among all events: the order of the trace.
    pub(super) row: u64,
    /// Microseconds, as are `start` and `end`.
    pub(super) submit: u64,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) user: u32,
    /// Billionths, as is `mem`.
    pub(super) cpu: u64,
    pub(super) mem: u64,
    /// Whether the request had more than nine decimals.
    pub(super) rounded: bool,
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

/// Why an attempt does not count, in the order in which summaries list it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    Before,
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

const WHY: [(Why, &str); 11] = [
    (Why::Before, "submitted before the first row of this part of the trace"),
    (Why::AtZero, "submitted at time 0, before the trace began"),
    (Why::Evicted, "evicted"),
    (Why::Killed, "killed"),
    (Why::Lost, "lost"),
    (Why::MissingInfo, "with missing information"),
    (Why::NotScheduled, "ended without having been scheduled"),
    (Why::NoRequest, "without a CPU or memory request"),
    (Why::Resubmitted, "submitted again before their end was seen"),
    (Why::Waiting, "still waiting at the end"),
    (Why::Running, "still running at the end"),
];

/// The attempts under way.
#[derive(Default)]
pub(super) struct Attempts {
    live: HashMap<(u64, u32), Attempt, BuildHasherDefault<KeyHasher>>,
    rows: u64,
    dropped: [u64; WHY.len()],
}

impl Attempts {
    /// Follows one event; the task it ends, if that counts. `user` translates the event's user.
    pub(super) fn follow(&mut self, event: &Event, user: impl Fn(u32) -> u32) -> Option<Kept> {
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
                    self.drop(Why::Resubmitted);
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
                    self.drop(Why::Before);
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

    fn drop(&mut self, why: Why) {
        self.dropped[why as usize] += 1;
    }

    /// Counts what was dropped, and what is still under way.
    pub(super) fn finish(mut self, tally: &mut Tally) {
        for attempt in std::mem::take(&mut self.live).into_values() {
            self.drop(match attempt {
                Attempt { submit: 0, .. } => Why::AtZero,
                Attempt { start: None, .. } => Why::Waiting,
                _ => Why::Running,
            });
        }
        for (why, reason) in WHY {
            let n = self.dropped[why as usize];
            if n > 0 {
                tally.dropped.add(reason.into(), n);
            }
        }
    }
}

impl Attempt {
    fn ended(self, end: u64, kind: Kind, missing: bool) -> Result<Kept, Why> {
        if self.submit == 0 {
            return Err(Why::AtZero);
        }
        match kind {
            Kind::Evict => return Err(Why::Evicted),
            Kind::Kill => return Err(Why::Killed),
            Kind::Lost => return Err(Why::Lost),
            Kind::Submit | Kind::Schedule | Kind::Fail | Kind::Finish => {}
        }
        if self.missing || missing {
            return Err(Why::MissingInfo);
        }
        let start = self.start.ok_or(Why::NotScheduled)?;
        if self.cpu == 0 || self.mem == 0 {
            return Err(Why::NoRequest);
        }
        let Attempt { row, submit, user, cpu, mem, rounded, .. } = self;
        Ok(Kept { row, submit, start, end, user, cpu, mem, rounded })
    }
}

/// Job numbers and indexes come from the trace's own counters, so one multiplication spreads
/// them well enough, at a third of the cost of the standard hasher.
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
        // The golden ratio; the product's high half holds the mixed bits, the table uses both.
        let product = u128::from(self.0 ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// The slow, obvious twin: all events of one task together, attempt by attempt.
    fn naive(events: &[Event]) -> (Vec<Kept>, BTreeMap<&'static str, u64>) {
        let mut by_task: BTreeMap<(u64, u32), Vec<(u64, Event)>> = BTreeMap::new();
        for (i, e) in events.iter().enumerate() {
            by_task.entry((e.job, e.index)).or_default().push((i as u64 + 1, *e));
        }
        let (mut kept, mut dropped) = (Vec::new(), BTreeMap::new());
        for events in by_task.values() {
            // Before the first submission only ends are seen; each later run starts with a SUBMIT.
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
        fn the_state_machine_is_what_grouping_by_task_says(steps in prop::collection::vec(event(), 0..60)) {
            let mut time = 0;
            let events: Vec<Event> = steps.into_iter().map(|(gap, job, index, kind, missing, cpu, mem)| {
                time += gap;
                Event { time, job, index, kind, missing, user: index, cpu, mem, rounded: cpu == 3 }
            }).collect();
            let mut attempts = Attempts::default();
            let mut kept: Vec<Kept> = events.iter().filter_map(|e| attempts.follow(e, |u| u)).collect();
            kept.sort_by_key(|k| k.row);
            let mut tally = Tally::default();
            attempts.finish(&mut tally);
            let mut dropped = BTreeMap::new();
            for (reason, n) in tally.dropped.0 {
                let why = WHY.iter().find(|(_, r)| *r == reason).unwrap().0;
                *dropped.entry(match why {
                    Why::Before => "before",
                    // An attempt at time 0 that has ended, or not, is told by the twin apart.
                    Why::AtZero => "zero",
                    Why::Resubmitted => "again",
                    Why::Waiting => "waiting",
                    Why::Running => "running",
                    _ => "filtered",
                }).or_insert(0) += n;
            }
            let (naive_kept, mut naive_dropped) = naive(&events);
            prop_assert_eq!(kept, naive_kept);
            // What the twin calls filtered includes attempts at time 0 that ended.
            let sum = |d: &mut BTreeMap<&'static str, u64>| d.remove("zero").unwrap_or(0) + d.remove("filtered").unwrap_or(0);
            prop_assert_eq!(sum(&mut dropped), sum(&mut naive_dropped));
            prop_assert_eq!(dropped, naive_dropped);
        }
    }
}
