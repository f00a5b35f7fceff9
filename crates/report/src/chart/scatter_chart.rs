//! Bubble charts that compare a quantity under two conditions.

use super::figure::{Caption, Figure};
use super::legend::{Entry, Swatch};
use super::plot_area::{Axis, Horizontal, PlotArea};
use super::scale::Spacing;
use super::svg_pen::{Anchor, Coordinate, Escaped};
use crate::format_numbers::grouped;

/// A chart with one bubble per subject and the same quantity under two conditions on the axes, so that the line y = x
/// separates those who gain from those who lose.
#[derive(Clone, Debug)]
pub struct ScatterChart {
    /// Name, title and description.
    pub caption: Caption,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis, preferably with the same scale.
    pub y: Axis,
    /// The bubbles.
    pub bubbles: Vec<Bubble>,
    /// Meaning of a position above the line y = x.
    pub above: String,
    /// Meaning of a position below it.
    pub below: String,
    /// The items that the size of bubbles counts, such as `tasks`.
    pub counted: String,
}

/// One bubble.
#[derive(Clone, Debug, PartialEq)]
pub struct Bubble {
    /// Number of the subject, by which a page finds the bubble.
    pub subject: usize,
    /// Tooltip.
    pub label: String,
    /// The quantity under both conditions; at `None` the bubble is present but hidden.
    pub at: Option<(f64, f64)>,
    /// The radius grows with the logarithm of this number.
    pub count: u64,
    /// The colour.
    pub side: Side,
}

/// Whether a subject gains or loses in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Better off than under the other condition.
    Better,
    /// Worse off.
    Worse,
    /// Unchanged.
    Same,
}

impl Side {
    fn class(self) -> &'static str {
        match self {
            Side::Better => "better",
            Side::Worse => "worse",
            Side::Same => "same",
        }
    }
}

/// Returns the radius of a bubble in pixels.
fn radius(count: u64) -> f64 {
    2.0 + 1.5 * (count.max(1) as f64).log10()
}

impl ScatterChart {
    /// Draws the chart.
    pub fn draw(&self) -> Figure {
        let mut plot = PlotArea::new(Horizontal::Axis(&self.x), &self.y, None, &self.legend());
        let ends = [self.x.scale.low().max(self.y.scale.low()), self.x.scale.high().min(self.y.scale.high())];
        let [from, to] = ends.map(|end| [plot.x(&self.x.scale, end), plot.y(end)]);
        plot.pen.line("diagonal", from, to);
        let (left, right, top, bottom) = (plot.left, plot.right, plot.top, plot.bottom);
        plot.pen.text("note", [left + 12.0, top + 20.0], Anchor::Start, &self.above);
        plot.pen.text("note", [right - 8.0, bottom - 12.0], Anchor::End, &self.below);
        // The page's script needs the scales: it moves the bubbles when the reader chooses another pair of runs.
        let describe = |axis: &Axis, from: f64, to: f64| {
            let spacing = match axis.scale.spacing() {
                Spacing::Linear => "linear",
                Spacing::LogWithZero => "log",
            };
            let ends = [axis.scale.low(), axis.scale.high()];
            let [from, to] = [from, to].map(Coordinate);
            let places = [axis.scale.place(0.0), axis.scale.first_place()];
            format!("{spacing} {:e} {:e} {} {} {from} {to}", ends[0], ends[1], places[0], places[1])
        };
        plot.pen.write(format_args!(
            "<g class=\"bubbles\" data-x=\"{}\" data-y=\"{}\">\n",
            describe(&self.x, left, right),
            describe(&self.y, bottom, top)
        ));
        // Small bubbles lie on top of large ones.
        let mut order: Vec<&Bubble> = self.bubbles.iter().collect();
        order.sort_by_key(|bubble| (std::cmp::Reverse(bubble.count), bubble.subject));
        for bubble in order {
            self.bubble(&mut plot, bubble);
        }
        plot.pen.body.push_str("</g>\n");
        plot.finish(&self.caption)
    }

    fn bubble(&self, plot: &mut PlotArea, bubble: &Bubble) {
        let (x, y) = bubble.at.map_or((0.0, 0.0), |(x, y)| (plot.x(&self.x.scale, x), plot.y(y)));
        let [x, y, radius] = [x, y, radius(bubble.count)].map(Coordinate);
        let hidden = if bubble.at.is_some() { "" } else { " display=\"none\"" };
        plot.pen.write(format_args!(
            "<circle class=\"bubble {}\" data-subject=\"{}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"{hidden}>\
             <title>{}</title></circle>\n",
            bubble.side.class(),
            bubble.subject,
            Escaped(&bubble.label)
        ));
    }

    fn legend(&self) -> Vec<Entry> {
        let largest = self.bubbles.iter().map(|bubble| bubble.count).max().unwrap_or(1).max(1);
        let steps = largest.ilog10().div_ceil(2).max(1);
        let exponents: Vec<u32> = (0..=largest.ilog10()).step_by(steps as usize).collect();
        let sizes = exponents.iter().map(|&exponent| {
            let count = 10_u64.pow(exponent);
            let label = match exponents.last() {
                Some(&last) if last == exponent && count > 1 => format!("{} {}", grouped(count), self.counted),
                _ => grouped(count),
            };
            Entry { swatch: Swatch::Bubble { class: "same", radius: radius(count) }, label }
        });
        let line = Entry { swatch: Swatch::Diagonal, label: "no difference".into() };
        let side = |class, label: &str| Entry { swatch: Swatch::Bubble { class, radius: 6.0 }, label: label.into() };
        [side("better", "better"), side("worse", "worse"), line].into_iter().chain(sizes).collect()
    }
}
