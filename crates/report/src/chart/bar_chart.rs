//! Grouped bar charts.

use super::figure::{Caption, Figure};
use super::legend::{Entry, Swatch, series_class};
use super::plot_area::{Axis, Horizontal, PlotArea};
use super::scale::Spacing;
use super::svg_pen::{Anchor, shortened, text_width};
use super::ticks::Unit;
use crate::format_numbers::{percent, three_digits};

/// A chart of bars that start at zero, in groups with one bar per series.
#[derive(Clone, Debug)]
pub struct BarChart {
    /// Name, title and description.
    pub caption: Caption,
    /// Title of the horizontal axis.
    pub groups_title: String,
    /// Names of the groups.
    pub groups: Vec<String>,
    /// The vertical axis; linear.
    pub y: Axis,
    /// The series, in the order of their bars in each group.
    pub series: Vec<BarSeries>,
}

/// One series of bars.
#[derive(Clone, Debug)]
pub struct BarSeries {
    /// Label in the legend.
    pub label: String,
    /// Number of the colour, which all figures share.
    pub series: usize,
    /// One value per group; `None` draws no bar.
    pub values: Vec<Option<f64>>,
}

/// Fraction of a group's width that stays empty, and maximum width of a bar in pixels.
const GAP: f64 = 0.24;
const MAX_BAR_WIDTH: f64 = 56.0;

impl BarChart {
    /// Draws the chart.
    pub fn draw(&self) -> Figure {
        self.draw_with_intervals(&[])
    }

    /// Draws the chart with a whisker over each bar that has an interval, cut at the ends of the axis; `intervals` are by
    /// series and group. A bar whose interval includes zero is faded.
    pub fn draw_with_intervals(&self, intervals: &[Vec<Option<[f64; 2]>>]) -> Figure {
        debug_assert_eq!(self.y.scale.spacing(), Spacing::Linear, "bars start at zero");
        let legend: Vec<Entry> = self
            .series
            .iter()
            .map(|series| Entry { swatch: Swatch::Bar(series.series), label: series.label.clone() })
            .collect();
        let mut plot = PlotArea::new(Horizontal::Named(&self.groups_title), &self.y, Some(230.0), &legend);
        let place = (plot.right - plot.left) / self.groups.len().max(1) as f64;
        let bar = (place * (1.0 - GAP) / self.series.len().max(1) as f64).min(MAX_BAR_WIDTH);
        let group_width = bar * self.series.len() as f64;
        let bottom = plot.bottom;
        for (index, group) in self.groups.iter().enumerate() {
            let middle = plot.left + place * (index as f64 + 0.5);
            let max_characters = (place / text_width("n")).max(2.0) as usize;
            plot.pen.text("tick", [middle, bottom + 19.0], Anchor::Middle, &shortened(group, max_characters));
            for (slot, series) in self.series.iter().enumerate() {
                let value = series.values.get(index).copied().flatten().filter(|value| value.is_finite());
                let interval = intervals.get(slot).and_then(|series| series.get(index).copied().flatten());
                let interval = interval.filter(|ends| ends.iter().all(|end| end.is_finite()));
                let left = middle - group_width / 2.0 + bar * slot as f64;
                self.bar(&mut plot, series, value, interval, [left, bar]);
            }
        }
        plot.finish(&self.caption)
    }

    fn bar(
        &self,
        plot: &mut PlotArea,
        series: &BarSeries,
        value: Option<f64>,
        interval: Option<[f64; 2]>,
        [x, width]: [f64; 2],
    ) {
        let zero = plot.y(0.0);
        let label = match (value, self.y.unit) {
            (None, _) => "–".into(),
            (Some(value), Unit::Percent) => percent(value),
            (Some(value), _) => three_digits(value),
        };
        if let Some(value) = value {
            let end = plot.y(value);
            let faded = if interval.is_some_and(|[low, high]| low <= 0.0 && high >= 0.0) { " faded" } else { "" };
            let class = format!("bar {}{faded}", series_class(series.series));
            plot.pen.rectangle(&class, [x + 0.75, end.min(zero)], [width - 1.5, (end - zero).abs()]);
        }
        if let Some([low, high]) = interval.map(|ends| ends.map(|end| plot.y(end))) {
            // Beside the middle, where the label is.
            let (at, half) = (x + width * 0.8, (width * 0.12).min(5.0));
            plot.pen.line("whisker ink", [at, low], [at, high]);
            // An end beyond the axis has no cap.
            let on_axis = |end: &f64| (self.y.scale.low()..=self.y.scale.high()).contains(end);
            let caps: Vec<f64> = interval.into_iter().flatten().filter(on_axis).map(|end| plot.y(end)).collect();
            for y in caps {
                plot.pen.line("whisker ink", [at - half, y], [at + half, y]);
            }
        }
        // The label is above a positive bar and below a negative one; it is omitted if labels would touch.
        if text_width(&label) * 0.92 <= width {
            let hangs = value.is_some_and(|value| value < 0.0);
            let at = value.map_or(zero, |value| plot.y(value));
            plot.pen.text("value", [x + width / 2.0, if hangs { at + 13.0 } else { at - 5.0 }], Anchor::Middle, &label);
        }
    }
}
