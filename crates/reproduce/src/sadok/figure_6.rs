//! Figure 6: changes of the order of users by the passing of time alone, as the live tree counts them.

use evenhand_documents::{Cell as Value, Csv};
use evenhand_report::chart::{Axis, Caption, Line, LineChart, Scale, Shape, Unit};

use super::simulation_grid::{
    BEST, CAPACITIES, Cell, EXPONENTS, Grid, HALF, Key, SETTING, capacity_named, delta_axis, delta_named, grids,
    skipped,
};
use crate::{Experiment, FigureWithData, Outcome, ReproduceError, Settings, Verdict};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    paper: "sadok",
    figure: "figure-6",
    title: "events in the live tree, by delta and capacity",
    setting: SETTING,
    run,
};

/// The paper's events at 50 % of R, with delta = 1 - 10^-6 and with 1 - 10^-1, and the tasks of its month.
const EVENTS: f64 = 22_718.0;
const HIGHEST_EVENTS: f64 = 5_094_167.0;
const TASKS: f64 = 32e6;
/// Counts per task within this factor of the paper's count as equal.
const FACTOR: f64 = 2.0;

/// The work of the live tree in a run.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Count {
    events: u64,
    /// Scheduled tasks.
    started: u64,
}

impl Count {
    fn per_task(self) -> f64 {
        self.events as f64 / self.started.max(1) as f64
    }
}

/// Counts: one row per capacity, one entry per delta.
type Counts = Vec<Vec<Count>>;

fn run(settings: &Settings) -> Result<Outcome, ReproduceError> {
    let mut outcome = Outcome::default();
    for grid in grids(settings)? {
        let runs = grid.runs(&Cell::all(Some(Key::Sum)))?;
        let counts = runs.iter().map(|run| Count { events: run.order_events, started: run.totals.started });
        let counts: Counts = counts.collect::<Vec<_>>().chunks(EXPONENTS.len()).map(<[Count]>::to_vec).collect();
        outcome.verdicts.extend(verdicts(grid.name, &counts));
        outcome.notes.push(grid.about());
        outcome.figures.push(draw(grid, &counts));
    }
    outcome.notes.extend(skipped(settings));
    Ok(outcome)
}

fn verdicts(workload: &str, counts: &Counts) -> [Verdict; 4] {
    let events = |c: usize, d: usize| counts[c][d].events;
    let pairs = |name: fn(usize, usize) -> String, more: Vec<(usize, usize)>, all: usize| match more.as_slice() {
        [] => format!("at all {all} steps"),
        some => format!(
            "at {} of {all} steps; exceptions: {}",
            all - some.len(),
            some.iter().map(|(c, d)| name(*c, *d)).collect::<Vec<_>>().join(", ")
        ),
    };
    let named = |c: usize, d: usize| format!("{} at {}", capacity_named(c), delta_named(d));
    let places = || (0..CAPACITIES.len()).flat_map(|c| (0..EXPONENTS.len()).map(move |d| (c, d)));
    let more_with_more: Vec<_> = places().filter(|&(c, d)| c > 0 && events(c, d) > events(c - 1, d)).collect();
    let more_nearer: Vec<_> = places().filter(|&(c, d)| d > 0 && events(c, d) > events(c, d - 1)).collect();
    let highest = places().fold((0, 0), |a, b| if events(b.0, b.1) > events(a.0, a.1) { b } else { a });
    let same = |count: Count, paper: f64| {
        let ratio = count.per_task() / (paper / TASKS);
        (1.0 / FACTOR..=FACTOR).contains(&ratio)
    };
    let (best, worst) = (counts[HALF][BEST], counts[highest.0][highest.1]);
    [
        Verdict::new(
            format!("{workload}: events grow when the pool shrinks"),
            pairs(named, more_with_more.clone(), (CAPACITIES.len() - 1) * EXPONENTS.len()),
            more_with_more.is_empty(),
        ),
        Verdict::new(
            format!("{workload}: the nearer delta is to 1, the fewer events"),
            pairs(named, more_nearer.clone(), CAPACITIES.len() * (EXPONENTS.len() - 1)),
            more_nearer.is_empty(),
        ),
        Verdict::new(
            format!(
                "{workload}: at 50 % of R and 1 - 10^-6 22,718 events, {:.2} in 1000 tasks (printed as 7; here: within a \
                 factor of {FACTOR})",
                1000.0 * EVENTS / TASKS
            ),
            format!("{} events, {:.2} in 1000 scheduled tasks", best.events, 1000.0 * best.per_task()),
            same(best, EVENTS),
        ),
        Verdict::new(
            format!(
                "{workload}: the maximum at 50 % of R and 1 - 10^-1, 5,094,167 events, {:.1} in 10 tasks (here: within a factor of \
                 {FACTOR})",
                10.0 * HIGHEST_EVENTS / TASKS
            ),
            format!(
                "the maximum is at {}: {} events, {:.1} in 10 scheduled tasks",
                named(highest.0, highest.1),
                worst.events,
                10.0 * worst.per_task()
            ),
            highest == (HALF, 0) && same(worst, HIGHEST_EVENTS),
        ),
    ]
}

