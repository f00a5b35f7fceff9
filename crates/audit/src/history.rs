//! What happened: a workload and when its tasks started.

use evenhand_model::{Amount, Capacity, CapacityError, NO_TIME, Rational, Resource, Time, UBig, Workload};
use thiserror::Error;

use crate::walk::MOST_RESOURCES;

/// No row.
pub(crate) const NO_ROW: u32 = u32::MAX;

/// A past: the tasks of a workload, when each started, and the events in order.
///
/// Tasks without a start are left out and counted: whether they ever held or kept waiting is unknown.
#[derive(Clone, Debug)]
pub struct Past<'a> {
    workload: &'a Workload,
    starts: &'a [u64],
    /// Rows with a start, by start; equal starts by row.
    by_start: Vec<u32>,
    /// Rows with a start and a duration, by finish; equal finishes by row.
    by_finish: Vec<u32>,
    /// The most held at once, in steps, one entry a resource.
    peak: Vec<u64>,
}

/// Why there is nothing to audit.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PastError {
    /// No task has a start.
    #[error("no task has a start, so there is no past to hold against anything")]
    NoStarts,
    /// More is held at once than 64 bits count.
    #[error("more than 18446744073709551615 steps of {resource} are held at once; give the trace in a larger unit")]
    TooMuch {
        /// The resource's name.
        resource: String,
    },
    /// More rows than numbers for them.
    #[error("{rows} rows are more than an audit can number (4294967294)")]
    TooManyRows {
        /// How many there are.
        rows: usize,
    },
    /// More resources than an audit keeps apart.
    #[error("{found} resources are more than an audit keeps apart ({MOST_RESOURCES})")]
    TooManyResources {
        /// How many there are.
        found: usize,
    },
    /// The weights' common denominator is too large.
    #[error(
        "the users' weights as whole numbers of one common denominator add up to more than 9223372036854775807; give weights with fewer digits"
    )]
    Weights,
}

impl<'a> Past<'a> {
    /// The past a trace tells of, by its original starts.
    ///
    /// # Errors
    /// If no task has a start, or more is held at once than can be counted.
    pub fn original(workload: &'a Workload) -> Result<Past<'a>, PastError> {
        let starts = workload.columns().start.as_deref().ok_or(PastError::NoStarts)?;
        Past::with_starts(workload, starts)
    }

    /// The past in which row `i` started at `starts[i]` nanoseconds ([`NO_TIME`]: it did not), such as a
    /// simulation's.
    ///
    /// # Errors
    /// If no task has a start, or more is held at once than can be counted.
    ///
    /// # Panics
    /// If there is not one start a row.
    pub fn with_starts(workload: &'a Workload, starts: &'a [u64]) -> Result<Past<'a>, PastError> {
        assert_eq!(starts.len(), workload.len(), "one start a row");
        let found = workload.resources().len();
        if found > MOST_RESOURCES {
            return Err(PastError::TooManyResources { found });
        }
        let rows = u32::try_from(starts.len())
            .ok()
            .filter(|&n| n != NO_ROW)
            .ok_or(PastError::TooManyRows { rows: starts.len() })?;
        let mut by_start: Vec<u32> = (0..rows).filter(|&row| starts[row as usize] != NO_TIME).collect();
        if by_start.is_empty() {
            return Err(PastError::NoStarts);
        }
        let mut past = Past { workload, starts, by_start: Vec::new(), by_finish: Vec::new(), peak: Vec::new() };
        let lasting = |row: &u32| workload.columns().duration[*row as usize].nanos() > 0;
        let mut by_finish: Vec<u32> = by_start.iter().copied().filter(lasting).collect();
        by_start.sort_by_key(|&row| starts[row as usize]);
        by_finish.sort_by_key(|&row| past.finish(row));
        (past.by_start, past.by_finish) = (by_start, by_finish);
        past.peak = past.measure_peak()?;
        Ok(past)
    }

