//! Figure 5: the completed part of each user's tasks, under drf and under sdrf.

use evenhand_documents::{Cell as Value, Csv};
use evenhand_report::chart::{Axis, Bubble, Caption, Scale, ScatterChart, Side, Unit};
use evenhand_simulator::UserRecord;
use evenhand_study::compare;
use evenhand_study::record::RunRecord;

use super::simulation_grid::{BEST, Cell, Grid, HALF, Key, SETTING, USERS, grids, skipped};
use crate::{Experiment, FigureWithData, Outcome, ReproduceError, Settings, Verdict};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    paper: "sadok",
    figure: "figure-5",
    title: "completed tasks of each user, sdrf against drf",
    setting: SETTING,
    run,
};

/// The number of the paper's users who complete fewer tasks.
const FEWER: u64 = 9;
/// The largest loss of a completion ratio that counts as small; the paper gives no number.
const SMALL: f64 = 0.05;

fn run(settings: &Settings) -> Result<Outcome, ReproduceError> {
    let mut outcome = Outcome::default();
    for grid in grids(settings)? {
        let runs =
            grid.runs(&[Cell::drf(HALF), Cell::sdrf(HALF, Key::Sum, BEST), Cell::sdrf(HALF, Key::Dominant, BEST)])?;
        let (drf, sdrf, dominant) = (runs[0], runs[1], runs[2]);
        outcome.verdicts.extend(verdicts(grid.name, drf, sdrf));
        outcome.notes.push(other_key(grid.name, drf, dominant));
        outcome.notes.push(grid.about());
        outcome.figures.push(draw(grid, drf, sdrf));
    }
    outcome.notes.extend(skipped(settings));
    Ok(outcome)
}

/// Returns the largest loss of a user's completion ratio, as a difference of two ratios.
fn largest_loss(drf: &RunRecord, sdrf: &RunRecord) -> f64 {
    let losses = drf.users.iter().zip(&sdrf.users).map(|(a, b)| a.completion_ratio - b.completion_ratio);
    losses.fold(0.0, f64::max)
}

fn verdicts(workload: &str, drf: &RunRecord, sdrf: &RunRecord) -> [Verdict; 3] {
    let compared = compare(sdrf, drf);
    let (more, fewer, users) = (compared.complete_more, compared.complete_fewer, drf.users.len() as u64);
    // A user who completes everything under drf cannot complete more.
    let partly = drf.users.iter().filter(|u| u.totals.completed + u.totals.rejected < u.totals.submitted).count();
    let loss = largest_loss(drf, sdrf);
    [
        Verdict::new(
            format!("{workload}: most users complete more tasks under sdrf"),
            format!("{more} of {users} complete more; {partly} do not complete all their tasks under drf"),
            2 * more > users,
        ),
        Verdict::new(
            format!("{workload}: only {FEWER} of {USERS} complete fewer ({:.1} %)", share(FEWER, u64::from(USERS))),
            format!("{fewer} of {users} ({:.1} %)", share(fewer, users)),
            fewer * u64::from(USERS) <= FEWER * users,
        ),
        Verdict::new(
            format!(
                "{workload}: the loss of these users is small (here: at most {:.0} % of the tasks that they submit)",
                100.0 * SMALL
            ),
            format!("at most {:.2} %", 100.0 * loss),
            loss <= SMALL,
        ),
    ]
}

fn other_key(workload: &str, drf: &RunRecord, dominant: &RunRecord) -> String {
    let compared = compare(dominant, drf);
    format!(
        "{workload}, with the key of Eq. 5 (sdrf-dominant): {} complete more, {} fewer; these lose at most {:.2} %",
        compared.complete_more,
        compared.complete_fewer,
        100.0 * largest_loss(drf, dominant)
    )
}

fn share(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

fn draw(grid: &Grid, drf: &RunRecord, sdrf: &RunRecord) -> FigureWithData {
    let mut csv = Csv::new(&["user", "submitted", "completed_drf", "completed_sdrf", "ratio_drf", "ratio_sdrf"]);
    let mut bubbles = Vec::new();
    for (subject, (a, b)) in drf.users.iter().zip(&sdrf.users).enumerate() {
        let ratios = [a, b].map(|user: &UserRecord| user.completion_ratio);
        csv.row(&[
            Value::Text(&a.name),
            Value::Count(a.totals.submitted),
            Value::Count(a.totals.completed),
            Value::Count(b.totals.completed),
            Value::Number(Some(ratios[0])),
            Value::Number(Some(ratios[1])),
        ]);
        bubbles.push(Bubble {
            subject,
            name: a.name.clone(),
            label: format!(
                "{}: {:.1} % under drf, {:.1} % under sdrf; {} tasks",
                a.name,
                100.0 * ratios[0],
                100.0 * ratios[1],
                a.totals.submitted
            ),
            at: Some((ratios[0], ratios[1])),
            count: a.totals.submitted,
            side: match a.totals.completed.cmp(&b.totals.completed) {
                std::cmp::Ordering::Less => Side::Better,
                std::cmp::Ordering::Equal => Side::Same,
                std::cmp::Ordering::Greater => Side::Worse,
            },
        });
    }
    let axis = |policy: &str| Axis {
        title: format!("completed / submitted under {policy}"),
        unit: Unit::Percent,
        scale: Scale::fixed(0.0, 1.0, Unit::Percent),
    };
    let chart = ScatterChart {
        caption: Caption {
            name: if grid.name == "trace" { "sadok-figure-5-trace" } else { "sadok-figure-5" }.into(),
            title: format!("Completed tasks, {}: sdrf against drf", grid.name),
            description:
                "Each bubble is a user; its size is the logarithm of the tasks submitted. 50 % of R, delta = 1 - 10^-6."
                    .into(),
        },
        x: axis("drf"),
        y: axis("sdrf"),
        bubbles,
        above: "completes more under sdrf".into(),
        below: "completes fewer under sdrf".into(),
        counted: "tasks".into(),
    };
    FigureWithData { figure: chart.draw(), csv: csv.finish() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenhand_simulator::Totals;

    fn run(completed: &[u64]) -> RunRecord {
        let user = |&completed: &u64| UserRecord {
            totals: Totals { submitted: 100, completed, ..Totals::default() },
            completion_ratio: completed as f64 / 100.0,
            ..UserRecord::default()
        };
        RunRecord { users: completed.iter().map(user).collect(), ..RunRecord::default() }
    }

    #[test]
    fn each_statement_can_fail() {
        let holds = |before: &[u64], after: &[u64]| verdicts("month", &run(before), &run(after)).map(|v| v.holds);
        assert_eq!(holds(&[10, 20, 30], &[11, 21, 30]), [true, true, true]);
        assert_eq!(holds(&[10, 20, 30], &[11, 20, 30]), [false, true, true]);
        assert_eq!(holds(&[10, 20, 30], &[11, 21, 29]), [true, false, true]);
        assert_eq!(holds(&[10, 20, 30], &[11, 21, 20]), [true, false, false]);
    }
}
