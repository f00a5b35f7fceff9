//! Runs Slurm's commands and classifies their failures.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::io;
use std::process::Command;
use std::time::{Duration, Instant};

use evenhand_child_process::{Limits, RunError, StopFlag};
use thiserror::Error;

use crate::slurmrestd::RestError;

/// A command to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The program: `squeue`, `sacct`, …
    pub program: &'static str,
    /// The arguments.
    pub arguments: Vec<String>,
    /// The standard input, if any.
    pub input: Option<String>,
}

impl Call {
    /// Creates a command without input.
    pub fn new(program: &'static str, arguments: impl IntoIterator<Item = impl Into<String>>) -> Call {
        Call { program, arguments: arguments.into_iter().map(Into::into).collect(), input: None }
    }
}

/// Runs commands: on the system, or from recorded output.
pub trait Commands {
    /// Runs a command and returns its standard output.
    ///
    /// # Errors
    /// Returns an error if the command is missing, fails, or does not end in time.
    fn run(&self, call: &Call) -> Result<String, CommandError>;
}

/// Why a command failed.
#[derive(Debug, Error)]
pub enum CommandError {
    /// The program is not installed.
    #[error("{program} is not installed here: run this on a machine with Slurm's commands (a login node)")]
    Absent {
        /// The program.
        program: &'static str,
    },
    /// The program cannot be run.
    #[error("cannot run {program}: {source}")]
    Run {
        /// The program.
        program: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// The command did not end in time, and was killed.
    #[error("{program} did not end within {seconds} s{}", partial_output(message))]
    TimedOut {
        /// The program.
        program: &'static str,
        /// The time limit in seconds.
        seconds: u64,
        /// What it had printed on standard error.
        message: String,
    },
    /// The command was killed because this program ends.
    #[error("{program} was stopped before it ended")]
    Stopped {
        /// The program.
        program: &'static str,
    },
    /// The command printed too much, and was killed.
    #[error("{program} printed more than {limit} bytes; request less, such as a shorter time")]
    TooLarge {
        /// The program.
        program: &'static str,
        /// The limit in bytes.
        limit: usize,
    },
    /// The command failed.
    #[error("{program}: {}{}", beginning(message), kind.remedy())]
    Failed {
        /// The program.
        program: &'static str,
        /// The distinct lines that it printed on standard error, without its own name.
        message: String,
        /// The kind of failure.
        kind: FailureKind,
    },
    /// slurmrestd, which replaces a command, failed.
    #[error(transparent)]
    Rest(#[from] RestError),
}

fn partial_output(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!("; it printed: {message}") }
}

/// The kind of a command's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The user is not permitted to do this.
    Denied,
    /// slurmctld or slurmdbd does not respond.
    Unreachable,
    /// The site has no accounting.
    NoAccounting,
    /// There is no Slurm configuration.
    NoConfiguration,
    /// Any other failure.
    Other,
}

impl FailureKind {
    /// Classifies a message on standard error.
    pub(crate) fn of(message: &str) -> FailureKind {
        let message = message.to_ascii_lowercase();
        let contains = |any: &[&str]| any.iter().any(|part| message.contains(part));
        // Messages of slurm_errno.c and of the commands, 22.05 to 26.05; of the system's own, those of a daemon that ends
        // while it responds.
        if contains(&["accounting storage is disabled", "supported accounting_storage plugin"]) {
            FailureKind::NoAccounting
        } else if contains(&["permission denied", "access denied", "invalid user id", "not authorized", "privileges"]) {
            FailureKind::Denied
        } else if contains(&["configuration source", "cannot stat file", "dns srv lookup", "fetch config"]) {
            FailureKind::NoConfiguration
        } else if contains(&[
            "unable to contact",
            "connection refused",
            "connection reset by peer",
            "broken pipe",
            "connect failure",
            "connection failure",
            "send failure",
            "receive failure",
            "shutdown failure",
            "missing socket error",
            "connection timed out",
            "timed out on send/recv",
            "zero bytes",
            "problem talking to the database",
            "persistinit",
            "no route to host",
            "unable to connect",
        ]) {
            FailureKind::Unreachable
        } else {
            FailureKind::Other
        }
    }

    pub(crate) fn remedy(self) -> &'static str {
        match self {
            FailureKind::Denied => "; request only what you may see, or run this as a user with AdminLevel Operator",
            FailureKind::Unreachable => {
                "; the daemon does not respond: try again, or ask its administrator (scontrol ping)"
            }
            FailureKind::NoAccounting => "; without slurmdbd there is no history to read",
            FailureKind::NoConfiguration => "; run this where Slurm is configured, or set SLURM_CONF",
            FailureKind::Other => "",
        }
    }
}

/// Runs Slurm's commands on this machine.
#[derive(Clone, Debug)]
pub struct LocalCommands {
    /// The time limit of a command.
    pub timeout: Duration,
    /// The time at which all commands must have ended, if there is one.
    pub deadline: Option<Instant>,
    /// Ends a running command, and refuses to start another.
    pub stop: StopFlag,
}

