//! A workload: the tasks of a trace as columns, sorted by submission.

mod builder;
mod column_operations;
mod columns;
mod details;
mod overflow;
mod requested;
mod task;
mod without_resource;

use std::collections::HashMap;

use thiserror::Error;

use self::requested::RequestedAmounts;
use crate::{Amount, DemandTable, JobArray, Names, Resource, Span, Time};

pub use builder::WorkloadBuilder;
pub use columns::{Batch, Columns, NO_ID, NO_NODES, NO_TIME, Nano, UserId};
pub use details::{Detail, Details, JobTasks, Requirements};
pub use overflow::{LargeWorkload, Overflow};
pub use task::Task;

/// A trace in memory, of about 36 bytes per row.
///
/// Rows are sorted by submission; rows of the same time keep the order of the source. Users, accounts, queues and
/// demand vectors are numbered by first appearance in that order. Methods that take a row panic if there is no such
/// row.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    resources: Vec<Resource>,
    users: Names,
    accounts: Names,
    queues: Names,
    details: Details<Names>,
    demands: DemandTable,
    requested: RequestedAmounts,
    columns: Columns,
    header: Vec<(String, String)>,
}

/// An error in building a workload.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WorkloadError {
    /// An amount is too large to be exact with the decimals of its resource.
    #[error("an amount of {resource} needs more than 18 digits; write the trace in a larger unit")]
    TooLarge {
        /// The resource's name.
        resource: String,
    },
    /// There are no tasks.
    #[error("no task is left in the workload")]
    Empty,
}

impl Workload {
    /// Returns the resources, in the order of every demand vector.
    pub fn resources(&self) -> &[Resource] {
        &self.resources
    }

    /// Returns the names of the users, indexed by [`UserId`].
    pub fn users(&self) -> &[String] {
        self.users.list()
    }

    /// Returns the id of the user named `name`.
    pub fn user_id(&self, name: &str) -> Option<UserId> {
        self.users.id(name).map(UserId)
    }

    /// Returns the names of the accounts.
    pub fn accounts(&self) -> &[String] {
        self.accounts.list()
    }

    /// Returns the names of the queues.
    pub fn queues(&self) -> &[String] {
        self.queues.list()
    }

    /// Returns the distinct texts of a detail.
    pub fn details(&self, detail: Detail) -> &[String] {
        self.details[detail].list()
    }

    /// Returns the distinct demand vectors.
    pub fn demands(&self) -> &DemandTable {
        &self.demands
    }

    /// Returns the columns.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// Returns the header of the trace (the header comments of SWF) as keys and values, in its order.
    pub fn header(&self) -> &[(String, String)] {
        &self.header
    }

    /// Returns the time that the log counts from, in seconds since 1970: that of `UnixStartTime` in its header, as in the
    /// Standard Workload Format; 0 if there is none, or the log counts from 1970 all the same.
    pub fn zero_s(&self) -> i64 {
        let first = self.columns.submit.first().map_or(0, |t| t.whole_secs());
        let header = self.header.iter().find(|(key, _)| key.eq_ignore_ascii_case("UnixStartTime"));
        header.and_then(|(_, value)| value.trim().parse().ok()).filter(|zero: &i64| first < *zero).unwrap_or(0)
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.columns.submit.len()
    }

