//! What survives a crash: which jobs ended, and what was written to which job.
//!
//! Commitments and penalties are not kept: they follow from what ran, which is kept with its times. So whatever
//! the moment of a crash, the next start computes the same numbers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use evenhand_model::Time;
use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition};
use thiserror::Error;

use crate::ended::Ended;

/// By job and start, in seconds: one line.
const ENDED: TableDefinition<'_, (u64, u64), &str> = TableDefinition::new("ended");
/// By job: the site factor it had by us before, and the one given last, perhaps in vain.
const WRITTEN: TableDefinition<'_, u64, (i64, i64)> = TableDefinition::new("written");
/// Until when accounting was read, in seconds.
const READ: TableDefinition<'_, &str, u64> = TableDefinition::new("read");

/// What a job was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// What it had by us before, 0 if nothing.
    pub before: i64,
    /// What it was given, unless the crash came first.
    pub value: i64,
}

/// A small database in one file, which one process at a time has open.
#[derive(Debug)]
pub struct Store {
    database: Database,
    path: PathBuf,
}

/// Why what is to survive cannot be kept.
#[derive(Debug, Error)]
pub enum StoreError {
    /// Somebody else has it open.
    #[error("{}: another process keeps this queue in order; stop it first", path.display())]
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
}

impl Store {
    /// Opens the file, or makes it.
    ///
    /// # Errors
    /// If another process has it open, or it is no such file.
    pub fn open(path: &Path) -> Result<Store, StoreError> {
        let database = match Database::create(path) {
            Ok(database) => database,
            Err(DatabaseError::DatabaseAlreadyOpen) => return Err(StoreError::InUse { path: path.to_owned() }),
            Err(error) => return Err(wrong(path)(error)),
        };
        let store = Store { database, path: path.to_owned() };
        store.change(|transaction| {
            transaction.open_table(ENDED)?;
            transaction.open_table(WRITTEN)?;
            transaction.open_table(READ)?;
            Ok(())
        })?;
        Ok(store)
    }

    fn change(&self, with: impl FnOnce(&redb::WriteTransaction) -> Result<(), redb::Error>) -> Result<(), StoreError> {
        let all = || -> Result<(), redb::Error> {
            let transaction = self.database.begin_write()?;
            with(&transaction)?;
            Ok(transaction.commit()?)
        };
        all().map_err(wrong(&self.path))
    }

    /// Adds jobs that ended, in place of what was known of the same, forgets others, and keeps until when accounting
    /// was read.
    ///
    /// # Errors
    /// If it cannot be written; then nothing of it is.
    pub fn change_ended(&self, added: &[Ended], forgotten: &[Ended], read_until: Time) -> Result<(), StoreError> {
        self.change(|transaction| {
            let mut table = transaction.open_table(ENDED)?;
            for job in added {
                table.insert((job.id, seconds(job.start)), job.line().as_str())?;
            }
            for job in forgotten {
                table.remove((job.id, seconds(job.start)))?;
            }
            transaction.open_table(READ)?.insert("until", seconds(read_until))?;
            Ok(())
        })
    }

    /// The jobs that ended, by number and start.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn ended(&self) -> Result<Vec<Ended>, StoreError> {
        self.look(|transaction| {
            let table = transaction.open_table(ENDED)?;
            let lines = table.iter()?.map(|row| Ok(Ended::of_line(row?.1.value())));
            let jobs: Result<Vec<Option<Ended>>, redb::Error> = lines.collect();
            Ok(jobs?.into_iter().flatten().collect())
        })
    }

    /// Until when accounting was read, if it ever was.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read_until(&self) -> Result<Option<Time>, StoreError> {
        self.look(|transaction| {
            let until = transaction.open_table(READ)?.get("until")?.map(|s| s.value());
            Ok(until.map(Time::from_secs))
        })
    }

    /// What was written to which job.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn written(&self) -> Result<BTreeMap<u64, Written>, StoreError> {
        self.look(|transaction| {
            let table = transaction.open_table(WRITTEN)?;
            let rows = table.iter()?.map(|row| {
                let (job, values) = row?;
                let (before, value) = values.value();
                Ok((job.value(), Written { before, value }))
            });
            rows.collect()
        })
    }

    /// Keeps what is about to be written, before it is, and forgets jobs that are gone.
    ///
    /// # Errors
    /// If it cannot be written; then nothing of it is.
    pub fn set_written(&self, written: &BTreeMap<u64, Written>) -> Result<(), StoreError> {
        self.change(|transaction| {
            let mut table = transaction.open_table(WRITTEN)?;
            table.retain(|job, _| written.contains_key(&job))?;
            for (job, Written { before, value }) in written {
                table.insert(job, (*before, *value))?;
            }
            Ok(())
        })
    }

    fn look<T>(&self, with: impl FnOnce(&redb::ReadTransaction) -> Result<T, redb::Error>) -> Result<T, StoreError> {
        let all = || -> Result<T, redb::Error> { with(&self.database.begin_read()?) };
        all().map_err(wrong(&self.path))
    }
}

fn wrong<E: Into<redb::Error>>(path: &Path) -> impl Fn(E) -> StoreError + '_ {
    move |error| StoreError::Database { path: path.to_owned(), source: Box::new(error.into()) }
}

fn seconds(time: Time) -> u64 {
    time.nanos() / 1_000_000_000
}
