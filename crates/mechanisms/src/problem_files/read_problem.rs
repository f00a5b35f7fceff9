//! Reads problems.

use crate::{Arithmetic, Problem, ProblemError, User};
use evenhand_documents::{Document, DocumentError, Table};
use evenhand_model::Rational;

use crate::problem_files::read_accounts::{AccountEntry, account_named, tree};
use crate::problem_files::read_shared_sections::{SharedSections, users_of, weight};

/// Problem in the units of its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProblemFile {
    /// Names of the resources, in the order of the file, which breaks ties.
    pub resources: Vec<String>,
    /// Capacity of each.
    pub capacity: Vec<Rational>,
    /// Users, in the order of the file.
    pub users: Vec<UserEntry>,
    /// Accounts, in the order of the file.
    pub accounts: Vec<AccountEntry>,
}

/// User of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserEntry {
    /// Name.
    pub name: String,
    /// Weight, greater than 0.
    pub weight: Rational,
    /// Largest number of tasks wanted; `None` for no limit.
    pub tasks: Option<Rational>,
    /// Amount of each resource that one task takes, in the units of the capacities.
    pub demand: Vec<Rational>,
    /// Share of each capacity that past overuse committed.
    pub commitment: Vec<Rational>,
    /// Account that the user belongs to, by its place in the file's list.
    pub account: Option<usize>,
}

impl ProblemFile {
    /// Reads a problem that will be computed in `arithmetic`.
    ///
    /// # Errors
    /// Returns an error if a field or resource is unknown, a number is negative, infinite or not a number, a weight is
    /// 0, the demands of a user are all 0 or name a resource of capacity 0, a name occurs twice, there are no users or
    /// no resources, or accounts are unknown or form a cycle; in floating point also if a quantity would become 0 or
    /// infinite.
    pub fn read(document: &Document, arithmetic: Arithmetic) -> Result<ProblemFile, DocumentError> {
        let (root, tables) = users_of(document)?;
        let shared = SharedSections::read(&root, arithmetic)?;
        let mut users = Vec::with_capacity(tables.len());
        for (name, table) in &tables {
            table.deny_unknown(&["name", "weight", "tasks", "demand", "commitment", "account"])?;
            let demand = table.required("demand", "what one task takes, as in demand = { cpu = 1 }")?;
            let demand = shared.demand(&demand, name)?;
            let tasks = table.get("tasks").map(|node| shared.tasks(&node, name)).transpose()?;
            users.push(UserEntry { tasks, demand, ..user_of(name, table, &shared)? });
        }
        let SharedSections { resources, capacity, accounts, .. } = shared;
        Ok(ProblemFile { resources, capacity, users, accounts })
    }

    /// Converts to shares of capacity. Accounts without users have no entitlement and are left out.
    ///
    /// # Errors
    /// Returns an error if the fields were changed after reading to values that do not form a valid problem.
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
        let user_accounts: Vec<Option<usize>> = self.users.iter().map(|user| user.account).collect();
        match tree(&self.accounts, &user_accounts)? {
            Some(tree) => problem.with_accounts(tree),
            None => Ok(problem),
        }
    }
}

/// Reads the fields of a user other than tasks and demand.
pub(crate) fn user_of<'d>(
    name: &str,
    table: &Table<'d>,
    shared: &SharedSections<'d>,
) -> Result<UserEntry, DocumentError> {
    let commitment = match table.get("commitment") {
        Some(node) => shared.commitment(&node, name)?,
        None => vec![Rational::ZERO; shared.resources.len()],
    };
    let account = |node| account_named(&node, &shared.account_numbers);
    Ok(UserEntry {
        name: name.to_string(),
        weight: weight(table, name, shared.arithmetic)?,
        tasks: None,
        demand: Vec::new(),
        commitment,
        account: table
            .get("account")
            .map(|node| account(node.with_label(format!("account of {name:?}"))))
            .transpose()?,
    })
}
