//! Which figures a study has, and the data of each.

use evenhand_study::record::{RunRecord, UserRecord};

use crate::chart::{
    Axis, BarChart, BarSeries, Bubble, Caption, Figure, Line, LineChart, Scale, ScatterChart, Shape, Side, Unit,
};
use crate::format::{ABSENT, duration, grouped, ratio};
use crate::names::Names;
use crate::view::{Pair, View};
use evenhand_documents::{Cell, Csv};

/// A figure, its data, and a sentence or two that say how to read it.
pub(crate) struct Drawn {
    pub(crate) figure: Figure,
    pub(crate) csv: String,
    pub(crate) explanation: String,
}

/// The figures of one policy against the first at one capacity.
pub(crate) struct PairFigures {
    pub(crate) capacity: usize,
    pub(crate) policy: usize,
    pub(crate) waits: Drawn,
    /// Not drawn if every user completes everything in all runs.
    pub(crate) completion: Option<Drawn>,
}

/// All figures, by where they stand in the page.
pub(crate) struct Figures {
    pub(crate) reductions: Vec<Drawn>,
    pub(crate) pairs: Vec<PairFigures>,
    /// By capacity.
    pub(crate) over_time: Vec<Vec<Drawn>>,
}

impl Figures {
    /// All of them, in the order of the page.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Drawn> {
        let pairs = self.pairs.iter().flat_map(|pair| std::iter::once(&pair.waits).chain(&pair.completion));
        self.reductions.iter().chain(pairs).chain(self.over_time.iter().flatten())
    }
}

/// Whether every user completes all tasks in this run.
pub(crate) fn all_complete(run: &RunRecord) -> bool {
    run.users.iter().all(|user| user.completion_ratio == 1.0)
}

/// Draws all figures.
pub(crate) fn draw_figures(view: &View<'_>) -> Figures {
    let mut names = Names::default();
    let pairs = view.pairs();
    let reductions = if pairs.is_empty() { Vec::new() } else { reductions(view, &mut names) };
    // One range of waits for the whole study, so that capacities and policies can be compared by eye.
    let waits = view.record.runs.iter().flat_map(|run| run.users.iter().filter_map(|user| user.mean_wait_s));
    let wait_scale = Scale::log_with_zero(waits, Unit::Seconds);
    let complete = view.record.runs.iter().all(all_complete);
    let pairs = pairs
        .into_iter()
        .map(|(capacity, policy, pair)| PairFigures {
            capacity,
            policy,
            waits: user_waits(view, (capacity, policy), &pair, wait_scale, &mut names),
            completion: (!complete).then(|| user_completion(view, (capacity, policy), &pair, &mut names)),
        })
        .collect();
    let over_time = (0..view.capacities.len()).map(|capacity| over_time(view, capacity, &mut names)).collect();
    Figures { reductions, pairs, over_time }
}

/// The reductions of waits by capacity, as in Figure 4 of paper 001: of the mean, and the mean of.
fn reductions(view: &View<'_>, names: &mut Names) -> Vec<Drawn> {
    let base = view.base();
    let of_mean = reduction(view, names, "users-mean-wait-reduction", |pair| pair.comparison.users_mean_wait_reduction);
    let mean_of = reduction(view, names, "mean-user-wait-reduction", |pair| pair.comparison.mean_user_wait_reduction);
    let capacities = if view.capacities.len() > 1 { " at each capacity" } else { "" };
    [
        of_mean(
            format!("Reduction of the users' mean wait against {base}"),
            format!(
                "By how much the mean over users of their mean waits is shorter than under {base}{capacities}; below \
                 zero it is longer. Users with long waits count most."
            ),
        ),
        mean_of(
            format!("Mean of the users' own reductions against {base}"),
            format!(
                "Each user's own reduction of the mean wait against {base}, averaged over the users who wait under \
                 {base}{capacities}. Every user counts the same, so a user whose short wait grows tenfold weighs heavily."
            ),
        ),
    ]
    .into()
}

fn reduction<'a>(
    view: &'a View<'_>,
    names: &mut Names,
    name: &str,
    value: impl Fn(&Pair<'_>) -> Option<f64> + 'a,
) -> impl FnOnce(String, String) -> Drawn + 'a {
    let name = names.take(name);
    move |title, explanation| {
        let series: Vec<BarSeries> = (1..view.policies.len())
            .map(|policy| BarSeries {
                label: view.policies[policy].label.clone(),
                series: policy,
                values: (0..view.capacities.len()).map(|capacity| value(&view.pair(capacity, policy)?)).collect(),
            })
            .collect();
        let mut csv = Csv::new(&["capacity", "policy", "against", "reduction"]);
        for (capacity, place) in view.capacities.iter().enumerate() {
            for bars in &series {
                let number = Cell::Number(bars.values[capacity]);
                csv.row(&[Cell::Text(place.name), Cell::Text(&bars.label), Cell::Text(view.base()), number]);
            }
        }
        let values = series.iter().flat_map(|series| series.values.iter().copied().flatten());
        let scale = Scale::linear(values, true, Unit::Percent);
        let multiples = view.record.runs.iter().all(|run| run.capacity_factor.is_some());
        let chart = BarChart {
            caption: Caption { name, title, description: explanation.clone() },
            groups_title: if multiples { "capacity, as a multiple of R" } else { "capacity" }.into(),
            groups: view.capacities.iter().map(|capacity| capacity.name.to_owned()).collect(),
            y: Axis { title: "reduction".into(), unit: Unit::Percent, scale },
            series,
        };
        Drawn { figure: chart.draw(), csv: csv.finish(), explanation }
    }
}

