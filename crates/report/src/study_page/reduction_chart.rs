//! Draws reductions of waits as bars, with the intervals of a repeated study.

use evenhand_documents::{Cell, Csv};

use super::figures::FigureWithData;
use super::grid::StudyGrid;
use crate::chart::{Axis, BarChart, BarSeries, Caption, Scale, Unit};

/// Reductions below the first of these (negated) are cut off at the second.
const BROKEN: f64 = 3.0;
const BROKEN_AT: f64 = 1.8;

/// A chart of reductions: groups of bars, one bar per policy.
pub(super) struct ReductionChart {
    /// The description explains the figure; how to read bars and intervals is added.
    pub(super) caption: Caption,
    pub(super) groups_title: String,
    /// The name of the groups' column in the data file.
    pub(super) group_column: &'static str,
    pub(super) groups: Vec<String>,
    pub(super) policies: Vec<Reductions>,
}

/// The reductions under one policy, by group. What is absent has no bar, or no interval.
pub(super) struct Reductions {
    pub(super) label: String,
    /// Number of the colour.
    pub(super) series: usize,
    pub(super) values: Vec<Option<f64>>,
    pub(super) intervals: Vec<Option<[f64; 2]>>,
}

impl ReductionChart {
    pub(super) fn draw(self, grid: &StudyGrid<'_>) -> FigureWithData {
        let ReductionChart { mut caption, groups_title, group_column, groups, policies } = self;
        let repeats = grid.record.repeats.as_ref();
        if let Some(repeats) = repeats {
            caption.description += &format!(
                " Lines show where 95\u{a0}% of repeats lie ({} repeats); those without an end go on; a faded bar is within this noise.",
                repeats.done
            );
        }
        let mut columns = vec![group_column, "policy", "against", "reduction"];
        columns.extend(repeats.iter().flat_map(|_| ["reduction_low", "reduction_high"]));
        let mut csv = Csv::new(&columns);
        for (at, group) in groups.iter().enumerate() {
            for Reductions { label, values, intervals, .. } in &policies {
                let [low, high] = [0, 1].map(|end| Cell::Number(intervals[at].map(|interval| interval[end])));
                let number = Cell::Number(values[at]);
                let cells = [Cell::Text(group), Cell::Text(label), Cell::Text(grid.baseline()), number, low, high];
                csv.row(&cells[..columns.len()]);
            }
        }
        // One bar far below the others would leave nothing of them: no reduction is above 1, but a wait can grow without
        // limit.
        let values = || policies.iter().flat_map(|policy| policy.values.iter().copied().flatten());
        if values().any(|value| value < -BROKEN) {
            caption.description += " A bar with a break goes on beyond the axis; its number is above it.";
        }
        let values = || values().map(|value| if value < -BROKEN { -BROKEN_AT } else { value });
        // Nor may a very wide interval.
        let widest =
            3.0 * values().filter(|value| value.is_finite()).fold(0.2, |most: f64, value| most.max(value.abs()));
        let ends = policies.iter().flat_map(|policy| policy.intervals.iter().flatten()).flatten();
        // With space for the labels beyond the ends.
        let values = values().chain(ends.map(|end| end.clamp(-widest, widest))).map(|value| 1.06 * value);
        let scale = Scale::linear(values, true, Unit::Percent);
        let explanation = caption.description.clone();
        let (series, intervals): (Vec<BarSeries>, Vec<_>) = policies
            .into_iter()
            .map(|Reductions { label, series, values, intervals }| (BarSeries { label, series, values }, intervals))
            .unzip();
        let y = Axis { title: "reduction".into(), unit: Unit::Percent, scale };
        let chart = BarChart { caption, groups_title, groups, y, series };
        FigureWithData { figure: chart.draw_with_intervals(&intervals), csv: csv.finish(), explanation, parts: None }
    }
}
