//! How a job's price depends on the machine that the scheduler chooses.

use evenhand_documents::{Cell, Csv};
use evenhand_model::to_f64;
use evenhand_policies::equivalents::Combine;
use evenhand_report::chart::{Axis, BarChart, BarSeries, Caption, Scale, Unit};
use evenhand_simulator::{PLACEMENTS, Simulated};

use super::testbed::{RunOptions, Testbed, WAGAP, skipped};
use crate::{Experiment, FigureWithData, Outcome, ReproduceError, Settings, Verdict};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    paper: "klusacek-rudova",
    figure: "placement",
    title: "processor equivalents on the machine that runs a job against the minimum over all machines",
    setting: "A log like MetaCentrum's, and the log of --data, on the machines of MetaCentrum's log of CERIT-SC (20 of 80 \
              processors and 505 GB, 48 of 12 and 90 GB), four times: chunks go to machines by first fit, best fit, worst \
              fit, and to the machine whose dominant resource suits. Policy penalty, EASY backfilling. Each user's jobs are \
              charged in two ways: by the PE of the machines that ran them (Eq. 2), and by the minimum PE (Eq. 3).",
    run,
};

/// A user's charge depends on the scheduler's decisions if it differs between two placement rules by this factor.
const DEPENDS: f64 = 1.05;
/// The tolerance for rounding of sums of f64.
const ROUNDING: f64 = 1.0 + 1e-9;

fn run(settings: &Settings) -> Result<Outcome, ReproduceError> {
    let mut outcome = Outcome::default();
    let testbeds = Testbed::metacentrum(settings)?;
    for testbed in &testbeds {
        let minimum = testbed.equivalents(Combine::default())?;
        let mut charged = Vec::new();
        for (_, placement) in PLACEMENTS {
            let ran = testbed.run(RunOptions { placement, ..RunOptions::of("penalty") })?;
            charged.push([
                testbed.by_user(&ran, &equivalents_on_used_machines(testbed, &ran)?),
                testbed.by_user(&ran, &minimum),
            ]);
        }
        let spreads = [0, 1].map(|way| spreads(&charged, way));
        outcome.verdicts.push(prices_differ(testbed)?);
        outcome.verdicts.extend(verdicts(testbed.name, &spreads));
        outcome.figures.push(draw(testbed, &charged, &spreads));
        outcome.notes.push(testbed.about());
        outcome.notes.push(odd_machine(testbed, settings)?);
    }
    outcome.notes.extend(skipped(settings, &testbeds));
    Ok(outcome)
}

/// Returns by row the processor equivalents on the machines that ran it, over its chunks.
fn equivalents_on_used_machines(testbed: &Testbed, ran: &Simulated) -> Result<Vec<f64>, ReproduceError> {
    let prices = testbed.prices(Combine::default())?;
    let mut known = std::collections::HashMap::new();
    let mut of = vec![0.0; testbed.workload.len()];
    for placed in ran.machines.iter().flat_map(|on| &on.placed) {
        let row = placed.row as usize;
        let kind = testbed.kind_of(placed.machine);
        let key = (testbed.workload.columns().demand[row], testbed.jobs.chunks(row), kind);
        let each = *known.entry(key).or_insert_with(|| {
            let on = prices.on(kind, &testbed.chunk(row));
            on.map_or(0.0, |e| to_f64(&e.processors))
        });
        of[row] += each * f64::from(placed.chunks);
    }
    Ok(of)
}

/// Returns the ratio of the highest to the lowest charge of each user who is charged anything.
fn spreads(charged: &[[Vec<f64>; 2]], way: usize) -> Vec<f64> {
    let users = charged.first().map_or(0, |c| c[way].len());
    let of = |user: usize| {
        let each = charged.iter().map(|c| c[way][user]);
        let (low, high) = each.fold((f64::INFINITY, 0.0f64), |(low, high), x| (low.min(x), high.max(x)));
        (low > 0.0).then(|| high / low)
    };
    (0..users).filter_map(of).collect()
}

/// Tests whether jobs have different prices on different machines.
fn prices_differ(testbed: &Testbed) -> Result<Verdict, ReproduceError> {
    let prices = testbed.prices(Combine::default())?;
    let (mut several, mut differ, mut highest) = (0u64, 0u64, 1.0f64);
    for row in 0..testbed.workload.len() {
        let chunk = testbed.chunk(row);
        let on: Vec<f64> =
            (0..prices.kinds()).filter_map(|k| prices.on(k, &chunk).ok()).map(|e| to_f64(&e.processors)).collect();
        let (low, high) = on.iter().fold((f64::INFINITY, 0.0f64), |(l, h), x| (l.min(*x), h.max(*x)));
        several += u64::from(on.len() > 1);
        differ += u64::from(on.len() > 1 && high > low);
        if on.len() > 1 && low > 0.0 {
            highest = highest.max(high / low);
        }
    }
    Ok(Verdict::new(
        format!("{}: different suitable machines may produce different PE", testbed.name),
        format!(
            "of {several} jobs that fit on both kinds of machines, {differ} have two prices, in a ratio of up to {highest:.2}"
        ),
        differ > 0,
    ))
}

