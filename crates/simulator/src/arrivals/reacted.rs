//! A run whose users reacted, as a run of a workload that was submitted in this way.

use evenhand_model::{NO_TIME, Time, Workload};

use crate::{Assignment, Simulated, UserTasks};

/// The workload that users who react submitted in a run, and the run with its rows. Whatever measures a run of a log
/// measures this one, too.
#[derive(Clone, Debug)]
pub struct Reacted {
    /// The workload in the order of its submissions in the run. What was never submitted, as after an early end, comes
    /// last, at the end of time.
    pub workload: Workload,
    /// The tasks of its users.
    pub tasks: UserTasks,
    /// The run.
    pub run: Simulated,
    /// By row: the row of the original workload.
    pub rows: Vec<u32>,
}

impl Reacted {
    /// Takes the submissions of a run of [`simulate_reactions`](crate::simulate_reactions) into the workload; those of
    /// another run are the workload's.
    ///
    /// # Panics
    /// Panics if the run is not of this workload.
    pub fn new(workload: &Workload, run: Simulated) -> Reacted {
        let submitted = |row: u32| match &run.submissions {
            None => workload.columns().submit[row as usize],
            Some(found) => match found[row as usize] {
                NO_TIME => Time::MAX,
                time => Time::from_nanos(time),
            },
        };
        let mut rows: Vec<u32> = (0..workload.len() as u32).collect();
        rows.sort_by_key(|row| submitted(*row));
        let workload = workload.resubmitted(&rows, rows.iter().map(|row| submitted(*row)).collect());
        Reacted { tasks: UserTasks::new(&workload), workload, run: run.with_rows(&rows), rows }
    }
}

impl Simulated {
    /// Returns the same run with its rows in another order, at the times of the workload.
    fn with_rows(self, rows: &[u32]) -> Simulated {
        fn gather<T: Copy>(column: &[T], rows: &[u32]) -> Vec<T> {
            // A column that a run does not have is empty.
            if column.is_empty() { Vec::new() } else { rows.iter().map(|row| column[*row as usize]).collect() }
        }
        let mut new_row = vec![0; rows.len()];
        for (new, old) in (0u32..).zip(rows) {
            new_row[*old as usize] = new;
        }
        let machines = self.machines.map(|mut on| {
            on.finishes = gather(&on.finishes, rows);
            on.first_reservation = gather(&on.first_reservation, rows);
            let moved = |placed: Assignment| Assignment { row: new_row[placed.row as usize], ..placed };
            on.placed = on.placed.into_iter().map(moved).collect();
            if let Some(slurm) = &mut on.slurm {
                slurm.started_by = gather(&slurm.started_by, rows);
            }
            on
        });
        Simulated {
            submissions: None,
            starts: gather(&self.starts, rows),
            rejections: gather(&self.rejections, rows),
            machines,
            ..self
        }
    }
}
