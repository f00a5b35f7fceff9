//! The forecast start of a waiting job beside what Slurm knows of it: its begin time, and the start that Slurm plans.

use evenhand_forecast::StartRecord;
use evenhand_model::Time;
use evenhand_model::calendar::date_and_time_of;
use thiserror::Error;

use crate::pool::Pools;
use crate::queue::Job;
use crate::waiting_reasons::{ReasonKind, explain_reason};

/// Why the forecast of a start would be wrong, and nothing else is known.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "the start of job {job} cannot be forecast: by {counts}, which the forecast counts, it would start now, but Slurm's reason is \
     {reason} ({means}), and Slurm has not planned its start yet; ask again in a minute, when its backfill has looked at the job"
)]
pub struct NotPlanned {
    /// The job.
    pub job: u64,
    /// What the forecast counts: "CPUs alone", "CPUs and GPUs".
    pub counts: String,
    /// Slurm's reason.
    pub reason: String,
    /// What it means.
    pub means: &'static str,
}

/// Puts what Slurm knows of a waiting job beside the forecast of its start: the job does not start before its begin time, and not
/// now if Slurm found that it cannot. Where the forecast, which counts what the pools do and no more, is now all the same, the start that
/// Slurm plans takes its place. `starts_now` is whether the job starts now by the replays, that is by what is counted.
///
/// # Errors
/// Returns an error if what the job needs is not free, the forecast is now, and Slurm plans no start.
pub fn bounded_start(
    record: StartRecord,
    job: &Job,
    starts_now: bool,
    pools: &Pools,
    now: Time,
) -> Result<StartRecord, NotPlanned> {
    let from_now = |time: Time| (time.whole_secs() - now.whole_secs()).max(1);
    let begin = job.begins(now);
    let planned = job.planned_start(now);
    let (kind, means) = explain_reason(job.reason());
    let forecast = record.interval_80_s;
    let mut record = match begin {
        Some(begin) => record.later_by(from_now(begin)),
        None => record,
    };
    (record.begin_s, record.slurm_start_s) = (begin.map(Time::whole_secs), planned.map(Time::whole_secs));
    if let Some(begin) = begin {
        record.caveats.push(format!(
            "It does not start before {}, for which it was submitted; from then on the forecast is that of a job submitted now.",
            date_and_time_of(begin)
        ));
    }
    if matches!(kind, ReasonKind::Resources | ReasonKind::Priority) {
        record.caveats.push(format!("The forecast counts {}: not {}.", pools.counts(), pools.misses()));
    }
    let not_free = matches!(kind, ReasonKind::Resources | ReasonKind::Site);
    match planned {
        Some(planned) if record.is_contradicted_by(from_now(planned), starts_now) => {
            record.caveats.push(format!(
                "The forecast counts on a start at once, but Slurm found that it cannot: the start shown is the one that Slurm plans, {}, \
                 if the jobs that run reach their limits. It is earlier if they end before.",
                date_and_time_of(planned)
            ));
            record = record.planned(from_now(planned), "slurm");
        }
        Some(planned) => {
            let wait = from_now(planned);
            let later = if forecast[1] < wait && begin.is_none() {
                format!(
                    ", which is later than the forecast: it counts on no job that ends before its limit, and the forecast may miss what the \
                     job needs beside {}",
                    pools.counted.words()
                )
            } else {
                String::new()
            };
            record.caveats.push(format!("Slurm plans to start it at {}{later}.", date_and_time_of(planned)));
            // Not now, as Slurm has found.
            record = record.not_before(1);
        }
        None if not_free && (starts_now || record.median_s == 0) => {
            let counts = format!("{}{}", pools.counted.words(), pools.counted.alone());
            return Err(NotPlanned { job: job.id, counts, reason: job.reason().to_string(), means });
        }
        None if not_free => record = record.not_before(1),
        None => (),
    }
    Ok(record)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use evenhand_forecast::Forecast;

    use super::*;
    use crate::pool::Counted;
    use crate::queue::Queue;

    /// A job as `squeue` shows it, and its forecast at 1000 s.
    fn bounded(reason: &str, start: &str, eligible: &str, quantiles: [i64; 3]) -> Result<StartRecord, NotPlanned> {
        bounded_if(false, [reason, start, eligible], quantiles)
    }

    fn bounded_if(
        starts_now: bool,
        [reason, start, eligible]: [&str; 3],
        quantiles: [i64; 3],
    ) -> Result<StartRecord, NotPlanned> {
        let text =
            format!("JOBID|USER|STATE|REASON|START_TIME|ELIGIBLE_TIME\n7|ann|PENDING|{reason}|{start}|{eligible}\n");
        let job = &Queue::parse(&text).unwrap().jobs[0];
        let forecast = Forecast { quantiles, interval: (quantiles[0], quantiles[2]), weights: [1.0, 0.0, 0.0] };
        let record = StartRecord::new(1000, 0, &forecast, "job 7".into());
        let pools = Pools::new(&[], Counted::default(), &BTreeSet::new());
        bounded_start(record, job, starts_now, &pools, Time::from_secs(1000))
    }

    #[test]
    fn a_job_that_slurm_found_not_to_fit_does_not_start_now() {
        let record = bounded("Resources", "4600", "900", [0, 0, 0]).unwrap();
        assert_eq!((record.median_s, record.interval_80_s, record.planned_by), (3600, [1, 3600], Some("slurm")));
        assert_eq!(record.slurm_start_s, Some(4600));
        assert!(record.caveats[0].starts_with("The forecast counts the CPUs of the whole site alone"), "{record:?}");
        assert!(record.caveats[1].starts_with("The forecast counts on a start at once, but Slurm found"), "{record:?}");
        let error = bounded("Resources", "N/A", "900", [0, 0, 0]).unwrap_err().to_string();
        assert!(error.contains("Slurm's reason is Resources") && error.contains("ask again in a minute"), "{error}");
        assert!(error.contains("by CPUs alone, which the forecast counts, it would start now"), "{error}");
        // What similar jobs waited does not let it start either.
        let record = bounded_if(true, ["Resources", "4600", "900"], [50, 50, 50]).unwrap();
        assert_eq!((record.median_s, record.planned_by), (3600, Some("slurm")));
        assert!(bounded_if(true, ["Resources", "N/A", "900"], [50, 50, 50]).is_err());
        // Slurm has not looked at the job yet: nothing contradicts the forecast.
        assert_eq!(bounded("None", "N/A", "900", [0, 0, 0]).unwrap().median_s, 0);
    }

    #[test]
    fn the_plan_of_slurm_stands_beside_a_forecast_that_may_be_right() {
        let record = bounded("Priority", "4600", "900", [0, 50, 90]).unwrap();
        assert_eq!((record.median_s, record.planned_by), (3600, Some("slurm")), "what is now at the earliest is wrong");
        let record = bounded("Priority", "4600", "900", [20, 50, 90]).unwrap();
        assert_eq!((record.median_s, record.interval_80_s, record.planned_by), (50, [20, 90], None));
        assert!(record.caveats[1].contains("which is later than the forecast"), "{record:?}");
        let record = bounded("Priority", "1080", "900", [0, 50, 90]).unwrap();
        assert_eq!(record.caveats[1], "Slurm plans to start it at 1970-01-01 00:18.");
    }

    #[test]
    fn a_job_for_later_does_not_start_before() {
        let record = bounded("BeginTime", "8200", "8200", [0, 0, 60]).unwrap();
        assert_eq!((record.median_s, record.interval_80_s, record.start_s), (7200, [7200, 7260], 8200));
        assert_eq!((record.begin_s, record.planned_by), (Some(8200), None));
        assert!(record.caveats[0].starts_with("It does not start before"), "{record:?}");
    }
}
