//! A study: one workload replayed under a grid of policies and capacities.
//!
//! This room plans the grid, runs it, skips what a folder already holds, and turns the
//! simulator's results into [`record`]s. It draws nothing (that is the report's room) and holds
//! no policy.

pub mod record;
