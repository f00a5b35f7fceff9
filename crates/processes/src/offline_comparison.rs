//! Closing the loop: the shares that a run settles into, beside what the off-line theory divides.
//!
//! A client in one phase uses d_ij seconds of resource j each iteration; that is a task of a division
//! problem. One request at a time means at most 1 / sum_j d_ij iterations a second (delays included), which
//! is the limit X_i (reference: weighted bottleneck max fairness with rate caps; Bonald and Roberts,
//! SIGMETRICS'15).

use evenhand_mechanisms::{
    Finding, MechanismError, MechanismOptions, Problem, ProblemError, User, mechanism_named, property_named,
};
use evenhand_model::{Rational, Time};
use thiserror::Error;

use crate::program::IDLE;
use crate::recording::{Observer, Service};
use crate::scenario::{Scenario, ScenarioError};

/// A time in which everybody stays in one phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SteadyInterval {
    /// From here.
    pub from: Time,
    /// To there, which is later.
    pub until: Time,
    /// The phase of each client then (of each of its threads); `None` for clients who are not there.
    pub phases: Vec<Option<usize>>,
}

impl SteadyInterval {
    /// Everybody in the last phase.
    pub fn in_last_phases(scenario: &Scenario, from: Time, until: Time) -> SteadyInterval {
        let last = |c: &crate::Client| c.threads.iter().map(|t| t.phases.len()).min().and_then(|n| n.checked_sub(1));
        SteadyInterval { from, until, phases: scenario.clients().iter().map(last).collect() }
    }
}

/// What a run compare_steady_state into, beside the off-line division. Shares of each resource's time.
#[derive(Clone, Debug, PartialEq)]
pub struct OfflineComparison {
    /// The clients that are there.
    pub clients: Vec<usize>,
    /// Share of each resource that each of them used: client after client.
    pub measured: Vec<Vec<f64>>,
    /// What `bmf` with rate caps gives them.
    pub divided: Vec<Vec<f64>>,
    /// The largest difference of the two.
    pub difference: f64,
    /// Justified complaints about the measured shares, with users by their place in `clients`.
    pub complaints: Vec<Finding<f64>>,
    /// Whether no service time in these phases is random; else demands are means.
    pub is_deterministic: bool,
}

/// Why there is nothing to compare.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum OfflineError {
    /// A client without such a phase.
    #[error("client {client:?} has no phase {phase}")]
    NoPhase {
        /// Who.
        client: String,
        /// Which phase, from 0.
        phase: usize,
    },
    /// A client that uses several resources at once is no task of a division problem.
    #[error("client {client:?} has several threads or requests it does not wait for: the theory has neither")]
    NotSequential {
        /// Who.
        client: String,
    },
    /// No time passes.
    #[error("the time to compare is empty")]
    NoTime,
    /// The scenario cannot end there.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// It is no problem.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// The mechanism gives nothing.
    #[error(transparent)]
    Mechanism(#[from] MechanismError),
    /// The library of mechanisms lacks one.
    #[error("there is no {0} to compare with")]
    Missing(&'static str),
}

/// Runs the scenario to the end of `steady` and compares. `tolerance` is how far a measured share may be
/// from what it should be before there is a complaint: 2 q / T is what the window cannot tell apart.
///
/// # Errors
/// If a phase is not there, a client uses several resources at once, or nobody is there.
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
    // Iterations begun count as the part that was used.
    let rates = measured.iter().enumerate().map(|(user, shares)| {
        let whole: f64 = problem.demand(user).iter().sum();
        shares.iter().sum::<f64>() / whole
    });
    let rates: Vec<f64> = rates.collect();
    let complaints = complaint.findings(&problem, &rates, tolerance);
    Ok(OfflineComparison { clients, measured, divided, difference, complaints, is_deterministic })
}

/// The tolerance at which the accounting of a scenario cannot tell shares apart: 2 q / T.
impl Scenario {
    /// 2 q / T, with the longest quantum.
    pub fn resolution(&self) -> f64 {
        let quantum = self.resources().iter().map(|r| r.quantum.nanos()).max().unwrap_or(0);
        let ratio = Rational::from(2 * quantum) / Rational::from(self.parameters().window.nanos());
        evenhand_model::to_f64(&ratio)
    }
}

/// Adds up use within a time.
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
