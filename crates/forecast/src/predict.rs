//! Forecasts, one job after the other: three distributions of its wait, mixed by how well each did lately, and an interval whose level
//! follows what the intervals before it missed.
//!
//! * *replay*: the waits in replays of the queue;
//! * *similar*: the waits of the latest jobs of the same queue, size and limit;
//! * *learned*: the waits of past jobs about which the same was known, by a quantile regression forest; the quantiles of the
//!   replays are among what it divides by, so that it also learns how far replays can be trusted.

use std::collections::HashMap;

use crate::distribution::{Distribution, Seen};
use crate::forest::{Features, Forest};
use crate::log::{Job, Log};
use crate::observe::{Observation, log_wait};

/// Stands for a job that is not in the log.
const NO_JOB: u32 = u32::MAX;

/// The part of jobs that the intervals are to hold.
pub const COVERAGE: f64 = 0.8;

/// The quantiles over which the pinball loss is averaged.
pub const QUANTILES: [f64; 3] = [0.1, 0.5, 0.9];

/// The latest jobs from which a forest grows.
pub(crate) const LEARNED: usize = 8000;
/// How many jobs until the next forest grows.
const EVERY: usize = 150;
/// The fewest jobs from which a forest grows.
const FEWEST: usize = 100;
/// The latest jobs that count as similar.
const SIMILAR: usize = 40;

/// How fast the weight of a worse source falls with the ratio of its loss to the least loss.
const SHARPNESS: f64 = 12.0;
/// The number of longer waits that count as much as the assumption of a heavy tail.
const TAIL_VALUES: f64 = 4.0;
/// The least weight of replays for a job that waits already, before its wait so far is considered.
const LEAST_REPLAY: f64 = 0.02;
/// How much the losses of the past fade with each job.
const FADING: f64 = 0.997;
/// How far a missed job moves the level of the intervals (Gibbs and Candès 2021).
const STEP: f64 = 0.01;
/// Above this level the interval is widened beyond the waits that were seen, on the scale log(1 + wait), by `WIDENING` times the excess.
const WIDEST_LEVEL: f64 = 0.95;
const WIDENING: f64 = 4.0;
/// Intervals have a level of their own for each range of the median forecast, which ends here: short waits are easy to forecast, and must not
/// make up for long ones.
const LEVELS_S: [i64; 2] = [60, 3 * 3600];

fn level_of(median: i64) -> usize {
    LEVELS_S.iter().take_while(|end| median > **end).count()
}

/// From where a forecast comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Replays of the queue.
    Replay,
    /// The waits of similar jobs.
    Similar,
    /// The waits of jobs about which the same was known.
    Learned,
}

/// All of them, in the order of their weights.
pub const ORIGINS: [Origin; 3] = [Origin::Replay, Origin::Similar, Origin::Learned];

impl Origin {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Origin::Replay => "replay",
            Origin::Similar => "similar",
            Origin::Learned => "learned",
        }
    }
}

/// The forecast of a job's wait, in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    /// The quantiles at [`QUANTILES`].
    pub quantiles: [i64; 3],
    /// The interval that holds 80 % of such jobs.
    pub interval: (i64, i64),
    /// How much each of [`ORIGINS`] counts.
    pub weights: [f64; 3],
}

impl Forecast {
    /// Returns whether the interval contains this wait.
    pub fn covers(&self, wait: i64) -> bool {
        self.interval.0 <= wait && wait <= self.interval.1
    }
}

/// The pinball loss of one quantile of a wait.
pub(crate) fn pinball(level: f64, quantile: f64, wait: f64) -> f64 {
    if wait >= quantile { level * (wait - quantile) } else { (1.0 - level) * (quantile - wait) }
}

/// A forecast whose job had not started when it was last looked at.
#[derive(Clone, Debug)]
struct Open {
    job: u32,
    /// The quantiles of each origin.
    origins: [Option<[i64; 3]>; 3],
    interval: (i64, i64),
    /// Which of the levels the interval has.
    level: usize,
    /// Whether the interval was found to have missed.
    missed: bool,
}

/// The forecaster of jobs of a log, one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Predictor<'a> {
    log: &'a Log,
    /// The jobs that were observed, in their order; a row is a place in this list.
    observed: Vec<u32>,
    features: Vec<Features>,
    values: Vec<f32>,
    forest: Option<Forest>,
    grown_at: usize,
    similar: HashMap<(u32, u32, u32), Vec<u32>>,
    open: Vec<Open>,
    losses: [f64; 3],
    losses_of: f64,
    /// How far the level of all intervals, and of those of each range, has moved.
    moved: f64,
    moved_in: [f64; LEVELS_S.len() + 1],
    seed: u64,
}

