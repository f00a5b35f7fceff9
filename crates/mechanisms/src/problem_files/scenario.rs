//! A problem whose users come and go.

use crate::{ProblemError, Tree};
use evenhand_documents::{Document, DocumentError, Node, Table};
use evenhand_model::{Rational, Span};

use crate::problem_files::account::{AccountEntry, tree};
use crate::problem_files::ground::{Arithmetic, Ground, users_of};
use crate::problem_files::problem::{ProblemFile, UserEntry, user_of};

/// What is to be divided, and who wants what of it when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioFile {
    /// The names of the resources, in the order of the file (which decides ties).
    pub resources: Vec<String>,
    /// How much there is of each.
    pub capacity: Vec<Rational>,
    /// The users, in the order of the file.
    pub users: Vec<ScenarioUser>,
    /// The accounts, in the order of the file.
    pub accounts: Vec<AccountEntry>,
}

/// One user of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioUser {
    /// What the user is called.
    pub name: String,
    /// Weight, greater than 0.
    pub weight: Rational,
    /// The share of each capacity that over-use before the scenario committed.
    pub commitment: Vec<Rational>,
    /// The account the user belongs to, by its place in the file's list.
    pub account: Option<usize>,
    /// When the user is there, by time; no two at once.
    pub phases: Vec<Phase>,
}

/// A time in which a user wants something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// When it begins, in seconds.
    pub from: Rational,
    /// When it has ended, in seconds; `None` if never.
    pub until: Option<Rational>,
    /// The most tasks wanted meanwhile; `None` for no limit.
    pub tasks: Option<Rational>,
    /// What one task takes of each resource meanwhile, in the units of the capacities.
    pub demand: Vec<Rational>,
}

impl Phase {
    /// Whether it lasts at an instant: from its beginning to just before its end.
    pub fn holds_at(&self, at: &Rational) -> bool {
        self.from <= *at && self.until.as_ref().is_none_or(|until| at < until)
    }
}

impl ScenarioFile {
    /// Reads a scenario that is to be computed in this arithmetic: a problem whose users may have
    /// `arrive` (default 0) and `leave`, or else `phases` with `from`, `until`, `tasks` and `demand`,
    /// of which the last two are the user's own where they are not said. Times are numbers of seconds or
    /// durations (`"90s"`, `"8h"`, `"1.5d"`).
    ///
    /// # Errors
    /// As for a [`ProblemFile`]; and if a user has both, a time ends before it begins, or phases overlap.
    pub fn read(document: &Document, arithmetic: Arithmetic) -> Result<ScenarioFile, DocumentError> {
        let (root, tables) = users_of(document)?;
        let ground = Ground::read(&root, arithmetic)?;
        let mut users = Vec::with_capacity(tables.len());
        for (name, table) in &tables {
            let fields = ["name", "weight", "tasks", "demand", "commitment", "account", "arrive", "leave", "phases"];
            table.deny_unknown(&fields)?;
            let UserEntry { name, weight, commitment, account, .. } = user_of(name, table, &ground)?;
            let phases = phases(&name, table, &ground)?;
            users.push(ScenarioUser { name, weight, commitment, account, phases });
        }
        let Ground { resources, capacity, accounts, .. } = ground;
        Ok(ScenarioFile { resources, capacity, users, accounts })
    }

    /// The accounts that users belong to, each after its parent; `None` if nobody belongs to one.
    ///
    /// # Errors
    /// If accounts are parts of each other, which no file that was read says.
    pub fn tree(&self) -> Result<Option<Tree<Rational>>, ProblemError> {
        let homes: Vec<Option<usize>> = self.users.iter().map(|user| user.account).collect();
        tree(&self.accounts, &homes)
    }

    /// Every instant at which a phase begins or ends, by time.
    pub fn instants(&self) -> Vec<Rational> {
        let phases = self.users.iter().flat_map(|user| &user.phases);
        let mut instants: Vec<Rational> =
            phases.flat_map(|p| [Some(&p.from), p.until.as_ref()]).flatten().cloned().collect();
        instants.sort_unstable();
        instants.dedup();
        instants
    }

    /// The problem of those who are there at an instant, and which users of the scenario they are. A
    /// phase that ends at the instant is over.
    pub fn at(&self, instant: &Rational) -> (Vec<usize>, ProblemFile) {
        let mut present = Vec::new();
        let mut users = Vec::new();
        for (number, user) in self.users.iter().enumerate() {
            let Some(phase) = user.phases.iter().find(|phase| phase.holds_at(instant)) else { continue };
            present.push(number);
            users.push(UserEntry {
                name: user.name.clone(),
                weight: user.weight.clone(),
                tasks: phase.tasks.clone(),
                demand: phase.demand.clone(),
                commitment: user.commitment.clone(),
                account: user.account,
            });
        }
        let (resources, capacity, accounts) = (self.resources.clone(), self.capacity.clone(), self.accounts.clone());
        (present, ProblemFile { resources, capacity, users, accounts })
    }
}

/// When a user is there and what is wanted then.
fn phases<'d>(name: &str, table: &Table<'d>, ground: &Ground<'d>) -> Result<Vec<Phase>, DocumentError> {
    let own_tasks = table.get("tasks").map(|node| ground.tasks(&node, name)).transpose()?;
    let own_demand = table.get("demand").map(|node| ground.demand(&node, name)).transpose()?;
    let wanted = |t: &Table<'d>| {
        let tasks = t.get("tasks").map_or(Ok(own_tasks.clone()), |node| ground.tasks(&node, name).map(Some))?;
        let demand = match (t.get("demand"), &own_demand) {
            (Some(node), _) => ground.demand(&node, name)?,
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
        phase.required("from", "the time at which it begins")?;
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
            let problem = "found a phase that begins before another one has ended, expected one at a time";
            return Err(node.error_against(problem, begins, "the other one"));
        }
    }
    Ok(read.into_iter().map(|(phase, _)| phase).collect())
}

type Times<'d> = (Option<(Rational, Node<'d>)>, Option<Rational>);

/// Beginning and end, as far as they are said.
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

/// Seconds: a number, or a duration with its unit.
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
