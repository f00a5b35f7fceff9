//! What happens in a run, for those who want to see it.

use evenhand_model::Time;

/// Is told what happens in a run, in order of time. Clients, resources and servers by number.
pub trait Observer {
    /// A service or quantum has ended.
    fn service(&mut self, _service: &Service) {}

    /// From here on the resource counts as a bottleneck, or not any longer: as the algorithm sees it when it
    /// recalculates, which is some time after its use passed the threshold.
    fn bottleneck(&mut self, _at: Time, _resource: usize, _is_bottleneck: bool) {}

    /// Priorities were computed, in nanoseconds; `i64::MAX` is infinite: the client touches no bottleneck.
    /// Schedulers without priorities tell none.
    fn priorities(&mut self, _at: Time, _priorities: &[i64]) {}

    /// A thread of a client has come to the end of a phase of its program, by number.
    fn phase_ended(&mut self, _at: Time, _client: usize, _thread: u32, _phase: usize) {}

    /// A client has finished.
    fn finished(&mut self, _at: Time, _client: usize) {}
}

/// One uninterrupted use of a resource by a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// Which resource, by number in [`Scenario::resources`](crate::Scenario::resources).
    pub resource: u32,
    /// Which of its servers, from 0.
    pub server: u32,
    /// Whose, by number in [`Scenario::clients`](crate::Scenario::clients).
    pub client: u32,
    /// Which of the client's threads, from 0.
    pub thread: u32,
    /// When it began.
    pub from: Time,
    /// When it ended.
    pub to: Time,
}

/// A time in which a resource counted as a bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BottleneckInterval {
    /// Which resource.
    pub resource: u32,
    /// From the recalculation that found it so.
    pub from: Time,
    /// To the one that did not, or the end of the run.
    pub to: Time,
}

/// Looks at nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl Observer for NoObserver {}

/// Keeps everything: for figures of one run, and for tests. Its size grows with the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// All services, in order of their end.
    pub services: Vec<Service>,
    /// When resources counted as bottlenecks, in order of their end.
    pub bottlenecks: Vec<BottleneckInterval>,
    /// Clients' priorities over time, if asked for: nanoseconds, `i64::MAX` for infinite.
    pub priorities: Vec<(Time, Vec<i64>)>,
    with_priorities: bool,
    merged: bool,
    /// Since when resources are bottlenecks.
    open: Vec<(u32, Time)>,
    /// The last service of each server, as place in `services`.
    last: Vec<((u32, u32), usize)>,
}

impl Recording {
    /// Keeps services and bottlenecks.
    pub fn new() -> Recording {
        Recording::default()
    }

    /// Keeps priorities too.
    #[must_use]
    pub fn with_priorities(self) -> Recording {
        Recording { with_priorities: true, ..self }
    }

    /// Takes quanta of the same thread on the same server without a gap for one service, which is then in
    /// the order of its first quantum's end.
    #[must_use]
    pub fn merged(self) -> Recording {
        Recording { merged: true, ..self }
    }

    /// Ends what is open when the run ends. [`Scenario::observe`](crate::Scenario::observe) does not: it does
    /// not own the observer.
    pub fn close(&mut self, end: Time) {
        for (resource, from) in std::mem::take(&mut self.open) {
            self.bottlenecks.push(BottleneckInterval { resource, from, to: end });
        }
    }

    /// The cumulative use of a client up to each of its services' ends: (time, nanoseconds) at every point at
    /// which the line bends; of all resources, or of one.
    pub fn cumulative(&self, client: usize, resource: Option<usize>) -> Vec<(Time, u64)> {
        let mine = |s: &&Service| s.client as usize == client && resource.is_none_or(|r| s.resource as usize == r);
        // Services of one client can overlap: the line's slope is how many run.
        let mut changes: Vec<(Time, i64)> =
            self.services.iter().filter(mine).flat_map(|s| [(s.from, 1), (s.to, -1)]).collect();
        changes.sort_unstable();
        let mut line = vec![(Time::ZERO, 0)];
        let (mut running, mut sum, mut at) = (0i64, 0u64, Time::ZERO);
        for (time, change) in changes {
            sum += running.unsigned_abs() * (time - at).nanos();
            at = time;
            running += change;
            match line.last_mut() {
                Some(last) if last.0 == time => last.1 = sum,
                _ => line.push((time, sum)),
            }
        }
        line
    }
}

impl Observer for Recording {
    fn service(&mut self, service: &Service) {
        if self.merged {
            let server = (service.resource, service.server);
            let slot = self.last.iter().position(|(s, _)| *s == server);
            if let Some(last) = slot.map(|at| &mut self.services[self.last[at].1])
                && (last.to, last.client, last.thread) == (service.from, service.client, service.thread)
            {
                last.to = service.to;
                return;
            }
            let place = (server, self.services.len());
            match slot {
                Some(at) => self.last[at] = place,
                None => self.last.push(place),
            }
        }
        self.services.push(*service);
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
