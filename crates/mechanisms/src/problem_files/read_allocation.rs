//! Reads allocations, as `allocate` prints them or in the same form from elsewhere.

use std::collections::HashMap;

use evenhand_documents::{Document, DocumentError, Node, Table, did_you_mean};
use evenhand_model::Rational;

use crate::problem_files::read_problem::ProblemFile;

/// Number of tasks of each user of a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocationFile {
    /// Mechanism that the file names.
    pub mechanism: Option<String>,
    /// Tasks of each user, in the problem's order. Negative numbers are read as well; an audit finds them.
    pub tasks: Vec<Rational>,
}

impl AllocationFile {
    /// Reads `{"users": [{"name": …, "tasks": …}]}`, or a list of such objects that each name their `mechanism`, from
    /// which the argument `mechanism` chooses. Other fields are ignored.
    ///
    /// # Errors
    /// Returns an error if the document has neither form, if it has several allocations and none is chosen, or if a
    /// user of the problem is missing, unknown or listed twice.
    pub fn read(
        document: &Document,
        problem: &ProblemFile,
        mechanism: Option<&str>,
    ) -> Result<AllocationFile, DocumentError> {
        let table = chosen(document, mechanism)?;
        let expected = "users = [{ name = …, tasks = … }, …]";
        let list = table.required("users", expected)?;
        let numbers: HashMap<&str, usize> =
            problem.users.iter().enumerate().map(|(i, user)| (user.name.as_str(), i)).collect();
        let mut found: Vec<Option<(Rational, Node<'_>)>> = vec![None; problem.users.len()];
        for item in list.list()? {
            let user = item.table()?.with_label("the user");
            let node = user.required("name", "the name of a user of the problem")?;
            let name = node.text()?;
            let Some(&number) = numbers.get(name) else {
                let hint = did_you_mean(name, problem.users.iter().map(|u| u.name.as_str()));
                return Err(node.error(format!("found {name:?}, expected a user of the problem{hint}")));
            };
            if let Some((_, first)) = &found[number] {
                let problem = format!("found {name:?} a second time, expected each user once");
                return Err(node.error_against(problem, first, "first here"));
            }
            let tasks = user.with_label(format!("user {name:?}")).required("tasks", "how many the user has")?;
            let tasks = tasks.with_label(format!("tasks of {name:?}")).exact()?;
            found[number] = Some((tasks, node));
        }
        let names = problem.users.iter().zip(&found).filter(|(_, tasks)| tasks.is_none());
        let missing: Vec<String> = names.map(|(user, _)| format!("{:?}", user.name)).collect();
        if !missing.is_empty() {
            let more = if missing.len() > 3 { ", …" } else { "" };
            let some = missing.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
            let (n, all) = (missing.len(), found.len());
            let problem =
                format!("found no tasks of {some}{more} ({n} of {all} users), expected every user of the problem");
            return Err(list.error(problem));
        }
        let tasks = found.into_iter().flatten().map(|(tasks, _)| tasks).collect();
        let mechanism = table.get("mechanism").map(|node| node.text().map(String::from)).transpose()?;
        Ok(AllocationFile { mechanism, tasks })
    }
}

/// Returns the object of the chosen mechanism.
fn chosen<'d>(document: &'d Document, mechanism: Option<&str>) -> Result<Table<'d>, DocumentError> {
    let all = document.node().with_label("the allocation");
    let tables = if all.is_list() {
        all.list()?.map(|item| item.table()).collect::<Result<Vec<_>, _>>()?
    } else {
        vec![all.table()?]
    };
    let mut named = Vec::with_capacity(tables.len());
    for table in tables {
        let name = table.get("mechanism").map(|node| node.text()).transpose()?;
        named.push((name, table));
    }
    let known = named.iter().filter_map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    if let Some(mechanism) = mechanism {
        // An object that names no mechanism may be the one.
        named.retain(|(name, _)| name.is_none_or(|name| name == mechanism));
        if named.is_empty() {
            return Err(all.error(format!("found no allocation of {mechanism}, expected one; there are: {known}")));
        }
    }
    match named.len() {
        1 => Ok(named.remove(0).1),
        0 => Err(all.error("found an empty list, expected an allocation")),
        n => Err(all.error(format!("found {n} allocations, expected one; choose by --mechanism: {known}"))),
    }
}
