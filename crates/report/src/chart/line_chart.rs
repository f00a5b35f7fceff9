//! Line charts: points, steps and means with error bars over a shared horizontal axis.

use super::figure::{Caption, Figure};
use super::legend::{Entry, Swatch, series_class};
use super::plot_area::{Axis, Horizontal, PlotArea};
use super::svg_pen::Coordinate;

/// A chart of quantities that change along the horizontal axis, one line per series.
#[derive(Clone, Debug)]
pub struct LineChart<'a> {
    /// Name, title and description.
    pub caption: Caption,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The lines; the last one is drawn on top.
    pub lines: Vec<Line<'a>>,
}

/// One series of a line chart.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// Label in the legend.
    pub label: String,
    /// Number of the colour and pattern, which all figures share.
    pub series: usize,
    /// The data.
    pub shape: Shape<'a>,
}

/// The data of a line, in units of the axes. The line is broken where a value is missing or not finite.
#[derive(Clone, Copy, Debug)]
pub enum Shape<'a> {
    /// Straight lines from point (x, y) to point. Triangles mark where they go on beyond the top of the axis.
    Points(&'a [(f64, Option<f64>)]),
    /// A constant level in each of several adjacent bins of equal width.
    Steps {
        /// Beginning of the first bin.
        start: f64,
        /// Width of each bin.
        width: f64,
        /// Level in each bin.
        levels: &'a [Option<f64>],
    },
    /// Means over runs, joined by straight lines, with as many error bars as can be distinguished.
    Means(&'a [Mean]),
}

/// The mean of a quantity over several runs at one position of the horizontal axis.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mean {
    /// Position on the horizontal axis.
    pub at: f64,
    /// Mean; the line is broken at `None`.
    pub mean: Option<f64>,
    /// Standard deviation over the runs: half the length of the error bar.
    pub deviation: f64,
}

/// Minimum distance of error bars, and half the width of their ends, in pixels.
const BAR_DISTANCE: f64 = 36.0;
const BAR_END: f64 = 2.5;
/// Half the width of a mark where a line goes on beyond the axis, and minimum distance of such marks, in pixels.
const CUT: f64 = 4.0;
const CUT_DISTANCE: f64 = 24.0;

