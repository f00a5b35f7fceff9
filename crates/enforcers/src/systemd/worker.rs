//! A thread that uses the message bus.
//!
//! Enforcers are synchronous, the bus is asynchronous. The caller may itself run on an asynchronous runtime, where
//! waiting for the bus could block the task that has to answer. A dedicated thread avoids that.

use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use crate::systemd::bus::{Bus, BusError, Values, Write};

enum Request {
    Reloaded(Sender<Result<bool, BusError>>),
    Read { unit: String, interface: &'static str, names: Vec<&'static str>, to: Sender<Result<Values, BusError>> },
    Set(Vec<Write>, Sender<Vec<Result<(), BusError>>>),
}

/// The handle of the thread.
#[derive(Debug)]
pub(crate) struct Worker(Sender<Request>);

impl Worker {
    /// Starts the thread. It connects at the first request, and again after the connection was lost.
    pub(crate) fn start(address: Option<String>, timeout: Duration) -> std::io::Result<Worker> {
        let (to, requests) = channel();
        thread::Builder::new().name("systemd".into()).spawn(move || {
            let mut session = Session { address, timeout, bus: None, connected_before: false, reconnected: false };
            // Ends when the handle is dropped.
            for request in requests {
                match request {
                    Request::Reloaded(to) => drop(to.send(session.reloaded())),
                    Request::Read { unit, interface, names, to } => {
                        drop(to.send(session.read(&unit, interface, &names)))
                    }
                    Request::Set(writes, to) => drop(to.send(session.set(&writes))),
                }
            }
        })?;
        Ok(Worker(to))
    }

    fn call<T>(&self, request: impl FnOnce(Sender<T>) -> Request) -> Result<T, BusError> {
        let (to, answer) = channel();
        let ended = || BusError::Lost("the thread that calls systemd has ended".into());
        self.0.send(request(to)).map_err(|_| ended())?;
        answer.recv().map_err(|_| ended())
    }

    /// Returns whether the values that were set may be lost: systemd has reloaded its files, or the connection was
    /// lost, since the last call.
    pub(crate) fn reloaded(&self) -> Result<bool, BusError> {
        self.call(Request::Reloaded)?
    }

    pub(crate) fn read(
        &self,
        unit: &str,
        interface: &'static str,
        names: Vec<&'static str>,
    ) -> Result<Values, BusError> {
        self.call(|to| Request::Read { unit: unit.into(), interface, names, to })?
    }

    pub(crate) fn set(&self, writes: Vec<Write>) -> Result<Vec<Result<(), BusError>>, BusError> {
        self.call(|to| Request::Set(writes, to))
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

    fn set(&mut self, writes: &[Write]) -> Vec<Result<(), BusError>> {
        let results = match self.bus() {
            Ok(bus) => zbus::block_on(bus.set_all(writes)),
            Err(error) => vec![Err(error); writes.len()],
        };
        if let Some(lost) = results.iter().find(|result| matches!(result, Err(BusError::Lost(_)))) {
            let _ = self.check(lost.clone());
        }
        results
    }
}
