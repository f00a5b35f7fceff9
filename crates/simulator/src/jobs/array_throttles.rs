//! Throttles of job arrays: how many tasks of an array may run at once.

use std::collections::HashMap;

use evenhand_model::{Detail, JobArray, Workload};

/// The throttles of the arrays of a workload.
#[derive(Clone, Debug, Default)]
pub(crate) struct ArrayThrottles {
    /// By text of the workload: the number of the array, and how many of its tasks may run at once if that is limited.
    of_text: Vec<(u32, Option<u32>)>,
    arrays: usize,
}

impl ArrayThrottles {
    pub(crate) fn new(workload: &Workload) -> ArrayThrottles {
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        let arrays = workload.details(Detail::Array).iter().map(|text| JobArray::parse(text));
        let of_text: Vec<(u32, Option<u32>)> = arrays
            .map(|array| {
                let next = numbers.len() as u32;
                (*numbers.entry(array.name).or_insert(next), array.throttle)
            })
            .collect();
        match of_text.iter().any(|(_, throttle)| throttle.is_some()) {
            true => ArrayThrottles { of_text, arrays: numbers.len() },
            false => ArrayThrottles::default(),
        }
    }

    /// Whether any array has a throttle.
    pub(crate) fn is_any(&self) -> bool {
        self.arrays > 0
    }

    /// The array of a row, and its throttle.
    fn of(&self, workload: &Workload, row: u32) -> Option<(u32, Option<u32>)> {
        if !self.is_any() {
            return None;
        }
        workload.detail_id(Detail::Array, row as usize).map(|text| self.of_text[text as usize])
    }
}

/// How many tasks of each array run (`tot_run_tasks` of slurmctld).
#[derive(Clone, Debug)]
pub(super) struct RunningTasks<'a> {
    workload: &'a Workload,
    throttles: &'a ArrayThrottles,
    /// By array.
    running: Vec<u32>,
}

impl<'a> RunningTasks<'a> {
    pub(super) fn new(workload: &'a Workload, throttles: &'a ArrayThrottles) -> RunningTasks<'a> {
        RunningTasks { workload, throttles, running: vec![0; throttles.arrays] }
    }

    /// Whether as many tasks of a row's array run as may (`job_array_start_test` of slurmctld).
    pub(super) fn are_enough(&self, row: u32) -> bool {
        let of_row = self.throttles.of(self.workload, row);
        of_row.is_some_and(|(array, most)| most.is_some_and(|most| self.running[array as usize] >= most))
    }

    pub(super) fn add(&mut self, row: u32) {
        if let Some((array, _)) = self.throttles.of(self.workload, row) {
            self.running[array as usize] += 1;
        }
    }

    pub(super) fn remove(&mut self, row: u32) {
        if let Some((array, _)) = self.throttles.of(self.workload, row) {
            self.running[array as usize] -= 1;
        }
    }
}
