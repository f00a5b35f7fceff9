//! Draws the figures of a study and writes the data of each.

use evenhand_study::ALL_USERS_LISTED;
use evenhand_study::record::{ClassComparison, ComparisonNoise, Estimate, RunRecord, UserRecord};

use crate::chart::{
    Axis, Bubble, Caption, Figure, Line, LineChart, Scale, ScatterChart, ScatterParts, Shape, Side, Unit,
};
use crate::file_names::FileNames;
use crate::format_numbers::{ABSENT, duration, grouped, ratio};
use crate::study_page::grid::{RunPair, StudyGrid};
use crate::study_page::reduction_chart::{ReductionChart, Reductions};
use evenhand_documents::{Cell, Csv};

/// A figure, its data as CSV, and an explanation of how to read it.
pub(crate) struct FigureWithData {
    pub(crate) figure: Figure,
    pub(crate) csv: String,
    pub(crate) explanation: String,
    /// Of a figure whose bubbles the page's script moves.
    pub(crate) parts: Option<ScatterParts>,
}

/// The figures that compare one policy with the baseline at one capacity.
pub(crate) struct PairFigures {
    pub(crate) capacity: usize,
    pub(crate) policy: usize,
    pub(crate) waits: FigureWithData,
    /// `None` if every user completes every task in all runs.
    pub(crate) completion: Option<FigureWithData>,
}

/// All figures, grouped by their position in the page.
pub(crate) struct Figures {
    pub(crate) reductions: Vec<FigureWithData>,
    pub(crate) pairs: Vec<PairFigures>,
    /// One entry per capacity.
    pub(crate) over_time: Vec<Vec<FigureWithData>>,
    /// The reductions of each class, one entry per capacity with a comparison.
    pub(crate) classes: Vec<FigureWithData>,
}

impl Figures {
    /// Iterates over all figures in the order of the page.
    pub(crate) fn all(&self) -> impl Iterator<Item = &FigureWithData> {
        let pairs = self.pairs.iter().flat_map(|pair| std::iter::once(&pair.waits).chain(&pair.completion));
        self.reductions.iter().chain(pairs).chain(self.over_time.iter().flatten()).chain(&self.classes)
    }
}

/// Returns whether every user completes every task in this run.
pub(crate) fn all_complete(run: &RunRecord) -> bool {
    run.users.iter().all(|user| user.completion_ratio == 1.0)
}

/// Draws all figures.
pub(crate) fn draw_figures(grid: &StudyGrid<'_>) -> Figures {
    let mut names = FileNames::default();
    let pairs = grid.pairs();
    let reductions = if pairs.is_empty() { Vec::new() } else { reductions(grid, &mut names) };
    let complete = grid.record.runs.iter().all(all_complete);
    let pairs = pairs
        .into_iter()
        .map(|(capacity, policy, pair)| PairFigures {
            capacity,
            policy,
            waits: user_waits(grid, (capacity, policy), &pair, &mut names),
            completion: (!complete).then(|| user_completion(grid, (capacity, policy), &pair, &mut names)),
        })
        .collect();
    let over_time = (0..grid.capacities.len()).map(|capacity| over_time(grid, capacity, &mut names)).collect();
    let classes = (0..grid.capacities.len()).filter_map(|capacity| class_reductions(grid, capacity, &mut names));
    let classes = classes.collect();
    Figures { reductions, pairs, over_time, classes }
}

