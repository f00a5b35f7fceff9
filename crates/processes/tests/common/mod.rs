//! Construction of scenarios for tests.
#![allow(dead_code, reason = "each test file uses its part")]

use evenhand_model::{Quantity, Span, Time};
use evenhand_processes::{Client, Parameters, Program, Recording, Scenario};

/// Creates a client whose program is `body`, the part after the headings, with `;` for line ends.
pub(crate) fn client(name: &str, priority: &str, body: &str) -> Client {
    let text = format!("# Priority:\n{priority}\n# Requests:\n{}\n", body.replace(';', "\n"));
    Client::new(name, Program::parse(name, &text).unwrap())
}

pub(crate) fn scenario(clients: Vec<Client>, parameters: Parameters) -> Scenario {
    Scenario::new(clients, vec![], parameters).unwrap()
}

/// Returns the paper's parameters.
pub(crate) fn paper() -> Parameters {
    Parameters::default()
}

pub(crate) fn until(seconds: u64) -> Parameters {
    Parameters { horizon: Some(Time::from_secs(seconds)), ..Parameters::default() }
}

pub(crate) fn seconds(text: &str) -> Span {
    Span::from_nanos(Quantity::parse(text).unwrap().nano().unwrap() as u64)
}

pub(crate) fn at(text: &str) -> Time {
    Time::ZERO + seconds(text)
}

/// Returns the seconds of a resource that a client used between two times.
pub(crate) fn used(recording: &Recording, resource: usize, client: usize, from: f64, to: f64) -> f64 {
    let mine = recording.services.iter().filter(|s| (s.resource as usize, s.client as usize) == (resource, client));
    mine.map(|s| (s.to.secs_f64().min(to) - s.from.secs_f64().max(from)).max(0.0)).sum()
}

/// Returns the seconds of all resources that a client used between two times.
pub(crate) fn progress(recording: &Recording, client: usize, from: f64, to: f64) -> f64 {
    let mine = recording.services.iter().filter(|s| s.client as usize == client);
    mine.map(|s| (s.to.secs_f64().min(to) - s.from.secs_f64().max(from)).max(0.0)).sum()
}
