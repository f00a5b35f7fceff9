//! Builds scenarios from tables of processes: name, entitlement, program.

use evenhand_model::{Span, Time};
use evenhand_processes::{Client, Parameters, Program, Scenario};

use crate::ReproduceError;

/// A process of an experiment.
#[derive(Clone, Copy)]
pub(super) struct Process {
    pub(super) name: &'static str,
    pub(super) entitlement: &'static str,
    /// The program without its headings, with `; ` for line ends.
    pub(super) program: &'static str,
}

/// Makes a row of a table of processes.
pub(super) const fn process(name: &'static str, entitlement: &'static str, program: &'static str) -> Process {
    Process { name, entitlement, program }
}

/// Builds the scenario of these processes.
pub(super) fn scenario(processes: &[Process], parameters: Parameters) -> Result<Scenario, ReproduceError> {
    let client = |p: &Process| client(p.name, p.entitlement, p.program);
    let clients = processes.iter().map(client).collect::<Result<Vec<_>, _>>()?;
    Ok(Scenario::new(clients, Vec::new(), parameters)?)
}

/// Builds a client with this program (without headings, `; ` for line ends).
pub(super) fn client(name: &str, entitlement: &str, program: &str) -> Result<Client, ReproduceError> {
    let text = format!("# Priority:\n{entitlement}\n# Requests:\n{}\n", program.replace("; ", "\n"));
    Ok(Client::new(name, Program::parse(name, &text).map_err(|e| ReproduceError::Setup(e.to_string()))?))
}

/// Returns the paper's parameters.
pub(super) fn paper(seed: u64) -> Parameters {
    Parameters { seed, ..Parameters::default() }
}

/// Returns the paper's parameters with a horizon in seconds.
pub(super) fn until(seconds: u64, seed: u64) -> Parameters {
    Parameters { horizon: Some(Time::ZERO + Span::from_secs(seconds)), ..paper(seed) }
}
