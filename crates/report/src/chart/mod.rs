//! Draws charts as SVG: one file per kind of chart, with shared scales, axes, legend and colours.
//!
//! A chart takes data in seconds, fractions or plain numbers and draws a [`Figure`], which can be written as a
//! standalone file or embedded in a page. Colours, line patterns and fonts are style classes (`assets/chart.css`),
//! so that the same drawing is readable on light and on dark backgrounds. Equal data give equal bytes. Drawing
//! never fails: values that are not finite are omitted.
//!
//! The colours are those of Okabe and Ito, "Color Universal Design" (2008), which remain distinguishable under
//! the common colour vision deficiencies; yellow is darkened, since it is invisible as a line on white. Lines
//! also differ in pattern, and bars have the order of the legend's entries: every figure is readable without
//! colours.

mod bar_chart;
mod date_ticks;
mod density_chart;
mod downsample_line;
mod figure;
mod gantt_chart;
mod interval_packing;
mod legend;
mod line_chart;
mod plot_area;
mod scale;
mod scatter_chart;
mod stacked_area_chart;
mod svg_pen;
mod ticks;
mod water_filling_chart;

pub use bar_chart::{BarChart, BarSeries};
pub use density_chart::{DensityChart, Strip};
pub use downsample_line::downsample_line;
pub use figure::{Caption, Figure, style};
pub use gantt_chart::{GanttChart, GanttClient, Lane};
pub use interval_packing::{Interval, pack_intervals};
pub use line_chart::{Line, LineChart, Mean, Shape};
pub use plot_area::Axis;
pub use scale::{Scale, Spacing};
pub use scatter_chart::{Bubble, ScatterChart, ScatterParts, Side};
pub use stacked_area_chart::{Layer, StackedAreaChart};
pub(crate) use svg_pen::Escaped;
pub use ticks::{Tick, Unit, ticks};
pub use water_filling_chart::{Tank, WaterFillingChart};
