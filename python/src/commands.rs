//! Runs commands of the program in this process.

use std::ffi::OsString;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use evenhand::{Captured, Host, HostFile};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{environment_error, policy_error};
use crate::policies::{Factory, Failures, Turns, registration};

/// How often Python's signals are looked at and progress is reported.
const TICK: Duration = Duration::from_millis(50);

/// A file that the caller removes: its path, its name in the recorded command line, what it holds, and the command line
/// that makes it.
type OwnFile = (String, String, String, Option<String>);

/// Exit status, standard output, notes, and the sentence of a failure.
type Finished = (u8, Py<PyBytes>, Vec<String>, Option<String>);

/// Runs a command of the program, given its arguments without the program's name.
///
/// Releases the interpreter's lock. Ctrl-C stops a study, whose finished runs stay in its folder, and raises
/// KeyboardInterrupt; a second one does not wait for the command. `progress` is called with the number of simulated tasks and
/// of all tasks.
///
/// `policies` are added to those of the program: name, summary, a class, of which every run gets an object, and about how
/// many times as long as a policy of the program it takes for a decision. Its first exception stops the command and is
/// raised as PolicyError.
///
/// `files` are those that the caller removes; records state what they hold.
///
/// Returns the exit status, standard output, the notes, and the sentence of a failure.
#[pyfunction]
#[pyo3(signature = (arguments, progress=None, policies=Vec::new(), files=Vec::new()))]
pub(crate) fn run(
    py: Python<'_>,
    arguments: Vec<OsString>,
    progress: Option<Py<PyAny>>,
    policies: Vec<(String, String, Py<PyAny>, u32)>,
    files: Vec<OwnFile>,
) -> PyResult<Finished> {
    let host = Host::default();
    for (path, argument, contents, made_by) in files {
        host.add_file(HostFile { path, argument, contents, made_by });
    }
    let failures = Failures::new(&host);
    let turns = Arc::<Turns>::default();
    let mut command_line = evenhand::cli();
    let mut factories = Vec::new();
    if !policies.is_empty() {
        // A thread that Python does not know gets a state of the interpreter whenever it attaches, which takes longer than
        // most decisions. One that is attached outside of it all has a state already.
        host.around_threads(|run| Python::attach(|py| py.detach(run)));
    }
    for (name, summary, make, cost) in policies {
        let (registration, factory) = registration(name, &summary, make, cost, failures.clone(), turns.clone());
        command_line = command_line.policy(registration);
        factories.push(factory);
    }
    let (send, receive) = mpsc::channel();
    let its_host = host.clone();
    let command = move || {
        let arguments = std::iter::once(OsString::from("evenhand")).chain(arguments);
        // The receiver is gone only if the caller did not wait.
        let _ = send.send(command_line.run_captured(arguments, &its_host));
    };
    let thread = std::thread::Builder::new().name("evenhand".into()).spawn(command);
    thread.map_err(|error| environment_error(py, format!("cannot start a thread: {error}")))?;
    let captured = wait(py, &Mutex::new(receive), &host, progress);
    factories.iter().for_each(Factory::release);
    if let Some((policy, error)) = failures.take() {
        return Err(policy_error(py, &policy, error));
    }
    let captured = captured?;
    Ok((captured.status, PyBytes::new(py, &captured.output).unbind(), captured.notes, captured.error))
}

/// Waits for the end of a command; handles signals and reports progress meanwhile.
fn wait(
    py: Python<'_>,
    receive: &Mutex<mpsc::Receiver<Captured>>,
    host: &Host,
    progress: Option<Py<PyAny>>,
) -> PyResult<Captured> {
    // The exception that stopped the command.
    let mut stopped: Option<PyErr> = None;
    let report = |host: &Host| {
        let (done, total) = host.progress();
        progress.as_ref().map_or(Ok(()), |call| call.call1(py, (done, total)).map(drop))
    };
    loop {
        let received = py.detach(|| receive.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(TICK));
        match received {
            Ok(captured) => {
                return match stopped {
                    Some(error) => Err(error),
                    None => report(host).map(|()| captured),
                };
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(environment_error(py, "internal error: a command ended without a result"));
            }
        }
        let signals = py.check_signals();
        if stopped.is_some() {
            signals?;
        } else if let Err(error) = signals.and_then(|()| report(host)) {
            if !host.interrupt() {
                return Err(error);
            }
            stopped = Some(error);
        }
    }
}
