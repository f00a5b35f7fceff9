//! Lines and steps over a shared horizontal axis.

use super::figure::{Caption, Coordinate, Figure};
use super::frame::{Axis, Frame, Horizontal};
use super::legend::{Entry, Swatch, series_class};

/// Quantities that change along the horizontal axis, one line a series.
#[derive(Clone, Debug)]
pub struct LineChart<'a> {
    /// What the figure is called.
    pub caption: Caption,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The lines, the last one on top.
    pub lines: Vec<Line<'a>>,
}

/// One series of a line chart.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// Its name in the legend.
    pub label: String,
    /// Its colour and pattern: the same number looks the same in all figures.
    pub series: usize,
    /// Its data.
    pub shape: Shape<'a>,
}

/// The data of a line. Where there is no finite number, the line is broken.
#[derive(Clone, Copy, Debug)]
pub enum Shape<'a> {
    /// Straight from point to point.
    Points(&'a [(f64, Option<f64>)]),
    /// A level for each of a row of bins of one width.
    Steps {
        /// Where the first bin begins.
        start: f64,
        /// The width of each.
        width: f64,
        /// The level in each.
        levels: &'a [Option<f64>],
    },
}

impl LineChart<'_> {
    /// Draws it.
    pub fn draw(&self) -> Figure {
        let legend: Vec<Entry> = self
            .lines
            .iter()
            .map(|line| Entry { swatch: Swatch::Line(line.series), label: line.label.clone() })
            .collect();
        let mut frame = Frame::new(Horizontal::Axis(&self.x), &self.y, Some(230.0), &legend);
        for line in &self.lines {
            let path = self.path(&frame, line.shape);
            if !path.is_empty() {
                let class = series_class(line.series);
                frame.pen.write(format_args!("<path class=\"line {class}\" d=\"{path}\"/>\n"));
            }
        }
        frame.finish(&self.caption)
    }

    fn path(&self, frame: &Frame, shape: Shape<'_>) -> String {
        let mut path = String::new();
        let mut broken = true;
        let mut to = |x: f64, y: f64, broken: bool| {
            let letter = if broken { 'M' } else { 'L' };
            let [x, y] = [frame.x(&self.x.scale, x), frame.y(y)].map(Coordinate);
            path.push_str(&format!("{letter}{x} {y}"));
        };
        match shape {
            Shape::Points(points) => {
                for &(x, y) in points {
                    match y.filter(|y| y.is_finite() && x.is_finite()) {
                        Some(y) => {
                            to(x, y, broken);
                            broken = false;
                        }
                        None => broken = true,
                    }
                }
            }
            Shape::Steps { start, width, levels } => {
                for (bin, level) in levels.iter().enumerate() {
                    let Some(level) = level.filter(|level| level.is_finite()) else {
                        broken = true;
                        continue;
                    };
                    to(start + width * bin as f64, level, broken);
                    // A run of equal levels is one line.
                    if levels.get(bin + 1) != Some(&Some(level)) {
                        to(start + width * (bin + 1) as f64, level, false);
                    }
                    broken = false;
                }
            }
        }
        path
    }
}
