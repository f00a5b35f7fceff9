//! Where the scheduler puts a job, and what that does to its price.

use evenhand_documents::{Cell, Csv};
use evenhand_model::to_f64;
use evenhand_policies::equivalents::Combine;
use evenhand_report::chart::{Axis, BarChart, BarSeries, Caption, Scale, Unit};
use evenhand_simulator::{PLACEMENTS, Simulated};

use super::ground::{Ground, Rules, WAGAP, skipped};
use crate::{Drawn, Experiment, Outcome, ReproduceError, Settings, Verdict};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    paper: "klusacek-rudova",
    figure: "placement",
    title: "processor equivalents where a job runs against the least over all machines",
    setting: "A log like MetaCentrum's, and the log of --data, on the machines of MetaCentrum's log of CERIT-SC (20 of 80 \
              processors and 505 GB, 48 of 12 and 90 GB), four times: chunks go to machines by first fit, best fit, worst \
              fit, and to the machine whose dominant resource suits. Policy penalty, EASY backfilling. Each user is charged \
              twice for what ran: by the PE of the machines its jobs ran on (Eq. 2), and by the least PE (Eq. 3).",
    run,
};

/// A user's charge depends on the scheduler's decision if it differs so much between two of them.
const DEPENDS: f64 = 1.05;
/// Rounding of sums of f64.
const SAME: f64 = 1.0 + 1e-9;

fn run(settings: &Settings) -> Result<Outcome, ReproduceError> {
    let mut outcome = Outcome::default();
    let grounds = Ground::metacentrum(settings)?;
    for ground in &grounds {
        let least = ground.equivalents(Combine::default())?;
        let mut charged = Vec::new();
        for (_, placement) in PLACEMENTS {
            let ran = ground.run(Rules { placement, ..Rules::of("penalty") })?;
            charged.push([ground.by_user(&ran, &where_it_ran(ground, &ran)?), ground.by_user(&ran, &least)]);
        }
        let spreads = [0, 1].map(|way| spreads(&charged, way));
        outcome.verdicts.push(differs(ground)?);
        outcome.verdicts.extend(verdicts(ground.name, &spreads));
        outcome.drawn.push(draw(ground, &charged, &spreads));
        outcome.notes.push(ground.about());
        outcome.notes.push(odd_machine(ground, settings)?);
    }
    outcome.notes.extend(skipped(settings, &grounds));
    Ok(outcome)
}

/// By row: processor equivalents on the machines it ran on, over its chunks.
fn where_it_ran(ground: &Ground, ran: &Simulated) -> Result<Vec<f64>, ReproduceError> {
    let prices = ground.prices(Combine::default())?;
    let mut known = std::collections::HashMap::new();
    let mut of = vec![0.0; ground.workload.len()];
    for placed in ran.machines.iter().flat_map(|on| &on.placed) {
        let row = placed.row as usize;
        let kind = ground.kind_of(placed.machine);
        let key = (ground.workload.columns().demand[row], ground.jobs.chunks(row), kind);
        let each = *known.entry(key).or_insert_with(|| {
            let on = prices.on(kind, &ground.chunk(row));
            on.map_or(0.0, |e| to_f64(&e.processors))
        });
        of[row] += each * f64::from(placed.chunks);
    }
    Ok(of)
}

/// By user: the largest charge over the least, of those charged anything.
fn spreads(charged: &[[Vec<f64>; 2]], way: usize) -> Vec<f64> {
    let users = charged.first().map_or(0, |c| c[way].len());
    let of = |user: usize| {
        let each = charged.iter().map(|c| c[way][user]);
        let (low, high) = each.fold((f64::INFINITY, 0.0f64), |(low, high), x| (low.min(x), high.max(x)));
        (low > 0.0).then(|| high / low)
    };
    (0..users).filter_map(of).collect()
}

/// Whether machines differ for jobs at all.
fn differs(ground: &Ground) -> Result<Verdict, ReproduceError> {
    let prices = ground.prices(Combine::default())?;
    let (mut several, mut differ, mut most) = (0u64, 0u64, 1.0f64);
    for row in 0..ground.workload.len() {
        let chunk = ground.chunk(row);
        let on: Vec<f64> =
            (0..prices.kinds()).filter_map(|k| prices.on(k, &chunk).ok()).map(|e| to_f64(&e.processors)).collect();
        let (low, high) = on.iter().fold((f64::INFINITY, 0.0f64), |(l, h), x| (l.min(*x), h.max(*x)));
        several += u64::from(on.len() > 1);
        differ += u64::from(on.len() > 1 && high > low);
        if on.len() > 1 && low > 0.0 {
            most = most.max(high / low);
        }
    }
    Ok(Verdict::new(
        format!("{}: different suitable machines may produce different PE", ground.name),
        format!("of {several} jobs that fit on both kinds of machines {differ} have two prices, up to {most:.2} times"),
        differ > 0,
    ))
}

