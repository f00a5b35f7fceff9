//! Bubble charts that compare a quantity under two conditions.

use super::figure::{Caption, Figure};
use super::legend::{Entry, Swatch};
use super::plot_area::{Axis, Horizontal, PlotArea, WIDE};
use super::scale::Spacing;
use super::svg_pen::{Anchor, Coordinate, Escaped, shortened, text_width};
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
    /// Name, written beside the bubble if the subject is one of those that differ most.
    pub name: String,
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

/// Number of subjects whose names are written, and maximum number of characters of a name.
const MAX_NAMES: usize = 5;
const MAX_NAME: usize = 18;

/// The area of a text: its ends in each direction.
struct Rectangle {
    x: [f64; 2],
    y: [f64; 2],
}

impl Rectangle {
    fn meets(&self, other: &Rectangle) -> bool {
        let apart = |a: [f64; 2], b: [f64; 2]| a[1] <= b[0] || b[1] <= a[0];
        !apart(self.x, other.x) && !apart(self.y, other.y)
    }

    fn within(&self, area: &Rectangle) -> bool {
        let inside = |a: [f64; 2], b: [f64; 2]| b[0] <= a[0] && a[1] <= b[1];
        inside(self.x, area.x) && inside(self.y, area.y)
    }
}

/// Returns the radius of a bubble in pixels.
fn radius(count: u64) -> f64 {
    2.0 + 1.5 * (count.max(1) as f64).log10()
}

/// The parts of a drawn chart that depend on its data beside the bubbles. A page that shows another pair of conditions
/// replaces them, and moves the bubbles.
#[derive(Clone, Debug, PartialEq)]
pub struct ScatterParts {
    /// The `viewBox` of the drawing.
    pub view: String,
    /// Legend, axes, diagonal and notes.
    pub frame: String,
    /// The names beside bubbles.
    pub names: String,
    /// The scales, as the bubbles' group has them in `data-x` and `data-y`.
    pub x: String,
    /// The vertical scale.
    pub y: String,
}

impl ScatterChart {
    /// Draws the chart.
    pub fn draw(&self) -> Figure {
        self.draw_parts().0
    }

    /// Draws the chart and returns it with those of its parts that another pair of conditions changes.
    pub fn draw_parts(&self) -> (Figure, ScatterParts) {
        let mut plot = PlotArea::sized(Horizontal::Axis(&self.x), &self.y, WIDE, &self.legend());
        let ends = [self.x.scale.low().max(self.y.scale.low()), self.x.scale.high().min(self.y.scale.high())];
        if ends[0] < ends[1] {
            let [from, to] = ends.map(|end| [plot.x(&self.x.scale, end), plot.y(end)]);
            plot.pen.line("diagonal", from, to);
        }
        let (left, right, top, bottom) = (plot.left, plot.right, plot.top, plot.bottom);
        plot.pen.text("note", [left + 12.0, top + 20.0], Anchor::Start, &self.above);
        let below = self.note_below(&plot);
        plot.pen.text("note", [right - 8.0, below], Anchor::End, &self.below);
        let frame = std::mem::take(&mut plot.pen.body);
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
        let (x, y) = (describe(&self.x, left, right), describe(&self.y, bottom, top));
        // Small bubbles lie on top of large ones.
        let mut order: Vec<&Bubble> = self.bubbles.iter().collect();
        order.sort_by_key(|bubble| (std::cmp::Reverse(bubble.count), bubble.subject));
        for bubble in order {
            self.bubble(&mut plot, bubble);
        }
        let bubbles = std::mem::take(&mut plot.pen.body);
        self.names(&mut plot);
        let names = std::mem::take(&mut plot.pen.body);
        plot.pen.body = format!(
            "<g class=\"frame\">\n{frame}</g>\n<g class=\"bubbles\" data-x=\"{x}\" data-y=\"{y}\">\n{bubbles}</g>\n\
             <g class=\"names\">\n{names}</g>\n"
        );
        let figure = plot.finish(&self.caption);
        let view = figure.view();
        (figure, ScatterParts { view, frame, names, x, y })
    }

    /// Returns where the note on positions below the line is: above those that lie at zero.
    fn note_below(&self, plot: &PlotArea) -> f64 {
        plot.bottom - self.y.scale.first_place() * (plot.bottom - plot.top) - 12.0
    }

