//! How many chunks of one size fit on all machines throughout a time, as a function of its start.

use std::collections::VecDeque;
use std::ops::Range;

use super::kind::{EqualChunks, Kind};
use super::machine_profiles::MachineProfiles;
use super::shortfall::Shortfall;

/// Sizes and lengths of chunks for which the function is kept.
const KEPT: usize = 128;

/// From a time on so many chunks more, or fewer, fit.
type Change = (u64, i64);

/// The machines of a class, as they were when they were last counted.
#[derive(Clone, Debug, Default)]
struct Part {
    machines: u32,
    /// By how much the number of chunks that fit on one of them changes, and from which start on; empty if that is unknown.
    changes: Vec<Change>,
}

/// The chunks of one size that are there for so long, for any number of jobs that wait for them.
///
/// Whether a job that waits fits earlier is asked far more often than much changes, and many jobs that wait are alike. So
/// the sum over all machines is kept, and only what has changed since the last question is counted again.
#[derive(Clone, Debug)]
struct Sum {
    chunk: Vec<u64>,
    most_on_one: u32,
    groups: Vec<u16>,
    length: u64,
    /// The changes of the machines that are counted, as [`MachineProfiles::class_changes`] numbers them.
    counted: u64,
    parts: Vec<Part>,
    changes: Vec<Change>,
    asked: u64,
}

/// How many chunks fit, for sizes and lengths that were asked for last.
#[derive(Clone, Debug, Default)]
pub(super) struct FittingChunks {
    sums: Vec<Sum>,
    questions: u64,
    new: Vec<Change>,
    merged: Vec<Change>,
    window: Window,
    falls: Vec<(u64, u64)>,
}

/// What the least of a function over a moving time is found with.
#[derive(Clone, Debug, Default)]
struct Window {
    /// The function: from which instant on it has which value.
    steps: Vec<(u64, u64)>,
    /// The steps that matter to a start, but those before one in which no more fit, with their ends.
    queue: VecDeque<(u64, u64)>,
    changes: Vec<Change>,
}

impl Window {
    /// By how much the least value throughout `length` changes over starts, and from which on: the value at the first is at 0.
    fn slide(&mut self, starts: Range<u64>, length: u64) -> &[Change] {
        let Window { steps, queue, changes } = self;
        let length = length.max(1);
        queue.clear();
        changes.clear();
        let (mut next, mut start, mut before) = (0, starts.start, 0);
        while start < starts.end {
            while let Some(&(_, value)) = steps.get(next).filter(|step| step.0 <= start || step.0 - start < length) {
                next += 1;
                let end = steps.get(next).map_or(u64::MAX, |step| step.0);
                while queue.pop_back_if(|(other, _)| *other >= value).is_some() {}
                queue.push_back((value, end));
            }
            while queue.pop_front_if(|(_, end)| *end <= start).is_some() {}
            let Some(&(value, end)) = queue.front() else { return changes };
            let value = value as i64;
            if changes.is_empty() {
                changes.push((0, value));
            } else if value != before {
                changes.push((start, value - before));
            }
            before = value;
            let enters = steps.get(next).map_or(u64::MAX, |step| step.0 - length + 1);
            start = end.min(enters);
        }
        changes
    }
}

/// What fits at each start before that of its reservation for a job that has one, without it.
#[derive(Debug)]
pub(super) struct FittingBeside {
    sum: usize,
    own: Vec<Change>,
}

impl FittingChunks {
    /// How many chunks of a kind fit from `now` on, for so long, if a reservation of the same length is not taken: its start, and
    /// in how many machines of which class it has how many chunks (class, chunks, machines).
    pub(super) fn beside(
        &mut self,
        kind: &Kind,
        length: u64,
        machines: &MachineProfiles,
        now: u64,
        from: u64,
        own: &[(u32, u32, u32)],
    ) -> FittingBeside {
        let at = self.sum(kind, length);
        self.count(at, machines, now);
        let mut changes = Vec::new();
        let starts = from.saturating_sub(length).max(now)..from;
        for &(class, chunks, count) in own {
            machines.profile_of(class).fitting_more(
                starts.clone(),
                length,
                (kind.equal_chunks(), chunks.into()),
                &mut self.falls,
                |start, more| changes.push((start, more as i64 * i64::from(count))),
            );
        }
        changes.sort_unstable_by_key(|(time, _)| *time);
        FittingBeside { sum: at, own: changes }
    }

