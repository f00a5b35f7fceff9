//! A log of a site, for verbs that ask about its jobs.

use evenhand_forecast::Log;
use evenhand_model::Workload;

use super::times::LogClock;
use super::workloads::read_numbered_workload;
use crate::arguments::{Common, LogArgs};
use crate::failure::Failure;
use crate::output::console::Console;

/// A log of a site, as it was read and as forecasts take it.
pub(crate) struct SiteLog {
    pub(crate) name: String,
    pub(crate) workload: Workload,
    pub(crate) log: Log,
    pub(crate) clock: LogClock,
    /// The numbers by which the log calls the jobs of the workload's rows; empty if it does not number them.
    numbers: Vec<u64>,
}

impl SiteLog {
    pub(crate) fn read(args: &LogArgs, common: &Common, console: &Console) -> Result<SiteLog, Failure> {
        let (workload, numbers) = read_numbered_workload(&args.log, &args.trace(), common, console)?;
        let name = args.log.display().to_string();
        let log = Log::of(&workload).map_err(|e| Failure::Input(format!("{name}: {e}")))?;
        let clock = LogClock::of(&workload);
        Ok(SiteLog { name, workload, log, clock, numbers })
    }

    /// Returns the number by which the log calls a job; its place by submission, from 1, if it has no numbers.
    pub(crate) fn number(&self, job: usize) -> u64 {
        let row = self.log.row(job);
        self.numbers.get(row).copied().unwrap_or(row as u64 + 1)
    }

    /// Finds the job with a number.
    pub(crate) fn job(&self, number: u64) -> Result<usize, Failure> {
        let jobs = 0..self.log.jobs().len();
        jobs.clone().find(|&job| self.number(job) == number).ok_or_else(|| {
            let (first, last) = (self.number(0), self.number(jobs.end - 1));
            Failure::Input(format!(
                "{}: found no job {number} that started, expected one of the log, whose first is {first} and whose last is {last}",
                self.name
            ))
        })
    }
}
