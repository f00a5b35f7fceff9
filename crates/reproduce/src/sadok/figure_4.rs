//! Figure 4: reductions of users' waits, sdrf against drf.

use evenhand_documents::{Cell as Value, Csv};
use evenhand_report::chart::{Axis, Caption, Line, LineChart, Scale, Shape, Unit};
use evenhand_study::record::{ComparisonRecord, RunRecord};

use super::figure_4_classes;
use super::simulation_grid::{
    BEST, CAPACITIES, Cell, EXPONENTS, Grid, HALF, Key, SETTING, capacity_named, delta_axis, delta_named, grids,
    skipped,
};
use crate::{Experiment, FigureWithData, Outcome, ReproduceError, Settings, Verdict};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    paper: "sadok",
    figure: "figure-4",
    title: "waits under sdrf against drf, by delta and capacity",
    setting: SETTING,
    run,
};

/// The paper's "mean reduction of users' waits" can be read in two ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// The reduction of the mean over users of their mean waits.
    OfTheMean,
    /// The mean over users of the reduction of their mean wait.
    Each,
}

impl Reading {
    const ALL: [Reading; 2] = [Reading::OfTheMean, Reading::Each];

    fn name(self) -> &'static str {
        match self {
            Reading::OfTheMean => "reduction of the mean of users' waits",
            Reading::Each => "mean of each user's reduction",
        }
    }

    /// Returns what the names of its figures add to that of Figure 4.
    fn slug(self) -> &'static str {
        match self {
            Reading::OfTheMean => "",
            Reading::Each => "-each",
        }
    }
}

/// Reductions: one row per capacity, one entry per delta.
pub(super) type Surface = Vec<Vec<f64>>;

fn surface(compared: &[Vec<ComparisonRecord>], reading: Reading) -> Surface {
    let of = |c: &ComparisonRecord| match reading {
        Reading::OfTheMean => c.users_mean_wait_reduction,
        Reading::Each => c.mean_user_wait_reduction,
    };
    // Without waits the reduction is undefined; it counts as 0.
    compared.iter().map(|row| row.iter().map(|c| of(c).unwrap_or(0.0)).collect()).collect()
}

fn run(settings: &Settings) -> Result<Outcome, ReproduceError> {
    let mut outcome = Outcome::default();
    for grid in grids(settings)? {
        let compared = [grid.against_drf(Key::Sum)?, grid.against_drf(Key::Dominant)?];
        for reading in Reading::ALL {
            let [sum, dominant] = compared.each_ref().map(|compared| surface(compared, reading));
            let [verdicts, others] = [&sum, &dominant].map(|surface| verdicts(grid.name, reading, surface));
            outcome.figures.push(draw(grid, reading.slug(), reading.name(), [&sum, &dominant]));
            outcome.notes.push(other_key(grid.name, reading, [&sum, &dominant], [&verdicts, &others]));
            outcome.verdicts.extend(verdicts);
        }
        let classes = figure_4_classes::compare(grid)?;
        outcome.figures.extend(classes.figures);
        outcome.verdicts.extend(classes.verdicts);
        outcome.notes.push(grid.about());
        outcome.notes.extend(classes.notes);
        outcome.notes.push(single_users(grid)?);
    }
    outcome.notes.extend(skipped(settings));
    Ok(outcome)
}

