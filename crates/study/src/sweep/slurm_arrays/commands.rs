//! Runs Slurm's commands, and reads their output and errors.

use std::ffi::OsStr;
use std::io;
use std::process::Command;
use std::time::Duration;

use evenhand_child_process::RunError;
use thiserror::Error;

use crate::sweep::sweep_folder::SweepError;

/// An error of Slurm or of its commands.
#[derive(Debug, Error)]
pub enum SlurmError {
    /// The command is not installed.
    #[error(
        "there is no {command} here: run this on a machine with Slurm's commands (a login node), or use --engine local"
    )]
    Absent {
        /// The command.
        command: &'static str,
    },
    /// The command cannot be run.
    #[error("cannot run {command}: {source}")]
    Run {
        /// The command.
        command: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The command hangs, or prints without end.
    #[error("{command} {why}, and was killed; try again, or ask the administrator of Slurm (scontrol ping)")]
    Killed {
        /// The command.
        command: &'static str,
        /// Which limit it exceeded.
        why: RunError,
    },
    /// There is no such partition.
    #[error("Slurm has no partition {found:?}; it has: {known}")]
    Partition {
        /// The requested partition.
        found: String,
        /// The existing partitions.
        known: String,
    },
    /// The command failed.
    #[error("{command} refused: {message}")]
    Refused {
        /// The command.
        command: &'static str,
        /// Its error message.
        message: String,
    },
    /// The command's output has an unknown format.
    #[error("{command} answered {output:?}, expected {expected}")]
    Output {
        /// The command.
        command: &'static str,
        /// The output.
        output: String,
        /// The expected output.
        expected: &'static str,
    },
    /// Job arrays are disabled.
    #[error("this Slurm accepts no job arrays (MaxArraySize is {0}); use --engine local inside a job of your own")]
    NoArrays(usize),
    /// Jobs of the sweep are still in the queue.
    #[error(
        "jobs {jobs} of this sweep are in the queue; wait for them, or stop them with: evenhand sweep cancel {dir}"
    )]
    UnderWay {
        /// The jobs.
        jobs: String,
        /// The folder, quoted for a shell.
        dir: String,
    },
    /// The folder of the sweep cannot be used.
    #[error(transparent)]
    Sweep(#[from] SweepError),
}

impl SlurmError {
    /// Returns whether the environment failed (Slurm, a disk), and not the input.
    pub fn is_environment(&self) -> bool {
        match self {
            SlurmError::Sweep(error) => error.is_environment(),
            _ => true,
        }
    }
}

/// The time limit of a command. Slurm's commands give up on a dead controller after 10 s.
const TIME_LIMIT: Duration = Duration::from_secs(120);

/// Runs a command and returns its output.
pub(super) fn run<A: AsRef<OsStr>>(
    command: &'static str,
    arguments: impl IntoIterator<Item = A>,
) -> Result<String, SlurmError> {
    let mut program = Command::new(command);
    // Output in the untranslated form that is parsed here, with complete ranges of indices.
    program.args(arguments).env("LC_ALL", "C").env("SLURM_BITSTR_LEN", "0");
    let limits = evenhand_child_process::Limits { time: TIME_LIMIT, ..Default::default() };
    let output = evenhand_child_process::run(&mut program, None, &limits).map_err(|error| match error {
        RunError::Start(source) if source.kind() == io::ErrorKind::NotFound => SlurmError::Absent { command },
        RunError::Start(source) | RunError::Wait(source) => SlurmError::Run { command, source },
        why => SlurmError::Killed { command, why },
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(SlurmError::Refused { command, message: error_message(command, &String::from_utf8_lossy(&output.stderr)) })
}

/// Returns a command's error message without the command's name at the start of each line.
fn error_message(command: &str, stderr: &str) -> String {
    let prefix = format!("{command}: ");
    let lines = stderr.lines().map(|line| {
        let line = line.strip_prefix(&prefix).unwrap_or(line);
        line.strip_prefix("error: ").unwrap_or(line).trim()
    });
    let message = lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ");
    if message.is_empty() { "it gives no reason".to_string() } else { message }
}

/// The site's limits of job arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) max_array_size: usize,
    pub(super) max_array_tasks: Option<usize>,
}

impl Limits {
    /// Queries the controller.
    pub(super) fn query() -> Result<Limits, SlurmError> {
        let output = run("scontrol", ["show", "config"])?;
        Limits::parse(&output).ok_or_else(|| SlurmError::Output {
            command: "scontrol show config",
            output: output.lines().next().unwrap_or_default().to_string(),
            expected: "a line MaxArraySize = N",
        })
    }

    fn parse(text: &str) -> Option<Limits> {
        let value = |key: &str| {
            let lines = text.lines().filter_map(|line| line.split_once('='));
            lines.into_iter().find(|(name, _)| name.trim() == key).map(|(_, value)| value.trim())
        };
        let max_array_tasks = value("SchedulerParameters")
            .and_then(|all| all.split(',').find_map(|one| one.strip_prefix("max_array_tasks=")))
            .and_then(|number| number.parse().ok());
        Some(Limits { max_array_size: value("MaxArraySize")?.parse().ok()?, max_array_tasks })
    }
}

/// One line of the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Queued {
    /// The job; for a task of an array the array's job.
    pub(super) job: u64,
    /// The number of tasks that the line stands for.
    pub(super) tasks: usize,
    pub(super) state: String,
    /// Slurm's reason for the wait.
    pub(super) reason: String,
}

