//! The table of accounts: its rows in the page, and the same data for the page's script.

use evenhand_study::record::{AccountRecord, AccountResults, RunRecord};
use serde::Serialize;

use super::script_data::{by_capacity_and_policy, six_digits};
use super::user_and_fairness_tables::Cell;
use crate::format_numbers::{ABSENT, grouped, percent, quotient, three_digits};
use crate::study_page::grid::StudyGrid;

/// Maximum number of accounts, and of users, in the page.
const MAX_ROWS: usize = 2000;

/// An account or a user. Each follows the account that contains it; sub-accounts come before users.
struct Node<'a> {
    name: &'a str,
    /// Index of the containing account's node.
    parent: Option<usize>,
    depth: usize,
    /// Index of the account in the record.
    account: usize,
    /// Index of the user in its account; `None` for an account.
    user: Option<usize>,
}

/// The next part of a depth-first walk through the tree.
enum Next {
    Account(usize),
    UsersOf(usize),
}

/// The account tree of a study, which all its runs share.
pub(super) struct Tree<'a> {
    nodes: Vec<Node<'a>>,
    left_out: usize,
}

impl<'a> Tree<'a> {
    /// Builds the tree from the first run; it is empty if that run has no accounts.
    pub(super) fn of(grid: &StudyGrid<'a>) -> Tree<'a> {
        let accounts: &'a [AccountRecord] = grid.record.runs.first().map_or(&[], |run| &run.accounts);
        let mut inner: Vec<Vec<usize>> = vec![Vec::new(); accounts.len()];
        for (place, account) in accounts.iter().enumerate() {
            if let Some(parent) = account.parent.filter(|parent| *parent < place) {
                inner[parent].push(place);
            }
        }
        // Keep the users with the most tasks.
        let tasks = |(account, user): &(usize, usize)| accounts[*account].users[*user].results.totals.submitted;
        let places = accounts.iter().enumerate();
        let mut users: Vec<(usize, usize)> =
            places.flat_map(|(a, of)| (0..of.users.len()).map(move |u| (a, u))).collect();
        users.sort_by_key(|user| (std::cmp::Reverse(tasks(user)), *user));
        let all = users.len() + accounts.len();
        users.truncate(MAX_ROWS);
        users.sort_unstable();
        let mut nodes: Vec<Node<'a>> = Vec::new();
        let mut shown = 0;
        // A stack: sub-accounts come before the account's own users.
        let mut next: Vec<(Next, Option<usize>, usize)> = Vec::new();
        next.extend(accounts.first().map(|_| (Next::Account(0), None, 0)));
        while let Some((what, parent, depth)) = next.pop() {
            match what {
                Next::Account(account) if shown < MAX_ROWS => {
                    shown += 1;
                    let name = accounts[account].name.as_deref().unwrap_or("all users");
                    nodes.push(Node { name, parent, depth, account, user: None });
                    let own = Some(nodes.len() - 1);
                    next.push((Next::UsersOf(account), own, depth + 1));
                    next.extend(inner[account].iter().rev().map(|&inner| (Next::Account(inner), own, depth + 1)));
                }
                Next::Account(_) => {}
                Next::UsersOf(account) => {
                    let from = users.partition_point(|user| user.0 < account);
                    let own = users[from..].iter().take_while(|user| user.0 == account);
                    nodes.extend(own.map(|&(account, user)| {
                        let name = accounts[account].users[user].name.as_str();
                        Node { name, parent, depth, account, user: Some(user) }
                    }));
                }
            }
        }
        let left_out = all - nodes.len();
        Tree { nodes, left_out }
    }

    fn results(&self, run: &'a RunRecord, node: &Node<'_>) -> Option<&'a AccountResults> {
        let account = run.accounts.get(node.account)?;
        match node.user {
            None => Some(&account.results),
            Some(user) => account.users.get(user).map(|user| &user.results),
        }
    }