impl LineChart<'_> {
    /// Draws the chart.
    pub fn draw(&self) -> Figure {
        let legend: Vec<Entry> = self
            .lines
            .iter()
            .map(|line| Entry { swatch: Swatch::Line(line.series), label: line.label.clone() })
            .collect();
        let mut plot = PlotArea::new(Horizontal::Axis(&self.x), &self.y, 230.0, &legend);
        for (index, line) in self.lines.iter().enumerate() {
            if let Shape::Means(means) = line.shape {
                // Offset the error bars of different lines from each other.
                let bars = self.bars(&plot, means, index as f64 / self.lines.len() as f64);
                if !bars.is_empty() {
                    let class = series_class(line.series);
                    plot.pen.write(format_args!("<path class=\"whisker {class}\" d=\"{bars}\"/>\n"));
                }
            }
            let path = self.path(&plot, line.shape);
            if !path.is_empty() {
                let class = series_class(line.series);
                plot.pen.write(format_args!("<path class=\"line {class}\" d=\"{path}\"/>\n"));
            }
            let cuts = self.cuts(&plot, line.shape);
            if !cuts.is_empty() {
                plot.pen.write(format_args!("<path class=\"cut\" d=\"{cuts}\"/>\n"));
            }
        }
        plot.finish(&self.caption)
    }

    /// Returns the path of the error bars: at each mean if they fit, else at some, the first of them `phase` distances
    /// from the left.
    fn bars(&self, plot: &PlotArea, means: &[Mean], phase: f64) -> String {
        let sparse = means.len() as f64 * BAR_DISTANCE <= plot.right - plot.left;
        let mut next = plot.left + BAR_DISTANCE * phase;
        let mut path = String::new();
        for Mean { at, mean, deviation } in means {
            let x = plot.x(&self.x.scale, *at);
            let Some(mean) = mean.filter(|mean| mean.is_finite() && at.is_finite()) else { continue };
            // Without deviation there is no error bar.
            if !(deviation.is_finite() && *deviation > 0.0 && (sparse || x >= next)) {
                continue;
            }
            while next <= x {
                next += BAR_DISTANCE;
            }
            let [low, high] = [plot.y(mean - deviation), plot.y(mean + deviation)].map(Coordinate);
            let [x, left, right] = [x, x - BAR_END, x + BAR_END].map(Coordinate);
            path.push_str(&format!("M{left} {high}H{right}M{x} {high}V{low}M{left} {low}H{right}"));
        }
        path
    }

    /// Returns triangles at the top of the plot where a line from point to point goes on beyond the axis.
    fn cuts(&self, plot: &PlotArea, shape: Shape<'_>) -> String {
        let Shape::Points(points) = shape else { return String::new() };
        let high = self.y.scale.high();
        let beyond = |point: &(f64, Option<f64>)| point.1.is_some_and(|y| y.is_finite() && y > high);
        let mut path = String::new();
        let mut next = plot.left;
        for two in points.windows(2).filter(|two| two.iter().all(beyond)) {
            let [from, until] = [two[0].0, two[1].0].map(|x| plot.x(&self.x.scale, x));
            let middle = (from + until) / 2.0;
            if middle >= next {
                next = middle + CUT_DISTANCE;
                let [x, y] = [middle - CUT, plot.top - 2.0].map(Coordinate);
                path.push_str(&format!(
                    "M{x} {y}h{}l-{} -{}z",
                    Coordinate(2.0 * CUT),
                    Coordinate(CUT),
                    Coordinate(1.4 * CUT)
                ));
            }
        }
        path
    }

    fn path(&self, plot: &PlotArea, shape: Shape<'_>) -> String {
        let mut path = String::new();
        let mut broken = true;
        let mut to = |x: f64, y: f64, broken: bool| {
            let letter = if broken { 'M' } else { 'L' };
            let [x, y] = [plot.x(&self.x.scale, x), plot.y(y)].map(Coordinate);
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
            Shape::Means(means) => {
                for mean in means {
                    match mean.mean.filter(|y| y.is_finite() && mean.at.is_finite()) {
                        Some(y) => {
                            to(mean.at, y, broken);
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
                    // Equal levels in adjacent bins are one line.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{Scale, Unit};

    fn draw(lines: &[&[Mean]]) -> String {
        let axis = || Axis { title: "t".into(), unit: Unit::Number, scale: Scale::fixed(0.0, 10.0, Unit::Number) };
        let lines = lines.iter().enumerate().map(|(series, means)| Line {
            label: format!("l{series}"),
            series,
            shape: Shape::Means(means),
        });
        let lines = lines.collect();
        LineChart { caption: Caption::default(), x: axis(), y: axis(), lines }.draw().inline()
    }

    fn mean(at: f64, mean: f64, deviation: f64) -> Mean {
        Mean { at, mean: Some(mean), deviation }
    }

    #[test]
    fn error_bars_extend_one_standard_deviation_up_and_down() {
        let gap = Mean { at: 4.0, ..Mean::default() };
        let svg =
            draw(&[&[mean(0.0, 0.0, 0.0), mean(2.0, 5.0, 2.5), gap, mean(6.0, 9.0, 5.0), mean(8.0, 1.0, f64::NAN)]]);
        let bars = svg.lines().find(|line| line.contains("\"whisker s0\"")).unwrap();
        assert_eq!(bars.matches('V').count(), 2, "none without a deviation or a mean: {bars}");
        let line = svg.lines().find(|line| line.contains("<path class=\"line")).unwrap();
        assert_eq!((line.matches('M').count(), line.matches('L').count()), (2, 2), "broken at the gap");
        let heights: Vec<f64> = bars
            .split('M')
            .filter_map(|part| part.split_once('V'))
            .map(|(from, to)| {
                let y = |text: &str| text.trim_end_matches(|c: char| !c.is_ascii_digit()).parse::<f64>().unwrap();
                y(to) - y(from.split_once(' ').unwrap().1)
            })
            .collect();
        // 230 pixels for 10; the second one ends at the top of the axis.
        assert_eq!(heights, [115.0, 138.0]);
    }

    #[test]
    fn error_bars_of_many_means_keep_their_distance_and_lie_between_those_of_other_lines() {
        let many: Vec<Mean> = (0..1000).map(|k| mean(f64::from(k) / 100.0, 5.0, 1.0)).collect();
        let svg = draw(&[&many, &many]);
        let places = |series: usize| -> Vec<f64> {
            let bars = svg.lines().find(|line| line.contains(&format!("whisker s{series}"))).unwrap();
            let x = |part: &str| part.contains('V').then(|| part.split_once(' ').unwrap().0.parse().unwrap());
            bars.split('M').filter_map(x).collect()
        };
        let (first, second) = (places(0), places(1));
        assert!(first.len() > 10 && second.len() > 10);
        assert!(first.windows(2).all(|pair| pair[1] - pair[0] > BAR_DISTANCE - 1.0), "{first:?}");
        let near = |a: &f64| second.iter().map(|b| (a - b).abs()).fold(f64::MAX, f64::min);
        assert!(first.iter().all(|a| near(a) > BAR_DISTANCE / 2.0 - 1.0));
    }
}
