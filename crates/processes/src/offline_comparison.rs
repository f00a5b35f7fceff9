//! Comparison of the shares that a run converges to with those of the off-line theory.
//!
//! A client in one phase uses d_ij seconds of resource j in each iteration: a task of a division problem. Since it
//! issues one request at a time, it completes at most 1 / sum_j d_ij iterations per second (delays included), which is
//! its limit X_i. The off-line division is weighted bottleneck max fairness with these rate caps (Bonald and Roberts,
//! SIGMETRICS'15).

use evenhand_mechanisms::{
    Finding, MechanismError, MechanismOptions, Problem, ProblemError, User, mechanism_named, property_named,
};
use evenhand_model::{Rational, Time};
use thiserror::Error;

use crate::program::IDLE;
use crate::recording::{Observer, Service};
use crate::scenario::{Scenario, ScenarioError};

/// Time during which every client stays in one phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SteadyInterval {
    /// Start.
    pub from: Time,
    /// End, later than the start.
    pub until: Time,
    /// Phase of each client (of each of its threads); `None` for clients who are absent.
    pub phases: Vec<Option<usize>>,
}

impl SteadyInterval {
    /// Returns the interval with every client in its last phase.
    pub fn in_last_phases(scenario: &Scenario, from: Time, until: Time) -> SteadyInterval {
        let last = |c: &crate::Client| c.threads.iter().map(|t| t.phases.len()).min().and_then(|n| n.checked_sub(1));
        SteadyInterval { from, until, phases: scenario.clients().iter().map(last).collect() }
    }
}

/// Shares measured in a run, and those of the off-line division. Shares are of each resource's time.
#[derive(Clone, Debug, PartialEq)]
pub struct OfflineComparison {
    /// Clients that take part.
    pub clients: Vec<usize>,
    /// Measured share of each resource: `measured[client][resource]`.
    pub measured: Vec<Vec<f64>>,
    /// Share that `bmf` with rate caps gives.
    pub divided: Vec<Vec<f64>>,
    /// Largest absolute difference of the two.
    pub difference: f64,
    /// Justified complaints about the measured shares, with users by their place in `clients`.
    pub complaints: Vec<Finding<f64>>,
    /// Whether no service time in these phases is random; else demands are means.
    pub is_deterministic: bool,
}

