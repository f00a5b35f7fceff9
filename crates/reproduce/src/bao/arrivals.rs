//! What Figures 1 to 3 share: a thousand users who come one by one.

use evenhand_documents::{Cell, Csv};
use evenhand_mechanisms::mechanism_named;
use evenhand_model::random::Stream;
use evenhand_model::{Rational, Workload, to_f64};
use evenhand_report::chart::{Axis, Caption, Line, LineChart, Scale, Shape, Unit};
use evenhand_timeline::{Participant, Phase, Scenario, TimelineOptions, divide_over_time};
use evenhand_workload::generate::{GenerateOptions, TraceModel, generate};

use crate::{Drawn, ReproduceError, Settings, Verdict};

pub(super) const SETTING: &str = "1000 users come one by one, each with the demand vector of a task drawn at random from \
     Google's trace (or, without --data, from a workload generated like it), as shares of Google's cell. Each brings \
     a thousandth of CPU and memory. The paper's algorithms cannot be run: Algorithm 3 does not end \
     (docs/src/explanation/errata.md), so both meaningful restatements are: T1 divides what has been brought anew at every \
     arrival, T3 never takes back what it gave. D are the users who need CPU most, S those who need memory most.";

/// As many as in the paper.
const USERS: usize = 1000;
/// CPU and memory of the 12,477 machines at time 0 of ClusterData2011_2, in hundredths of the largest.
const CELL: [(&str, u32); 2] = [("cpu", 660_325), ("mem", 586_275)];
/// The unit of the trace's resources: generated, or as imported, where none is said.
const UNITS: [&str; 2] = ["machines", ""];

/// What there is after an arrival; shares of what has been brought by then.
#[derive(Clone, Copy, Debug)]
pub(super) struct After {
    /// Of each resource what classes D and S hold together.
    pub(super) held: [[f64; 2]; 2],
    /// How many users of D and S there are.
    pub(super) members: [usize; 2],
    /// Of each resource, the least that a user of the class whose bottleneck it is has, and the most that
    /// one of the other class has.
    pub(super) least_and_most: [[f64; 2]; 2],
    /// The most that a user of each class needs of the other resource for one of his own.
    pub(super) slants: [f64; 2],
}

impl After {
    /// The share of a resource that is given away.
    pub(super) fn used(&self, resource: usize) -> f64 {
        self.held[resource].iter().sum()
    }

    pub(super) fn has_both_classes(&self) -> bool {
        self.members.iter().all(|members| *members > 0)
    }
}

/// One way to divide at each arrival.
pub(super) struct Restated {
    /// `T1` or `T3`
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// After each arrival.
    pub(super) after: Vec<After>,
}

/// Both restatements of the experiment.
pub(super) fn restated(settings: &Settings) -> Result<[Restated; 2], ReproduceError> {
    let scenario = scenario(settings)?;
    let of = |name, about, irrevocable| {
        Ok::<_, ReproduceError>(Restated { name, about, after: after(&scenario, irrevocable)? })
    };
    Ok([of("T1", "divided anew at each arrival", false)?, of("T3", "nothing is taken back", true)?])
}

fn after(scenario: &Scenario, irrevocable: bool) -> Result<Vec<After>, ReproduceError> {
    let baa = mechanism_named("baa").ok_or_else(|| ReproduceError::Setup("there is no baa".into()))?;
    let options = TimelineOptions { irrevocable, ..TimelineOptions::default() };
    let timeline = divide_over_time(scenario, baa, &options)?;
    let of_user = |user: &Participant| {
        let demand = &user.phases[0].demand;
        let class = usize::from(demand[1] > demand[0]);
        (class, to_f64(&(&demand[1 - class] / &demand[class])))
    };
    let users: Vec<(usize, f64)> = scenario.users().iter().map(of_user).collect();
    let of_interval = |(k, interval): (usize, &evenhand_timeline::Interval<f64>)| {
        // T1 divides everything at each arrival, which is in proportion to what has been brought.
        let brought = if irrevocable { (k + 1) as f64 / USERS as f64 } else { 1.0 };
        let least_and_most = [[f64::INFINITY, 0.0]; 2];
        let mut after = After { held: [[0.0; 2]; 2], members: [0; 2], least_and_most, slants: [0.0; 2] };
        for (user, (class, slant)) in users.iter().enumerate().take(k + 1) {
            after.members[*class] += 1;
            after.slants[*class] = after.slants[*class].max(*slant);
            for (r, held) in interval.held(scenario, user).into_iter().enumerate() {
                let share = held / brought;
                after.held[r][*class] += share;
                let [least, most] = &mut after.least_and_most[r];
                if r == *class {
                    *least = least.min(share);
                } else {
                    *most = most.max(share);
                }
            }
        }
        after
    };
    Ok(timeline.intervals.iter().enumerate().map(of_interval).collect())
}

/// Users with drawn demands, one a second.
fn scenario(settings: &Settings) -> Result<Scenario, ReproduceError> {
    let generated;
    let trace = match &settings.trace {
        Some(trace) => trace,
        None => {
            let options = GenerateOptions {
                model: TraceModel::Google2011,
                tasks: 100_000,
                users: 400,
                days: 1.0,
                seed: settings.seed,
            };
            generated = generate(&options)?;
            &generated
        }
    };
    let vectors = positive_vectors(trace)?;
    let mut random = Stream::new(settings.seed, "Bao (2015)", 0);
    let last = vectors.last().map_or(0, |(below, _)| *below);
    let users = (0..USERS).map(|k| {
        let drawn = random.below(last);
        let at = vectors.partition_point(|(below, _)| *below <= drawn);
        Participant::new([Phase::new(Rational::from(k), vectors[at].1.clone())])
    });
    Ok(Scenario::new(2, users.collect::<Vec<_>>())?)
}

