//! Bubbles at pairs of quantities.

use super::figure::{Anchor, Caption, Coordinate, Escaped, Figure};
use super::frame::{Axis, Frame, Horizontal};
use super::legend::{Entry, Swatch};
use super::scale::Spacing;
use crate::format::grouped;

/// One bubble a subject; the same quantity under two regimes on the axes, so that the line y = x
/// parts those better off from those worse off.
#[derive(Clone, Debug)]
pub struct ScatterChart {
    /// What the figure is called.
    pub caption: Caption,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis; best with the same scale.
    pub y: Axis,
    /// The bubbles.
    pub bubbles: Vec<Bubble>,
    /// What it means to be above the line y = x.
    pub above: String,
    /// What it means to be below it.
    pub below: String,
    /// What the size of bubbles counts: `tasks`.
    pub counted: String,
}

/// One bubble.
#[derive(Clone, Debug, PartialEq)]
pub struct Bubble {
    /// Which subject: the number by which a page finds the bubble.
    pub subject: usize,
    /// What is shown when a reader points at it.
    pub label: String,
    /// Both quantities; without them the bubble is there, but not seen.
    pub at: Option<(f64, f64)>,
    /// Its size grows with the logarithm of this.
    pub count: u64,
    /// Its colour.
    pub side: Side,
}

/// On which side of a comparison a subject is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Better off than under the other regime.
    Better,
    /// Worse off.
    Worse,
    /// No different.
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

/// The radius of a bubble for so many.
fn radius(count: u64) -> f64 {
    2.0 + 1.5 * (count.max(1) as f64).log10()
}

impl ScatterChart {
    /// Draws it.
    pub fn draw(&self) -> Figure {
        let mut frame = Frame::new(Horizontal::Axis(&self.x), &self.y, None, &self.legend());
        let ends = [self.x.scale.low().max(self.y.scale.low()), self.x.scale.high().min(self.y.scale.high())];
        let [from, to] = ends.map(|end| [frame.x(&self.x.scale, end), frame.y(end)]);
        frame.pen.line("diagonal", from, to);
        let (left, right, top, bottom) = (frame.left, frame.right, frame.top, frame.bottom);
        frame.pen.text("note", [left + 12.0, top + 20.0], Anchor::Start, &self.above);
        frame.pen.text("note", [right - 8.0, bottom - 12.0], Anchor::End, &self.below);
        // The script of the page moves the bubbles when another pair is asked for; it needs the scales.
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
        frame.pen.write(format_args!(
            "<g class=\"bubbles\" data-x=\"{}\" data-y=\"{}\">\n",
            describe(&self.x, left, right),
            describe(&self.y, bottom, top)
        ));
        // Small ones on top of large ones.
        let mut order: Vec<&Bubble> = self.bubbles.iter().collect();
        order.sort_by_key(|bubble| (std::cmp::Reverse(bubble.count), bubble.subject));
        for bubble in order {
            self.bubble(&mut frame, bubble);
        }
        frame.pen.body.push_str("</g>\n");
        frame.finish(&self.caption)
    }

    fn bubble(&self, frame: &mut Frame, bubble: &Bubble) {
        let (x, y) = bubble.at.map_or((0.0, 0.0), |(x, y)| (frame.x(&self.x.scale, x), frame.y(y)));
        let [x, y, radius] = [x, y, radius(bubble.count)].map(Coordinate);
        let hidden = if bubble.at.is_some() { "" } else { " display=\"none\"" };
        frame.pen.write(format_args!(
            "<circle class=\"bubble {}\" data-subject=\"{}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"{hidden}>\
             <title>{}</title></circle>\n",
            bubble.side.class(),
            bubble.subject,
            Escaped(&bubble.label)
        ));
    }

    fn legend(&self) -> Vec<Entry> {
        let most = self.bubbles.iter().map(|bubble| bubble.count).max().unwrap_or(1).max(1);
        let steps = most.ilog10().div_ceil(2).max(1);
        let exponents: Vec<u32> = (0..=most.ilog10()).step_by(steps as usize).collect();
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
