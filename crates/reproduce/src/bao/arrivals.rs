//! The simulation of Figures 1 to 3: a thousand users arrive one by one.

use evenhand_documents::{Cell, Csv};
use evenhand_mechanisms::mechanism_named;
use evenhand_model::random::Stream;
use evenhand_model::{Rational, Workload, to_f64};
use evenhand_report::chart::{Axis, Caption, Line, LineChart, Scale, Shape, Unit};
use evenhand_timeline::{Participant, Phase, Scenario, TimelineOptions, divide_over_time};
use evenhand_workload::generate::{GenerateOptions, TraceModel, generate};

use crate::{FigureWithData, ReproduceError, Settings, Verdict};

pub(super) const SETTING: &str = "1000 users arrive one by one, each with the demand vector of a task drawn at random from \
     Google's trace (or, without --data, from a workload generated like it), as shares of Google's cell. Each contributes \
     a thousandth of CPU and memory. The paper's algorithms cannot be run, since Algorithm 3 does not terminate \
     (docs/src/explanation/errata.md). Two restatements are run instead: T1 divides the contributed capacity again at every \
     arrival, T3 never takes back what it gave. D is the class of users whose bottleneck is the CPU, S of those whose \
     bottleneck is memory.";

/// The number of users in the paper.
const USERS: usize = 1000;
/// CPU and memory of the 12,477 machines at time 0 of ClusterData2011_2, in hundredths of the largest.
const CELL: [(&str, u32); 2] = [("cpu", 660_325), ("mem", 586_275)];
/// Accepted units of the trace's resources: that of generated traces, and that of imported ones without a unit.
const UNITS: [&str; 2] = ["machines", ""];

/// The state after an arrival. Amounts are shares of the capacity contributed so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArrivalState {
    /// By resource: the shares that the classes D and S hold.
    pub(super) held: [[f64; 2]; 2],
    /// The number of users of D and of S.
    pub(super) members: [usize; 2],
    /// By resource: the lowest share of a user of the class whose bottleneck it is, and the highest share of a user of
    /// the other class.
    pub(super) lowest_and_highest: [[f64; 2]; 2],
    /// By class: the highest demand of a user for the other resource per unit of its bottleneck resource.
    pub(super) cross_demands: [f64; 2],
}

impl ArrivalState {
    /// Returns the allocated share of a resource.
    pub(super) fn used(&self, resource: usize) -> f64 {
        self.held[resource].iter().sum()
    }

    pub(super) fn has_both_classes(&self) -> bool {
        self.members.iter().all(|members| *members > 0)
    }
}

/// A restatement of the paper's algorithm, with its result.
pub(super) struct Restatement {
    /// `T1` or `T3`
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// The state after each arrival.
    pub(super) states: Vec<ArrivalState>,
}

/// Runs both restatements.
pub(super) fn restatements(settings: &Settings) -> Result<[Restatement; 2], ReproduceError> {
    let scenario = scenario(settings)?;
    let of = |name, about, irrevocable| {
        Ok::<_, ReproduceError>(Restatement { name, about, states: states(&scenario, irrevocable)? })
    };
    Ok([of("T1", "divided again at each arrival", false)?, of("T3", "nothing is taken back", true)?])
}

fn states(scenario: &Scenario, irrevocable: bool) -> Result<Vec<ArrivalState>, ReproduceError> {
    let baa = mechanism_named("baa").ok_or_else(|| ReproduceError::Setup("there is no mechanism baa".into()))?;
    let options = TimelineOptions { irrevocable, ..TimelineOptions::default() };
    let timeline = divide_over_time(scenario, baa, &options)?;
    let of_user = |user: &Participant| {
        let demand = &user.phases[0].demand;
        let class = usize::from(demand[1] > demand[0]);
        (class, to_f64(&(&demand[1 - class] / &demand[class])))
    };
    let users: Vec<(usize, f64)> = scenario.users().iter().map(of_user).collect();
    let of_interval = |(k, interval): (usize, &evenhand_timeline::Interval<f64>)| {
        // T1 divides the whole capacity at each arrival; the result is in proportion to the contributed capacity.
        let contributed = if irrevocable { (k + 1) as f64 / USERS as f64 } else { 1.0 };
        let lowest_and_highest = [[f64::INFINITY, 0.0]; 2];
        let mut after =
            ArrivalState { held: [[0.0; 2]; 2], members: [0; 2], lowest_and_highest, cross_demands: [0.0; 2] };
        for (user, (class, cross_demand)) in users.iter().enumerate().take(k + 1) {
            after.members[*class] += 1;
            after.cross_demands[*class] = after.cross_demands[*class].max(*cross_demand);
            for (r, held) in interval.held(scenario, user).into_iter().enumerate() {
                let share = held / contributed;
                after.held[r][*class] += share;
                let [lowest, highest] = &mut after.lowest_and_highest[r];
                if r == *class {
                    *lowest = lowest.min(share);
                } else {
                    *highest = highest.max(share);
                }
            }
        }
        after
    };
    Ok(timeline.intervals.iter().enumerate().map(of_interval).collect())
}