fn verdicts(name: &str, [ran, least]: &[Vec<f64>; 2]) -> [Verdict; 2] {
    let said = |spreads: &[f64]| {
        let mut sorted = spreads.to_vec();
        sorted.sort_by(f64::total_cmp);
        let median = sorted.get(sorted.len() / 2).copied().unwrap_or(1.0);
        let most = sorted.last().copied().unwrap_or(1.0);
        let many = sorted.iter().filter(|s| **s >= DEPENDS).count();
        let text = format!(
            "of {} users {many} are charged at least {:.0} % more under one placement rule than under another; the median \
             user {:.2} %, the most {:.1} %",
            sorted.len(),
            100.0 * (DEPENDS - 1.0),
            100.0 * (median - 1.0),
            100.0 * (most - 1.0)
        );
        (text, most)
    };
    let ((ran, most), (least, least_most)) = (said(ran), said(least));
    [
        Verdict::new(
            format!("{name}: by the PE of the machine it runs on, a user's charge depends on the scheduler's decision"),
            ran,
            most >= DEPENDS,
        ),
        Verdict::new(format!("{name}: by the least PE it does not"), least, least_most <= SAME),
    ]
}

/// The weak point: one machine with few processors and much memory makes memory cheap for everybody.
fn odd_machine(ground: &Ground, settings: &Settings) -> Result<String, ReproduceError> {
    let odd = [WAGAP[0], WAGAP[1], ("odd", 1, &["8", "2Ti"][..], "1")];
    let with = Ground::metacentrum_on(settings, &odd)?;
    let sum = |ground: &Ground| -> Result<f64, ReproduceError> {
        let durations = &ground.workload.columns().duration;
        Ok(ground.equivalents(Combine::default())?.iter().zip(durations).map(|(p, d)| p * d.secs_f64()).sum())
    };
    let before = sum(ground)?;
    let after = with.iter().find(|g| g.name == ground.name).map_or(Ok(before), sum)?;
    Ok(format!(
        "{}: with one more machine of 8 processors and 2 TiB all charges together fall by {:.1} %, wherever jobs run",
        ground.name,
        100.0 * (1.0 - after / before)
    ))
}

fn draw(ground: &Ground, charged: &[[Vec<f64>; 2]], spreads: &[Vec<f64>; 2]) -> Drawn {
    let mut csv = Csv::new(&["user", "placement", "charged_where_it_ran", "charged_least"]);
    for (user, name) in ground.workload.users().iter().enumerate() {
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
        let low = if step == 0 { 0.0 } else { STEPS[step - 1] * SAME };
        let high = STEPS[step] * SAME;
        spreads.iter().filter(|s| **s > low && **s <= high).count() as f64
    };
    let series = [("PE where it ran", 0), ("least PE", 1)].map(|(label, way)| BarSeries {
        label: label.into(),
        series: way,
        values: (0..groups.len()).map(|step| Some(count(&spreads[way], step))).collect(),
    });
    let highest = series.iter().flat_map(|s| s.values.iter().flatten().copied());
    let chart = BarChart {
        caption: Caption {
            name: if ground.name == "trace" {
                "klusacek-rudova-placement-trace"
            } else {
                "klusacek-rudova-placement-generated"
            }
            .into(),
            title: format!("By how much users' charges differ between placements, {}", ground.name),
            description: "How many users' largest charge is how much more than their least, over four placement rules."
                .into(),
        },
        groups_title: "difference".into(),
        groups: groups.map(String::from).to_vec(),
        y: Axis { title: "users".into(), unit: Unit::Number, scale: Scale::linear(highest, true, Unit::Number) },
        series: series.to_vec(),
    };
    Drawn { figure: chart.draw(), csv: csv.finish() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_statement_can_fail() {
        let holds = |ran: &[f64], least: &[f64]| verdicts("log", &[ran.to_vec(), least.to_vec()]).map(|v| v.holds);
        assert_eq!(holds(&[1.0, 1.2], &[1.0, 1.0]), [true, true]);
        assert_eq!(holds(&[1.0, 1.01], &[1.0, 1.001]), [false, false]);
        assert_eq!(spreads(&[[vec![1.0, 0.0], vec![2.0, 0.0]], [vec![3.0, 0.0], vec![2.0, 0.0]]], 0), [3.0]);
    }

    #[test]
    fn what_the_paper_says_of_placement_holds() {
        let outcome = run(&Settings::new(1).tasks(Some(4000))).unwrap();
        outcome.verdicts.iter().for_each(|v| assert!(v.holds, "{v:?}"));
    }
}
