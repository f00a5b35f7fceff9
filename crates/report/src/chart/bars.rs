//! Bars in groups.

use super::figure::{Anchor, Caption, Figure, shortened, text_width};
use super::frame::{Axis, Frame, Horizontal};
use super::legend::{Entry, Swatch, series_class};
use super::scale::Spacing;
use super::ticks::Unit;
use crate::format::{percent, three_digits};

/// Bars from zero, in groups: one bar a series in each group.
#[derive(Clone, Debug)]
pub struct BarChart {
    /// What the figure is called.
    pub caption: Caption,
    /// What the groups are.
    pub groups_title: String,
    /// The names of the groups.
    pub groups: Vec<String>,
    /// The vertical axis.
    pub y: Axis,
    /// The series, in the order in which their bars stand in each group.
    pub series: Vec<BarSeries>,
}

/// One series of bars.
#[derive(Clone, Debug)]
pub struct BarSeries {
    /// Its name in the legend.
    pub label: String,
    /// Its colour: the same number looks the same in all figures.
    pub series: usize,
    /// One value a group; without it there is no bar.
    pub values: Vec<Option<f64>>,
}

/// The share of a group's place that is left empty, and the widest bar.
const GAP: f64 = 0.24;
const WIDEST: f64 = 56.0;

impl BarChart {
    /// Draws it.
    pub fn draw(&self) -> Figure {
        debug_assert_eq!(self.y.scale.spacing(), Spacing::Linear, "bars start at zero");
        let legend: Vec<Entry> = self
            .series
            .iter()
            .map(|series| Entry { swatch: Swatch::Bar(series.series), label: series.label.clone() })
            .collect();
        let mut frame = Frame::new(Horizontal::Named(&self.groups_title), &self.y, Some(230.0), &legend);
        let place = (frame.right - frame.left) / self.groups.len().max(1) as f64;
        let bar = (place * (1.0 - GAP) / self.series.len().max(1) as f64).min(WIDEST);
        let group_width = bar * self.series.len() as f64;
        let bottom = frame.bottom;
        for (index, group) in self.groups.iter().enumerate() {
            let middle = frame.left + place * (index as f64 + 0.5);
            let most = (place / text_width("n")).max(2.0) as usize;
            frame.pen.text("tick", [middle, bottom + 19.0], Anchor::Middle, &shortened(group, most));
            for (slot, series) in self.series.iter().enumerate() {
                let value = series.values.get(index).copied().flatten().filter(|value| value.is_finite());
                self.bar(&mut frame, series, value, [middle - group_width / 2.0 + bar * slot as f64, bar]);
            }
        }
        frame.finish(&self.caption)
    }

    fn bar(&self, frame: &mut Frame, series: &BarSeries, value: Option<f64>, [x, width]: [f64; 2]) {
        let zero = frame.y(0.0);
        let label = match (value, self.y.unit) {
            (None, _) => "–".into(),
            (Some(value), Unit::Percent) => percent(value),
            (Some(value), _) => three_digits(value),
        };
        if let Some(value) = value {
            let end = frame.y(value);
            let class = format!("bar {}", series_class(series.series));
            frame.pen.rectangle(&class, [x + 0.75, end.min(zero)], [width - 1.5, (end - zero).abs()]);
        }
        // Over the bar if it stands, under it if it hangs; left out where labels would touch.
        if text_width(&label) * 0.92 <= width {
            let hangs = value.is_some_and(|value| value < 0.0);
            let at = value.map_or(zero, |value| frame.y(value));
            frame.pen.text(
                "value",
                [x + width / 2.0, if hangs { at + 13.0 } else { at - 5.0 }],
                Anchor::Middle,
                &label,
            );
        }
    }
}