/// Draws the reduction of the users' mean wait and the mean of the users' own reductions by capacity, as in
/// Figure 4 of Sadok et al. (2021).
fn reductions(grid: &StudyGrid<'_>, names: &mut FileNames) -> Vec<FigureWithData> {
    let (baseline, under) = (grid.baseline(), grid.under_baseline());
    let of_mean = reduction(
        grid,
        names,
        "users-mean-wait-reduction",
        |pair| pair.comparison.users_mean_wait_reduction,
        |noise| noise.users_mean_wait_reduction,
    );
    let mean_of = reduction(
        grid,
        names,
        "mean-user-wait-reduction",
        |pair| pair.comparison.mean_user_wait_reduction,
        |noise| noise.mean_user_wait_reduction,
    );
    let capacities = if grid.capacities.len() > 1 { " at each capacity" } else { "" };
    [
        of_mean(
            format!("Reduction of the users' mean wait compared with {baseline}"),
            format!(
                "How much shorter the mean over users of their mean waits is than {under}{capacities}; negative \
                 values mean that it is longer. Users with long waits dominate this mean."
            ),
        ),
        mean_of(
            format!("Mean of the users' own reductions compared with {baseline}"),
            format!(
                "Each user's reduction of the mean wait compared with {baseline}, averaged over the users whose mean \
                 wait {under} is not 0{capacities}. Every user counts equally, so one user whose short wait grows tenfold can \
                 dominate this mean."
            ),
        ),
    ]
    .into()
}

fn reduction<'a>(
    grid: &'a StudyGrid<'_>,
    names: &mut FileNames,
    name: &str,
    value: impl Fn(&RunPair<'_>) -> Option<f64> + 'a,
    noise: impl Fn(&ComparisonNoise) -> Option<Estimate> + 'a,
) -> impl FnOnce(String, String) -> FigureWithData + 'a {
    let name = names.take(name);
    move |title, explanation| {
        let of_policy = |policy: usize| {
            let pairs = || (0..grid.capacities.len()).map(move |capacity| grid.pair(capacity, policy));
            let interval = |pair: RunPair<'_>| Some(noise(pair.comparison.noise.as_ref()?)?.interval);
            Reductions {
                label: grid.policies[policy].label.clone(),
                series: policy,
                values: pairs().map(|pair| value(&pair?)).collect(),
                intervals: pairs().map(|pair| interval(pair?)).collect(),
            }
        };
        let multiples = grid.record.runs.iter().all(|run| run.capacity_factor.is_some());
        let chart = ReductionChart {
            caption: Caption { name, title, description: explanation },
            groups_title: if multiples { "capacity, as a multiple of R" } else { "capacity" }.into(),
            group_column: "capacity",
            groups: grid.capacities.iter().map(|capacity| capacity.name.to_owned()).collect(),
            policies: (1..grid.policies.len()).map(of_policy).collect(),
        };
        chart.draw(grid)
    }
}

