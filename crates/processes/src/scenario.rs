//! Scenarios: clients with their programs, resources, and parameters.

use std::collections::BTreeSet;

use evenhand_model::{Quantity, Rational, Span, Time};
use thiserror::Error;

use crate::program::{IDLE, Program};

/// Suffix of the names of resources that serve in quanta ("allows context switching", Zeldes and Feitelson, 2013,
/// section 4.1).
pub const PREEMPTIVE_SUFFIX: &str = "_CS";

/// Clients, resources and parameters: everything that determines a run, except the seeds of an ensemble's runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    clients: Vec<Client>,
    resources: Vec<ResourceSettings>,
    parameters: Parameters,
}

/// Client: the unit of entitlement and accounting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// Unique among the clients; also selects the client's stream of random numbers.
    pub name: String,
    /// Entitlement relative to the other clients', greater than 0.
    pub entitlement: Quantity,
    /// Time of arrival.
    pub start: Time,
    /// Programs, one per thread; all start together. Threads share entitlement and accounting (Zeldes and Feitelson,
    /// 2013, section 5: group accounting).
    pub threads: Vec<Program>,
    /// Asynchronous requests, if the client issues any.
    pub asynchronous: Option<Asynchronous>,
    /// Periods of external suspension (from, until), in order of time, without overlap.
    pub suspensions: Vec<(Time, Time)>,
}

/// Requests that are issued without waiting for them (Zeldes and Feitelson, 2013, section 5: asynchronous I/O).
///
/// A thread that reaches such a step continues with the next one at once, until `depth` of its requests are
/// outstanding; then it waits for one of them. It finishes when none is outstanding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asynchronous {
    /// Resources of such requests.
    pub resources: Vec<String>,
    /// Largest number of outstanding requests of a thread, at least 1.
    pub depth: u32,
}

/// Resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceSettings {
    /// Name used in programs.
    pub name: String,
    /// Whether it serves in quanta; else to completion.
    pub preemptive: bool,
    /// Longest service before the next request is chosen anew, if preemptive.
    pub quantum: Span,
    /// Number of clients it serves at once, at least 1.
    pub servers: u32,
}

/// Interpretation of the paper's formula: over which clients entitlements are normalized. Section 3 of Zeldes and
/// Feitelson (2013) leaves it open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// Entitlements are normalized, on each resource, over the clients active there. The default: it reproduces the
    /// paper's results.
    #[default]
    PerResource,
    /// The formula as printed: normalized over all active clients. Contradicts the paper's Figures 4 and 7.
    Global,
    /// As printed, with the gap divided by the entitlement.
    Normalized,
}

impl Reading {
    /// All interpretations.
    pub const ALL: [Reading; 3] = [Reading::PerResource, Reading::Global, Reading::Normalized];

    /// Returns the name that users type.
    pub fn name(self) -> &'static str {
        match self {
            Reading::PerResource => "per-resource",
            Reading::Global => "global",
            Reading::Normalized => "normalized",
        }
    }
}

/// Order among clients of equal priority ("local considerations", Zeldes and Feitelson, 2013).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TieBreak {
    /// The client that lags most on this resource since it first used it, then as [`Fifo`](TieBreak::Fifo). Without it,
    /// with a sliding window, an imbalance of one quantum would repeat for ever.
    #[default]
    Lag,
    /// The request queued first; at one instant the smaller client, then its smaller thread.
    Fifo,
}

impl TieBreak {
    /// Both orders.
    pub const ALL: [TieBreak; 2] = [TieBreak::Lag, TieBreak::Fifo];

    /// Returns the name that users type.
    pub fn name(self) -> &'static str {
        match self {
            TieBreak::Lag => "lag",
            TieBreak::Fifo => "fifo",
        }
    }
}

/// Parameters of a run; the defaults are the paper's.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// T: how far back consumption and entitlement count. 3 s.
    pub window: Span,
    /// Part of the window for which a resource must be busy to be a bottleneck. 0.9.
    pub threshold: Rational,
    /// Time for which a client's entitlement on a resource continues to grow after it left. 1 s.
    pub grace: Span,
    /// Quantum of preemptive resources without one of their own. 0.1 s.
    pub quantum: Span,
    /// g: age at which priorities are recalculated. `None`: the quantum, as Figure 2 requires.
    pub recalculation: Option<Span>,
    /// Interpretation of the formula.
    pub reading: Reading,
    /// Order among clients of equal priority.
    pub ties: TieBreak,
    /// Name of the scheduler in [`SCHEDULERS`](crate::SCHEDULERS).
    pub scheduler: String,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Time at which the run is cut off; `None`: when all clients have finished.
    pub horizon: Option<Time>,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters {
            window: Span::from_secs(3),
            threshold: Rational::from_parts(9.into(), 10u8.into()),
            grace: Span::from_secs(1),
            quantum: Span::from_nanos(100_000_000),
            recalculation: None,
            reading: Reading::default(),
            ties: TieBreak::default(),
            scheduler: "bottleneck".to_string(),
            seed: 1,
            horizon: None,
        }
    }
}

