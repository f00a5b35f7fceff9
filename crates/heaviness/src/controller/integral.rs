//! The controller that settles.

use thiserror::Error;

/// A guest does nothing if its activity is at most this part of an equal part.
const IDLE: f64 = 0.05;

/// How an [`Integral`] moves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// eta: by how much log W falls in an update for each 1 that a guest is heavier than the level. Above 0.
    /// It must stay below [`gain_limit`](crate::controller::gain_limit); [`bounded`](Settings::bounded) sees to that.
    pub gain: f64,
    /// The part of the last update's error that is kept, at least 0 and below 1. 0: none.
    pub damping: f64,
    /// An error of at most so much moves nothing, so that weights are not rewritten for noise. At least 0.
    pub dead_band: f64,
    /// The most that log W moves in an update; may be infinite. Above 0.
    pub slew: f64,
    /// How far log W of a guest that does nothing may rise above that of those who do. At least 0; may be infinite.
    pub idle: f64,
    /// The least weight, above 0.
    pub least: f64,
    /// The largest weight, finite. 1, where guests begin, lies between the two.
    pub most: f64,
}

impl Default for Settings {
    /// eta = 0.3 (reference), no damping, a dead band of 0.01, at most a doubling an update, idle guests at most
    /// twice those who are busy, and 1/10 to 10: what all of the kernel's scales hold, and as far as it keeps ratios.
    fn default() -> Settings {
        let double = std::f64::consts::LN_2;
        Settings { gain: 0.3, damping: 0.0, dead_band: 0.01, slew: double, idle: double, least: 0.1, most: 10.0 }
    }
}

impl Settings {
    /// With the gain lowered to half the limit of a loop of this gain, if it is above that. Half the limit
    /// takes the steepest mode to its rest in one update, without damping.
    #[must_use]
    pub fn bounded(self, loop_gain: f64) -> Settings {
        self.at_most(crate::controller::gain_limit(loop_gain, self.damping) / 2.0)
    }

    /// The same where what is measured is `delay` updates old. Damping counts as the delay that it is in the
    /// mean, damping / (1 - damping) updates.
    #[must_use]
    pub fn bounded_with_delay(self, loop_gain: f64, delay: u32) -> Settings {
        let lag = (self.damping / (1.0 - self.damping)).ceil().min(1e6) as u32;
        self.at_most(crate::controller::delayed_gain_limit(loop_gain, delay.saturating_add(lag)) / 2.0)
    }

    fn at_most(self, gain: f64) -> Settings {
        if gain < self.gain { Settings { gain, ..self } } else { self }
    }
}

/// What a controller refuses.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ControllerError {
    /// A setting out of its range.
    #[error("the controller's {setting} is {found}, expected {expected}")]
    Setting {
        /// Which.
        setting: &'static str,
        /// Its value.
        found: f64,
        /// What it may be.
        expected: &'static str,
    },
    /// Not one number a guest.
    #[error("{found} numbers of {what}, expected one for each of {guests} guests")]
    Guests {
        /// Of what.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many guests there are.
        guests: usize,
    },
    /// A number that says nothing. No weight was changed.
    #[error("the {what} of guest {guest} must be a finite number{}", if *.what == "activity" { " that is not negative" } else { "" })]
    NotANumber {
        /// Of what.
        what: &'static str,
        /// Which guest.
        guest: usize,
    },
}

/// Multiplicative integral control of the weights of one node's guests.
///
/// An update makes the error of a guest what it is heavier (h_p) than the node's *level*, and
/// W <- clamp(W exp(-gain x error)). At rest all guests that contend are equally heavy, or at an end of the
/// range: whoever is heavier than the level would otherwise go on falling.
///
/// The level is the mean of h_p weighted by *activity* (what a guest takes of the node, in any measure), among the
/// guests that can follow it: one at the upper end takes part only if it is heavier than the level, one at
/// the lower end only if it is lighter. Weights are ratios, so the level alone decides nothing between
/// two guests. But were idle guests to count as much as busy ones, many idle and light guests would pull the level
/// down, and the busy guests of a node would all sink to the lower end, where nothing tells them apart.
/// With equal activities, and no guest at an end, it is the plain mean.
///
/// A guest that does nothing is no part of the loop: nothing that its weight does makes it heavier, and a light
/// user's would rise to the upper end. When it wakes, those who were busy would be shut out until it has come down
/// again. So it rises to at most `idle` above those who are busy. (It may fall as far as it goes: a guest that is
/// held down looks idle too.)
#[derive(Clone, Debug, PartialEq)]
pub struct Integral {
    settings: Settings,
    /// log W by guest.
    logs: Vec<f64>,
    /// The damped error of the last update.
    errors: Vec<f64>,
    ends: (f64, f64),
}

