//! Strips that show how densely something happens over time: one lane per subject.

use super::figure::{Caption, Figure};
use super::legend::{Entry, Swatch};
use super::plot_area::{Axis, PlotArea};
use super::svg_pen::Coordinate;

/// A chart with one strip per subject; the darkness of a column is the share of its time that is marked.
#[derive(Clone, Debug)]
pub struct DensityChart {
    /// Name, title and description.
    pub caption: Caption,
    /// The horizontal axis; linear.
    pub x: Axis,
    /// The strips, from top to bottom.
    pub strips: Vec<Strip>,
    /// What the columns show, for the legend: `of the time with a complaint`.
    pub meaning: String,
}

/// One strip.
#[derive(Clone, Debug, PartialEq)]
pub struct Strip {
    /// Label at the left.
    pub label: String,
    /// The marked times (beginning, end), in any order and in units of the horizontal axis. They may overlap.
    pub marked: Vec<(f64, f64)>,
}

/// In pixels: the height of a strip, the gap below it, and the width of a column.
const STRIP: f64 = 18.0;
const BELOW: f64 = 8.0;
const COLUMN: f64 = 6.0;
/// The upper ends of the levels of darkness, in percent; each has a style class, the first for the least.
const LEVELS: [u32; 4] = [5, 25, 50, 100];

impl DensityChart {
    /// Draws the chart.
    pub fn draw(&self) -> Figure {
        let heights = vec![STRIP + BELOW; self.strips.len()];
        let labels: Vec<&str> = self.strips.iter().map(|strip| strip.label.as_str()).collect();
        let (mut plot, tops) = PlotArea::with_lanes(&self.x, &labels, &heights, BELOW, &self.legend());
        let width = plot.right - plot.left;
        let columns = (width / COLUMN).floor().max(1.0) as usize;
        let each = width / columns as f64;
        for (strip, top) in self.strips.iter().zip(tops) {
            plot.pen.rectangle("strip", [plot.left, top], [width, STRIP]);
            let shares = self.shares(strip, columns);
            for (level, class) in CLASSES.iter().enumerate() {
                let mut path = String::new();
                for (column, _) in shares.iter().enumerate().filter(|(_, share)| level_of(**share) == Some(level)) {
                    let left = Coordinate(plot.left + each * column as f64);
                    let [top, height, width] = [top, STRIP, each].map(Coordinate);
                    path.push_str(&format!("M{left} {top}h{width}v{height}h-{width}z"));
                }
                if !path.is_empty() {
                    plot.pen.write(format_args!("<path class=\"{class}\" d=\"{path}\"/>\n"));
                }
            }
        }
        plot.finish(&self.caption)
    }

    /// Returns the share of each column's time that is marked.
    fn shares(&self, strip: &Strip, columns: usize) -> Vec<f64> {
        let (low, high) = (self.x.scale.low(), self.x.scale.high());
        let each = (high - low) / columns as f64;
        let within = strip.marked.iter().map(|&(from, until)| (from.max(low), until.min(high)));
        let mut marked: Vec<(f64, f64)> = within.filter(|(from, until)| from < until).collect();
        marked.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut shares = vec![0.0; columns];
        let mut done = low;
        for (from, until) in marked {
            // What overlaps counts once.
            let from = from.max(done);
            if from >= until {
                continue;
            }
            done = until;
            let column = |at: f64| (((at - low) / each) as usize).min(columns - 1);
            for (at, share) in shares.iter_mut().enumerate().take(column(until) + 1).skip(column(from)) {
                let begin = low + each * at as f64;
                *share += ((until.min(begin + each) - from.max(begin)) / each).max(0.0);
            }
        }
        shares
    }

    fn legend(&self) -> Vec<Entry> {
        let label = |at: usize| match at {
            last if last + 1 == LEVELS.len() => format!("more than {}\u{a0}% {}", LEVELS[at - 1], self.meaning),
            _ => format!("up to {}\u{a0}%", LEVELS[at]),
        };
        CLASSES.iter().enumerate().map(|(at, class)| Entry { swatch: Swatch::Box(class), label: label(at) }).collect()
    }
}

const CLASSES: [&str; LEVELS.len()] = ["density d0", "density d1", "density d2", "density d3"];

/// Returns the level of a share; `None` if nothing is marked.
fn level_of(share: f64) -> Option<usize> {
    let of = || LEVELS.iter().position(|&end| share <= f64::from(end) / 100.0 + 1e-9).unwrap_or(LEVELS.len() - 1);
    (share > 0.0).then(of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{Scale, Unit};

    fn chart(marked: Vec<(f64, f64)>) -> DensityChart {
        DensityChart {
            caption: Caption::default(),
            x: Axis { title: "time".into(), unit: Unit::Seconds, scale: Scale::fixed(0.0, 100.0, Unit::Seconds) },
            strips: vec![Strip { label: "ann".into(), marked }],
            meaning: "of the time".into(),
        }
    }

    #[test]
    fn a_column_has_the_share_of_its_time_that_is_marked() {
        let chart = chart(vec![(5.0, 10.0), (7.0, 12.0), (49.0, 51.0), (90.0, 1000.0), (-3.0, -1.0)]);
        let close = |found: Vec<f64>, expected: [f64; 10]| {
            assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{found:?}");
        };
        close(chart.shares(&chart.strips[0], 10), [0.5, 0.2, 0.0, 0.0, 0.1, 0.1, 0.0, 0.0, 0.0, 1.0]);
        assert_eq!(
            [0.0, 0.001, 0.05, 0.06, 0.5, 0.51, 1.0].map(level_of),
            [None, Some(0), Some(0), Some(1), Some(2), Some(3), Some(3)]
        );
    }

    #[test]
    fn short_marks_are_visible_and_many_of_them_stay_small() {
        let svg = chart(vec![(50.0, 50.001)]).draw().inline();
        assert_eq!(svg.matches("<path class=\"density d0\"").count(), 1, "{svg}");
        let many = (0..100_000).map(|at| (f64::from(at) * 1e-3, f64::from(at) * 1e-3 + 5e-4)).collect();
        let svg = chart(many).draw().inline();
        assert!(svg.len() < 20_000 && svg.contains("density d2"), "{} bytes", svg.len());
    }
}
