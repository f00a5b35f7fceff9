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
    /// How much each source of the forecast counts.
    #[serde(serialize_with = "as_object")]
    pub weights: Vec<(&'static str, f64)>,
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
            name,
        }
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
