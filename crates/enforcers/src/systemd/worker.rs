//! A thread that speaks on the bus.
//!
//! Enforcers are called and return; the bus is asynchronous. Whoever calls may run on an asynchronous runtime of its own,
//! in which waiting for the bus would stop what has to answer. A thread that does nothing else is safe from that.

use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use crate::systemd::bus::{Bus, Fault, Values, Write};

enum Request {
    Reloaded(Sender<Result<bool, Fault>>),
    Read { unit: String, interface: &'static str, names: Vec<&'static str>, to: Sender<Result<Values, Fault>> },
    Set(Vec<Write>, Sender<Vec<Result<(), Fault>>>),
}

/// The caller's end.
#[derive(Debug)]
pub(crate) struct Worker(Sender<Request>);

impl Worker {
    /// Begins; the connection is made by the first request, and again after it was lost.
    pub(crate) fn start(address: Option<String>, patience: Duration) -> std::io::Result<Worker> {
        let (to, requests) = channel();
        thread::Builder::new().name("systemd".into()).spawn(move || {
            let mut line = Line { address, patience, bus: None, before: false, again: false };
            // Ends with the caller's end.
            for request in requests {
                match request {
                    Request::Reloaded(to) => drop(to.send(line.reloaded())),
                    Request::Read { unit, interface, names, to } => drop(to.send(line.read(&unit, interface, &names))),
                    Request::Set(writes, to) => drop(to.send(line.set(&writes))),
                }
            }
        })?;
        Ok(Worker(to))
    }

    fn ask<T>(&self, request: impl FnOnce(Sender<T>) -> Request) -> Result<T, Fault> {
        let (to, answer) = channel();
        let ended = || Fault::Lost("the thread that speaks to systemd has ended".into());
        self.0.send(request(to)).map_err(|_| ended())?;
        answer.recv().map_err(|_| ended())
    }

    /// Whether what was set may be forgotten: systemd has read its files anew, or the connection was lost, since this
    /// was asked last.
    pub(crate) fn reloaded(&self) -> Result<bool, Fault> {
        self.ask(Request::Reloaded)?
    }

    pub(crate) fn read(&self, unit: &str, interface: &'static str, names: Vec<&'static str>) -> Result<Values, Fault> {
        self.ask(|to| Request::Read { unit: unit.into(), interface, names, to })?
    }

    pub(crate) fn set(&self, writes: Vec<Write>) -> Result<Vec<Result<(), Fault>>, Fault> {
        self.ask(|to| Request::Set(writes, to))
    }
}

/// The connection, if there is one.
struct Line {
    address: Option<String>,
    patience: Duration,
    bus: Option<Bus>,
    /// Whether there was one before.
    before: bool,
    /// Whether it was made anew, and nobody was told yet.
    again: bool,
}

impl Line {
    fn bus(&mut self) -> Result<&mut Bus, Fault> {
        let bus = match self.bus.take() {
            Some(bus) => bus,
            None => {
                let bus = zbus::block_on(Bus::connect(self.address.as_deref(), self.patience))?;
                self.again |= std::mem::replace(&mut self.before, true);
                bus
            }
        };
        Ok(self.bus.insert(bus))
    }

    /// Lets go of a connection that does not work.
    fn check<T>(&mut self, result: Result<T, Fault>) -> Result<T, Fault> {
        if let Err(Fault::Lost(_)) = result {
            self.bus = None;
        }
        result
    }

    fn reloaded(&mut self) -> Result<bool, Fault> {
        let result = self.bus().and_then(|bus| bus.reloaded());
        let reloaded = match self.check(result) {
            // It may have been lost long ago: one that works tells more than one that does not.
            Err(Fault::Lost(_)) => self.bus().and_then(|bus| bus.reloaded())?,
            other => other?,
        };
        Ok(std::mem::take(&mut self.again) | reloaded)
    }

    fn read(&mut self, unit: &str, interface: &str, names: &[&'static str]) -> Result<Values, Fault> {
        let result = self.bus().and_then(|bus| zbus::block_on(bus.read(unit, interface, names)));
        self.check(result)
    }

    fn set(&mut self, writes: &[Write]) -> Vec<Result<(), Fault>> {
        let results = match self.bus() {
            Ok(bus) => zbus::block_on(bus.set_all(writes)),
            Err(fault) => vec![Err(fault); writes.len()],
        };
        if let Some(lost) = results.iter().find(|result| matches!(result, Err(Fault::Lost(_)))) {
            let _ = self.check(lost.clone());
        }
        results
    }
}
