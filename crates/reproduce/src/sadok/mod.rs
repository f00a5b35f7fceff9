//! Sadok, Campista and Costa, "O Passado Também Importa" (stateful DRF).

pub(crate) mod figure_1a;
pub(crate) mod figure_1b;
pub(crate) mod figure_2a;
pub(crate) mod figure_2b;
pub(crate) mod figure_4;
pub(crate) mod figure_5;
pub(crate) mod figure_6;
mod filling;
mod grid;
mod sporadic;

pub(crate) use grid::Grid;
