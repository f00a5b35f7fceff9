//! Who wants what, of which resources, under which rules.

use std::collections::BTreeSet;

use evenhand_model::{Quantity, Rational, Span, Time};
use thiserror::Error;

use crate::program::{IDLE, Program};

/// Resources whose names end so serve in quanta ("allows context switching", paper 000, section 4.1).
pub const PREEMPTIVE_SUFFIX: &str = "_CS";

/// Processes, resources and rules: everything that decides a run, except the seed of an ensemble's runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    clients: Vec<Client>,
    resources: Vec<ResourceSettings>,
    parameters: Parameters,
}

/// One client: the unit of entitlement and accounting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// Unique among the clients; also names the client's random numbers.
    pub name: String,
    /// Relative to the other clients', greater than 0.
    pub entitlement: Quantity,
    /// When it enters.
    pub start: Time,
    /// What it does: one program a thread, all starting together. Threads share entitlement and accounting
    /// (paper 000, section 5: group accounting).
    pub threads: Vec<Program>,
    /// What it does not wait for.
    pub asynchronous: Option<Asynchronous>,
    /// When it is suspended from outside: from, until; by time, without overlap.
    pub suspensions: Vec<(Time, Time)>,
}

/// Requests that are issued and not waited for (paper 000, section 5: asynchronous I/O).
///
/// A thread that comes to such a step goes on with the next one at once, until `depth` of its requests are
/// outstanding; then it waits for one of them. It has finished when none is outstanding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asynchronous {
    /// The resources of such requests.
    pub resources: Vec<String>,
    /// How many requests a thread may have outstanding, at least 1.
    pub depth: u32,
}

/// One resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceSettings {
    /// As programs call it.
    pub name: String,
    /// Whether it serves in quanta; else to completion.
    pub preemptive: bool,
    /// The longest it serves without asking again who is next, if preemptive.
    pub quantum: Span,
    /// How many clients it serves at once, at least 1.
    pub servers: u32,
}

/// What a gap is measured against (paper 000, section 3, leaves it open).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// Entitlements are normalised on each resource over the clients active there. The default: it has the
    /// paper's results.
    #[default]
    PerResource,
    /// The formula as printed: normalised over all active clients. Contradicts the paper's Figures 4 and 7.
    Global,
    /// As printed, and the gap divided by the entitlement.
    Normalized,
}

impl Reading {
    /// All of them.
    pub const ALL: [Reading; 3] = [Reading::PerResource, Reading::Global, Reading::Normalized];

    /// What users type.
    pub fn name(self) -> &'static str {
        match self {
            Reading::PerResource => "per-resource",
            Reading::Global => "global",
            Reading::Normalized => "normalized",
        }
    }
}

/// Who goes first among clients of equal priority (paper 000: "local considerations").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TieBreak {
    /// Who lags most on this resource since it first came there, then as [`Fifo`](TieBreak::Fifo). With a
    /// sliding window an imbalance of one quantum would else repeat for ever.
    #[default]
    Lag,
    /// Who queued first, then the smaller client, then its smaller thread.
    Fifo,
}

impl TieBreak {
    /// Both of them.
    pub const ALL: [TieBreak; 2] = [TieBreak::Lag, TieBreak::Fifo];

    /// What users type.
    pub fn name(self) -> &'static str {
        match self {
            TieBreak::Lag => "lag",
            TieBreak::Fifo => "fifo",
        }
    }
}

/// The rules of a run; the defaults are the paper's.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// T: how far back use and entitlement count. 3 s.
    pub window: Span,
    /// A resource busy for more than this part of the window is a bottleneck. 0.9.
    pub threshold: Rational,
    /// How long a client's entitlement of a resource grows after it left. 1 s.
    pub grace: Span,
    /// The quantum of preemptive resources that say nothing else. 0.1 s.
    pub quantum: Span,
    /// g: priorities are computed anew if they are so old. `None`: every quantum, as Figure 2 needs.
    pub recalculation: Option<Span>,
    /// Which reading of the algorithm.
    pub reading: Reading,
    /// TieBreak.
    pub ties: TieBreak,
    /// Who schedules, by name in [`SCHEDULERS`](crate::SCHEDULERS).
    pub scheduler: String,
    /// The seed of everything random.
    pub seed: u64,
    /// When the run is cut off; `None`: when all have finished.
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
    /// g.
    pub fn recalculation(&self) -> Span {
        self.recalculation.unwrap_or(self.quantum)
    }
}

