//! How a command of Slurm's is run, and what it complains of.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use thiserror::Error;

use crate::rest::RestError;

/// One command to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// `squeue`, `sacct`, …
    pub program: &'static str,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// What it reads from standard input; `None`: nothing.
    pub input: Option<String>,
}

impl Call {
    /// A command without input.
    pub fn new(program: &'static str, arguments: impl IntoIterator<Item = impl Into<String>>) -> Call {
        Call { program, arguments: arguments.into_iter().map(Into::into).collect(), input: None }
    }
}

/// Who answers commands: the system, or recorded text.
pub trait Commands {
    /// Runs a command and returns what it printed on standard output.
    ///
    /// # Errors
    /// If there is no such command, or it fails or does not end.
    fn run(&self, call: &Call) -> Result<String, CommandError>;
}

/// Why a command did not do its work.
#[derive(Debug, Error)]
pub enum CommandError {
    /// The command is not there.
    #[error("there is no {program} here: run this where Slurm's commands are (a login node)")]
    Absent {
        /// The command.
        program: &'static str,
    },
    /// The command cannot be run.
    #[error("cannot run {program}: {source}")]
    Run {
        /// The command.
        program: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The command did not end in time, and was stopped.
    #[error("{program} did not answer within {seconds} s{}", said_so_far(said))]
    Late {
        /// The command.
        program: &'static str,
        /// How long it was waited for.
        seconds: u64,
        /// What it said until then.
        said: String,
    },
    /// The command failed.
    #[error("{program}: {said}{}", complaint.remedy())]
    Failed {
        /// The command.
        program: &'static str,
        /// What it said, without its own name.
        said: String,
        /// What that means.
        complaint: Complaint,
    },
    /// slurmrestd, which is asked in place of a command, does not tell.
    #[error(transparent)]
    Rest(#[from] RestError),
}

fn said_so_far(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!("; it said: {said}") }
}

/// What a command that failed complains of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Complaint {
    /// The user may not do this.
    Denied,
    /// slurmctld or slurmdbd does not answer.
    Unreachable,
    /// This site keeps no accounting.
    NoAccounting,
    /// There is no configuration of Slurm's.
    NoConfiguration,
    /// Anything else.
    Other,
}

impl Complaint {
    /// What standard error says.
    pub(crate) fn of(said: &str) -> Complaint {
        let said = said.to_ascii_lowercase();
        let says = |any: &[&str]| any.iter().any(|one| said.contains(one));
        // The words of slurm_errno.c and of the commands, 22.05 to 25.11.
        if says(&["accounting storage is disabled", "supported accounting_storage plugin"]) {
            Complaint::NoAccounting
        } else if says(&["permission denied", "access denied", "invalid user id", "not authorized", "privileges"]) {
            Complaint::Denied
        } else if says(&["configuration source", "cannot stat file", "dns srv lookup", "fetch config"]) {
            Complaint::NoConfiguration
        } else if says(&[
            "unable to contact",
            "connection refused",
            "connect failure",
            "connection timed out",
            "timed out on send/recv",
            "zero bytes",
            "problem talking to the database",
            "persistinit",
            "no route to host",
            "unable to connect",
        ]) {
            Complaint::Unreachable
        } else {
            Complaint::Other
        }
    }

    pub(crate) fn remedy(self) -> &'static str {
        match self {
            Complaint::Denied => "; ask for what you may see, or run this as a user with AdminLevel Operator",
            Complaint::Unreachable => {
                "; the daemon it asks does not answer: try again, or ask whoever runs it (scontrol ping)"
            }
            Complaint::NoAccounting => "; without slurmdbd there is no history to read",
            Complaint::NoConfiguration => "; run this where Slurm is configured, or set SLURM_CONF",
            Complaint::Other => "",
        }
    }
}

/// Runs Slurm's own commands.
#[derive(Clone, Debug)]
pub struct System {
    /// How long a command may take.
    pub patience: Duration,
}

