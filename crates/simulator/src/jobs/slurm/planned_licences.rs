//! Licences in backfill's plan (`bf_licenses`): which running and planned jobs hold when.

use evenhand_model::Workload;

use super::super::licences::JobLicences;

/// The licences that a run of backfill plans with.
#[derive(Clone, Debug)]
pub(super) struct PlannedLicences<'a> {
    workload: &'a Workload,
    licences: &'a JobLicences,
    /// From when to when which row holds its own.
    held: Vec<(u64, u64, u32)>,
}

impl<'a> PlannedLicences<'a> {
    pub(super) fn new(workload: &'a Workload, licences: &'a JobLicences) -> PlannedLicences<'a> {
        PlannedLicences { workload, licences, held: Vec::new() }
    }

    /// A row holds its licences from `from` to `to`.
    pub(super) fn hold(&mut self, from: u64, to: u64, row: u32) {
        if !self.licences.of(self.workload, row as usize).is_empty() {
            self.held.push((from, to, row));
        }
    }

    /// Whether what a row needs is left from `from` to `to`, that instant included, as backfill compares.
    pub(super) fn are_left(&self, row: u32, from: u64, to: u64) -> bool {
        self.last_shortage(row, from, to).is_none()
    }

    /// The first instant, `at` or a later one, from which what a row needs is left for so long.
    pub(super) fn earliest(&self, row: u32, mut at: u64, length: u64) -> u64 {
        while let Some(end) = self.last_shortage(row, at, at.saturating_add(length)) {
            at = end;
        }
        at
    }

    /// The end of the last interval between two instants in which too few are left.
    fn last_shortage(&self, row: u32, from: u64, to: u64) -> Option<u64> {
        let needed = self.licences.of(self.workload, row as usize);
        if needed.is_empty() {
            return None;
        }
        // What is left only falls where a job begins to hold some, so a shortage begins there, or at `from`.
        let meets = |&&(begin, end, _): &&(u64, u64, u32)| end > from && begin <= to;
        let begins = self.held.iter().filter(meets).map(|(begin, ..)| (*begin).max(from));
        let is_short = |at: u64| {
            let holders = self.held.iter().filter(|(begin, end, _)| *begin <= at && at < *end);
            let mut left = self.licences.counts().to_vec();
            for (_, _, holder) in holders {
                for (licence, count) in self.licences.of(self.workload, *holder as usize) {
                    left[*licence] = left[*licence].saturating_sub(*count);
                }
            }
            needed.iter().any(|(licence, count)| *count > left[*licence])
        };
        let last = begins.filter(|at| is_short(*at)).max()?;
        // It lasts at least until one of its holders gives some back.
        self.held.iter().filter(|(begin, end, _)| *begin <= last && last < *end).map(|(_, end, _)| *end).min()
    }
}
