//! A problem as people write it.

use crate::{Problem, ProblemError, User};
use evenhand_documents::{Document, DocumentError, Table};
use evenhand_model::Rational;

use crate::problem_files::account::{AccountEntry, account_named, tree};
use crate::problem_files::ground::{Arithmetic, Ground, users_of, weight};

/// What is to be divided among whom, in the units of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProblemFile {
    /// The names of the resources, in the order of the file (which decides ties).
    pub resources: Vec<String>,
    /// How much there is of each.
    pub capacity: Vec<Rational>,
    /// The users, in the order of the file.
    pub users: Vec<UserEntry>,
    /// The accounts, in the order of the file.
    pub accounts: Vec<AccountEntry>,
}

/// One user of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserEntry {
    /// What the user is called.
    pub name: String,
    /// Weight, greater than 0.
    pub weight: Rational,
    /// The most tasks wanted; `None` for no limit.
    pub tasks: Option<Rational>,
    /// What one task takes of each resource, in the units of the capacities.
    pub demand: Vec<Rational>,
    /// The share of each capacity that past over-use committed.
    pub commitment: Vec<Rational>,
    /// The account the user belongs to, by its place in the file's list.
    pub account: Option<usize>,
}

impl ProblemFile {
    /// Reads a problem that is to be computed in this arithmetic.
    ///
    /// # Errors
    /// If the document is no problem: a field or resource is unknown, a number is negative, infinite or
    /// no number, a weight is 0, a demand is all 0 or demands something of which there is nothing, a
    /// name stands twice, there are no users or no resources, accounts are unknown or parts of each
    /// other; in floating point also if a quantity becomes 0 or infinite.
    pub fn read(document: &Document, arithmetic: Arithmetic) -> Result<ProblemFile, DocumentError> {
        let (root, tables) = users_of(document)?;
        let ground = Ground::read(&root, arithmetic)?;
        let mut users = Vec::with_capacity(tables.len());
        for (name, table) in &tables {
            table.deny_unknown(&["name", "weight", "tasks", "demand", "commitment", "account"])?;
            let demand = table.required("demand", "what one task takes, as in demand = { cpu = 1 }")?;
            let demand = ground.demand(&demand, name)?;
            let tasks = table.get("tasks").map(|node| ground.tasks(&node, name)).transpose()?;
            users.push(UserEntry { tasks, demand, ..user_of(name, table, &ground)? });
        }
        let Ground { resources, capacity, accounts, .. } = ground;
        Ok(ProblemFile { resources, capacity, users, accounts })
    }

    /// The problem in shares of capacity. Accounts without users have no claim and are left out.
    ///
    /// # Errors
    /// None for a file as read; else what the changes made of it.
    pub fn problem(&self) -> Result<Problem<Rational>, ProblemError> {
        let share = |(d, c): (&Rational, &Rational)| if d.is_zero() { Rational::ZERO } else { d / c };
        let problem = Problem::new(
            self.resources.len(),
            self.users.iter().map(|user| User {
                weight: user.weight.clone(),
                demand: user.demand.iter().zip(&self.capacity).map(share).collect(),
                limit: user.tasks.clone(),
                commitment: user.commitment.clone(),
            }),
        )?;
        let homes: Vec<Option<usize>> = self.users.iter().map(|user| user.account).collect();
        match tree(&self.accounts, &homes)? {
            Some(tree) => problem.with_tree(tree),
            None => Ok(problem),
        }
    }
}

/// What every user has, without tasks and demand.
pub(crate) fn user_of<'d>(name: &str, table: &Table<'d>, ground: &Ground<'d>) -> Result<UserEntry, DocumentError> {
    let commitment = match table.get("commitment") {
        Some(node) => ground.commitment(&node, name)?,
        None => vec![Rational::ZERO; ground.resources.len()],
    };
    let account = |node| account_named(&node, &ground.account_numbers);
    Ok(UserEntry {
        name: name.to_string(),
        weight: weight(table, name, ground.arithmetic)?,
        tasks: None,
        demand: Vec::new(),
        commitment,
        account: table
            .get("account")
            .map(|node| account(node.with_label(format!("account of {name:?}"))))
            .transpose()?,
    })
}
