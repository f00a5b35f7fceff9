//! When will a job start? A distribution of its wait, from what is known when it is submitted.
//!
//! [`Log`] takes the jobs of a workload that have starts. [`calibrate`] forecasts each job of a past period with what was
//! known at its submission and nothing later, and compares the forecasts with what happened. [`Forecaster`] forecasts jobs that wait
//! at an instant, and jobs that could be submitted then. [`explain`] and [`what_if`] say why a job waited, and
//! what would have changed its start.
//!
//! ```
//! use evenhand_forecast::{Log, calibrate};
//! use evenhand_model::{Resource, Span, Task, Time, WorkloadBuilder};
//!
//! // Ann's jobs of a minute each; every second one waits half a minute for the one before.
//! let mut jobs = WorkloadBuilder::new([Resource::new("cpu", "")]);
//! for n in 0..400 {
//!     let submit = Time::from_secs(n / 2 * 600 + n % 2 * 30);
//!     jobs.push(&Task {
//!         submit,
//!         start: Some(submit + Span::from_secs(n % 2 * 30)),
//!         duration: Span::from_secs(60),
//!         requested: Some(Span::from_secs(60)),
//!         user: "ann",
//!         amounts: &[1_000_000_000],
//!         ..Task::default()
//!     });
//! }
//! let log = Log::of(&jobs.finish().unwrap()).unwrap();
//! let result = calibrate(&log, 60_000, 120_000, 1).unwrap();
//! assert_eq!(result.jobs, 200);
//! assert!(result.coverage > 0.95);
//! assert!(result.pinball_s < 0.2 * result.last_two_waits_s);
//! ```
//!
//! # From a submission to a forecast
//!
//! ```text
//!  log ──▶ State ──▶ Observation ──▶ Predictor ──▶ Forecast
//!          who runs,  the queue in     three           quantiles,
//!          who waits  22 numbers,      distributions,  interval
//!          then       12 replays       mixed
//! ```
//!
//! * `state` follows the log: at a submission it knows which jobs run and for how long, which wait, and how long ended jobs ran.
//! * `observe` replays that queue ([`Replay`]: first come first served with EASY backfilling, on a pool of one or several resources) with run times drawn from
//!   what similar jobs used of their limits (`run_times`) and with the arrivals of past weeks, and describes the queue.
//! * `predict` mixes the replays, the waits of similar jobs, and the waits of jobs about which the same was known (`forest`), by how
//!   well each did lately. The level of the intervals follows what they missed (adaptive conformal inference).
//!
//! No step reads anything of the log that happened after the submission, which a test holds: changing the future of a log
//! changes no forecast.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod calibrate;
mod distribution;
mod earlier_jobs;
mod forecaster;
mod forest;
mod log;
mod observe;
mod pending_blocks;
mod predict;
mod replay;
mod run_times;
mod size;
mod start_record;
mod state;
mod why;

pub use calibrate::{Calibration, Stratum, calibrate, forecast_jobs};
pub use forecaster::Forecaster;
pub use log::{Job, Log, LogError, NONE};
pub use predict::{COVERAGE, Forecast, ORIGINS, Origin, QUANTILES};
pub use replay::{HORIZON_S, Replay, Running, Waiting};
pub use size::{RESOURCES, Size};
pub use start_record::StartRecord;
pub use why::{
    Change, Explanation, HALF_LIFE_S, Holder, Obstacle, Standing, WhatIf, explain, overtaken_by, peak_use, standing,
    what_if,
};
