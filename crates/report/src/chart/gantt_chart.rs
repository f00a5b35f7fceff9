//! Gantt charts: one lane per resource that shows which client uses it when.

use super::figure::{Caption, Figure};
use super::interval_packing::{Block, Interval, pack_intervals, visible_blocks};
use super::legend::{Entry, Swatch, series_class};
use super::plot_area::{Axis, PlotArea};
use super::svg_pen::{Anchor, Coordinate, Pen, text_width};

/// A chart of the clients' use of resources over time, with lines under the lanes, such as for bottlenecks.
#[derive(Clone, Debug)]
pub struct GanttChart {
    /// Name, title and description.
    pub caption: Caption,
    /// The horizontal axis; linear.
    pub x: Axis,
    /// Labels and colours of the clients.
    pub clients: Vec<GanttClient>,
    /// The lanes, from top to bottom.
    pub lanes: Vec<Lane>,
    /// Label of the lines under lanes in the legend; omitted if no lane has one.
    pub line_label: String,
}

/// A client of a Gantt chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GanttClient {
    /// Label in the legend, and in the client's intervals where it fits.
    pub label: String,
    /// Number of the colour, which all figures share.
    pub series: usize,
}

/// One lane.
#[derive(Clone, Debug, PartialEq)]
pub struct Lane {
    /// Label at the left.
    pub label: String,
    /// Intervals of use in any order, in units of the horizontal axis; clients are indices into
    /// [`GanttChart::clients`]. Overlapping intervals divide the lane into rows. Intervals are clipped to the axis.
    pub intervals: Vec<Interval<f64>>,
    /// Periods (beginning, end) with a line under the lane.
    pub lines: Vec<(f64, f64)>,
}

/// In pixels: the height of a lane with one row, the minimum height of a row if there are several, the position of
/// the line under a lane, and the gap below a lane, which holds that line.
const LANE: f64 = 26.0;
const ROW: f64 = 9.0;
const LINE_AT: f64 = 4.5;
const BELOW: f64 = 14.0;
/// Lines closer than this many pixels merge, so that a flickering line does not take many bytes.
const NEAR: f64 = 0.1;

impl GanttChart {
    /// Draws the chart.
    pub fn draw(&self) -> Figure {
        let bar = |client: &GanttClient| Entry { swatch: Swatch::Bar(client.series), label: client.label.clone() };
        let mut legend: Vec<Entry> = self.clients.iter().map(bar).collect();
        if self.lanes.iter().any(|lane| !lane.lines.is_empty()) {
            legend.push(Entry { swatch: Swatch::Rule("bottleneck"), label: self.line_label.clone() });
        }
        let packed: Vec<Vec<Vec<Interval<f64>>>> = self.lanes.iter().map(|lane| self.rows(lane)).collect();
        let heights: Vec<f64> = packed.iter().map(|rows| LANE.max(ROW * rows.len() as f64) + BELOW).collect();
        let labels: Vec<&str> = self.lanes.iter().map(|lane| lane.label.as_str()).collect();
        let (mut plot, tops) = PlotArea::with_lanes(&self.x, &labels, &heights, BELOW, &legend);
        for (((lane, rows), top), height) in self.lanes.iter().zip(packed).zip(tops).zip(heights) {
            let height = height - BELOW;
            let each = height / rows.len().max(1) as f64;
            for (index, row) in rows.iter().enumerate() {
                // One pixel between rows, none below the last row.
                let gap = if index + 1 < rows.len() { 1.0 } else { 0.0 };
                self.row(&mut plot, row, [top + each * index as f64, each - gap]);
            }
            self.lines(&mut plot, &lane.lines, top + height + LINE_AT);
        }
        plot.finish(&self.caption)
    }

    /// Packs the intervals of a lane into rows, clipped to the axis.
    fn rows(&self, lane: &Lane) -> Vec<Vec<Interval<f64>>> {
        let (low, high) = (self.x.scale.low(), self.x.scale.high());
        let known = lane.intervals.iter().filter(|i| i.client < self.clients.len() && i.from < i.until);
        let cut = known.map(|i| Interval { from: i.from.max(low), until: i.until.min(high), ..*i });
        pack_intervals(&cut.collect::<Vec<_>>())
    }