/// Draws the reduction of the mean wait of each class of users and tasks; `None` if no policy is compared.
fn class_reductions(grid: &StudyGrid<'_>, capacity: usize, names: &mut FileNames) -> Option<FigureWithData> {
    let place = &grid.capacities[capacity];
    let pairs: Vec<(usize, RunPair<'_>)> =
        (1..grid.policies.len()).filter_map(|policy| Some((policy, grid.pair(capacity, policy)?))).collect();
    let (_, RunPair { comparison: first, .. }) = pairs.first()?;
    let of_policy = |(policy, pair): &(usize, RunPair<'_>)| {
        let class = |of: &ClassComparison| {
            pair.comparison.classes.iter().find(|class| (&class.by, &class.class) == (&of.by, &of.class))
        };
        Reductions {
            label: grid.policies[*policy].label.clone(),
            series: *policy,
            values: first.classes.iter().map(|of| class(of)?.mean_wait_reduction).collect(),
            intervals: first.classes.iter().map(|of| class(of)?.mean_wait_reduction_interval).collect(),
        }
    };
    let (baseline, under) = (grid.baseline(), grid.under_baseline());
    let chart = ReductionChart {
        caption: Caption {
            name: names.take(&format!("class-reductions-{}", place.name)),
            title: format!("Reduction of the mean wait of each class compared with {baseline}, {}", place.label),
            description: format!(
                "How much shorter the mean wait over the tasks of each class is than {under}; negative values mean \
                 that it is longer."
            ),
        },
        groups_title: "class of users or tasks".into(),
        group_column: "class",
        groups: first.classes.iter().map(|class| class.class.clone()).collect(),
        policies: pairs.iter().map(of_policy).collect(),
    };
    (!chart.groups.is_empty()).then(|| chart.draw(grid))
}

/// Draws the mean wait of each user under two policies.
fn user_waits(
    grid: &StudyGrid<'_>,
    (capacity, policy): (usize, usize),
    pair: &RunPair<'_>,
    names: &mut FileNames,
) -> FigureWithData {
    let comparison = UserComparison {
        grid,
        capacity,
        policy,
        pair,
        quantity: "mean wait",
        column: "mean_wait_s",
        value: |user| user.mean_wait_s,
        text: duration,
        less_is_better: true,
    };
    let baseline = grid.under_baseline();
    let sides = [format!("longer than {baseline}"), format!("shorter than {baseline}")];
    let explanation = format!(
        "Each bubble is a user; users below the dashed line wait less than {baseline}. The names are those of the \
         users whose mean waits differ most. Both axes are logarithmic, each with the range of its own waits; 0 (no task \
         waits) has a separate position. Users without a started task under one of the policies are not shown.{}",
        if grid.record.repeats.is_some() { " Grey users differ by no more than the noise." } else { "" }
    );
    // Each axis has the range of its own waits, so that the users spread over the figure.
    let scale = |run: &RunRecord| Scale::log_around(run.users.iter().filter_map(|user| user.mean_wait_s));
    let scales = [scale(pair.baseline), scale(pair.run)];
    comparison.draw(names.take(&format!("user-waits-{}", pair.run.id)), scales, Unit::Seconds, sides, explanation)
}

/// Returns whether a user's difference from the baseline is within the noise of a repeated study.
pub(crate) fn is_within_noise(grid: &StudyGrid<'_>, user: &UserRecord) -> bool {
    grid.record.repeats.is_some() && !user.beyond_noise
}

/// Draws the completion ratio of each user under two policies, as in Figure 5 of Sadok et al. (2021).
fn user_completion(
    grid: &StudyGrid<'_>,
    (capacity, policy): (usize, usize),
    pair: &RunPair<'_>,
    names: &mut FileNames,
) -> FigureWithData {
    let comparison = UserComparison {
        grid,
        capacity,
        policy,
        pair,
        quantity: "completion ratio",
        column: "completion_ratio",
        value: |user| Some(user.completion_ratio),
        text: ratio,
        less_is_better: false,
    };
    let baseline = grid.under_baseline();
    let sides = [format!("more than {baseline}"), format!("fewer than {baseline}")];
    let explanation = format!(
        "Each bubble is a user; the axes show completed tasks over submitted tasks. Users above the dashed line complete \
         more than {baseline}. Bubbles of users who complete all tasks overlap at (1, 1)."
    );
    let name = names.take(&format!("user-completion-{}", pair.run.id));
    // All of these figures have the same range, which begins at a round number below the lowest ratio.
    let ratios = grid.record.runs.iter().flat_map(|run| run.users.iter().map(|user| user.completion_ratio));
    let lowest = ratios.filter(|ratio| ratio.is_finite()).fold(1.0, f64::min);
    let scale = Scale::fixed((lowest * 10.0 - 0.5).floor().clamp(0.0, 9.0) / 10.0, 1.0, Unit::Number);
    comparison.draw(name, [scale, scale], Unit::Number, sides, explanation)
}

/// One quantity of each user under the baseline and under another policy.
struct UserComparison<'a> {
    grid: &'a StudyGrid<'a>,
    capacity: usize,
    policy: usize,
    pair: &'a RunPair<'a>,
    quantity: &'static str,
    column: &'static str,
    value: fn(&UserRecord) -> Option<f64>,
    text: fn(f64) -> String,
    less_is_better: bool,
}

