//! The steady state of a run: its longest interval in which every client stays in one phase, for which the off-line
//! theory gives the fair shares.

use evenhand_model::Time;
use thiserror::Error;

use crate::{
    Client, IDLE, Observer, OfflineComparison, OfflineError, Phase, Scenario, ScenarioError, SteadyInterval,
    compare_offline,
};

/// Steady state of a run, compared with the off-line division.
#[derive(Clone, Debug)]
pub struct SteadyState {
    /// Start of the measurement: a window after the phases started.
    pub from: Time,
    /// End of the measurement.
    pub until: Time,
    /// Measured shares and those of the off-line division.
    pub comparison: OfflineComparison,
    /// Largest difference at which shares count as equal.
    pub tolerance: f64,
}

/// Reason why there is no comparison.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SteadyStateError {
    /// A client uses several resources at once.
    #[error("{client} uses several resources at once, which the off-line theory does not cover")]
    Parallel {
        /// Name of the client.
        client: String,
    },
    /// No interval is long enough.
    #[error("in no interval of two windows do all clients stay in one phase")]
    NoTime,
    /// The scenario with its phases split is invalid.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The comparison failed.
    #[error(transparent)]
    Offline(#[from] OfflineError),
}

/// Compares the longest interval in which every client stays in one phase with the off-line division. A window after
/// its start is excluded, and the rest must last another window.
///
/// # Errors
/// Returns an error if there is nothing to compare; see [`SteadyStateError`].
pub fn compare_steady_state(scenario: &Scenario) -> Result<SteadyState, SteadyStateError> {
    if let Some(client) = scenario.clients().iter().find(|c| c.threads.len() > 1 || c.asynchronous.is_some()) {
        return Err(SteadyStateError::Parallel { client: client.name.clone() });
    }
    let scenario = split(scenario)?;
    let steady = longest(&scenario).ok_or(SteadyStateError::NoTime)?;
    let tolerance = scenario.resolution();
    let (from, until) = (steady.from, steady.until);
    let comparison = compare_offline(&scenario, &steady, tolerance)?;
    Ok(SteadyState { from, until, comparison, tolerance })
}

/// Returns the scenario with each step of a phase that is executed once as a phase of its own, since it is no cycle.
fn split(scenario: &Scenario) -> Result<Scenario, ScenarioError> {
    let steps = |phase: &Phase| match phase.iterations {
        1 => phase.steps.iter().map(|step| Phase { iterations: 1, steps: vec![step.clone()] }).collect(),
        _ => vec![phase.clone()],
    };
    let mut clients = scenario.clients().to_vec();
    for program in clients.iter_mut().flat_map(|c| &mut c.threads) {
        program.phases = program.phases.iter().flat_map(steps).collect();
    }
    Scenario::new(clients, scenario.resources().to_vec(), scenario.parameters().clone())
}

/// Returns the longest steady interval, those with several clients first.
fn longest(scenario: &Scenario) -> Option<SteadyInterval> {
    let mut ends = PhaseEnds(vec![Vec::new(); scenario.clients().len()]);
    let end = scenario.observe(scenario.parameters().seed, &mut ends).end;
    let PhaseEnds(ends) = ends;
    let mut corners: Vec<Time> = ends.iter().flatten().copied().collect();
    corners.extend(scenario.clients().iter().map(|c| c.start));
    corners.extend(scenario.clients().iter().flat_map(|c| &c.suspensions).flat_map(|(from, until)| [*from, *until]));
    corners.push(end);
    corners.retain(|at| *at <= end);
    corners.sort_unstable();
    corners.dedup();
    let window = scenario.parameters().window;
    let mut best: Option<(bool, SteadyInterval)> = None;
    for pair in corners.windows(2) {
        let (from, until) = (pair[0] + window, pair[1]);
        if until < from + window {
            continue;
        }
        let phases: Vec<Option<usize>> =
            scenario.clients().iter().zip(&ends).map(|(client, ends)| phase_at(client, ends, pair[0])).collect();
        let present = phases.iter().flatten().count();
        if present == 0 {
            continue;
        }
        let new = (present > 1, SteadyInterval { from, until, phases });
        let longer = |(shared, old): &(bool, SteadyInterval)| {
            (new.0, new.1.until - new.1.from) > (*shared, old.until - old.from)
        };
        if best.as_ref().is_none_or(longer) {
            best = Some(new);
        }
    }
    best.map(|(_, steady)| steady)
}

