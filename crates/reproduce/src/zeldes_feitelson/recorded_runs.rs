//! Runs of processes with their recordings: measurements and figures of one run, and means over many.

use std::ops::Range;

use evenhand_model::{Span, Time};
use evenhand_processes::{Curves, Ensemble, Outcome, Recording, Scenario, Service, ensemble};
use evenhand_report::chart::{Caption, Figure};
use evenhand_report::processes_page::{self, ProcessRun, ProcessRunError};

use crate::{FigureWithData, ReproduceError};

/// The number of runs of a randomised experiment.
pub(super) const RUNS: usize = 100;

/// One run with its recording. Methods take processes and resources by name, and times in seconds.
pub(super) struct Run {
    pub(super) scenario: Scenario,
    pub(super) outcome: Outcome,
    pub(super) recording: Recording,
}

impl Run {
    pub(super) fn of(scenario: Scenario) -> Run {
        let (outcome, recording) = scenario.record(Recording::new());
        Run { scenario, outcome, recording }
    }

    /// Runs a scenario with the seed of an ensemble's first run.
    pub(super) fn first(scenario: Scenario) -> Run {
        let mut recording = Recording::new();
        let outcome = scenario.observe(scenario.run_seed(0), &mut recording);
        recording.close(outcome.end);
        Run { scenario, outcome, recording }
    }

    fn client(&self, name: &str) -> Option<usize> {
        self.scenario.clients().iter().position(|c| c.name == name)
    }

    /// Returns the services of a resource, in order of their end.
    pub(super) fn services<'r>(&'r self, resource: &str) -> impl Iterator<Item = &'r Service> + use<'r> {
        let number = self.scenario.resource(resource);
        self.recording.services.iter().filter(move |s| Some(s.resource as usize) == number)
    }

    /// Returns whether a service is of this client.
    pub(super) fn is_of(&self, service: &Service, client: &str) -> bool {
        Some(service.client as usize) == self.client(client)
    }

    /// Returns the fraction of the time in which the resource serves the process.
    pub(super) fn share(&self, client: &str, resource: &str, time: Range<f64>) -> f64 {
        within(self.services(resource).filter(|s| self.is_of(s, client)), &time) / (time.end - time.start)
    }

    /// Returns the fraction of the time in which the resource serves any process.
    pub(super) fn busy(&self, resource: &str, time: Range<f64>) -> f64 {
        within(self.services(resource), &time) / (time.end - time.start)
    }

    /// Returns the mean use of all resources per second.
    pub(super) fn rate(&self, client: &str, time: Range<f64>) -> f64 {
        within(self.recording.services.iter().filter(|s| self.is_of(s, client)), &time) / (time.end - time.start)
    }

    /// Returns the finish time of a process; infinity if it did not finish.
    pub(super) fn finish(&self, client: &str) -> f64 {
        self.client(client).and_then(|c| self.outcome.finish[c]).map_or(f64::INFINITY, Time::secs_f64)
    }

    /// Returns the fraction of the time in which the resource counts as a bottleneck.
    pub(super) fn flagged(&self, resource: &str, time: Range<f64>) -> f64 {
        let number = self.scenario.resource(resource);
        let intervals = self.recording.bottlenecks.iter().filter(|b| Some(b.resource as usize) == number);
        let part = |from: Time, to: Time| (to.secs_f64().min(time.end) - from.secs_f64().max(time.start)).max(0.0);
        intervals.map(|b| part(b.from, b.to)).sum::<f64>() / (time.end - time.start)
    }

    pub(super) fn end(&self) -> f64 {
        self.outcome.end.secs_f64()
    }

    /// Draws the paper's upper graph.
    pub(super) fn gantt(&self, name: &str, title: &str) -> Result<FigureWithData, ReproduceError> {
        let caption = caption(
            format!("zeldes-feitelson-{name}-gantt"),
            format!("{title}: served processes"),
            "One lane per resource, coloured by the process served; lines mark bottlenecks.",
        );
        with_data(processes_page::draw_gantt(&self.as_process_run(title), caption))
    }

    /// Draws the paper's lower graph: the use of all resources, or of one.
    pub(super) fn cumulative(
        &self,
        name: &str,
        title: &str,
        resource: Option<usize>,
    ) -> Result<FigureWithData, ReproduceError> {
        let caption = caption(
            format!("zeldes-feitelson-{name}-use"),
            format!("{title}: cumulative use"),
            "One line per process: the steeper, the faster its progress; horizontal while it waits.",
        );
        with_data(processes_page::draw_cumulative_use(&self.as_process_run(title), resource, caption))
    }

    fn as_process_run(&self, title: &str) -> ProcessRun {
        ProcessRun::from_recording(title, &self.scenario, &self.outcome, &self.recording)
    }
}

