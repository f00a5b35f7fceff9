//! Bao (2015), "Bottleneck-aware Allocation of Multiple Resources with Time Constraint".

mod arrivals;
pub(crate) mod figure_1;
pub(crate) mod figure_2;
pub(crate) mod figure_3;
