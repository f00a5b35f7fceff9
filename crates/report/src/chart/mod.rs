//! Charts as SVG text: one file a kind of chart; scales, axes, legend and colours shared.
//!
//! A chart takes data in the quantities of the field (seconds, shares) and gives a [`Figure`], which
//! writes itself as a file of its own or as a part of a page. Colours, line patterns and fonts are
//! style classes (`assets/chart.css`), so that the same drawing is readable on light and on dark
//! paper. The same data gives the same bytes. No chart fails: what is not a finite number is left
//! out.
//!
//! The colours are those of Okabe and Ito, "Color Universal Design" (2008), which stay apart under
//! the common colour deficiencies; their yellow is darkened, being invisible as a line on white.
//! Lines also differ in pattern, bars and legend entries come in the same order: no figure needs
//! colours to be read.

mod bars;
mod figure;
mod frame;
mod gantt;
mod lanes;
mod legend;
mod lines;
mod scale;
mod scatter;
mod stack;
mod tanks;
mod thin;
mod ticks;

pub use bars::{BarChart, BarSeries};
pub use figure::{Caption, Figure, style};
pub use frame::Axis;
pub use gantt::{GanttChart, GanttClient, Lane};
pub use lanes::{Interval, rows};
pub use lines::{Line, LineChart, Mean, Shape};
pub use scale::{Scale, Spacing};
pub use scatter::{Bubble, ScatterChart, Side};
pub use stack::{Layer, StackChart};
pub use tanks::{Tank, TankChart};
pub use thin::thinned;
pub use ticks::{Tick, Unit, ticks};
