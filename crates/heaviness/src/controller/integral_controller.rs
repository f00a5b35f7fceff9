//! The integral controller of weights.

use thiserror::Error;

/// A workload is idle if its activity is at most this fraction of the mean activity.
const IDLE_FRACTION: f64 = 0.05;

/// Settings of an [`IntegralController`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IntegralSettings {
    /// eta: the decrease of log W in one update for each unit by which a workload is heavier than the level. Above 0. The
    /// loop is stable only below [`gain_limit`](crate::controller::gain_limit); see
    /// [`with_stable_gain`](IntegralSettings::with_stable_gain).
    pub gain: f64,
    /// The coefficient of the previous error in the exponential smoothing of errors, in [0, 1). 0 disables smoothing.
    pub damping: f64,
    /// The absolute error up to which a weight does not move, so that noise causes no writes. At least 0.
    pub dead_band: f64,
    /// The largest change of log W in one update; above 0, may be infinite.
    pub slew: f64,
    /// How far log W of an idle workload may rise above the mean of the busy ones. At least 0; may be infinite.
    pub idle_margin: f64,
    /// The smallest weight, in (0, 1].
    pub min_weight: f64,
    /// The largest weight, finite and at least 1.
    pub max_weight: f64,
}

impl Default for IntegralSettings {
    /// eta = 0.3, no damping, a dead band of 0.01, at most a doubling in one update, idle workloads at most twice the busy
    /// ones, and weights from 1/10 to 10: the range within which all kernel interfaces keep ratios.
    fn default() -> IntegralSettings {
        let double = std::f64::consts::LN_2;
        IntegralSettings {
            gain: 0.3,
            damping: 0.0,
            dead_band: 0.01,
            slew: double,
            idle_margin: double,
            min_weight: 0.1,
            max_weight: 10.0,
        }
    }
}

impl IntegralSettings {
    /// Lowers the gain to half the stability limit of a loop with this gain, if it is above that. At half the limit the
    /// steepest mode reaches equilibrium in one update, without damping.
    #[must_use]
    pub fn with_stable_gain(self, loop_gain: f64) -> IntegralSettings {
        self.with_gain_at_most(crate::controller::gain_limit(loop_gain, self.damping) / 2.0)
    }

    /// Like [`with_stable_gain`](IntegralSettings::with_stable_gain) for measurements that are `delay` updates old. Damping
    /// counts as its mean delay of damping / (1 - damping) updates.
    #[must_use]
    pub fn with_stable_gain_for_delay(self, loop_gain: f64, delay: u32) -> IntegralSettings {
        let lag = (self.damping / (1.0 - self.damping)).ceil().min(1e6) as u32;
        self.with_gain_at_most(crate::controller::delayed_gain_limit(loop_gain, delay.saturating_add(lag)) / 2.0)
    }

    fn with_gain_at_most(self, gain: f64) -> IntegralSettings {
        if gain < self.gain { IntegralSettings { gain, ..self } } else { self }
    }
}

/// Why a controller rejects settings or measurements.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ControllerError {
    /// A setting is out of range.
    #[error("the controller's {setting} is {found}, expected {expected}")]
    InvalidSetting {
        /// The name of the setting.
        setting: &'static str,
        /// Its value.
        found: f64,
        /// The valid range, in words.
        expected: &'static str,
    },
    /// The number of values differs from the number of workloads.
    #[error("{found} values of {quantity}, expected one for each of {workloads} workloads")]
    Length {
        /// `heaviness` or `activity`.
        quantity: &'static str,
        /// The number of values.
        found: usize,
        /// The number of workloads.
        workloads: usize,
    },
    /// A value is not finite, or an activity is negative. No weight was changed.
    #[error("the {quantity} of workload {workload} must be a finite number{}", if *.quantity == "activity" { " that is not negative" } else { "" })]
    InvalidNumber {
        /// `heaviness` or `activity`.
        quantity: &'static str,
        /// The index of the workload.
        workload: usize,
    },
}

