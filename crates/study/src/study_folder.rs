//! Writes and reads the folder of a study. Every file is written atomically and durably, and what a later study reuses
//! is checked against the digest of what was written.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use evenhand_documents::{Cell, Csv};
use evenhand_model::{NO_TIME, Span, Time};
use evenhand_policies::PolicyError;
use evenhand_simulator::{Activity, SimulationError};
use evenhand_workload::store::{StoreError, TaskResults, TaskState, write_task_results, write_task_results_csv};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::affected_users::ALL_USERS_LISTED;
use crate::digest::Digest;
use crate::plan::{Plan, RunPlan};
use crate::reacting::Ran;
use crate::record::{NormalizedWait, RunRecord, StudyRecord, Totals};
use crate::repeat::{Measured, Repeats};
use crate::sealed_json;

/// An error that ends a study.
#[derive(Debug, Error)]
pub enum StudyError {
    /// A file or folder cannot be written.
    #[error("{}: {source}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The results of a run cannot be written.
    #[error(transparent)]
    Tasks(#[from] StoreError),
    /// A policy cannot be built.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// A run cannot be simulated.
    #[error("run {run}: {source}")]
    Simulation {
        /// The run.
        run: String,
        /// Why.
        source: SimulationError,
    },
}

impl StudyError {
    /// Returns whether the environment failed (a full disk, no permission), and not the input.
    pub fn is_environment(&self) -> bool {
        !matches!(self, StudyError::Simulation { .. } | StudyError::Policy(_))
    }
}

/// How the times of single tasks are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskFormat {
    /// `tasks-RUN.parquet`
    #[default]
    Parquet,
    /// `tasks-RUN.csv`
    Csv,
    /// No file.
    None,
}

#[cfg(feature = "formats")]
fn unpack(file: std::fs::File) -> std::io::Result<Vec<u8>> {
    zstd::decode_all(std::io::BufReader::new(file))
}

#[cfg(feature = "formats")]
fn pack(text: &[u8]) -> std::io::Result<Vec<u8>> {
    zstd::encode_all(text, 1)
}

#[cfg(not(feature = "formats"))]
fn unpack(_: std::fs::File) -> std::io::Result<Vec<u8>> {
    Err(std::io::Error::other("this evenhand was built without zstd, the feature `formats`"))
}

#[cfg(not(feature = "formats"))]
fn pack(text: &[u8]) -> std::io::Result<Vec<u8>> {
    Ok(text.to_vec())
}

/// A finished run as stored in `runs/`, with the digest of its inputs.
#[derive(Deserialize, Serialize)]
struct StoredResult {
    digest: String,
    /// The digest of the file of its tasks, if there is one.
    tasks_digest: Option<String>,
    record: RunRecord,
}

/// The repeats of a run as stored in `repeats/`, with the digest of the inputs of the run and of its variations.
#[derive(Deserialize, Serialize)]
struct StoredRepeats {
    digest: String,
    /// In order, from variation 1.
    repeats: Vec<Measured>,
}

/// What a folder has of a run.
pub(crate) enum Stored {
    /// Its result, for the same inputs, with its tasks.
    Result(Box<RunRecord>),
    /// Nothing, or the result for other inputs.
    Nothing,
    /// A result that is not as it was written, and why that is known.
    Damaged(String),
}

/// The folder of a study.
pub(crate) struct Folder<'a> {
    dir: &'a Path,
    format: TaskFormat,
}

