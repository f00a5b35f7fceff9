//! Submits job arrays, and runs the chunk of a submitted task.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use crate::Digest;
use evenhand_policies::Registry;
use serde::{Deserialize, Serialize};

use super::commands::{Limits, partitions, queue, run};
use super::{Options, SlurmError, quoted, scripts};
use crate::sweep::array_chunks::{ArrayPlan, Chunk, arrays, chunks};
use crate::sweep::grid::Grid;
use crate::sweep::local;
use crate::sweep::memory_budget::MemoryNeed;
use crate::sweep::point::Point;
use crate::sweep::run_point::{PointFailure, Watch};
use crate::sweep::sweep_folder::{Folder, SweepError};

const SUBMISSION: &str = "slurm/submission.json";
const TASK: &str = "task.sh";
const GATHER: &str = "gather.sh";
/// The memory of a process without a simulation.
const PROCESS_BYTES: u64 = 64 << 20;
const GATHER_MEMORY: &str = "512M";

/// The record of a submission.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submission {
    /// The name of all its jobs.
    pub name: String,
    /// The job of each array, and its range of chunks.
    pub arrays: Vec<SubmittedArray>,
    /// The job that gathers the results.
    pub gather: Option<u64>,
    /// The points of each chunk.
    pub chunks: Vec<Chunk>,
}

/// A submitted array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubmittedArray {
    /// Slurm's job number.
    pub job: u64,
    /// The chunk of its task 0.
    pub first: usize,
    /// The number of its tasks.
    pub tasks: usize,
}

impl Submission {
    /// Reads the record of the last submission from this folder; `None` if there was none.
    pub(super) fn read(folder: &Folder) -> Result<Option<Submission>, SweepError> {
        let path = folder.dir().join(SUBMISSION);
        if !path.exists() {
            return Ok(None);
        }
        let text = std::fs::read(&path).map_err(|source| SweepError::Read { path: path.clone(), source })?;
        serde_json::from_slice(&text).map(Some).map_err(|e| SweepError::Plan { path, reason: e.to_string() })
    }

    /// Returns all jobs; the one that gathers the results is last.
    pub fn jobs(&self) -> Vec<u64> {
        self.arrays.iter().map(|a| a.job).chain(self.gather).collect()
    }

    /// Returns the task that runs a point, and the path of its log in the folder.
    pub(super) fn task_of(&self, point: usize) -> Option<(String, PathBuf)> {
        let chunk = self.chunks.iter().position(|chunk| chunk.contains(&point))?;
        let array = self.arrays.iter().find(|a| (a.first..a.first + a.tasks).contains(&chunk))?;
        let task = format!("{}_{}", array.job, chunk - array.first);
        let log = PathBuf::from(format!("slurm/logs/{task}.log"));
        Some((task, log))
    }
}

/// Returns the name of a folder's jobs: the same for each submission, so that jobs of an earlier one are found.
pub(super) fn name_of(folder: &Folder) -> String {
    let mut d = Digest::new();
    d.text(&folder.dir().to_string_lossy());
    format!("evenhand-{}", &d.hex()[..12])
}

/// Checks that no job of this folder is in the queue.
///
/// # Errors
/// Returns an error if a job is in the queue, or if Slurm cannot be queried.
pub fn ensure_not_queued(folder: &Folder) -> Result<(), SlurmError> {
    let mut jobs: Vec<u64> = queue(&name_of(folder))?.iter().map(|q| q.job).collect();
    jobs.sort_unstable();
    jobs.dedup();
    if jobs.is_empty() {
        return Ok(());
    }
    let jobs = jobs.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    Err(SlurmError::UnderWay { jobs, dir: quoted(&folder.dir().to_string_lossy()) })
}

