//! Stores, for recovery after a crash, the settings that groups had before the agent changed them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use evenhand_enforcers::cgroups::{Group, SavedState};
use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The saved settings, by the path of the group.
const GROUPS: TableDefinition<'_, &str, &str> = TableDefinition::new("groups");

/// The last incarnation of the agent.
const INCARNATIONS: TableDefinition<'_, &str, u64> = TableDefinition::new("lives");

/// A group that was changed, or was about to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The group.
    pub group: Group,
    /// The identity of the group: a later group of the same path is not restored.
    pub identity: u64,
    /// The settings before the first change.
    pub saved: SavedState,
}

/// The format of an entry in the file.
#[derive(Deserialize, Serialize)]
struct StoredEntry {
    identity: u64,
    unit: Option<String>,
    devices: Vec<String>,
    #[serde(rename = "before")]
    saved: BTreeMap<String, String>,
}

/// A small database in one file, which one process at a time can open.
#[derive(Debug)]
pub struct Journal {
    database: Database,
    path: PathBuf,
}

/// Why the journal cannot be used.
#[derive(Debug, Error)]
pub enum JournalError {
    /// Another process has it open.
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
        /// The database's error.
        source: Box<redb::Error>,
    },
    /// An entry has another form than expected.
    #[error("{}: the entry of {group:?} cannot be read: {why}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The path of the entry's group.
        group: String,
        /// The problem.
        why: String,
    },
}

impl Journal {
    /// Opens the file, or creates it.
    ///
    /// # Errors
    /// Returns an error if another process has it open, or if it is not such a file.
    pub fn open(path: &Path) -> Result<Journal, JournalError> {
        let database = match Database::create(path) {
            Ok(database) => database,
            Err(DatabaseError::DatabaseAlreadyOpen) => return Err(JournalError::InUse { path: path.to_owned() }),
            Err(error) => return Err(database_error(path)(error)),
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
        all().map_err(database_error(&self.path))
    }

    /// Returns and stores the number of a new incarnation: `at_least`, or one more than the largest number so far. So other
    /// nodes recognize a restart also when the clock was set back.
    ///
    /// # Errors
    /// Returns an error if it cannot be written.
    pub fn incarnation(&self, at_least: u64) -> Result<u64, JournalError> {
        let all = || -> Result<u64, redb::Error> {
            let transaction = self.database.begin_write()?;
            let mut table = transaction.open_table(INCARNATIONS)?;
            let last = table.get("last")?.map_or(0, |last| last.value());
            let this = at_least.max(last.saturating_add(1));
            table.insert("last", this)?;
            drop(table);
            transaction.commit()?;
            Ok(this)
        };
        all().map_err(database_error(&self.path))
    }

    /// Stores the settings of groups, before these are changed. They are on the disk when this returns.
    ///
    /// # Errors
    /// Returns an error if they cannot be written; then none is.
    pub fn put(&self, entries: &[Entry]) -> Result<(), JournalError> {
        if entries.is_empty() {
            return Ok(());
        }
        let mut lines = Vec::new();
        for Entry { group, identity, saved } in entries {
            let stored = StoredEntry {
                identity: *identity,
                unit: group.unit.clone(),
                devices: group.devices.clone(),
                saved: saved.0.clone(),
            };
            lines.push((&group.path, serde_json::to_string(&stored).map_err(|e| self.content(&group.path, &e))?));
        }
        self.change(|table| {
            for (path, line) in &lines {
                table.insert(path.as_str(), line.as_str())?;
            }
            Ok(())
        })
    }

    /// Removes the entries of groups that no longer exist or have been restored.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
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

    /// Returns all entries, sorted by path.
    ///
    /// # Errors
    /// Returns an error if they cannot be read.
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
        for (path, line) in lines().map_err(database_error(&self.path))? {
            let stored: StoredEntry = serde_json::from_str(&line).map_err(|e| self.content(&path, &e))?;
            let group = Group { path, unit: stored.unit, devices: stored.devices };
            entries.push(Entry { group, identity: stored.identity, saved: SavedState(stored.saved) });
        }
        Ok(entries)
    }

    fn content(&self, group: &str, why: &serde_json::Error) -> JournalError {
        JournalError::Content { path: self.path.clone(), group: group.to_owned(), why: why.to_string() }
    }
}

fn database_error<E: Into<redb::Error>>(path: &Path) -> impl FnOnce(E) -> JournalError {
    let path = path.to_owned();
    move |error| JournalError::Database { path, source: Box::new(error.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_there_for_the_next_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.redb");
        let entry = |path: &str, value: &str| Entry {
            group: Group { path: path.into(), unit: Some("a.scope".into()), devices: vec!["tap0".into()] },
            identity: 7,
            saved: SavedState([("cpu.weight".to_owned(), value.to_owned())].into()),
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
    fn incarnations_increase_whatever_the_clock_shows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.redb");
        let next = |at_least| Journal::open(&path).unwrap().incarnation(at_least).unwrap();
        assert_eq!([100, 50, 50, 200].map(next), [100, 101, 102, 200]);
    }

    #[test]
    fn a_file_of_another_format_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.redb");
        std::fs::write(&path, "hello").unwrap();
        let message = Journal::open(&path).unwrap_err().to_string();
        assert!(message.contains("agent.redb: "), "{message}");
    }
}
