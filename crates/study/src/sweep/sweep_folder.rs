//! Writes and reads the folder of a sweep. Every file is written atomically and durably, and the result of a point is
//! checked against the digest of what was written.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use crate::record::{RunRecord, WorkloadRecord};
use evenhand_model::memory::format_size;
use evenhand_policies::Registry;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::sealed_json;
use crate::sweep::grid::Grid;
use crate::sweep::point::{Point, layout};

/// An error that ends a sweep.
#[derive(Debug, Error)]
pub enum SweepError {
    /// A file or folder cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The folder has no sweep.
    #[error("{} is not the folder of a sweep: there is no {PLAN} in it; expected the folder given as --out", dir.display())]
    NoSweep {
        /// The folder.
        dir: PathBuf,
    },
    /// The plan cannot be used.
    #[error("{}: {reason}; run evenhand sweep with the grid again", path.display())]
    Plan {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// One run does not fit in memory.
    #[error("{workload} needs about {} for one run (it has {tasks} tasks), and --memory allows {}", format_size(*need), format_size(*budget))]
    Memory {
        /// The workload.
        workload: String,
        /// The number of its tasks, as known or estimated.
        tasks: u64,
        /// The bytes needed.
        need: u64,
        /// The bytes allowed.
        budget: u64,
    },
    /// Results of one workload come from two different contents.
    #[error(
        "results of {workload} in {} are of different contents (points {first} and {second}); delete the folder {POINTS} in it and run the sweep again",
        dir.display()
    )]
    Mixed {
        /// The workload.
        workload: String,
        /// The folder.
        dir: PathBuf,
        /// A point.
        first: usize,
        /// Another point.
        second: usize,
    },
    /// The figures cannot be drawn or written.
    #[error("the page cannot be put together: {0}; please report this")]
    Page(#[from] serde_json::Error),
}

impl SweepError {
    /// Returns whether the environment failed (a full disk, no permission), and not the input.
    pub fn is_environment(&self) -> bool {
        match self {
            SweepError::Read { source, .. } => source.kind() != io::ErrorKind::NotFound,
            SweepError::NoSweep { .. } | SweepError::Memory { .. } | SweepError::Plan { .. } => false,
            SweepError::Write { .. } | SweepError::Mixed { .. } | SweepError::Page(_) => true,
        }
    }
}

pub(crate) const PLAN: &str = "plan.json";
const POINTS: &str = "points";

/// The information that a process on another machine needs to run a part of the sweep.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Plan {
    pub(crate) version: String,
    pub(crate) grid: String,
    pub(crate) base: PathBuf,
    pub(crate) seed: u64,
    pub(crate) text: String,
    /// One digest per point.
    pub(crate) digests: Vec<String>,
}

/// The result of a point, with the digest of its inputs.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct StoredResult {
    pub(crate) digest: String,
    pub(crate) workload: WorkloadRecord,
    pub(crate) run: RunRecord,
}

/// The folder of a sweep.
#[derive(Clone, Debug)]
pub struct Folder {
    dir: PathBuf,
}

impl Folder {
    /// Creates the folder if it is missing.
    ///
    /// # Errors
    /// Returns an error if it cannot be created.
    pub fn create(dir: &Path) -> Result<Folder, SweepError> {
        let points = dir.join(POINTS);
        evenhand_model::files::create_folder(&points).map_err(|source| SweepError::Write { path: points, source })?;
        Ok(Folder { dir: absolute(dir) })
    }

    /// Opens a folder that has a sweep.
    ///
    /// # Errors
    /// Returns an error if it has none.
    pub fn open(dir: &Path) -> Result<Folder, SweepError> {
        match dir.join(PLAN).is_file() {
            true => Ok(Folder { dir: absolute(dir) }),
            false => Err(SweepError::NoSweep { dir: dir.to_path_buf() }),
        }
    }

    /// Returns its absolute path.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Lays out `grid`, computes the digest of every point, and writes both to the folder, for the processes that run
    /// parts of it.
    ///
    /// # Errors
    /// Returns an error if a file that the grid names cannot be read, or the folder cannot be written.
    pub fn plan(&self, grid: &Grid, seed: u64) -> Result<(Vec<Point>, Vec<String>), SweepError> {
        let points = layout(grid);
        let digests = points
            .iter()
            .map(|point| grid.digest(point).map_err(|(path, source)| SweepError::Read { path, source }))
            .collect::<Result<Vec<String>, SweepError>>()?;
        let plan = Plan {
            version: env!("CARGO_PKG_VERSION").to_string(),
            grid: grid.name.clone(),
            base: grid.base.clone(),
            seed,
            text: grid.text.clone(),
            digests,
        };
        self.write_json(PLAN, &plan)?;
        Ok((points, plan.digests))
    }