impl Default for System {
    /// Two minutes: `sacct` over months is slow, a dead controller gives up after 10 s by itself.
    fn default() -> System {
        System { patience: Duration::from_secs(120) }
    }
}

impl Commands for System {
    fn run(&self, call: &Call) -> Result<String, CommandError> {
        let program = call.program;
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => CommandError::Absent { program },
            _ => CommandError::Run { program, source },
        };
        let mut child = spawn(call).map_err(failed)?;
        if let (Some(input), Some(mut pipe)) = (call.input.clone(), child.stdin.take()) {
            // On its own: what does not read all of it may print first. A closed pipe shows as its exit status.
            thread::spawn(move || pipe.write_all(input.as_bytes()));
        }
        let (out, err) = (reader(child.stdout.take()), reader(child.stderr.take()));
        let deadline = Instant::now() + self.patience;
        // What a pipe holds does not count for the end: a child of the child may keep it open.
        let status = wait(&mut child, deadline).map_err(failed)?;
        let text = |pipe: &Receiver<Vec<u8>>, patience| {
            String::from_utf8_lossy(&pipe.recv_timeout(patience).unwrap_or_default()).into_owned()
        };
        let grace = Duration::from_secs(2);
        match status {
            None => {
                let said = complaint(program, &text(&err, grace));
                Err(CommandError::Late { program, seconds: self.patience.as_secs(), said })
            }
            Some(status) if status.success() => Ok(text(&out, self.patience)),
            Some(_) => {
                let mut said = complaint(program, &text(&err, grace));
                if said.is_empty() {
                    said = complaint(program, &text(&out, grace));
                }
                Err(CommandError::Failed { program, complaint: Complaint::of(&said), said: or_nothing(said) })
            }
        }
    }
}

fn or_nothing(said: String) -> String {
    if said.is_empty() { "it failed and gives no reason".into() } else { said }
}

fn spawn(call: &Call) -> io::Result<Child> {
    Command::new(call.program)
        .args(&call.arguments)
        // The words that are looked for; array indices in full; times as seconds since 1970 where a command
        // can, and in UTC where it cannot (sacct).
        .env("LC_ALL", "C")
        .env("SLURM_BITSTR_LEN", "0")
        .env("SLURM_TIME_FORMAT", if call.program == "sacct" { "standard" } else { "%s" })
        .env("TZ", "UTC0")
        // What a user has set for himself must not change what is read.
        .env_remove("SQUEUE_FORMAT")
        .env_remove("SQUEUE_FORMAT2")
        .env_remove("SQUEUE_SORT")
        .env_remove("SQUEUE_STATES")
        .env_remove("SQUEUE_USERS")
        .env_remove("SQUEUE_PARTITION")
        .env_remove("SQUEUE_ACCOUNT")
        .env_remove("SQUEUE_QOS")
        .env_remove("SACCT_FORMAT")
        .env_remove("SLURM_CLUSTERS")
        .env_remove("SHOW_UNITS")
        .stdin(if call.input.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}

/// Reads a pipe to its end on a thread of its own.
fn reader(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What came before an error is what there is.
            let _ = pipe.read_to_end(&mut bytes);
        }
        let _ = sender.send(bytes);
    });
    receiver
}

/// Its exit status, or `None` if it had to be stopped.
fn wait(child: &mut Child, deadline: Instant) -> io::Result<Option<std::process::ExitStatus>> {
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

/// What a command complains of, without its own name before each line.
fn complaint(program: &str, stderr: &str) -> String {
    let prefix = format!("{program}: ");
    let mut lines: Vec<&str> = Vec::new();
    for line in stderr.lines() {
        let line = line.strip_prefix(&prefix).unwrap_or(line);
        let line = line.strip_prefix("error: ").or_else(|| line.strip_prefix("fatal: ")).unwrap_or(line).trim();
        if !line.is_empty() && !lines.contains(&line) {
            lines.push(line);
        }
    }
    // The first lines say why; a command that retries repeats itself.
    lines.truncate(4);
    lines.join("; ")
}

/// Answers from recorded text, for tests and for output brought from elsewhere.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    texts: BTreeMap<String, String>,
}

