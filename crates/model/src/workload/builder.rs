//! Builds a workload from tasks in any order.

use std::io;
use std::sync::Arc;

use super::details::Details;
use super::overflow::{IdMaps, LargeWorkload, Overflow, Present, Run};
use super::{Batch, Columns, NO_ID, NO_NODES, NO_TIME, Nano, UserId, Workload, WorkloadError};
use crate::demand::DemandBuilder;
use crate::{DemandId, Names, Resource, Span, Time};

/// One task, or several identical ones, for [`WorkloadBuilder::push`].
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    /// The time of submission.
    pub submit: Time,
    /// The original start, if it is known.
    pub start: Option<Time>,
    /// The run time.
    pub duration: Span,
    /// When it could first have started, after holds and dependencies, if it is known.
    pub eligible: Option<Time>,
    /// The requested wall time, if it is known.
    pub requested: Option<Span>,
    /// The name of the user.
    pub user: &'a str,
    /// The name of the account (group, project), if it has one.
    pub account: Option<&'a str>,
    /// The name of the queue (partition), if it has one.
    pub queue: Option<&'a str>,
    /// The amounts that the task holds while it runs, in the order of the builder's resources.
    pub amounts: &'a [Nano],
    /// The number of identical tasks that were submitted together, at least 1.
    pub count: u32,
    /// The number of nodes on which the task runs at once, in equal parts, if it is known.
    pub nodes: Option<u32>,
    /// What its source states of it in words.
    pub details: Details<Option<&'a str>>,
}

impl Default for Task<'_> {
    fn default() -> Self {
        Task {
            submit: Time::ZERO,
            start: None,
            eligible: None,
            duration: Span::ZERO,
            requested: None,
            user: "",
            account: None,
            queue: None,
            amounts: &[],
            count: 1,
            nodes: None,
            details: Details::default(),
        }
    }
}

/// Collects tasks in any order and builds a [`Workload`].
///
/// Amounts are given in billionths ([`Nano`]); [`finish`](WorkloadBuilder::finish) gives each resource the fewest
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
    /// Panics if `task.amounts` does not have one entry per resource, or if `task.count` is 0.
    pub fn push(&mut self, task: &Task<'_>) {
        assert_eq!(task.amounts.len(), self.resources.len(), "one amount per resource");
        assert!(task.count > 0, "a count is at least 1");
        let n = self.in_memory();
        let user = UserId(self.users.intern(task.user));
        let account = task.account.map(|a| self.accounts.intern(a));
        let queue = task.queue.map(|q| self.queues.intern(q));
        let demand = self.demands.intern(task.amounts);
        for (detail, text) in task.details.iter() {
            let id = text.map(|text| self.details[detail].intern(text));
            push_optional(&mut self.columns.details[detail], n, id, NO_ID);
        }
        let c = &mut self.columns;
        c.submit.push(task.submit);
        c.duration.push(task.duration);
        c.user.push(user);
        c.demand.push(demand);
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
        let all: Vec<u32> = (0..self.demands.len() as u32).collect();
        let (demands, decimals) = match self.demands.finish(&all) {
            Ok(found) => found,
            Err(r) => return Ok(Err(WorkloadError::TooLarge { resource: self.resources[r].name.clone() })),
        };
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
        let users = renumber(self.users.len(), c.user.iter_mut().map(|u| &mut u.0));
        let accounts = renumber(self.accounts.len(), c.account.iter_mut().flatten());
        let queues = renumber(self.queues.len(), c.queue.iter_mut().flatten());
        let details =
            Details::from_fn(|detail| renumber(self.details[detail].len(), c.details[detail].iter_mut().flatten()));
        let demands = renumber(self.demands.len(), c.demand.iter_mut().map(|d| &mut d.0));
        let (demands, decimals) = self
            .demands
            .finish(&demands)
            .map_err(|r| WorkloadError::TooLarge { resource: self.resources[r].name.clone() })?;
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
            columns: self.columns,
            header: self.header,
        })
    }
}

/// Pushes onto an optional column, which is created with its first value.
fn push_optional<T: Copy>(column: &mut Option<Vec<T>>, rows_before: usize, value: Option<T>, none: T) {
    match (column.as_mut(), value) {
        (Some(c), v) => c.push(v.unwrap_or(none)),
        (None, Some(v)) => {
            let mut c = vec![none; rows_before];
            c.push(v);
            *column = Some(c);
        }
        (None, None) => {}
    }
}

fn append_optional<T: Copy>(
    column: &mut Option<Vec<T>>,
    other: Option<Vec<T>>,
    rows_before: usize,
    rows_added: usize,
    none: T,
) {
    if column.is_none() && other.is_none() {
        return;
    }
    let c = column.get_or_insert_with(|| vec![none; rows_before]);
    match other {
        Some(o) => c.extend(o),
        None => c.extend(std::iter::repeat_n(none, rows_added)),
    }
}

