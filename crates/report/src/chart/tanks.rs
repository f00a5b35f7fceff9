//! Filling diagrams: tanks side by side, filled to a common level.

use super::figure::{Anchor, Caption, Figure, shortened, text_width};
use super::frame::{Axis, Frame, Horizontal};
use super::legend::{Entry, Swatch};

/// Progressive filling as paper 001 draws it: a tank a user, as high as all he wants, on a base as high as
/// what he owes; water stands at the same level in all that reach it.
#[derive(Clone, Debug)]
pub struct TankChart {
    /// What the figure is called.
    pub caption: Caption,
    /// What the tanks are.
    pub tanks_title: String,
    /// The vertical axis; starts at 0.
    pub y: Axis,
    /// The tanks, from the left.
    pub tanks: Vec<Tank>,
    /// Where the water stands, and what is written there; `None` if every tank is full.
    pub level: Option<(f64, String)>,
    /// What the water is, for the legend.
    pub water_label: String,
    /// What the tanks are, for the legend.
    pub tank_label: String,
    /// What the bases are, for the legend; left out if no tank has one.
    pub base_label: String,
}

/// One tank.
#[derive(Clone, Debug, PartialEq)]
pub struct Tank {
    /// Its name.
    pub label: String,
    /// The height of the base it stands on.
    pub base: f64,
    /// How high it is, from the base; not finite if it has no top.
    pub height: f64,
    /// How high the water is in it, from the base.
    pub water: f64,
}

/// The share of a tank's place that is left empty, and the widest tank.
const GAP: f64 = 0.3;
const WIDEST: f64 = 72.0;

impl TankChart {
    /// Draws it.
    pub fn draw(&self) -> Figure {
        let entry = |class, label: &String| Entry { swatch: Swatch::Box(class), label: label.clone() };
        let mut legend = vec![entry("water", &self.water_label), entry("tank", &self.tank_label)];
        if self.tanks.iter().any(|tank| tank.base > 0.0) {
            legend.push(entry("base", &self.base_label));
        }
        let mut frame = Frame::new(Horizontal::Named(&self.tanks_title), &self.y, Some(230.0), &legend);
        let place = (frame.right - frame.left) / self.tanks.len().max(1) as f64;
        let width = (place * (1.0 - GAP)).min(WIDEST);
        for (index, tank) in self.tanks.iter().enumerate() {
            let middle = frame.left + place * (index as f64 + 0.5);
            let most = (place / text_width("n")).max(2.0) as usize;
            let label_at = [middle, frame.bottom + 19.0];
            frame.pen.text("tick", label_at, Anchor::Middle, &shortened(&tank.label, most));
            let mut part = |class: &str, from: f64, height: f64| {
                // Without a top it ends with the axis.
                let to = if height.is_finite() { from + height } else { self.y.scale.high() };
                let [from, to] = [frame.y(from), frame.y(to)];
                if from > to {
                    frame.pen.rectangle(class, [middle - width / 2.0, to], [width, from - to]);
                }
            };
            part("base", 0.0, tank.base);
            part("water", tank.base, tank.water);
            part("tank", tank.base, tank.height);
        }
        if let Some((level, text)) = self.level.as_ref().filter(|(level, _)| level.is_finite()) {
            let at = frame.y(*level);
            let (left, right) = (frame.left, frame.right);
            frame.pen.line("diagonal", [left, at], [right, at]);
            frame.pen.text("note", [right, at - 5.0], Anchor::End, text);
        }
        frame.finish(&self.caption)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{Scale, Unit};

    #[test]
    fn water_stands_on_bases_and_a_tank_without_a_top_ends_with_the_axis() {
        let chart = TankChart {
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
            // The swatch of the legend first.
            let height = |l: &str| l.split_once("height=\"").unwrap().1.split_once('"').unwrap().0.parse().unwrap();
            of_class.skip(1).map(height).collect()
        };
        assert_eq!(heights("base"), [57.5]);
        assert_eq!(heights("water"), [57.5, 57.5]);
        assert_eq!(heights("tank"), [172.5, 57.5]);
    }
}