    /// Writes the names of the subjects that differ most, each beside its bubble where nothing else is written.
    fn names(&self, plot: &mut PlotArea) {
        let mut most: Vec<(f64, &Bubble, (f64, f64))> = self
            .bubbles
            .iter()
            .filter(|bubble| bubble.side != Side::Same)
            .filter_map(|bubble| bubble.at.map(|at| ((at.1 - at.0).abs(), bubble, at)))
            .collect();
        most.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.subject.cmp(&b.1.subject)));
        let note = |text: &str| text_width(text);
        let mut taken = vec![
            Rectangle { x: [plot.left, plot.left + 12.0 + note(&self.above)], y: [plot.top, plot.top + 26.0] },
            Rectangle {
                x: [plot.right - 8.0 - note(&self.below), plot.right],
                y: [self.note_below(plot) - 12.0, self.note_below(plot) + 4.0],
            },
        ];
        let area = Rectangle { x: [plot.left, plot.right], y: [plot.top, plot.bottom] };
        for (_, bubble, (x, y)) in most.into_iter().take(MAX_NAMES) {
            let (x, y, radius) = (plot.x(&self.x.scale, x), plot.y(y), radius(bubble.count));
            let name = shortened(&bubble.name, MAX_NAME);
            let width = text_width(&name);
            let beside = radius + 4.0;
            // Right, left, above, below; then farther away, with a line to the bubble.
            let places = [0.0, 14.0, 28.0, 42.0, 56.0].into_iter().flat_map(|far| {
                let aside = if far > 0.0 { 8.0 } else { 0.0 };
                [
                    (x + beside + aside, y + 4.0 + far, Anchor::Start),
                    (x - beside - aside, y + 4.0 - far, Anchor::End),
                    (x, y - beside - far, Anchor::Middle),
                    (x, y + beside + 9.0 + far, Anchor::Middle),
                    (x + beside + aside, y + 4.0 - far, Anchor::Start),
                    (x - beside - aside, y + 4.0 + far, Anchor::End),
                ]
                .map(|at| (at, far > 0.0))
            });
            let covers = |at: &(f64, f64, Anchor)| {
                let left = match at.2 {
                    Anchor::Start => at.0,
                    Anchor::Middle => at.0 - width / 2.0,
                    Anchor::End => at.0 - width,
                };
                Rectangle { x: [left, left + width], y: [at.1 - 10.0, at.1 + 3.0] }
            };
            let free = |at: &(f64, f64, Anchor)| {
                let own = covers(at);
                own.within(&area) && taken.iter().all(|other| !own.meets(other))
            };
            // A name that fits nowhere is in the tooltip.
            let Some((place, is_far)) = places.into_iter().find(|(at, _)| free(at)) else { continue };
            let own = covers(&place);
            if is_far {
                let end = [x.clamp(own.x[0], own.x[1]), y.clamp(own.y[0], own.y[1])];
                plot.pen.line("lead", [x, y], end);
            }
            taken.push(own);
            plot.pen.text("label", [place.0, place.1], place.2, &name);
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{Scale, Unit};

    fn chart(points: &[(f64, f64)]) -> ScatterChart {
        let axis = |scale| Axis { title: "wait".into(), unit: Unit::Seconds, scale };
        let bubble = |(subject, &at): (usize, &(f64, f64))| Bubble {
            subject,
            name: format!("user-{subject}-with-a-very-long-name"),
            label: String::new(),
            at: Some(at),
            count: 10,
            side: if at.1 < at.0 { Side::Better } else { Side::Worse },
        };
        ScatterChart {
            caption: Caption::default(),
            x: axis(Scale::log_around(points.iter().map(|point| point.0))),
            y: axis(Scale::log_around(points.iter().map(|point| point.1))),
            bubbles: points.iter().enumerate().map(bubble).collect(),
            above: "longer".into(),
            below: "shorter".into(),
            counted: "tasks".into(),
        }
    }

    #[test]
    fn the_subjects_that_differ_most_are_named() {
        let points: Vec<(f64, f64)> = (1..20).map(|k| (f64::from(k) * 1000.0, f64::from(k * k) * 100.0)).collect();
        let (_, parts) = chart(&points).draw_parts();
        assert_eq!(parts.names.matches("<text").count(), MAX_NAMES);
        // 100 k² - 1000 k is largest for the last.
        for subject in 14..19 {
            assert!(parts.names.contains(&format!(">user-{subject}-with-a-ve…")), "{}", parts.names);
        }
    }

    #[test]
    fn names_never_lie_on_each_other_or_outside_the_plot() {
        // All at one place, in a corner.
        let points = [(1.0, 1.0), (1e6, 2e6), (1.0e6, 2.01e6), (1.0e6, 2.02e6), (1e6, 2.03e6), (1e6, 2.04e6)];
        let (_, parts) = chart(&points).draw_parts();
        let number = |text: &str, name: &str| -> f64 {
            let value = text.split(&format!(" {name}=\"")).nth(1).unwrap().split('"').next().unwrap();
            value.parse().unwrap()
        };
        let drawn: Vec<[f64; 4]> = parts
            .names
            .lines()
            .filter(|line| line.starts_with("<text"))
            .map(|line| {
                let (x, y, width) = (number(line, "x"), number(line, "y"), 18.0 * 7.4);
                let left = match line {
                    _ if line.contains("\"end\"") => x - width,
                    _ if line.contains("\"middle\"") => x - width / 2.0,
                    _ => x,
                };
                [left, left + width, y - 10.0, y + 3.0]
            })
            .collect();
        assert_eq!(drawn.len(), MAX_NAMES, "{}", parts.names);
        assert!(drawn.iter().all(|name| name[0] >= 36.0 && name[1] <= WIDE[0]), "{drawn:?}");
        for (at, a) in drawn.iter().enumerate() {
            for b in &drawn[at + 1..] {
                assert!(a[1] <= b[0] || b[1] <= a[0] || a[3] <= b[2] || b[3] <= a[2], "{drawn:?}");
            }
        }
    }
}