/// Reason why there is no comparison.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum OfflineError {
    /// A client has no such phase.
    #[error("client {client:?} has no phase {phase}")]
    NoPhase {
        /// Name of the client.
        client: String,
        /// Index of the phase.
        phase: usize,
    },
    /// A client uses several resources at once, which no division problem describes.
    #[error("client {client:?} has several threads or asynchronous requests, which the off-line theory does not cover")]
    NotSequential {
        /// Name of the client.
        client: String,
    },
    /// The interval is empty.
    #[error("the interval to compare is empty")]
    NoTime,
    /// The scenario is invalid with that horizon.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The demands form no valid problem.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// The mechanism returned an error.
    #[error(transparent)]
    Mechanism(#[from] MechanismError),
    /// A mechanism or property is not registered.
    #[error("there is no {0} to compare with")]
    Missing(&'static str),
}

/// Runs the scenario to the end of `steady` and compares. `tolerance` is the largest difference between a measured
/// share and what is due that causes no complaint; see [`Scenario::resolution`].
///
/// # Errors
/// Returns an error if a phase does not exist, a client uses several resources at once, or no client is present.
pub fn compare_offline(
    scenario: &Scenario,
    steady: &SteadyInterval,
    tolerance: f64,
) -> Result<OfflineComparison, OfflineError> {
    if steady.until <= steady.from {
        return Err(OfflineError::NoTime);
    }
    let seconds = |nanos: u64| nanos as f64 / 1e9;
    let length = seconds((steady.until - steady.from).nanos());
    let width = scenario.resources().len();
    let mut clients = Vec::new();
    let mut users: Vec<User<f64>> = Vec::new();
    let mut is_deterministic = true;
    let weights = scenario.weights();
    for (number, client) in scenario.clients().iter().enumerate() {
        let Some(phase) = steady.phases.get(number).copied().flatten() else { continue };
        let [program] = client.threads.as_slice() else {
            return Err(OfflineError::NotSequential { client: client.name.clone() });
        };
        if client.asynchronous.is_some() {
            return Err(OfflineError::NotSequential { client: client.name.clone() });
        }
        let Some(steps) = program.phases.get(phase).map(|p| &p.steps) else {
            return Err(OfflineError::NoPhase { client: client.name.clone(), phase });
        };
        let mut demand = vec![0.0; width];
        let mut round = 0.0;
        for step in steps {
            is_deterministic &= step.distribution != crate::Distribution::Exp && step.width.nanos() == 0;
            let mean = seconds(step.mean.nanos().max(crate::program::TICK));
            round += mean;
            if let Some(resource) = scenario.resource(&step.resource).filter(|_| step.resource != IDLE) {
                demand[resource] += mean / f64::from(scenario.resources()[resource].servers);
            }
        }
        clients.push(number);
        users.push(User::new(demand).weight(weights[number] as f64).limit(1.0 / round));
    }
    let problem = Problem::new(width, users)?;
    let bmf = mechanism_named("bmf").ok_or(OfflineError::Missing("bmf"))?;
    let complaint = property_named("no_justified_complaint").ok_or(OfflineError::Missing("no_justified_complaint"))?;
    let tasks = bmf.divide(&problem, &MechanismOptions::default())?.tasks;

    let mut parameters = scenario.parameters().clone();
    parameters.horizon = Some(steady.until);
    let cut = scenario.with_parameters(parameters)?;
    let between = (steady.from.nanos(), steady.until.nanos());
    let mut seen =
        UsageBetween { from: between.0, until: between.1, used: vec![vec![0; width]; scenario.clients().len()] };
    cut.observe(scenario.parameters().seed, &mut seen);
    let share =
        |client: usize, r: usize| seconds(seen.used[client][r]) / length / f64::from(scenario.resources()[r].servers);
    let measured: Vec<Vec<f64>> = clients.iter().map(|c| (0..width).map(|r| share(*c, r)).collect()).collect();
    let shares = |user: usize| problem.demand(user).iter().map(|d| d * tasks[user]).collect();
    let divided: Vec<Vec<f64>> = (0..clients.len()).map(shares).collect();
    let pairs = measured.iter().flatten().zip(divided.iter().flatten());
    let difference = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    // An iteration that was started counts in proportion to what it used.
    let rates = measured.iter().enumerate().map(|(user, shares)| {
        let whole: f64 = problem.demand(user).iter().sum();
        shares.iter().sum::<f64>() / whole
    });
    let rates: Vec<f64> = rates.collect();
    let complaints = complaint.findings(&problem, &rates, tolerance);
    Ok(OfflineComparison { clients, measured, divided, difference, complaints, is_deterministic })
}

impl Scenario {
    /// Returns 2 q / T, with the longest quantum: differences of shares below it cannot be resolved by the accounting.
    pub fn resolution(&self) -> f64 {
        let quantum = self.resources().iter().map(|r| r.quantum.nanos()).max().unwrap_or(0);
        let ratio = Rational::from(2 * quantum) / Rational::from(self.parameters().window.nanos());
        evenhand_model::to_f64(&ratio)
    }
}

/// Observer that sums consumption between two times.
struct UsageBetween {
    from: u64,
    until: u64,
    used: Vec<Vec<u64>>,
}

impl Observer for UsageBetween {
    fn service(&mut self, service: &Service) {
        let from = service.from.nanos().max(self.from);
        let to = service.to.nanos().min(self.until);
        self.used[service.client as usize][service.resource as usize] += to.saturating_sub(from);
    }
}
