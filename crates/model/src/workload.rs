//! A workload: the tasks of a trace as columns, sorted by submission.

use thiserror::Error;

use crate::demand::DemandBuilder;
use crate::{Amount, DemandId, DemandTable, Names, Resource, Span, Time};

/// An amount in billionths of a unit, as importers read it: any size, nine decimals.
pub type Nano = u128;

/// In an optional id column: this task has none.
pub const NO_ID: u32 = u32::MAX;

/// In an optional time column: unknown. Larger than every [`Time`] and [`Span`].
pub const NO_TIME: u64 = u64::MAX;

/// A user's number: users are numbered in the order in which they first appear in the workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct UserId(pub u32);

impl UserId {
    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One line of a trace, as importers and generators hand it over.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    /// When it was submitted.
    pub submit: Time,
    /// When it originally started, if the trace says so.
    pub start: Option<Time>,
    /// How long it ran.
    pub duration: Span,
    /// The wall time it asked for, if the trace says so.
    pub requested: Option<Span>,
    /// Its user's name.
    pub user: &'a str,
    /// Its account (group, project), if the trace has them.
    pub account: Option<&'a str>,
    /// Its queue (partition), if the trace has them.
    pub queue: Option<&'a str>,
    /// The amount of each resource it holds while it runs, in the builder's order of resources.
    pub amounts: &'a [Nano],
    /// How many identical copies of it were submitted together; at least 1.
    pub count: u32,
}

impl Default for Task<'_> {
    fn default() -> Self {
        Task {
            submit: Time::ZERO,
            start: None,
            duration: Span::ZERO,
            requested: None,
            user: "",
            account: None,
            queue: None,
            amounts: &[],
            count: 1,
        }
    }
}

/// The columns of a [`Workload`], one entry a row, all of one length.
///
/// Optional columns are absent when no row has a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// Submission, never decreasing.
    pub submit: Vec<Time>,
    /// Original start in nanoseconds, or [`NO_TIME`].
    pub start: Option<Vec<u64>>,
    /// Run time.
    pub duration: Vec<Span>,
    /// Requested wall time in nanoseconds, or [`NO_TIME`].
    pub requested: Option<Vec<u64>>,
    /// Who submitted it.
    pub user: Vec<UserId>,
    /// Index into [`Workload::accounts`], or [`NO_ID`].
    pub account: Option<Vec<u32>>,
    /// Index into [`Workload::queues`], or [`NO_ID`].
    pub queue: Option<Vec<u32>>,
    /// What it holds while it runs.
    pub demand: Vec<DemandId>,
    /// Identical copies, at least 1; absent when every row is one task.
    pub count: Option<Vec<u32>>,
}

impl Columns {
    fn assert_len(&self, rows: usize) {
        let optional = [&self.account, &self.queue, &self.count].map(|c| c.as_ref().map_or(rows, Vec::len));
        let times = [&self.start, &self.requested].map(|c| c.as_ref().map_or(rows, Vec::len));
        let lens = [self.duration.len(), self.user.len(), self.demand.len()];
        assert!(lens.iter().chain(&optional).chain(&times).all(|&l| l == rows), "columns of one length");
    }
}

/// Tasks whose names and demand vectors are already numbered, for
/// [`WorkloadBuilder::append_batch`].
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The users' names, by the ids in `columns`.
    pub users: Vec<String>,
    /// The accounts' names, by the ids in `columns`.
    pub accounts: Vec<String>,
    /// The queues' names, by the ids in `columns`.
    pub queues: Vec<String>,
    /// Demand vectors in billionths, one after another, by the ids in `columns`.
    pub demands: Vec<Nano>,
    /// The tasks, in any order.
    pub columns: Columns,
}

/// A trace in memory: some 36 bytes a row.
///
/// Rows are sorted by submission time, equal times in the order of the source. Users, accounts,
/// queues and demand vectors are numbered by first appearance in that order.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    resources: Vec<Resource>,
    users: Names,
    accounts: Names,
    queues: Names,
    demands: DemandTable,
    columns: Columns,
    header: Vec<(String, String)>,
}

