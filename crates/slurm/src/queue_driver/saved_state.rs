//! The state that survives a crash: finished jobs, and the site factors written to waiting jobs.
//!
//! Commitments and penalties are not saved: they follow from the finished jobs and their times. So after a crash at any
//! time the next start computes the same numbers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use evenhand_model::Time;
use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition};
use thiserror::Error;

use crate::finished_job::FinishedJob;

/// Finished jobs as lines, by job id and start in seconds.
const ENDED: TableDefinition<'_, (u64, u64), &str> = TableDefinition::new("ended");
/// By job id: the site factor that this program had assigned before, and the last one, which may not have reached Slurm.
const WRITTEN: TableDefinition<'_, u64, (i64, i64)> = TableDefinition::new("written");
/// The time until which accounting was read, in seconds.
const READ: TableDefinition<'_, &str, u64> = TableDefinition::new("read");

/// The site factors written to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenFactor {
    /// The one assigned before; 0 if none.
    pub before: i64,
    /// The last one, unless a crash came before it was written.
    pub value: i64,
}

/// A small database in one file, which only one process can open at a time.
#[derive(Debug)]
pub struct SavedState {
    database: Database,
    path: PathBuf,
}

/// Why the state cannot be opened, read or saved.
#[derive(Debug, Error)]
pub enum SavedStateError {
    /// Another process has it open.
    #[error("{}: another process keeps this queue in order; stop it first", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The database cannot be opened, read or written.
    #[error("{}: {source}", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// The error of the database.
        source: Box<redb::Error>,
    },
}

impl SavedState {
    /// Opens the file, or creates it.
    ///
    /// # Errors
    /// Returns an error if another process has it open, or it is not such a database.
    pub fn open(path: &Path) -> Result<SavedState, SavedStateError> {
        let database = match Database::create(path) {
            Ok(database) => database,
            Err(DatabaseError::DatabaseAlreadyOpen) => return Err(SavedStateError::InUse { path: path.to_owned() }),
            Err(error) => return Err(database_error(path)(error)),
        };
        let store = SavedState { database, path: path.to_owned() };
        store.change(|transaction| {
            transaction.open_table(ENDED)?;
            transaction.open_table(WRITTEN)?;
            transaction.open_table(READ)?;
            Ok(())
        })?;
        Ok(store)
    }

    fn change(
        &self,
        with: impl FnOnce(&redb::WriteTransaction) -> Result<(), redb::Error>,
    ) -> Result<(), SavedStateError> {
        let all = || -> Result<(), redb::Error> {
            let transaction = self.database.begin_write()?;
            with(&transaction)?;
            Ok(transaction.commit()?)
        };
        all().map_err(database_error(&self.path))
    }

    /// Adds or replaces finished jobs, removes others, and saves until when accounting was read, in one transaction.
    ///
    /// # Errors
    /// Returns an error if it cannot be written; then nothing is changed.
    pub fn update_finished_jobs(
        &self,
        added: &[FinishedJob],
        removed: &[FinishedJob],
        read_until: Time,
    ) -> Result<(), SavedStateError> {
        self.change(|transaction| {
            let mut table = transaction.open_table(ENDED)?;
            for job in added {
                table.insert((job.id, seconds(job.start)), job.line().as_str())?;
            }
            for job in removed {
                table.remove((job.id, seconds(job.start)))?;
            }
            transaction.open_table(READ)?.insert("until", seconds(read_until))?;
            Ok(())
        })
    }

    /// Returns the finished jobs by id and start.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read.
    pub fn finished_jobs(&self) -> Result<Vec<FinishedJob>, SavedStateError> {
        self.read(|transaction| {
            let table = transaction.open_table(ENDED)?;
            let lines = table.iter()?.map(|row| Ok(FinishedJob::of_line(row?.1.value())));
            let jobs: Result<Vec<Option<FinishedJob>>, redb::Error> = lines.collect();
            Ok(jobs?.into_iter().flatten().collect())
        })
    }

    /// Returns the time until which accounting was read, if it was.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read.
    pub fn read_until(&self) -> Result<Option<Time>, SavedStateError> {
        self.read(|transaction| {
            let until = transaction.open_table(READ)?.get("until")?.map(|s| s.value());
            Ok(until.map(Time::from_secs))
        })
    }

    /// Returns the site factors written, by job id.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read.
    pub fn written(&self) -> Result<BTreeMap<u64, WrittenFactor>, SavedStateError> {
        self.read(|transaction| {
            let table = transaction.open_table(WRITTEN)?;
            let rows = table.iter()?.map(|row| {
                let (job, values) = row?;
                let (before, value) = values.value();
                Ok((job.value(), WrittenFactor { before, value }))
            });
            rows.collect()
        })
    }

    /// Saves the site factors that are about to be written, and removes all other jobs.
    ///
    /// # Errors
    /// Returns an error if it cannot be written; then nothing is changed.
    pub fn set_written(&self, written: &BTreeMap<u64, WrittenFactor>) -> Result<(), SavedStateError> {
        self.change(|transaction| {
            let mut table = transaction.open_table(WRITTEN)?;
            table.retain(|job, _| written.contains_key(&job))?;
            for (job, WrittenFactor { before, value }) in written {
                table.insert(job, (*before, *value))?;
            }
            Ok(())
        })
    }

    fn read<T>(
        &self,
        with: impl FnOnce(&redb::ReadTransaction) -> Result<T, redb::Error>,
    ) -> Result<T, SavedStateError> {
        let all = || -> Result<T, redb::Error> { with(&self.database.begin_read()?) };
        all().map_err(database_error(&self.path))
    }
}

fn database_error<E: Into<redb::Error>>(path: &Path) -> impl Fn(E) -> SavedStateError + '_ {
    move |error| SavedStateError::Database { path: path.to_owned(), source: Box::new(error.into()) }
}

fn seconds(time: Time) -> u64 {
    time.nanos() / 1_000_000_000
}
