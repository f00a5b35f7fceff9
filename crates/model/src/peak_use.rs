//! The largest use of each resource at any time in a workload.

use dashu_int::UBig;

use crate::{NO_TIME, Rational, Time, Workload};

/// The largest amount of each resource that the tasks of a workload held at once, by their original starts.
///
/// Where no task has an original start, each counts as if it had started when submitted. Where some have one, those without
/// did not run, and hold nothing. A task that ends at an instant holds
/// nothing at that instant, so that one that starts then may take its place; a task without duration holds nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeakUse {
    /// The exact peak, one entry per resource in the workload's own unit.
    pub units: Vec<Rational>,
    /// When each peak was first reached.
    pub at: Vec<Time>,
}

/// Computes the peak use, in time proportional to n log n for n rows.
///
/// ```
/// use evenhand_model::*;
/// let mut b = WorkloadBuilder::new([Resource::new("cpu", "")]);
/// for (submit, seconds) in [(0, 10), (5, 5), (10, 10)] {
///     let (submit, duration) = (Time::from_secs(submit), Span::from_secs(seconds));
///     b.push(&Task { submit, duration, user: "a", amounts: &[1_000_000_000], ..Task::default() });
/// }
/// let peak = peak_use(&b.finish().unwrap());
/// assert_eq!((to_f64(&peak.units[0]), peak.at[0]), (2.0, Time::from_secs(5)));
/// ```
pub fn peak_use(w: &Workload) -> PeakUse {
    let columns = w.columns();
    // Finishes (false) come before starts (true) of the same instant.
    let mut events: Vec<(Time, bool, u32)> = Vec::with_capacity(2 * w.len());
    let has_starts = columns.start.as_ref().is_some_and(|starts| starts.iter().any(|start| *start != NO_TIME));
    let ran = |row: &usize| columns.duration[*row].nanos() > 0 && (!has_starts || w.start(*row).is_some());
    for row in (0..w.len()).filter(ran) {
        let start = w.start(row).unwrap_or(columns.submit[row]);
        events.push((start, true, row as u32));
        events.push((start + columns.duration[row], false, row as u32));
    }
    events.sort_unstable();
    let width = w.resources().len();
    let (mut held, mut peak) = (vec![0u128; width], vec![(0u128, Time::ZERO); width]);
    for (time, starts, row) in events {
        let count = u128::from(w.count(row as usize));
        for ((held, peak), amount) in held.iter_mut().zip(&mut peak).zip(w.amounts(row as usize)) {
            let amount = u128::from(amount.0) * count;
            if starts {
                *held += amount;
                if *held > peak.0 {
                    *peak = (*held, time);
                }
            } else {
                *held -= amount;
            }
        }
    }
    let units = |(peak, resource): (&(u128, Time), &crate::Resource)| {
        Rational::from_parts(UBig::from(peak.0).into(), UBig::from(resource.steps()))
    };
    PeakUse {
        units: peak.iter().zip(w.resources()).map(units).collect(),
        at: peak.iter().map(|(_, time)| *time).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Resource, Span, Task, WorkloadBuilder};

    #[test]
    fn a_task_without_a_start_holds_nothing_where_others_have_one() {
        let peak = |starts: [Option<u64>; 3]| {
            let mut b = WorkloadBuilder::new([Resource::new("cpu", "")]);
            for start in starts {
                let (start, duration) = (start.map(Time::from_secs), Span::from_secs(10));
                b.push(&Task { start, duration, user: "a", amounts: &[1_000_000_000], ..Task::default() });
            }
            peak_use(&b.finish().unwrap()).units
        };
        assert_eq!(peak([Some(0), None, Some(20)]), [Rational::ONE]);
        assert_eq!(peak([None; 3]), [Rational::from(3)]);
    }
}