/// Multiplicative integral control of the weights of one node's workloads.
///
/// The error of a workload is its h_p minus the node's *level*; an update sets W <- clamp(W exp(-gain x error)). In
/// equilibrium all contending workloads are equally heavy or at an end of the range: a workload heavier than the level
/// would otherwise continue to fall.
///
/// The level is the mean of h_p weighted by *activity* (the workload's use of the node, in any measure), over the
/// workloads that can follow it: one at the upper end takes part only if it is heavier than the level, one at the lower
/// end only if it is lighter (anti-windup). Weights are ratios, so the level alone does not decide between two workloads.
/// But if idle workloads counted as much as busy ones, many idle light workloads would lower the level, and all busy
/// workloads would sink to the lower end, where they can no longer be distinguished. With equal activities and no
/// workload at an end the level is the plain mean.
///
/// Idle workloads do not respond to their weight, so a light user's would rise to the upper end. When one becomes busy, it
/// would starve the others until its weight has come down. An idle workload therefore rises to at most `idle_margin`
/// above the busy ones. (It may fall without limit: a workload that is starved looks idle too.)
#[derive(Clone, Debug, PartialEq)]
pub struct IntegralController {
    settings: IntegralSettings,
    /// log W by workload.
    logs: Vec<f64>,
    /// The smoothed error of the last update, by workload.
    errors: Vec<f64>,
    /// log of the smallest and of the largest weight.
    ends: (f64, f64),
}

impl IntegralController {
    /// Creates a controller without workloads.
    ///
    /// # Errors
    /// Returns an error if a setting is out of range.
    pub fn new(settings: IntegralSettings) -> Result<IntegralController, ControllerError> {
        let IntegralSettings { gain, damping, dead_band, slew, idle_margin, min_weight, max_weight } = settings;
        let finite = |n: f64| n.is_finite();
        for (ok, setting, found, expected) in [
            (finite(gain) && gain > 0.0, "gain", gain, "a finite number above 0"),
            ((0.0..1.0).contains(&damping), "damping", damping, "at least 0 and below 1"),
            (finite(dead_band) && dead_band >= 0.0, "dead band", dead_band, "a finite number of at least 0"),
            (slew > 0.0, "slew limit", slew, "above 0"),
            (idle_margin >= 0.0, "idle margin", idle_margin, "at least 0"),
            (min_weight > 0.0 && min_weight <= 1.0, "smallest weight", min_weight, "above 0 and at most 1"),
            (finite(max_weight) && max_weight >= 1.0, "largest weight", max_weight, "a finite number of at least 1"),
        ] {
            if !ok {
                return Err(ControllerError::InvalidSetting { setting, found, expected });
            }
        }
        let ends = (libm::log(min_weight), libm::log(max_weight));
        Ok(IntegralController { settings, logs: Vec::new(), errors: Vec::new(), ends })
    }

    /// Returns the number of workloads.
    pub fn workloads(&self) -> usize {
        self.logs.len()
    }

    /// Adds a workload with weight 1 and returns its index, the largest.
    pub fn add(&mut self) -> usize {
        self.logs.push(0.0);
        self.errors.push(0.0);
        self.logs.len() - 1
    }

    /// Removes a workload; the indices after it decrease by one. Does nothing if the index is out of range. O(workloads).
    pub fn remove(&mut self, workload: usize) {
        if workload < self.logs.len() {
            self.logs.remove(workload);
            self.errors.remove(workload);
        }
    }

    /// Sets a workload's weight, clamped to the range, such as one restored after a restart. Does nothing if the index is
    /// out of range or the weight is not above 0.
    pub fn set_weight(&mut self, workload: usize, weight: f64) {
        if let Some(log) = self.logs.get_mut(workload).filter(|_| weight > 0.0) {
            *log = libm::log(weight).clamp(self.ends.0, self.ends.1);
            self.errors[workload] = 0.0;
        }
    }

    /// Returns a workload's weight, from `min_weight` to `max_weight`; 1 if the index is out of range.
    pub fn weight(&self, workload: usize) -> f64 {
        let log = self.logs.get(workload).copied().unwrap_or(0.0);
        libm::exp(log).clamp(self.settings.min_weight, self.settings.max_weight)
    }

    /// Returns the weights of all workloads, by index.
    pub fn weights(&self) -> impl Iterator<Item = f64> {
        (0..self.workloads()).map(|workload| self.weight(workload))
    }

    /// Returns the present gain.
    pub fn gain(&self) -> f64 {
        self.settings.gain
    }

    /// Sets the gain, such as after the stability limit of the loop has changed.
    ///
    /// # Errors
    /// Returns an error if the gain is not a finite number above 0.
    pub fn set_gain(&mut self, gain: f64) -> Result<(), ControllerError> {
        let replaced = IntegralController::new(IntegralSettings { gain, ..self.settings })?;
        self.settings = replaced.settings;
        Ok(())
    }

    /// Multiplies every log W by `factor`, which moves weights towards 1: at once for 0, not at all for 1. Used while no
    /// other node is reachable. `factor` is clamped to [0, 1]; NaN counts as 0.
    pub fn decay_weights(&mut self, factor: f64) {
        let factor = if factor.is_nan() { 0.0 } else { factor.clamp(0.0, 1.0) };
        self.logs.iter_mut().for_each(|log| *log *= factor);
        self.errors.iter_mut().for_each(|error| *error = 0.0);
    }

