//! Experiments as tables: who, with what entitlement, doing what.

use evenhand_model::{Span, Time};
use evenhand_processes::{Client, Parameters, Program, Scenario};

use crate::ReproduceError;

/// A process of an experiment.
#[derive(Clone, Copy)]
pub(super) struct Process {
    pub(super) name: &'static str,
    pub(super) entitlement: &'static str,
    /// A program after its headings, with `; ` for line ends.
    pub(super) program: &'static str,
}

/// A row of a table of processes.
pub(super) const fn process(name: &'static str, entitlement: &'static str, program: &'static str) -> Process {
    Process { name, entitlement, program }
}

/// The processes under these rules.
pub(super) fn scenario(processes: &[Process], parameters: Parameters) -> Result<Scenario, ReproduceError> {
    let client = |p: &Process| client(p.name, p.entitlement, p.program);
    let clients = processes.iter().map(client).collect::<Result<Vec<_>, _>>()?;
    Ok(Scenario::new(clients, Vec::new(), parameters)?)
}

/// A client whose program is this, after the headings, with `; ` for line ends.
pub(super) fn client(name: &str, entitlement: &str, program: &str) -> Result<Client, ReproduceError> {
    let text = format!("# Priority:\n{entitlement}\n# Requests:\n{}\n", program.replace("; ", "\n"));
    Ok(Client::new(name, Program::parse(name, &text).map_err(|e| ReproduceError::Setup(e.to_string()))?))
}

/// The paper's rules.
pub(super) fn paper(seed: u64) -> Parameters {
    Parameters { seed, ..Parameters::default() }
}

/// Likewise, and cut off after so many seconds.
pub(super) fn until(seconds: u64, seed: u64) -> Parameters {
    Parameters { horizon: Some(Time::ZERO + Span::from_secs(seconds)), ..paper(seed) }
}
