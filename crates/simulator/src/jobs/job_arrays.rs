//! Job arrays, and their throttles: how many tasks of an array may run at once.

use std::collections::HashMap;

use evenhand_model::{Detail, JobArray, Workload};

/// The arrays of a workload.
#[derive(Clone, Debug, Default)]
pub(crate) struct JobArrays {
    /// By text of the workload: the number of the array, and how many of its tasks may run at once if that is limited.
    of_text: Vec<(u32, Option<u32>)>,
    arrays: usize,
    has_throttles: bool,
}

impl JobArrays {
    pub(crate) fn new(workload: &Workload) -> JobArrays {
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        let arrays = workload.details(Detail::Array).iter().map(|text| JobArray::parse(text));
        let of_text: Vec<(u32, Option<u32>)> = arrays
            .map(|array| {
                let next = numbers.len() as u32;
                (*numbers.entry(array.name).or_insert(next), array.throttle)
            })
            .collect();
        let has_throttles = of_text.iter().any(|(_, throttle)| throttle.is_some());
        JobArrays { of_text, arrays: numbers.len(), has_throttles }
    }

    /// Whether any array has a throttle.
    pub(crate) fn have_throttles(&self) -> bool {
        self.has_throttles
    }

    /// The number of the array of a row.
    pub(super) fn number_of(&self, workload: &Workload, row: u32) -> Option<u32> {
        self.of(workload, row).map(|(array, _)| array)
    }

    /// The text that names the array of a row and its throttle, if it has one.
    pub(super) fn throttled(&self, workload: &Workload, row: u32) -> Option<u32> {
        let text = workload.detail_id(Detail::Array, row as usize)?;
        self.of(workload, row).filter(|(_, throttle)| throttle.is_some()).map(|_| text)
    }

    /// The array of a row, and its throttle.
    fn of(&self, workload: &Workload, row: u32) -> Option<(u32, Option<u32>)> {
        if self.arrays == 0 {
            return None;
        }
        workload.detail_id(Detail::Array, row as usize).map(|text| self.of_text[text as usize])
    }
}

/// How many tasks of each array run (`tot_run_tasks` of slurmctld).
#[derive(Clone, Debug)]
pub(super) struct RunningTasks<'a> {
    workload: &'a Workload,
    arrays: &'a JobArrays,
    /// By array.
    running: Vec<u32>,
}

impl<'a> RunningTasks<'a> {
    pub(super) fn new(workload: &'a Workload, arrays: &'a JobArrays) -> RunningTasks<'a> {
        RunningTasks { workload, arrays, running: vec![0; arrays.arrays] }
    }

    /// Whether as many tasks of a row's array run as may (`job_array_start_test` of slurmctld).
    pub(super) fn are_enough(&self, row: u32) -> bool {
        let of_row = self.arrays.of(self.workload, row);
        of_row.is_some_and(|(array, most)| most.is_some_and(|most| self.running[array as usize] >= most))
    }

    pub(super) fn add(&mut self, row: u32) {
        if let Some((array, _)) = self.arrays.of(self.workload, row) {
            self.running[array as usize] += 1;
        }
    }

    pub(super) fn remove(&mut self, row: u32) {
        if let Some((array, _)) = self.arrays.of(self.workload, row) {
            self.running[array as usize] -= 1;
        }
    }
}