/// Submits arrays for the points whose results are missing, and a final job that gathers the results. Returns `None` if
/// nothing is missing. The jobs run the folder's plan, so it must not change while they are
/// [in the queue](ensure_not_queued).
///
/// # Errors
/// Returns an error if the size of a workload cannot be read, the folder cannot be written, or Slurm refuses; arrays
/// submitted before the error are cancelled.
pub fn submit(
    grid: &Grid,
    points: &[Point],
    digests: &[String],
    folder: &Folder,
    options: &Options,
    program: &Path,
) -> Result<Option<Submission>, SlurmError> {
    let pending: Vec<&Point> = folder.missing(digests).into_iter().filter_map(|n| points.get(n)).collect();
    if pending.is_empty() {
        return Ok(None);
    }
    let tasks = local::sizes(grid, &pending)?;
    let limits = Limits::query()?;
    let chunks =
        chunks(&pending.iter().map(|p| (p.number, p.workload, tasks[&p.workload])).collect::<Vec<_>>(), options.chunk);
    let plans = arrays(chunks.len(), limits.max_array_size, limits.max_array_tasks);
    if plans.is_empty() {
        return Err(SlurmError::NoArrays(limits.max_array_size));
    }
    let need = tasks.values().map(|t| MemoryNeed::of_tasks(*t).minimum()).max().unwrap_or(0);
    let memory = match options.memory {
        Some(0) => None,
        Some(bytes) => Some(bytes),
        None => Some(need.saturating_add(PROCESS_BYTES)),
    };
    write_scripts(folder, program)?;
    let mut submission = Submission { name: name_of(folder), chunks, ..Submission::default() };
    folder.write_json(SUBMISSION, &submission)?;
    let submitted = submit_all(folder, options, memory, &plans, &mut submission);
    // Written also after a failure, as a record of the jobs that had to be cancelled.
    folder.write_json(SUBMISSION, &submission)?;
    match submitted {
        Ok(()) => Ok(Some(submission)),
        Err(error) => {
            let jobs: Vec<String> = submission.jobs().iter().map(u64::to_string).collect();
            if !jobs.is_empty() {
                // Only the first error is reported.
                let _ = run("scancel", jobs);
            }
            Err(error)
        }
    }
}

fn submit_all(
    folder: &Folder,
    options: &Options,
    memory: Option<u64>,
    plans: &[ArrayPlan],
    submission: &mut Submission,
) -> Result<(), SlurmError> {
    for plan in plans {
        let at_a_time = options.at_a_time.map_or(String::new(), |n| format!("%{n}"));
        let mut arguments = common(folder, options, &submission.name);
        arguments.push(format!("--array=0-{}{at_a_time}", plan.tasks - 1));
        arguments.extend(memory.map(|bytes| format!("--mem={}M", bytes.div_ceil(1 << 20).max(1))));
        arguments.extend(options.time_limit.as_ref().map(|limit| format!("--time={limit}")));
        arguments.push(log(folder, "%A_%a"));
        arguments.push(path_below(folder, TASK)?);
        arguments.push(plan.first.to_string());
        let job = sbatch(&arguments, options)?;
        submission.arrays.push(SubmittedArray { job, first: plan.first, tasks: plan.tasks });
    }
    let after: Vec<String> = submission.arrays.iter().map(|a| a.job.to_string()).collect();
    let mut arguments = common(folder, options, &submission.name);
    // `afterany`: it also runs after failures, and reports the missing points.
    arguments.push(format!("--dependency=afterany:{}", after.join(":")));
    if memory.is_some() {
        arguments.push(format!("--mem={GATHER_MEMORY}"));
    }
    arguments.push(log(folder, "gather-%j"));
    arguments.push(path_below(folder, GATHER)?);
    submission.gather = Some(sbatch(&arguments, options)?);
    Ok(())
}

fn common(folder: &Folder, options: &Options, name: &str) -> Vec<String> {
    let mut arguments: Vec<String> =
        ["--parsable", "--ntasks=1", "--cpus-per-task=1", "--open-mode=truncate"].map(String::from).into();
    arguments.push(format!("--job-name={name}"));
    arguments.push(format!("--chdir={}", folder.dir().join("slurm").display()));
    arguments.extend(options.partition.as_ref().map(|p| format!("--partition={p}")));
    arguments.extend(options.account.as_ref().map(|a| format!("--account={a}")));
    arguments
}