    /// The workload.
    pub fn workload(&self) -> &'a Workload {
        self.workload
    }

    /// How many rows have no start and are left out.
    pub fn left_out(&self) -> usize {
        self.starts.len() - self.by_start.len()
    }

    /// The most held at once of each resource.
    pub fn peak(&self) -> Vec<Amount> {
        self.peak.iter().map(|&p| Amount(p)).collect()
    }

    /// The capacity to assume when nobody knows it: of each resource the most held at once, or what the
    /// largest task asks for, if that is more (a task of no duration is never held). A resource nobody asks for keeps nobody
    /// waiting; it gets one unit.
    ///
    /// # Errors
    /// Never, as it is not zero; the type is [`Capacity::new`]'s.
    pub fn peak_capacity(&self) -> Result<Capacity, CapacityError> {
        let resources = self.workload.resources();
        let units = resources.iter().enumerate().map(|(r, resource)| {
            let largest = self.workload.demands().rows().map(|(_, demand)| demand[r].0).max().unwrap_or(0);
            match self.peak[r].max(largest) {
                0 => Rational::ONE,
                steps => units(resource, steps),
            }
        });
        Capacity::new(resources, units.collect())
    }

    /// When `row`, which has a start, starts, in nanoseconds.
    pub(crate) fn start(&self, row: u32) -> u64 {
        self.starts[row as usize]
    }

    pub(crate) fn has_start(&self, row: u32) -> bool {
        self.starts[row as usize] != NO_TIME
    }

    /// When `row`, which has a start, finishes, in nanoseconds.
    pub(crate) fn finish(&self, row: u32) -> u64 {
        // Both are at most 2^62.
        self.starts[row as usize] + self.workload.columns().duration[row as usize].nanos()
    }

    pub(crate) fn submit(&self, row: u32) -> u64 {
        self.workload.columns().submit[row as usize].nanos()
    }

    pub(crate) fn by_start(&self) -> &[u32] {
        &self.by_start
    }

    pub(crate) fn by_finish(&self) -> &[u32] {
        &self.by_finish
    }

    /// Each row's next of the same user in submission order, and each user's first; rows without a start
    /// are left out.
    pub(crate) fn rows_of_users(&self) -> (Vec<u32>, Vec<u32>) {
        let users = self.workload.users().len();
        self.rows_of(users, &(0..users as u32).collect::<Vec<_>>())
    }

    /// The same for `parties` parties, of which each user is in one.
    pub(crate) fn rows_of(&self, parties: usize, of_user: &[u32]) -> (Vec<u32>, Vec<u32>) {
        let mut first = vec![NO_ROW; parties];
        let mut next = vec![NO_ROW; self.starts.len()];
        for (row, user) in self.workload.columns().user.iter().enumerate().rev() {
            if self.starts[row] != NO_TIME {
                next[row] = std::mem::replace(&mut first[of_user[user.index()] as usize], row as u32);
            }
        }
        (first, next)
    }

    /// The first event and the last one.
    pub(crate) fn ends(&self) -> (Time, Time) {
        let started = self.by_start.iter().map(|&row| self.submit(row).min(self.start(row)));
        let finish = self.by_finish.last().map(|&row| self.finish(row));
        let last = self.by_start.last().map(|&row| self.start(row)).max(finish);
        (Time::from_nanos(started.min().unwrap_or(0)), Time::from_nanos(last.unwrap_or(0)))
    }

    /// Of each resource the most held at once, and one task more.
    pub(crate) fn most(&self) -> Vec<u64> {
        let held = |(r, &peak): (usize, &u64)| u64::try_from(u128::from(peak) + self.largest(r)).unwrap_or(u64::MAX);
        self.peak.iter().enumerate().map(held).collect()
    }

    fn measure_peak(&self) -> Result<Vec<u64>, PastError> {
        let resources = self.workload.resources();
        let mut held = vec![0u128; resources.len()];
        let mut peak = held.clone();
        let mut finishes = self.by_finish.iter().copied().peekable();
        // At one instant finishes come first: what is held for no time is not held.
        for &row in self.by_start.iter().filter(|&&row| self.workload.columns().duration[row as usize].nanos() > 0) {
            while let Some(done) = finishes.next_if(|&done| self.finish(done) <= self.start(row)) {
                self.amounts(done).zip(&mut held).for_each(|(amount, h)| *h -= amount);
            }
            for ((amount, h), p) in self.amounts(row).zip(&mut held).zip(&mut peak) {
                *h += amount;
                *p = (*p).max(*h);
            }
        }
        let too_much = |r: &Resource| PastError::TooMuch { resource: r.name.clone() };
        // What is held and one task more must still fit.
        let most = |r: usize| u128::from(u64::MAX) - self.largest(r);
        let counted = |(r, p): (usize, u128)| {
            u64::try_from(p).ok().filter(|&p| u128::from(p) <= most(r)).ok_or_else(|| too_much(&resources[r]))
        };
        peak.into_iter().enumerate().map(counted).collect()
    }

    fn largest(&self, r: usize) -> u128 {
        self.workload.demands().rows().map(|(_, demand)| u128::from(demand[r].0)).max().unwrap_or(0)
    }

    /// What all copies of `row` hold together.
    fn amounts(&self, row: u32) -> impl Iterator<Item = u128> {
        let count = u128::from(self.workload.count(row as usize));
        self.workload.amounts(row as usize).iter().map(move |a| u128::from(a.0) * count)
    }
}

fn units(resource: &Resource, steps: u64) -> Rational {
    Rational::from_parts(steps.into(), UBig::from(resource.steps()))
}
