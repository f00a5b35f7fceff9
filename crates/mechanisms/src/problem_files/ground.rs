//! What problems and scenarios have in common: resources, capacities, quantities of each.

use std::collections::HashMap;

use evenhand_documents::{Document, DocumentError, Node, Table, did_you_mean};
use evenhand_model::{Rational, to_f64};

use crate::problem_files::account::{AccountEntry, read_accounts};

const CAPACITY: &str = "[capacity] with a quantity for each resource";

/// What a problem is to be computed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// 64-bit floating point: quantities that it cannot hold apart from 0 or infinity are refused.
    Float,
    /// Exact fractions.
    Exact,
}

impl Arithmetic {
    /// Holds a quantity against what the arithmetic can hold; `what` says as what it is used.
    fn holds(self, value: &Rational, node: &Node<'_>, what: &str) -> Result<(), DocumentError> {
        let float = to_f64(value);
        if self == Arithmetic::Exact || (float.is_finite() && (float == 0.0) == value.is_zero()) {
            return Ok(());
        }
        let end = if float == 0.0 { "small" } else { "large" };
        Err(node.error(format!("{what} is too {end} for 64-bit numbers, expected a usual one, or --exact")))
    }
}

/// Resources, their capacities, accounts.
pub(crate) struct Ground<'d> {
    pub(crate) resources: Vec<String>,
    pub(crate) capacity: Vec<Rational>,
    pub(crate) accounts: Vec<AccountEntry>,
    pub(crate) arithmetic: Arithmetic,
    /// The accounts by name.
    pub(crate) account_numbers: HashMap<&'d str, usize>,
    /// The resources by name.
    numbers: HashMap<&'d str, usize>,
    capacity_nodes: Vec<Node<'d>>,
}

impl<'d> Ground<'d> {
    pub(crate) fn read(root: &Table<'d>, arithmetic: Arithmetic) -> Result<Ground<'d>, DocumentError> {
        let table = root.required("capacity", CAPACITY)?.table()?;
        if table.is_empty() {
            return Err(table.error("found no resource, expected a quantity for at least one"));
        }
        let mut ground = Ground {
            resources: Vec::new(),
            capacity: Vec::new(),
            accounts: Vec::new(),
            arithmetic,
            account_numbers: HashMap::new(),
            numbers: HashMap::new(),
            capacity_nodes: Vec::new(),
        };
        for (key, node) in table.entries() {
            let node = node.with_label(format!("capacity of {}", key.name()));
            let capacity = node.quantity()?.exact().clone();
            arithmetic.holds(&capacity, &node, "a capacity that")?;
            ground.numbers.insert(key.name(), ground.resources.len());
            ground.resources.push(key.name().to_string());
            ground.capacity.push(capacity);
            ground.capacity_nodes.push(node);
        }
        (ground.accounts, ground.account_numbers) = read_accounts(root, arithmetic)?;
        Ok(ground)
    }

    /// A quantity of each resource, 0 where none is named, and the nodes of those that are.
    fn quantities(&self, node: &Node<'d>, of: &str) -> Result<Vec<(Rational, Option<Node<'d>>)>, DocumentError> {
        let mut row = vec![(Rational::ZERO, None); self.resources.len()];
        for (key, value) in node.clone().with_label(of.to_string()).table()?.entries() {
            let Some(&r) = self.numbers.get(key.name()) else {
                return Err(key.error(format!(
                    "{of} names the resource {:?}, which has no capacity; expected one of: {}{}",
                    key.name(),
                    self.resources.join(", "),
                    did_you_mean(key.name(), self.resources.iter().map(String::as_str))
                )));
            };
            let value = value.with_label(format!("{of} for {}", key.name()));
            row[r] = (value.quantity()?.exact().clone(), Some(value));
        }
        Ok(row)
    }

    /// What one task takes of each resource, in the file's units.
    pub(crate) fn demand(&self, node: &Node<'d>, user: &str) -> Result<Vec<Rational>, DocumentError> {
        let of = format!("demand of {user:?}");
        let row = self.quantities(node, &of)?;
        for (r, (demand, value)) in row.iter().enumerate() {
            let Some(value) = value.as_ref().filter(|_| !demand.is_zero()) else { continue };
            if self.capacity[r].is_zero() {
                let problem = format!("found a demand above 0, but the capacity of {} is 0", self.resources[r]);
                return Err(value.error_against(problem, &self.capacity_nodes[r], "here"));
            }
            self.arithmetic.holds(demand, value, "a demand that")?;
            let share = demand / &self.capacity[r];
            self.arithmetic.holds(&share, value, "a demand that, as a share of the capacity,")?;
        }
        if row.iter().all(|(demand, _)| demand.is_zero()) {
            let problem = "found nothing above 0, expected a demand above 0 for at least one resource";
            return Err(node.clone().with_label(of).error(problem));
        }
        Ok(row.into_iter().map(|(demand, _)| demand).collect())
    }

    /// What past over-use committed of each resource, as shares of capacity.
    pub(crate) fn commitment(&self, node: &Node<'d>, user: &str) -> Result<Vec<Rational>, DocumentError> {
        let row = self.quantities(node, &format!("commitment of {user:?}"))?;
        let held = row.into_iter().map(|(share, value)| {
            value.map_or(Ok(()), |value| self.arithmetic.holds(&share, &value, "a commitment that"))?;
            Ok(share)
        });
        held.collect()
    }

    /// How many tasks are wanted.
    pub(crate) fn tasks(&self, node: &Node<'d>, user: &str) -> Result<Rational, DocumentError> {
        let node = node.clone().with_label(format!("tasks of {user:?}"));
        let tasks = node.quantity()?.exact().clone();
        self.arithmetic.holds(&tasks, &node, "a number of tasks that")?;
        Ok(tasks)
    }
}

/// A weight, 1 if there is none.
pub(crate) fn weight(table: &Table<'_>, of: &str, arithmetic: Arithmetic) -> Result<Rational, DocumentError> {
    let Some(node) = table.get("weight") else { return Ok(Rational::ONE) };
    let node = node.with_label(format!("weight of {of:?}"));
    let weight = node.positive()?.exact().clone();
    arithmetic.holds(&weight, &node, "a weight that")?;
    Ok(weight)
}

pub(crate) type NamedTables<'d> = Vec<(&'d str, Table<'d>)>;

/// The tables of a list, each with its name, which is not empty and no other of them has.
pub(crate) fn named_tables<'d>(list: Option<Node<'d>>, kind: &str) -> Result<NamedTables<'d>, DocumentError> {
    let tables = list.map_or_else(|| Ok(Vec::new()), |list| list.named_tables(kind))?;
    if let Some((_, table)) = tables.iter().find(|(name, _)| name.is_empty()) {
        let node = table.required("name", "name = \"…\"")?.with_label(format!("name of the {kind}"));
        return Err(node.error("found an empty text, expected a name"));
    }
    Ok(tables)
}

/// The root and the users of a document; at least one.
pub(crate) fn users_of<'d>(document: &'d Document) -> Result<(Table<'d>, NamedTables<'d>), DocumentError> {
    let root = document.root()?;
    // Before the users, so that a file of another kind is called one.
    root.deny_unknown(&["capacity", "user", "account"])?;
    root.required("capacity", CAPACITY)?;
    let users = named_tables(root.get("user"), "user")?;
    if users.is_empty() {
        let problem = "found no user, expected at least one, as [[user]] with name and demand";
        return Err(root.get("user").map_or_else(|| root.error(problem), |node| node.error(problem)));
    }
    Ok((root, users))
}
