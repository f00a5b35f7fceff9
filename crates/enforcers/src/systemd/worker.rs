//! A thread that uses the message bus.
//!
//! Enforcers are synchronous, the bus is asynchronous. The caller may itself run on an asynchronous runtime, where
//! waiting for the bus could block the task that has to answer. A dedicated thread avoids that.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::systemd::bus::{Bus, BusError, MAX_PENDING, Values, Write};

enum Request {
    Reloaded(Sender<Result<bool, BusError>>),
    Read { unit: String, interface: &'static str, names: Vec<&'static str>, to: Sender<Result<Values, BusError>> },
    Set(Vec<Write>, Sender<Vec<Result<(), BusError>>>),
}

/// A request as the thread gets it.
struct Task {
    request: Request,
    /// The time after which nobody waits for the answer, so that nothing may be written any more.
    deadline: Instant,
    /// Set when the thread is ready for the next request.
    done: Arc<AtomicBool>,
}

/// The handle of the thread.
#[derive(Debug)]
pub(crate) struct Worker {
    tasks: Sender<Task>,
    /// The time limit of a call on the bus.
    timeout: Duration,
    /// The task that was given up, if the thread may still be busy with it: a bus that accepts connections and does not
    /// answer stops the thread for as long as it likes.
    late: Mutex<Option<Arc<AtomicBool>>>,
}

impl Worker {
    /// Starts the thread. It connects at the first request, and again after the connection was lost.
    pub(crate) fn start(address: Option<String>, timeout: Duration) -> std::io::Result<Worker> {
        let (tasks, requests) = channel::<Task>();
        thread::Builder::new().name("systemd".into()).spawn(move || {
            let mut session = Session { address, timeout, bus: None, connected_before: false, reconnected: false };
            // Ends when the handle is dropped.
            for Task { request, deadline, done } in requests {
                match request {
                    Request::Reloaded(to) => drop(to.send(session.reloaded())),
                    Request::Read { unit, interface, names, to } => {
                        drop(to.send(session.read(&unit, interface, &names)))
                    }
                    Request::Set(writes, to) => drop(to.send(session.set(&writes, deadline))),
                }
                done.store(true, Ordering::Relaxed);
            }
        })?;
        Ok(Worker { tasks, timeout, late: Mutex::new(None) })
    }

    /// Makes a request and waits for its answer, for at most the time of a connection and `calls` calls one after another.
    fn call<T>(&self, calls: usize, request: impl FnOnce(Sender<T>) -> Request) -> Result<T, BusError> {
        let mut late = self.late.lock().unwrap_or_else(PoisonError::into_inner);
        if late.take_if(|done| done.load(Ordering::Relaxed)).is_none() && late.is_some() {
            return Err(BusError::Lost("the message bus still does not answer".into()));
        }
        let (to, answer) = channel();
        let ended = || BusError::Lost("the thread that calls systemd has ended".into());
        let limit = self.timeout * u32::try_from(calls + 1).unwrap_or(u32::MAX);
        let done = Arc::new(AtomicBool::new(false));
        let task = Task { request: request(to), deadline: Instant::now() + limit, done: Arc::clone(&done) };
        self.tasks.send(task).map_err(|_| ended())?;
        match answer.recv_timeout(limit) {
            Ok(answer) => Ok(answer),
            Err(RecvTimeoutError::Disconnected) => Err(ended()),
            Err(RecvTimeoutError::Timeout) => {
                *late = Some(done);
                Err(BusError::Lost(format!("the message bus did not answer within {} s", limit.as_secs_f64())))
            }
        }
    }

    /// Returns whether the values that were set may be lost: systemd has reloaded its files, or the connection was
    /// lost, since the last call.
    pub(crate) fn reloaded(&self) -> Result<bool, BusError> {
        self.call(1, Request::Reloaded)?
    }

    pub(crate) fn read(
        &self,
        unit: &str,
        interface: &'static str,
        names: Vec<&'static str>,
    ) -> Result<Values, BusError> {
        self.call(1 + names.len(), |to| Request::Read { unit: unit.into(), interface, names, to })?
    }

    pub(crate) fn set(&self, writes: Vec<Write>) -> Result<Vec<Result<(), BusError>>, BusError> {
        self.call(1 + writes.len() / MAX_PENDING, |to| Request::Set(writes, to))
    }
}

/// The connection, and what is needed to make it again.
struct Session {
    address: Option<String>,
    timeout: Duration,
    bus: Option<Bus>,
    /// Whether there was a connection before.
    connected_before: bool,
    /// Whether there is a new connection that was not reported yet.
    reconnected: bool,
}

impl Session {
    fn bus(&mut self) -> Result<&mut Bus, BusError> {
        let bus = match self.bus.take() {
            Some(bus) => bus,
            None => {
                let bus = zbus::block_on(Bus::connect(self.address.as_deref(), self.timeout))?;
                self.reconnected |= std::mem::replace(&mut self.connected_before, true);
                bus
            }
        };
        Ok(self.bus.insert(bus))
    }

    /// Drops a connection that no longer works.
    fn check<T>(&mut self, result: Result<T, BusError>) -> Result<T, BusError> {
        if let Err(BusError::Lost(_)) = result {
            self.bus = None;
        }
        result
    }

    fn reloaded(&mut self) -> Result<bool, BusError> {
        let result = self.bus().and_then(|bus| bus.reloaded());
        let reloaded = match self.check(result) {
            // The connection may have been lost long ago, so a new one is tried first.
            Err(BusError::Lost(_)) => self.bus().and_then(|bus| bus.reloaded())?,
            other => other?,
        };
        Ok(std::mem::take(&mut self.reconnected) | reloaded)
    }

    fn read(&mut self, unit: &str, interface: &str, names: &[&'static str]) -> Result<Values, BusError> {
        let result = self.bus().and_then(|bus| zbus::block_on(bus.read(unit, interface, names)));
        self.check(result)
    }

    fn set(&mut self, writes: &[Write], deadline: Instant) -> Vec<Result<(), BusError>> {
        let results = match self.bus() {
            // The caller has gone on, and may have other values by now.
            Ok(_) if Instant::now() >= deadline => {
                vec![Err(BusError::Lost("the connection came too late".into())); writes.len()]
            }
            Ok(bus) => zbus::block_on(bus.set_all(writes)),
            Err(error) => vec![Err(error); writes.len()],
        };
        if let Some(lost) = results.iter().find(|result| matches!(result, Err(BusError::Lost(_)))) {
            let _ = self.check(lost.clone());
        }
        results
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_bus_that_accepts_connections_and_does_not_answer_stops_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bus");
        // The kernel accepts the connection; nobody speaks.
        let silent = UnixListener::bind(&path).unwrap();
        let worker = Worker::start(Some(format!("unix:path={}", path.display())), Duration::from_millis(50)).unwrap();
        let lost = |error| matches!(error, BusError::Lost(why) if why.contains("does not answer") || why.contains("did not answer"));
        assert!(lost(worker.reloaded().unwrap_err()));
        // While the thread waits, requests fail at once and nothing is queued that would be written later.
        let write = Write { unit: "a.scope".into(), values: vec![("CPUWeight", 7)] };
        for _ in 0..100 {
            assert!(lost(worker.set(vec![write.clone()]).unwrap_err()));
        }
        drop(silent);
    }
}