    /// Reads the sweep as it was planned.
    ///
    /// # Errors
    /// Returns an error if the plan cannot be read, is another version's, or a file it names is no longer there.
    pub fn planned(&self, registry: &Registry) -> Result<(Grid, Vec<Point>, Vec<String>), SweepError> {
        let path = self.dir.join(PLAN);
        let error = |reason: String| SweepError::Plan { path: path.clone(), reason };
        let text = std::fs::read(&path).map_err(|source| SweepError::Read { path: path.clone(), source })?;
        let plan: Plan = serde_json::from_slice(&text).map_err(|e| error(e.to_string()))?;
        if plan.version != env!("CARGO_PKG_VERSION") {
            let version = env!("CARGO_PKG_VERSION");
            return Err(error(format!("written by version {} and read by version {version}", plan.version)));
        }
        let grid =
            Grid::parse(&plan.grid, &plan.text, &plan.base, plan.seed, registry).map_err(|e| error(e.to_string()))?;
        let points = layout(&grid);
        if points.len() != plan.digests.len() {
            return Err(error(format!("has {} digests for {} points", plan.digests.len(), points.len())));
        }
        Ok((grid, points, plan.digests))
    }

    fn point_path(&self, digest: &str) -> PathBuf {
        self.dir.join(POINTS).join(format!("{digest}.json"))
    }

    /// Returns the stored result of a point, if it exists and is valid.
    pub(crate) fn stored_result(&self, digest: &str) -> Option<StoredResult> {
        // An unreadable result (of an older version, or damaged) counts as missing, so that it is run again.
        let text = std::fs::read(self.point_path(digest)).ok()?;
        let stored: StoredResult = sealed_json::open(&text)?;
        (stored.digest == digest).then_some(stored)
    }

    /// Stores the result of a point.
    pub(crate) fn store_result(&self, result: &StoredResult) -> Result<(), SweepError> {
        let path = self.point_path(&result.digest);
        let text = sealed_json::seal(result)?;
        evenhand_model::files::write_atomically(&path, &text).map_err(|source| SweepError::Write { path, source })
    }

    /// Returns the numbers of the points whose result is missing or invalid.
    pub fn missing(&self, digests: &[String]) -> Vec<usize> {
        self.missing_of(digests, &(0..digests.len()).collect::<Vec<_>>())
    }

    /// Returns those of the given points whose result is missing or invalid.
    pub(crate) fn missing_of(&self, digests: &[String], numbers: &[usize]) -> Vec<usize> {
        let stored = self.stored_digests();
        let is_missing = |number: &usize| {
            digests.get(*number).is_none_or(|digest| !stored.contains(digest) || self.stored_result(digest).is_none())
        };
        numbers.iter().copied().filter(is_missing).collect()
    }

    /// Returns the files of results that exist and are not as they were written, so that their points are run again.
    pub fn damaged(&self, digests: &[String]) -> Vec<PathBuf> {
        let stored = self.stored_digests();
        let is_damaged = |digest: &&String| stored.contains(*digest) && self.stored_result(digest).is_none();
        digests.iter().filter(is_damaged).map(|digest| self.point_path(digest)).collect()
    }

    /// Returns the number of points that have a result, by the names of the files alone.
    pub fn done(&self, digests: &[String]) -> usize {
        let stored = self.stored_digests();
        digests.iter().filter(|digest| stored.contains(*digest)).count()
    }

    fn stored_digests(&self) -> BTreeSet<String> {
        let Ok(entries) = std::fs::read_dir(self.dir.join(POINTS)) else { return BTreeSet::new() };
        let name = |entry: io::Result<std::fs::DirEntry>| entry.ok()?.file_name().into_string().ok();
        entries.filter_map(name).filter_map(|n| n.strip_suffix(".json").map(String::from)).collect()
    }

    pub(crate) fn write_json(&self, name: &str, value: &impl Serialize) -> Result<(), SweepError> {
        let mut text = serde_json::to_vec_pretty(value)?;
        text.push(b'\n');
        self.write(name, &text)
    }

    /// Writes a file below the folder atomically; creates missing folders.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), SweepError> {
        let path = self.dir.join(name);
        let folder = path.parent().unwrap_or(&self.dir);
        evenhand_model::files::create_folder(folder)
            .and_then(|()| evenhand_model::files::write_atomically(&path, bytes))
            .map_err(|source| SweepError::Write { path, source })
    }
}

fn absolute(dir: &Path) -> PathBuf {
    std::path::absolute(dir).unwrap_or_else(|_| dir.to_path_buf())
}
