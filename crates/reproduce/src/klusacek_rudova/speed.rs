//! Charges normalised by the speed of machines (SPEC).

use evenhand_documents::{Cell, Csv};
use evenhand_model::NO_TIME;
use evenhand_policies::equivalents::Combine;
use evenhand_report::chart::{Axis, BarChart, BarSeries, Caption, Scale, Unit};
use evenhand_simulator::{PLACEMENTS, Simulated};

use super::testbed::{Machines, RunOptions, Testbed, WAGAP, skipped};
use crate::{Experiment, FigureWithData, Outcome, ReproduceError, Settings, Verdict};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    paper: "klusacek-rudova",
    figure: "speed",
    title: "wall time as it is, and normalised by the speed of the machine",
    setting: "The logs and machines of klusacek-rudova/placement, but the small machines are 1.5 times as fast (the machine file \
              gives no speeds). Run times are assumed to scale with speed. The first two statements follow from this \
              assumption: they check the accounting, not reality. The same work is charged by wall time alone and by wall \
              time multiplied by SPEC. The charge of a job of which only half the time scales is computed for the same \
              placements. Jobs of several chunks are left out. All four placement rules; the first two statements are about \
              all four together.",
    run,
};

/// The small machines' speed.
const FAST: f64 = 1.5;
const SITE: [Machines<'static>; 2] = [WAGAP[0], ("zegox", WAGAP[1].1, WAGAP[1].2, "3/2")];
/// A user's charge depends on the scheduler's decisions if it differs between two placement rules by this factor.
const DEPENDS: f64 = 1.01;

fn run(settings: &Settings) -> Result<Outcome, ReproduceError> {
    let mut outcome = Outcome::default();
    let testbeds = Testbed::metacentrum_on(settings, &SITE)?;
    for testbed in &testbeds {
        let mut runs = Vec::new();
        for (_, placement) in PLACEMENTS {
            runs.push(Charged::of(testbed, &testbed.run(RunOptions { placement, ..RunOptions::of("penalty") })?)?);
        }
        match by_kind(&runs) {
            Some(by_kind) => {
                outcome.verdicts.extend(kind_verdicts(testbed.name, by_kind));
                outcome.figures.push(draw(testbed, by_kind));
            }
            None => outcome.notes.push(format!(
                "{}: charges by kind of machine: skipped, because all jobs ran on one kind",
                testbed.name
            )),
        }
        outcome.verdicts.extend(placement_verdicts(testbed.name, &spreads(&runs, 1), &spreads(&runs, 2)));
        outcome.notes.push(testbed.about());
    }
    outcome.notes.extend(skipped(settings, &testbeds));
    Ok(outcome)
}

/// The charges of a run, in three ways: by wall time, by wall time multiplied by SPEC, and the latter if half of the
/// time does not scale.
struct Charged {
    /// By way and kind of machine: the charged time, in seconds.
    by_kind: [[f64; 2]; 3],
    /// By kind of machine: the time that the same jobs would take on the slow machines, in seconds.
    work: [f64; 2],
    /// By way and user.
    by_user: [Vec<f64>; 3],
}

impl Charged {
    fn of(testbed: &Testbed, ran: &Simulated) -> Result<Charged, ReproduceError> {
        let minimum = testbed.equivalents(Combine::default())?;
        let columns = testbed.workload.columns();
        let by_user = [(); 3].map(|()| vec![0.0; testbed.workload.users().len()]);
        let mut charged = Charged { by_kind: [[0.0; 2]; 3], work: [0.0; 2], by_user };
        for placed in ran.machines.iter().flat_map(|on| &on.placed) {
            let row = placed.row as usize;
            // A job of several chunks runs as long as its chunk on the slowest machine, so no single speed applies.
            if ran.starts[row] == NO_TIME || testbed.jobs.chunks(row) > 1 {
                continue;
            }
            let kind = testbed.kind_of(placed.machine);
            let speed = [1.0, FAST][kind];
            let (took, alone) = (ran.run_time(row, columns.duration[row]).secs_f64(), columns.duration[row].secs_f64());
            let ways = [took, took * speed, (alone / 2.0 + took / 2.0) * speed];
            for (way, seconds) in ways.into_iter().enumerate() {
                charged.by_kind[way][kind] += seconds;
                charged.by_user[way][columns.user[row].index()] += seconds * minimum[row];
            }
            charged.work[kind] += alone;
        }
        Ok(charged)
    }
}

/// Returns by way and kind of machine the charge, in hours, for work that takes an hour on the slow machines, over all
/// runs; `None` if one kind has run nothing.
fn by_kind(runs: &[Charged]) -> Option<[[f64; 2]; 3]> {
    let sum = |of: &dyn Fn(&Charged) -> f64| runs.iter().map(of).sum::<f64>();
    let work = [0, 1].map(|kind| sum(&|run| run.work[kind]));
    let hours = |way: usize, kind: usize| sum(&|run| run.by_kind[way][kind]) / work[kind];
    work.iter().all(|w| *w > 0.0).then(|| [0, 1, 2].map(|way| [0, 1].map(|kind| hours(way, kind))))
}

/// Returns the ratio of the highest to the lowest charge of each user who is charged anything, in ascending order.
fn spreads(runs: &[Charged], way: usize) -> Vec<f64> {
    let users = runs.first().map_or(0, |r| r.by_user[way].len());
    let of = |user: usize| {
        let each = runs.iter().map(|r| r.by_user[way][user]);
        let (low, high) = each.fold((f64::INFINITY, 0.0f64), |(low, high), x| (low.min(x), high.max(x)));
        (low > 0.0).then(|| high / low)
    };
    let mut spreads: Vec<f64> = (0..users).filter_map(of).collect();
    spreads.sort_by(f64::total_cmp);
    spreads
}

fn kind_verdicts(name: &str, by_kind: [[f64; 2]; 3]) -> [Verdict; 2] {
    let measured = |way: usize| {
        format!(
            "an hour's work is charged {:.3} h on slow machines, {:.3} h on fast ones",
            by_kind[way][0], by_kind[way][1]
        )
    };
    let ratio = |way: usize| by_kind[way][0] / by_kind[way][1];
    [
        Verdict::new(
            format!(
                "{name}: without normalization, jobs executed on slow machines would be highly penalized compared to fast ones"
            ),
            measured(0),
            ratio(0) >= 1.0 + (FAST - 1.0) * 0.9,
        ),
        Verdict::new(
            format!("{name}: normalization captures the speedup of new, fast machines"),
            measured(1),
            (ratio(1) - 1.0).abs() < 1e-6,
        ),
    ]
}

fn placement_verdicts(name: &str, scales: &[f64], half: &[f64]) -> [Verdict; 2] {
    let highest = |spreads: &[f64]| spreads.last().copied().unwrap_or(1.0);
    let measured = |spreads: &[f64]| {
        let median = spreads.get(spreads.len() / 2).copied().unwrap_or(1.0);
        format!(
            "of {} users, {} are charged at least {:.0} % more under one placement rule than under another; the median is \
             {:.2} %, the maximum {:.2} %",
            spreads.len(),
            spreads.iter().filter(|s| **s >= DEPENDS).count(),
            100.0 * (DEPENDS - 1.0),
            100.0 * (median - 1.0),
            100.0 * (highest(spreads) - 1.0)
        )
    };
    let verdict = |condition: &str, spreads: &[f64]| {
        let statement = format!("{name}: the price is independent of the scheduler's decisions, if {condition}");
        Verdict::new(statement, measured(spreads), highest(spreads) < DEPENDS)
    };
    [verdict("run times scale with SPEC", scales), verdict("only half of a run time scales", half)]
}

fn draw(testbed: &Testbed, by_kind: [[f64; 2]; 3]) -> FigureWithData {
    let ways = ["wall time", "times SPEC", "SPEC, half scales"];
    let mut csv = Csv::new(&["charged_by", "slow", "fast"]);
    for (way, name) in ways.iter().enumerate() {
        csv.row(&[Cell::Text(name), Cell::Number(Some(by_kind[way][0])), Cell::Number(Some(by_kind[way][1]))]);
    }
    let series = ["slow machines", "fast machines"].iter().enumerate().map(|(kind, label)| BarSeries {
        label: (*label).into(),
        series: kind,
        values: (0..3).map(|way| Some(by_kind[way][kind])).collect(),
    });
    let chart = BarChart {
        caption: Caption {
            name: if testbed.name == "trace" {
                "klusacek-rudova-speed-trace"
            } else {
                "klusacek-rudova-speed-generated"
            }
            .into(),
            title: format!("Charge for an hour's work, {}", testbed.name),
            description: "Hours charged for work that takes an hour on a slow machine, by kind of machine.".into(),
        },
        groups_title: "charged by".into(),
        groups: ways.map(String::from).to_vec(),
        y: Axis {
            title: "hours".into(),
            unit: Unit::Number,
            scale: Scale::linear(by_kind.into_iter().flatten(), true, Unit::Number),
        },
        series: series.collect(),
    };
    FigureWithData { figure: chart.draw(), csv: csv.finish() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_statement_can_fail() {
        let good = [[1.0, 1.0 / 1.5], [1.0, 1.0], [1.0, 1.25]];
        assert_eq!(kind_verdicts("log", good).map(|v| v.holds), [true; 2]);
        assert_eq!(placement_verdicts("log", &[1.0], &[]).map(|v| v.holds), [true; 2]);
        let bad = [[1.0, 1.0], [1.0, 1.5], [1.0, 1.0]];
        assert_eq!(kind_verdicts("log", bad).map(|v| v.holds), [false; 2]);
        assert_eq!(placement_verdicts("log", &[1.0, 1.1], &[1.1]).map(|v| v.holds), [false; 2]);
    }

    #[test]
    fn charges_by_kind_need_work_on_both_kinds_of_machines() {
        let run = |work| Charged { by_kind: [[3600.0; 2]; 3], work, by_user: [vec![], vec![], vec![]] };
        assert_eq!(by_kind(&[run([3600.0, 0.0])]), None);
        assert_eq!(by_kind(&[run([7200.0, 0.0]), run([0.0, 3600.0])]), Some([[1.0, 2.0]; 3]));
    }

    #[test]
    fn speed_normalises_what_scales_and_nothing_else() {
        // With so few jobs, first fit uses none of the fast machines.
        let outcome = run(&Settings::new(1).tasks(Some(2000))).unwrap();
        let holds: Vec<bool> = outcome.verdicts.iter().map(|v| v.holds).collect();
        assert_eq!(holds, [true, true, true, false], "{:?}", outcome.verdicts);
    }
}
