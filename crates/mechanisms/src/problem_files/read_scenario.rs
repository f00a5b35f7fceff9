//! Reads scenarios: problems whose users arrive and leave.

use crate::{AccountTree, Arithmetic, ProblemError};
use evenhand_documents::{Document, DocumentError, Node, Table};
use evenhand_model::{Rational, Span};

use crate::problem_files::read_accounts::{AccountEntry, tree};
use crate::problem_files::read_problem::{UserEntry, user_of};
use crate::problem_files::read_shared_sections::{SharedSections, users_of};

/// Scenario in the units of its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioFile {
    /// Names of the resources, in the order of the file, which breaks ties.
    pub resources: Vec<String>,
    /// Capacity of each.
    pub capacity: Vec<Rational>,
    /// Users, in the order of the file.
    pub users: Vec<ScenarioUser>,
    /// Accounts, in the order of the file.
    pub accounts: Vec<AccountEntry>,
}

/// User of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioUser {
    /// Name.
    pub name: String,
    /// Weight, greater than 0.
    pub weight: Rational,
    /// Share of each capacity that overuse before the scenario committed.
    pub commitment: Vec<Rational>,
    /// Account that the user belongs to, by its place in the file's list.
    pub account: Option<usize>,
    /// Periods of presence, in order of time; they do not overlap.
    pub phases: Vec<Phase>,
}

/// Period in which a user is present and wants something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Start, in seconds.
    pub from: Rational,
    /// End, in seconds, exclusive; `None` if it does not end.
    pub until: Option<Rational>,
    /// Largest number of tasks wanted meanwhile; `None` for no limit.
    pub tasks: Option<Rational>,
    /// Amount of each resource that one task takes meanwhile, in the units of the capacities.
    pub demand: Vec<Rational>,
}

impl ScenarioFile {
    /// Reads a scenario that will be computed in `arithmetic`: a problem whose users may have `arrive` (default 0) and
    /// `leave`, or else `phases` with `from`, `until`, `tasks` and `demand`, of which the last two default to those of
    /// the user. Times are numbers of seconds or durations (`"90s"`, `"8h"`, `"1.5d"`).
    ///
    /// # Errors
    /// Returns an error as [`ProblemFile::read`](super::ProblemFile::read) does, and if a user has both forms, a time ends before it starts, or
    /// phases overlap.
    pub fn read(document: &Document, arithmetic: Arithmetic) -> Result<ScenarioFile, DocumentError> {
        let (root, tables) = users_of(document)?;
        let shared = SharedSections::read(&root, arithmetic)?;
        let mut users = Vec::with_capacity(tables.len());
        for (name, table) in &tables {
            let fields = ["name", "weight", "tasks", "demand", "commitment", "account", "arrive", "leave", "phases"];
            table.deny_unknown(&fields)?;
            let UserEntry { name, weight, commitment, account, .. } = user_of(name, table, &shared)?;
            let phases = phases(&name, table, &shared)?;
            users.push(ScenarioUser { name, weight, commitment, account, phases });
        }
        let SharedSections { resources, capacity, accounts, .. } = shared;
        Ok(ScenarioFile { resources, capacity, users, accounts })
    }

    /// Returns the accounts that users belong to, each after its parent; `None` if no user belongs to one.
    ///
    /// # Errors
    /// Returns an error if accounts form a cycle, which [`read`](Self::read) excludes.
    pub fn account_tree(&self) -> Result<Option<AccountTree<Rational>>, ProblemError> {
        let user_accounts: Vec<Option<usize>> = self.users.iter().map(|user| user.account).collect();
        tree(&self.accounts, &user_accounts)
    }
}

