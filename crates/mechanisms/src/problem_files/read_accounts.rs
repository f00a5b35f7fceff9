//! Reads `[[account]]` sections: accounts within accounts, by name and in any order.

use std::collections::HashMap;

use crate::{Account, AccountTree, Arithmetic, ProblemError};
use evenhand_documents::{DocumentError, Node, Table, did_you_mean};
use evenhand_model::Rational;

use crate::problem_files::read_shared_sections::{named_tables, weight};

/// Account of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountEntry {
    /// Name.
    pub name: String,
    /// Account that it is part of, by its place in the file's list; `None` at the top.
    pub parent: Option<usize>,
    /// Weight among accounts and users of the same parent, greater than 0.
    pub weight: Rational,
}

/// Accounts by name.
type ByName<'d> = HashMap<&'d str, usize>;

/// Reads the accounts of a document, and returns them with their indices by name.
pub(crate) fn read_accounts<'d>(
    root: &Table<'d>,
    arithmetic: Arithmetic,
) -> Result<(Vec<AccountEntry>, ByName<'d>), DocumentError> {
    let tables = named_tables(root.get("account"), "account")?;
    let numbers: ByName<'d> = tables.iter().enumerate().map(|(i, (name, _))| (*name, i)).collect();
    let mut accounts = Vec::with_capacity(tables.len());
    for (name, table) in &tables {
        table.deny_unknown(&["name", "parent", "weight"])?;
        let parent = table.get("parent").map(|node| account_named(&node, &numbers)).transpose()?;
        accounts.push(AccountEntry { name: name.to_string(), parent, weight: weight(table, name, arithmetic)? });
    }
    if let Some(cycle) = cycle(&accounts) {
        let names: Vec<&str> = cycle.iter().map(|a| accounts[*a].name.as_str()).collect();
        let (name, table) = &tables[cycle[0]];
        let node = table.required("parent", "a parent")?.with_label(format!("parent of {name:?}"));
        let path = names.join(", in ");
        return Err(node.error(format!("found a cycle ({path}, in {name}), expected parents that end at the top")));
    }
    Ok((accounts, numbers))
}

/// Returns the account that a value names.
pub(crate) fn account_named(node: &Node<'_>, numbers: &ByName<'_>) -> Result<usize, DocumentError> {
    let name = node.text()?;
    numbers.get(name).copied().ok_or_else(|| {
        let mut known: Vec<&str> = numbers.keys().copied().collect();
        known.sort_unstable();
        let hint = did_you_mean(name, known.iter().copied());
        node.error(format!("found {name:?}, expected the name of an [[account]] of this file{hint}"))
    })
}

/// Returns the accounts of a cycle, each before its parent, if there is one.
fn cycle(accounts: &[AccountEntry]) -> Option<Vec<usize>> {
    // For each account, the start of the walk that first reached it.
    let mut reached = vec![usize::MAX; accounts.len()];
    for start in 0..accounts.len() {
        let mut at = Some(start);
        while let Some(account) = at.filter(|a| reached[*a] == usize::MAX) {
            reached[account] = start;
            at = accounts[account].parent;
        }
        if let Some(first) = at.filter(|a| reached[*a] == start) {
            let mut cycle = vec![first];
            while let Some(next) = cycle.last().and_then(|a| accounts[*a].parent).filter(|p| *p != first) {
                cycle.push(next);
            }
            return Some(cycle);
        }
    }
    None
}

/// Returns the tree of the accounts that have users below them, each after its parent; `None` if no user belongs to an
/// account. Accounts without users have no entitlement.
pub(crate) fn tree(
    accounts: &[AccountEntry],
    user_accounts: &[Option<usize>],
) -> Result<Option<AccountTree<Rational>>, ProblemError> {
    if user_accounts.iter().all(Option::is_none) {
        return Ok(None);
    }
    let mut numbers: Vec<Option<usize>> = vec![None; accounts.len()];
    let mut kept: Vec<Account<Rational>> = Vec::new();
    for home in user_accounts.iter().flatten() {
        // From the first ancestor that is already kept down to the user's own account.
        let mut path = Vec::new();
        let mut at = Some(*home);
        while let Some(account) = at.filter(|a| numbers[*a].is_none()) {
            if path.len() > accounts.len() {
                return Err(ProblemError::Accounts("accounts are parts of each other"));
            }
            path.push(account);
            at = accounts[account].parent;
        }
        for account in path.into_iter().rev() {
            let entry = &accounts[account];
            let parent = entry.parent.and_then(|p| numbers[p]);
            numbers[account] = Some(kept.len());
            kept.push(Account { parent, weight: entry.weight.clone() });
        }
    }
    AccountTree::new(kept, user_accounts.iter().map(|home| home.and_then(|h| numbers[h])).collect()).map(Some)
}