impl<'a> Folder<'a> {
    /// Creates the folder if it is missing.
    pub(crate) fn open(dir: &'a Path, format: TaskFormat) -> Result<Folder<'a>, StudyError> {
        let runs = dir.join("runs");
        evenhand_model::files::create_folder(&runs).map_err(|source| StudyError::Write { path: runs, source })?;
        Ok(Folder { dir, format })
    }

    /// The file of a run, and that of a run with very many users, which is compressed.
    fn stored_paths(&self, run: &RunPlan) -> [PathBuf; 2] {
        ["json", "json.zst"].map(|ending| self.dir.join("runs").join(format!("{}.{ending}", run.id)))
    }

    fn tasks_path(&self, run: &RunPlan) -> Option<PathBuf> {
        let ending = match self.format {
            TaskFormat::Parquet => "parquet",
            TaskFormat::Csv => "csv",
            TaskFormat::None => return None,
        };
        Some(self.dir.join(format!("tasks-{}.{ending}", run.id)))
    }

    /// Returns the stored run, if the folder has it for the same inputs, including its tasks, all as it was written.
    pub(crate) fn stored_run(&self, run: &RunPlan) -> Stored {
        let [plain, compressed] = self.stored_paths(run);
        let (path, text) = match std::fs::read(&plain) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                let text = std::fs::File::open(&compressed).and_then(unpack);
                (compressed, text)
            }
            text => (plain, text),
        };
        let text = match text {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Stored::Nothing,
            Err(e) => return Stored::Damaged(format!("{}: {e}", path.display())),
        };
        let Some(stored) = sealed_json::open::<StoredResult>(&text) else {
            return Stored::Damaged(format!("{} is damaged, edited or of another version", path.display()));
        };
        if stored.digest != run.digest || stored.record.id != run.id {
            return Stored::Nothing;
        }
        let Some(path) = self.tasks_path(run) else { return Stored::Result(Box::new(stored.record)) };
        match (file_digest(&path), stored.tasks_digest) {
            (Ok(found), Some(written)) if found == written => Stored::Result(Box::new(stored.record)),
            (Ok(_), Some(_)) => Stored::Damaged(format!("{} is not as it was written", path.display())),
            // Written in another format, or not at all, by an earlier command.
            (Err(e), _) if e.kind() == std::io::ErrorKind::NotFound => Stored::Nothing,
            (Ok(_), None) => Stored::Nothing,
            (Err(e), _) => Stored::Damaged(format!("{}: {e}", path.display())),
        }
    }

    /// Stores a finished run: its tasks first, so that a record never exists without them.
    pub(crate) fn store_run(&self, run: &RunPlan, ran: &Ran<'_>, record: &RunRecord) -> Result<(), StudyError> {
        let mut tasks_digest = None;
        if let Some(path) = self.tasks_path(run) {
            self.write_tasks(&path, ran)?;
            tasks_digest = Some(file_digest(&path).map_err(|source| StudyError::Write { path, source })?);
        }
        let stored = StoredResult { digest: run.digest.clone(), tasks_digest, record: record.clone() };
        let [plain, compressed] = self.stored_paths(run);
        let (path, other, text) = match record.users.len() {
            users if users <= ALL_USERS_LISTED || cfg!(not(feature = "formats")) => {
                (plain, compressed, sealed_json::seal(&stored).map_err(std::io::Error::from))
            }
            _ => {
                let text = sealed_json::seal_compact(&stored).map_err(std::io::Error::from);
                (compressed, plain, text.and_then(|text| pack(&text)))
            }
        };
        match text {
            Ok(text) => write_whole(&path, &text)?,
            Err(source) => return Err(StudyError::Write { path, source }),
        }
        // Of an earlier study with more or fewer users.
        match std::fs::remove_file(&other) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(StudyError::Write { path: other, source })
            }
            _ => Ok(()),
        }
    }

    fn repeats_path(&self, run: &RunPlan) -> PathBuf {
        self.dir.join("repeats").join(format!("{}.json", run.id))
    }

    /// Returns the stored repeats of a run, from variation 1 on; none if there are none for the same inputs, or they are
    /// not as they were written.
    pub(crate) fn stored_repeats(&self, run: &RunPlan, repeats: &Repeats) -> Vec<Measured> {
        let text = std::fs::read(self.repeats_path(run)).unwrap_or_default();
        let stored = sealed_json::open::<StoredRepeats>(&text);
        stored.filter(|stored| stored.digest == repeats_digest(run, repeats)).map_or(Vec::new(), |s| s.repeats)
    }

    /// Stores the repeats of a run, from variation 1 on.
    pub(crate) fn store_repeats(
        &self,
        run: &RunPlan,
        repeats: &Repeats,
        measured: &[Measured],
    ) -> Result<(), StudyError> {
        let path = self.repeats_path(run);
        let folder = self.dir.join("repeats");
        evenhand_model::files::create_folder(&folder).map_err(|source| StudyError::Write { path: folder, source })?;
        let stored = StoredRepeats { digest: repeats_digest(run, repeats), repeats: measured.to_vec() };
        match sealed_json::seal(&stored) {
            Ok(text) => write_whole(&path, &text),
            Err(e) => Err(StudyError::Write { path, source: e.into() }),
        }
    }

    fn write_tasks(&self, path: &Path, ran: &Ran<'_>) -> Result<(), StudyError> {
        let (workload, simulated) = (ran.workload(), ran.run());
        let c = workload.columns();
        let state = |row: usize| {
            if simulated.is_rejected(row) {
                return TaskState::Rejected;
            }
            match simulated.starts[row] {
                NO_TIME => TaskState::Waiting,
                start if Time::from_nanos(start) + simulated.run_time(row, c.duration[row]) <= simulated.end => {
                    TaskState::Completed
                }
                _ => TaskState::Running,
            }
        };
        // Up to the last simulated submission; later rows exist only if the simulation ended early.
        let rows = c.submit.partition_point(|t| *t <= simulated.end);
        let states: Vec<TaskState> = (0..rows).map(state).collect();
        let row: Vec<u32> = (0..rows as u32).map(|row| ran.row_of_log(row)).collect();
        // Run times differ from the workload's on machines of different speeds.
        let ran: Vec<Span> = (0..rows).map(|row| simulated.run_time(row, c.duration[row])).collect();
        let slurm = simulated.machines.as_ref().and_then(|on| on.slurm.as_ref());
        let name = |by: &Option<Activity>| by.map_or("", Activity::name);
        let started_by: Option<Vec<&'static str>> = slurm.map(|s| s.started_by[..rows].iter().map(name).collect());
        let results = TaskResults {
            users: workload.users(),
            row: &row,
            user: &c.user[..rows],
            submit: &c.submit[..rows],
            start: &simulated.starts[..rows],
            duration: &ran,
            state: &states,
            started_by: started_by.as_deref(),
        };
        match self.format {
            TaskFormat::Csv => write_task_results_csv(path, &results)?,
            _ => write_task_results(path, &results)?,
        }
        Ok(())
    }

    /// Writes `summary.json`, `users.csv` and `accounts.csv`.
    pub(crate) fn write_summary(&self, record: &StudyRecord, list_all_users: bool) -> Result<(), StudyError> {
        write_json(&self.dir.join("summary.json"), &record.summary(list_all_users))?;
        write_whole(&self.dir.join("users.csv"), users_csv(record).as_bytes())?;
        // Written also without accounts, to replace the file of an earlier study.
        write_whole(&self.dir.join("accounts.csv"), accounts_csv(record).as_bytes())
    }
}