impl Integral {
    /// Of no guests.
    ///
    /// # Errors
    /// If a setting is out of its range.
    pub fn new(settings: Settings) -> Result<Integral, ControllerError> {
        let Settings { gain, damping, dead_band, slew, idle, least, most } = settings;
        let finite = |n: f64| n.is_finite();
        for (ok, setting, found, expected) in [
            (finite(gain) && gain > 0.0, "gain", gain, "a finite number above 0"),
            ((0.0..1.0).contains(&damping), "damping", damping, "at least 0 and below 1"),
            (finite(dead_band) && dead_band >= 0.0, "dead band", dead_band, "a finite number of at least 0"),
            (slew > 0.0, "slew limit", slew, "above 0"),
            (idle >= 0.0, "idle limit", idle, "at least 0"),
            (least > 0.0 && least <= 1.0, "least weight", least, "above 0 and at most 1"),
            (finite(most) && most >= 1.0, "largest weight", most, "a finite number of at least 1"),
        ] {
            if !ok {
                return Err(ControllerError::Setting { setting, found, expected });
            }
        }
        let ends = (libm::log(least), libm::log(most));
        Ok(Integral { settings, logs: Vec::new(), errors: Vec::new(), ends })
    }

    /// How many guests there are.
    pub fn guests(&self) -> usize {
        self.logs.len()
    }

    /// One guest more, with weight 1. Its number is the largest.
    pub fn add(&mut self) -> usize {
        self.logs.push(0.0);
        self.errors.push(0.0);
        self.logs.len() - 1
    }

    /// The guest is gone, and those after it move down by one. Nothing, if it is not there.
    pub fn remove(&mut self, guest: usize) {
        if guest < self.logs.len() {
            self.logs.remove(guest);
            self.errors.remove(guest);
        }
    }

    /// Gives a guest this weight, clamped, as one that is found again after a restart. Nothing, if it is not
    /// there or the weight is not above 0.
    pub fn set_weight(&mut self, guest: usize, weight: f64) {
        if let Some(log) = self.logs.get_mut(guest).filter(|_| weight > 0.0) {
            *log = libm::log(weight).clamp(self.ends.0, self.ends.1);
            self.errors[guest] = 0.0;
        }
    }

    /// A guest's weight, from `least` to `most`; 1 of a guest that is not there.
    pub fn weight(&self, guest: usize) -> f64 {
        let log = self.logs.get(guest).copied().unwrap_or(0.0);
        libm::exp(log).clamp(self.settings.least, self.settings.most)
    }

    /// The weights of all guests.
    pub fn weights(&self) -> impl Iterator<Item = f64> {
        (0..self.guests()).map(|guest| self.weight(guest))
    }

    /// The gain now.
    pub fn gain(&self) -> f64 {
        self.settings.gain
    }

    /// Changes the gain, as when the [bound](Settings::bounded) of the loop has moved.
    ///
    /// # Errors
    /// If it is not a finite number above 0.
    pub fn set_gain(&mut self, gain: f64) -> Result<(), ControllerError> {
        let replaced = Integral::new(Settings { gain, ..self.settings })?;
        self.settings = replaced.settings;
        Ok(())
    }

    /// Moves every weight towards 1: log W to its `part`, from 0 (at once) to 1 (not at all). For when nothing
    /// is heard of other nodes any more.
    pub fn age(&mut self, part: f64) {
        let part = if part.is_nan() { 0.0 } else { part.clamp(0.0, 1.0) };
        self.logs.iter_mut().for_each(|log| *log *= part);
        self.errors.iter_mut().for_each(|error| *error = 0.0);
    }

