//! Builds a workload from tasks in any order.

use std::io;
use std::sync::Arc;

use super::column_operations::{append_optional, push_optional, renumber, sort_by_submission};
use super::details::Details;
use super::overflow::{IdMaps, LargeWorkload, Overflow, Present, Run};
use super::requested::{RequestedAmounts, table_of};
use super::{Batch, Columns, NO_ID, NO_NODES, NO_TIME, Task, UserId, Workload, WorkloadError};
use crate::demand::DemandBuilder;
use crate::{DemandId, Names, Resource, Span, Time};

/// Collects tasks in any order and builds a [`Workload`].
///
/// Amounts are given in billionths ([`Nano`](crate::Nano)); [`finish`](WorkloadBuilder::finish) gives each resource the fewest
/// decimals with which all its amounts are exact.
#[derive(Clone, Debug)]
pub struct WorkloadBuilder {
    resources: Vec<Resource>,
    users: Names,
    accounts: Names,
    queues: Names,
    details: Details<Names>,
    demands: DemandBuilder,
    columns: Columns,
    header: Vec<(String, String)>,
    spilled: Spilled,
}

/// The rows of a builder that are on disk; they precede those in memory.
#[derive(Clone, Debug, Default)]
struct Spilled {
    overflow: Option<Overflow>,
    runs: Vec<Run>,
    present: Present,
    /// The rows in memory that the overflow counts.
    counted: usize,
}

/// The rows in memory after which a builder compares them with the limit again.
const COUNTED_AT_ONCE: usize = 1024;

impl WorkloadBuilder {
    /// Creates a builder for tasks that hold these resources, whose `decimals` are set at the end.
    ///
    /// # Panics
    /// Panics if there is no resource.
    pub fn new(resources: impl IntoIterator<Item = Resource>) -> WorkloadBuilder {
        let resources: Vec<Resource> = resources.into_iter().collect();
        assert!(!resources.is_empty(), "a workload has at least one resource");
        WorkloadBuilder {
            demands: DemandBuilder::new(resources.len()),
            resources,
            users: Names::default(),
            accounts: Names::default(),
            queues: Names::default(),
            details: Details::default(),
            columns: Columns::default(),
            header: Vec::new(),
            spilled: Spilled::default(),
        }
    }

    /// Makes the builder put rows on disk when those of all builders with this overflow do not fit in memory. Such a
    /// builder ends with [`finish_large`](WorkloadBuilder::finish_large) if it has [spilled](WorkloadBuilder::has_spilled).
    #[must_use]
    pub fn with_overflow(mut self, overflow: Overflow) -> WorkloadBuilder {
        self.spilled.overflow = Some(overflow);
        self
    }

    /// Returns whether some rows are on disk.
    pub fn has_spilled(&self) -> bool {
        !self.spilled.runs.is_empty()
    }

    /// Puts the rows in memory on disk if those of all builders with the same overflow need half of what they may. For a
    /// builder to which no rows are added for a while.
    pub fn rest(&mut self) {
        if self.spilled.overflow.as_ref().is_some_and(Overflow::is_half_full) {
            self.spill();
        }
    }

    /// Adds an entry to the header.
    pub fn add_header(&mut self, key: &str, value: &str) {
        self.header.push((key.to_string(), value.to_string()));
    }

    /// Returns the number of rows so far.
    pub fn len(&self) -> usize {
        let on_disk: u64 = self.spilled.runs.iter().map(Run::rows).sum();
        self.in_memory() + on_disk as usize
    }

    fn in_memory(&self) -> usize {
        self.columns.submit.len()
    }