/// Waits of each user under two policies.
fn user_waits(
    view: &View<'_>,
    (capacity, policy): (usize, usize),
    pair: &Pair<'_>,
    scale: Scale,
    names: &mut Names,
) -> Drawn {
    let comparison = UserComparison {
        view,
        capacity,
        policy,
        pair,
        quantity: "mean wait",
        column: "mean_wait_s",
        value: |user| user.mean_wait_s,
        text: duration,
        less_is_better: true,
    };
    let base = view.base();
    let sides = [format!("longer than under {base}"), format!("shorter than under {base}")];
    let explanation = format!(
        "Each bubble is a user; below the dashed line the user waits less than under {base}. Both axes are logarithmic, \
         with a place of its own for 0 (no task waits). A user without a started task under either policy is not shown."
    );
    comparison.draw(names.take(&format!("user-waits-{}", pair.run.id)), scale, Unit::Seconds, sides, explanation)
}

/// Completion ratios of each user under two policies, as in Figure 5 of paper 001.
fn user_completion(view: &View<'_>, (capacity, policy): (usize, usize), pair: &Pair<'_>, names: &mut Names) -> Drawn {
    let comparison = UserComparison {
        view,
        capacity,
        policy,
        pair,
        quantity: "completion ratio",
        column: "completion_ratio",
        value: |user| Some(user.completion_ratio),
        text: ratio,
        less_is_better: false,
    };
    let base = view.base();
    let sides = [format!("more than under {base}"), format!("fewer than under {base}")];
    let explanation = format!(
        "Each bubble is a user: completed over submitted tasks. Above the dashed line the user completes more than \
         under {base}. Many bubbles may lie on one another where all tasks complete (1, 1)."
    );
    let name = names.take(&format!("user-completion-{}", pair.run.id));
    // The same range in all of these figures, cut at a round number below the least ratio.
    let ratios = view.record.runs.iter().flat_map(|run| run.users.iter().map(|user| user.completion_ratio));
    let least = ratios.filter(|ratio| ratio.is_finite()).fold(1.0, f64::min);
    let scale = Scale::fixed((least * 10.0 - 0.5).floor().clamp(0.0, 9.0) / 10.0, 1.0, Unit::Number);
    comparison.draw(name, scale, Unit::Number, sides, explanation)
}

/// One quantity of each user under two policies.
struct UserComparison<'a> {
    view: &'a View<'a>,
    capacity: usize,
    policy: usize,
    pair: &'a Pair<'a>,
    quantity: &'static str,
    column: &'static str,
    value: fn(&UserRecord) -> Option<f64>,
    text: fn(f64) -> String,
    less_is_better: bool,
}

impl UserComparison<'_> {
    fn draw(&self, name: String, scale: Scale, unit: Unit, sides: [String; 2], explanation: String) -> Drawn {
        let (base, policy) = (self.view.base(), self.view.policies[self.policy].label.as_str());
        let capacity = &self.view.capacities[self.capacity];
        let mut csv =
            Csv::new(&["user", "submitted", &format!("{}_{base}", self.column), &format!("{}_{policy}", self.column)]);
        let (before, after) = (&self.pair.base.users, &self.pair.run.users);
        for (before, after) in before.iter().zip(after) {
            let numbers = [before, after].map(|user| Cell::Number((self.value)(user)));
            let [old, new] = numbers;
            csv.row(&[Cell::Text(&after.name), Cell::Count(after.totals.submitted), old, new]);
        }
        let shown = self.view.shown_users();
        let explanation = match after.len() - shown.len() {
            0 => explanation,
            more => format!("{explanation} {} users with fewer tasks are in the data only.", grouped(more as u64)),
        };
        let value = |users: &[UserRecord], user: usize| (self.value)(&users[user]);
        let bubble = |user: usize| self.bubble(user, &after[user], value(before, user), value(after, user));
        let bubbles = shown.into_iter().map(bubble).collect();
        let [above, below] = sides;
        let title = format!("{} of each user: {policy} against {base}, {}", capitalized(self.quantity), capacity.label);
        let axis = |title: String| Axis { title, unit, scale };
        let chart = ScatterChart {
            caption: Caption { name, title, description: explanation.clone() },
            x: axis(format!("{} under {base}", self.quantity)),
            y: axis(format!("{} under {policy}", self.quantity)),
            bubbles,
            above,
            below,
            counted: "tasks".into(),
        };
        Drawn { figure: chart.draw(), csv: csv.finish(), explanation }
    }

    fn bubble(&self, subject: usize, user: &UserRecord, old: Option<f64>, new: Option<f64>) -> Bubble {
        let at = old.zip(new).filter(|(old, new)| old.is_finite() && new.is_finite());
        let side = match at {
            Some((old, new)) if old == new => Side::Same,
            Some((old, new)) if (new < old) == self.less_is_better => Side::Better,
            Some(_) => Side::Worse,
            None => Side::Same,
        };
        let text = |value: Option<f64>| value.map_or(ABSENT.into(), self.text);
        let label = format!(
            "{}: {} under {}, {} under {}; {} tasks",
            user.name,
            text(old),
            self.view.base(),
            text(new),
            self.view.policies[self.policy].label,
            grouped(user.totals.submitted),
        );
        Bubble { subject, label, at, count: user.totals.submitted, side }
    }
}