fn sort_by_submission(c: &mut Columns) {
    let mut order: Vec<u32> = (0..c.submit.len() as u32).collect();
    // Stable: equal submission times keep the order of the source.
    order.sort_by_key(|&i| c.submit[i as usize]);
    fn gather<T: Copy>(column: &mut Vec<T>, order: &[u32]) {
        *column = order.iter().map(|&i| column[i as usize]).collect();
    }
    gather(&mut c.submit, &order);
    gather(&mut c.duration, &order);
    gather(&mut c.user, &order);
    gather(&mut c.demand, &order);
    for column in [&mut c.start, &mut c.requested, &mut c.eligible].into_iter().flatten() {
        gather(column, &order);
    }
    for column in [&mut c.account, &mut c.queue, &mut c.count, &mut c.nodes].into_iter().flatten() {
        gather(column, &order);
    }
    c.details.iter_mut().filter_map(|(_, column)| column.as_mut()).for_each(|column| gather(column, &order));
}

/// Renumbers ids by first appearance and returns the old ids in their new order.
fn renumber<'a>(ids: usize, column: impl Iterator<Item = &'a mut u32>) -> Vec<u32> {
    let mut new_id = vec![NO_ID; ids];
    let mut order = Vec::new();
    for id in column.filter(|id| **id != NO_ID) {
        let new = &mut new_id[*id as usize];
        if *new == NO_ID {
            *new = order.len() as u32;
            order.push(*id);
        }
        *id = *new;
    }
    order
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Amount;

    fn task<'a>(submit: u64, user: &'a str, amounts: &'a [Nano]) -> Task<'a> {
        Task { submit: Time::from_secs(submit), duration: Span::from_secs(1), user, amounts, ..Task::default() }
    }

    #[test]
    fn rows_are_sorted_stably_and_users_numbered_by_first_appearance() {
        let mut b = WorkloadBuilder::new([Resource::new("cpu", "")]);
        b.push(&task(5, "late", &[1_000_000_000]));
        b.push(&task(1, "first", &[2_000_000_000]));
        b.push(&Task { queue: Some("q"), ..task(1, "second", &[500_000_000]) });
        let w = b.finish().unwrap();
        assert_eq!(w.users(), ["first", "second", "late"]);
        assert_eq!(w.columns().user, [0, 1, 2].map(UserId));
        assert_eq!((0..3).map(|r| w.queue(r)).collect::<Vec<_>>(), [None, Some("q"), None]);
        assert_eq!(w.resources()[0].decimals, 1);
        assert_eq!(w.amounts(2), [Amount(10)]);
        assert_eq!(w.columns().demand, [0, 1, 2].map(DemandId));
    }

    #[test]
    fn appending_equals_pushing_each_task() {
        let tasks = [
            task(3, "a", &[1]),
            Task { account: Some("x"), start: Some(Time::from_secs(9)), ..task(2, "b", &[2]) },
            Task { count: 4, ..task(1, "c", &[1]) },
            Task { account: Some("y"), ..task(1, "a", &[3]) },
        ];
        let build = |tasks: &[Task<'_>]| {
            let mut b = WorkloadBuilder::new([Resource::new("cpu", "")]);
            tasks.iter().for_each(|t| b.push(t));
            b
        };
        for cut in 0..=tasks.len() {
            let mut b = build(&tasks[..cut]);
            b.append(build(&tasks[cut..]));
            assert_eq!(b.finish().unwrap(), build(&tasks).finish().unwrap());
        }
    }

    proptest! {
        #[test]
        fn rows_on_disk_are_those_in_memory(
            rows in prop::collection::vec((0u64..50, 0u8..5, 0u8..9, 1u32..4), 1..6000),
            cuts in prop::collection::vec(0usize..6000, 0..4),
            max_rows in 1usize..3000,
            chunk in 1usize..5000,
        ) {
            let name = |n: u8| format!("n{n}");
            let build = |overflow: Option<Overflow>| {
                let new = || {
                    let builder = WorkloadBuilder::new([Resource::new("cpu", "")]);
                    match &overflow {
                        Some(overflow) => builder.with_overflow(overflow.clone()),
                        None => builder,
                    }
                };
                // Parts, as those of several files, that are appended in their order.
                let mut parts = vec![new()];
                for (place, (submit, user, rest, count)) in rows.iter().enumerate() {
                    if cuts.contains(&place) {
                        parts.last_mut().unwrap().rest();
                        parts.push(new());
                    }
                    let (user, account) = (name(*user), name(*rest));
                    parts.last_mut().unwrap().push(&Task {
                        account: (*rest > 2).then_some(account.as_str()),
                        start: (*rest == 4).then_some(Time::from_secs(place as u64)),
                        nodes: (*rest == 5).then_some(7),
                        eligible: (*rest == 6).then_some(Time::from_secs(place as u64)),
                        details: Details::from_fn(|detail| (*rest > 3 + detail as u8).then_some(account.as_str())),
                        count: *count,
                        duration: Span::from_secs(place as u64),
                        ..task(*submit, &user, &[Nano::from(*rest) + 1])
                    });
                }
                let mut whole = parts.remove(0);
                parts.into_iter().for_each(|part| whole.append(part));
                whole
            };
            let folder = tempfile::tempdir().unwrap();
            let on_disk = build(Some(Overflow::new(folder.path(), max_rows)));
            prop_assert_eq!(on_disk.len(), rows.len());
            let in_memory = build(None).finish().unwrap();
            let mut large = on_disk.finish_large(1 << 16).unwrap().unwrap();
            prop_assert_eq!(large.rows(), rows.len() as u64);
            let mut row = 0;
            while let Some(some) = large.next_chunk(chunk).unwrap() {
                prop_assert_eq!(some.resources(), in_memory.resources());
                for i in 0..some.len() {
                    let of = |w: &Workload, i: usize| {
                        let c = w.columns();
                        let start = c.start.as_ref().map(|c| c[i]);
                        let texts = (w.users()[c.user[i].index()].clone(), w.account(i).map(str::to_owned));
                        let numbers = (w.count(i), w.nodes(i), w.amounts(i).to_vec());
                        let details = Details::from_fn(|detail| w.detail(detail, i).map(str::to_owned));
                        (c.submit[i], c.duration[i], (start, w.eligible(i)), texts, details, numbers)
                    };
                    prop_assert_eq!(of(some, i), of(&in_memory, row));
                    row += 1;
                }
            }
            prop_assert_eq!(row, rows.len());
            // Nothing is left, as the file has no name.
            prop_assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_an_error_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let overflow = Overflow::new(folder.path().join("none"), 10);
        let mut b = WorkloadBuilder::new([Resource::new("cpu", "")]).with_overflow(overflow);
        (0..5000).for_each(|i| b.push(&task(i, "a", &[1])));
        assert!(b.finish_large(1 << 16).is_err());
    }

    #[test]
    fn counts_expand_to_single_rows() {
        let mut b = WorkloadBuilder::new([Resource::new("cpu", "")]);
        b.push(&Task { count: 3, ..task(1, "a", &[1]) });
        b.push(&task(2, "b", &[1]));
        let w = b.finish().unwrap();
        assert_eq!((w.len(), w.tasks()), (2, 4));
        let w = w.expanded();
        assert_eq!((w.len(), w.tasks()), (4, 4));
        assert_eq!(w.columns().user, [0, 0, 0, 1].map(UserId));
    }

    #[test]
    fn a_resource_that_no_task_holds_can_be_removed() {
        let builder = |mem: Nano| {
            let mut b = WorkloadBuilder::new(["cpu", "mem", "gpu"].map(|name| Resource::new(name, "")));
            b.push(&task(1, "a", &[3, mem, 5]));
            b.push(&task(2, "a", &[4, 0, 6]));
            ["mem", "gpu", "disk"].iter().for_each(|name| b.remove_unused(name));
            // The index of demand vectors follows.
            b.push(&task(3, "a", if mem == 0 { &[3, 5] } else { &[3, 7, 5] }));
            b.finish().unwrap()
        };
        let names = |w: &Workload| w.resources().iter().map(|r| r.name.clone()).collect::<Vec<_>>();
        let (with, without) = (builder(7), builder(0));
        assert_eq!(
            (names(&with), names(&without)),
            (vec!["cpu".into(), "mem".into(), "gpu".into()], vec!["cpu".into(), "gpu".into()])
        );
        assert_eq!((with.demands().len(), without.demands().len()), (2, 2));
        assert_eq!(
            (with.amounts(1), without.amounts(1)),
            (&[Amount(4), Amount(0), Amount(6)][..], &[Amount(4), Amount(6)][..])
        );
    }

    #[test]
    fn amounts_that_do_not_fit_name_their_resource() {
        let mut b = WorkloadBuilder::new([Resource::new("cpu", ""), Resource::new("mem", "")]);
        let (large, too_large) = ([1, 10u128.pow(18)], [1, 10u128.pow(28)]);
        b.push(&task(1, "a", &large));
        assert!(b.clone().finish().is_ok());
        b.push(&task(1, "a", &too_large));
        assert_eq!(b.clone().finish(), Err(WorkloadError::TooLarge { resource: "mem".into() }));
        assert_eq!(WorkloadBuilder::new([Resource::new("cpu", "")]).finish(), Err(WorkloadError::Empty));
    }
}
