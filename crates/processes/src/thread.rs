//! A thread on its way through its program.

use evenhand_model::random::Stream;

use crate::program::{Distribution, IDLE, Program, draw};
use crate::scenario::{Asynchronous, Scenario};

/// What a thread does next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    /// Nothing for so long.
    Idle(u64),
    /// A request that it waits for.
    Request(u32, u64),
    /// A request that it does not wait for.
    Background(u32, u64),
    /// It has come to the end.
    End,
}

/// One thread.
pub(crate) struct Thread {
    pub(crate) client: usize,
    pub(crate) thread: u32,
    phases: Vec<Phase>,
    phase: usize,
    iteration: u64,
    step: usize,
    /// The phase of the step that was taken last.
    current: usize,
    stream: Stream,
    /// The slot of the request it waits for.
    pub(crate) slot: u32,
    /// Slots for requests it does not wait for.
    pub(crate) free: Vec<u32>,
    pub(crate) outstanding: u32,
    /// A request that waits for a free slot.
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
            // By name: what a client draws does not depend on who else is there.
            stream: Stream::new(seed, &settings.name, thread as u64),
            slot: 0,
            free: Vec::new(),
            outstanding: 0,
            pending: None,
            ended: false,
        }
    }

    /// The phase that is over, if the step taken last was the last of one. Asked before each next step.
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
