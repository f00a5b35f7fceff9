//! Stores, for recovery after a crash, the settings that groups had before the agent changed them.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use evenhand_enforcers::cgroups::{Group, SavedState};
use redb::backends::{FileBackend, InMemoryBackend};
use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, StorageBackend, StorageError, TableDefinition};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::trusted_files::{TrustError, open_private, open_state_file};

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
    /// The path of the group, which is the key too: so that an entry can be found in a damaged file. The first field, since
    /// [`ENTRY_START`] is searched for.
    #[serde(default)]
    path: String,
    identity: u64,
    unit: Option<String>,
    devices: Vec<String>,
    #[serde(rename = "before")]
    saved: BTreeMap<String, String>,
}

/// The first bytes of an entry in the file.
const ENTRY_START: &[u8] = b"{\"path\":\"";

/// What could be read of a damaged journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Salvaged {
    /// The entries, sorted by path.
    pub entries: Vec<Entry>,
    /// Whether the file is whole. Otherwise its bytes were searched for entries: some may be missing, and some may be of
    /// groups that were restored already.
    pub is_whole: bool,
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
    /// Another user could change it.
    #[error(transparent)]
    Trust(TrustError),
    /// It is not a journal, or not a whole one.
    #[error(
        "{}: {why}. Groups may still have values that the agent wrote; to restore what can be read of it: evenhand agent \
         release --from-journal {}; then move the file away",
        path.display(), path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The problem.
        why: String,
    },
    /// It cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
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

impl From<TrustError> for JournalError {
    fn from(error: TrustError) -> JournalError {
        match error {
            TrustError::Read { path, source } => JournalError::Read { path, source },
            other => JournalError::Trust(other),
        }
    }
}

impl Journal {
    /// Returns the path of the journal in the folder of an agent's state.
    pub fn path_in(state: &Path) -> PathBuf {
        state.join("agent.redb")
    }

    /// Opens the file, or creates it.
    ///
    /// # Errors
    /// Returns an error if another process has it open, if another user could change it or the folder in which it is, or if it is
    /// not such a file.
    pub fn open(path: &Path) -> Result<Journal, JournalError> {
        let file = open_private(path)?;
        Journal::open_with(path, || FileBackend::new(file))
    }

    /// Opens the journal in a storage, which is reported as this file: for tests of a storage that fails.
    ///
    /// # Errors
    /// As [`open`](Journal::open).
    #[doc(hidden)]
    pub fn open_in(storage: impl StorageBackend, path: &Path) -> Result<Journal, JournalError> {
        Journal::open_with(path, || Ok(storage))
    }