impl Plan {
    /// Returns the ids of the finished runs in a study's folder that are not this study's, in their order. They are of
    /// earlier studies, and stay there: a later study that asks for them reuses them.
    pub fn other_runs(&self, dir: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(dir.join("runs")).into_iter().flatten();
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let id = |name: String| {
            let id = name.strip_suffix(".json").or_else(|| name.strip_suffix(".json.zst"))?;
            (!name.starts_with('.')).then(|| id.to_string())
        };
        let ids: BTreeSet<String> = names.filter_map(id).collect();
        ids.into_iter().filter(|id| self.runs.iter().all(|run| run.id != *id)).collect()
    }
}

fn repeats_digest(run: &RunPlan, repeats: &Repeats) -> String {
    let mut digest = Digest::new();
    digest.text(&run.digest);
    repeats.digest(&mut digest);
    digest.hex()
}

fn file_digest(path: &Path) -> std::io::Result<String> {
    Ok(Digest::new().file(path)?.hex())
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), StudyError> {
    let io = |e: serde_json::Error| StudyError::Write { path: path.to_path_buf(), source: e.into() };
    let mut text = serde_json::to_vec_pretty(value).map_err(io)?;
    text.push(b'\n');
    write_whole(path, &text)
}

fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), StudyError> {
    evenhand_model::files::write_atomically(path, bytes)
        .map_err(|source| StudyError::Write { path: path.to_path_buf(), source })
}

