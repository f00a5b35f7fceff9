//! Runs a command with limits on its time and its output.
//!
//! A program that waits for another one without a limit is only as reliable as that one: a hung `squeue` would keep a
//! service from stopping, and a command that prints without end would use all memory. [`run`] waits until the command has
//! ended, a limit is exceeded, or a [`StopFlag`] is set, for example by a signal handler. In the last two cases it kills
//! the command together with its descendants, which share a process group.
//!
//! ```
//! use std::process::Command;
//! use std::time::Duration;
//! use evenhand_child_process::{Limits, RunError, run};
//!
//! let limits = Limits { time: Duration::from_secs(10), ..Limits::default() };
//! let finished = run(Command::new("sh").args(["-c", "tr a b"]), Some(b"banana"), &limits).unwrap();
//! assert_eq!((finished.status.success(), finished.stdout.as_slice()), (true, b"bbnbnb".as_slice()));
//!
//! let limits = Limits { time: Duration::from_millis(100), ..Limits::default() };
//! let error = run(Command::new("sleep").arg("60"), None, &limits).unwrap_err();
//! assert!(matches!(error, RunError::TimedOut { .. }));
//! ```

mod pipes;
mod stop_flag;

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use thiserror::Error;

use crate::pipes::Pipes;
pub use crate::stop_flag::StopFlag;

/// The limits of a command.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The time until it has to have ended.
    pub time: Duration,
    /// The largest standard output, in bytes.
    pub output: usize,
    /// Ends the command early.
    pub stop: StopFlag,
}

impl Default for Limits {
    /// One minute, 64 MiB, and a flag that nobody sets.
    fn default() -> Limits {
        Limits { time: Duration::from_secs(60), output: 64 << 20, stop: StopFlag::default() }
    }
}

/// The result of a command that ended by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The exit status.
    pub status: ExitStatus,
    /// All of its standard output.
    pub stdout: Vec<u8>,
    /// The beginning of its standard error, at most [`STDERR_LIMIT`] bytes.
    pub stderr: Vec<u8>,
}

/// The number of bytes of standard error that are kept; what follows is read and dropped.
pub const STDERR_LIMIT: usize = 1 << 20;

/// Why a command did not end by itself.
#[derive(Debug, Error)]
pub enum RunError {
    /// It cannot be started. The kind of the error tells a missing program (`NotFound`) from one that the user may not
    /// run (`PermissionDenied`).
    #[error("cannot start: {0}")]
    Start(#[source] io::Error),
    /// It cannot be waited for.
    #[error("cannot wait for its end: {0}")]
    Wait(#[source] io::Error),
    /// It did not end in time, and was killed.
    #[error("did not end within {} s", limit.as_secs_f64())]
    TimedOut {
        /// The limit.
        limit: Duration,
        /// The beginning of its standard error.
        stderr: Vec<u8>,
    },
    /// Its output is larger than [`Limits::output`], and it was killed.
    #[error("printed more than {limit} bytes")]
    TooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// [`Limits::stop`] was set, and it was killed.
    #[error("stopped")]
    Stopped,
}

/// The longest time between two looks at the stop flag, the deadline, and whether the command has ended.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);
/// The time after the end of a command for which its output is awaited, since a descendant may keep its pipes open.
const PIPES_GRACE: Duration = Duration::from_secs(2);
/// The time after a kill for which the end of the command is awaited. A process that waits for a device or a network
/// file system ends only when that answers.
const KILL_GRACE: Duration = Duration::from_secs(1);

/// Runs a command to its end, with `input` as its standard input (nothing if `None`).
///
/// Standard input, output and error of `command` are replaced. The command becomes the leader of a process group, so that
/// Ctrl-C in a terminal reaches only the caller, which decides by [`Limits::stop`]. Descendants that outlive a command that
/// ended by itself are not killed. Whether the command failed is in [`Finished::status`], and is not an error.
///
/// # Errors
/// Returns an error if the command cannot be started, exceeds a limit, or is stopped. Unless it could not be started, all
/// processes of its group have been killed then.
pub fn run(command: &mut Command, input: Option<&[u8]>, limits: &Limits) -> Result<Finished, RunError> {
    let deadline = Instant::now() + limits.time;
    command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().map_err(RunError::Start)?;
    let result = wait(&mut child, input.unwrap_or_default(), limits, deadline);
    if result.is_err() {
        kill(&mut child);
    }
    result
}

fn wait(child: &mut Child, input: &[u8], limits: &Limits, deadline: Instant) -> Result<Finished, RunError> {
    let mut pipes = Pipes::of(child, input, limits.output).map_err(RunError::Wait)?;
    let mut ended: Option<(ExitStatus, Instant)> = None;
    let mut pause = Duration::from_millis(1);
    loop {
        if pipes.transfer(pause).map_err(RunError::Wait)? {
            pause = Duration::from_millis(1);
        } else {
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        if pipes.is_too_large() {
            return Err(RunError::TooLarge { limit: limits.output });
        }
        let now = Instant::now();
        if ended.is_none() {
            ended = child.try_wait().map_err(RunError::Wait)?.map(|status| (status, now));
        }
        match ended {
            Some((status, at)) if pipes.are_closed() || now >= (at + PIPES_GRACE).min(deadline) => {
                let (stdout, stderr) = pipes.into_output();
                return Ok(Finished { status, stdout, stderr });
            }
            // The command is done; only its output is still in the pipes.
            Some(_) => {}
            None if limits.stop.is_set() => return Err(RunError::Stopped),
            None if now >= deadline => {
                return Err(RunError::TimedOut { limit: limits.time, stderr: pipes.into_output().1 });
            }
            None => {}
        }
    }
}

/// Kills the command's process group, and waits for the command so that it does not remain as a zombie.
fn kill(child: &mut Child) {
    // Once the command has been waited for, its group may be another's.
    if !matches!(child.try_wait(), Ok(None)) {
        return;
    }
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    let until = Instant::now() + KILL_GRACE;
    while matches!(child.try_wait(), Ok(None)) && Instant::now() < until {
        thread::sleep(Duration::from_millis(1));
    }
}