/// Returns the option for a job's log. In Slurm's format a percent sign of the folder's path is doubled.
fn log(folder: &Folder, name: &str) -> String {
    let dir = folder.dir().display().to_string().replace('%', "%%");
    format!("--output={dir}/slurm/logs/{name}.log")
}

fn sbatch(arguments: &[String], options: &Options) -> Result<u64, SlurmError> {
    match run("sbatch", arguments) {
        Ok(output) => {
            // job, or job;cluster
            let number = output.trim().split(';').next().and_then(|job| job.parse().ok());
            number.ok_or(SlurmError::Output { command: "sbatch", output, expected: "a job number" })
        }
        Err(SlurmError::Refused { message, .. })
            if options.partition.is_some() && message.to_lowercase().contains("invalid partition") =>
        {
            let found = options.partition.clone().unwrap_or_default();
            Err(SlurmError::Partition { found, known: partitions()?.join(", ") })
        }
        Err(error) => Err(error),
    }
}

fn path_below(folder: &Folder, name: &str) -> Result<String, SweepError> {
    let path = folder.dir().join("slurm").join(name);
    let text = path.to_str().map(String::from);
    text.ok_or_else(|| not_text(&path))
}

fn not_text(path: &Path) -> SweepError {
    let source =
        std::io::Error::new(std::io::ErrorKind::InvalidInput, "the path is not UTF-8, which Slurm's scripts need");
    SweepError::Write { path: path.to_path_buf(), source }
}

fn write_scripts(folder: &Folder, program: &Path) -> Result<(), SweepError> {
    let logs = folder.dir().join("slurm/logs");
    std::fs::create_dir_all(&logs).map_err(|source| SweepError::Write { path: logs, source })?;
    for (name, script) in
        [(TASK, scripts::task(program, folder.dir())), (GATHER, scripts::gather(program, folder.dir()))]
    {
        let script = script.ok_or_else(|| not_text(folder.dir()))?;
        folder.write(&format!("slurm/{name}"), script.as_bytes())?;
    }
    Ok(())
}

/// Runs the points of one chunk that have no result yet: the work of an array's task.
///
/// # Errors
/// Returns an error if the folder does not hold that chunk, a file of the grid has changed since, or a result cannot be
/// written.
pub fn run_chunk(
    folder: &Folder,
    registry: &Registry,
    chunk: usize,
    threads: NonZeroUsize,
    watch: &Watch,
) -> Result<Vec<PointFailure>, SweepError> {
    let (grid, points, digests) = folder.planned(registry)?;
    let error = |reason: String| SweepError::Plan { path: folder.dir().join(SUBMISSION), reason };
    let submission = Submission::read(folder)?.ok_or_else(|| error("nothing was submitted".into()))?;
    let numbers = submission
        .chunks
        .get(chunk)
        .ok_or_else(|| error(format!("it has {} chunks, and no {chunk}", submission.chunks.len())))?;
    for &number in numbers {
        let point = points.get(number).ok_or_else(|| error(format!("there is no point {number}")))?;
        let now = grid.digest(point).map_err(|(path, source)| SweepError::Read { path, source })?;
        if now != digests[number] {
            let reason =
                format!("a file of point {number} ({}) was changed since it was planned", point.describe(&grid));
            return Err(SweepError::Plan { path: folder.dir().join(crate::sweep::sweep_folder::PLAN), reason });
        }
    }
    let options = local::Options { threads, memory: u64::MAX };
    local::run(&grid, &points, &digests, numbers, folder, options, watch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_task_of_a_point_is_found_through_chunk_and_array() {
        let submission = Submission {
            arrays: vec![SubmittedArray { job: 7, first: 0, tasks: 2 }, SubmittedArray { job: 9, first: 2, tasks: 1 }],
            chunks: vec![vec![0, 1], vec![4], vec![5, 6]],
            gather: Some(10),
            ..Submission::default()
        };
        let task = |point| submission.task_of(point).map(|(task, _)| task);
        assert_eq!((task(1), task(4)), (Some("7_0".into()), Some("7_1".into())));
        assert_eq!((task(6), task(2)), (Some("9_0".into()), None));
        assert_eq!(submission.jobs(), [7, 9, 10]);
    }
}