/// Draws the users' demands; one user arrives per second.
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

/// Returns the demand of each row that demands both resources, as shares of the cell, with the cumulative number of
/// tasks up to and including it.
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
    pub(super) of: fn(&ArrivalState) -> f64,
}

/// Draws curves over the arrivals under one restatement.
pub(super) fn draw(
    figure: u32,
    title: &str,
    restatement: &Restatement,
    y_title: &str,
    curves: &[Curve],
) -> FigureWithData {
    let mut columns = vec!["users"];
    columns.extend(curves.iter().map(|curve| curve.label));
    let mut csv = Csv::new(&columns);
    for (k, state) in restatement.states.iter().enumerate() {
        let mut row = vec![Cell::Count(k as u64 + 1)];
        row.extend(curves.iter().map(|curve| Cell::Number(Some((curve.of)(state)))));
        csv.row(&row);
    }
    let points: Vec<Vec<(f64, Option<f64>)>> = curves
        .iter()
        .map(|curve| (1..).zip(&restatement.states).map(|(k, state)| (f64::from(k), Some((curve.of)(state)))).collect())
        .collect();
    let chart = LineChart {
        caption: Caption {
            name: format!("bao-figure-{figure}-{}", restatement.name.to_lowercase()),
            title: format!("{title} ({}: {})", restatement.name, restatement.about),
            description: format!("{title} after each of {USERS} arrivals."),
        },
        x: Axis {
            title: "users who have arrived".into(),
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
    FigureWithData { figure: chart.draw(), csv: csv.finish() }
}

/// Returns the share of the states that satisfy `holds` among those that satisfy `applies`, and the number of the
/// latter.
pub(super) fn how_often(
    states: &[ArrivalState],
    applies: fn(&ArrivalState) -> bool,
    holds: impl Fn(&ArrivalState) -> bool,
) -> (f64, usize) {
    let selected: Vec<&ArrivalState> = states.iter().filter(|state| applies(state)).collect();
    let count = selected.iter().filter(|state| holds(state)).count();
    (count as f64 / selected.len().max(1) as f64, selected.len())
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// The resource of Figure 2 or 3.
#[derive(Clone, Copy, Debug)]
pub(super) enum FigureResource {
    Cpu,
    Memory,
}

/// Tests the paper's statement about both figures: the class whose bottleneck the resource is uses more of it.
pub(super) fn verdicts(restatement: &Restatement, figure: FigureResource) -> [Verdict; 2] {
    let (resource, name, [own, other]) = match figure {
        FigureResource::Cpu => (0, "CPU", ["D", "S"]),
        FigureResource::Memory => (1, "memory", ["S", "D"]),
    };
    let class = |state: &ArrivalState, class: usize| state.held[resource][class];
    let statement = format!("{}: the {name} resource usage of {own} is higher than that of {other}", restatement.name);
    let (often, count) = how_often(&restatement.states, ArrivalState::has_both_classes, |state| {
        class(state, resource) > class(state, 1 - resource)
    });
    let [own_last, other_last] =
        restatement.states.last().map_or([0.0; 2], |state| [class(state, resource), class(state, 1 - resource)]);
    // Equality is possible only if a user of D needs as much memory as CPU; the rule excludes anything lower.
    let (pairs, _) = how_often(&restatement.states, ArrivalState::has_both_classes, |state| {
        let [lowest, highest] = state.lowest_and_highest[resource];
        lowest >= highest * (1.0 - 1e-9)
    });
    [
        Verdict::new(
            format!("{statement}, as a class (the figure's lines)"),
            format!(
                "after {} of {count} arrivals; at the end {own} uses {}, {other} {}",
                percent(often),
                percent(own_last),
                percent(other_last)
            ),
            often > 0.5,
        ),
        Verdict::new(
            format!("{statement}, user by user ((2.8) and (2.9))"),
            format!("after {} of the arrivals no user of {other} has more than a user of {own}", percent(pairs)),
            pairs == 1.0,
        ),
    ]
}
