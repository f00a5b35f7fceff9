//! Tests of the crate on generated logs.
#![allow(clippy::unwrap_used, reason = "tests")]

mod calibration;
mod generated_log;
mod pools;
mod replay_against_simulator;
mod why;
