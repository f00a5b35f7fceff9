//! Observers of a run, and the one that records it.

use evenhand_model::Time;

/// Receives the events of a run, in order of time. Clients, resources and servers are numbered.
pub trait Observer {
    /// A service or quantum has ended.
    fn service(&mut self, _service: &Service) {}

    /// The resource counts as a bottleneck from now on, or no longer does: as the algorithm finds when it recalculates,
    /// which is some time after consumption crossed the threshold.
    fn bottleneck(&mut self, _at: Time, _resource: usize, _is_bottleneck: bool) {}

    /// Priorities were recalculated, in nanoseconds; `i64::MAX` is infinite: the client uses no bottleneck. Not called
    /// for schedulers without priorities.
    fn priorities(&mut self, _at: Time, _priorities: &[i64]) {}

    /// A thread of a client has completed a phase of its program.
    fn phase_ended(&mut self, _at: Time, _client: usize, _thread: u32, _phase: usize) {}

    /// A client has finished.
    fn finished(&mut self, _at: Time, _client: usize) {}
}

/// Uninterrupted use of a resource by a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// Index in [`Scenario::resources`](crate::Scenario::resources).
    pub resource: u32,
    /// Server of the resource, from 0.
    pub server: u32,
    /// Index in [`Scenario::clients`](crate::Scenario::clients).
    pub client: u32,
    /// Thread of the client, from 0.
    pub thread: u32,
    /// Start.
    pub from: Time,
    /// End.
    pub to: Time,
}

/// Time during which a resource counted as a bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BottleneckInterval {
    /// Index of the resource.
    pub resource: u32,
    /// Time of the recalculation that found it to be one.
    pub from: Time,
    /// Time of the recalculation that found it not to be one, or the end of the run.
    pub to: Time,
}

/// Observer that ignores everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl Observer for NoObserver {}

/// Observer that keeps everything, for figures of one run and for tests. Its size is proportional to the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// Services, in order of their end.
    pub services: Vec<Service>,
    /// Bottleneck intervals, in order of their end.
    pub bottlenecks: Vec<BottleneckInterval>,
    /// Priorities over time, if requested: nanoseconds, `i64::MAX` for infinite.
    pub priorities: Vec<(Time, Vec<i64>)>,
    with_priorities: bool,
    without_services: bool,
    /// Start of the open bottleneck interval of each resource that has one.
    open: Vec<(u32, Time)>,
}

impl Recording {
    /// Creates a recording of services and bottlenecks.
    pub fn new() -> Recording {
        Recording::default()
    }

    /// Records priorities too.
    #[must_use]
    pub fn with_priorities(self) -> Recording {
        Recording { with_priorities: true, ..self }
    }

    /// Keeps no services, so that its size does not grow with their number.
    #[must_use]
    pub fn without_services(self) -> Recording {
        Recording { without_services: true, ..self }
    }

    /// Ends the open intervals when the run ends. [`Scenario::observe`](crate::Scenario::observe) does not, because it
    /// does not own the observer.
    pub fn close(&mut self, end: Time) {
        for (resource, from) in std::mem::take(&mut self.open) {
            self.bottlenecks.push(BottleneckInterval { resource, from, to: end });
        }
    }
}

impl Observer for Recording {
    fn service(&mut self, service: &Service) {
        if !self.without_services {
            self.services.push(*service);
        }
    }

    fn bottleneck(&mut self, at: Time, resource: usize, is_bottleneck: bool) {
        let resource = resource as u32;
        if is_bottleneck {
            self.open.push((resource, at));
        } else if let Some(open) = self.open.iter().position(|(r, _)| *r == resource) {
            let (_, from) = self.open.remove(open);
            self.bottlenecks.push(BottleneckInterval { resource, from, to: at });
        }
    }

    fn priorities(&mut self, at: Time, priorities: &[i64]) {
        if self.with_priorities {
            self.priorities.push((at, priorities.to_vec()));
        }
    }
}
