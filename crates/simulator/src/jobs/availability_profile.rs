//! Free capacity of a machine over future time, given the reservations.

use std::cmp::Ordering;
use std::ops::Range;

use super::kind::{EqualChunks, fits};
use super::step_function::StepFunction;

/// Free amounts as a step function of time; after the last step all is free for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Profile {
    steps: StepFunction,
}

impl Profile {
    pub(crate) fn new(has: &[u64]) -> Profile {
        Profile { steps: StepFunction::new(has.to_vec()) }
    }

    /// Takes chunks from `from` until `to`.
    pub(crate) fn take(&mut self, from: u64, to: u64, chunk: &[u64], chunks: u32) {
        self.change(from, to, |free, i| free - chunk[i] * u64::from(chunks));
    }

    /// Gives chunks back from `from` until `to`.
    pub(crate) fn give(&mut self, from: u64, to: u64, chunk: &[u64], chunks: u32) {
        self.change(from, to, |free, i| free + chunk[i] * u64::from(chunks));
    }

    fn change(&mut self, from: u64, to: u64, new: impl Fn(u64, usize) -> u64) {
        if from >= to {
            return;
        }
        let (first, end) = (self.steps.cut(from), self.steps.cut(to));
        self.steps.change(first, end, new);
        // Steps that do not differ are one.
        self.steps.join(end);
        self.steps.join(first);
    }

    /// Drops the steps before `now`; the first step then stands for all time before, too.
    pub(crate) fn forget(&mut self, now: u64) {
        self.steps.drop_before(self.steps.at(now));
        self.steps.begin_at_zero();
    }

    /// How many steps it has.
    pub(crate) fn steps(&self) -> usize {
        self.steps.times().len()
    }

    /// Where the second step begins, if there is one.
    pub(crate) fn second_step(&self) -> Option<u64> {
        self.steps.times().get(1).copied()
    }