/// Tests the paper's statements about the figure.
fn verdicts(workload: &str, reading: Reading, surface: &Surface) -> Vec<Verdict> {
    let named = reading.name();
    let verdict = |statement: &str, measured: String, holds: bool| {
        Verdict::new(format!("{workload}, {named}: {statement}"), measured, holds)
    };
    let largest: Vec<usize> = surface.iter().map(|row| largest(row)).collect();
    let at = |c: usize| {
        format!("{} at {} ({})", delta_named(largest[c]), capacity_named(c), percent(surface[c][largest[c]]))
    };
    let elsewhere: Vec<String> = (0..CAPACITIES.len()).filter(|c| largest[*c] != BEST).map(at).collect();
    let count = CAPACITIES.len() - elsewhere.len();
    let exceptions = if elsewhere.is_empty() { String::new() } else { format!("; elsewhere {}", elsewhere.join(", ")) };
    let best: Vec<f64> = surface.iter().map(|row| row[BEST]).collect();
    let lowest = best.iter().copied().fold(f64::INFINITY, f64::min);
    let list: Vec<String> = best.iter().map(|r| percent(*r)).collect();
    let (first, last) = (0, EXPONENTS.len() - 1);
    let farthest = surface.iter().map(|row| row[first]).fold(0.0, |a: f64, b| if b.abs() > a.abs() { b } else { a });
    let ends: Vec<String> = surface.iter().map(|row| percent(row[last])).collect();
    vec![
        verdict(
            "largest at delta = 1 - 10^-6 at every load",
            format!("at {count} of {} capacities{exceptions}", CAPACITIES.len()),
            count == CAPACITIES.len(),
        ),
        verdict(
            "at 1 - 10^-6 above 10 % in all scenarios",
            format!("from 50 to 100 % of R: {}", list.join(", ")),
            lowest > 0.1,
        ),
        verdict(
            "with a small delta equivalent to drf (within 1 % at 1 - 10^-1)",
            format!("the largest difference is {}", percent(farthest)),
            farthest.abs() <= 0.01,
        ),
        verdict(
            "with delta near 1 approaches drf (at 1 - 10^-7 nearer to drf than at the best delta)",
            format!("at 1 - 10^-7, from 50 to 100 % of R: {}", ends.join(", ")),
            surface.iter().zip(&largest).all(|(row, largest)| row[last].abs() < row[*largest].abs()),
        ),
        verdict(
            "more evident with fewer resources (at 1 - 10^-6 waits are reduced at 50 % of R, and more than at 100 %; no \
             margin was set)",
            format!("{} against {}", list[0], list[list.len() - 1]),
            // Of two increases the smaller one is no evidence of a reduction.
            best[0] > 0.0 && best[0] > best[best.len() - 1],
        ),
    ]
}

/// Returns the index of the largest value; the first of equal ones.
pub(super) fn largest(row: &[f64]) -> usize {
    (0..row.len()).fold(0, |a, b| if row[b] > row[a] { b } else { a })
}

/// Reports the results under the key of Eq. 5.
fn other_key(
    workload: &str,
    reading: Reading,
    [sum, other]: [&Surface; 2],
    [of_sum, of_other]: [&[Verdict]; 2],
) -> String {
    let pairs = sum.iter().flatten().zip(other.iter().flatten());
    let apart = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    let changed: Vec<&str> = of_sum
        .iter()
        .zip(of_other)
        .filter(|(a, b)| a.holds != b.holds)
        .map(|(_, b)| b.statement.split_once(": ").map_or("", |(_, statement)| statement))
        .collect();
    let verdicts = match changed.as_slice() {
        [] => "the verdicts are the same".into(),
        changed => format!("these verdicts change: {}", changed.join("; ")),
    };
    let best: Vec<String> = other.iter().map(|row| percent(row[BEST])).collect();
    format!(
        "{workload}, {}, with the key of Eq. 5 (sdrf-dominant): at 1 - 10^-6, from 50 to 100 % of R: {}; over the grid \
         at most {:.1} percentage points from the results of Algorithm 1; {verdicts}",
        reading.name(),
        best.join(", "),
        100.0 * apart
    )
}

/// Reports why the two readings differ: single users dominate the second.
fn single_users(grid: &Grid) -> Result<String, ReproduceError> {
    let runs = grid.runs(&[Cell::drf(HALF), Cell::sdrf(HALF, Key::Sum, BEST)])?;
    let (drf, sdrf): (&RunRecord, &RunRecord) = (runs[0], runs[1]);
    let waits = drf.users.iter().zip(&sdrf.users).filter_map(|(a, b)| Some((a.mean_wait_s?, b.mean_wait_s?)));
    let mut each: Vec<(f64, f64)> = waits.filter(|(a, _)| *a > 0.0).map(|(a, b)| (1.0 - b / a, a)).collect();
    each.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (Some((lowest, wait)), Some((median, _))) = (each.first(), each.get(each.len() / 2)) else {
        return Ok(format!("{}: at 50 % of R and 1 - 10^-6 no user waits", grid.name));
    };
    let shorter = each.iter().filter(|(reduction, _)| *reduction > 0.0).count();
    let longer = each.iter().filter(|(reduction, _)| *reduction < 0.0).count();
    Ok(format!(
        "{}: at 50 % of R and 1 - 10^-6 {shorter} users wait less and {longer} more; half of the users reduce their wait by {} \
         or more; users who hardly wait under drf dominate the mean of each user's reduction: the minimum is {}, of a \
         user who waits {wait:.3} s under drf",
        grid.name,
        percent(*median),
        percent(*lowest)
    ))
}

