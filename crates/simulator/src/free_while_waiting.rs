//! What is free of each kind of machine while jobs wait.
//!
//! Let q(t) be the number of jobs that wait at t, and f(t) the free part of what the machines of a kind have of a resource.
//! Then ∫ f q / ∫ q is what is free for a job that waits, each second of each job's wait weighing the same: if one job waits a
//! day while machines are free, that counts for more than a minute of ten jobs.
//!
//! The integral of q up to t comes from sums over submissions and ends of waits in their order, so the time is
//! that of a few searches for each job.

use evenhand_model::{NO_TIME, Rational, UBig, Workload, to_f64};

use crate::exact_sum::Sum;
use crate::{Jobs, Simulated, Site};

/// What is free of a kind of machine while jobs wait.
#[derive(Clone, Debug, PartialEq)]
pub struct FreeWhileWaiting {
    /// By resource: the free part; `None` of what the machines do not have.
    pub free: Vec<Option<f64>>,
    /// The part of all waits that is of jobs which may use machines of this kind and of which a part fits on one.
    pub may_use: f64,
}

impl FreeWhileWaiting {
    /// Measures a run by group of machines; empty if no job waited, or the jobs did not run on machines.
    pub fn measure(workload: &Workload, site: &Site, jobs: &Jobs, run: &Simulated) -> Vec<FreeWhileWaiting> {
        let Some(on) = &run.machines else { return Vec::new() };
        let end = run.end.nanos();
        let submits = &workload.columns().submit;
        let wait = |row: usize| {
            let (from, to) = (submits[row].nanos(), run.starts[row].min(end));
            (from < to && !run.is_rejected(row)).then_some((from, to))
        };
        let waits = Waits::new((0..workload.len()).filter_map(wait));
        let all = waits.until(end);
        if all == 0 {
            return Vec::new();
        }
        let width = workload.resources().len();
        let mut held = vec![vec![Sum::default(); width]; site.groups.len()];
        // The parts of a job lie side by side.
        let (mut last, mut waited) = (None, 0);
        for part in &on.placed {
            let row = part.row as usize;
            let (start, finish) = (run.starts[row], on.finishes[row].min(end));
            if start == NO_TIME || start >= finish {
                continue;
            }
            if last != Some((start, finish)) {
                last = Some((start, finish));
                waited = waits.until(finish) - waits.until(start);
            }
            let chunk = jobs.kinds[jobs.kind[row] as usize].of_size(part.size);
            for (sum, amount) in held[site.group_of(part.machine)].iter_mut().zip(chunk) {
                sum.add(waited, amount * u64::from(part.chunks));
            }
        }
        let mut of_kinds = vec![0u128; jobs.kinds.len()];
        for (row, kind) in jobs.kind.iter().enumerate() {
            of_kinds[*kind as usize] += wait(row).map_or(0, |(from, to)| u128::from(to - from));
        }
        let group = |(g, held): (usize, Vec<Sum>)| {
            let group = &site.groups[g];
            let free = |(r, held): (usize, Sum)| {
                let there = UBig::from(group.has[r]) * UBig::from(group.count) * UBig::from(all);
                let part = || Rational::from_parts(held.whole().into(), there.clone());
                (site.whole_machine(g as u16)[r] > 0).then(|| 1.0 - to_f64(&part()))
            };
            let may_use = jobs.kinds.iter().zip(&of_kinds).filter(|(kind, _)| kind.groups.contains(&(g as u16)));
            let may_use: u128 = may_use.map(|(_, waited)| waited).sum();
            FreeWhileWaiting {
                free: held.into_iter().enumerate().map(free).collect(),
                may_use: to_f64(&Rational::from_parts(may_use.into(), all.into())),
            }
        };
        held.into_iter().enumerate().map(group).collect()
    }
}

/// When jobs wait: the times at which waits begin and end, each in order, with the sum of those before.
struct Waits {
    begin: Vec<(u64, u128)>,
    end: Vec<(u64, u128)>,
}

impl Waits {
    fn new(waits: impl Iterator<Item = (u64, u64)>) -> Waits {
        let (begin, end) = waits.unzip();
        let in_order = |mut times: Vec<u64>| {
            times.sort_unstable();
            let sums = times.iter().scan(0, |sum, t| Some(std::mem::replace(sum, *sum + u128::from(*t))));
            let sums: Vec<u128> = sums.collect();
            times.into_iter().zip(sums).collect::<Vec<_>>()
        };
        Waits { begin: in_order(begin), end: in_order(end) }
    }

    /// How long jobs have waited until `t`, all together.
    fn until(&self, t: u64) -> u128 {
        let of = |times: &[(u64, u128)]| {
            let before = times.partition_point(|(time, _)| *time < t);
            let sum = before.checked_sub(1).map_or(0, |last| times[last].1 + u128::from(times[last].0));
            before as u128 * u128::from(t) - sum
        };
        of(&self.begin) - of(&self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn waits_until_a_time_are_those_of_each_job(
            waits in prop::collection::vec((0u64..20, 1u64..9), 0..12),
            t in 0u64..40,
        ) {
            let waits: Vec<(u64, u64)> = waits.into_iter().map(|(from, length)| (from, from + length)).collect();
            let each = waits.iter().map(|(from, to)| u128::from(t.min(*to).saturating_sub(*from)));
            prop_assert_eq!(Waits::new(waits.iter().copied()).until(t), each.sum::<u128>());
        }
    }
}
