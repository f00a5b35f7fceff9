//! Curves over time: waits, queue length, utilisation.

use std::collections::BTreeMap;

use evenhand_model::{Capacity, Span, Time, Workload};
use serde::{Deserialize, Serialize};

/// How many bins a run's time is cut into: wide enough in a figure that single bins are seen.
const BINS: u64 = 120;

/// Curves over time, in bins of equal width from the first submission to the end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The start of the first bin: seconds since the first submission (0).
    pub start_s: f64,
    /// The width of a bin.
    pub bin_s: f64,
    /// Mean wait of the started tasks submitted in each bin; `None` where there are none.
    pub mean_wait_s: Vec<Option<f64>>,
    /// Time mean of the number of tasks waiting in each bin.
    pub waiting: Vec<f64>,
    /// Time mean of what was held over capacity in each bin, by resource.
    pub utilization: BTreeMap<String, Vec<f64>>,
}

impl Series {
    /// Returns whether there are no curves.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// Time integrals of one level (tasks waiting, amount held) over the bins, exact.
///
/// An interval touches at most two bins in part and any number in whole; the whole ones are kept as
/// differences, so that adding an interval costs the same however long it is.
#[derive(Clone, Debug)]
struct Integral {
    partial: Vec<u128>,
    difference: Vec<i128>,
}

/// Where an interval lies among the bins.
#[derive(Clone, Copy)]
struct BinRange {
    first: usize,
    last: usize,
    /// Nanoseconds in the first and, if it is another, in the last bin.
    in_first: u64,
    in_last: u64,
}

impl Integral {
    fn new(bins: usize) -> Integral {
        Integral { partial: vec![0; bins + 1], difference: vec![0; bins + 2] }
    }

    fn add(&mut self, at: BinRange, level: u64) {
        self.partial[at.first] += u128::from(at.in_first) * u128::from(level);
        if at.last > at.first {
            self.partial[at.last] += u128::from(at.in_last) * u128::from(level);
            self.difference[at.first + 1] += i128::from(level);
            self.difference[at.last] -= i128::from(level);
        }
    }

    /// The integral over each bin of `width` nanoseconds.
    fn bins(&self, width: u64) -> impl Iterator<Item = u128> {
        self.partial.iter().zip(&self.difference).scan(0i128, move |level, (partial, difference)| {
            *level += difference;
            Some(partial + *level as u128 * u128::from(width))
        })
    }
}

/// Collects the curves of one run.
pub(crate) struct SeriesBuilder<'a> {
    workload: &'a Workload,
    origin: Time,
    end: Time,
    width: u64,
    bins: usize,
    wait_sum: Vec<u128>,
    wait_count: Vec<u64>,
    waiting: Integral,
    held: Vec<Integral>,
}

impl<'a> SeriesBuilder<'a> {
    pub(crate) fn new(workload: &'a Workload, origin: Time, end: Time) -> SeriesBuilder<'a> {
        let span = (end - origin).nanos();
        let width = span.div_ceil(BINS).max(1);
        // An instant has one bin, so that tasks submitted in it have one.
        let bins = span.div_ceil(width).max(1) as usize;
        SeriesBuilder {
            workload,
            origin,
            end,
            width,
            bins,
            // One more bin for the very end.
            wait_sum: vec![0; bins + 1],
            wait_count: vec![0; bins + 1],
            waiting: Integral::new(bins),
            held: vec![Integral::new(bins); workload.resources().len()],
        }
    }

    fn stretch(&self, from: Time, to: Time) -> BinRange {
        let (from, to) = ((from - self.origin).nanos(), (to.min(self.end) - self.origin).nanos());
        let (first, last) = ((from / self.width) as usize, (to / self.width) as usize);
        let in_first = to.min((first as u64 + 1) * self.width).saturating_sub(from);
        BinRange { first, last, in_first, in_last: to - last as u64 * self.width }
    }

    /// A task that started.
    pub(crate) fn task(&mut self, row: usize, submit: Time, start: Time, duration: Span) {
        let waited = self.stretch(submit, start);
        self.wait_sum[waited.first] += u128::from((start - submit).nanos());
        self.wait_count[waited.first] += 1;
        self.waiting.add(waited, 1);
        let ran = self.stretch(start, start + duration);
        for (held, amount) in self.held.iter_mut().zip(self.workload.amounts(row)) {
            held.add(ran, amount.0);
        }
    }

    /// A task that was still waiting at the end.
    pub(crate) fn task_still_pending(&mut self, submit: Time) {
        let waited = self.stretch(submit, self.end);
        self.waiting.add(waited, 1);
    }

    /// The curves, and the overall utilisation of each resource.
    pub(crate) fn finish(mut self, capacity: &Capacity) -> (Series, Vec<f64>) {
        // Submissions at the very end count in the last bin.
        let (sum, count) = (self.wait_sum[self.bins], self.wait_count[self.bins]);
        self.wait_sum[self.bins - 1] += sum;
        self.wait_count[self.bins - 1] += count;
        let span = (self.end - self.origin).nanos();
        // The last bin may be cut short by the end.
        let lengths: Vec<f64> =
            (0..self.bins as u64).map(|i| (span - i * self.width).min(self.width).max(1) as f64).collect();
        let over = |integral: &Integral, per: f64| -> Vec<f64> {
            integral.bins(self.width).zip(&lengths).map(|(area, ns)| area as f64 / (ns * per)).collect()
        };
        let names = self.workload.resources().iter().map(|r| r.name.clone());
        let utilization = names.zip(&self.held).enumerate().map(|(r, (name, h))| (name, over(h, capacity.steps(r))));
        let total = |(r, h): (usize, &Integral)| {
            let area: u128 = h.bins(self.width).sum();
            if span == 0 { 0.0 } else { area as f64 / (span as f64 * capacity.steps(r)) }
        };
        let series = Series {
            start_s: 0.0,
            bin_s: self.width as f64 / 1e9,
            mean_wait_s: (0..self.bins)
                .map(|i| match self.wait_count[i] {
                    0 => None,
                    n => Some(self.wait_sum[i] as f64 / (n as f64 * 1e9)),
                })
                .collect(),
            waiting: over(&self.waiting, 1.0),
            utilization: utilization.collect(),
        };
        (series, self.held.iter().enumerate().map(total).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against adding nanosecond by nanosecond.
        #[test]
        fn integrals_are_sums_over_every_instant(
            intervals in prop::collection::vec((0u64..50, 0u64..50, 0u64..9), 0..20),
            width in 1u64..60,
        ) {
            let bins = 50usize.div_ceil(width as usize);
            let mut integral = Integral::new(bins);
            let mut reference = vec![0u128; bins];
            for (a, b, level) in intervals {
                let (a, b) = (a.min(b), a.max(b));
                let stretch = BinRange {
                    first: (a / width) as usize,
                    last: (b / width) as usize,
                    in_first: b.min((a / width + 1) * width) - a,
                    in_last: b % width,
                };
                integral.add(stretch, level);
                (a..b).for_each(|t| reference[(t / width) as usize] += u128::from(level));
            }
            prop_assert_eq!(integral.bins(width).take(bins).collect::<Vec<_>>(), reference);
        }
    }
}
