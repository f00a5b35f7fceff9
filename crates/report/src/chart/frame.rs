//! What all charts share: the legend on top, below it the plot with its axes.

use super::figure::{Anchor, Caption, Figure, Pen, shortened, text_width};
use super::legend::{Entry, draw_legend};
use super::scale::{Scale, Spacing};
use super::ticks::{Tick, Unit, ticks};

/// All figures are this wide, so that they line up in a page.
pub(super) const WIDTH: f64 = 560.0;

/// Room at the right for half of the last label, at least for a bubble on the edge.
const RIGHT: f64 = 18.0;
const TICK_GAP: f64 = 7.0;
const TEXT_HEIGHT: f64 = 12.0;
const LONGEST_LANE_LABEL: usize = 16;

/// One axis: what is counted, how it is labelled, where values lie.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What is counted, without the unit of time or `%`, which the axis adds.
    pub title: String,
    /// What the numbers are.
    pub unit: Unit,
    /// Range and spacing.
    pub scale: Scale,
}

impl Axis {
    /// The ticks, and the title with the unit the labels are in.
    fn labelled(&self) -> (Vec<Tick>, String) {
        let (ticks, unit) = ticks(&self.scale, self.unit);
        let title = if unit.is_empty() { self.title.clone() } else { format!("{} ({unit})", self.title) };
        (ticks, title)
    }
}

/// The horizontal side of a plot.
pub(super) enum Horizontal<'a> {
    /// An axis with numbers.
    Axis(&'a Axis),
    /// Places drawn by the chart itself, with a title.
    Named(&'a str),
}

/// A plot with drawn axes, ready for the data.
pub(super) struct Frame {
    pub(super) pen: Pen,
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
    y: Scale,
}

impl Frame {
    /// Draws the legend and the axes. `height` is that of the plot; `None` makes the plot square.
    pub(super) fn new(x: Horizontal<'_>, y: &Axis, height: Option<f64>, legend: &[Entry]) -> Frame {
        let mut pen = Pen::default();
        let (y_ticks, y_title) = y.labelled();
        let label_width = y_ticks.iter().map(|tick| text_width(&tick.label)).fold(0.0, f64::max);
        let left = (label_width + TICK_GAP + 4.0).max(36.0);
        let last_label = match x {
            Horizontal::Axis(axis) => axis.labelled().0.pop().map_or(0.0, |tick| text_width(&tick.label)),
            Horizontal::Named(_) => 0.0,
        };
        let right = WIDTH - RIGHT.max(last_label / 2.0);
        let legend_height = draw_legend(&mut pen, legend, WIDTH);
        let top = legend_height + 34.0;
        let bottom = top + height.unwrap_or(right - left);
        pen.text("axis-title vertical", [0.0, top - 14.0], Anchor::Start, &y_title);
        let mut frame = Frame { pen, left, right, top, bottom, y: y.scale };
        for tick in &y_ticks {
            let at = frame.y(tick.value);
            frame.pen.line(grid_class(&y.scale, tick), [left, at], [right, at]);
            frame.pen.text("tick", [left - TICK_GAP, at + 4.0], Anchor::End, &tick.label);
        }
        match x {
            Horizontal::Axis(axis) => frame.horizontal(axis),
            Horizontal::Named(title) => frame.x_title(title),
        }
        frame
    }

    /// Draws the legend, named lanes of these heights, and a horizontal axis with its grid; also returns the
    /// lanes' tops. The lowest `below` of a height lies under the lane: its name stands beside the rest.
    pub(super) fn lanes(x: &Axis, labels: &[&str], heights: &[f64], below: f64, legend: &[Entry]) -> (Frame, Vec<f64>) {
        let mut pen = Pen::default();
        let labels: Vec<String> = labels.iter().map(|label| shortened(label, LONGEST_LANE_LABEL)).collect();
        let label_width = labels.iter().map(|label| text_width(label)).fold(0.0, f64::max);
        // Whole pixels, so that what fills whole pixels looks crisp.
        let left = (label_width + TICK_GAP + 4.0).max(36.0).ceil();
        let last_label = x.labelled().0.pop().map_or(0.0, |tick| text_width(&tick.label));
        let right = (WIDTH - RIGHT.max(last_label / 2.0)).floor();
        let legend_height = draw_legend(&mut pen, legend, WIDTH);
        let top = legend_height + 14.0;
        let bottom = top + heights.iter().sum::<f64>();
        let y = Scale::fixed(0.0, 1.0, Unit::Number);
        let mut frame = Frame { pen, left, right, top, bottom, y };
        for tick in x.labelled().0.iter().filter(|tick| tick.value > x.scale.low()) {
            let at = frame.x(&x.scale, tick.value);
            frame.pen.line("grid", [at, top], [at, bottom]);
        }
        let mut tops = Vec::new();
        let mut lane_top = top;
        for (label, height) in labels.iter().zip(heights) {
            let middle = lane_top + (height - below) / 2.0;
            frame.pen.text("label", [left - TICK_GAP, middle + 4.0], Anchor::End, label);
            tops.push(lane_top);
            lane_top += height;
        }
        frame.horizontal(x);
        (frame, tops)
    }

    fn horizontal(&mut self, axis: &Axis) {
        let (ticks, title) = axis.labelled();
        let vertical_grid = axis.scale.spacing() == Spacing::LogWithZero;
        for tick in &ticks {
            let at = self.x(&axis.scale, tick.value);
            if vertical_grid {
                self.pen.line(grid_class(&axis.scale, tick), [at, self.top], [at, self.bottom]);
            } else {
                self.pen.line("axis", [at, self.bottom], [at, self.bottom + 4.0]);
            }
            self.pen.text("tick", [at, self.bottom + TICK_GAP + TEXT_HEIGHT], Anchor::Middle, &tick.label);
        }
        self.pen.line("axis", [self.left, self.bottom], [self.right, self.bottom]);
        self.x_title(&title);
    }

    fn x_title(&mut self, title: &str) {
        let middle = (self.left + self.right) / 2.0;
        self.pen.text("axis-title", [middle, self.bottom + 42.0], Anchor::Middle, title);
    }

    /// The horizontal place of a value on `scale`.
    pub(super) fn x(&self, scale: &Scale, value: f64) -> f64 {
        self.left + scale.place(value) * (self.right - self.left)
    }

    /// The vertical place of a value.
    pub(super) fn y(&self, value: f64) -> f64 {
        self.bottom - self.y.place(value) * (self.bottom - self.top)
    }

    /// The finished figure.
    pub(super) fn finish(self, caption: &Caption) -> Figure {
        Figure { caption: caption.clone(), width: WIDTH, height: self.bottom + 54.0, body: self.pen.body }
    }
}

/// The line at zero is an axis; on a logarithmic scale it stands for all of zero and is set apart.
fn grid_class(scale: &Scale, tick: &Tick) -> &'static str {
    match scale.spacing() {
        Spacing::Linear if tick.value == 0.0 => "axis",
        Spacing::LogWithZero if tick.value == 0.0 => "zero",
        _ => "grid",
    }
}