/// What happened over time at one capacity, under all policies.
fn over_time(view: &View<'_>, capacity: usize, names: &mut Names) -> Vec<Drawn> {
    let place = &view.capacities[capacity];
    let runs: Vec<(usize, &RunRecord)> = view.runs_at(capacity).collect();
    let waits = TimeFigure {
        name: format!("wait-over-time-{}", place.name),
        title: format!("Mean wait by time of submission, {}", place.label),
        axis: "mean wait".into(),
        column: "mean_wait_s",
        unit: Unit::Seconds,
        explanation: "Mean wait of the tasks submitted in each interval; no line where no started task was submitted."
            .into(),
    };
    let waiting = TimeFigure {
        name: format!("waiting-over-time-{}", place.name),
        title: format!("Tasks waiting over time, {}", place.label),
        axis: "tasks waiting".into(),
        column: "waiting",
        unit: Unit::Number,
        explanation: "How many tasks are waiting, averaged over each interval.".into(),
    };
    let mut drawn = vec![
        waits.draw(view, capacity, names, &runs, |run| run.series.mean_wait_s.clone()),
        waiting.draw(view, capacity, names, &runs, |run| run.series.waiting.iter().copied().map(Some).collect()),
    ];
    for resource in view.resources() {
        let utilization = TimeFigure {
            name: format!("utilization-{resource}-{}", place.name),
            title: format!("Utilisation of {resource} over time, {}", place.label),
            axis: format!("{resource} held / capacity"),
            column: "utilization",
            unit: Unit::Percent,
            explanation: format!(
                "The part of the pool's {resource} that running tasks hold, averaged over each interval."
            ),
        };
        let levels = |run: &RunRecord| {
            run.series.utilization.get(resource).map_or(Vec::new(), |bins| bins.iter().copied().map(Some).collect())
        };
        drawn.push(utilization.draw(view, capacity, names, &runs, levels));
    }
    drawn
}

/// What one figure over time shows.
struct TimeFigure {
    name: String,
    title: String,
    axis: String,
    column: &'static str,
    unit: Unit,
    explanation: String,
}

impl TimeFigure {
    fn draw(
        self,
        view: &View<'_>,
        capacity: usize,
        names: &mut Names,
        runs: &[(usize, &RunRecord)],
        levels: impl Fn(&RunRecord) -> Vec<Option<f64>>,
    ) -> Drawn {
        let levels: Vec<Vec<Option<f64>>> = runs.iter().map(|(_, run)| levels(run)).collect();
        let mut csv = Csv::new(&["capacity", "policy", "from_s", "until_s", self.column]);
        let mut end = 0.0_f64;
        for ((policy, run), levels) in runs.iter().zip(&levels) {
            let edge = |bin: usize| run.series.start_s + run.series.bin_s * bin as f64;
            end = end.max(edge(levels.len()));
            for (bin, level) in levels.iter().enumerate() {
                csv.row(&[
                    Cell::Text(view.capacities[capacity].name),
                    Cell::Text(&view.policies[*policy].label),
                    Cell::Number(Some(edge(bin))),
                    Cell::Number(Some(edge(bin + 1))),
                    Cell::Number(*level),
                ]);
            }
        }
        let all = levels.iter().flatten().copied().flatten();
        let scale = match self.unit {
            // Nothing holds more than there is.
            Unit::Percent => Scale::fixed(0.0, 1.0, Unit::Percent),
            unit => Scale::linear(all, true, unit),
        };
        let lines = runs
            .iter()
            .zip(&levels)
            .map(|((policy, run), levels)| Line {
                label: view.policies[*policy].label.clone(),
                series: *policy,
                shape: Shape::Steps { start: run.series.start_s, width: run.series.bin_s, levels },
            })
            .collect();
        let chart = LineChart {
            caption: Caption { name: names.take(&self.name), title: self.title, description: self.explanation.clone() },
            x: Axis {
                title: "time since the first submission".into(),
                unit: Unit::Seconds,
                scale: Scale::fixed(0.0, end, Unit::Seconds),
            },
            y: Axis { title: self.axis, unit: self.unit, scale },
            lines,
        };
        Drawn { figure: chart.draw(), csv: csv.finish(), explanation: self.explanation }
    }
}

fn capitalized(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map(|first| first.to_uppercase().chain(characters).collect()).unwrap_or_default()
}