    /// Returns whether there is no row so far.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds one row.
    ///
    /// # Panics
    /// Panics if `task.amounts` or `task.requested_amounts` does not have one entry per resource, or if `task.count` is 0.
    pub fn push(&mut self, task: &Task<'_>) {
        assert_eq!(task.amounts.len(), self.resources.len(), "one amount per resource");
        assert!(task.count > 0, "a count is at least 1");
        let n = self.in_memory();
        let user = UserId(self.users.intern(task.user));
        let account = task.account.map(|a| self.accounts.intern(a));
        let queue = task.queue.map(|q| self.queues.intern(q));
        let demand = self.demands.intern(task.amounts);
        let requested_demand = task.requested_amounts.filter(|amounts| *amounts != task.amounts).map(|amounts| {
            assert_eq!(amounts.len(), self.resources.len(), "one amount per resource");
            self.demands.intern(amounts)
        });
        for (detail, text) in task.details.iter() {
            let id = text.map(|text| self.details[detail].intern(text));
            push_optional(&mut self.columns.details[detail], n, id, NO_ID);
        }
        let c = &mut self.columns;
        c.submit.push(task.submit);
        c.duration.push(task.duration);
        c.user.push(user);
        c.demand.push(demand);
        push_optional(&mut c.requested_demand, n, requested_demand, DemandId::NONE);
        push_optional(&mut c.start, n, task.start.map(Time::nanos), NO_TIME);
        push_optional(&mut c.eligible, n, task.eligible.map(Time::nanos), NO_TIME);
        push_optional(&mut c.requested, n, task.requested.map(Span::nanos), NO_TIME);
        push_optional(&mut c.account, n, account, NO_ID);
        push_optional(&mut c.queue, n, queue, NO_ID);
        push_optional(&mut c.count, n, Some(task.count).filter(|&k| k > 1), 1);
        push_optional(&mut c.nodes, n, task.nodes.filter(|&n| n != NO_NODES), NO_NODES);
        self.spill_excess();
    }

    fn spill_excess(&mut self) {
        let rows = self.in_memory();
        let Some(overflow) = &self.spilled.overflow else { return };
        if rows >= self.spilled.counted + COUNTED_AT_ONCE {
            let full = overflow.hold(rows - self.spilled.counted);
            self.spilled.counted = rows;
            if full {
                self.spill();
            }
        }
    }

    /// Puts the rows in memory on disk.
    fn spill(&mut self) {
        let Some(overflow) = self.spilled.overflow.clone() else { return };
        let mut columns = std::mem::take(&mut self.columns);
        overflow.release(std::mem::take(&mut self.spilled.counted));
        if columns.submit.is_empty() {
            return;
        }
        if !columns.submit.is_sorted() {
            sort_by_submission(&mut columns);
        }
        self.spilled.present.add(&columns);
        self.spilled.runs.extend(overflow.write(&columns));
    }

    /// Appends the rows and the header of `other`.
    ///
    /// # Panics
    /// Panics if the two builders differ in their resources.
    pub fn append(&mut self, other: WorkloadBuilder) {
        assert_eq!(self.resources, other.resources, "the same resources");
        let Spilled { overflow: _, runs, present, counted } = other.spilled;
        if !runs.is_empty() {
            // Rows in memory follow those on disk: these come before the other's.
            self.spill();
        }
        self.spilled.counted += counted;
        self.spilled.present.merge(present);
        let ids = self.append_rows(Batch {
            users: other.users.into_list(),
            accounts: other.accounts.into_list(),
            queues: other.queues.into_list(),
            details: other.details.map(Names::into_list),
            demands: other.demands.into_rows(),
            columns: other.columns,
        });
        let ids = Arc::new(ids);
        self.spilled.runs.extend(runs.into_iter().map(|run| run.renumbered(&ids)));
        self.header.extend(other.header);
        self.spill_excess();
    }

    /// Removes the resource named `name` if no task holds any of it and another resource is left. For formats in which
    /// a resource is optional.
    pub fn remove_unused(&mut self, name: &str) {
        let Some(r) = self.resources.iter().position(|r| r.name == name) else { return };
        if self.resources.len() > 1 && self.demands.remove_if_unused(r) {
            self.resources.remove(r);
        }
    }

