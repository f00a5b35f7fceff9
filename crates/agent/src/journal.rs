//! What survives a crash: what groups had before the agent wrote to them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use evenhand_enforcers::cgroups::{Before, Group};
use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// By the path of the group.
const GROUPS: TableDefinition<'_, &str, &str> = TableDefinition::new("groups");

/// Which life of the agent this is.
const LIVES: TableDefinition<'_, &str, u64> = TableDefinition::new("lives");

/// A group that was, or was about to be, written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The group.
    pub group: Group,
    /// Another group of the same path has another: to that one nothing is put back.
    pub identity: u64,
    /// What it had.
    pub before: Before,
}

#[derive(Deserialize, Serialize)]
struct Kept {
    identity: u64,
    unit: Option<String>,
    devices: Vec<String>,
    before: BTreeMap<String, String>,
}

/// A small database in one file, which one process at a time has open.
#[derive(Debug)]
pub struct Journal {
    database: Database,
    path: PathBuf,
}

/// Why the journal cannot be kept.
#[derive(Debug, Error)]
pub enum JournalError {
    /// Somebody else has it open.
    #[error("{}: another agent is running with it; stop it first", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// It cannot be opened, read or written.
    #[error("{}: {source}", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<redb::Error>,
    },
    /// It says something else than it should.
    #[error("{}: the entry of {group:?} cannot be read: {why}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Which entry.
        group: String,
        /// What is wrong.
        why: String,
    },
}

impl Journal {
    /// Opens the file, or makes it.
    ///
    /// # Errors
    /// If another process has it open, or it is no such file.
    pub fn open(path: &Path) -> Result<Journal, JournalError> {
        let database = match Database::create(path) {
            Ok(database) => database,
            Err(DatabaseError::DatabaseAlreadyOpen) => return Err(JournalError::InUse { path: path.to_owned() }),
            Err(error) => return Err(wrong(path)(error)),
        };
        let journal = Journal { database, path: path.to_owned() };
        journal.change(|_| Ok(()))?;
        Ok(journal)
    }

    fn change(
        &self,
        with: impl FnOnce(&mut redb::Table<'_, &str, &str>) -> Result<(), redb::Error>,
    ) -> Result<(), JournalError> {
        let all = || -> Result<(), redb::Error> {
            let transaction = self.database.begin_write()?;
            with(&mut transaction.open_table(GROUPS)?)?;
            Ok(transaction.commit()?)
        };
        all().map_err(wrong(&self.path))
    }

    /// A number for this life of the agent: this one, if it is larger than those of all lives before, else one more than
    /// the largest. So other nodes see a new life also when the clock was set back.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn incarnation(&self, at_least: u64) -> Result<u64, JournalError> {
        let all = || -> Result<u64, redb::Error> {
            let transaction = self.database.begin_write()?;
            let mut table = transaction.open_table(LIVES)?;
            let last = table.get("last")?.map_or(0, |last| last.value());
            let this = at_least.max(last.saturating_add(1));
            table.insert("last", this)?;
            drop(table);
            transaction.commit()?;
            Ok(this)
        };
        all().map_err(wrong(&self.path))
    }

    /// Writes down what groups have, before anything is written to them; on the disk when it returns.
    ///
    /// # Errors
    /// If it cannot be written; nothing is then.
    pub fn put(&self, entries: &[Entry]) -> Result<(), JournalError> {
        if entries.is_empty() {
            return Ok(());
        }
        let mut lines = Vec::new();
        for Entry { group, identity, before } in entries {
            let kept = Kept {
                identity: *identity,
                unit: group.unit.clone(),
                devices: group.devices.clone(),
                before: before.0.clone(),
            };
            lines.push((&group.path, serde_json::to_string(&kept).map_err(|e| self.content(&group.path, &e))?));
        }
        self.change(|table| {
            for (path, line) in &lines {
                table.insert(path.as_str(), line.as_str())?;
            }
            Ok(())
        })
    }

    /// Forgets groups that are gone or have been put back.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn forget<'a>(&self, paths: impl IntoIterator<Item = &'a str>) -> Result<(), JournalError> {
        let mut paths = paths.into_iter().peekable();
        if paths.peek().is_none() {
            return Ok(());
        }
        self.change(|table| {
            for path in paths {
                table.remove(path)?;
            }
            Ok(())
        })
    }

    /// What was written down and not forgotten, by path.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn entries(&self) -> Result<Vec<Entry>, JournalError> {
        let lines = || -> Result<Vec<(String, String)>, redb::Error> {
            let table = self.database.begin_read()?.open_table(GROUPS)?;
            let mut lines = Vec::new();
            for row in table.iter()? {
                let (path, line) = row?;
                lines.push((path.value().to_owned(), line.value().to_owned()));
            }
            Ok(lines)
        };
        let mut entries = Vec::new();
        for (path, line) in lines().map_err(wrong(&self.path))? {
            let kept: Kept = serde_json::from_str(&line).map_err(|e| self.content(&path, &e))?;
            let group = Group { path, unit: kept.unit, devices: kept.devices };
            entries.push(Entry { group, identity: kept.identity, before: Before(kept.before) });
        }
        Ok(entries)
    }

    fn content(&self, group: &str, why: &serde_json::Error) -> JournalError {
        JournalError::Content { path: self.path.clone(), group: group.to_owned(), why: why.to_string() }
    }
}

fn wrong<E: Into<redb::Error>>(path: &Path) -> impl FnOnce(E) -> JournalError {
    let path = path.to_owned();
    move |error| JournalError::Database { path, source: Box::new(error.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_is_there_for_the_next_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.redb");
        let entry = |path: &str, value: &str| Entry {
            group: Group { path: path.into(), unit: Some("a.scope".into()), devices: vec!["tap0".into()] },
            identity: 7,
            before: Before([("cpu.weight".to_owned(), value.to_owned())].into()),
        };
        let journal = Journal::open(&path).unwrap();
        assert!(matches!(Journal::open(&path), Err(JournalError::InUse { .. })));
        journal.put(&[entry("b", "1"), entry("a", "2"), entry("c", "3")]).unwrap();
        journal.put(&[entry("b", "4")]).unwrap();
        journal.forget(["c", "not there"]).unwrap();
        drop(journal);
        assert_eq!(Journal::open(&path).unwrap().entries().unwrap(), [entry("a", "2"), entry("b", "4")]);
    }

    #[test]
    fn lives_are_numbered_upwards_whatever_the_clock_says() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.redb");
        let next = |at_least| Journal::open(&path).unwrap().incarnation(at_least).unwrap();
        assert_eq!([100, 50, 50, 200].map(next), [100, 101, 102, 200]);
    }

    #[test]
    fn a_file_that_is_none_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.redb");
        std::fs::write(&path, "hello").unwrap();
        let said = Journal::open(&path).unwrap_err().to_string();
        assert!(said.contains("agent.redb: "), "{said}");
    }
}
