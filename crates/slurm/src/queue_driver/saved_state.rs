//! The state that survives a crash: finished jobs, and the site factors written to jobs.
//!
//! Commitments and penalties are not saved: they follow from the finished jobs and their times. So after a crash at any
//! time the next start computes the same numbers.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use evenhand_model::Time;
use redb::backends::FileBackend;
use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition};
use thiserror::Error;

use super::written_factor::WrittenFactor;
use crate::finished_job::FinishedJob;

/// Finished jobs as lines, by job id and start in seconds.
const ENDED: TableDefinition<'_, (u64, u64), &str> = TableDefinition::new("ended");
/// By job id: the original site factor, and those that this program may have left.
const WRITTEN: TableDefinition<'_, u64, (i64, Vec<i64>)> = TableDefinition::new("site factors");
/// The table of earlier versions: two site factors that this program may have left; the original one was 0.
const WRITTEN_BEFORE: TableDefinition<'_, u64, (i64, i64)> = TableDefinition::new("written");
/// The time until which accounting was read, in seconds.
const READ: TableDefinition<'_, &str, u64> = TableDefinition::new("read");

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
        let file = open_private(path).map_err(|error| database_error(path)(redb::Error::Io(error)))?;
        let opened = FileBackend::new(file).and_then(|file| Database::builder().create_with_backend(file));
        let database = match opened {
            Ok(database) => database,
            Err(DatabaseError::DatabaseAlreadyOpen) => return Err(SavedStateError::InUse { path: path.to_owned() }),
            Err(error) => return Err(database_error(path)(error)),
        };
        let store = SavedState { database, path: path.to_owned() };
        store.change(|transaction| {
            transaction.open_table(ENDED)?;
            transaction.open_table(READ)?;
            let mut table = transaction.open_table(WRITTEN)?;
            for row in transaction.open_table(WRITTEN_BEFORE)?.iter()? {
                let (job, values) = row?;
                let (before, last) = values.value();
                let values = [before, last].into_iter().filter(|value| *value != 0).collect();
                table.insert(job.value(), (0, values))?;
            }
            transaction.delete_table(WRITTEN_BEFORE)?;
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

    /// Adds or replaces finished jobs, removes others, and saves until when accounting was read, in one transaction; `None`: it
    /// was not read.
    ///
    /// # Errors
    /// Returns an error if it cannot be written; then nothing is changed.
    pub fn update_finished_jobs(
        &self,
        added: &[FinishedJob],
        removed: &[FinishedJob],
        read_until: Option<Time>,
    ) -> Result<(), SavedStateError> {
        self.change(|transaction| {
            let mut table = transaction.open_table(ENDED)?;
            for job in added {
                table.insert((job.id, seconds(job.start)), job.line().as_str())?;
            }
            for job in removed {
                table.remove((job.id, seconds(job.start)))?;
            }
            if let Some(read_until) = read_until {
                transaction.open_table(READ)?.insert("until", seconds(read_until))?;
            }
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

    /// Returns the site factors written, by the id under which a job is modified.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read.
    pub fn written(&self) -> Result<BTreeMap<u64, WrittenFactor>, SavedStateError> {
        self.read(|transaction| {
            let table = transaction.open_table(WRITTEN)?;
            let rows = table.iter()?.map(|row| {
                let (job, factors) = row?;
                let (original, values) = factors.value();
                Ok((job.value(), WrittenFactor { original, values }))
            });
            rows.collect()
        })
    }

    /// Saves the site factors that are about to be written, and removes jobs that need not be restored any more.
    ///
    /// # Errors
    /// Returns an error if it cannot be written; then nothing is changed.
    pub fn update_written<'a>(
        &self,
        written: impl IntoIterator<Item = (u64, &'a WrittenFactor)>,
        removed: impl IntoIterator<Item = u64>,
    ) -> Result<(), SavedStateError> {
        let (mut written, mut removed) = (written.into_iter().peekable(), removed.into_iter().peekable());
        if written.peek().is_none() && removed.peek().is_none() {
            return Ok(());
        }
        self.change(|transaction| {
            let mut table = transaction.open_table(WRITTEN)?;
            for job in removed {
                table.remove(job)?;
            }
            for (job, WrittenFactor { original, values }) in written {
                table.insert(job, (*original, values.clone()))?;
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

/// Opens a file, or creates it, for its owner only: it names users and what they ran.
fn open_private(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    if file.metadata()?.permissions().mode() & 0o077 != 0 {
        // Another user's file stays as it is.
        let _ = file.set_permissions(Permissions::from_mode(0o600));
    }
    Ok(file)
}

fn database_error<E: Into<redb::Error>>(path: &Path) -> impl Fn(E) -> SavedStateError + '_ {
    move |error| SavedStateError::Database { path: path.to_owned(), source: Box::new(error.into()) }
}

fn seconds(time: Time) -> u64 {
    time.nanos() / 1_000_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_earlier_version_wrote_is_still_restored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let old = Database::create(&path).unwrap();
        let transaction = old.begin_write().unwrap();
        transaction.open_table(WRITTEN_BEFORE).unwrap().insert(7, (0, 1_500_000_000)).unwrap();
        transaction.open_table(WRITTEN_BEFORE).unwrap().insert(9, (1_200_000_000, 0)).unwrap();
        transaction.commit().unwrap();
        drop(old);
        for _ in 0..2 {
            let factor = |values: &[i64]| WrittenFactor { original: 0, values: values.to_vec() };
            let expected = [(7, factor(&[1_500_000_000])), (9, factor(&[1_200_000_000]))];
            assert_eq!(SavedState::open(&path).unwrap().written().unwrap(), expected.into());
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }
}