impl<'a> Predictor<'a> {
    pub(crate) fn new(log: &'a Log, seed: u64) -> Predictor<'a> {
        Predictor {
            log,
            observed: Vec::new(),
            features: Vec::new(),
            values: Vec::new(),
            forest: None,
            grown_at: 0,
            similar: HashMap::new(),
            open: Vec::new(),
            losses: [0.0; 3],
            losses_of: 0.0,
            moved: 0.0,
            moved_in: [0.0; LEVELS_S.len() + 1],
            seed,
        }
    }

    /// Forecasts a job, as observed at its submission, and learns from what is known by then. The job comes after those that
    /// were forecast before.
    pub(crate) fn next(&mut self, index: usize, observation: &Observation) -> Forecast {
        let row = self.features.len();
        let job = self.log.jobs()[index];
        self.learn_until(job.submit);
        let origins = self.origins(&observation.features, Distribution::of(observation.replays), &job, job.submit);
        let (forecast, open) = self.combine(&origins, self.weights(&origins), index as u32);
        self.open.push(open);
        self.observed.push(index as u32);
        if let Some(forest) = &mut self.forest {
            forest.insert(row as u32, &observation.features);
        }
        self.features.push(observation.features);
        self.values.push(0.0);
        let similar = self.similar.entry(similar_key(self.log, &job)).or_default();
        if similar.len() >= 2 * SIMILAR {
            similar.drain(..SIMILAR);
        }
        similar.push(row as u32);
        forecast
    }

    /// Learns from what is known by `now`.
    pub(crate) fn learn_until(&mut self, now: i64) {
        let row = self.features.len();
        self.learn(now);
        if row >= FEWEST && (self.forest.is_none() || row >= self.grown_at + EVERY) {
            self.grow(row, now);
        }
    }

    /// Forecasts a job that is submitted now, behind those that were observed, without learning from it.
    pub(crate) fn forecast_new(&self, job: &Job, observation: &Observation) -> Forecast {
        let origins = self.origins(&observation.features, Distribution::of(observation.replays), job, job.submit);
        self.combine(&origins, self.weights(&origins), NO_JOB).0
    }

    /// Returns what was known of a job at its submission, if it was observed.
    pub(crate) fn features_of(&self, index: usize) -> Option<&Features> {
        let row = self.observed.binary_search(&(index as u32)).ok()?;
        self.features.get(row)
    }

    /// Forecasts how much longer a job waits that waits at `now`, given replays of what is left, and what was known of it at its
    /// submission. The waits of others count as far as they were longer than this one is already.
    pub(crate) fn forecast_waiting(
        &self,
        index: usize,
        remaining: &[i64],
        features: Option<&Features>,
        now: i64,
    ) -> Forecast {
        let job = self.log.jobs()[index];
        let elapsed = now - job.submit;
        let replays = Distribution::of(remaining.iter().map(|r| r + elapsed));
        let (origins, weights) = match features {
            Some(features) => {
                let [replays, similar, learned] = self.origins(features, replays, &job, now);
                let (similar, similar_part) = similar.longer_than(elapsed);
                let (learned, learned_part) = learned.longer_than(elapsed);
                let origins = [replays, similar, with_long_tail(learned, elapsed)];
                // By the rule of Bayes: a source that had not expected so long a wait counts less.
                let prior = self.weights(&origins);
                let posterior = [prior[0].max(LEAST_REPLAY), prior[1] * similar_part, prior[2] * learned_part];
                let sum: f64 = posterior.iter().sum();
                (origins, posterior.map(|w| w / sum))
            }
            None => ([replays, Distribution::default(), Distribution::default()], [1.0, 0.0, 0.0]),
        };
        let forecast = self.combine(&origins, weights, NO_JOB).0;
        let left = |wait: i64| (wait - elapsed).max(0);
        Forecast {
            quantiles: forecast.quantiles.map(left),
            interval: (left(forecast.interval.0), left(forecast.interval.1)),
            ..forecast
        }
    }

    fn origins(&self, features: &Features, replays: Distribution, job: &Job, now: i64) -> [Distribution; 3] {
        let similar = self.similar.get(&similar_key(self.log, job)).map_or(&[][..], Vec::as_slice);
        let latest = similar[similar.len().saturating_sub(SIMILAR)..].iter().map(|&row| self.seen(row, 1.0, now));
        let mut learned = Vec::new();
        if let Some(forest) = &self.forest {
            forest.alike(features, |row, weight| learned.push(self.seen(row, weight, now)));
        }
        [replays, Distribution::of_seen(&mut latest.collect::<Vec<_>>()), Distribution::of_seen(&mut learned)]
    }

    /// What is known by `now` of the wait of the job in `row`.
    fn seen(&self, row: u32, weight: f64, now: i64) -> Seen {
        let job = &self.log.jobs()[self.observed[row as usize] as usize];
        let over = job.start < now;
        Seen { wait: if over { job.wait() } else { now - job.submit }, over, weight }
    }

    fn combine(&self, origins: &[Distribution; 3], weights: [f64; 3], job: u32) -> (Forecast, Open) {
        let mixed = Distribution::mix(origins.iter().zip(weights));
        let quantiles = |d: &Distribution| QUANTILES.map(|q| d.quantile(q));
        let level = level_of(mixed.quantile(0.5));
        let interval = interval(&mixed, COVERAGE + self.moved + self.moved_in[level]);
        let each = [0, 1, 2].map(|o| Some(&origins[o]).filter(|d| !d.is_empty()).map(quantiles));
        (
            Forecast { quantiles: quantiles(&mixed), interval, weights },
            Open { job, origins: each, interval, level, missed: false },
        )
    }

    /// The weights of the origins, by their losses; those that have no answer get none.
    fn weights(&self, origins: &[Distribution; 3]) -> [f64; 3] {
        let least = self.losses.iter().copied().fold(f64::INFINITY, f64::min).max(1e-9);
        let weight = |o: usize| match origins[o].is_empty() {
            true => 0.0,
            false => libm::exp(-SHARPNESS * (self.losses[o] / least - 1.0).min(40.0)),
        };
        let weights = if self.losses_of < 1.0 {
            [0, 1, 2].map(|o| f64::from(u8::from(!origins[o].is_empty())))
        } else {
            [0, 1, 2].map(weight)
        };
        let sum: f64 = weights.iter().sum();
        if sum > 0.0 { weights.map(|w| w / sum) } else { [1.0, 0.0, 0.0] }
    }

    /// Learns from the forecasts whose jobs have started before `now`.
    fn learn(&mut self, now: i64) {
        let jobs = self.log.jobs();
        let (losses, losses_of) = (&mut self.losses, &mut self.losses_of);
        let (moved, moved_in) = (&mut self.moved, &mut self.moved_in);
        let mut adapt = |range: usize, by: f64| {
            *moved = (*moved + by).clamp(-0.4, 1.0);
            moved_in[range] = (moved_in[range] + by).clamp(-0.4, 1.0);
        };
        self.open.retain_mut(|open| {
            let job = &jobs[open.job as usize];
            let started = job.start < now;
            let wait = if started { job.wait() } else { now - job.submit };
            // A job that waits longer than its interval has missed it already.
            let missed = wait > open.interval.1 || started && wait < open.interval.0;
            if missed && !open.missed {
                adapt(open.level, STEP * COVERAGE);
                open.missed = true;
            }
            if !started {
                return true;
            }
            if !open.missed {
                adapt(open.level, STEP * (COVERAGE - 1.0));
            }
            let wait = f64::from(log_wait(wait));
            let loss = |q: [i64; 3]| -> f64 {
                QUANTILES.iter().zip(q).map(|(level, q)| pinball(*level, f64::from(log_wait(q)), wait)).sum()
            };
            *losses_of = *losses_of * FADING + 1.0;
            for (mean, quantiles) in losses.iter_mut().zip(open.origins) {
                // An origin without an answer neither gains nor loses.
                if let Some(quantiles) = quantiles {
                    *mean += (loss(quantiles) - *mean) / *losses_of;
                }
            }
            false
        });
    }

    fn grow(&mut self, row: usize, now: i64) {
        let from = row.saturating_sub(LEARNED);
        for r in from..row {
            self.values[r] = log_wait(self.seen(r as u32, 1.0, now).wait);
        }
        let rows: Vec<u32> = (from as u32..row as u32).collect();
        // Those that grow after different jobs draw different numbers.
        let last = self.observed.last().map_or(0, |job| u64::from(*job) + 1);
        let seed = self.seed.wrapping_add(last);
        self.forest = Some(Forest::grow(&rows, &self.features, &self.values, seed));
        self.grown_at = row;
    }
}

/// Mixes waits longer than `elapsed`, the fewer there are the more, with what holds of heavy tails: that of jobs which have
/// waited so long, the half wait as long again.
fn with_long_tail(longer: Distribution, elapsed: i64) -> Distribution {
    let tail = (0..20).map(|i| (f64::from(i) + 0.5) / 20.0);
    let tail = Distribution::of(tail.map(|part| (elapsed as f64 / (1.0 - part)) as i64));
    let known = longer.len() as f64 / (longer.len() as f64 + TAIL_VALUES);
    Distribution::mix([(&longer, known), (&tail, 1.0 - known)])
}

fn similar_key(log: &Log, job: &Job) -> (u32, u32, u32) {
    (job.queue, log.size_class(job), job.limit.max(1).ilog2())
}

/// Returns the shortest interval at a level, widened if the level is above what the waits that were seen can tell.
fn interval(distribution: &Distribution, level: f64) -> (i64, i64) {
    let (low, high) = distribution.shortest(level.clamp(0.2, WIDEST_LEVEL));
    let wider = libm::exp(WIDENING * (level - WIDEST_LEVEL).clamp(0.0, 1.5));
    let scaled = |wait: i64, factor: f64| ((wait + 1) as f64 * factor) as i64 - 1;
    (scaled(low, 1.0 / wider).max(0), scaled(high, wider))
}