/// Reads the phases of a user.
fn phases<'d>(name: &str, table: &Table<'d>, shared: &SharedSections<'d>) -> Result<Vec<Phase>, DocumentError> {
    let own_tasks = table.get("tasks").map(|node| shared.tasks(&node, name)).transpose()?;
    let own_demand = table.get("demand").map(|node| shared.demand(&node, name)).transpose()?;
    let wanted = |t: &Table<'d>| {
        let tasks = t.get("tasks").map_or(Ok(own_tasks.clone()), |node| shared.tasks(&node, name).map(Some))?;
        let demand = match (t.get("demand"), &own_demand) {
            (Some(node), _) => shared.demand(&node, name)?,
            (None, Some(own)) => own.clone(),
            (None, None) => {
                t.required("demand", "what one task takes, here or of the user, as in demand = { cpu = 1 }")?;
                Vec::new()
            }
        };
        Ok::<_, DocumentError>((tasks, demand))
    };
    let Some(list) = table.get("phases") else {
        let (from, until) = times(table, name, "arrive", "leave")?;
        let (tasks, demand) = wanted(table)?;
        return Ok(vec![Phase { from: from.map_or(Rational::ZERO, |(at, _)| at), until, tasks, demand }]);
    };
    for key in ["arrive", "leave"] {
        if let Some(node) = table.get(key) {
            let problem = format!("found both {key} and phases of {name:?}, expected one of the two");
            return Err(node.error_against(problem, &list, "and here"));
        }
    }
    let mut read: Vec<(Phase, Node<'d>)> = Vec::new();
    for item in list.list()? {
        let phase = item.table()?.with_label(format!("a phase of {name:?}"));
        phase.deny_unknown(&["from", "until", "tasks", "demand"])?;
        phase.required("from", "the time at which it starts")?;
        let (Some((from, node)), until) = times(&phase, name, "from", "until")? else { continue };
        let (tasks, demand) = wanted(&phase)?;
        read.push((Phase { from, until, tasks, demand }, node));
    }
    if read.is_empty() {
        return Err(list.error(format!("found no phase of {name:?}, expected at least one")));
    }
    read.sort_by(|a, b| a.0.from.cmp(&b.0.from));
    for pair in read.windows(2) {
        let [(earlier, begins), (later, node)] = pair else { continue };
        if earlier.until.as_ref().is_none_or(|until| *until > later.from) {
            let problem = "found a phase that starts before another one has ended, expected one at a time";
            return Err(node.error_against(problem, begins, "the other one"));
        }
    }
    Ok(read.into_iter().map(|(phase, _)| phase).collect())
}

/// Start with its node, and end.
type Times<'d> = (Option<(Rational, Node<'d>)>, Option<Rational>);

/// Reads start and end, where they are given.
fn times<'d>(table: &Table<'d>, user: &str, begin: &str, end: &str) -> Result<Times<'d>, DocumentError> {
    let named = |key: &str| table.get(key).map(|node| node.with_label(format!("{key} of {user:?}")));
    let begins = named(begin).map(|node| Ok::<_, DocumentError>((time(&node)?, node))).transpose()?;
    let Some(node) = named(end) else { return Ok((begins, None)) };
    let ends = time(&node)?;
    match &begins {
        Some((from, begins)) if ends <= *from => Err(node.error_against(
            format!("found a time that is not after {begin}, expected a later one"),
            begins,
            begin,
        )),
        None if ends.is_zero() => Err(node.error(format!("found 0, expected a time after {begin}, which is 0"))),
        _ => Ok((begins, Some(ends))),
    }
}

/// Reads a number of seconds, or a duration with its unit.
fn time(node: &Node<'_>) -> Result<Rational, DocumentError> {
    let nanos = |span: Span| Rational::from(span.nanos()) / Rational::from(1_000_000_000u64);
    match node.is_text().then(|| node.text()).transpose()?.map(Span::parse) {
        Some(Ok(span)) => Ok(nanos(span)),
        // A fraction in quotes is a number of seconds.
        Some(Err(_)) if node.quantity().is_err() => Err(node.error(format!(
            "found {:?}, expected seconds (90) or a duration (\"90s\", \"1.5h\", \"8d\")",
            node.text()?
        ))),
        _ => Ok(node.quantity()?.exact().clone()),
    }
}