    /// Updates the weights from the h_p and the activity of each workload, by index. O(n log n) for n workloads.
    ///
    /// # Errors
    /// Returns an error if there is not one finite number for each workload, or an activity is negative. No weight is
    /// changed then.
    pub fn update(&mut self, heaviness: &[f64], activity: &[f64]) -> Result<(), ControllerError> {
        let workloads = self.workloads();
        for (quantity, numbers) in [("heaviness", heaviness), ("activity", activity)] {
            if numbers.len() != workloads {
                return Err(ControllerError::Length { quantity, found: numbers.len(), workloads });
            }
            let invalid = |n: &f64| !n.is_finite() || (*n < 0.0 && quantity == "activity");
            if let Some(workload) = numbers.iter().position(invalid) {
                return Err(ControllerError::InvalidNumber { quantity, workload });
            }
        }
        let Some(level) = self.level(heaviness, activity) else { return Ok(()) };
        let IntegralSettings { gain, damping, dead_band, slew, idle_margin, .. } = self.settings;
        // The mean of the busy workloads' log W; neutral if none is busy.
        let total: f64 = activity.iter().sum();
        let busy = self.logs.iter().zip(activity).map(|(log, a)| log * (a / total)).sum::<f64>();
        let idle_limit = if total > 0.0 && busy.is_finite() { busy } else { 0.0 } + idle_margin;
        let is_idle = |a: f64| a * workloads as f64 <= IDLE_FRACTION * total;
        for (((log, error), h), a) in self.logs.iter_mut().zip(&mut self.errors).zip(heaviness).zip(activity) {
            // Differences of two huge numbers may be infinite.
            let now = (h - level).clamp(-f64::MAX, f64::MAX);
            *error = damping * *error + (1.0 - damping) * now;
            let before = *log;
            if error.abs() > dead_band {
                *log = (*log - (gain * *error).clamp(-slew, slew)).clamp(self.ends.0, self.ends.1);
            }
            if is_idle(*a) && *log > idle_limit {
                *log = idle_limit.max(before - slew).min(*log).clamp(self.ends.0, self.ends.1);
            }
        }
        Ok(())
    }

    /// Returns the smallest level L at which sum_i a_i (L - h_i) = 0 over the workloads that would move, but at least the
    /// smallest h of a workload with positive activity. `None` if there is no workload.
    ///
    /// The sum never decreases with L: a workload at the upper end adds min(0, L - h), one at the lower end max(0, L - h).
    /// So L lies between two neighbours among the h of workloads at an end, which a binary search finds.
    fn level(&self, heaviness: &[f64], activity: &[f64]) -> Option<f64> {
        let largest = activity.iter().fold(0.0_f64, |largest, a| largest.max(*a));
        // If all are idle, all count alike. Divided by the largest activity, so that no sum is infinite.
        let weight = |i: usize| if largest > 0.0 { activity[i] / largest } else { 1.0 };
        let (min_log, max_log) = self.ends;
        let upper = |i: usize| self.logs[i] >= max_log;
        let lower = |i: usize| self.logs[i] <= min_log;
        let moves = |i: usize, level: f64| {
            let h = heaviness[i];
            !(upper(i) && h <= level || lower(i) && h >= level)
        };
        // The weighted mean of the workloads that move if the level is this.
        let mean = |level: f64| {
            let moving = (0..heaviness.len()).filter(|i| moves(*i, level));
            let total: f64 = moving.clone().map(weight).sum();
            (total > 0.0).then(|| moving.map(|i| weight(i) / total * heaviness[i]).sum::<f64>())
        };
        let mut ends: Vec<f64> =
            (0..heaviness.len()).filter(|i| upper(*i) || lower(*i)).map(|i| heaviness[i]).collect();
        ends.sort_unstable_by(f64::total_cmp);
        ends.dedup();
        // The sum at L is total x (L - mean): positive exactly if L is above the mean of the workloads that move.
        let below = ends.partition_point(|level| mean(*level).is_some_and(|mean| *level < mean));
        let between = match (below.checked_sub(1).map(|i| ends[i]), ends.get(below)) {
            (Some(a), Some(b)) => a / 2.0 + b / 2.0,
            (Some(a), None) => f64::MAX.min(a + a.abs() + 1.0),
            (None, Some(b)) => f64::MIN.max(b - b.abs() - 1.0),
            (None, None) => 0.0,
        };
        let smallest = || (0..heaviness.len()).filter(|i| weight(*i) > 0.0).map(|i| heaviness[i]).reduce(f64::min);
        // If no workload with positive activity would move, all are at the lower end, for any level up to their smallest h.
        mean(between).or_else(smallest)
    }
}