/// Returns the phase that a client is in from this time on; `None` if it is absent or idle.
fn phase_at(client: &Client, ends: &[Time], at: Time) -> Option<usize> {
    let suspended = client.suspensions.iter().any(|(from, until)| (*from..*until).contains(&at));
    if at < client.start || suspended {
        return None;
    }
    let phase = ends.iter().take_while(|end| **end <= at).count();
    let steps = &client.threads.first()?.phases.get(phase)?.steps;
    steps.iter().any(|step| step.resource != IDLE).then_some(phase)
}

/// End of each phase of each client; a phase that does not end has none.
struct PhaseEnds(Vec<Vec<Time>>);

impl Observer for PhaseEnds {
    fn phase_ended(&mut self, at: Time, client: usize, _thread: u32, _phase: usize) {
        self.0[client].push(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Parameters, Program};

    fn scenario(programs: &[(&str, &str)]) -> Scenario {
        let client = |(k, (priority, body)): (usize, &(&str, &str))| {
            let text = format!("# Priority:\n{priority}\n# Requests:\n{body}");
            Client::new(format!("{k}"), Program::parse("p", &text).unwrap())
        };
        Scenario::new(programs.iter().enumerate().map(client).collect(), vec![], Parameters::default()).unwrap()
    }

    #[test]
    fn the_steady_state_of_figure_7_agrees_with_the_theory() {
        let figure_7 = scenario(&[
            ("40", "loop 1\nCPU_CS 40 0 NORM\n"),
            ("40", "loop 1\nDISK_CS 40 0 NORM\n"),
            ("20", "loop 1\nCPU_CS 2 0 NORM\nloop 160\nDISK_CS 0.1 0 NORM\nCPU_CS 0.1 0 NORM\n"),
        ]);
        let compare_steady_state = compare_steady_state(&figure_7).unwrap();
        // Green's first phase ends after about 6 s; a window later its shares count.
        assert!((8.5..9.5).contains(&compare_steady_state.from.secs_f64()), "{}", compare_steady_state.from);
        assert!(
            compare_steady_state.comparison.difference < 0.02 && compare_steady_state.comparison.complaints.is_empty()
        );
        assert!((compare_steady_state.comparison.divided[2][0] - 1.0 / 3.0).abs() < 1e-6);
    }

    #[test]
    fn idle_clients_are_absent_and_short_intervals_do_not_count() {
        let found = compare_steady_state(&scenario(&[
            ("1", "loop 1\nCPU_CS 30 0 NORM\n"),
            ("2", "loop 1\nidle 5 0 NORM\nCPU_CS 20 0 NORM\n"),
        ]));
        let found = found.unwrap();
        assert_eq!(found.from.to_string(), "8");
        assert!((found.comparison.measured[1][0] - 2.0 / 3.0).abs() < 0.02);
        let short = compare_steady_state(&scenario(&[("1", "loop 1\nCPU_CS 2 0 NORM\n")])).unwrap_err();
        assert_eq!(short, SteadyStateError::NoTime);
    }

    /// A phase ends when its client would if it were the last phase: until then nothing else differs.
    #[test]
    fn a_phase_ends_where_the_program_cut_there_ends() {
        let scenario = scenario(&[
            ("1", "loop 3\nCPU_CS 2 1 UNIF\nDISK_CS 1 0 NORM\nloop 2\nidle 1 0 NORM\nloop 4\nDISK_CS 0.5 0.2 NORM\n"),
            ("2", "loop 9\nDISK_CS 0.7 0 NORM\nloop 5\nCPU_CS 1 0.5 UNIF\nDISK_CS 0.3 0 NORM\n"),
        ]);
        let mut ends = PhaseEnds(vec![Vec::new(); 2]);
        scenario.observe(scenario.parameters().seed, &mut ends);
        assert_eq!(ends.0.iter().map(Vec::len).collect::<Vec<_>>(), [3, 2]);
        for (number, ends) in ends.0.iter().enumerate() {
            for (phase, end) in ends.iter().enumerate() {
                let mut clients = scenario.clients().to_vec();
                clients[number].threads[0].phases.truncate(phase + 1);
                let cut = Scenario::new(clients, vec![], Parameters::default()).unwrap();
                assert_eq!(cut.run().finish[number], Some(*end), "client {number}, phase {phase}");
            }
        }
    }
}
