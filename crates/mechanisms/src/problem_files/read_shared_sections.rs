//! Reads the sections that problems and scenarios share: `[capacity]`, `[[account]]` and the heads of `[[user]]`.

use std::collections::HashMap;

use evenhand_documents::{Document, DocumentError, Node, Table, did_you_mean};
use evenhand_model::{Rational, to_f64};

use crate::Arithmetic;
use crate::problem_files::read_accounts::{AccountEntry, read_accounts};

const CAPACITY: &str = "[capacity] with a quantity for each resource";

/// Checks that `arithmetic` can represent a quantity; `what` names the quantity in the error message.
fn check_range(arithmetic: Arithmetic, value: &Rational, node: &Node<'_>, what: &str) -> Result<(), DocumentError> {
    let float = to_f64(value);
    if arithmetic == Arithmetic::Exact || (float.is_finite() && (float == 0.0) == value.is_zero()) {
        return Ok(());
    }
    let end = if float == 0.0 { "small" } else { "large" };
    Err(node.error(format!("{what} is too {end} for 64-bit numbers, expected a usual one, or --exact")))
}

/// Resources, their capacities, and accounts.
pub(crate) struct SharedSections<'d> {
    pub(crate) resources: Vec<String>,
    pub(crate) capacity: Vec<Rational>,
    pub(crate) accounts: Vec<AccountEntry>,
    pub(crate) arithmetic: Arithmetic,
    /// Accounts by name.
    pub(crate) account_numbers: HashMap<&'d str, usize>,
    /// Resources by name.
    numbers: HashMap<&'d str, usize>,
    capacity_nodes: Vec<Node<'d>>,
}

impl<'d> SharedSections<'d> {
    /// Reads `[capacity]` and the accounts.
    pub(crate) fn read(root: &Table<'d>, arithmetic: Arithmetic) -> Result<SharedSections<'d>, DocumentError> {
        let table = root.required("capacity", CAPACITY)?.table()?;
        if table.is_empty() {
            return Err(table.error("found no resource, expected a quantity for at least one"));
        }
        let mut shared = SharedSections {
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
            check_range(arithmetic, &capacity, &node, "a capacity that")?;
            shared.numbers.insert(key.name(), shared.resources.len());
            shared.resources.push(key.name().to_string());
            shared.capacity.push(capacity);
            shared.capacity_nodes.push(node);
        }
        (shared.accounts, shared.account_numbers) = read_accounts(root, arithmetic)?;
        Ok(shared)
    }

    /// Reads a quantity of each resource, 0 where none is given; returns each with its node.
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

    /// Reads what one task takes of each resource, in the file's units.
    pub(crate) fn demand(&self, node: &Node<'d>, user: &str) -> Result<Vec<Rational>, DocumentError> {
        let of = format!("demand of {user:?}");
        let row = self.quantities(node, &of)?;
        for (r, (demand, value)) in row.iter().enumerate() {
            let Some(value) = value.as_ref().filter(|_| !demand.is_zero()) else { continue };
            if self.capacity[r].is_zero() {
                let problem = format!("found a demand above 0, but the capacity of {} is 0", self.resources[r]);
                return Err(value.error_against(problem, &self.capacity_nodes[r], "here"));
            }
            check_range(self.arithmetic, demand, value, "a demand that")?;
            let share = demand / &self.capacity[r];
            check_range(self.arithmetic, &share, value, "a demand that, as a share of the capacity,")?;
        }
        if row.iter().all(|(demand, _)| demand.is_zero()) {
            let problem = "found nothing above 0, expected a demand above 0 for at least one resource";
            return Err(node.clone().with_label(of).error(problem));
        }
        Ok(row.into_iter().map(|(demand, _)| demand).collect())
    }

    /// Reads the share of each resource that past overuse committed.
    pub(crate) fn commitment(&self, node: &Node<'d>, user: &str) -> Result<Vec<Rational>, DocumentError> {
        let row = self.quantities(node, &format!("commitment of {user:?}"))?;
        let held = row.into_iter().map(|(share, value)| {
            value.map_or(Ok(()), |value| check_range(self.arithmetic, &share, &value, "a commitment that"))?;
            Ok(share)
        });
        held.collect()
    }

    /// Reads the largest number of tasks wanted.
    pub(crate) fn tasks(&self, node: &Node<'d>, user: &str) -> Result<Rational, DocumentError> {
        let node = node.clone().with_label(format!("tasks of {user:?}"));
        let tasks = node.quantity()?.exact().clone();
        check_range(self.arithmetic, &tasks, &node, "a number of tasks that")?;
        Ok(tasks)
    }
}

/// Reads a weight; the default is 1.
pub(crate) fn weight(table: &Table<'_>, of: &str, arithmetic: Arithmetic) -> Result<Rational, DocumentError> {
    let Some(node) = table.get("weight") else { return Ok(Rational::ONE) };
    let node = node.with_label(format!("weight of {of:?}"));
    let weight = node.positive()?.exact().clone();
    check_range(arithmetic, &weight, &node, "a weight that")?;
    Ok(weight)
}

/// Tables with their names.
pub(crate) type NamedTables<'d> = Vec<(&'d str, Table<'d>)>;

/// Reads a list of tables, each with a name that is not empty and unique in the list.
pub(crate) fn named_tables<'d>(list: Option<Node<'d>>, kind: &str) -> Result<NamedTables<'d>, DocumentError> {
    let tables = list.map_or_else(|| Ok(Vec::new()), |list| list.named_tables(kind))?;
    if let Some((_, table)) = tables.iter().find(|(name, _)| name.is_empty()) {
        let node = table.required("name", "name = \"…\"")?.with_label(format!("name of the {kind}"));
        return Err(node.error("found an empty text, expected a name"));
    }
    Ok(tables)
}

/// Returns the root and the users of a document, of which there must be at least one.
pub(crate) fn users_of<'d>(document: &'d Document) -> Result<(Table<'d>, NamedTables<'d>), DocumentError> {
    let root = document.root()?;
    // Before the users, so that the error for a file of another kind names its unknown fields.
    root.deny_unknown(&["capacity", "user", "account"])?;
    root.required("capacity", CAPACITY)?;
    let users = named_tables(root.get("user"), "user")?;
    if users.is_empty() {
        let problem = "found no user, expected at least one, as [[user]] with name and demand";
        return Err(root.get("user").map_or_else(|| root.error(problem), |node| node.error(problem)));
    }
    Ok((root, users))
}
