//! Job arrays in a pass or a run of backfill: their waiting tasks are one record of slurmctld's queue for each partition.

use std::collections::{HashMap, HashSet};

/// Of which arrays a pass or a run looks at no further task, by partition (`reject_array_job` of slurmctld).
#[derive(Debug, Default)]
pub(super) struct LookedArrays {
    closed: HashSet<(u32, usize)>,
    reserved: HashMap<(u32, usize), u32>,
}

impl LookedArrays {
    /// Whether a task of an array is looked at in a partition. No other one is then, unless this one starts or reserves nodes.
    pub(super) fn look(&mut self, array: Option<u32>, partition: usize) -> bool {
        array.is_none_or(|array| self.closed.insert((array, partition)))
    }

    /// Notes that a task started: the next one is looked at.
    pub(super) fn started(&mut self, array: Option<u32>, partition: usize) {
        array.iter().for_each(|array| _ = self.closed.remove(&(*array, partition)));
    }

    /// Notes that a task reserved nodes: the next one is looked at, unless `most` tasks have.
    pub(super) fn reserved(&mut self, array: Option<u32>, partition: usize, most: u32) {
        let Some(array) = array else { return };
        let reserved = self.reserved.entry((array, partition)).or_default();
        *reserved += 1;
        if *reserved < most {
            self.closed.remove(&(array, partition));
        }
    }
}