    /// All numbers that make up the profile.
    pub(crate) fn parts(&self) -> impl Iterator<Item = u64> + '_ {
        self.steps.parts()
    }

    /// The earliest start, from `now` on, of a chunk that is there for so long; `None` if that is after `latest`.
    pub(crate) fn earliest(&self, now: u64, length: u64, chunk: &[u64], latest: u64) -> Option<u64> {
        let mut start = now;
        for i in self.steps.at(now)..self.steps.times().len() {
            if i > 0 && self.steps.times()[i] > start && self.steps.times()[i] - start >= length {
                break;
            }
            if !fits(chunk, self.steps.step(i)) {
                // Only the last step has no next, and in it all is free.
                start = self.steps.times().get(i + 1).copied().unwrap_or(start).max(now);
                if start > latest {
                    return None;
                }
            }
        }
        Some(start)
    }

    /// Writes to `out` the minimum free amount of each resource over `length` from `from` on.
    pub(crate) fn min_free(&self, from: u64, length: u64, out: &mut [u64]) {
        out.copy_from_slice(self.steps.step(self.steps.at(from)));
        for i in self.steps.at(from) + 1..self.steps.times().len() {
            if self.steps.times()[i] - from >= length {
                break;
            }
            out.iter_mut().zip(self.steps.step(i)).for_each(|(o, f)| *o = (*o).min(*f));
        }
    }

    /// Returns how many chunks fit throughout `length` from `from` on.
    pub(crate) fn copies_at(&self, from: u64, length: u64, chunks: EqualChunks<'_>) -> u64 {
        let (first, times) = (self.steps.at(from), self.steps.times());
        let mut least = self.fitting(first, chunks);
        for (i, &time) in times.iter().enumerate().skip(first + 1) {
            if least == 0 || time - from >= length {
                break;
            }
            // Divisions take most of the time, and few steps need one.
            if against(least, chunks, self.steps.step(i)) == Ordering::Less {
                least = self.fitting(i, chunks);
            }
        }
        least
    }

    /// Returns before which start later than `from` as many chunks fit throughout `length`, given how many fit from then on;
    /// `None` if that is not before `limit`.
    pub(crate) fn copies_until(
        &self,
        from: u64,
        length: u64,
        chunks: EqualChunks<'_>,
        fitting: u64,
        limit: u64,
    ) -> Option<u64> {
        let (first, times) = (self.steps.at(from), self.steps.times());
        let end_of = |i: usize| times.get(i + 1).copied().unwrap_or(u64::MAX);
        // The end of the last step with so few.
        let mut until = end_of(first);
        let mut i = first + 1;
        while i < times.len() && times[i] - from < length && until < limit {
            if against(fitting, chunks, self.steps.step(i)) == Ordering::Equal {
                until = end_of(i);
            }
            i += 1;
        }
        i += times[i..].partition_point(|time| time - from < length);
        // A later step matters no sooner.
        let until = until.min(limit);
        let mut later = (i..times.len()).take_while(|i| times[*i] - length < until);
        let fewer = later.find(|i| against(fitting, chunks, self.steps.step(*i)) == Ordering::Less);
        let until = fewer.map_or(until, |i| until.min(times[i] - length + 1));
        (until < limit).then_some(until)
    }

    /// How many chunks fit in a step: at most `u32::MAX`, so that the sum over all machines is an `i64`.
    #[inline]
    fn fitting(&self, step: usize, chunks: EqualChunks<'_>) -> u64 {
        chunks.on(self.steps.step(step)) as u64
    }

    /// Adds to `steps` how many chunks fit from which instant on; the first may begin before `from`.
    pub(crate) fn fitting_steps(&self, from: u64, chunks: EqualChunks<'_>, steps: &mut Vec<(u64, u64)>) {
        let times = self.steps.times();
        for (i, &time) in times.iter().enumerate().skip(self.steps.at(from)) {
            let fitting = self.fitting(i, chunks);
            if steps.last().is_none_or(|last| last.1 != fitting) {
                steps.push((time, fitting));
            }
        }
    }

    /// How many more chunks would fit throughout `length` from which start on if so many (`given`) of them were not taken from `starts.end` on for as long: calls `rise` with each start at which the number rises, the last first, and
    /// by how much. `falls` is of no use to the caller.
    ///
    /// A later start needs less of the time before `starts.end`, of which a machine has as much as before, and more of the
    /// time after it, where it has more: so the number never falls from one start to the next. It is found from the last start back,
    /// and mostly nothing fits there.
    pub(crate) fn fitting_more(
        &self,
        starts: Range<u64>,
        length: u64,
        (chunks, given): (EqualChunks<'_>, u64),
        falls: &mut Vec<(u64, u64)>,
        mut rise: impl FnMut(u64, u64),
    ) {
        let (begin, length) = (starts.end, length.max(1));
        if starts.is_empty() {
            return;
        }
        let times = self.steps.times();
        let mut i = self.steps.at(begin - 1);
        let mut before = self.fitting(i, chunks);
        if before == 0 {
            return;
        }
        // How many fit from the beginning of the reservation on, where that becomes less.
        falls.clear();
        let last_end = (begin - 1).saturating_add(length);
        let first_step = if times.get(i + 1) == Some(&begin) { i + 1 } else { i };
        for (j, &time) in times.iter().enumerate().skip(first_step) {
            let least = falls.last().map_or(u64::MAX, |fall| fall.1);
            if time.max(begin) >= last_end || least == 0 {
                break;
            }
            let fitting = self.fitting(j, chunks);
            if fitting < least {
                falls.push((time.max(begin), fitting));
            }
        }
        let (mut end, mut more) = (begin, None);
        while let Some(&(time, after)) = falls.last() {
            if time >= (end - 1).saturating_add(length) {
                falls.pop();
                continue;
            }
            let here = before.saturating_sub(after).min(given);
            let later = more.replace(here).unwrap_or(here);
            if here < later {
                rise(end, later - here);
            }
            if here == 0 {
                return;
            }
            // The first start with the same numbers before and after.
            end = times[i].max(starts.start).max((time + 1).saturating_sub(length));
            if end == starts.start {
                break;
            }
            if end == times[i] {
                i -= 1;
                before = before.min(self.fitting(i, chunks));
            }
        }
        if let Some(more) = more.filter(|more| *more > 0) {
            rise(end, more);
        }
    }

    /// Writes to `out` the minimum free amount of each resource over `length` from `from` on, as long as a chunk fits in
    /// it. Returns whether it does to the end.
    pub(crate) fn min_free_for(&self, from: u64, length: u64, chunk: &[u64], out: &mut [u64]) -> bool {
        let first = self.steps.at(from);
        out.copy_from_slice(self.steps.step(first));
        for i in first + 1..self.steps.times().len() {
            if self.steps.times()[i] - from >= length || !fits(chunk, out) {
                break;
            }
            out.iter_mut().zip(self.steps.step(i)).for_each(|(o, f)| *o = (*o).min(*f));
        }
        fits(chunk, out)
    }
}

/// How the number of chunks that fit in the free amounts compares with another, which is not above the most on a machine.
#[inline]
fn against(fitting: u64, chunks: EqualChunks<'_>, free: &[u64]) -> Ordering {
    let is_most = fitting >= u64::from(chunks.most_on_one);
    let mut order = if is_most { Ordering::Equal } else { Ordering::Greater };
    for (c, f) in chunks.holds.iter().zip(free).filter(|(c, _)| **c > 0) {
        match f.checked_sub(c * fitting) {
            None => return Ordering::Less,
            Some(rest) if rest < *c => order = Ordering::Equal,
            Some(_) => {}
        }
    }
    order
}