fn with_data(result: Result<(Figure, String), ProcessRunError>) -> Result<FigureWithData, ReproduceError> {
    result.map(|(figure, csv)| FigureWithData { figure, csv }).map_err(|e| ReproduceError::Setup(e.to_string()))
}

fn within<'s>(services: impl Iterator<Item = &'s Service>, time: &Range<f64>) -> f64 {
    // 0.0 + turns the -0 of an empty sum into 0.
    0.0 + services.map(|s| (s.to.secs_f64().min(time.end) - s.from.secs_f64().max(time.start)).max(0.0)).sum::<f64>()
}

/// Many runs of a randomised scenario, with statistics of use over time.
pub(super) struct RandomizedRuns {
    pub(super) scenario: Scenario,
    pub(super) ensemble: Ensemble,
    curves: Curves,
}

impl RandomizedRuns {
    /// Runs a scenario [`RUNS`] times, and samples use ten times per second.
    pub(super) fn of(scenario: Scenario) -> Result<RandomizedRuns, ReproduceError> {
        let mut ensemble = ensemble(&scenario, RUNS, Some(Span::from_nanos(100_000_000)));
        let curves = ensemble.curves.take().ok_or_else(|| ReproduceError::Setup("no use over time".into()))?;
        Ok(RandomizedRuns { scenario, ensemble, curves })
    }

    fn client(&self, name: &str) -> Option<usize> {
        self.scenario.clients().iter().position(|c| c.name == name)
    }

    /// Returns mean and standard deviation of the finish time of a process.
    pub(super) fn finish(&self, client: &str) -> (f64, f64) {
        self.client(client)
            .map(|c| self.ensemble.finish[c])
            .filter(|s| s.count > 0)
            .map_or((f64::INFINITY, 0.0), |s| (s.mean, s.deviation))
    }

    /// Returns mean and standard deviation of a process's use of all resources up to `second`.
    pub(super) fn used_by(&self, client: &str, second: f64) -> (f64, f64) {
        let curve = self.client(client).map(|c| &self.curves.total[c]);
        curve.and_then(|c| c.get(self.point(second)).or(c.last())).map_or((0.0, 0.0), |s| (s.mean, s.deviation))
    }

    fn point(&self, second: f64) -> usize {
        (second / self.curves.step.secs_f64()).round() as usize
    }

    /// Returns the mean fraction of the time in which the resource served the process.
    pub(super) fn share(&self, client: &str, resource: &str, time: Range<f64>) -> f64 {
        let (Some(c), Some(r)) = (self.client(client), self.scenario.resource(resource)) else { return 0.0 };
        let curve = &self.curves.resources[r][c];
        let at = |second: f64| curve.get(self.point(second)).or(curve.last()).map_or(0.0, |s| s.mean);
        (at(time.end) - at(time.start)) / (time.end - time.start)
    }

    /// Returns the mean fraction of the time in which the resource served any process.
    pub(super) fn busy(&self, resource: &str, time: Range<f64>) -> f64 {
        self.scenario.clients().iter().map(|c| self.share(&c.name, resource, time.clone())).sum()
    }

    /// Returns the mean use of all resources per second.
    pub(super) fn rate(&self, client: &str, time: Range<f64>) -> f64 {
        self.scenario.resources().iter().map(|r| self.share(client, &r.name, time.clone())).sum()
    }

    /// Draws the paper's bottom graph: the mean use of all resources, or of one.
    pub(super) fn means(&self, name: &str, title: &str, resource: Option<usize>) -> FigureWithData {
        let caption = caption(
            format!("zeldes-feitelson-{name}-mean"),
            format!("{title}: mean use over {RUNS} runs"),
            "Mean cumulative use of each process; error bars are one standard deviation in each direction.",
        );
        let clients: Vec<String> = self.scenario.clients().iter().map(|c| c.name.clone()).collect();
        let of = resource.map_or("all resources", |r| self.scenario.resources()[r].name.as_str());
        let means = processes_page::mean_use_curves(&self.curves, resource);
        let (figure, csv) =
            processes_page::draw_mean_cumulative_use(&clients, &means, &format!("use of {of}"), caption);
        FigureWithData { figure, csv }
    }
}

fn caption(name: String, title: String, description: &str) -> Caption {
    Caption { name, title, description: description.into() }
}

/// Formats a fraction: `66.7 %`.
pub(super) fn percent(part: f64) -> String {
    format!("{:.1} %", 100.0 * part)
}

/// Formats fractions: `66.7 %, 33.3 %`.
pub(super) fn percents(parts: &[f64]) -> String {
    parts.iter().map(|p| percent(*p)).collect::<Vec<_>>().join(", ")
}

/// Returns whether all measured values are within `tolerance` of the stated ones.
pub(super) fn near(found: &[f64], stated: &[f64], tolerance: f64) -> bool {
    found.len() == stated.len() && found.iter().zip(stated).all(|(f, s)| (f - s).abs() <= tolerance)
}