/// Why a workload cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WorkloadError {
    /// An amount is too large to be held exactly with its column's decimals.
    #[error("an amount of {resource} needs more than 18 digits; give the trace in a larger unit")]
    TooLarge {
        /// The resource's name.
        resource: String,
    },
    /// There are no tasks.
    #[error("no task is left in the workload")]
    Empty,
}

impl Workload {
    /// The resources, in the order of every demand vector.
    pub fn resources(&self) -> &[Resource] {
        &self.resources
    }

    /// The users' names, by [`UserId`].
    pub fn users(&self) -> &[String] {
        self.users.list()
    }

    /// The number of the user called `name`.
    pub fn user_id(&self, name: &str) -> Option<UserId> {
        self.users.id(name).map(UserId)
    }

    /// The accounts' names.
    pub fn accounts(&self) -> &[String] {
        self.accounts.list()
    }

    /// The queues' names.
    pub fn queues(&self) -> &[String] {
        self.queues.list()
    }

    /// The distinct demand vectors.
    pub fn demands(&self) -> &DemandTable {
        &self.demands
    }

    /// The columns.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// What the trace says of itself (SWF header comments), in its order.
    pub fn header(&self) -> &[(String, String)] {
        &self.header
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.columns.submit.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.columns.submit.is_empty()
    }

    /// How many tasks there are: rows times their counts.
    pub fn tasks(&self) -> u64 {
        match &self.columns.count {
            None => self.len() as u64,
            Some(counts) => counts.iter().map(|&c| u64::from(c)).sum(),
        }
    }

    /// The amounts row `row` holds while it runs.
    pub fn amounts(&self, row: usize) -> &[Amount] {
        self.demands.row(self.columns.demand[row])
    }

    /// How many identical tasks row `row` stands for.
    pub fn count(&self, row: usize) -> u32 {
        self.columns.count.as_ref().map_or(1, |c| c[row])
    }

    /// When row `row` originally started, if the trace says so.
    pub fn start(&self, row: usize) -> Option<Time> {
        optional(self.columns.start.as_deref(), row, NO_TIME).map(Time::from_nanos)
    }

    /// The wall time row `row` asked for, if the trace says so.
    pub fn requested(&self, row: usize) -> Option<Span> {
        optional(self.columns.requested.as_deref(), row, NO_TIME).map(Span::from_nanos)
    }

    /// The name of row `row`'s account, if it has one.
    pub fn account(&self, row: usize) -> Option<&str> {
        optional(self.columns.account.as_deref(), row, NO_ID).map(|id| self.accounts()[id as usize].as_str())
    }

    /// The name of row `row`'s queue, if it has one.
    pub fn queue(&self, row: usize) -> Option<&str> {
        optional(self.columns.queue.as_deref(), row, NO_ID).map(|id| self.queues()[id as usize].as_str())
    }

    /// The same tasks with other users: `user` names that of each row. They are numbered anew, in the
    /// order in which they first appear.
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

    /// The same workload with every row one task: rows with a count are written out.
    pub fn expanded(self) -> Workload {
        let mut c = self.columns;
        let Some(counts) = c.count.take() else { return Workload { columns: c, ..self } };
        fn repeat<T: Copy>(column: Vec<T>, counts: &[u32]) -> Vec<T> {
            column.into_iter().zip(counts).flat_map(|(v, &c)| std::iter::repeat_n(v, c as usize)).collect()
        }
        let columns = Columns {
            submit: repeat(c.submit, &counts),
            start: c.start.map(|v| repeat(v, &counts)),
            duration: repeat(c.duration, &counts),
            requested: c.requested.map(|v| repeat(v, &counts)),
            user: repeat(c.user, &counts),
            account: c.account.map(|v| repeat(v, &counts)),
            queue: c.queue.map(|v| repeat(v, &counts)),
            demand: repeat(c.demand, &counts),
            count: None,
        };
        Workload { columns, ..self }
    }
}