/// Why something is no scenario.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScenarioError {
    /// Nobody is there.
    #[error("a scenario needs at least one client")]
    NoClient,
    /// Two have one name.
    #[error("two {what} are called {name:?}, expected different names")]
    DuplicateName {
        /// Clients or resources.
        what: &'static str,
        /// What both are called.
        name: String,
    },
    /// A client that cannot be.
    #[error("client {client:?}: {problem}")]
    Client {
        /// Who.
        client: String,
        /// What is wrong.
        problem: String,
    },
    /// A resource that cannot be.
    #[error("resource {resource:?}: {problem}")]
    Resource {
        /// Which.
        resource: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// A rule that cannot be.
    #[error("{parameter}: {problem}")]
    Parameter {
        /// Which.
        parameter: &'static str,
        /// What is wrong.
        problem: String,
    },
}

/// The longest run times the servers of its largest resource, in nanoseconds: beyond it, sums would overflow.
pub(crate) const LONGEST_RUN: u64 = 1 << 56;
const MOST_SERVERS: u32 = 1 << 16;
const MOST_DEPTH: u32 = 1 << 16;

impl Client {
    /// A client with one thread, the program's entitlement, from the start.
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
            if !(1..=MOST_DEPTH).contains(&asynchronous.depth) {
                return Err(format!("depth {} is not from 1 to {MOST_DEPTH}", asynchronous.depth));
            }
            if let Some(name) = asynchronous.resources.iter().find(|name| !steps().any(|s| s.resource == **name)) {
                return Err(format!("asynchronous resource {name:?} is in none of its programs"));
            }
            if asynchronous.resources.iter().any(|name| name == IDLE) {
                return Err("idle cannot be asynchronous: it is no resource".into());
            }
        }
        let ordered = self.suspensions.windows(2).all(|w| w[0].1 <= w[1].0);
        if !ordered || self.suspensions.iter().any(|(from, until)| from >= until) {
            return Err("suspensions must be in order, each ending after it begins, before the next begins".into());
        }
        Ok(())
    }
}

impl Scenario {
    /// The clients' scenario. Resources are those of the programs; `settings` says what is special about
    /// some of them.
    ///
    /// # Errors
    /// If nobody is there, names are not unique, or a number is out of its range.
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

    /// The clients, by number.
    pub fn clients(&self) -> &[Client] {
        &self.clients
    }

    /// The resources by name, which is the order in which they dispatch.
    pub fn resources(&self) -> &[ResourceSettings] {
        &self.resources
    }

    /// The number of a resource.
    pub fn resource(&self, name: &str) -> Option<usize> {
        self.resources.binary_search_by(|r| r.name.as_str().cmp(name)).ok()
    }

    /// The rules.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The same under other rules. (Quanta of resources stay as they are.)
    ///
    /// # Errors
    /// If a number is out of its range.
    pub fn with_parameters(&self, parameters: Parameters) -> Result<Scenario, ScenarioError> {
        check_parameters(&parameters)?;
        check_window(&self.resources, &parameters)?;
        Ok(Scenario { parameters, ..self.clone() })
    }

    /// Where a run is cut off at the latest.
    pub(crate) fn end(&self) -> u64 {
        let servers = self.resources.iter().map(|r| u64::from(r.servers)).max().unwrap_or(1);
        let most = LONGEST_RUN / servers.next_power_of_two();
        self.parameters.horizon.map_or(most, |h| h.nanos().min(most))
    }

    /// Entitlements as whole numbers in the same ratios.
    ///
    /// If their sum would be above 2^24 they are rounded to parts of 2^24 (at least one): finer ones would
    /// need wider sums, and nobody could see the difference.
    pub(crate) fn weights(&self) -> Vec<u64> {
        let all: Vec<&Rational> = self.clients.iter().map(|c| c.entitlement.exact()).collect();
        crate::integer_weights::integer_weights(&all)
    }
}

impl ResourceSettings {
    /// What its name and the rules say.
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
            "expected a name without spaces, as programs can say it"
        } else if self.quantum == Span::ZERO {
            "the quantum is 0, expected more"
        } else if !(1..=MOST_SERVERS).contains(&self.servers) {
            "expected 1 to 65536 servers"
        } else {
            return Ok(());
        };
        Err(ScenarioError::Resource { resource: self.name.clone(), problem })
    }
}

/// Use in the window is summed in `f64`, exactly below 2^53.
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