/// Draws one surface; `slug` is what the name of the figure adds, `measured` what is drawn.
pub(super) fn draw(grid: &Grid, slug: &str, measured: &str, [sum, dominant]: [&Surface; 2]) -> FigureWithData {
    let mut csv = Csv::new(&["capacity_of_r", "delta", "reduction_sdrf", "reduction_sdrf_dominant"]);
    let mut lines = Vec::new();
    for (c, row) in sum.iter().enumerate() {
        for (d, reduction) in row.iter().enumerate() {
            csv.row(&[
                Value::Text(CAPACITIES[c]),
                Value::Text(&format!("0.{}", "9".repeat(EXPONENTS[d]))),
                Value::Number(Some(*reduction)),
                Value::Number(Some(dominant[c][d])),
            ]);
        }
        lines.push(row.iter().enumerate().map(|(d, r)| (EXPONENTS[d] as f64, Some(*r))).collect::<Vec<_>>());
    }
    let name = format!("sadok-figure-4{slug}{}", if grid.name == "trace" { "-trace" } else { "" });
    let chart = LineChart {
        caption: Caption {
            name,
            title: format!("Waits under sdrf against drf, {}: {measured}", grid.name),
            description: format!("{measured}. Above 0 users wait less under sdrf. One line per capacity."),
        },
        x: delta_axis(),
        y: Axis {
            title: "reduction".into(),
            unit: Unit::Percent,
            scale: Scale::linear(sum.iter().flatten().copied(), true, Unit::Percent),
        },
        lines: lines
            .iter()
            .enumerate()
            .map(|(c, points)| Line { label: capacity_named(c), series: c, shape: Shape::Points(points) })
            .collect(),
    };
    FigureWithData { figure: chart.draw(), csv: csv.finish() }
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_hold_on_the_papers_surface_and_each_can_fail() {
        let paper: Surface = (0..6)
            .map(|c| [0.0, 0.01, 0.03, 0.06, 0.11, 0.3, 0.05].map(|r: f64| r * (1.0 - 0.1 * f64::from(c))).to_vec())
            .collect();
        let holds = |surface: &Surface| -> Vec<bool> {
            verdicts("month", Reading::OfTheMean, surface).iter().map(|v| v.holds).collect()
        };
        assert_eq!(holds(&paper), [true; 5]);
        let with = |c: usize, d: usize, reduction: f64| {
            let mut surface = paper.clone();
            surface[c][d] = reduction;
            surface
        };
        assert_eq!(holds(&with(3, 4, 0.9)), [false, true, true, true, true]);
        assert_eq!(holds(&with(5, 5, 0.09)), [true, false, true, true, true]);
        assert_eq!(holds(&with(2, 0, -0.02)), [true, true, false, true, true]);
        assert_eq!(holds(&with(2, 6, -0.4)), [true, true, true, false, true]);
        assert_eq!(holds(&with(5, 5, 0.31)), [true, true, true, true, false]);
        let mut increases = with(0, 5, -0.1);
        increases[5][5] = -0.2;
        assert!(!holds(&increases)[4], "a smaller increase is no reduction");
        let measured = &verdicts("month", Reading::OfTheMean, &with(3, 4, 0.9))[0].measured;
        assert_eq!(measured, "at 5 of 6 capacities; elsewhere 1 - 10^-5 at 80 % of R (90.0 %)");
    }
}
