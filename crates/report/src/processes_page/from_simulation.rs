//! Converts runs of the simulator (`evenhand-processes`) to the input of the figures and the page.

use evenhand_processes::{Curves, Outcome, Recording, Scenario, Statistic};

use super::{Bottleneck, Mark, ProcessRun, ResourceUse};
use crate::chart::Mean;

impl ProcessRun {
    /// Converts a recorded run; `recording` must be closed. The end of each client becomes a mark. The caller fills
    /// [`details`](ProcessRun::details).
    pub fn from_recording(
        title: impl Into<String>,
        scenario: &Scenario,
        outcome: &Outcome,
        recording: &Recording,
    ) -> ProcessRun {
        let uses = recording.services.iter().map(|s| ResourceUse {
            client: s.client as usize,
            resource: s.resource as usize,
            from_ns: s.from.nanos(),
            until_ns: s.to.nanos(),
        });
        let bottlenecks = recording.bottlenecks.iter().map(|b| Bottleneck {
            resource: b.resource as usize,
            from_ns: b.from.nanos(),
            until_ns: b.to.nanos(),
        });
        let ends = outcome.finish.iter().enumerate().filter_map(|(client, finish)| {
            let name = &scenario.clients()[client].name;
            finish.map(|at| Mark { at_ns: at.nanos(), client: Some(client), label: format!("{name} ends") })
        });
        ProcessRun {
            title: title.into(),
            clients: scenario.clients().iter().map(|c| c.name.clone()).collect(),
            resources: scenario.resources().iter().map(|r| r.name.clone()).collect(),
            horizon_ns: outcome.end.nanos(),
            uses: uses.collect(),
            bottlenecks: bottlenecks.collect(),
            marks: ends.collect(),
            details: Vec::new(),
        }
    }
}

/// Returns the recorded priorities in the form that [`draw_priorities`](super::draw_priorities) takes: the time in
/// nanoseconds, and one priority per client in nanoseconds (`None` if infinite).
pub fn recorded_priorities(recording: &Recording) -> Vec<(u64, Vec<Option<i64>>)> {
    let finite = |p: &i64| (*p != i64::MAX).then_some(*p);
    recording.priorities.iter().map(|(at, all)| (at.nanos(), all.iter().map(finite).collect())).collect()
}

/// Returns each client's mean cumulative use over several runs, of all resources or of the one with the given index,
/// in the form that [`draw_mean_cumulative_use`](super::draw_mean_cumulative_use) takes. Times, means and deviations
/// are in seconds. The result is empty if there is no such resource.
pub fn mean_use_curves(curves: &Curves, resource: Option<usize>) -> Vec<Vec<Mean>> {
    let step = curves.step.secs_f64();
    let mean = |(k, s): (usize, &Statistic)| Mean { at: k as f64 * step, mean: Some(s.mean), deviation: s.deviation };
    let clients = match resource {
        None => Some(&curves.total),
        Some(r) => curves.resources.get(r),
    };
    clients.into_iter().flatten().map(|points| points.iter().enumerate().map(mean).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenhand_processes::{Client, Parameters, Program, ensemble};

    fn scenario() -> Scenario {
        let program = |text: &str| Program::parse("p", &format!("# Priority:\n1\n# Requests:\n{text}")).unwrap();
        let one = Client::new("one", program("loop 2\nCPU_CS 1 0.2 NORM\nDISK 2 0 NORM\n"));
        let other = Client::new("other", program("loop 3\nCPU_CS 1 0 NORM\n"));
        Scenario::new(vec![one, other], vec![], Parameters::default()).unwrap()
    }

    #[test]
    fn a_converted_run_has_the_totals_of_the_outcome() {
        let scenario = scenario();
        let (outcome, recording) = scenario.record(Recording::new().with_priorities());
        let run = ProcessRun::from_recording("run", &scenario, &outcome, &recording);
        assert_eq!(run.validate(), Ok(()));
        let used: Vec<Vec<u64>> = outcome.used.iter().map(|all| all.iter().map(|s| s.nanos()).collect()).collect();
        assert_eq!(run.totals(), used);
        assert_eq!(run.marks.iter().map(|m| m.at_ns).max(), Some(run.horizon_ns));
        assert_eq!(recorded_priorities(&recording).len(), recording.priorities.len());
    }

    #[test]
    fn mean_curves_end_at_the_total_use() {
        let scenario = scenario();
        let curves = ensemble(&scenario, 4, Some(evenhand_model::Span::from_secs(1))).curves.unwrap();
        let all = mean_use_curves(&curves, None);
        assert_eq!((all.len(), mean_use_curves(&curves, Some(9)).len()), (2, 0));
        let last = all[1].last().unwrap();
        assert_eq!((last.mean, last.deviation), (Some(3.0), 0.0));
        assert!(mean_use_curves(&curves, Some(0))[0].last().unwrap().deviation > 0.0);
    }
}
