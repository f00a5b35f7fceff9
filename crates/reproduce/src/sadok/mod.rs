//! Sadok, Campista and Costa (2021), "O Passado Também Importa" (stateful DRF).

pub(crate) mod figure_1a;
pub(crate) mod figure_1b;
pub(crate) mod figure_2a;
pub(crate) mod figure_2b;
pub(crate) mod figure_4;
mod figure_4_classes;
pub(crate) mod figure_5;
pub(crate) mod figure_6;
mod filling_diagram;
mod greedy_and_sporadic_users;
mod simulation_grid;

pub(crate) use simulation_grid::Grid;
