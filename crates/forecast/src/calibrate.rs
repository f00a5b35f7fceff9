//! Calibration: each job of a past period is forecast with what was known at its submission, and the forecasts are compared with
//! what happened.

use rayon::prelude::*;

use crate::log::Log;
use crate::observe::{Observation, Observer};
use crate::predict::{Forecast, LEARNED, Predictor, QUANTILES, pinball};

/// The longest time before the period from which forecasts learn: ten weeks.
pub(crate) const LEARNED_S: i64 = 70 * 86_400;

/// How good the forecasts of a period were.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// The number of jobs that were forecast.
    pub jobs: usize,
    /// The part of them whose wait was in the 80 % interval.
    pub coverage: f64,
    /// The mean pinball loss, in seconds.
    pub pinball_s: f64,
    /// The same if the forecast is the mean of the user's last two known waits.
    pub last_two_waits_s: f64,
    /// The same if the forecast is the plan in which all jobs run to their limits.
    pub requested_limits_s: f64,
    /// The median width of the intervals, in seconds.
    pub median_width_s: f64,
    /// How much each origin counted, in the mean.
    pub weights: [f64; 3],
    /// Coverage by the forecast median.
    pub strata: Vec<Stratum>,
}

/// The jobs whose median forecast lies in a range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stratum {
    /// The range begins above this many seconds, unless it is the first.
    pub above_s: i64,
    /// The range ends with this many seconds; none for the last.
    pub to_s: Option<i64>,
    /// The number of jobs.
    pub jobs: usize,
    /// The part of them whose wait was in the interval.
    pub coverage: f64,
}

/// The pinball loss of a forecast, averaged over [`QUANTILES`].
fn loss(quantiles: [f64; 3], wait: i64) -> f64 {
    let each = QUANTILES.iter().zip(quantiles).map(|(&level, q)| pinball(level, q, wait as f64));
    each.sum::<f64>() / QUANTILES.len() as f64
}

/// Forecasts the jobs that were submitted in `from..to`, in seconds of the log, and returns how good the forecasts were; none if no
/// job was submitted then.
///
/// The result depends on the log, the period and the seed only, not on the number of threads.
pub fn calibrate(log: &Log, from: i64, to: i64, seed: u64) -> Option<Calibration> {
    let (first, last) = (log.first_from(from), log.first_from(to));
    if first >= last {
        return None;
    }
    let forecasts = forecasts(log, first..last, seed);
    let mut result = Calibration {
        jobs: forecasts.len(),
        coverage: 0.0,
        pinball_s: 0.0,
        last_two_waits_s: 0.0,
        requested_limits_s: 0.0,
        median_width_s: 0.0,
        weights: [0.0; 3],
        strata: Vec::new(),
    };
    let n = forecasts.len() as f64;
    for (job, (forecast, observation)) in log.jobs()[first..last].iter().zip(&forecasts) {
        let wait = job.wait();
        result.coverage += f64::from(u8::from(forecast.covers(wait))) / n;
        result.pinball_s += loss(forecast.quantiles.map(|q| q as f64), wait) / n;
        result.last_two_waits_s += loss([observation.mean_of_last_two(); 3], wait) / n;
        result.requested_limits_s += loss([observation.plan as f64; 3], wait) / n;
        result.weights.iter_mut().zip(forecast.weights).for_each(|(sum, w)| *sum += w / n);
    }
    let mut widths: Vec<i64> = forecasts.iter().map(|(f, _)| f.interval.1 - f.interval.0).collect();
    widths.sort_unstable();
    result.median_width_s = widths[widths.len() / 2] as f64;
    let waits: Vec<(&Forecast, i64)> =
        forecasts.iter().zip(&log.jobs()[first..last]).map(|((f, _), job)| (f, job.wait())).collect();
    result.strata = strata(&waits);
    Some(result)
}

/// The ends of the strata.
const STRATA_S: [i64; 3] = [60, 3600, 86_400];

fn strata(waits: &[(&Forecast, i64)]) -> Vec<Stratum> {
    let ends = STRATA_S.into_iter().map(Some).chain([None]);
    let mut above_s = 0;
    ends.map(|to_s| {
        let within = |f: &&(&Forecast, i64)| {
            let median = f.0.quantiles[1];
            (median > above_s || above_s == 0) && to_s.is_none_or(|to| median <= to)
        };
        let jobs = waits.iter().filter(within).count();
        let held = waits.iter().filter(within).filter(|(f, wait)| f.covers(*wait)).count();
        let stratum = Stratum { above_s, to_s, jobs, coverage: held as f64 / jobs.max(1) as f64 };
        above_s = to_s.unwrap_or(above_s);
        stratum
    })
    .filter(|s| s.jobs > 0)
    .collect()
}

/// Forecasts the jobs of a range, as [`calibrate`] does.
pub fn forecast_jobs(log: &Log, range: std::ops::Range<usize>, seed: u64) -> Vec<Forecast> {
    forecasts(log, range, seed).into_iter().map(|(forecast, _)| forecast).collect()
}

fn forecasts(log: &Log, range: std::ops::Range<usize>, seed: u64) -> Vec<(Forecast, Observation)> {
    if range.is_empty() {
        return Vec::new();
    }
    let learned_from = log.first_from(log.jobs()[range.start].submit - LEARNED_S);
    let first = range.start.saturating_sub(LEARNED).max(learned_from);
    let jobs: Vec<usize> = (first..range.end).collect();
    let observations = observe(log, &jobs, seed);
    let mut predictor = Predictor::new(log, seed);
    let forecast = |(job, observation): (usize, Observation)| (predictor.next(job, &observation), observation);
    let mut all: Vec<_> = jobs.into_iter().zip(observations).map(forecast).collect();
    all.drain(..range.start - first);
    all
}

/// Observes jobs, which are in their order, in parallel. An observation depends on the log before it only, so that each part can
/// start by itself.
pub(crate) fn observe(log: &Log, jobs: &[usize], seed: u64) -> Vec<Observation> {
    let parts = rayon::current_num_threads().max(1);
    let size = jobs.len().div_ceil(parts).max(1);
    let part = |jobs: &[usize]| {
        let mut observer = Observer::new(log);
        jobs.iter().map(|&job| observer.observe(job, seed)).collect::<Vec<_>>()
    };
    jobs.par_chunks(size).map(part).collect::<Vec<_>>().into_iter().flatten().collect()
}