impl Parameters {
    /// Returns g, the age at which priorities are recalculated.
    pub fn recalculation(&self) -> Span {
        self.recalculation.unwrap_or(self.quantum)
    }
}

/// Reason why a scenario is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScenarioError {
    /// There is no client.
    #[error("a scenario needs at least one client")]
    NoClient,
    /// Two clients or two resources have the same name.
    #[error("two {what} are called {name:?}, expected different names")]
    DuplicateName {
        /// "clients" or "resources".
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A client is invalid.
    #[error("client {client:?}: {problem}")]
    Client {
        /// Name of the client.
        client: String,
        /// What is wrong.
        problem: String,
    },
    /// A resource is invalid.
    #[error("resource {resource:?}: {problem}")]
    Resource {
        /// Name of the resource.
        resource: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// A parameter is invalid.
    #[error("{parameter}: {problem}")]
    Parameter {
        /// Name of the parameter.
        parameter: &'static str,
        /// What is wrong.
        problem: String,
    },
}

/// Longest run times the servers of its largest resource, in nanoseconds: beyond it, sums would overflow.
pub(crate) const LONGEST_RUN: u64 = 1 << 56;
const MAX_SERVERS: u32 = 1 << 16;
const MAX_DEPTH: u32 = 1 << 16;

impl Client {
    /// Creates a client with one thread and the program's entitlement that arrives at 0.
    pub fn new(name: impl Into<String>, program: Program) -> Client {
        Client {
            name: name.into(),
            entitlement: program.priority.clone(),
            start: Time::ZERO,
            threads: vec![program],
            asynchronous: None,
            suspensions: Vec::new(),
        }
    }

    fn check(&self) -> Result<(), String> {
        let steps = || self.threads.iter().flat_map(|t| &t.phases).flat_map(|p| &p.steps);
        if self.entitlement.is_zero() {
            return Err("the entitlement is 0, expected more".into());
        }
        if self.threads.is_empty() {
            return Err("it has no program, expected at least one".into());
        }
        for phase in self.threads.iter().flat_map(|t| &t.phases) {
            if phase.steps.is_empty() || phase.iterations == 0 {
                return Err("it has a phase without requests, expected at least one".into());
            }
        }
        if let Some(asynchronous) = &self.asynchronous {
            if !(1..=MAX_DEPTH).contains(&asynchronous.depth) {
                return Err(format!("depth {} is not from 1 to {MAX_DEPTH}", asynchronous.depth));
            }
            if let Some(name) = asynchronous.resources.iter().find(|name| !steps().any(|s| s.resource == **name)) {
                return Err(format!("asynchronous resource {name:?} is in none of its programs"));
            }
            if asynchronous.resources.iter().any(|name| name == IDLE) {
                return Err("idle cannot be asynchronous: it is not a resource".into());
            }
        }
        let ordered = self.suspensions.windows(2).all(|w| w[0].1 <= w[1].0);
        if !ordered || self.suspensions.iter().any(|(from, until)| from >= until) {
            return Err("suspensions must be in order of time, each with its end after its start and no overlap".into());
        }
        Ok(())
    }
}

impl Scenario {
    /// Creates a scenario. Its resources are those that the programs name; `settings` overrides the defaults of some.
    ///
    /// # Errors
    /// Returns an error if there is no client, names are not unique, or a number is out of its range.
    pub fn new(
        clients: Vec<Client>,
        settings: Vec<ResourceSettings>,
        parameters: Parameters,
    ) -> Result<Scenario, ScenarioError> {
        if clients.is_empty() {
            return Err(ScenarioError::NoClient);
        }
        let mut names = BTreeSet::new();
        for client in &clients {
            if !names.insert(&client.name) {
                return Err(ScenarioError::DuplicateName { what: "clients", name: client.name.clone() });
            }
            client.check().map_err(|problem| ScenarioError::Client { client: client.name.clone(), problem })?;
        }
        check_parameters(&parameters)?;
        let mut resources = settings;
        let named = clients.iter().flat_map(|c| &c.threads).flat_map(|t| &t.phases).flat_map(|p| &p.steps);
        for step in named.filter(|s| s.resource != IDLE) {
            if !resources.iter().any(|r| r.name == step.resource) {
                resources.push(ResourceSettings::named(&step.resource, &parameters));
            }
        }
        resources.sort_by(|a, b| a.name.cmp(&b.name));
        for pair in resources.windows(2) {
            if pair[0].name == pair[1].name {
                return Err(ScenarioError::DuplicateName { what: "resources", name: pair[0].name.clone() });
            }
        }
        for resource in &resources {
            resource.check()?;
        }
        check_window(&resources, &parameters)?;
        Ok(Scenario { clients, resources, parameters })
    }

    /// Returns the clients.
    pub fn clients(&self) -> &[Client] {
        &self.clients
    }

    /// Returns the resources by name, which is the order in which they dispatch.
    pub fn resources(&self) -> &[ResourceSettings] {
        &self.resources
    }

    /// Returns the index of a resource.
    pub fn resource(&self, name: &str) -> Option<usize> {
        self.resources.binary_search_by(|r| r.name.as_str().cmp(name)).ok()
    }

    /// Returns the parameters.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Returns the same clients and resources with other parameters. (Quanta of resources remain as they are.)
    ///
    /// # Errors
    /// Returns an error if a parameter is out of its range.
    pub fn with_parameters(&self, parameters: Parameters) -> Result<Scenario, ScenarioError> {
        check_parameters(&parameters)?;
        check_window(&self.resources, &parameters)?;
        Ok(Scenario { parameters, ..self.clone() })
    }

    /// Returns the time at which a run is cut off at the latest.
    pub(crate) fn end(&self) -> u64 {
        let servers = self.resources.iter().map(|r| u64::from(r.servers)).max().unwrap_or(1);
        let latest = LONGEST_RUN / servers.next_power_of_two();
        self.parameters.horizon.map_or(latest, |h| h.nanos().min(latest))
    }

    /// Returns entitlements as whole numbers in the same ratios.
    ///
    /// If their sum would exceed 2^24 they are rounded to multiples of 2^-24 of it (at least one): finer ones would
    /// need wider sums and make no visible difference.
    pub(crate) fn weights(&self) -> Vec<u64> {
        let all: Vec<&Rational> = self.clients.iter().map(|c| c.entitlement.exact()).collect();
        crate::integer_weights::integer_weights(&all)
    }
}

impl ResourceSettings {
    /// Returns the settings that a name and the parameters imply.
    pub fn named(name: &str, parameters: &Parameters) -> ResourceSettings {
        ResourceSettings {
            name: name.to_string(),
            preemptive: name.ends_with(PREEMPTIVE_SUFFIX),
            quantum: parameters.quantum,
            servers: 1,
        }
    }

    fn check(&self) -> Result<(), ScenarioError> {
        let problem = if self.name == IDLE {
            "idle is a delay, expected the name of a resource"
        } else if self.name.is_empty() || self.name.contains(char::is_whitespace) {
            "expected a name without spaces, as programs can write it"
        } else if self.quantum == Span::ZERO {
            "the quantum is 0, expected more"
        } else if !(1..=MAX_SERVERS).contains(&self.servers) {
            "expected 1 to 65536 servers"
        } else {
            return Ok(());
        };
        Err(ScenarioError::Resource { resource: self.name.clone(), problem })
    }
}

/// Checks that consumption in the window can be summed in `f64`, which is exact below 2^53.
fn check_window(resources: &[ResourceSettings], parameters: &Parameters) -> Result<(), ScenarioError> {
    let servers: u64 = resources.iter().map(|r| u64::from(r.servers)).sum();
    if u128::from(servers) * u128::from(parameters.window.nanos()) <= 1 << 53 {
        return Ok(());
    }
    let problem = format!("found {} s with {servers} servers in all, which is too much", parameters.window);
    Err(ScenarioError::Parameter { parameter: "window", problem })
}

fn check_parameters(parameters: &Parameters) -> Result<(), ScenarioError> {
    let refuse = |parameter, problem: String| Err(ScenarioError::Parameter { parameter, problem });
    let longest = Span::from_nanos(1 << 45);
    let range = |span: Span| span > Span::ZERO && span <= longest;
    for (name, span) in [("window", parameters.window), ("quantum", parameters.quantum)] {
        if !range(span) {
            return refuse(name, format!("found {span} s, expected more than 0 and at most {longest} s"));
        }
    }
    for (name, span) in [("grace", parameters.grace), ("recalculate", parameters.recalculation())] {
        if span > longest {
            return refuse(name, format!("found {span} s, expected at most {longest} s"));
        }
    }
    if parameters.threshold < Rational::ZERO || parameters.threshold > Rational::ONE {
        return refuse("threshold", format!("found {}, expected a part of the window, 0 to 1", parameters.threshold));
    }
    if crate::scheduler::scheduler_named(&parameters.scheduler).is_none() {
        let names: Vec<&str> = crate::scheduler::SCHEDULERS.iter().map(|s| s.name).collect();
        let near = evenhand_documents::did_you_mean(&parameters.scheduler, names.iter().copied());
        let problem = format!("found {:?}, expected one of: {}{near}", parameters.scheduler, names.join(", "));
        return refuse("scheduler", problem);
    }
    Ok(())
}
