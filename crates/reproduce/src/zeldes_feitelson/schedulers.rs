//! The claim of sections 2 and 5: one priority for all resources, against schedulers that consider each resource alone.

use evenhand_documents::{Cell, Csv};
use evenhand_model::{Span, Time};
use evenhand_processes::{Client, Parameters, SCHEDULERS, Scenario, SteadyInterval, compare_offline};
use evenhand_report::chart::{Axis, BarChart, BarSeries, Caption, Scale, Unit};

use super::process_scenarios::{Process, process, scenario, until};
use super::recorded_runs::percent;
use crate::{Experiment, FigureWithData, Outcome, ReproduceError, Settings, Verdict};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    paper: "zeldes-feitelson",
    figure: "schedulers",
    title: "one priority for all resources against schedulers that consider each resource alone",
    setting: "The scenarios of Figures 3, 4, 7, 8, 12, 13 and 14 in their long run (20 to 100 s, all processes in one phase), \
              each under every scheduler. A client that demands more and receives less than its entitlement on every \
              bottleneck has a justified complaint; bars show by how much it is slower than its justified demand. Shares that \
              differ by less than 2 q / T = 6.7 % count as equal: the accounting cannot distinguish them. Service times are \
              fixed; the notes report random ones, with a deviation of a tenth (Figure 14: a twentieth).",
    run,
};

/// A scenario in its long run.
struct LongRun {
    name: &'static str,
    processes: &'static [Process],
}

const ALTERNATES: &str = "loop 1000000; DISK_CS 0.1 0 NORM; CPU_CS 0.1 0 NORM";
const NET: &str = "loop 1000000; CPU_CS 0.15 0.015 NORM; DISK_CS 0.15 0.015 NORM; NET_CS 0.7 0.07 NORM";
const ON_DISK: &str = "loop 1000; CPU_CS 0.1 0.01 NORM; DISK_CS 10 1 NORM";
const CPU: &str = "loop 1; CPU_CS 1000 0 NORM";
const DISK: &str = "loop 1; DISK_CS 1000 0 NORM";

static SCENARIOS: &[LongRun] = &[
    LongRun {
        name: "figure 3",
        processes: &[
            process("a", "10", CPU),
            process("b", "20", CPU),
            process("c", "30", CPU),
            process("d", "40", CPU),
        ],
    },
    LongRun {
        name: "figure 4",
        processes: &[
            process("blue", "70", "loop 1000; CPU_CS 0.1 0.01 NORM; NET_CS 10 1 NORM"),
            process("green", "20", ON_DISK),
            process("red", "10", ON_DISK),
        ],
    },
    LongRun {
        name: "figure 7",
        processes: &[process("red", "40", CPU), process("blue", "40", DISK), process("green", "20", ALTERNATES)],
    },
    LongRun {
        name: "figure 8b",
        processes: &[process("red", "25", CPU), process("blue", "25", DISK), process("green", "50", ALTERNATES)],
    },
    LongRun {
        name: "figure 12",
        processes: &[
            process("red", "33", "loop 1000000; CPU_CS 0.1 0.01 NORM; DISK_CS 0.2 0.02 NORM"),
            process("green", "67", "loop 1000000; CPU_CS 0.1 0.01 NORM; NET_CS 0.2 0.02 NORM"),
            process("blue", "100", CPU),
        ],
    },
    LongRun {
        name: "figure 13",
        processes: &[
            process("blue", "50", "loop 1000000; CPU_CS 0.8 0.08 NORM; DISK_CS 0.1 0.01 NORM; NET_CS 0.1 0.01 NORM"),
            process("green", "25", NET),
            process("red", "12.5", NET),
            process("purple", "12.5", NET),
        ],
    },
    LongRun {
        name: "figure 14",
        processes: &[
            process("P1", "1", "loop 1000000; CPU 0.1 0.005 NORM; NET 0.014 0.0007 NORM"),
            process("P2", "1", "loop 1000000; CPU 0.017 0.00085 NORM; NET 0.1 0.005 NORM"),
            process("P3", "1", "loop 1000000; CPU 0.1 0.005 NORM; NET 0.1 0.005 NORM"),
        ],
    },
];

/// The largest justified complaint.
#[derive(Default)]
struct WorstComplaint {
    /// The client; `None` if no client has a justified complaint.
    client: Option<String>,
    /// The fraction by which the client is slower than its justified demand.
    shortfall: f64,
    /// The largest difference from the off-line division.
    difference: f64,
}