    /// Returns the node's entitlement as a fraction of the whole; it is the same in all runs.
    fn entitlement(&self, grid: &StudyGrid<'a>, node: &Node<'_>) -> Option<f64> {
        let account = grid.record.runs.first()?.accounts.get(node.account)?;
        match node.user {
            None => account.entitlement,
            Some(user) => account.users.get(user)?.entitlement,
        }
    }
}

/// The rows of the table at one capacity under one policy.
#[derive(Serialize)]
pub(super) struct AccountTable {
    rows: Vec<AccountRow>,
    /// The number of accounts and users that are not in the page, if any.
    left_out: Option<String>,
}

#[derive(Serialize)]
struct AccountRow {
    name: String,
    depth: usize,
    is_user: bool,
    entitlement: String,
    used: String,
    tasks: String,
    wait: Cell,
    nuwt: String,
    slowdown: String,
}

/// Returns the table as the page holds it before its script runs: the whole tree, open.
pub(super) fn account_table(grid: &StudyGrid<'_>, tree: &Tree<'_>, capacity: usize, policy: usize) -> AccountTable {
    let run = grid.run(capacity, policy);
    let none = AccountResults::default();
    let or_absent = |number: Option<f64>, text: fn(f64) -> String| number.map_or(ABSENT.into(), text);
    let row = |node: &Node<'_>| {
        let figures = run.and_then(|run| tree.results(run, node)).unwrap_or(&none);
        AccountRow {
            name: node.name.into(),
            depth: node.depth,
            is_user: node.user.is_some(),
            entitlement: or_absent(tree.entitlement(grid, node), percent),
            used: or_absent(figures.use_share, percent),
            tasks: grouped(figures.totals.submitted),
            wait: Cell::duration(figures.mean_wait_s),
            nuwt: or_absent(figures.normalized.nuwt_per_pe.map(six_digits), quotient),
            slowdown: or_absent(figures.mean_bounded_slowdown.map(six_digits), three_digits),
        }
    };
    AccountTable {
        rows: tree.nodes.iter().map(row).collect(),
        left_out: (tree.left_out > 0).then(|| grouped(tree.left_out as u64)),
    }
}

/// The tree as the page's script reads it, one array per column.
#[derive(Serialize)]
pub(super) struct AccountData<'a> {
    name: Vec<&'a str>,
    parent: Vec<Option<usize>>,
    user: Vec<bool>,
    entitlement: Vec<Option<f64>>,
    /// Indexed by capacity, then by policy; `null` if the run is missing.
    runs: Vec<Vec<Option<Columns>>>,
}

/// The results of one run, one array per column.
#[derive(Serialize)]
struct Columns {
    tasks: Vec<u64>,
    used: Vec<Option<f64>>,
    wait: Vec<Option<f64>>,
    nuwt: Vec<Option<f64>>,
    slowdown: Vec<Option<f64>>,
}

/// Returns the script's data, or `None` if the study has no accounts.
pub(super) fn account_data<'a>(grid: &StudyGrid<'a>, tree: &Tree<'a>) -> Option<AccountData<'a>> {
    if tree.nodes.is_empty() {
        return None;
    }
    let none = AccountResults::default();
    let columns = |capacity: usize, policy: usize| {
        let run = grid.run(capacity, policy)?;
        let all = || tree.nodes.iter().map(|node| tree.results(run, node).unwrap_or(&none));
        Some(Columns {
            tasks: all().map(|f| f.totals.submitted).collect(),
            used: all().map(|f| f.use_share).collect(),
            wait: all().map(|f| f.mean_wait_s).collect(),
            nuwt: all().map(|f| f.normalized.nuwt_per_pe.map(six_digits)).collect(),
            slowdown: all().map(|f| f.mean_bounded_slowdown.map(six_digits)).collect(),
        })
    };
    Some(AccountData {
        name: tree.nodes.iter().map(|node| node.name).collect(),
        parent: tree.nodes.iter().map(|node| node.parent).collect(),
        user: tree.nodes.iter().map(|node| node.user.is_some()).collect(),
        entitlement: tree.nodes.iter().map(|node| tree.entitlement(grid, node)).collect(),
        runs: by_capacity_and_policy(grid, columns),
    })
}