    fn row(&self, plot: &mut PlotArea, row: &[Interval<f64>], [top, height]: [f64; 2]) {
        let on_paper = |x: f64| plot.x(&self.x.scale, x) - plot.left;
        let place = |i: &Interval<f64>| Interval { from: on_paper(i.from), until: on_paper(i.until), ..*i };
        let placed: Vec<Interval<f64>> = row.iter().map(place).filter(|i| i.from < i.until).collect();
        let left = plot.left;
        let drawn = visible_blocks(&placed, plot.right - left);
        // One path per client takes a tenth of the bytes of one element per interval.
        for (number, client) in self.clients.iter().enumerate() {
            let mut path = String::new();
            for block in drawn.iter().filter(|block| block.client == number) {
                rectangle(&mut path, block, [left, top, height]);
            }
            if !path.is_empty() {
                let class = series_class(client.series);
                plot.pen.write(format_args!("<path class=\"bar {class}\" d=\"{path}\"/>\n"));
            }
        }
        for i in placed.iter().filter(|_| height >= 16.0) {
            let label = &self.clients[i.client].label;
            if text_width(label) + 6.0 <= i.until - i.from {
                inside(&mut plot.pen, [left + (i.from + i.until) / 2.0, top + height / 2.0 + 4.0], label);
            }
        }
    }

    fn lines(&self, plot: &mut PlotArea, lines: &[(f64, f64)], y: f64) {
        let (low, high) = (self.x.scale.low(), self.x.scale.high());
        let in_order = lines.iter().filter(|(from, until)| from < until);
        let cut = in_order.map(|&(from, until)| (from.max(low), until.min(high))).filter(|(a, b)| a < b);
        let mut sorted: Vec<(f64, f64)> = cut.map(|(a, b)| (self.at(plot, a), self.at(plot, b))).collect();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let mut joined: Vec<(f64, f64)> = Vec::new();
        for (from, until) in sorted {
            match joined.last_mut() {
                Some(last) if from - last.1 < NEAR => last.1 = last.1.max(until),
                _ => joined.push((from, until)),
            }
        }
        let mut path = String::new();
        for (from, until) in joined {
            path.push_str(&format!("M{} {}h{}", Coordinate(from), Coordinate(y), Coordinate(across(from, until))));
        }
        if !path.is_empty() {
            plot.pen.write(format_args!("<path class=\"bottleneck\" d=\"{path}\"/>\n"));
        }
    }

    fn at(&self, plot: &PlotArea, x: f64) -> f64 {
        plot.x(&self.x.scale, x)
    }
}

fn inside(pen: &mut Pen, at: [f64; 2], label: &str) {
    pen.text("inside", at, Anchor::Middle, label);
}

/// Appends a block to a path.
fn rectangle(path: &mut String, block: &Block, [left, top, height]: [f64; 3]) {
    let [x, bottom] = [left + block.left, top + height * (1.0 - block.low)];
    let width = across(x, left + block.right);
    let tall = across(top + height * (1.0 - block.high), bottom);
    path.push_str(&format!(
        "M{} {}h{}v{}h{}z",
        Coordinate(x),
        Coordinate(bottom),
        Coordinate(width),
        Coordinate(-tall),
        Coordinate(-width)
    ));
}