fn draw(grid: &Grid, counts: &Counts) -> FigureWithData {
    let mut csv = Csv::new(&["capacity_of_r", "delta", "events", "tasks_scheduled"]);
    for (capacity, row) in CAPACITIES.iter().zip(counts) {
        for (exponent, count) in EXPONENTS.iter().zip(row) {
            csv.row(&[
                Value::Text(capacity),
                Value::Text(&format!("0.{}", "9".repeat(*exponent))),
                Value::Count(count.events),
                Value::Count(count.started),
            ]);
        }
    }
    let point = |(exponent, count): (&usize, &Count)| (*exponent as f64, Some(count.events as f64));
    let points: Vec<Vec<(f64, Option<f64>)>> =
        counts.iter().map(|row| EXPONENTS.iter().zip(row).map(point).collect()).collect();
    let events = counts.iter().flatten().map(|count| count.events as f64);
    let chart = LineChart {
        caption: Caption {
            name: if grid.name == "trace" { "sadok-figure-6-trace" } else { "sadok-figure-6" }.into(),
            title: format!("Events in the live tree, {}", grid.name),
            description:
                "Swaps of two neighbours in the order of users by the passing of time alone. One line per capacity."
                    .into(),
        },
        x: delta_axis(),
        y: Axis { title: "events".into(), unit: Unit::Number, scale: Scale::log_with_zero(events, Unit::Number) },
        lines: points
            .iter()
            .enumerate()
            .map(|(c, points)| Line { label: capacity_named(c), series: c, shape: Shape::Points(points) })
            .collect(),
    };
    FigureWithData { figure: chart.draw(), csv: csv.finish() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_statement_can_fail() {
        let count = |per_task: f64| Count { events: (per_task * 1e6) as u64, started: 1_000_000 };
        let paper: Counts = (0..6)
            .map(|c| {
                let of = [0.159, 0.1, 0.02, 0.005, 0.001, 0.0007, 0.0001];
                of.map(|per_task| count(per_task * (1.0 - 0.1 * f64::from(c)))).to_vec()
            })
            .collect();
        let holds = |counts: &Counts| verdicts("month", counts).map(|v| v.holds);
        assert_eq!(holds(&paper), [true; 4]);
        let with = |c: usize, d: usize, per_task: f64| {
            let mut counts = paper.clone();
            counts[c][d] = count(per_task);
            counts
        };
        assert_eq!(holds(&with(5, 3, 0.0049)), [false, true, true, true]);
        assert_eq!(holds(&with(0, 6, 0.00075)), [true, false, true, true]);
        assert_eq!(holds(&with(0, 5, 0.0003)), [false, true, false, true]);
        assert_eq!(holds(&with(0, 0, 0.9)), [true, true, true, false]);
        assert_eq!(holds(&with(2, 0, 0.2)), [false, true, true, false]);
    }
}
