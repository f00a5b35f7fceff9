//! Areas stacked over a shared horizontal axis.

use super::figure::{Caption, Coordinate, Figure};
use super::frame::{Axis, Frame, Horizontal};
use super::legend::{Entry, Swatch, series_class};

/// Parts of a whole that change along the horizontal axis, the first at the bottom.
#[derive(Clone, Debug)]
pub struct StackChart<'a> {
    /// What the figure is called.
    pub caption: Caption,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis, of the sum.
    pub y: Axis,
    /// Where on the horizontal axis the layers have values, never falling; twice the same for a jump.
    pub at: &'a [f64],
    /// The layers, from the bottom.
    pub layers: Vec<Layer<'a>>,
}

/// One layer of a stack.
#[derive(Clone, Debug)]
pub struct Layer<'a> {
    /// Its name in the legend.
    pub label: String,
    /// Its colour: the same number looks the same in all figures.
    pub series: usize,
    /// How thick it is at each place; straight in between. What is not a finite number is 0.
    pub values: &'a [f64],
}

impl StackChart<'_> {
    /// Draws it.
    pub fn draw(&self) -> Figure {
        // The legend reads downwards as the stack does.
        let legend: Vec<Entry> = self
            .layers
            .iter()
            .rev()
            .map(|layer| Entry { swatch: Swatch::Bar(layer.series), label: layer.label.clone() })
            .collect();
        let mut frame = Frame::new(Horizontal::Axis(&self.x), &self.y, Some(230.0), &legend);
        let mut bottom = vec![0.0; self.at.len()];
        for layer in &self.layers {
            let thick = |i: usize| layer.values.get(i).copied().filter(|value| value.is_finite()).unwrap_or(0.0);
            let top: Vec<f64> = bottom.iter().enumerate().map(|(i, below)| below + thick(i)).collect();
            let mut path = String::new();
            let mut to = |i: usize, y: f64| {
                let [x, y] = [frame.x(&self.x.scale, self.at[i]), frame.y(y)].map(Coordinate);
                let letter = if path.is_empty() { 'M' } else { 'L' };
                path.push_str(&format!("{letter}{x} {y}"));
            };
            (0..top.len()).for_each(|i| to(i, top[i]));
            (0..top.len()).rev().for_each(|i| to(i, bottom[i]));
            if top != bottom {
                let class = series_class(layer.series);
                frame.pen.write(format_args!("<path class=\"area {class}\" d=\"{path}Z\"/>\n"));
            }
            bottom = top;
        }
        frame.finish(&self.caption)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{Scale, Unit};

    #[test]
    fn layers_stand_on_each_other_and_an_empty_one_is_not_drawn() {
        let axis = |unit| Axis { title: "t".into(), unit, scale: Scale::fixed(0.0, 1.0, unit) };
        let layer = |series, values| Layer { label: format!("l{series}"), series, values };
        let draw = |layers| {
            let (x, y) = (axis(Unit::Number), axis(Unit::Percent));
            StackChart { caption: Caption::default(), x, y, at: &[0.0, 1.0], layers }.draw().inline()
        };
        let drawn = draw(vec![layer(0, &[0.5, 0.25]), layer(1, &[0.5, f64::NAN]), layer(2, &[0.0, 0.0])]);
        let paths: Vec<&str> = drawn.lines().filter(|line| line.contains("<path")).collect();
        assert_eq!(paths.len(), 2, "{drawn}");
        let ys = |path: &str| -> Vec<f64> {
            let (_, rest) = path.split_once("d=\"").unwrap();
            let points = rest.split_once('Z').unwrap().0.split(['M', 'L']).filter(|p| !p.is_empty());
            points.map(|p| p.split_once(' ').unwrap().1.parse().unwrap()).collect()
        };
        let (low, high) = (ys(paths[0]), ys(paths[1]));
        // What is the top of one is the bottom of the next.
        assert_eq!((low[0], low[1]), (high[3], high[2]));
        assert_eq!(high[1], high[2], "what is no number has no thickness");
    }
}
