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
/// Space in pixels that a whisker leaves at the ends of the axis for the label, and distance of a bar's break from its end.
const LABEL: f64 = 17.0;
const BREAK: f64 = 12.0;

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
        let mut plot = PlotArea::new(Horizontal::Named(&self.groups_title), &self.y, 230.0, &legend);
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
            // A bar that goes on beyond the axis is broken near its end.
            if !self.on_axis(value) {
                let at = end + if end > zero { -BREAK } else { BREAK };
                plot.pen.line("break", [x - 3.0, at + 3.0], [x + width + 3.0, at - 3.0]);
            }
        }
        // An end beyond the axis has no cap, and leaves space for the label.
        let (top, bottom) = (plot.top + LABEL, plot.bottom - LABEL);
        let place = |end: f64| if self.on_axis(end) { plot.y(end) } else { plot.y(end).clamp(top, bottom) };
        let ends = interval.map(|ends| ends.map(place));
        if let Some([low, high]) = ends {
            let (at, half) = (x + width / 2.0, (width * 0.12).min(5.0));
            plot.pen.line("whisker ink", [at, low], [at, high]);
            let caps: Vec<f64> =
                interval.into_iter().flatten().filter(|end| self.on_axis(*end)).map(|end| plot.y(end)).collect();
            for y in caps {
                plot.pen.line("whisker ink", [at - half, y], [at + half, y]);
            }
        }
        // The label is above a positive bar and below a negative one, beyond its whisker; it is omitted if labels would
        // touch.
        if text_width(&label) * 0.92 <= width {
            let hangs = value.is_some_and(|value| value < 0.0);
            let at = value.map_or(zero, |value| plot.y(value));
            let [low, high] = ends.unwrap_or([at, at]);
            let y = match value {
                // Below a bar that reaches the end of the axis is no space.
                Some(value) if hangs && !self.on_axis(value) => zero.min(high) - 5.0,
                _ if hangs => at.max(low) + 13.0,
                _ => at.min(high) - 5.0,
            };
            plot.pen.text("value", [x + width / 2.0, y], Anchor::Middle, &label);
        }
    }

    fn on_axis(&self, value: f64) -> bool {
        (self.y.scale.low()..=self.y.scale.high()).contains(&value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::Scale;

    fn drawn(values: [f64; 2], intervals: [[f64; 2]; 2], low: f64) -> String {
        let y = Axis { title: "r".into(), unit: Unit::Percent, scale: Scale::linear([low, 1.0], true, Unit::Percent) };
        let series = vec![BarSeries { label: "drf".into(), series: 1, values: values.map(Some).to_vec() }];
        let groups = vec!["0.5".into(), "1.0".into()];
        let chart = BarChart { caption: Caption::default(), groups_title: "capacity".into(), groups, y, series };
        chart.draw_with_intervals(&[intervals.map(Some).to_vec()]).inline()
    }

    /// The vertical positions in the lines of a class.
    fn heights(svg: &str, class: &str, name: &str) -> Vec<f64> {
        let lines = svg.lines().filter(|line| line.contains(&format!("class=\"{class}\"")));
        let number = |line: &str| line.split(&format!(" {name}=\"")).nth(1).unwrap().split('"').next().unwrap().parse();
        lines.map(|line| number(line).unwrap()).collect()
    }

    #[test]
    fn labels_lie_beyond_the_whiskers() {
        let svg = drawn([0.4, -0.3], [[0.2, 0.7], [-0.6, 0.1]], -1.0);
        let labels = heights(&svg, "value", "y");
        let (ends, others) = (heights(&svg, "whisker ink", "y1"), heights(&svg, "whisker ink", "y2"));
        // Each whisker is a line and two caps.
        let of_bar = |bar: usize| (3 * bar..3 * bar + 3).flat_map(|at| [ends[at], others[at]]).collect::<Vec<_>>();
        assert!(of_bar(0).iter().all(|y| labels[0] < *y), "{labels:?} {ends:?}");
        assert!(of_bar(1).iter().all(|y| labels[1] - 8.0 > *y), "{labels:?} {ends:?}");
    }

    #[test]
    fn a_bar_that_goes_on_beyond_the_axis_is_broken_and_says_its_value() {
        let svg = drawn([0.4, -40.0], [[0.4, 0.4], [-40.0, -40.0]], -2.0);
        assert_eq!(svg.matches("class=\"break\"").count(), 1, "{svg}");
        assert!(svg.contains(">−4\u{202f}000\u{a0}%<"), "{svg}");
        let zero = heights(&svg, "axis", "y1")[0];
        assert!(heights(&svg, "value", "y")[1] <= zero, "above the bar, which leaves no space below");
        assert!(!drawn([0.4, -1.0], [[0.4, 0.4], [-1.0, -1.0]], -2.0).contains("class=\"break\""));
    }
}