    /// Returns whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.columns.submit.is_empty()
    }

    /// Returns the number of tasks: the sum of the counts of all rows.
    pub fn tasks(&self) -> u64 {
        match &self.columns.count {
            None => self.len() as u64,
            Some(counts) => counts.iter().map(|&c| u64::from(c)).sum(),
        }
    }

    /// Returns the amounts that row `row` holds while it runs, one per resource.
    pub fn amounts(&self, row: usize) -> &[Amount] {
        self.demands.row(self.columns.demand[row])
    }

    /// Returns the number of identical tasks in row `row`.
    pub fn count(&self, row: usize) -> u32 {
        self.columns.count.as_ref().map_or(1, |c| c[row])
    }

    /// Returns the original start of row `row`, if it is known.
    pub fn start(&self, row: usize) -> Option<Time> {
        optional(self.columns.start.as_deref(), row, NO_TIME).map(Time::from_nanos)
    }

    /// Returns when row `row` could first have started, after holds and dependencies, if it is known.
    pub fn eligible(&self, row: usize) -> Option<Time> {
        optional(self.columns.eligible.as_deref(), row, NO_TIME).map(Time::from_nanos)
    }

    /// Returns the wall time that row `row` requested, if it is known.
    pub fn requested(&self, row: usize) -> Option<Span> {
        optional(self.columns.requested.as_deref(), row, NO_TIME).map(Span::from_nanos)
    }

    /// Returns the number of nodes on which row `row` runs, if its source states it.
    pub fn nodes(&self, row: usize) -> Option<u32> {
        optional(self.columns.nodes.as_deref(), row, NO_NODES)
    }

    /// Returns the name of the account of row `row`, if it has one.
    pub fn account(&self, row: usize) -> Option<&str> {
        optional(self.columns.account.as_deref(), row, NO_ID).map(|id| self.accounts()[id as usize].as_str())
    }

    /// Returns the name of the queue of row `row`, if it has one.
    pub fn queue(&self, row: usize) -> Option<&str> {
        optional(self.columns.queue.as_deref(), row, NO_ID).map(|id| self.queues()[id as usize].as_str())
    }

    /// Returns what the source of row `row` states of it, if it does.
    pub fn detail(&self, detail: Detail, row: usize) -> Option<&str> {
        self.detail_id(detail, row).map(|id| self.details(detail)[id as usize].as_str())
    }

    /// Returns the index among [`details`](Workload::details) of what the source of row `row` states of it.
    pub fn detail_id(&self, detail: Detail, row: usize) -> Option<u32> {
        optional(self.columns.details[detail].as_deref(), row, NO_ID)
    }

    /// Replaces the users: `user` returns the name for each row. Users are numbered again, by first appearance.
    ///
    /// ```
    /// # use evenhand_model::*;
    /// # let mut b = WorkloadBuilder::new([Resource::new("cpu", "")]);
    /// # for account in ["x", "y"] {
    /// #     b.push(&Task { user: "ann", account: Some(account), amounts: &[1], ..Task::default() });
    /// # }
    /// # let w = b.finish().unwrap();
    /// assert_eq!(w.users(), ["ann"]);
    /// let w = w.with_users(|w, row| w.account(row).unwrap().to_string());
    /// assert_eq!(w.users(), ["x", "y"]);
    /// ```
    pub fn with_users(mut self, mut user: impl FnMut(&Workload, usize) -> String) -> Workload {
        let mut names = Names::default();
        let column = (0..self.len()).map(|row| UserId(names.intern(&user(&self, row)))).collect();
        self.columns.user = column;
        self.users = names;
        self
    }

    /// Returns a workload of these rows of this one, each with a new submission; a row may occur any number of times.
    /// Original starts move with their submissions. Users, names and demands keep their numbers, also those without a
    /// row.
    ///
    /// # Panics
    /// Panics if the submissions are not sorted, or are not as many as the rows.
    pub fn resubmitted(&self, rows: &[u32], submit: Vec<Time>) -> Workload {
        assert!(submit.is_sorted() && submit.len() == rows.len(), "a sorted submission for each row");
        fn gather<T: Copy>(column: &[T], rows: &[u32]) -> Vec<T> {
            rows.iter().map(|row| column[*row as usize]).collect()
        }
        let c = &self.columns;
        let started = |(row, submit): (&u32, &Time)| match self.start(*row as usize) {
            // A start beyond the end of time is not known.
            Some(start) => (submit.nanos() + start.nanos()).checked_sub(c.submit[*row as usize].nanos()),
            None => None,
        };
        let eligible = |(row, submit): (&u32, &Time)| {
            let eligible = self.eligible(*row as usize)?;
            (submit.nanos() + eligible.nanos()).checked_sub(c.submit[*row as usize].nanos())
        };
        let eligible = |moved| eligible(moved).unwrap_or(NO_TIME);
        let columns = Columns {
            start: c.start.is_some().then(|| rows.iter().zip(&submit).map(|s| started(s).unwrap_or(NO_TIME)).collect()),
            eligible: c.eligible.is_some().then(|| rows.iter().zip(&submit).map(eligible).collect()),
            duration: gather(&c.duration, rows),
            requested: c.requested.as_deref().map(|column| gather(column, rows)),
            user: gather(&c.user, rows),
            account: c.account.as_deref().map(|column| gather(column, rows)),
            queue: c.queue.as_deref().map(|column| gather(column, rows)),
            demand: gather(&c.demand, rows),
            requested_demand: c.requested_demand.as_deref().map(|column| gather(column, rows)),
            count: c.count.as_deref().map(|column| gather(column, rows)),
            nodes: c.nodes.as_deref().map(|column| gather(column, rows)),
            details: Details::from_fn(|detail| c.details[detail].as_deref().map(|column| gather(column, rows))),
            submit,
        };
        Workload {
            resources: self.resources.clone(),
            users: self.users.clone(),
            accounts: self.accounts.clone(),
            queues: self.queues.clone(),
            details: self.details.clone(),
            demands: self.demands.clone(),
            requested: self.requested.clone(),
            columns,
            header: self.header.clone(),
        }
    }

    /// Returns the workload with every row submitted when it became eligible, where that is known and not after its
    /// start, and how many rows that moves. Starts stay; rows of the same time keep their order.
    ///
    /// Tasks of an array with a throttle are submitted when the first task of the array became eligible: the later ones became
    /// so when the throttle let them start (`job_array_start_test` of slurmctld), which is for the schedule to decide.
    ///
    /// ```
    /// # use evenhand_model::*;
    /// # let mut b = WorkloadBuilder::new([Resource::new("cpu", "")]);
    /// # let s = Time::from_secs;
    /// # for (submit, eligible, start) in [(0, Some(s(50)), s(60)), (10, None, s(20))] {
    /// #     b.push(&Task { submit: s(submit), eligible, start: Some(start), user: "ann", amounts: &[1], ..Task::default() });
    /// # }
    /// # let w = b.finish().unwrap();
    /// assert_eq!(w.columns().submit, [Time::from_secs(0), Time::from_secs(10)]);
    /// let (w, moved) = w.submitted_when_eligible();
    /// assert_eq!((moved, &w.columns().submit[..]), (1, &[Time::from_secs(10), Time::from_secs(50)][..]));
    /// assert_eq!((w.start(0), w.start(1)), (Some(Time::from_secs(20)), Some(Time::from_secs(60))));
    /// ```
    pub fn submitted_when_eligible(self) -> (Workload, u64) {
        let times = self.release_times();
        let moved = self.later_than_submission(&times);
        if moved == 0 {
            return (self, 0);
        }
        let mut rows: Vec<u32> = (0..self.len() as u32).collect();
        rows.sort_by_key(|row| times[*row as usize]);
        let submit: Vec<Time> = rows.iter().map(|row| times[*row as usize]).collect();
        let start = self.columns.start.as_deref().map(|starts| rows.iter().map(|row| starts[*row as usize]).collect());
        let eligible =
            self.columns.eligible.as_deref().map(|times| rows.iter().map(|row| times[*row as usize]).collect());
        let mut released = self.resubmitted(&rows, submit);
        (released.columns.start, released.columns.eligible) = (start, eligible);
        (released, moved)
    }

    /// Returns from when on each row could have started: when it became eligible, as
    /// [`submitted_when_eligible`](Self::submitted_when_eligible) has it, else its submission.
    pub fn release_times(&self) -> Vec<Time> {
        let submits = &self.columns.submit;
        if self.columns.eligible.is_none() {
            return submits.clone();
        }
        let of_arrays = self.eligible_arrays();
        let released = |row: usize| {
            let of_array = self.detail_id(Detail::Array, row).and_then(|text| of_arrays[text as usize]);
            let eligible = of_array.or_else(|| self.eligible(row)).filter(|time| *time > submits[row]);
            eligible.filter(|time| self.start(row).is_none_or(|start| *time <= start)).unwrap_or(submits[row])
        };
        (0..self.len()).map(released).collect()
    }

    /// Returns how many rows became eligible after their submission, by their [release times](Self::release_times).
    pub fn eligible_later(&self) -> u64 {
        self.later_than_submission(&self.release_times())
    }

    fn later_than_submission(&self, times: &[Time]) -> u64 {
        times.iter().zip(&self.columns.submit).filter(|(released, submit)| released != submit).count() as u64
    }

    /// Returns how many rows are tasks of an array with a throttle.
    pub fn throttled_tasks(&self) -> u64 {
        let arrays = self.details(Detail::Array).iter().map(|text| JobArray::parse(text).throttle.is_some());
        let has_throttle: Vec<bool> = arrays.collect();
        if !has_throttle.contains(&true) {
            return 0;
        }
        let is_throttled =
            |row: &usize| self.detail_id(Detail::Array, *row).is_some_and(|text| has_throttle[text as usize]);
        (0..self.len()).filter(is_throttled).count() as u64
    }

    /// Returns when the first task of an array became eligible, by text of the array; `None` of arrays without a throttle.
    fn eligible_arrays(&self) -> Vec<Option<Time>> {
        let arrays: Vec<JobArray<'_>> = self.details(Detail::Array).iter().map(|text| JobArray::parse(text)).collect();
        let mut first: HashMap<&str, Time> = HashMap::new();
        for array in arrays.iter().filter(|array| array.throttle.is_some()) {
            first.insert(array.name, Time::from_nanos(NO_TIME));
        }
        for row in 0..self.len() {
            let array = self.detail_id(Detail::Array, row).map(|text| arrays[text as usize]);
            let Some(first) = array.and_then(|array| first.get_mut(array.name)) else { continue };
            *first = (*first).min(self.eligible(row).unwrap_or(self.columns.submit[row]));
        }
        arrays.iter().map(|array| first.get(array.name).copied()).collect()
    }

    /// Expands rows with a count, so that every row is one task.
    pub fn expanded(self) -> Workload {
        let mut c = self.columns;
        let Some(counts) = c.count.take() else { return Workload { columns: c, ..self } };
        fn repeat<T: Copy>(column: Vec<T>, counts: &[u32]) -> Vec<T> {
            column.into_iter().zip(counts).flat_map(|(v, &c)| std::iter::repeat_n(v, c as usize)).collect()
        }
        let columns = Columns {
            submit: repeat(c.submit, &counts),
            start: c.start.map(|v| repeat(v, &counts)),
            eligible: c.eligible.map(|v| repeat(v, &counts)),
            duration: repeat(c.duration, &counts),
            requested: c.requested.map(|v| repeat(v, &counts)),
            user: repeat(c.user, &counts),
            account: c.account.map(|v| repeat(v, &counts)),
            queue: c.queue.map(|v| repeat(v, &counts)),
            demand: repeat(c.demand, &counts),
            requested_demand: c.requested_demand.map(|v| repeat(v, &counts)),
            count: None,
            nodes: c.nodes.map(|v| repeat(v, &counts)),
            details: c.details.map(|column| column.map(|v| repeat(v, &counts))),
        };
        Workload { columns, ..self }
    }
}

fn optional<T: Copy + PartialEq>(column: Option<&[T]>, row: usize, none: T) -> Option<T> {
    column.map(|c| c[row]).filter(|v| *v != none)
}
