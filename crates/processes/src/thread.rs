//! Threads that execute their programs.

use evenhand_model::random::Stream;

use crate::program::{Distribution, IDLE, Program, draw};
use crate::scenario::{Asynchronous, Scenario};

/// Next action of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    /// Delay of so many nanoseconds.
    Idle(u64),
    /// Request (resource, nanoseconds) for which the thread waits.
    Request(u32, u64),
    /// Asynchronous request.
    Background(u32, u64),
    /// End of the program.
    End,
}

/// Thread, with its position in the program.
pub(crate) struct Thread {
    pub(crate) client: usize,
    pub(crate) thread: u32,
    phases: Vec<Phase>,
    phase: usize,
    iteration: u64,
    step: usize,
    /// Phase of the last step.
    current: usize,
    stream: Stream,
    /// Slot of the request for which it waits.
    pub(crate) slot: u32,
    /// Free slots for asynchronous requests.
    pub(crate) free: Vec<u32>,
    pub(crate) outstanding: u32,
    /// Asynchronous request that waits for a free slot.
    pub(crate) pending: Option<(u32, u64)>,
    pub(crate) ended: bool,
}

struct Phase {
    iterations: u64,
    steps: Vec<Step>,
}

struct Step {
    /// `None`: idle.
    resource: Option<u32>,
    background: bool,
    mean: u64,
    width: u64,
    distribution: Distribution,
}

impl Thread {
    pub(crate) fn new(scenario: &Scenario, client: usize, thread: usize, program: &Program, seed: u64) -> Thread {
        let settings = &scenario.clients()[client];
        let background = |name: &str| {
            settings.asynchronous.as_ref().is_some_and(|a: &Asynchronous| a.resources.iter().any(|r| r == name))
        };
        let step = |s: &crate::program::Step| Step {
            resource: if s.resource == IDLE { None } else { scenario.resource(&s.resource).map(|r| r as u32) },
            background: background(&s.resource),
            mean: s.mean.nanos(),
            width: s.width.nanos(),
            distribution: s.distribution,
        };
        let phases = program.phases.iter();
        let phases = phases.map(|p| Phase { iterations: p.iterations, steps: p.steps.iter().map(step).collect() });
        Thread {
            client,
            thread: thread as u32,
            phases: phases.collect(),
            phase: 0,
            iteration: 0,
            step: 0,
            current: 0,
            // By name, so that a client's random numbers do not depend on the other clients.
            stream: Stream::new(seed, &settings.name, thread as u64),
            slot: 0,
            free: Vec::new(),
            outstanding: 0,
            pending: None,
            ended: false,
        }
    }

    /// Returns the phase that is complete if the last step was its last one. Called before each next step.
    #[inline]
    pub(crate) fn ended_phase(&mut self) -> Option<usize> {
        let before = std::mem::replace(&mut self.current, self.phase);
        (before != self.phase).then_some(before)
    }

    /// Takes the next step.
    #[inline]
    pub(crate) fn next(&mut self) -> Action {
        let Some(phase) = self.phases.get(self.phase) else { return Action::End };
        let step = &phase.steps[self.step];
        self.step += 1;
        if self.step == phase.steps.len() {
            self.step = 0;
            self.iteration += 1;
            if self.iteration == phase.iterations {
                self.iteration = 0;
                self.phase += 1;
            }
        }
        let time = draw(step.mean, step.width, step.distribution, &mut self.stream);
        match step.resource {
            None => Action::Idle(time),
            Some(resource) if step.background => Action::Background(resource, time),
            Some(resource) => Action::Request(resource, time),
        }
    }
}
