//! Water-filling diagrams: tanks side by side, filled to a common level.

use super::figure::{Caption, Figure};
use super::legend::{Entry, Swatch};
use super::plot_area::{Axis, Horizontal, PlotArea};
use super::svg_pen::{Anchor, shortened, text_width};

/// A diagram of progressive filling as in Figure 2 of Sadok et al. (2021): one tank per user, as high as the user's
/// demand, on a base as high as the user's debt from the past. The water has the same level in all tanks that reach it.
#[derive(Clone, Debug)]
pub struct WaterFillingChart {
    /// Name, title and description.
    pub caption: Caption,
    /// Title of the horizontal axis.
    pub tanks_title: String,
    /// The vertical axis; starts at 0.
    pub y: Axis,
    /// The tanks, from left to right.
    pub tanks: Vec<Tank>,
    /// Level of the water and its label; `None` if every tank is full.
    pub level: Option<(f64, String)>,
    /// Label of the water in the legend.
    pub water_label: String,
    /// Label of the tanks in the legend.
    pub tank_label: String,
    /// Label of the bases in the legend; omitted if no tank has a base.
    pub base_label: String,
}

/// One tank; heights are in units of the vertical axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Tank {
    /// Label below the tank.
    pub label: String,
    /// Height of the base under the tank.
    pub base: f64,
    /// Height of the tank from its base; infinite if it has no top.
    pub height: f64,
    /// Height of the water from the base.
    pub water: f64,
}

/// Fraction of the distance between tanks that stays empty, and maximum width of a tank in pixels.
const GAP: f64 = 0.3;
const MAX_TANK_WIDTH: f64 = 72.0;

impl WaterFillingChart {
    /// Draws the diagram.
    pub fn draw(&self) -> Figure {
        let entry = |class, label: &String| Entry { swatch: Swatch::Box(class), label: label.clone() };
        let mut legend = vec![entry("water", &self.water_label), entry("tank", &self.tank_label)];
        if self.tanks.iter().any(|tank| tank.base > 0.0) {
            legend.push(entry("base", &self.base_label));
        }
        let mut plot = PlotArea::new(Horizontal::Named(&self.tanks_title), &self.y, 230.0, &legend);
        let place = (plot.right - plot.left) / self.tanks.len().max(1) as f64;
        let width = (place * (1.0 - GAP)).min(MAX_TANK_WIDTH);
        for (index, tank) in self.tanks.iter().enumerate() {
            let middle = plot.left + place * (index as f64 + 0.5);
            let max_characters = (place / text_width("n")).max(2.0) as usize;
            let label_at = [middle, plot.bottom + 19.0];
            plot.pen.text("tick", label_at, Anchor::Middle, &shortened(&tank.label, max_characters));
            let mut part = |class: &str, from: f64, height: f64| {
                // A tank without a top ends at the end of the axis.
                let to = if height.is_finite() { from + height } else { self.y.scale.high() };
                let [from, to] = [plot.y(from), plot.y(to)];
                if from > to {
                    plot.pen.rectangle(class, [middle - width / 2.0, to], [width, from - to]);
                }
            };
            part("base", 0.0, tank.base);
            part("water", tank.base, tank.water);
            part("tank", tank.base, tank.height);
        }
        if let Some((level, text)) = self.level.as_ref().filter(|(level, _)| level.is_finite()) {
            let at = plot.y(*level);
            let (left, right) = (plot.left, plot.right);
            plot.pen.line("diagonal", [left, at], [right, at]);
            plot.pen.text("note", [right, at - 5.0], Anchor::End, text);
        }
        plot.finish(&self.caption)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{Scale, Unit};

    #[test]
    fn water_starts_at_the_base_and_a_tank_without_a_top_ends_at_the_end_of_the_axis() {
        let chart = WaterFillingChart {
            caption: Caption::default(),
            tanks_title: "users".into(),
            y: Axis { title: "share".into(), unit: Unit::Number, scale: Scale::fixed(0.0, 1.0, Unit::Number) },
            tanks: vec![
                Tank { label: "1".into(), base: 0.25, height: f64::INFINITY, water: 0.25 },
                Tank { label: "2".into(), base: 0.0, height: 0.25, water: 0.25 },
            ],
            level: Some((0.5, "x".into())),
            water_label: "water".into(),
            tank_label: "tank".into(),
            base_label: "base".into(),
        };
        let drawn = chart.draw().inline();
        let heights = |class: &str| -> Vec<f64> {
            let of_class = drawn.lines().filter(|l| l.contains("<rect") && l.contains(&format!("\"{class}\"")));
            // The first rectangle is the legend's symbol.
            let height = |l: &str| l.split_once("height=\"").unwrap().1.split_once('"').unwrap().0.parse().unwrap();
            of_class.skip(1).map(height).collect()
        };
        assert_eq!(heights("base"), [57.5]);
        assert_eq!(heights("water"), [57.5, 57.5]);
        assert_eq!(heights("tank"), [172.5, 57.5]);
    }
}