fn optional<T: Copy + PartialEq>(column: Option<&[T]>, row: usize, none: T) -> Option<T> {
    column.map(|c| c[row]).filter(|v| *v != none)
}

/// Collects tasks in any order and makes a [`Workload`] of them.
///
/// Amounts come in billionths ([`Nano`]); [`finish`](WorkloadBuilder::finish) gives each resource
/// the fewest decimals that hold all its amounts exactly.
#[derive(Clone, Debug)]
pub struct WorkloadBuilder {
    resources: Vec<Resource>,
    users: Names,
    accounts: Names,
    queues: Names,
    demands: DemandBuilder,
    columns: Columns,
    header: Vec<(String, String)>,
}

impl WorkloadBuilder {
    /// A builder for tasks that hold these resources (whose `decimals` are set at the end).
    pub fn new(resources: impl IntoIterator<Item = Resource>) -> WorkloadBuilder {
        let resources: Vec<Resource> = resources.into_iter().collect();
        assert!(!resources.is_empty(), "a workload has at least one resource");
        WorkloadBuilder {
            demands: DemandBuilder::new(resources.len()),
            resources,
            users: Names::default(),
            accounts: Names::default(),
            queues: Names::default(),
            columns: Columns::default(),
            header: Vec::new(),
        }
    }

    /// Adds one header entry.
    pub fn header(&mut self, key: &str, value: &str) {
        self.header.push((key.to_string(), value.to_string()));
    }

    /// How many rows there are so far.
    pub fn len(&self) -> usize {
        self.columns.submit.len()
    }

    /// Whether there are none so far.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds one task.
    ///
    /// # Panics
    /// If `task.amounts` has not one entry a resource, or `task.count` is 0.
    pub fn push(&mut self, task: &Task<'_>) {
        assert_eq!(task.amounts.len(), self.resources.len(), "one amount a resource");
        assert!(task.count > 0, "a count is at least 1");
        let n = self.len();
        let user = UserId(self.users.intern(task.user));
        let account = task.account.map(|a| self.accounts.intern(a));
        let queue = task.queue.map(|q| self.queues.intern(q));
        let demand = self.demands.intern(task.amounts);
        let c = &mut self.columns;
        c.submit.push(task.submit);
        c.duration.push(task.duration);
        c.user.push(user);
        c.demand.push(demand);
        push_optional(&mut c.start, n, task.start.map(Time::nanos), NO_TIME);
        push_optional(&mut c.requested, n, task.requested.map(Span::nanos), NO_TIME);
        push_optional(&mut c.account, n, account, NO_ID);
        push_optional(&mut c.queue, n, queue, NO_ID);
        push_optional(&mut c.count, n, Some(task.count).filter(|&k| k > 1), 1);
    }

    /// Adds every task of `other` after those of `self`, and its header entries.
    ///
    /// # Panics
    /// If the two have not the same resources.
    pub fn append(&mut self, other: WorkloadBuilder) {
        assert_eq!(self.resources, other.resources, "the same resources");
        self.append_batch(Batch {
            users: other.users.into_list(),
            accounts: other.accounts.into_list(),
            queues: other.queues.into_list(),
            demands: other.demands.into_rows(),
            columns: other.columns,
        });
        self.header.extend(other.header);
    }

    /// Takes away the resource called `name` if no task holds any of it and another is left: a
    /// format that may say how much memory a job has does not always.
    pub fn drop_unused(&mut self, name: &str) {
        let Some(r) = self.resources.iter().position(|r| r.name == name) else { return };
        if self.resources.len() > 1 && self.demands.drop_unused(r) {
            self.resources.remove(r);
        }
    }