impl Recorded {
    /// Also answers the commands that begin like this (`squeue`, or `scontrol show node` without options).
    pub fn with(mut self, command: &str, text: impl Into<String>) -> Recorded {
        self.texts.insert(command.to_string(), text.into());
        self
    }
}

impl Commands for Recorded {
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

    fn shell(script: &str, input: Option<&str>, patience: Duration) -> Result<String, CommandError> {
        let call = Call { input: input.map(String::from), ..Call::new("sh", ["-c", script]) };
        System { patience }.run(&call)
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_command_says_what_it_printed_or_why_not() {
        assert_eq!(shell("echo out; echo err >&2", None, LONG).unwrap(), "out\n");
        assert_eq!(shell("echo $TZ $SLURM_TIME_FORMAT $SLURM_BITSTR_LEN", None, LONG).unwrap(), "UTC0 %s 0\n");
        assert_eq!(shell("tr a b", Some("banana"), LONG).unwrap(), "bbnbnb");
        let error = shell("echo 'sh: error: Access/permission denied' >&2; exit 1", None, LONG).unwrap_err();
        assert!(error.to_string().starts_with("sh: Access/permission denied; ask for what you may see"), "{error}");
        let error = shell("exit 3", None, LONG).unwrap_err();
        assert_eq!(error.to_string(), "sh: it failed and gives no reason");
        let error = System::default().run(&Call::new("no-such-command-of-slurm", ["x"])).unwrap_err();
        assert!(error.to_string().starts_with("there is no no-such-command-of-slurm here"), "{error}");
    }

    #[test]
    fn more_than_a_pipe_holds_is_read_whole_and_what_never_ends_is_stopped() {
        let text = shell("head -c 300000 /dev/zero | tr '\\0' x; head -c 300000 /dev/zero >&2", None, LONG).unwrap();
        assert_eq!(text.len(), 300_000);
        let late = shell("echo waiting >&2; exec sleep 30", None, Duration::from_millis(300)).unwrap_err();
        assert!(late.to_string().contains("did not answer within 0 s; it said: waiting"), "{late}");
        // A command that leaves a child behind with its pipes has ended all the same.
        let begun = Instant::now();
        assert!(shell("sleep 5 & exit 1", None, LONG).is_err());
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    }

    #[test]
    fn complaints_are_told_apart() {
        for (said, is) in [
            (
                "Couldn't get shares from controller: Unable to contact slurm controller (connect failure)",
                Complaint::Unreachable,
            ),
            ("Sending PersistInit msg: Connection refused", Complaint::Unreachable),
            ("Slurm accounting storage is disabled", Complaint::NoAccounting),
            ("You are not running a supported accounting_storage plugin", Complaint::NoAccounting),
            ("slurm_load_jobs error: Access/permission denied", Complaint::Denied),
            ("Could not establish a configuration source", Complaint::NoConfiguration),
            ("Invalid job format specification: x", Complaint::Other),
        ] {
            assert_eq!(Complaint::of(said), is, "{said}");
        }
    }

    #[test]
    fn recorded_commands_answer_by_their_longest_beginning() {
        let recorded = Recorded::default().with("scontrol show", "any").with("scontrol show node", "nodes");
        let ask = |arguments: [&str; 3]| recorded.run(&Call::new("scontrol", arguments)).unwrap();
        assert_eq!((ask(["-o", "show", "node"]), ask(["--all", "show", "config"])), ("nodes".into(), "any".into()));
        assert!(matches!(recorded.run(&Call::new("sacct", ["-X"])), Err(CommandError::Absent { program: "sacct" })));
    }
}
