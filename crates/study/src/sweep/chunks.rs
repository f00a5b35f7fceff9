//! Points in chunks, chunks in job arrays.

use std::num::NonZeroUsize;

/// Points that one task of a job array runs: of one workload, which it loads once.
pub type Chunk = Vec<usize>;

/// One job array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrayPlan {
    /// The chunk of its task 0.
    pub first: usize,
    /// How many tasks it has.
    pub tasks: usize,
}

/// A task of an array takes about so long: starting one costs Slurm some 20 ms, and one that was lost is soon repeated.
const CHUNK_SECONDS: f64 = 30.0;
/// Simulated tasks a second, at the slow end of what is measured; and loading, counted once a chunk.
const TASKS_PER_SECOND: f64 = 1e6;

/// Cuts points into chunks: of one workload, in order, each of `size` points at most, or, without, of as many as are
/// expected to take half a minute together. `points` are numbers, places of workloads, and tasks.
pub fn chunks(points: &[(usize, usize, u64)], size: Option<NonZeroUsize>) -> Vec<Chunk> {
    let mut chunks: Vec<Chunk> = Vec::new();
    let (mut of, mut seconds) = (None, 0.0);
    for &(number, workload, tasks) in points {
        let takes = tasks as f64 / TASKS_PER_SECOND;
        let full = match (size, chunks.last()) {
            (_, None) => true,
            (Some(size), Some(chunk)) => chunk.len() >= size.get(),
            (None, Some(_)) => seconds + takes > CHUNK_SECONDS,
        };
        if full || of != Some(workload) {
            chunks.push(Vec::new());
            // Loading takes about as long as a run.
            (of, seconds) = (Some(workload), takes);
        }
        seconds += takes;
        if let Some(chunk) = chunks.last_mut() {
            chunk.push(number);
        }
    }
    chunks
}

/// Cuts chunks into job arrays. An index must be below Slurm's `MaxArraySize`, so an array has so many tasks at most,
/// from 0 on; `max_tasks` is what `SchedulerParameters` may limit besides. Empty if a limit is 0: then Slurm has no
/// job arrays.
pub fn arrays(chunks: usize, max_array_size: usize, max_tasks: Option<usize>) -> Vec<ArrayPlan> {
    let most = max_array_size.min(max_tasks.unwrap_or(usize::MAX));
    if most == 0 {
        return Vec::new();
    }
    (0..chunks).step_by(most).map(|first| ArrayPlan { first, tasks: most.min(chunks - first) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Every point is in one chunk, in order; a chunk is of one workload and as long as it may be.
        #[test]
        fn chunks_keep_order_and_hold_one_workload_each(
            lengths in prop::collection::vec((0usize..30, 1u64..100_000_000), 0..6),
            size in prop::option::of(1usize..9),
        ) {
            let mut points = Vec::new();
            for (workload, (length, tasks)) in lengths.iter().enumerate() {
                (0..*length).for_each(|_| points.push((points.len() * 2, workload, *tasks)));
            }
            let cut = chunks(&points, size.and_then(NonZeroUsize::new));
            let numbers: Vec<usize> = points.iter().map(|p| p.0).collect();
            prop_assert_eq!(cut.concat(), numbers);
            let of = |number: &usize| points[number / 2].1;
            for (at, chunk) in cut.iter().enumerate() {
                prop_assert!(!chunk.is_empty() && chunk.iter().all(|n| of(n) == of(&chunk[0])));
                let tasks = points[chunk[0] / 2].2 as f64;
                let ends_early = cut.get(at + 1).is_some_and(|next| of(&next[0]) == of(&chunk[0]));
                let seconds = |points: usize| (points + 1) as f64 * tasks / TASKS_PER_SECOND;
                match size {
                    Some(size) => prop_assert!(chunk.len() == size || (chunk.len() < size && !ends_early)),
                    None => {
                        prop_assert!(chunk.len() == 1 || seconds(chunk.len()) <= CHUNK_SECONDS * (1.0 + 1e-9));
                        prop_assert!(!ends_early || seconds(chunk.len() + 1) > CHUNK_SECONDS * (1.0 - 1e-9));
                    }
                }
            }
        }

        /// Every chunk is in one array, and no index reaches the limit.
        #[test]
        fn arrays_cover_the_chunks_and_stay_below_the_limit(
            count in 0usize..5000, limit in 1usize..1200, tasks in prop::option::of(1usize..1200),
        ) {
            let plans = arrays(count, limit, tasks);
            let mut next = 0;
            for plan in &plans {
                prop_assert_eq!(plan.first, next);
                prop_assert!(plan.tasks >= 1 && plan.tasks - 1 < limit && plan.tasks <= tasks.unwrap_or(usize::MAX));
                next += plan.tasks;
            }
            prop_assert_eq!(next, count);
            prop_assert_eq!(plans.len(), count.div_ceil(limit.min(tasks.unwrap_or(usize::MAX))));
        }
    }

    #[test]
    fn a_slurm_without_arrays_takes_none() {
        assert!(arrays(5, 0, None).is_empty());
        assert!(arrays(5, 10, Some(0)).is_empty());
        assert!(arrays(0, 10, None).is_empty());
    }
}