impl UserComparison<'_> {
    fn draw(
        &self,
        name: String,
        scales: [Scale; 2],
        unit: Unit,
        sides: [String; 2],
        explanation: String,
    ) -> FigureWithData {
        let (baseline, policy) = (self.grid.baseline(), self.grid.policies[self.policy].label.as_str());
        let capacity = &self.grid.capacities[self.capacity];
        let mut csv = Csv::new(&[
            "user",
            "submitted",
            &format!("{}_{baseline}", self.column),
            &format!("{}_{policy}", self.column),
        ]);
        let (before, after) = (&self.pair.baseline.users, &self.pair.run.users);
        let shown = self.grid.listed_users();
        // users.csv has all of them once for each run; here they would be there again for each pair.
        let all_in_data = after.len() <= ALL_USERS_LISTED;
        let mut in_data = if all_in_data { (0..after.len()).collect() } else { shown.clone() };
        in_data.sort_unstable();
        for user in in_data {
            let [old, new] = [&before[user], &after[user]].map(|user| Cell::Number((self.value)(user)));
            csv.row(&[Cell::Text(&after[user].name), Cell::Count(after[user].totals.submitted), old, new]);
        }
        let explanation = match after.len() - shown.len() {
            0 => explanation,
            more => {
                let place = if all_in_data { "the data file" } else { "users.csv" };
                let more = grouped(more as u64);
                format!("{explanation} {more} users whose mean wait differs less are in {place} only.")
            }
        };
        let value = |users: &[UserRecord], user: usize| (self.value)(&users[user]);
        let bubble = |user: usize| self.bubble(user, &after[user], value(before, user), value(after, user));
        let bubbles = shown.into_iter().map(bubble).collect();
        let [above, below] = sides;
        let title = format!(
            "{} of each user: {policy} compared with {baseline}, {}",
            capitalized(self.quantity),
            capacity.label
        );
        let axis = |title: String, scale: Scale| Axis { title, unit, scale };
        let chart = ScatterChart {
            caption: Caption { name, title, description: explanation.clone() },
            x: axis(format!("{} {}", self.quantity, self.grid.under_baseline()), scales[0]),
            y: axis(format!("{} under {policy}", self.quantity), scales[1]),
            bubbles,
            above,
            below,
            counted: "tasks".into(),
        };
        let (figure, parts) = chart.draw_parts();
        FigureWithData { figure, csv: csv.finish(), explanation, parts: Some(parts) }
    }

    fn bubble(&self, subject: usize, user: &UserRecord, old: Option<f64>, new: Option<f64>) -> Bubble {
        let at = old.zip(new).filter(|(old, new)| old.is_finite() && new.is_finite());
        let side = match at {
            Some((old, new)) if old == new => Side::Same,
            _ if self.less_is_better && is_within_noise(self.grid, user) => Side::Same,
            Some((old, new)) if (new < old) == self.less_is_better => Side::Better,
            Some(_) => Side::Worse,
            None => Side::Same,
        };
        let text = |value: Option<f64>| value.map_or(ABSENT.into(), self.text);
        let label = format!(
            "{}: {} {}, {} under {}; {} {}",
            user.name,
            text(old),
            self.grid.under_baseline(),
            text(new),
            self.grid.policies[self.policy].label,
            grouped(user.totals.submitted),
            if user.totals.submitted == 1 { "task" } else { "tasks" },
        );
        Bubble { subject, name: user.name.clone(), label, at, count: user.totals.submitted, side }
    }
}

