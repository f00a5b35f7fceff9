//! Free capacity of a machine over future time, given the reservations.

use super::kind::{copies, fits};

/// Free amounts as a step function of time; after the last step all is free for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Profile {
    width: usize,
    /// Where steps begin, increasing.
    times: Vec<u64>,
    /// Free amounts in each step, `width` values a step.
    free: Vec<u64>,
}

impl Profile {
    pub(crate) fn new(has: &[u64]) -> Profile {
        Profile { width: has.len(), times: vec![0], free: has.to_vec() }
    }

    fn step(&self, i: usize) -> &[u64] {
        &self.free[i * self.width..][..self.width]
    }

    /// The step in which an instant lies.
    fn at(&self, time: u64) -> usize {
        self.times.partition_point(|t| *t <= time) - 1
    }

    /// Makes a step begin at an instant; returns which.
    fn cut(&mut self, time: u64) -> usize {
        let i = self.at(time);
        if self.times[i] == time {
            return i;
        }
        self.times.insert(i + 1, time);
        let from = i * self.width;
        let row: Vec<u64> = self.free[from..from + self.width].to_vec();
        let at = from + self.width;
        self.free.splice(at..at, row);
        i + 1
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
        let (first, end) = (self.cut(from), self.cut(to));
        for i in first..end {
            for r in 0..self.width {
                let at = i * self.width + r;
                self.free[at] = new(self.free[at], r);
            }
        }
        // Steps that do not differ are one.
        for i in [end, first] {
            if i > 0 && self.step(i) == self.step(i - 1) {
                self.times.remove(i);
                self.free.drain(i * self.width..(i + 1) * self.width);
            }
        }
    }

    /// Drops the steps before `now`; the first step then stands for all time before, too.
    pub(crate) fn forget(&mut self, now: u64) {
        let past = self.at(now);
        self.times.drain(..past);
        self.free.drain(..past * self.width);
        self.times[0] = 0;
    }

    /// Where the second step begins, if there is one.
    pub(crate) fn second_step(&self) -> Option<u64> {
        self.times.get(1).copied()
    }

    /// All numbers that make up the profile.
    pub(crate) fn parts(&self) -> impl Iterator<Item = u64> + '_ {
        self.times.iter().chain(&self.free).copied()
    }

    /// The earliest start, from `now` on, of a chunk that is there for so long; `None` if that is after `latest`.
    pub(crate) fn earliest(&self, now: u64, length: u64, chunk: &[u64], latest: u64) -> Option<u64> {
        let mut start = now;
        for i in self.at(now)..self.times.len() {
            if i > 0 && self.times[i] > start && self.times[i] - start >= length {
                break;
            }
            if !fits(chunk, self.step(i)) {
                // Only the last step has no next, and in it all is free.
                start = self.times.get(i + 1).copied().unwrap_or(start).max(now);
                if start > latest {
                    return None;
                }
            }
        }
        Some(start)
    }

    /// Writes to `out` the minimum free amount of each resource over `length` from `from` on.
    pub(crate) fn min_free(&self, from: u64, length: u64, out: &mut [u64]) {
        out.copy_from_slice(self.step(self.at(from)));
        for i in self.at(from) + 1..self.times.len() {
            if self.times[i] - from >= length {
                break;
            }
            out.iter_mut().zip(self.step(i)).for_each(|(o, f)| *o = (*o).min(*f));
        }
    }

    /// Returns how many chunks fit throughout `length` from `from` on, and before which later start as many do.
    pub(crate) fn copies(&self, from: u64, length: u64, chunk: &[u64]) -> (u128, u64) {
        let first = self.at(from);
        let mut min_copies = copies(chunk, self.step(first));
        // The end of the last step with so few.
        let mut until = self.times.get(first + 1).copied().unwrap_or(u64::MAX);
        for (i, &time) in self.times.iter().enumerate().skip(first + 1) {
            let on_step = copies(chunk, self.step(i));
            if time - from >= length {
                if on_step < min_copies {
                    until = until.min(time - length + 1);
                    break;
                }
                // A later step matters no sooner.
                if time - length >= until {
                    break;
                }
            } else if on_step <= min_copies {
                min_copies = on_step;
                until = self.times.get(i + 1).copied().unwrap_or(u64::MAX);
            }
        }
        (min_copies, until)
    }

    /// Writes to `out` the minimum free amount of each resource over `length` from `from` on, as long as a chunk fits in
    /// it. Returns whether it does to the end.
    pub(crate) fn min_free_for(&self, from: u64, length: u64, chunk: &[u64], out: &mut [u64]) -> bool {
        let first = self.at(from);
        out.copy_from_slice(self.step(first));
        for i in first + 1..self.times.len() {
            if self.times[i] - from >= length || !fits(chunk, out) {
                break;
            }
            out.iter_mut().zip(self.step(i)).for_each(|(o, f)| *o = (*o).min(*f));
        }
        fits(chunk, out)
    }
}