    /// The first start from `from` on and before `before` at which so many chunks fit; notes how many are missing before.
    pub(super) fn first(
        &self,
        beside: &FittingBeside,
        from: u64,
        before: u64,
        wanted: u64,
        shortfall: &mut Shortfall,
    ) -> Option<u64> {
        let (mut fitting, mut start) = (0, from);
        let (mut all, mut own) = (self.sums[beside.sum].changes.as_slice(), beside.own.as_slice());
        while start < before {
            let until = |changes: &[Change]| changes.iter().take_while(|(time, _)| *time <= start).count();
            for changes in [&mut all, &mut own] {
                let (now, later) = changes.split_at(until(changes));
                fitting += now.iter().map(|(_, more)| more).sum::<i64>();
                *changes = later;
            }
            let missing = wanted.saturating_sub(u64::try_from(fitting).unwrap_or(0));
            if missing == 0 {
                return Some(start);
            }
            let next = [all.first(), own.first()].into_iter().flatten().map(|(time, _)| *time).min();
            start = next.unwrap_or(u64::MAX).min(before);
            shortfall.note(start, missing);
        }
        None
    }

    /// The place of the sum of a kind and length; makes it if there is none.
    fn sum(&mut self, kind: &Kind, length: u64) -> usize {
        self.questions += 1;
        let most_on_one = kind.equal_chunks().most_on_one;
        let is = |sum: &Sum| {
            (sum.length, sum.most_on_one) == (length, most_on_one)
                && sum.chunk == kind.chunk
                && sum.groups == kind.groups
        };
        let at = self.sums.iter().position(is).unwrap_or_else(|| {
            let new = Sum {
                chunk: kind.chunk.clone(),
                most_on_one,
                groups: kind.groups.clone(),
                length,
                counted: 0,
                parts: Vec::new(),
                changes: Vec::new(),
                asked: 0,
            };
            if self.sums.len() < KEPT {
                self.sums.push(new);
                return self.sums.len() - 1;
            }
            let last = (0..KEPT).min_by_key(|at| self.sums[*at].asked).unwrap_or(0);
            self.sums[last] = new;
            last
        });
        self.sums[at].asked = self.questions;
        at
    }

    /// Counts what has changed on the machines since the last time.
    fn count(&mut self, at: usize, machines: &MachineProfiles, now: u64) {
        let sum = &mut self.sums[at];
        let chunks = EqualChunks { holds: &sum.chunk, most_on_one: sum.most_on_one };
        if sum.counted == machines.class_changes() {
            return;
        }
        self.new.clear();
        sum.parts.resize_with(sum.parts.len().max(machines.places()), Part::default);
        for (class, group, count, has_new_profile) in machines.changed_since(sum.counted) {
            // A class without machines may become one of another group.
            let count = if sum.groups.contains(&group) { count } else { 0 };
            let part = &mut sum.parts[class as usize];
            let before = std::mem::replace(&mut part.machines, count);
            if !has_new_profile && !part.changes.is_empty() {
                add(&mut self.new, &part.changes, i64::from(count) - i64::from(before), now);
                continue;
            }
            self.window.steps.clear();
            if count > 0 {
                machines.profile_of(class).fitting_steps(now, chunks, &mut self.window.steps);
            }
            let changes = self.window.slide(now..u64::MAX, sum.length);
            // What a profile becomes later is mostly what it was.
            let same = match before == count {
                true => part.changes.iter().rev().zip(changes.iter().rev()).take_while(|(old, new)| old == new).count(),
                false => 0,
            };
            add(&mut self.new, &part.changes[..part.changes.len() - same], -i64::from(before), now);
            add(&mut self.new, &changes[..changes.len() - same], i64::from(count), now);
            part.changes.clear();
            part.changes.extend_from_slice(changes);
        }
        sum.counted = machines.class_changes();
        self.new.sort_unstable_by_key(|(time, _)| *time);
        merge(&sum.changes, &self.new, now, &mut self.merged);
        std::mem::swap(&mut sum.changes, &mut self.merged);
    }
}

/// Adds the changes of so many machines; those until `now` are one from 0 on.
fn add(all: &mut Vec<Change>, changes: &[Change], machines: i64, now: u64) {
    if machines == 0 {
        return;
    }
    let past = changes.partition_point(|(time, _)| *time <= now);
    let before: i64 = changes[..past].iter().map(|(_, more)| more).sum();
    all.extend((before != 0).then_some((0, before * machines)));
    all.extend(changes[past..].iter().map(|(time, more)| (*time, more * machines)));
}

/// Writes to `merged` the changes of both, by time; those until `now` are one from 0 on.
fn merge(old: &[Change], new: &[Change], now: u64, merged: &mut Vec<Change>) {
    merged.clear();
    merged.push((0, 0));
    let (mut old, mut new) = (old.iter().peekable(), new.iter().peekable());
    loop {
        let next = match (old.peek(), new.peek()) {
            (Some(a), Some(b)) if a.0 <= b.0 => old.next(),
            (Some(_), None) => old.next(),
            _ => new.next(),
        };
        let Some(&(time, more)) = next else { break };
        let time = if time <= now { 0 } else { time };
        match merged.last_mut() {
            Some(last) if last.0 == time => last.1 += more,
            Some(last) if last.1 == 0 && last.0 > 0 => *last = (time, more),
            _ => merged.push((time, more)),
        }
    }
}