/// The largest output of a command, in bytes: some ten million jobs. The answer of slurmrestd has the same limit.
const OUTPUT_LIMIT: usize = 2 << 30;

impl Default for LocalCommands {
    /// 2 minutes: `sacct` over months is slow, while commands give up on a dead controller after 10 s.
    fn default() -> LocalCommands {
        LocalCommands { timeout: Duration::from_secs(120), deadline: None, stop: StopFlag::default() }
    }
}

impl Commands for LocalCommands {
    fn run(&self, call: &Call) -> Result<String, CommandError> {
        let program = call.program;
        if self.stop.is_set() {
            return Err(CommandError::Stopped { program });
        }
        let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let time = left.map_or(self.timeout, |left| left.min(self.timeout));
        let limits = Limits { time, output: OUTPUT_LIMIT, stop: self.stop.clone() };
        let input = call.input.as_deref().map(str::as_bytes);
        match evenhand_child_process::run(&mut command(call), input, &limits) {
            Ok(finished) if finished.status.success() => Ok(into_text(finished.stdout)),
            Ok(finished) => {
                let mut message = error_lines(program, &into_text(finished.stderr));
                if message.is_empty() {
                    message = error_lines(program, &into_text(finished.stdout));
                }
                Err(CommandError::Failed { program, kind: FailureKind::of(&message), message: or_no_reason(message) })
            }
            Err(RunError::TimedOut { stderr, .. }) => {
                let message = beginning(&error_lines(program, &into_text(stderr))).to_owned();
                Err(CommandError::TimedOut { program, seconds: time.as_secs(), message })
            }
            Err(RunError::Stopped) => Err(CommandError::Stopped { program }),
            Err(RunError::TooLarge { limit }) => Err(CommandError::TooLarge { program, limit }),
            Err(RunError::Start(source)) if source.kind() == io::ErrorKind::NotFound => {
                Err(CommandError::Absent { program })
            }
            Err(RunError::Start(source) | RunError::Wait(source)) => Err(CommandError::Run { program, source }),
        }
    }
}

/// Returns output as text, without a copy if it is UTF-8.
fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

fn or_no_reason(message: String) -> String {
    if message.is_empty() { "it failed without a message".into() } else { message }
}

/// How the names of variables begin that are options of Slurm's commands.
const DEFAULTS: [&str; 8] =
    ["SQUEUE_", "SACCT_", "SCONTROL_", "SINFO_", "SPRIO_", "SSHARE_", "SLURM_CLUSTERS", "SHOW_UNITS"];

fn command(call: &Call) -> Command {
    let mut command = Command::new(call.program);
    command
        .args(&call.arguments)
        // English messages, which are classified; complete array indices; times as seconds since 1970 where a command
        // can print them, and in UTC where it cannot (sacct).
        .env("LC_ALL", "C")
        .env("SLURM_BITSTR_LEN", "0")
        .env("SLURM_TIME_FORMAT", if call.program == "sacct" { "standard" } else { "%s" })
        .env("TZ", "UTC0");
    // The user's own defaults must not change the output.
    let is_default = |name: &OsString| {
        let name = name.to_string_lossy();
        DEFAULTS.iter().any(|defaults| name.starts_with(defaults))
    };
    for name in std::env::vars_os().map(|(name, _)| name).filter(is_default) {
        command.env_remove(name);
    }
    command
}

/// Returns the distinct lines of standard error, without the name of the program, joined by [`LINE_SEPARATOR`].
fn error_lines(program: &str, stderr: &str) -> String {
    let prefix = format!("{program}: ");
    let mut seen = HashSet::new();
    let mut lines: Vec<&str> = Vec::new();
    for line in stderr.lines() {
        let line = line.strip_prefix(&prefix).unwrap_or(line);
        let line = line.strip_prefix("error: ").or_else(|| line.strip_prefix("fatal: ")).unwrap_or(line).trim();
        if !line.is_empty() && seen.insert(line) {
            lines.push(line);
        }
    }
    lines.join(LINE_SEPARATOR)
}

/// Separates lines in the message of a failure.
pub(crate) const LINE_SEPARATOR: &str = "; ";

/// Returns the first lines of a message: they state the cause; a command that retries repeats itself, and an update of
/// many jobs has a line for each.
pub(crate) fn beginning(message: &str) -> &str {
    message.match_indices(LINE_SEPARATOR).nth(3).map_or(message, |(end, _)| &message[..end])
}

/// Returns recorded output, for tests and for output from elsewhere.
#[derive(Clone, Debug, Default)]
pub struct RecordedOutput {
    texts: BTreeMap<String, String>,
}

impl RecordedOutput {
    /// Adds the output of commands that begin like this (`squeue`, or `scontrol show node` without options).
    pub fn with(mut self, command: &str, text: impl Into<String>) -> RecordedOutput {
        self.texts.insert(command.to_string(), text.into());
        self
    }
}