    /// Adds many tasks at once: what [`push`](WorkloadBuilder::push) would do one by one, without
    /// looking up a name and a vector for every task.
    ///
    /// # Panics
    /// If the columns differ in length, an id has no entry in the batch, or a count is 0.
    pub fn append_batch(&mut self, batch: Batch) {
        let n = self.len();
        let Batch { users, accounts, queues, demands, columns: mut added } = batch;
        let rows = added.submit.len();
        added.assert_len(rows);
        assert!(added.count.iter().flatten().all(|&c| c > 0), "a count is at least 1");
        let users: Vec<u32> = users.iter().map(|u| self.users.intern(u)).collect();
        let accounts: Vec<u32> = accounts.iter().map(|a| self.accounts.intern(a)).collect();
        let queues: Vec<u32> = queues.iter().map(|q| self.queues.intern(q)).collect();
        let demands: Vec<DemandId> =
            demands.chunks_exact(self.resources.len()).map(|row| self.demands.intern(row)).collect();
        added.user.iter_mut().for_each(|u| *u = UserId(users[u.index()]));
        added.demand.iter_mut().for_each(|d| *d = demands[d.index()]);
        for (column, ids) in [(&mut added.account, accounts), (&mut added.queue, queues)] {
            column.iter_mut().flatten().filter(|id| **id != NO_ID).for_each(|id| *id = ids[*id as usize]);
        }
        if n == 0 {
            self.columns = added;
            return;
        }
        let c = &mut self.columns;
        c.submit.extend(added.submit);
        c.duration.extend(added.duration);
        c.user.extend(added.user);
        c.demand.extend(added.demand);
        append_optional(&mut c.start, added.start, n, rows, NO_TIME);
        append_optional(&mut c.requested, added.requested, n, rows, NO_TIME);
        append_optional(&mut c.account, added.account, n, rows, NO_ID);
        append_optional(&mut c.queue, added.queue, n, rows, NO_ID);
        append_optional(&mut c.count, added.count, n, rows, 1);
    }

    /// Sorts by submission (equal times keep their order), numbers users, accounts, queues and
    /// demand vectors by first appearance, and fixes the decimals of each resource.
    ///
    /// The same tasks with the same order of equal submission times give the same (`==`)
    /// workload, however they were collected.
    ///
    /// # Errors
    /// If there are no tasks, or an amount has more than 18 digits in its column's decimals.
    pub fn finish(mut self) -> Result<Workload, WorkloadError> {
        if self.is_empty() {
            return Err(WorkloadError::Empty);
        }
        let c = &mut self.columns;
        if !c.submit.is_sorted() {
            sort_by_submission(c);
        }
        for (column, none) in [(&mut c.start, NO_TIME), (&mut c.requested, NO_TIME)] {
            column.take_if(|c| c.iter().all(|&v| v == none));
        }
        for (column, none) in [(&mut c.account, NO_ID), (&mut c.queue, NO_ID), (&mut c.count, 1)] {
            column.take_if(|c| c.iter().all(|&v| v == none));
        }
        let users = renumber(self.users.len(), c.user.iter_mut().map(|u| &mut u.0));
        let accounts = renumber(self.accounts.len(), c.account.iter_mut().flatten());
        let queues = renumber(self.queues.len(), c.queue.iter_mut().flatten());
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
            demands,
            columns: self.columns,
            header: self.header,
        })
    }
}

/// Pushes onto an optional column, which comes into being with its first value.
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
    for column in [&mut c.start, &mut c.requested].into_iter().flatten() {
        gather(column, &order);
    }
    for column in [&mut c.account, &mut c.queue, &mut c.count].into_iter().flatten() {
        gather(column, &order);
    }
}

/// Renumbers ids by first appearance; returns the old ids in their new order.
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
    use super::*;

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
    fn appending_is_pushing_in_turn() {
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
    fn a_resource_that_no_task_holds_can_be_dropped() {
        let builder = |mem: Nano| {
            let mut b = WorkloadBuilder::new(["cpu", "mem", "gpu"].map(|name| Resource::new(name, "")));
            b.push(&task(1, "a", &[3, mem, 5]));
            b.push(&task(2, "a", &[4, 0, 6]));
            ["mem", "gpu", "disk"].iter().for_each(|name| b.drop_unused(name));
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