fn verdicts(name: &str, [used, minimum]: &[Vec<f64>; 2]) -> [Verdict; 2] {
    let measured = |spreads: &[f64]| {
        let mut sorted = spreads.to_vec();
        sorted.sort_by(f64::total_cmp);
        let median = sorted.get(sorted.len() / 2).copied().unwrap_or(1.0);
        let highest = sorted.last().copied().unwrap_or(1.0);
        let many = sorted.iter().filter(|s| **s >= DEPENDS).count();
        let text = format!(
            "of {} users, {many} are charged at least {:.0} % more under one placement rule than under another; the median \
             is {:.2} %, the maximum {:.1} %",
            sorted.len(),
            100.0 * (DEPENDS - 1.0),
            100.0 * (median - 1.0),
            100.0 * (highest - 1.0)
        );
        (text, highest)
    };
    let ((used, used_highest), (minimum, minimum_highest)) = (measured(used), measured(minimum));
    [
        Verdict::new(
            format!(
                "{name}: by the PE of the machines that run its jobs, a user's charge depends on the scheduler's decisions"
            ),
            used,
            used_highest >= DEPENDS,
        ),
        Verdict::new(format!("{name}: by the minimum PE it does not"), minimum, minimum_highest <= ROUNDING),
    ]
}

/// Reports the weak point of the minimum: one machine with few processors and much memory makes memory cheap for all
/// users.
fn odd_machine(testbed: &Testbed, settings: &Settings) -> Result<String, ReproduceError> {
    let odd = [WAGAP[0], WAGAP[1], ("odd", 1, &["8", "2Ti"][..], "1")];
    let with = Testbed::metacentrum_on(settings, &odd)?;
    let sum = |testbed: &Testbed| -> Result<f64, ReproduceError> {
        let durations = &testbed.workload.columns().duration;
        Ok(testbed.equivalents(Combine::default())?.iter().zip(durations).map(|(p, d)| p * d.secs_f64()).sum())
    };
    let before = sum(testbed)?;
    let after = with.iter().find(|g| g.name == testbed.name).map_or(Ok(before), sum)?;
    Ok(format!(
        "{}: with one more machine of 8 processors and 2 TiB the sum of all charges falls by {:.1} %, wherever jobs run",
        testbed.name,
        100.0 * (1.0 - after / before)
    ))
}

fn draw(testbed: &Testbed, charged: &[[Vec<f64>; 2]], spreads: &[Vec<f64>; 2]) -> FigureWithData {
    let mut csv = Csv::new(&["user", "placement", "charged_where_it_ran", "charged_least"]);
    for (user, name) in testbed.workload.users().iter().enumerate() {
        for ((placement, _), charged) in PLACEMENTS.iter().zip(charged) {
            csv.row(&[
                Cell::Text(name),
                Cell::Text(placement),
                Cell::Number(Some(charged[0][user])),
                Cell::Number(Some(charged[1][user])),
            ]);
        }
    }
    const STEPS: [f64; 5] = [1.0, 1.01, 1.05, 1.2, f64::INFINITY];
    let groups = ["none", "to 1 %", "to 5 %", "to 20 %", "more"];
    let count = |spreads: &[f64], step: usize| {
        let low = if step == 0 { 0.0 } else { STEPS[step - 1] * ROUNDING };
        let high = STEPS[step] * ROUNDING;
        spreads.iter().filter(|s| **s > low && **s <= high).count() as f64
    };
    let series = [("PE of the machines used", 0), ("minimum PE", 1)].map(|(label, way)| BarSeries {
        label: label.into(),
        series: way,
        values: (0..groups.len()).map(|step| Some(count(&spreads[way], step))).collect(),
    });
    let highest = series.iter().flat_map(|s| s.values.iter().flatten().copied());
    let chart = BarChart {
        caption: Caption {
            name: if testbed.name == "trace" {
                "klusacek-rudova-placement-trace"
            } else {
                "klusacek-rudova-placement-generated"
            }
            .into(),
            title: format!("Differences of users' charges between placement rules, {}", testbed.name),
            description:
                "Number of users by the difference between their highest and lowest charge under four placement rules."
                    .into(),
        },
        groups_title: "difference".into(),
        groups: groups.map(String::from).to_vec(),
        y: Axis { title: "users".into(), unit: Unit::Number, scale: Scale::linear(highest, true, Unit::Number) },
        series: series.to_vec(),
    };
    FigureWithData { figure: chart.draw(), csv: csv.finish() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_statement_can_fail() {
        let holds =
            |used: &[f64], minimum: &[f64]| verdicts("log", &[used.to_vec(), minimum.to_vec()]).map(|v| v.holds);
        assert_eq!(holds(&[1.0, 1.2], &[1.0, 1.0]), [true, true]);
        assert_eq!(holds(&[1.0, 1.01], &[1.0, 1.001]), [false, false]);
        assert_eq!(spreads(&[[vec![1.0, 0.0], vec![2.0, 0.0]], [vec![3.0, 0.0], vec![2.0, 0.0]]], 0), [3.0]);
    }

    #[test]
    fn the_papers_statements_about_placement_hold() {
        let outcome = run(&Settings::new(1).tasks(Some(4000))).unwrap();
        outcome.verdicts.iter().for_each(|v| assert!(v.holds, "{v:?}"));
    }
}
