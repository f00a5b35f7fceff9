//! Figure 4 by class of user: whom the stateful policy serves sooner, which is the paper's claim.
//!
//! The paper states that users who use the system sporadically have their tasks scheduled sooner than those who use it
//! continuously, with little impact on the latter. It shows means over all users. Sporadic users are here those whose part
//! of all use of no resource is more than their entitlement; the others are heavy.

use evenhand_study::record::RunRecord;

use super::figure_4::{Surface, draw, largest, percent};
use super::simulation_grid::{BEST, CAPACITIES, Cell, EXPONENTS, Grid, Key, decay, delta_named};
use crate::{Outcome, ReproduceError, Verdict};

/// The margin of every verdict, set before any result was known: the 10 % that the paper states for all users.
const MARGIN: f64 = 0.1;

/// The mean over the users of a class of their mean waits in one run; `None` without a user whose task started.
fn mean_wait(run: &RunRecord, heavy: &[bool], of_heavy: bool) -> Option<f64> {
    let users = run.users.iter().zip(heavy).filter(|(_, heavy)| **heavy == of_heavy);
    let waits: Vec<f64> = users.filter_map(|(user, _)| user.mean_wait_s).collect();
    (!waits.is_empty()).then(|| waits.iter().sum::<f64>() / waits.len() as f64)
}

/// The mean waits of both classes: sporadic, heavy.
type Waits = [Option<f64>; 2];

fn waits(run: &RunRecord, heavy: &[bool]) -> Waits {
    [false, true].map(|of_heavy| mean_wait(run, heavy, of_heavy))
}

fn reduction(wait: Option<f64>, base: Option<f64>) -> Option<f64> {
    let (wait, base) = wait.zip(base).filter(|(_, base)| *base > 0.0)?;
    Some(1.0 - wait / base)
}

/// Returns the figures, verdicts and notes of a workload.
pub(super) fn compare(grid: &Grid) -> Result<Outcome, ReproduceError> {
    let heavy = grid.heavy_users();
    let drf: Vec<Waits> = grid.runs(&Cell::all(None))?.iter().map(|run| waits(run, &heavy)).collect();
    let under = |key: Key| -> Result<Vec<Vec<Waits>>, ReproduceError> {
        let runs = grid.runs(&Cell::all(Some(key)))?;
        Ok(runs.chunks(EXPONENTS.len()).map(|row| row.iter().map(|run| waits(run, &heavy)).collect()).collect())
    };
    let keys = [under(Key::Sum)?, under(Key::Dominant)?];
    let surface = |which: usize, of_key: &[Vec<Waits>]| -> Surface {
        let row = |(row, drf): (&Vec<Waits>, &Waits)| {
            // Without waits the reduction is undefined; it counts as 0.
            row.iter().map(|waits| reduction(waits[which], drf[which]).unwrap_or(0.0)).collect()
        };
        of_key.iter().zip(&drf).map(row).collect()
    };
    let mut outcome = Outcome::default();
    let [sporadic, of_heavy] = [(0, "sporadic"), (1, "heavy")].map(|(which, class)| {
        let surfaces = keys.each_ref().map(|key| surface(which, key));
        let measured = format!("reduction of the mean of {class} users' waits");
        outcome.figures.push(draw(grid, &format!("-{class}"), &measured, surfaces.each_ref()));
        surfaces
    });
    let best: Vec<Waits> = keys[0].iter().map(|row| row[BEST]).collect();
    let of_best = |surface: &Surface| surface.iter().map(|row| row[BEST]).collect::<Vec<f64>>();
    outcome.verdicts = verdicts(grid.name, &best, &of_best(&sporadic[0]), &of_best(&of_heavy[0]));
    let others: Vec<Waits> = keys[1].iter().map(|row| row[BEST]).collect();
    let with_other_key = verdicts(grid.name, &others, &of_best(&sporadic[1]), &of_best(&of_heavy[1]));
    let changed = outcome.verdicts.iter().zip(&with_other_key).filter(|(a, b)| a.holds != b.holds).count();
    let heavy_count = heavy.iter().filter(|heavy| **heavy).count();
    outcome.notes = vec![
        format!(
            "{}, by class: {} sporadic users and {heavy_count} heavy ones, who used more than an equal part of some \
             resource; with the key of Eq. 5 {changed} of {} verdicts by class change",
            grid.name,
            heavy.len() - heavy_count,
            with_other_key.len()
        ),
        best_delta(grid, &sporadic[0]),
    ];
    Ok(outcome)
}

