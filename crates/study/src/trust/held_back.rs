//! Signs of rules that a log does not state: jobs that waited although they would have fitted.

use std::collections::BTreeSet;

use evenhand_model::{Capacity, NO_TIME, Workload};
use evenhand_simulator::Simulated;

/// Returns for which part of the time in which jobs waited the job that had waited longest would have fitted into what
/// was free; `None` if no job waited.
pub(super) fn held_back(workload: &Workload, capacity: &Capacity, logged: &Simulated) -> Option<f64> {
    let columns = workload.columns();
    // Finishes, then submissions, then starts.
    let mut events: Vec<(u64, u8, u32)> = Vec::with_capacity(3 * workload.len());
    for (row, start) in logged.starts.iter().copied().enumerate().filter(|(_, start)| *start != NO_TIME) {
        let at = row as u32;
        events.push((start + columns.duration[row].nanos(), 0, at));
        events.push((columns.submit[row].nanos(), 1, at));
        events.push((start, 2, at));
    }
    events.sort_unstable();
    // A log may hold more than the capacity.
    let mut free: Vec<i128> = capacity.amounts().iter().map(|amount| i128::from(amount.0)).collect();
    // Rows are in order of submission.
    let mut waiting: BTreeSet<u32> = BTreeSet::new();
    let (mut waited, mut fitted, mut last) = (0u128, 0u128, 0u64);
    for (time, what, row) in events {
        if let Some(first) = waiting.first().filter(|_| time > last) {
            let amounts = workload.amounts(*first as usize);
            waited += u128::from(time - last);
            if amounts.iter().zip(&free).all(|(amount, free)| i128::from(amount.0) <= *free) {
                fitted += u128::from(time - last);
            }
        }
        last = time;
        let row_amounts = workload.amounts(row as usize).iter().map(|amount| i128::from(amount.0));
        match what {
            0 => free.iter_mut().zip(row_amounts).for_each(|(free, amount)| *free += amount),
            1 => {
                waiting.insert(row);
            }
            _ => {
                free.iter_mut().zip(row_amounts).for_each(|(free, amount)| *free -= amount);
                waiting.remove(&row);
            }
        }
    }
    (waited > 0).then(|| fitted as f64 / waited as f64)
}