/// Returns the queue's lines of jobs with this name.
pub(super) fn queue(name: &str) -> Result<Vec<Queued>, SlurmError> {
    let output = run("squeue", ["-h", "-n", name, "-o", "%F|%K|%T|%r"])?;
    let lines = output.lines().filter(|line| !line.trim().is_empty());
    lines
        .map(|line| {
            parse_queued(line).ok_or_else(|| SlurmError::Output {
                command: "squeue",
                output: line.to_string(),
                expected: "job|tasks|state|reason",
            })
        })
        .collect()
}

fn parse_queued(line: &str) -> Option<Queued> {
    let mut fields = line.splitn(4, '|');
    let job = fields.next()?.trim().parse().ok()?;
    let tasks = count_indices(fields.next()?);
    Some(Queued { job, tasks, state: fields.next()?.to_string(), reason: fields.next()?.to_string() })
}

/// Counts the indices of a range such as `0-3,7,9-20:2%4`; returns 1 for a job that is no array.
fn count_indices(text: &str) -> usize {
    let list = text.trim().trim_matches(['[', ']']);
    let list = list.split_once('%').map_or(list, |(list, _)| list);
    let count = |part: &str| -> Option<usize> {
        let (range, step) = part.split_once(':').unwrap_or((part, "1"));
        let Some((from, to)) = range.split_once('-') else { return range.parse::<usize>().ok().map(|_| 1) };
        let (from, to, step): (usize, usize, usize) = (from.parse().ok()?, to.parse().ok()?, step.parse().ok()?);
        Some(to.checked_sub(from)? / step.max(1) + 1)
    };
    list.split(',').map(count).sum::<Option<usize>>().unwrap_or(1)
}

/// Returns the names of the site's partitions.
pub(super) fn partitions() -> Result<Vec<String>, SlurmError> {
    let mut names: Vec<String> = run("sinfo", ["-h", "-o", "%R"])?.lines().map(|l| l.trim().to_string()).collect();
    names.sort();
    names.dedup();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_from_the_configuration() {
        let config = "Configuration data as of 2026-01-01T00:00:00\nMaxArraySize            = 1001\n\
                      SchedulerParameters     = bf_interval=2,max_array_tasks=500,x\nSlurmUser = root(0)\n";
        assert_eq!(Limits::parse(config), Some(Limits { max_array_size: 1001, max_array_tasks: Some(500) }));
        let config = "MaxArraySize = 5\nSchedulerParameters = (null)\n";
        assert_eq!(Limits::parse(config), Some(Limits { max_array_size: 5, max_array_tasks: None }));
        assert_eq!(Limits::parse("MaxJobCount = 5\n"), None);
    }

    #[test]
    fn tasks_of_an_array_are_counted() {
        let counts = ["7", "[0-3]", "[0-3,7,9-20:2%4]", "N/A", "1-1", "[5,9%1]", ""].map(count_indices);
        assert_eq!(counts, [1, 4, 11, 1, 1, 2, 1]);
        let queued = parse_queued("42|[3-9]|PENDING|Resources").unwrap();
        assert_eq!((queued.job, queued.tasks, queued.state.as_str()), (42, 7, "PENDING"));
        assert_eq!(parse_queued("no job"), None);
    }

    #[test]
    fn error_messages_lose_the_name_of_the_command() {
        let stderr = "sbatch: error: invalid partition specified: x\nsbatch: error: Batch job submission failed: no\n";
        assert_eq!(error_message("sbatch", stderr), "invalid partition specified: x; Batch job submission failed: no");
        assert_eq!(error_message("sbatch", "\n"), "it gives no reason");
    }

    #[test]
    fn a_missing_command_is_reported() {
        let error = run("no-such-command-of-slurm", ["x"]).unwrap_err();
        assert!(error.to_string().starts_with("there is no no-such-command-of-slurm here"), "{error}");
        assert!(error.is_environment());
    }
}