impl Commands for RecordedOutput {
    fn run(&self, call: &Call) -> Result<String, CommandError> {
        let words = call.arguments.iter().map(String::as_str).filter(|a| !a.starts_with('-'));
        let command = std::iter::once(call.program).chain(words).collect::<Vec<_>>().join(" ");
        let known = self.texts.iter().rev().find(|(begin, _)| command.starts_with(begin.as_str()));
        known.map(|(_, text)| text.clone()).ok_or(CommandError::Absent { program: call.program })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, input: Option<&str>, timeout: Duration) -> Result<String, CommandError> {
        let call = Call { input: input.map(String::from), ..Call::new("sh", ["-c", script]) };
        LocalCommands { timeout, ..LocalCommands::default() }.run(&call)
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_command_returns_its_output_or_the_cause_of_its_failure() {
        assert_eq!(shell("echo out; echo err >&2", None, LONG).unwrap(), "out\n");
        assert_eq!(shell("echo $TZ $SLURM_TIME_FORMAT $SLURM_BITSTR_LEN", None, LONG).unwrap(), "UTC0 %s 0\n");
        assert_eq!(shell("tr a b", Some("banana"), LONG).unwrap(), "bbnbnb");
        let error = shell("echo 'sh: error: Access/permission denied' >&2; exit 1", None, LONG).unwrap_err();
        assert!(
            error.to_string().starts_with("sh: Access/permission denied; request only what you may see"),
            "{error}"
        );
        let error = shell("exit 3", None, LONG).unwrap_err();
        assert_eq!(error.to_string(), "sh: it failed without a message");
        let error = LocalCommands::default().run(&Call::new("no-such-command-of-slurm", ["x"])).unwrap_err();
        assert!(error.to_string().starts_with("no-such-command-of-slurm is not installed here"), "{error}");
    }

    #[test]
    fn more_output_than_a_pipe_holds_is_read_and_a_command_that_never_ends_is_killed() {
        let text = shell("head -c 300000 /dev/zero | tr '\\0' x; head -c 300000 /dev/zero >&2", None, LONG).unwrap();
        assert_eq!(text.len(), 300_000);
        let late = shell("echo waiting >&2; exec sleep 30", None, Duration::from_millis(300)).unwrap_err();
        assert!(late.to_string().contains("did not end within 0 s; it printed: waiting"), "{late}");
    }

    #[test]
    fn a_stop_and_a_passed_deadline_end_every_command() {
        let stopped = LocalCommands::default();
        stopped.stop.set();
        let call = Call::new("sh", ["-c", "exec sleep 30"]);
        assert!(matches!(stopped.run(&call), Err(CommandError::Stopped { program: "sh" })));
        let late = LocalCommands { deadline: Some(Instant::now()), ..LocalCommands::default() };
        assert!(matches!(late.run(&call), Err(CommandError::TimedOut { program: "sh", .. })));
    }

    #[test]
    fn a_message_of_many_lines_is_kept_whole_and_printed_by_its_beginning() {
        let error = shell("for i in 1 2 3 4 5 6; do echo line $i >&2; done; exit 1", None, LONG).unwrap_err();
        assert_eq!(error.to_string(), "sh: line 1; line 2; line 3; line 4");
        assert!(matches!(error, CommandError::Failed { message, .. } if message.ends_with("line 5; line 6")));
    }

    #[test]
    fn failures_are_classified_by_their_message() {
        for (message, kind) in [
            (
                "Couldn't get shares from controller: Unable to contact slurm controller (connect failure)",
                FailureKind::Unreachable,
            ),
            ("Sending PersistInit msg: Connection refused", FailureKind::Unreachable),
            ("squeue: slurm_load_jobs error: Connection reset by peer", FailureKind::Unreachable),
            ("Unable to contact slurm controller (receive failure)", FailureKind::Unreachable),
            ("Slurm accounting storage is disabled", FailureKind::NoAccounting),
            ("You are not running a supported accounting_storage plugin", FailureKind::NoAccounting),
            ("slurm_load_jobs error: Access/permission denied", FailureKind::Denied),
            ("Could not establish a configuration source", FailureKind::NoConfiguration),
            ("Invalid job format specification: x", FailureKind::Other),
        ] {
            assert_eq!(FailureKind::of(message), kind, "{message}");
        }
    }

    #[test]
    fn recorded_output_is_chosen_by_the_longest_matching_beginning() {
        let recorded = RecordedOutput::default().with("scontrol show", "any").with("scontrol show node", "nodes");
        let ask = |arguments: [&str; 3]| recorded.run(&Call::new("scontrol", arguments)).unwrap();
        assert_eq!((ask(["-o", "show", "node"]), ask(["--all", "show", "config"])), ("nodes".into(), "any".into()));
        assert!(matches!(recorded.run(&Call::new("sacct", ["-X"])), Err(CommandError::Absent { program: "sacct" })));
    }
}
