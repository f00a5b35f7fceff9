//! Stacked area charts.

use super::figure::{Caption, Figure};
use super::legend::{Entry, Swatch, series_class};
use super::plot_area::{Axis, Horizontal, PlotArea};
use super::svg_pen::Coordinate;

/// A chart of parts of a whole that change along the horizontal axis, stacked on each other.
#[derive(Clone, Debug)]
pub struct StackedAreaChart<'a> {
    /// Name, title and description.
    pub caption: Caption,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis of the sum.
    pub y: Axis,
    /// Positions on the horizontal axis at which the layers have values, in ascending order; a position occurs twice
    /// where values jump.
    pub at: &'a [f64],
    /// The layers, from bottom to top.
    pub layers: Vec<Layer<'a>>,
}

/// One layer of a stack.
#[derive(Clone, Debug)]
pub struct Layer<'a> {
    /// Label in the legend.
    pub label: String,
    /// Number of the colour, which all figures share.
    pub series: usize,
    /// Thickness at each position, linear in between. Missing and non-finite values count as 0.
    pub values: &'a [f64],
}

impl StackedAreaChart<'_> {
    /// Draws the chart.
    pub fn draw(&self) -> Figure {
        // The legend has the order of the stack from top to bottom.
        let legend: Vec<Entry> = self
            .layers
            .iter()
            .rev()
            .map(|layer| Entry { swatch: Swatch::Bar(layer.series), label: layer.label.clone() })
            .collect();
        let mut plot = PlotArea::new(Horizontal::Axis(&self.x), &self.y, 230.0, &legend);
        let mut bottom = vec![0.0; self.at.len()];
        for layer in &self.layers {
            let thick = |i: usize| layer.values.get(i).copied().filter(|value| value.is_finite()).unwrap_or(0.0);
            let top: Vec<f64> = bottom.iter().enumerate().map(|(i, below)| below + thick(i)).collect();
            let mut path = String::new();
            let mut to = |i: usize, y: f64| {
                let [x, y] = [plot.x(&self.x.scale, self.at[i]), plot.y(y)].map(Coordinate);
                let letter = if path.is_empty() { 'M' } else { 'L' };
                path.push_str(&format!("{letter}{x} {y}"));
            };
            (0..top.len()).for_each(|i| to(i, top[i]));
            (0..top.len()).rev().for_each(|i| to(i, bottom[i]));
            if top != bottom {
                let class = series_class(layer.series);
                plot.pen.write(format_args!("<path class=\"area {class}\" d=\"{path}Z\"/>\n"));
            }
            bottom = top;
        }
        plot.finish(&self.caption)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{Scale, Unit};

    #[test]
    fn each_layer_starts_at_the_top_of_the_one_below_and_empty_layers_are_omitted() {
        let axis = |unit| Axis { title: "t".into(), unit, scale: Scale::fixed(0.0, 1.0, unit) };
        let layer = |series, values| Layer { label: format!("l{series}"), series, values };
        let draw = |layers| {
            let (x, y) = (axis(Unit::Number), axis(Unit::Percent));
            StackedAreaChart { caption: Caption::default(), x, y, at: &[0.0, 1.0], layers }.draw().inline()
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
        // The top of one layer is the bottom of the next.
        assert_eq!((low[0], low[1]), (high[3], high[2]));
        assert_eq!(high[1], high[2], "a value that is not a number has no thickness");
    }
}
