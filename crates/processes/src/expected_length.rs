//! How many services and delays a run will have, estimated from its scenario before it begins.

use crate::program::{Distribution, IDLE, Phase, Step, TICK};
use crate::scenario::{Client, ResourceSettings, Scenario};

/// A load on one resource, or of delays: how many services, and how long they take together in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    services: f64,
    time: f64,
}

impl Scenario {
    /// Estimates how many services and delays a run has. A service is one turn of a request on a server, so that a request for a
    /// resource that serves in quanta has several.
    ///
    /// The estimate is exact if no service time is random, the run is not cut off and no client is suspended; otherwise it is near
    /// the mean or above it. Takes time proportional to the size of the programs, not to their iterations.
    pub fn expected_services(&self) -> f64 {
        let until = self.end() as f64;
        let mut loads = vec![Load::default(); self.resources().len() + 1];
        let mut suspensions = 0.0;
        for client in self.clients() {
            let rest = until - client.start.nanos() as f64;
            if rest <= 0.0 {
                continue;
            }
            suspensions += (client.suspensions.len() * client.threads.len()) as f64;
            for program in &client.threads {
                self.add_thread(client, &program.phases, rest, &mut loads);
            }
        }
        // The last of the loads is that of delays, which no server limits.
        let of_resources = self.resources().iter().zip(&loads).map(|(resource, load)| {
            let most = until * f64::from(resource.servers);
            let part = if load.time > most { most / load.time } else { 1.0 };
            load.services * part
        });
        of_resources.sum::<f64>() + loads[self.resources().len()].services + suspensions
    }

    /// Adds what a thread does within `rest` nanoseconds if it never waits.
    fn add_thread(&self, client: &Client, phases: &[Phase], mut rest: f64, loads: &mut [Load]) {
        for phase in phases {
            let iterations = phase.iterations as f64;
            let steps = phase.steps.iter().map(|step| {
                let resource = self.resource(&step.resource).filter(|_| step.resource != IDLE);
                let mean = mean_duration(step);
                let services = resource.map_or(1.0, |at| services(step, mean, &self.resources()[at]));
                // Asynchronous requests are served beside each other, and beside the thread's next steps.
                let beside = client.asynchronous.as_ref().filter(|a| a.resources.contains(&step.resource));
                let passes = mean / beside.map_or(1.0, |a| f64::from(a.depth) + 1.0);
                (resource.unwrap_or(loads.len() - 1), Load { services, time: mean }, passes)
            });
            let steps: Vec<(usize, Load, f64)> = steps.collect();
            let once: f64 = steps.iter().map(|(.., passes)| passes).sum();
            let times = if once * iterations > rest { (rest / once).ceil().min(iterations) } else { iterations };
            for (at, load, _) in steps {
                loads[at].services += times * load.services;
                loads[at].time += times * load.time;
            }
            rest -= once * iterations;
            if rest <= 0.0 {
                return;
            }
        }
    }
}

/// Returns the mean service time in nanoseconds, or a little more where draws below 0 are cut off.
fn mean_duration(step: &Step) -> f64 {
    let (mean, width) = (step.mean.nanos() as f64, step.width.nanos() as f64);
    let mean = match step.distribution {
        Distribution::Exp => mean,
        // The mean of what is above 0 is at most this.
        Distribution::Norm if width > 0.0 => {
            mean + width * (-(mean / width).powi(2) / 2.0).exp() / std::f64::consts::TAU.sqrt()
        }
        Distribution::Unif if width > mean => (mean + width).powi(2) / (4.0 * width),
        Distribution::Norm | Distribution::Unif => mean,
    };
    mean.max(TICK as f64)
}

/// Returns the mean number of quanta of a request, or 1 where it is served to completion.
fn services(step: &Step, mean: f64, resource: &ResourceSettings) -> f64 {
    if !resource.preemptive {
        return 1.0;
    }
    let quanta = mean / resource.quantum.nanos() as f64;
    match step.distribution {
        // The mean of an exponential time in quanta, rounded up.
        Distribution::Exp => 1.0 / -(-1.0 / quanta).exp_m1(),
        _ if step.width.nanos() == 0 => quanta.ceil(),
        Distribution::Norm | Distribution::Unif => (quanta + 0.5).max(1.0),
    }
}

#[cfg(test)]
mod tests {
    use evenhand_model::{Quantity, Span, Time};
    use proptest::prelude::*;

    use super::*;
    use crate::program::Program;
    use crate::scenario::Parameters;

    fn step(resource: &str, millis: u64, width: u64, distribution: Distribution) -> Step {
        let span = |millis: u64| Span::from_nanos(millis * 1_000_000);
        Step { resource: resource.into(), mean: span(millis), width: span(width), distribution }
    }

