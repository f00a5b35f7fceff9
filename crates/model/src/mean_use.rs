//! R: the mean use of each resource in a workload.

use dashu_int::UBig;
use dashu_ratio::RBig;

use crate::{Rational, Span, Time, Workload};

/// The time mean of the amounts that the tasks of a workload held, from their original starts to their finishes.
///
/// This is R in Sadok et al. (2021); the capacities of a study are multiples of it. A task without an original start
/// counts as if it had started when submitted. The period lasts from the first start to the last finish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeanUse {
    /// The exact mean use, one entry per resource in the workload's own unit; 0 if the period is empty.
    pub units: Vec<Rational>,
    /// The first start.
    pub first_start: Time,
    /// The last finish.
    pub last_finish: Time,
}

impl MeanUse {
    /// Returns the time from the first start to the last finish.
    pub fn period(&self) -> Span {
        self.last_finish - self.first_start
    }
}

/// Computes R, in time proportional to the rows of the workload.
///
/// ```
/// use evenhand_model::*;
/// let mut b = WorkloadBuilder::new([Resource::new("cpu", "")]);
/// for submit in [0, 10] {
///     let duration = Span::from_secs(10);
///     let one = [1_000_000_000];
///     b.push(&Task { submit: Time::from_secs(submit), duration, user: "a", amounts: &one, ..Task::default() });
/// }
/// assert_eq!(to_f64(&mean_use(&b.finish().unwrap()).units[0]), 1.0);
/// ```
pub fn mean_use(w: &Workload) -> MeanUse {
    let m = w.resources().len();
    // Task-time per demand vector first: one multiplication per row, and the amounts once per distinct vector.
    let mut held = vec![0u128; w.demands().len()];
    let (mut first, mut last) = (Time::MAX, Time::ZERO);
    let c = w.columns();
    for row in 0..w.len() {
        let start = w.start(row).unwrap_or(c.submit[row]);
        first = first.min(start);
        last = last.max(start + c.duration[row]);
        // 2^62 ns times a 32-bit count, summed over 2^32 rows, stays below 2^126.
        held[c.demand[row].index()] += u128::from(c.duration[row].nanos()) * u128::from(w.count(row));
    }
    let period = last - first;
    let units = (0..m)
        .map(|r| {
            let area = w
                .demands()
                .rows()
                .fold(UBig::ZERO, |area, (id, amounts)| area + UBig::from(held[id.index()]) * UBig::from(amounts[r].0));
            if period == Span::ZERO {
                return RBig::ZERO;
            }
            let steps = UBig::from(period.nanos()) * UBig::from(w.resources()[r].steps());
            RBig::from_parts(area.into(), steps)
        })
        .collect();
    MeanUse { units, first_start: first, last_finish: last }
}
