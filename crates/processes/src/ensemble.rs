//! Ensembles: many runs of one scenario, each with its own seed.

use evenhand_model::random::Stream;
use evenhand_model::{Span, Time};
use rayon::prelude::*;

use crate::recording::{NoObserver, Observer, Service};
use crate::scenario::Scenario;
use crate::simulation::Outcome;

/// Mean and standard deviation over runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statistic {
    /// Number of values.
    pub count: usize,
    /// Mean; 0 of no values.
    pub mean: f64,
    /// Sample standard deviation (n - 1); 0 of fewer than two values.
    pub deviation: f64,
}

impl Statistic {
    /// Computes the statistic of these values, summed in their order.
    pub fn of(values: impl Iterator<Item = f64> + Clone) -> Statistic {
        let count = values.clone().count();
        let mean = if count == 0 { 0.0 } else { values.clone().sum::<f64>() / count as f64 };
        let squares: f64 = values.map(|v| (v - mean) * (v - mean)).sum();
        let deviation = if count < 2 { 0.0 } else { (squares / (count - 1) as f64).sqrt() };
        Statistic { count, mean, deviation }
    }
}

/// Results of many runs. Times in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Ensemble {
    /// Outcome of each run.
    pub outcomes: Vec<Outcome>,
    /// Finish time of each client, over the runs in which it finished.
    pub finish: Vec<Statistic>,
    /// Consumption of each resource by each client: `used[client][resource]`.
    pub used: Vec<Vec<Statistic>>,
    /// Cumulative consumption over time, if requested.
    pub curves: Option<Curves>,
}

/// Cumulative consumption at equidistant times, in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Curves {
    /// Distance; point k is at k times it.
    pub step: Span,
    /// Consumption of each resource: `resources[resource][client][point]`.
    pub resources: Vec<Vec<Vec<Statistic>>>,
    /// Consumption of all resources together: `total[client][point]`.
    pub total: Vec<Vec<Statistic>>,
}

impl Scenario {
    /// Returns the seed of an ensemble's run, with which [`observe`](Scenario::observe) repeats it.
    pub fn run_seed(&self, run: usize) -> u64 {
        Stream::new(self.parameters().seed, "run", run as u64).bits()
    }
}

/// Largest number of points of a curve, which ends there.
const MAX_POINTS: u64 = 100_000;

/// Runs the scenario `runs` times, in parallel. With `step`, consumption over time is sampled too.
///
/// The result depends on the scenario (with its seed), `runs` and `step` only, not on the number of threads.
pub fn ensemble(scenario: &Scenario, runs: usize, step: Option<Span>) -> Ensemble {
    let step = step.filter(|s| *s > Span::ZERO);
    let run = |run: usize| {
        let seed = scenario.run_seed(run);
        match step {
            None => (scenario.observe(seed, &mut NoObserver), Samples::default()),
            Some(step) => {
                let mut samples = Samples::new(scenario, step);
                let outcome = scenario.observe(seed, &mut samples);
                samples.add_up();
                (outcome, samples)
            }
        }
    };
    let (outcomes, samples): (Vec<Outcome>, Vec<Samples>) = (0..runs).into_par_iter().map(run).unzip();
    let (clients, resources) = (scenario.clients().len(), scenario.resources().len());
    let finished = |client: usize| outcomes.iter().filter_map(move |o| o.finish[client].map(Time::secs_f64));
    let used = |client: usize, resource: usize| outcomes.iter().map(move |o| o.used[client][resource].secs_f64());
    Ensemble {
        finish: (0..clients).map(|c| Statistic::of(finished(c))).collect(),
        used: (0..clients).map(|c| (0..resources).map(|r| Statistic::of(used(c, r))).collect()).collect(),
        curves: step.map(|step| curves(&samples, step, clients, resources)),
        outcomes,
    }
}

/// Computes statistics at every point up to the end of the longest run.
fn curves(samples: &[Samples], step: Span, clients: usize, resources: usize) -> Curves {
    let points = samples.iter().map(|s| s.points).max().unwrap_or(0);
    let statistics = |value: &(dyn Fn(&Samples, usize) -> u64 + Sync)| -> Vec<Statistic> {
        (0..points).map(|k| Statistic::of(samples.iter().map(|s| value(s, k) as f64 / 1e9))).collect()
    };
    let of_resource = |r: usize| (0..clients).map(|c| statistics(&|s, k| s.at(r * clients + c, k))).collect();
    let total = |c: usize| statistics(&|s, k| (0..resources).map(|r| s.at(r * clients + c, k)).sum());
    Curves { step, resources: (0..resources).map(of_resource).collect(), total: (0..clients).map(total).collect() }
}

/// Consumption of one run up to each point.
#[derive(Default)]
struct Samples {
    step: u64,
    clients: usize,
    points: usize,
    /// Resource-major, then by client: consumption between a point and the previous one, and after
    /// [`add_up`](Samples::add_up) up to the point.
    use_to: Vec<Vec<u64>>,
}

impl Samples {
    fn new(scenario: &Scenario, step: Span) -> Samples {
        let clients = scenario.clients().len();
        let columns = vec![vec![0]; clients * scenario.resources().len()];
        Samples { step: step.nanos(), clients, points: 1, use_to: columns }
    }

    fn add_up(&mut self) {
        for column in &mut self.use_to {
            for point in 1..column.len() {
                column[point] += column[point - 1];
            }
        }
    }

    /// Returns the consumption up to a point; after the end of a run nothing is consumed.
    fn at(&self, column: usize, point: usize) -> u64 {
        let column = &self.use_to[column];
        column[point.min(column.len() - 1)]
    }
}

impl Observer for Samples {
    fn service(&mut self, service: &Service) {
        let column = &mut self.use_to[service.resource as usize * self.clients + service.client as usize];
        let (mut from, to) = (service.from.nanos(), service.to.nanos());
        while from < to {
            let point = from / self.step + 1;
            if point >= MAX_POINTS {
                return;
            }
            let until = to.min(point * self.step);
            let point = point as usize;
            if column.len() <= point {
                column.resize(point + 1, 0);
                self.points = self.points.max(point + 1);
            }
            column[point] += until - from;
            from = until;
        }
    }
}
