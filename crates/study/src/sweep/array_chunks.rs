//! Divides the points of a sweep into chunks, and chunks into Slurm job arrays.

use std::num::NonZeroUsize;

/// The numbers of the points that one task of a job array runs. They have one workload, which the task loads once.
pub type Chunk = Vec<usize>;

/// One job array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrayPlan {
    /// The chunk of its task 0.
    pub first: usize,
    /// The number of its tasks.
    pub tasks: usize,
}

/// The expected run time of an array's task, in seconds: long against the 20 ms that Slurm needs to start one, and
/// short enough to repeat a lost one soon.
const CHUNK_SECONDS: f64 = 30.0;
/// Simulated tasks per second: a low estimate from measurements. Loading is counted once per chunk.
const TASKS_PER_SECOND: f64 = 1e6;

/// Divides points, in order, into chunks of one workload each. A chunk has at most `size` points; without `size`, as
/// many as are expected to take half a minute together. `points` are tuples of number, index of the workload, and
/// tasks.
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

/// Divides chunks into job arrays. Indices start at 0 and must be below Slurm's `MaxArraySize`, which thus limits the
/// tasks of an array; `max_tasks` is the limit of `SchedulerParameters` (`max_array_tasks`). Returns no array if a
/// limit is 0, because Slurm then accepts no job arrays.
pub fn arrays(chunks: usize, max_array_size: usize, max_tasks: Option<usize>) -> Vec<ArrayPlan> {
    let limit = max_array_size.min(max_tasks.unwrap_or(usize::MAX));
    if limit == 0 {
        return Vec::new();
    }
    (0..chunks).step_by(limit).map(|first| ArrayPlan { first, tasks: limit.min(chunks - first) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Every point is in one chunk, in order; a chunk has one workload and the allowed length.
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
    fn a_limit_of_zero_gives_no_arrays() {
        assert!(arrays(5, 0, None).is_empty());
        assert!(arrays(5, 10, Some(0)).is_empty());
        assert!(arrays(0, 10, None).is_empty());
    }
}