/// Returns the distance between two coordinates as written, so that neighbours touch; at least a hundredth.
fn across(from: f64, to: f64) -> f64 {
    let hundredths = |x: f64| (x * 100.0).round();
    (hundredths(to) - hundredths(from)).max(1.0) / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{Scale, Unit};

    fn chart(lanes: Vec<Lane>) -> GanttChart {
        let client = |series: usize| GanttClient { label: format!("c{series}"), series };
        GanttChart {
            caption: Caption::default(),
            x: Axis { title: "time".into(), unit: Unit::Seconds, scale: Scale::fixed(0.0, 10.0, Unit::Seconds) },
            clients: (1..4).map(client).collect(),
            lanes,
            line_label: "bottleneck".into(),
        }
    }

    fn lane(intervals: &[(usize, f64, f64)], lines: &[(f64, f64)]) -> Lane {
        let intervals = intervals.iter().map(|&(client, from, until)| Interval { client, from, until }).collect();
        Lane { label: "CPU".into(), intervals, lines: lines.to_vec() }
    }

    /// The rectangles of the first path of a class: left, bottom, width, height.
    fn rectangles(svg: &str, class: &str) -> Vec<[f64; 4]> {
        let path = svg.lines().find(|line| line.starts_with(&format!("<path class=\"{class}\""))).unwrap();
        let d = path.split_once("d=\"").unwrap().1.split_once('"').unwrap().0;
        let numbers = |part: &str| -> Vec<f64> {
            part.split([' ', 'h', 'v', 'z']).filter(|n| !n.is_empty()).map(|n| n.parse().unwrap()).collect()
        };
        d.split('M').skip(1).map(numbers).map(|n| [n[0], n[1], n[2], -n.get(3).unwrap_or(&0.0)]).collect()
    }

    #[test]
    fn each_interval_is_a_bar_and_adjacent_intervals_merge() {
        let intervals =
            [(0, 0.0, 2.0), (1, 2.0, 4.0), (0, 4.0, 5.0), (0, 5.0, 20.0), (7, 0.0, 1.0), (2, f64::NAN, 1.0)];
        let svg = chart(vec![lane(&intervals, &[(1.0, 3.0), (3.0, 5.0), (-1.0, -0.5)])]).draw().inline();
        let (own, other) = (rectangles(&svg, "bar s1"), rectangles(&svg, "bar s2"));
        assert_eq!((own.len(), other.len()), (2, 1), "{svg}");
        let right = |r: [f64; 4]| r[0] + r[2];
        assert!((right(own[0]) - other[0][0]).abs() < 1e-9 && (right(other[0]) - own[1][0]).abs() < 1e-9);
        assert!((own[1][2] / own[0][2] - 3.0).abs() < 1e-3, "cut at the end of the axis");
        assert_eq!(own[0][3], LANE);
        assert!(!svg.contains("<path class=\"bar s3\""), "invalid intervals are omitted");
        let lines = rectangles(&svg, "bottleneck");
        assert_eq!(lines.len(), 1);
        assert!((lines[0][2] - own[0][2] * 2.0).abs() < 0.02);
        assert_eq!(svg.matches(">c1</text>").count(), 1 + 2, "in the legend and in its bars");
    }

    #[test]
    fn overlapping_intervals_divide_the_lane() {
        let svg = chart(vec![lane(&[(0, 0.0, 5.0), (1, 1.0, 6.0), (2, 5.0, 7.0)], &[])]).draw().inline();
        let bottoms: Vec<f64> = ["bar s1", "bar s2", "bar s3"].map(|c| rectangles(&svg, c)[0][1]).to_vec();
        assert!(bottoms[0] < bottoms[1] && bottoms[0] == bottoms[2], "{bottoms:?}");
        assert!(!svg.contains("bottleneck"), "no line, no entry");
    }

    #[test]
    fn a_chart_of_a_hundred_thousand_intervals_stays_small() {
        let all: Vec<(usize, f64, f64)> =
            (0..100_000).map(|k| ((k * k) % 3, k as f64 * 1e-4, (k + 1) as f64 * 1e-4)).collect();
        let svg = chart(vec![lane(&all, &[]), lane(&all[..50_000], &[])]).draw().standalone();
        assert!(svg.len() < 60_000, "{} bytes", svg.len());
        let area = |client: usize| -> f64 {
            let rectangles = rectangles(&svg, &format!("bar s{}", client + 1));
            rectangles.iter().map(|r| r[2] * r[3]).sum()
        };
        let used = |client: usize| all.iter().filter(|i| i.0 == client).count() as f64;
        // (k^2 mod 3 is 0, 1, 1, 0, 1, 1: a third and two thirds)
        assert!((area(1) / area(0) - used(1) / used(0)).abs() < 0.01);
    }

    #[test]
    fn a_chart_without_clients_or_intervals_has_its_axes() {
        let none = GanttChart { clients: Vec::new(), ..chart(Vec::new()) };
        assert!(none.draw().inline().contains("time (s)"));
        assert!(chart(vec![lane(&[], &[])]).draw().inline().contains(">CPU</text>"));
    }
}