/// The columns of waits in relation to use, which the tables of users and accounts share.
const NORMALIZED: [&str; 5] =
    ["total_wait_s", "squashed_area_cpu_s", "squashed_area_pe_s", "nuwt_per_cpu", "nuwt_per_pe"];

fn totals_cells(t: &Totals) -> [Cell<'static>; 4] {
    [t.submitted, t.rejected, t.started, t.completed].map(Cell::Count)
}

fn normalized_cells(n: &NormalizedWait) -> [Cell<'static>; 5] {
    let cells = [Some(n.total_wait_s), n.squashed_area_cpu_s, n.squashed_area_pe_s, n.nuwt_per_cpu, n.nuwt_per_pe];
    cells.map(Cell::Number)
}

fn run_cells(run: &RunRecord) -> [Cell<'_>; 3] {
    [&run.id, &run.policy, &run.capacity_name].map(|text| Cell::Text(text))
}

/// One record per run and user.
fn users_csv(record: &StudyRecord) -> String {
    let columns = [
        "run",
        "policy",
        "capacity",
        "user",
        "submitted",
        "rejected",
        "started",
        "completed",
        "mean_wait_s",
        "p95_wait_s",
        "mean_bounded_slowdown",
        "completion_ratio",
    ];
    let repeated: &[&str] = match record.repeats {
        Some(_) => &["wait_low_s", "wait_high_s", "difference_low_s", "difference_high_s", "beyond_noise"],
        None => &[],
    };
    let worked: &[&str] = if record.runs.iter().any(|run| run.work.is_some()) { &["finish_s"] } else { &[] };
    let mut csv = Csv::new(&[&columns[..], &NORMALIZED, repeated, worked].concat());
    for run in &record.runs {
        for user in &run.users {
            let means = [user.mean_wait_s, user.p95_wait_s, user.mean_bounded_slowdown, Some(user.completion_ratio)]
                .map(Cell::Number);
            let ends = |interval: Option<[f64; 2]>| [interval.map(|i| i[0]), interval.map(|i| i[1])].map(Cell::Number);
            let [wait, difference] = [user.wait_interval_s, user.difference_interval_s].map(ends);
            let beyond = [Cell::Text(if user.beyond_noise { "true" } else { "false" })];
            let cells: [&[Cell<'_>]; 7] = [
                &run_cells(run),
                &[Cell::Text(&user.name)],
                &totals_cells(&user.totals),
                &means,
                &normalized_cells(&user.normalized),
                &[&wait[..], &difference, &beyond].concat()[..repeated.len()],
                &[Cell::Number(user.finish_s)][..worked.len()],
            ];
            csv.row(&cells.concat());
        }
    }
    csv.finish()
}

/// One record per run and account, followed by one for each user directly in it. The root has no name.
fn accounts_csv(record: &StudyRecord) -> String {
    let columns = [
        "run",
        "policy",
        "capacity",
        "account",
        "parent",
        "user",
        "entitlement",
        "use_share",
        "submitted",
        "rejected",
        "started",
        "completed",
        "mean_wait_s",
        "mean_bounded_slowdown",
        "completion_ratio",
    ];
    let mut csv = Csv::new(&[&columns[..], &NORMALIZED].concat());
    for run in &record.runs {
        let name = |account: Option<usize>| {
            Cell::Text(account.and_then(|a| run.accounts.get(a)?.name.as_deref()).unwrap_or_default())
        };
        for (place, account) in run.accounts.iter().enumerate() {
            let whole = ("", account.entitlement, &account.results);
            let users = account.users.iter().map(|u| (u.name.as_str(), u.entitlement, &u.results));
            for (user, entitlement, f) in std::iter::once(whole).chain(users) {
                let means = [f.mean_wait_s, f.mean_bounded_slowdown, Some(f.completion_ratio)].map(Cell::Number);
                let cells: [&[Cell<'_>]; 6] = [
                    &run_cells(run),
                    &[name(Some(place)), name(account.parent), Cell::Text(user)],
                    &[entitlement, f.use_share].map(Cell::Number),
                    &totals_cells(&f.totals),
                    &means,
                    &normalized_cells(&f.normalized),
                ];
                csv.row(&cells.concat());
            }
        }
    }
    csv.finish()
}