/// Tests the paper's claim on the waits of both classes under sdrf at 1 - 10^-6, and their reductions, by capacity.
fn verdicts(workload: &str, waits: &[Waits], sporadic: &[f64], heavy: &[f64]) -> Vec<Verdict> {
    let list = |numbers: &[f64]| numbers.iter().map(|r| percent(*r)).collect::<Vec<_>>().join(", ");
    let below: Vec<Option<f64>> = waits.iter().map(|[sporadic, heavy]| reduction(*sporadic, *heavy)).collect();
    let verdict = |statement: &str, measured: String, holds: bool| {
        let statement =
            format!("{workload}, by class at 1 - 10^-6: {statement} at every capacity; margin set before looking)");
        Verdict::new(statement, format!("from 50 to 100 % of R: {measured}"), holds)
    };
    vec![
        verdict(
            "sporadic users are served sooner than heavy ones (their mean wait is 10 % or more below",
            below.iter().map(|r| r.map_or("no waits".into(), percent)).collect::<Vec<_>>().join(", "),
            below.iter().all(|r| r.is_some_and(|r| r >= MARGIN)),
        ),
        verdict(
            "sporadic users wait less than under drf (by 10 % or more",
            list(sporadic),
            sporadic.iter().all(|r| *r >= MARGIN),
        ),
        verdict(
            "with little impact on heavy users (they wait at most 10 % longer than under drf",
            list(heavy),
            heavy.iter().all(|r| *r >= -MARGIN),
        ),
    ]
}

/// Reports the best delta for sporadic users beside the length of the workload.
fn best_delta(grid: &Grid, sporadic: &Surface) -> String {
    let days = grid.days();
    let mut best = vec![0; EXPONENTS.len()];
    sporadic.iter().for_each(|row| best[largest(row)] += 1);
    let found: Vec<String> = (0..EXPONENTS.len())
        .filter(|exponent| best[*exponent] > 0)
        .map(|exponent| {
            let tau = decay(EXPONENTS[exponent]).tau_s() / 86_400.0;
            format!(
                "{} (time constant {tau:.3} days, {:.3} of the length) at {} of {} capacities",
                delta_named(exponent),
                tau / days.max(f64::MIN_POSITIVE),
                best[exponent],
                CAPACITIES.len()
            )
        })
        .collect();
    format!("{}: the best delta of sporadic users for a length of {days:.1} days is {}", grid.name, found.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenhand_study::record::UserRecord;

    #[test]
    fn each_verdict_can_fail_and_has_its_margin() {
        let holds = |wait: [f64; 2], sporadic: f64, heavy: f64| -> Vec<bool> {
            let mut waits = vec![[Some(1.0), Some(10.0)]; 6];
            waits[3] = wait.map(Some);
            let with = |all: f64, one: f64| [all, all, all, one, all, all];
            verdicts("month", &waits, &with(0.5, sporadic), &with(0.0, heavy)).iter().map(|v| v.holds).collect()
        };
        assert_eq!(holds([8.99, 10.0], 0.1, -0.1), [true; 3]);
        assert_eq!(holds([9.01, 10.0], 0.1, -0.1), [false, true, true]);
        assert_eq!(holds([8.99, 10.0], 0.099, -0.1), [true, false, true]);
        assert_eq!(holds([8.99, 10.0], 0.1, -0.101), [true, true, false]);
        let none = verdicts("month", &[[Some(1.0), None]], &[0.5], &[0.0]);
        assert!(!none[0].holds && none[0].measured.ends_with("no waits"), "{none:?}");
    }

    #[test]
    fn the_mean_of_a_class_counts_each_of_its_users_once() {
        let user = |mean_wait_s| UserRecord { mean_wait_s, ..UserRecord::default() };
        let users = [Some(1.0), Some(3.0), None, Some(10.0)].map(user).to_vec();
        let run = RunRecord { users, ..RunRecord::default() };
        assert_eq!(waits(&run, &[false, false, false, true]), [Some(2.0), Some(10.0)]);
        assert_eq!(waits(&run, &[false; 4])[1], None);
    }
}