fn worst(long: &LongRun, scheduler: &str, is_random: bool, seed: u64) -> Result<WorstComplaint, ReproduceError> {
    let at = |seconds| Time::ZERO + Span::from_secs(seconds);
    let rules = Parameters { scheduler: scheduler.into(), ..until(100, seed) };
    let mut scenario = scenario(long.processes, rules.clone())?;
    if !is_random {
        let mut clients = scenario.clients().to_vec();
        let phases = clients.iter_mut().flat_map(|c| &mut c.threads).flat_map(|t| &mut t.phases);
        phases.flat_map(|p| &mut p.steps).for_each(|step| step.width = Span::ZERO);
        scenario = Scenario::new(clients, Vec::new(), rules)?;
    }
    let steady = SteadyInterval::in_last_phases(&scenario, at(20), at(100));
    let found =
        compare_offline(&scenario, &steady, scenario.resolution()).map_err(|e| ReproduceError::Setup(e.to_string()))?;
    let mut worst = WorstComplaint { difference: found.difference, ..WorstComplaint::default() };
    for finding in &found.complaints {
        let (Some(who), Some(on)) = (finding.who, finding.on) else { continue };
        let client = &scenario.clients()[found.clients[who]];
        // A client cannot demand more than it would use without any waiting.
        let due = finding.due.min(unhindered(client, &scenario.resources()[on].name));
        let shortfall = 1.0 - finding.has / due;
        if shortfall > worst.shortfall {
            worst = WorstComplaint { client: Some(client.name.clone()), shortfall, ..worst };
        }
    }
    Ok(worst)
}

/// Returns the share of a resource that a client uses in its last phase if it never waits.
fn unhindered(client: &Client, resource: &str) -> f64 {
    let steps = || client.threads.iter().filter_map(|t| t.phases.last()).flat_map(|p| &p.steps);
    let sum = |only: Option<&str>| -> f64 {
        steps().filter(|s| only.is_none_or(|name| s.resource == name)).map(|s| s.mean.secs_f64()).sum()
    };
    sum(Some(resource)) / sum(None)
}

fn summary(all: &[WorstComplaint]) -> String {
    let each = SCENARIOS.iter().zip(all);
    let complaints: Vec<String> = each
        .filter_map(|(long, w)| Some(format!("{} in {} by {}", w.client.as_ref()?, long.name, percent(w.shortfall))))
        .collect();
    let far = all.iter().map(|w| w.difference).fold(0.0, f64::max);
    let complaints = match complaints.as_slice() {
        [] => "no client has a justified complaint".to_string(),
        complaints => format!("justified complaints: {}", complaints.join(", ")),
    };
    format!("{complaints}; the largest difference from the off-line division is {}", percent(far))
}

fn run(settings: &Settings) -> Result<Outcome, ReproduceError> {
    let mut csv =
        Csv::new(&["scheduler", "scenario", "service_times", "could_complain", "by", "difference_from_off_line"]);
    let mut series = Vec::new();
    let mut outcome = Outcome::default();
    for (number, scheduler) in SCHEDULERS.iter().enumerate() {
        let all = |is_random| -> Result<Vec<WorstComplaint>, ReproduceError> {
            SCENARIOS.iter().map(|long| worst(long, scheduler.name, is_random, settings.seed)).collect()
        };
        let (exact, random) = (all(false)?, all(true)?);
        for (times, all) in [("fixed", &exact), ("random", &random)] {
            for (long, worst) in SCENARIOS.iter().zip(all) {
                csv.row(&[
                    Cell::Text(scheduler.name),
                    Cell::Text(long.name),
                    Cell::Text(times),
                    Cell::Text(worst.client.as_deref().unwrap_or("")),
                    Cell::Number(Some(worst.shortfall)),
                    Cell::Number(Some(worst.difference)),
                ]);
            }
        }
        let is_fair = exact.iter().all(|w| w.client.is_none());
        match scheduler.name {
            "bottleneck" => {
                let statement = "under the algorithm no client has a justified complaint";
                outcome.verdicts.push(Verdict::new(statement, summary(&exact), is_fair));
            }
            "dominant-share" => {
                let statement = "dominant resource fairness does not possess the no justified complaints property";
                outcome.verdicts.push(Verdict::new(statement, summary(&exact), !is_fair));
            }
            name => outcome.notes.push(format!("{name}: {}", summary(&exact))),
        }
        outcome.notes.push(format!("random service times, {}: {}", scheduler.name, summary(&random)));
        let values = exact.iter().map(|w| Some(w.shortfall)).collect();
        series.push(BarSeries { label: scheduler.name.into(), series: number + 1, values });
    }
    let highest = series.iter().flat_map(|s| &s.values).flatten().copied().fold(0.0, f64::max);
    let chart = BarChart {
        caption: Caption {
            name: "zeldes-feitelson-schedulers".into(),
            title: "Largest justified complaint".into(),
            description:
                "The largest fraction by which a client is slower than its justified demand, for each scenario and \
                          scheduler."
                    .into(),
        },
        groups_title: "scenario".into(),
        groups: SCENARIOS.iter().map(|long| long.name.to_string()).collect(),
        y: Axis {
            title: "missing progress".into(),
            unit: Unit::Percent,
            scale: Scale::linear([highest], true, Unit::Percent),
        },
        series,
    };
    outcome.figures.push(FigureWithData { figure: chart.draw(), csv: csv.finish() });
    Ok(outcome)
}
