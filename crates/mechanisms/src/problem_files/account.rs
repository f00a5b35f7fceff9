//! Accounts within accounts, by name and in any order.

use std::collections::HashMap;

use crate::{Account, ProblemError, Tree};
use evenhand_documents::{DocumentError, Node, Table, did_you_mean};
use evenhand_model::Rational;

use crate::problem_files::ground::{Arithmetic, named_tables, weight};

/// One account of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountEntry {
    /// What it is called.
    pub name: String,
    /// The account it is part of, by its place in the file's list; `None` for one at the top.
    pub parent: Option<usize>,
    /// Weight among accounts and users of the same parent, greater than 0.
    pub weight: Rational,
}

type ByName<'d> = HashMap<&'d str, usize>;

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
    if let Some(circle) = circle(&accounts) {
        let names: Vec<&str> = circle.iter().map(|a| accounts[*a].name.as_str()).collect();
        let (name, table) = &tables[circle[0]];
        let node = table.required("parent", "a parent")?.with_label(format!("parent of {name:?}"));
        let way = names.join(", in ");
        return Err(node.error(format!("found a circle ({way}, in {name}), expected accounts that end at the top")));
    }
    Ok((accounts, numbers))
}

/// The account a value names.
pub(crate) fn account_named(node: &Node<'_>, numbers: &ByName<'_>) -> Result<usize, DocumentError> {
    let name = node.text()?;
    numbers.get(name).copied().ok_or_else(|| {
        let mut known: Vec<&str> = numbers.keys().copied().collect();
        known.sort_unstable();
        let hint = did_you_mean(name, known.iter().copied());
        node.error(format!("found {name:?}, expected the name of an [[account]] of this file{hint}"))
    })
}

/// The accounts of a circle, each before its parent, if there is one.
fn circle(accounts: &[AccountEntry]) -> Option<Vec<usize>> {
    // The walk from which an account was first reached.
    let mut reached = vec![usize::MAX; accounts.len()];
    for start in 0..accounts.len() {
        let mut at = Some(start);
        while let Some(account) = at.filter(|a| reached[*a] == usize::MAX) {
            reached[account] = start;
            at = accounts[account].parent;
        }
        if let Some(first) = at.filter(|a| reached[*a] == start) {
            let mut circle = vec![first];
            while let Some(next) = circle.last().and_then(|a| accounts[*a].parent).filter(|p| *p != first) {
                circle.push(next);
            }
            return Some(circle);
        }
    }
    None
}

/// The tree of the accounts in which there are users: one in which there is nobody has no claim.
pub(crate) fn tree(accounts: &[AccountEntry], homes: &[Option<usize>]) -> Result<Option<Tree<Rational>>, ProblemError> {
    if homes.iter().all(Option::is_none) {
        return Ok(None);
    }
    let mut numbers: Vec<Option<usize>> = vec![None; accounts.len()];
    let mut kept: Vec<Account<Rational>> = Vec::new();
    for home in homes.iter().flatten() {
        // From the first ancestor that is kept already down to the user's own account.
        let mut way = Vec::new();
        let mut at = Some(*home);
        while let Some(account) = at.filter(|a| numbers[*a].is_none()) {
            if way.len() > accounts.len() {
                return Err(ProblemError::Tree("accounts are parts of each other"));
            }
            way.push(account);
            at = accounts[account].parent;
        }
        for account in way.into_iter().rev() {
            let entry = &accounts[account];
            let parent = entry.parent.and_then(|p| numbers[p]);
            numbers[account] = Some(kept.len());
            kept.push(Account { parent, weight: entry.weight.clone() });
        }
    }
    Tree::new(kept, homes.iter().map(|home| home.and_then(|h| numbers[h])).collect()).map(Some)
}