    /// Adds many rows at once. Equivalent to calling [`push`](WorkloadBuilder::push) for each, but names and vectors
    /// are looked up once per batch, not once per row.
    ///
    /// # Panics
    /// Panics if the columns differ in length, an id has no entry in the batch, or a count is 0.
    pub fn append_batch(&mut self, batch: Batch) {
        self.append_rows(batch);
        self.spill_excess();
    }

    /// Adds the rows of a batch, and returns the ids that its own became.
    fn append_rows(&mut self, batch: Batch) -> IdMaps {
        let n = self.in_memory();
        let Batch { users, accounts, queues, details, demands, columns: mut added } = batch;
        let rows = added.submit.len();
        added.assert_len(rows);
        assert!(added.count.iter().flatten().all(|&c| c > 0), "a count is at least 1");
        let users: Vec<u32> = users.iter().map(|u| self.users.intern(u)).collect();
        let accounts: Vec<u32> = accounts.iter().map(|a| self.accounts.intern(a)).collect();
        let queues: Vec<u32> = queues.iter().map(|q| self.queues.intern(q)).collect();
        let details = Details::from_fn(|detail| {
            details[detail].iter().map(|text| self.details[detail].intern(text)).collect::<Vec<u32>>()
        });
        let demands: Vec<DemandId> =
            demands.chunks_exact(self.resources.len()).map(|row| self.demands.intern(row)).collect();
        added.user.iter_mut().for_each(|u| *u = UserId(users[u.index()]));
        added.demand.iter_mut().for_each(|d| *d = demands[d.index()]);
        let requested = added.requested_demand.iter_mut().flatten().filter(|id| **id != DemandId::NONE);
        requested.for_each(|d| *d = demands[d.index()]);
        for (column, ids) in [(&mut added.account, &accounts), (&mut added.queue, &queues)] {
            column.iter_mut().flatten().filter(|id| **id != NO_ID).for_each(|id| *id = ids[*id as usize]);
        }
        for (detail, column) in added.details.iter_mut() {
            let known = column.iter_mut().flatten().filter(|id| **id != NO_ID);
            known.for_each(|id| *id = details[detail][*id as usize]);
        }
        let ids = IdMaps { users, accounts, queues, details, demands };
        if n == 0 {
            self.columns = added;
            return ids;
        }
        let c = &mut self.columns;
        c.submit.extend(added.submit);
        c.duration.extend(added.duration);
        c.user.extend(added.user);
        c.demand.extend(added.demand);
        append_optional(&mut c.requested_demand, added.requested_demand, n, rows, DemandId::NONE);
        append_optional(&mut c.start, added.start, n, rows, NO_TIME);
        append_optional(&mut c.eligible, added.eligible, n, rows, NO_TIME);
        append_optional(&mut c.requested, added.requested, n, rows, NO_TIME);
        append_optional(&mut c.account, added.account, n, rows, NO_ID);
        append_optional(&mut c.queue, added.queue, n, rows, NO_ID);
        append_optional(&mut c.count, added.count, n, rows, 1);
        append_optional(&mut c.nodes, added.nodes, n, rows, NO_NODES);
        for ((_, column), added) in c.details.iter_mut().zip(added.details.into_values()) {
            append_optional(column, added, n, rows, NO_ID);
        }
        ids
    }