/// The demand of each row with a positive one of both, as shares of the cell, and how many tasks there
/// are up to it.
fn positive_vectors(trace: &Workload) -> Result<Vec<(u64, [Rational; 2])>, ReproduceError> {
    let mut columns = Vec::new();
    for (name, hundredths) in CELL {
        let expected = "cpu and mem in units of the largest machine, as Google's trace of 2011 has them";
        let position = trace.resources().iter().position(|r| r.name == name && UNITS.contains(&r.unit.as_str()));
        let found = || trace.resources().iter().map(|r| format!("{} ({})", r.name, r.unit)).collect::<Vec<_>>();
        let position = position.ok_or_else(|| ReproduceError::Trace { found: found().join(", "), expected })?;
        columns.push((position, Rational::from(hundredths) / Rational::from(100u8)));
    }
    let mut vectors = Vec::new();
    let mut below = 0;
    for row in 0..trace.len() {
        let share = |i: usize| {
            let (position, cell) = &columns[i];
            trace.resources()[*position].exact(trace.amounts(row)[*position]) / cell
        };
        let demand = [share(0), share(1)];
        if demand.iter().all(|d| !d.is_zero()) {
            below += u64::from(trace.count(row));
            vectors.push((below, demand));
        }
    }
    if vectors.is_empty() {
        let found = "no task that demands both CPU and memory".into();
        return Err(ReproduceError::Trace { found, expected: "at least one" });
    }
    Ok(vectors)
}

/// A curve over the arrivals.
pub(super) struct Curve {
    pub(super) label: &'static str,
    pub(super) series: usize,
    pub(super) of: fn(&After) -> f64,
}

/// Curves over the arrivals under one restatement, and their data.
pub(super) fn draw(figure: u32, what: &str, restated: &Restated, y_title: &str, curves: &[Curve]) -> Drawn {
    let mut columns = vec!["users"];
    columns.extend(curves.iter().map(|curve| curve.label));
    let mut csv = Csv::new(&columns);
    for (k, after) in restated.after.iter().enumerate() {
        let mut row = vec![Cell::Count(k as u64 + 1)];
        row.extend(curves.iter().map(|curve| Cell::Number(Some((curve.of)(after)))));
        csv.row(&row);
    }
    let points: Vec<Vec<(f64, Option<f64>)>> = curves
        .iter()
        .map(|curve| (1..).zip(&restated.after).map(|(k, after)| (f64::from(k), Some((curve.of)(after)))).collect())
        .collect();
    let chart = LineChart {
        caption: Caption {
            name: format!("bao-figure-{figure}-{}", restated.name.to_lowercase()),
            title: format!("{what} ({}: {})", restated.name, restated.about),
            description: format!("{what} after each of {USERS} arrivals."),
        },
        x: Axis {
            title: "users who have come".into(),
            unit: Unit::Number,
            scale: Scale::fixed(0.0, USERS as f64, Unit::Number),
        },
        y: Axis { title: y_title.into(), unit: Unit::Percent, scale: Scale::fixed(0.0, 1.0, Unit::Percent) },
        lines: curves
            .iter()
            .zip(&points)
            .map(|(curve, points)| Line {
                label: curve.label.into(),
                series: curve.series,
                shape: Shape::Points(points),
            })
            .collect(),
    };
    Drawn { figure: chart.draw(), csv: csv.finish() }
}

/// The share of arrivals after which something holds, of those it applies to; and how many those are.
pub(super) fn how_often(after: &[After], applies: fn(&After) -> bool, holds: impl Fn(&After) -> bool) -> (f64, usize) {
    let asked: Vec<&After> = after.iter().filter(|after| applies(after)).collect();
    let count = asked.iter().filter(|after| holds(after)).count();
    (count as f64 / asked.len().max(1) as f64, asked.len())
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// Which resource Figures 2 and 3 are about.
#[derive(Clone, Copy, Debug)]
pub(super) enum Which {
    Cpu,
    Memory,
}

/// What the paper says of both: the class whose bottleneck it is has more of it.
pub(super) fn verdicts(restated: &Restated, which: Which) -> [Verdict; 2] {
    let (resource, name, [own, other]) = match which {
        Which::Cpu => (0, "CPU", ["D", "S"]),
        Which::Memory => (1, "memory", ["S", "D"]),
    };
    let class = |after: &After, class: usize| after.held[resource][class];
    let statement = format!("{}: the {name} resource usage of {own} is higher than that of {other}", restated.name);
    let (often, count) = how_often(&restated.after, After::has_both_classes, |after| {
        class(after, resource) > class(after, 1 - resource)
    });
    let [own_last, other_last] =
        restated.after.last().map_or([0.0; 2], |after| [class(after, resource), class(after, 1 - resource)]);
    // Equal only where a user of D needs as much memory as CPU: the rule itself says no less.
    let (pairs, _) = how_often(&restated.after, After::has_both_classes, |after| {
        let [least, most] = after.least_and_most[resource];
        least >= most * (1.0 - 1e-9)
    });
    [
        Verdict::new(
            format!("{statement}, as a class (the figure's lines)"),
            format!(
                "after {} of {count} arrivals; in the end {own} {}, {other} {}",
                percent(often),
                percent(own_last),
                percent(other_last)
            ),
            often > 0.5,
        ),
        Verdict::new(
            format!("{statement}, user by user ((2.8) and (2.9))"),
            format!("no user of {other} has more than any of {own} after {} of the arrivals", percent(pairs)),
            pairs == 1.0,
        ),
    ]
}