    /// One update: moves the weights by the guests' h_p and activities.
    ///
    /// # Errors
    /// If there is not one finite number a guest, or an activity is negative. Then no weight moves.
    pub fn update(&mut self, heaviness: &[f64], activity: &[f64]) -> Result<(), ControllerError> {
        let guests = self.guests();
        for (what, numbers) in [("heaviness", heaviness), ("activity", activity)] {
            if numbers.len() != guests {
                return Err(ControllerError::Guests { what, found: numbers.len(), guests });
            }
            let wrong = |n: &f64| !n.is_finite() || (*n < 0.0 && what == "activity");
            if let Some(guest) = numbers.iter().position(wrong) {
                return Err(ControllerError::NotANumber { what, guest });
            }
        }
        let Some(level) = self.level(heaviness, activity) else { return Ok(()) };
        let Settings { gain, damping, dead_band, slew, idle, .. } = self.settings;
        // What those who do something have, in the mean; neutral if nobody does.
        let all: f64 = activity.iter().sum();
        let busy = self.logs.iter().zip(activity).map(|(log, a)| log * (a / all)).sum::<f64>();
        let roof = if all > 0.0 && busy.is_finite() { busy } else { 0.0 } + idle;
        let idles = |a: f64| a * guests as f64 <= IDLE * all;
        for (((log, error), h), a) in self.logs.iter_mut().zip(&mut self.errors).zip(heaviness).zip(activity) {
            // Differences of two huge numbers may be infinite.
            let now = (h - level).clamp(-f64::MAX, f64::MAX);
            *error = damping * *error + (1.0 - damping) * now;
            let before = *log;
            if error.abs() > dead_band {
                *log = (*log - (gain * *error).clamp(-slew, slew)).clamp(self.ends.0, self.ends.1);
            }
            if idles(*a) && *log > roof {
                *log = roof.max(before - slew).min(*log).clamp(self.ends.0, self.ends.1);
            }
        }
        Ok(())
    }

    /// The L at which sum_i a_i (L - h_i) = 0 over the guests that would move; the least such L, but not less
    /// than the least h of a guest that counts. `None` if there is no guest.
    ///
    /// The sum never falls with L, whatever the ends: a guest at the upper end adds min(0, L - h), one at the
    /// lower end max(0, L - h). So L lies between two neighbours of the h of guests at an end, which a binary
    /// search finds.
    fn level(&self, heaviness: &[f64], activity: &[f64]) -> Option<f64> {
        let most = activity.iter().fold(0.0_f64, |most, a| most.max(*a));
        // If all are idle, all count alike. Over the largest, so that no sum is infinite.
        let weight = |i: usize| if most > 0.0 { activity[i] / most } else { 1.0 };
        let (least_log, most_log) = self.ends;
        let upper = |i: usize| self.logs[i] >= most_log;
        let lower = |i: usize| self.logs[i] <= least_log;
        let moves = |i: usize, level: f64| {
            let h = heaviness[i];
            !(upper(i) && h <= level || lower(i) && h >= level)
        };
        // Weights and mean of those who move if the level lies just there.
        let mean = |level: f64| {
            let who = (0..heaviness.len()).filter(|i| moves(*i, level));
            let total: f64 = who.clone().map(weight).sum();
            (total > 0.0).then(|| who.map(|i| weight(i) / total * heaviness[i]).sum::<f64>())
        };
        let mut ends: Vec<f64> =
            (0..heaviness.len()).filter(|i| upper(*i) || lower(*i)).map(|i| heaviness[i]).collect();
        ends.sort_unstable_by(f64::total_cmp);
        ends.dedup();
        // The sum at L is total (L - mean): positive exactly if L lies above the mean of those who move.
        let below = ends.partition_point(|level| mean(*level).is_some_and(|mean| *level < mean));
        let between = match (below.checked_sub(1).map(|i| ends[i]), ends.get(below)) {
            (Some(a), Some(b)) => a / 2.0 + b / 2.0,
            (Some(a), None) => f64::MAX.min(a + a.abs() + 1.0),
            (None, Some(b)) => f64::MIN.max(b - b.abs() - 1.0),
            (None, None) => 0.0,
        };
        let least = || (0..heaviness.len()).filter(|i| weight(*i) > 0.0).map(|i| heaviness[i]).reduce(f64::min);
        // Nobody who counts would move: all are at the lower end, for any level up to the least of their h.
        mean(between).or_else(least)
    }
}
