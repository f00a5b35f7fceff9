//! The columns of a workload.

use super::details::Details;
use crate::{DemandId, Span, Time};

/// An amount in billionths of a unit: nine decimals, of any size.
pub type Nano = u128;

/// The value of an optional id column for a task without one.
pub const NO_ID: u32 = u32::MAX;

/// The value of an optional time column for a task without one. Larger than every [`Time`] and [`Span`].
pub const NO_TIME: u64 = u64::MAX;

/// The value of an optional column of node counts for a task whose source states none.
pub const NO_NODES: u32 = 0;

/// The index of a user. Users are numbered in the order in which they first appear in the workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct UserId(pub u32);

impl UserId {
    /// Returns the id as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The columns of a [`Workload`](crate::Workload): one entry per row, all of the same length.
///
/// An optional column is absent if no row has a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// The time of submission, never decreasing.
    pub submit: Vec<Time>,
    /// The original start in nanoseconds, or [`NO_TIME`].
    pub start: Option<Vec<u64>>,
    /// The run time.
    pub duration: Vec<Span>,
    /// When the task could first have started, after holds and dependencies, in nanoseconds, or [`NO_TIME`].
    pub eligible: Option<Vec<u64>>,
    /// The requested wall time in nanoseconds, or [`NO_TIME`].
    pub requested: Option<Vec<u64>>,
    /// The user who submitted the task.
    pub user: Vec<UserId>,
    /// The index into [`Workload::accounts`](crate::Workload::accounts), or [`NO_ID`].
    pub account: Option<Vec<u32>>,
    /// The index into [`Workload::queues`](crate::Workload::queues), or [`NO_ID`].
    pub queue: Option<Vec<u32>>,
    /// The amounts that the task holds while it runs.
    pub demand: Vec<DemandId>,
    /// The amounts that the task requested where they differ from those that it holds, or [`DemandId::NONE`].
    pub requested_demand: Option<Vec<DemandId>>,
    /// The number of identical tasks, at least 1; absent if every row is one task.
    pub count: Option<Vec<u32>>,
    /// The number of nodes on which the task runs at once, in equal parts, or [`NO_NODES`].
    pub nodes: Option<Vec<u32>>,
    /// The indexes into [`Workload::details`](crate::Workload::details), or [`NO_ID`].
    pub details: Details<Option<Vec<u32>>>,
}

impl Columns {
    pub(super) fn assert_len(&self, rows: usize) {
        let optional =
            [&self.account, &self.queue, &self.count, &self.nodes].map(|c| c.as_ref().map_or(rows, Vec::len));
        let details = self.details.iter().all(|(_, ids)| ids.as_ref().is_none_or(|ids| ids.len() == rows));
        assert!(details, "columns of the same length");
        let times = [&self.start, &self.requested, &self.eligible].map(|c| c.as_ref().map_or(rows, Vec::len));
        let requested = self.requested_demand.as_ref().map_or(rows, Vec::len);
        let lens = [self.duration.len(), self.user.len(), self.demand.len(), requested];
        assert!(lens.iter().chain(&optional).chain(&times).all(|&l| l == rows), "columns of the same length");
    }
}

/// Tasks whose names and demand vectors are already numbered, for
/// [`WorkloadBuilder::append_batch`](crate::WorkloadBuilder::append_batch).
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The names of the users, indexed by the ids in `columns`.
    pub users: Vec<String>,
    /// The names of the accounts, indexed by the ids in `columns`.
    pub accounts: Vec<String>,
    /// The names of the queues, indexed by the ids in `columns`.
    pub queues: Vec<String>,
    /// The texts of details, indexed by the ids in `columns`.
    pub details: Details<Vec<String>>,
    /// The demand vectors in billionths, one after another, indexed by the ids in `columns`.
    pub demands: Vec<Nano>,
    /// The tasks, in any order.
    pub columns: Columns,
}