    fn open_with<S: StorageBackend>(
        path: &Path,
        storage: impl FnOnce() -> Result<S, DatabaseError>,
    ) -> Result<Journal, JournalError> {
        let damaged = |why: String| JournalError::Damaged { path: path.to_owned(), why };
        // The database panics on some kinds of damage.
        let open = || Database::builder().create_with_backend(storage()?);
        let database = match catch_unwind(AssertUnwindSafe(open)) {
            Ok(Ok(database)) => database,
            Ok(Err(DatabaseError::DatabaseAlreadyOpen)) => return Err(JournalError::InUse { path: path.to_owned() }),
            // A full or a broken disk: the system's error, which says nothing of the file.
            Ok(Err(DatabaseError::Storage(StorageError::Io(source)))) if source.raw_os_error().is_some() => {
                return Err(JournalError::Read { path: path.to_owned(), source });
            }
            Ok(Err(error)) => return Err(damaged(error.to_string())),
            Err(_) => return Err(damaged("the file is damaged".into())),
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
                path: group.path.clone(),
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
        let mut entries = Vec::new();
        for (path, line) in lines(&self.database).map_err(database_error(&self.path))? {
            let stored: StoredEntry = serde_json::from_str(&line).map_err(|e| self.content(&path, &e))?;
            entries.push(stored.into_entry(path));
        }
        Ok(entries)
    }

    /// Returns what can be read of a journal that may be damaged. Does not change the file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read at all, if another user could change it, or if another process has it open.
    pub fn salvage(path: &Path) -> Result<Salvaged, JournalError> {
        let read = |source| JournalError::Read { path: path.to_owned(), source };
        let mut file = open_state_file(path)?;
        // The lock that the database takes: what a running agent has written is not left over.
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(JournalError::InUse { path: path.to_owned() }),
            Err(error) => return Err(read(error.into())),
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(read)?;
        if let Some(entries) = catch_unwind(|| whole(&bytes)).ok().flatten() {
            return Ok(Salvaged { entries, is_whole: true });
        }
        Ok(Salvaged { entries: found_entries(&bytes), is_whole: false })
    }

    /// Returns the entries that an agent left which runs no more; empty if one is running, or if there is no whole journal. Does not
    /// change the file.
    pub fn left_over(path: &Path) -> Vec<Entry> {
        match Journal::salvage(path) {
            Ok(Salvaged { entries, is_whole: true }) => entries,
            // What is found in a damaged file may have been restored; `agent run` reports the damage.
            _ => Vec::new(),
        }
    }

    fn content(&self, group: &str, why: &serde_json::Error) -> JournalError {
        JournalError::Content { path: self.path.clone(), group: group.to_owned(), why: why.to_string() }
    }
}

impl StoredEntry {
    fn into_entry(self, path: String) -> Entry {
        let group = Group { path, unit: self.unit, devices: self.devices };
        Entry { group, identity: self.identity, saved: SavedState(self.saved) }
    }
}

fn lines(database: &Database) -> Result<Vec<(String, String)>, redb::Error> {
    let table = database.begin_read()?.open_table(GROUPS)?;
    let mut lines = Vec::new();
    for row in table.iter()? {
        let (path, line) = row?;
        lines.push((path.value().to_owned(), line.value().to_owned()));
    }
    Ok(lines)
}

/// Returns the entries of a whole database, which is opened in memory, since opening may repair it.
fn whole(bytes: &[u8]) -> Option<Vec<Entry>> {
    let memory = InMemoryBackend::new();
    memory.set_len(bytes.len() as u64).ok()?;
    memory.write(0, bytes).ok()?;
    let mut database = Database::builder().create_with_backend(memory).ok()?;
    database.check_integrity().ok().filter(|whole| *whole)?;
    let entry =
        |(path, line): (String, String)| Some(serde_json::from_str::<StoredEntry>(&line).ok()?.into_entry(path));
    lines(&database).ok()?.into_iter().map(entry).collect()
}

/// Searches bytes for entries. A database keeps old versions of its pages for a while, so a group may be found several
/// times; what it had before the first change is the same in all of them, unless it was made anew.
fn found_entries(bytes: &[u8]) -> Vec<Entry> {
    let mut found: BTreeMap<String, Entry> = BTreeMap::new();
    let mut from = 0;
    while let Some(at) = bytes[from..].windows(ENTRY_START.len()).position(|window| window == ENTRY_START) {
        let start = from + at;
        let mut values = serde_json::Deserializer::from_slice(&bytes[start..]).into_iter::<StoredEntry>();
        from = start + ENTRY_START.len();
        if let Some(Ok(stored)) = values.next() {
            let path = stored.path.clone();
            // Identities increase.
            let entry = stored.into_entry(path.clone());
            let newer = found.get(&path).is_none_or(|other| other.identity <= entry.identity);
            if newer {
                found.insert(path, entry);
            }
        }
    }
    found.into_values().collect()
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
        assert!(message.contains("agent.redb: ") && message.contains("--from-journal"), "{message}");
        assert_eq!(Journal::salvage(&path).unwrap(), Salvaged { entries: Vec::new(), is_whole: false });
        assert!(matches!(Journal::salvage(&folder.path().join("nowhere")), Err(JournalError::Read { .. })));
    }

    #[test]
    fn what_is_left_of_a_damaged_journal_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.redb");
        let entries: Vec<Entry> = (100..160)
            .map(|number| Entry {
                group: Group { path: format!("machine/{number}"), unit: None, devices: Vec::new() },
                identity: number,
                saved: SavedState([("cpu.weight".to_owned(), number.to_string())].into()),
            })
            .collect();
        let journal = Journal::open(&path).unwrap();
        journal.put(&entries).unwrap();
        drop(journal);
        let salvaged = || Journal::salvage(&path).unwrap();
        assert_eq!(salvaged(), Salvaged { entries: entries.clone(), is_whole: true });
        let whole = std::fs::read(&path).unwrap();
        // The head is lost.
        let mut damaged = whole.clone();
        damaged[..4096].fill(0);
        std::fs::write(&path, &damaged).unwrap();
        let message = Journal::open(&path).unwrap_err().to_string();
        assert!(message.contains("release --from-journal"), "{message}");
        assert_eq!(salvaged(), Salvaged { entries: entries.clone(), is_whole: false });
        // Every length of a file that was cut off, and bytes that were overwritten: what is found is true, without a panic.
        for length in (0..whole.len()).step_by(whole.len() / 40) {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert!(salvaged().entries.iter().all(|entry| entries.contains(entry)));
            let mut damaged = whole.clone();
            let end = (length + 512).min(whole.len());
            damaged[length..end].fill(0xff);
            std::fs::write(&path, &damaged).unwrap();
            assert!(salvaged().entries.iter().all(|entry| entries.contains(entry)));
        }
    }
}
