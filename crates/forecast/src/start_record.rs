//! A forecast start as a record: what `evenhand when` and `evenhand slurm when` print and `evenhand serve` shows.

use serde::{Serialize, Serializer};

use crate::predict::{Forecast, ORIGINS};

/// When a job starts, as programs read it. Times are seconds of the log.
#[derive(Clone, Debug, Serialize)]
pub struct StartRecord {
    /// The shape as given, of a job that could be submitted.
    pub shape: Option<String>,
    /// The job that waits.
    pub job: Option<u64>,
    /// The id of the job as its log writes it, where that is not the number alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// The user.
    pub user: Option<String>,
    /// How long the job has waited.
    pub waited_s: i64,
    /// The median of its remaining wait.
    pub median_s: i64,
    /// The interval that holds the remaining wait of 80 % of such jobs.
    pub interval_80_s: [i64; 2],
    /// Quantiles of the remaining wait by their percentage.
    #[serde(serialize_with = "as_object")]
    pub quantiles_s: Vec<(&'static str, i64)>,
    /// The median start.
    pub start_s: i64,
    /// How much each source of the forecast counts; none where the start is planned.
    #[serde(serialize_with = "as_object")]
    pub weights: Vec<(&'static str, f64)>,
    /// By what the start is planned, where a forecast would be wrong: "slurm" or "limits". The median is the planned start then, and
    /// the interval goes from now to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned_by: Option<&'static str>,
    /// The time before which the job does not start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begin_s: Option<i64>,
    /// Where Slurm itself plans the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slurm_start_s: Option<i64>,
    /// What the forecast does not count, and where it and Slurm differ, in sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub caveats: Vec<String>,
    /// What people call the job or the shape.
    #[serde(skip)]
    pub name: String,
}

impl StartRecord {
    /// Describes a forecast made at `at` of a job that has waited for `waited_s`.
    pub fn new(at: i64, waited_s: i64, forecast: &Forecast, name: String) -> StartRecord {
        let [low, median, high] = forecast.quantiles;
        StartRecord {
            shape: None,
            job: None,
            job_id: None,
            user: None,
            waited_s,
            median_s: median,
            // An interval that does not hold the median would confuse more than it tells.
            interval_80_s: [forecast.interval.0.min(median), forecast.interval.1.max(median)],
            quantiles_s: vec![("10", low), ("50", median), ("90", high)],
            start_s: at + median,
            weights: ORIGINS.iter().zip(forecast.weights).map(|(origin, w)| (origin.name(), w)).collect(),
            planned_by: None,
            begin_s: None,
            slurm_start_s: None,
            caveats: Vec::new(),
            name,
        }
    }

    /// Returns the record as one of a job that does not start in the next `seconds`.
    #[must_use]
    pub fn not_before(mut self, seconds: i64) -> StartRecord {
        let at = self.start_s - self.median_s;
        self.quantiles_s.iter_mut().for_each(|(_, wait)| *wait = (*wait).max(seconds));
        self.interval_80_s = self.interval_80_s.map(|wait| wait.max(seconds));
        self.median_s = self.median_s.max(seconds);
        self.start_s = at + self.median_s;
        self
    }

    /// Returns the record as one of a job that has its turn only in `seconds`, and then waits as long as was forecast.
    #[must_use]
    pub fn later_by(mut self, seconds: i64) -> StartRecord {
        self.quantiles_s.iter_mut().for_each(|(_, wait)| *wait += seconds);
        self.interval_80_s = self.interval_80_s.map(|wait| wait + seconds);
        self.median_s += seconds;
        self.start_s += seconds;
        self
    }

    /// Returns whether the forecast counts on a start at once of a job that is known not to fit now and is planned in `seconds`: it
    /// starts now by the replays (`starts_now`) or by its lowest quantile, and so by its median, or the whole interval is before the
    /// planned start.
    pub fn is_contradicted_by(&self, seconds: i64, starts_now: bool) -> bool {
        let low = self.quantiles_s.first().map_or(self.median_s, |(_, wait)| *wait);
        (starts_now || low == 0) && (self.median_s == 0 || self.interval_80_s[1] < seconds)
    }

    /// Returns the record with a start that is planned, in so many seconds, in place of the forecast one. By then it starts, if jobs
    /// reach their limits; earlier, if they end before.
    #[must_use]
    pub fn planned(mut self, seconds: i64, by: &'static str) -> StartRecord {
        let at = self.start_s - self.median_s;
        self.quantiles_s.iter_mut().for_each(|(_, wait)| *wait = seconds);
        self.interval_80_s = [seconds.min(1), seconds];
        (self.median_s, self.start_s) = (seconds, at + seconds);
        self.weights.clear();
        StartRecord { planned_by: Some(by), ..self }
    }

    /// Returns the record as one of a job that could be submitted.
    #[must_use]
    pub fn of_shape(self, shape: String, user: Option<String>) -> StartRecord {
        StartRecord { shape: Some(shape), user, ..self }
    }

    /// Returns the record as one of a job that waits.
    #[must_use]
    pub fn of_job(self, job: u64, user: String) -> StartRecord {
        StartRecord { job: Some(job), user: Some(user), ..self }
    }
}

/// Writes names with values as an object whose keys keep their order.
fn as_object<T: Serialize, S: Serializer>(values: &[(&'static str, T)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(values.iter().map(|(name, value)| (name, value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_not_before_its_begin_time_and_a_planned_one_has_no_sources() {
        let forecast = Forecast { quantiles: [0, 20, 90], interval: (0, 80), weights: [1.0, 0.0, 0.0] };
        let record = StartRecord::new(1000, 5, &forecast, "job 1".into());
        let later = record.clone().not_before(30);
        assert_eq!((later.median_s, later.start_s, later.interval_80_s), (30, 1030, [30, 80]));
        assert_eq!(later.quantiles_s, [("10", 30), ("50", 30), ("90", 90)]);
        let shifted = record.clone().later_by(30);
        assert_eq!((shifted.median_s, shifted.start_s, shifted.interval_80_s), (50, 1050, [30, 110]));
        assert_eq!(shifted.quantiles_s[0].1, 30);
        assert_eq!([80, 81].map(|seconds| record.is_contradicted_by(seconds, false)), [false, true]);
        assert!(!shifted.is_contradicted_by(5000, false), "its lowest quantile is not now");
        assert!(shifted.is_contradicted_by(5000, true), "but it starts now by the replays");
        let planned = record.planned(600, "slurm");
        assert_eq!((planned.median_s, planned.start_s, planned.interval_80_s), (600, 1600, [1, 600]));
        assert!(planned.weights.is_empty() && planned.planned_by == Some("slurm"));
    }
}