    /// Builds the workload of a builder that has rows on disk; its chunks have the rows that
    /// [`finish`](WorkloadBuilder::finish) would have built. `buffers` is the memory for reading them, in bytes.
    ///
    /// # Errors
    /// Returns an error if an amount has more than 18 digits with the decimals of its resource, or if the temporary file
    /// cannot be written or read.
    pub fn finish_large(mut self, buffers: usize) -> io::Result<Result<LargeWorkload, WorkloadError>> {
        self.spill();
        if let Some(error) = self.spilled.overflow.as_ref().and_then(Overflow::take_error) {
            return Err(error);
        }
        let (demands, decimals) = match table_of(&self.demands, &self.resources) {
            Ok(found) => found,
            Err(error) => return Ok(Err(error)),
        };
        let requested = RequestedAmounts { demands: demands.clone(), decimals: decimals.clone() };
        for (resource, d) in self.resources.iter_mut().zip(decimals) {
            resource.decimals = d;
        }
        let workload = Workload {
            resources: self.resources,
            users: self.users,
            accounts: self.accounts,
            queues: self.queues,
            details: self.details,
            demands,
            requested,
            columns: Columns::default(),
            header: self.header,
        };
        LargeWorkload::new(workload, self.spilled.present, self.spilled.runs, buffers).map(Ok)
    }

    /// Builds the workload: sorts rows by submission (a stable sort), numbers users, accounts, queues and demand
    /// vectors by first appearance, and sets the decimals of each resource.
    ///
    /// The same rows in the same order within each submission time give equal workloads, however they were added. Takes
    /// O(n log n) for n rows, O(n) if they are already sorted.
    ///
    /// # Errors
    /// Returns an error if there is no row, or if an amount has more than 18 digits with the decimals of its resource.
    ///
    /// # Panics
    /// Panics if rows are on disk.
    pub fn finish(mut self) -> Result<Workload, WorkloadError> {
        assert!(!self.has_spilled(), "rows on disk end with finish_large");
        if self.is_empty() {
            return Err(WorkloadError::Empty);
        }
        let c = &mut self.columns;
        if !c.submit.is_sorted() {
            sort_by_submission(c);
        }
        for (column, none) in [(&mut c.start, NO_TIME), (&mut c.requested, NO_TIME), (&mut c.eligible, NO_TIME)] {
            column.take_if(|c| c.iter().all(|&v| v == none));
        }
        for (column, none) in
            [(&mut c.account, NO_ID), (&mut c.queue, NO_ID), (&mut c.count, 1), (&mut c.nodes, NO_NODES)]
        {
            column.take_if(|c| c.iter().all(|&v| v == none));
        }
        for (_, column) in c.details.iter_mut() {
            column.take_if(|c| c.iter().all(|&v| v == NO_ID));
        }
        c.requested_demand.take_if(|c| c.iter().all(|&v| v == DemandId::NONE));
        let users = renumber(self.users.len(), c.user.iter_mut().map(|u| &mut u.0));
        let accounts = renumber(self.accounts.len(), c.account.iter_mut().flatten());
        let queues = renumber(self.queues.len(), c.queue.iter_mut().flatten());
        let details =
            Details::from_fn(|detail| renumber(self.details[detail].len(), c.details[detail].iter_mut().flatten()));
        let demands = renumber(self.demands.len(), c.demand.iter_mut().map(|d| &mut d.0));
        let requested = renumber(self.demands.len(), c.requested_demand.iter_mut().flatten().map(|d| &mut d.0));
        let table = |order: &[u32]| {
            let too_large = |r: usize| WorkloadError::TooLarge { resource: self.resources[r].name.clone() };
            self.demands.finish(order).map_err(too_large)
        };
        let (demands, decimals) = table(&demands)?;
        let requested = match requested.as_slice() {
            [] => RequestedAmounts::default(),
            order => table(order).map(|(demands, decimals)| RequestedAmounts { demands, decimals })?,
        };
        for (resource, d) in self.resources.iter_mut().zip(decimals) {
            resource.decimals = d;
        }
        let named = |names: &Names, order: Vec<u32>| order.iter().map(|&id| &names.list()[id as usize]).collect();
        Ok(Workload {
            resources: self.resources,
            users: named(&self.users, users),
            accounts: named(&self.accounts, accounts),
            queues: named(&self.queues, queues),
            details: Details::from_fn(|detail| named(&self.details[detail], details[detail].clone())),
            demands,
            requested,
            columns: self.columns,
            header: self.header,
        })
    }
}

#[cfg(test)]
mod tests;