/// Draws waits, waiting tasks and utilisation over time at one capacity under all policies.
fn over_time(grid: &StudyGrid<'_>, capacity: usize, names: &mut FileNames) -> Vec<FigureWithData> {
    let place = &grid.capacities[capacity];
    let runs: Vec<(usize, &RunRecord)> = grid.runs_at(capacity).collect();
    let waits = TimeFigure {
        name: format!("wait-over-time-{}", place.name),
        title: format!("Mean wait by time of submission, {}", place.label),
        axis: "mean wait".into(),
        column: "mean_wait_s",
        unit: Unit::Seconds,
        explanation:
            "Mean wait of the tasks submitted in each interval. The line is broken where no task was submitted \
                      that started."
                .into(),
    };
    let waiting = TimeFigure {
        name: format!("waiting-over-time-{}", place.name),
        title: format!("Tasks waiting over time, {}", place.label),
        axis: "tasks waiting".into(),
        column: "waiting",
        unit: Unit::Number,
        explanation: "Number of waiting tasks, averaged over each interval.".into(),
    };
    let mut drawn = vec![
        waits.draw(grid, capacity, names, &runs, |run| run.series.mean_wait_s.clone()),
        waiting.draw(grid, capacity, names, &runs, |run| run.series.waiting.iter().copied().map(Some).collect()),
    ];
    for resource in grid.resources() {
        let utilization = TimeFigure {
            name: format!("utilization-{resource}-{}", place.name),
            title: format!("Utilisation of {resource} over time, {}", place.label),
            axis: format!("{resource} held / capacity"),
            column: "utilization",
            unit: Unit::Percent,
            explanation: format!(
                "The fraction of the pool's {resource} that running tasks hold, averaged over each interval."
            ),
        };
        let levels = |run: &RunRecord| {
            run.series.utilization.get(resource).map_or(Vec::new(), |bins| bins.iter().copied().map(Some).collect())
        };
        drawn.push(utilization.draw(grid, capacity, names, &runs, levels));
    }
    drawn
}

/// The quantity and texts of one figure over time.
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
        grid: &StudyGrid<'_>,
        capacity: usize,
        names: &mut FileNames,
        runs: &[(usize, &RunRecord)],
        levels: impl Fn(&RunRecord) -> Vec<Option<f64>>,
    ) -> FigureWithData {
        let levels: Vec<Vec<Option<f64>>> = runs.iter().map(|(_, run)| levels(run)).collect();
        let mut csv = Csv::new(&["capacity", "policy", "from_s", "until_s", self.column]);
        let mut end = 0.0_f64;
        for ((policy, run), levels) in runs.iter().zip(&levels) {
            let edge = |bin: usize| run.series.start_s + run.series.bin_s * bin as f64;
            end = end.max(edge(levels.len()));
            for (bin, level) in levels.iter().enumerate() {
                csv.row(&[
                    Cell::Text(grid.capacities[capacity].name),
                    Cell::Text(&grid.policies[*policy].label),
                    Cell::Number(Some(edge(bin))),
                    Cell::Number(Some(edge(bin + 1))),
                    Cell::Number(*level),
                ]);
            }
        }
        let all = levels.iter().flatten().copied().flatten();
        let scale = match self.unit {
            // Utilisation never exceeds 1.
            Unit::Percent => Scale::fixed(0.0, 1.0, Unit::Percent),
            unit => Scale::linear(all, true, unit),
        };
        let lines = runs
            .iter()
            .zip(&levels)
            .map(|((policy, run), levels)| Line {
                label: grid.policies[*policy].label.clone(),
                series: *policy,
                shape: Shape::Steps { start: run.series.start_s, width: run.series.bin_s, levels },
            })
            .collect();
        let chart = LineChart {
            caption: Caption { name: names.take(&self.name), title: self.title, description: self.explanation.clone() },
            x: match grid.record.workload.first_submission_unix_s {
                Some(first) => {
                    let unit = Unit::Dates(first);
                    Axis { title: "date".into(), unit, scale: Scale::fixed(0.0, end, unit) }
                }
                None => Axis {
                    title: "time since the first submission".into(),
                    unit: Unit::Seconds,
                    scale: Scale::fixed(0.0, end, Unit::Seconds),
                },
            },
            y: Axis { title: self.axis, unit: self.unit, scale },
            lines,
        };
        FigureWithData { figure: chart.draw(), csv: csv.finish(), explanation: self.explanation, parts: None }
    }
}

fn capitalized(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map(|first| first.to_uppercase().chain(characters).collect()).unwrap_or_default()
}