    fn program(phases: Vec<(u64, Vec<Step>)>) -> Program {
        let phases = phases.into_iter().map(|(iterations, steps)| Phase { iterations, steps }).collect();
        Program { priority: Quantity::parse("1").unwrap(), phases }
    }

    fn scenario(programs: Vec<Program>, horizon: Option<u64>) -> Scenario {
        let clients = programs.into_iter().enumerate().map(|(at, p)| Client::new(format!("c{at}"), p)).collect();
        let parameters = Parameters { horizon: horizon.map(Time::from_secs), ..Parameters::default() };
        Scenario::new(clients, Vec::new(), parameters).unwrap()
    }

    fn delays(scenario: &Scenario) -> u64 {
        let phases = scenario.clients().iter().flat_map(|c| &c.threads).flat_map(|t| &t.phases);
        phases.map(|p| p.iterations * p.steps.iter().filter(|s| s.resource == IDLE).count() as u64).sum()
    }

    fn fixed_program() -> impl Strategy<Value = Program> {
        let resource = prop::sample::select(vec!["CPU_CS", "DISK", "NET_CS", IDLE]);
        let step = (resource, 1u64..900).prop_map(|(resource, millis)| step(resource, millis, 0, Distribution::Norm));
        prop::collection::vec((1u64..6, prop::collection::vec(step, 1..4)), 1..4).prop_map(program)
    }

    proptest! {
        #[test]
        fn without_chance_the_estimate_is_the_number_of_services_and_delays(
            programs in prop::collection::vec(fixed_program(), 1..5)
        ) {
            let scenario = scenario(programs, None);
            let found = scenario.run().dispatches + delays(&scenario);
            prop_assert_eq!(scenario.expected_services(), found as f64);
        }

        /// All services of a resource have one length here, so that no order of them has more.
        #[test]
        fn a_run_that_is_cut_off_has_no_more_services_than_estimated(
            shapes in prop::collection::vec((1u64..30, 1u64..4, any::<bool>()), 1..6),
            horizon in 1u64..20,
        ) {
            let steps = |(iterations, quanta, disk): (u64, u64, bool)| {
                let disk = disk.then(|| step("DISK", 500, 0, Distribution::Norm));
                let steps = std::iter::once(step("CPU_CS", 100 * quanta, 0, Distribution::Norm)).chain(disk);
                program(vec![(iterations, steps.collect())])
            };
            let programs: Vec<Program> = shapes.into_iter().map(steps).collect();
            let cut = scenario(programs.clone(), Some(horizon));
            let (found, expected) = (cut.run().dispatches as f64, cut.expected_services());
            // One more on each resource is cut off.
            prop_assert!(found <= expected + 2.0, "{} {}", found, expected);
            prop_assert!(expected <= scenario(programs, None).expected_services());
        }
    }

    #[test]
    fn random_service_times_are_estimated_by_their_mean() {
        for (distribution, mean, width) in [
            (Distribution::Exp, 1000, 0),
            (Distribution::Exp, 10, 0),
            (Distribution::Norm, 500, 100),
            (Distribution::Norm, 100, 400),
            (Distribution::Unif, 500, 500),
            (Distribution::Unif, 100, 300),
        ] {
            let steps = vec![step("CPU_CS", mean, width, distribution)];
            let scenario = scenario(vec![program(vec![(4000, steps)])], None);
            let (found, expected) = (scenario.run().dispatches as f64, scenario.expected_services());
            assert!((0.9..1.5).contains(&(expected / found)), "{distribution:?} {mean} {width}: {found} {expected}");
        }
    }

    #[test]
    fn a_long_program_and_a_tiny_quantum_are_estimated_without_a_run() {
        let loops = program(vec![(1 << 40, vec![step("CPU_CS", 1000, 0, Distribution::Norm)])]);
        let of = |horizon| scenario(vec![loops.clone()], horizon).expected_services();
        // A run is cut off after 2^56 ns: 2.3 years.
        assert!((7e8..8e8).contains(&of(None)), "{}", of(None));
        assert_eq!(of(Some(100)), 1000.0);
        // 50 clients have one processor: it serves no more quanta than there is time for.
        let many = scenario(vec![loops; 50], Some(100)).expected_services();
        assert!((999.0..1001.0).contains(&many), "{many}");
        let tiny = Parameters { quantum: Span::from_nanos(1), ..Parameters::default() };
        let one = program(vec![(1, vec![step("CPU_CS", 1000, 0, Distribution::Norm)])]);
        let scenario = Scenario::new(vec![Client::new("c", one)], Vec::new(), tiny).unwrap();
        assert_eq!(scenario.expected_services(), 1e9);
    }
}
