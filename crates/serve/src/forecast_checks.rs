//! How forecasts come true: the first forecast of each job that is seen waiting, against the job's start.

use std::collections::{BTreeMap, BTreeSet};

use evenhand_slurm::JobState;

use crate::latest::Forecasts;
use crate::snapshot::Snapshot;

/// After this time without the job, neither in the queue nor among those that ended, it counts as cancelled. Jobs that
/// ended are read every ten minutes.
const GIVE_UP_S: i64 = 1800;

/// The largest number of jobs whose forecasts are kept; further ones are not checked.
const LARGEST_OPEN: usize = 100_000;

/// How forecasts came true since the server started. Jobs that start before they are seen waiting, array tasks and
/// cancelled jobs are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ForecastScore {
    /// Jobs that started after a forecast.
    pub checked: u64,
    /// Those that started within the interval of 80 %.
    pub covered: u64,
    /// The sum of the differences between the median forecast and the start, each without its sign, in seconds.
    pub error_s: f64,
    /// The sum of the lengths of the intervals, in seconds.
    pub width_s: f64,
}

/// The first forecast of a job. Times are seconds since 1970.
#[derive(Clone, Copy, Debug)]
struct FirstForecast {
    made_s: i64,
    low_s: i64,
    median_s: i64,
    high_s: i64,
    /// Since when the job is in no list.
    missing_s: Option<i64>,
}

/// The forecasts that are not decided yet, and the score of those that are.
#[derive(Debug, Default)]
pub(crate) struct ForecastChecks {
    open: BTreeMap<u64, FirstForecast>,
    score: ForecastScore,
}

impl ForecastChecks {
    pub(crate) fn score(&self) -> ForecastScore {
        self.score
    }

    /// Keeps the forecasts of jobs that have none yet. Tasks of an array share a record while they wait, and have none of
    /// their own to be compared.
    pub(crate) fn keep(&mut self, snapshot: &Snapshot, forecasts: &Forecasts) {
        let arrays: BTreeSet<u64> =
            snapshot.queue.jobs.iter().filter(|job| job.array.is_some()).map(|job| job.id).collect();
        // A start that Slurm plans is no forecast.
        let forecast =
            forecasts.starts.iter().filter(|(job, start)| !arrays.contains(job) && start.planned_by.is_none());
        for (&job, start) in forecast {
            if self.open.len() >= LARGEST_OPEN {
                return;
            }
            let made_s = start.start_s - start.median_s;
            let [low, high] = start.interval_80_s;
            self.open.entry(job).or_insert(FirstForecast {
                made_s,
                low_s: made_s + low,
                median_s: start.start_s,
                high_s: made_s + high,
                missing_s: None,
            });
        }
    }

    /// Decides the forecasts of jobs that have started. O(jobs of the queue and jobs that ended) times a logarithm.
    pub(crate) fn check(&mut self, snapshot: &Snapshot) {
        let mut present = BTreeSet::new();
        let mut started: BTreeMap<u64, i64> = BTreeMap::new();
        for job in snapshot.queue.jobs.iter().filter(|job| self.open.contains_key(&job.id)) {
            present.insert(job.id);
            // The start of a waiting job is Slurm's expectation.
            if job.state != JobState::Pending
                && let Some(start) = job.start
            {
                started.insert(job.id, start.whole_secs());
            }
        }
        for job in &snapshot.slow.ended {
            // A requeued job may have started before its forecast, too.
            if let Some(first) = self.open.get(&job.id)
                && job.start.whole_secs() >= first.made_s
            {
                started.entry(job.id).or_insert(job.start.whole_secs());
            }
        }
        let now_s = snapshot.read_at.whole_secs();
        let score = &mut self.score;
        self.open.retain(|job, first| {
            if let Some(&start) = started.get(job) {
                score.checked += 1;
                score.covered += u64::from((first.low_s..=first.high_s).contains(&start));
                score.error_s += first.median_s.abs_diff(start) as f64;
                score.width_s += first.high_s.abs_diff(first.low_s) as f64;
                return false;
            }
            if present.contains(job) {
                first.missing_s = None;
                return true;
            }
            now_s - *first.missing_s.get_or_insert(now_s) < GIVE_UP_S
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use evenhand_forecast::{Forecast, StartRecord};
    use evenhand_model::Time;
    use evenhand_slurm::RecordedOutput;

    use super::*;
    use crate::snapshot::{SiteReader, SlowPart, SlurmSite};

    const HEADER: &str =
        "JOBID|USER|STATE|PARTITION|SUBMIT_TIME|START_TIME|TIME_LIMIT|CPUS|ARRAY_JOB_ID|ARRAY_TASK_ID\n";

    /// The site at a time with these lines of squeue.
    fn at(seconds: u64, lines: &str) -> Snapshot {
        let site = RecordedOutput::default().with("squeue", format!("{HEADER}{lines}")).with("scontrol show node", "");
        let mut site = SlurmSite::new(Box::new(site), evenhand_model::Span::from_secs(1));
        site.read(Time::from_secs(seconds)).unwrap()
    }

    fn waiting(job: u64) -> String {
        format!("{job}|ann|PENDING|main|900|N/A|5:00|1|{job}|N/A\n")
    }

    fn running(job: u64, start: u64) -> String {
        format!("{job}|ann|RUNNING|main|900|{start}|5:00|1|{job}|N/A\n")
    }

    /// Forecasts, made at 1,000 s, that each job starts in 100 s, and with 80 % in 50 to 200 s.
    fn forecasts(jobs: &[u64]) -> Forecasts {
        let forecast = Forecast { quantiles: [50, 100, 200], interval: (50, 200), weights: [1.0, 0.0, 0.0] };
        let start = |job: u64| StartRecord::new(1000, 0, &forecast, String::new()).of_job(job, "ann".into());
        Forecasts {
            read_at: Some(Time::from_secs(1000)),
            starts: jobs.iter().map(|&job| (job, start(job))).collect(),
            ..Forecasts::default()
        }
    }

    fn checks(jobs: &[u64]) -> ForecastChecks {
        let lines: String = jobs.iter().map(|&job| waiting(job)).collect();
        let mut checks = ForecastChecks::default();
        checks.keep(&at(1000, &lines), &forecasts(jobs));
        checks
    }

    #[test]
    fn starts_are_compared_with_the_first_forecast() {
        let mut checks = checks(&[1, 2, 3]);
        checks.check(&at(1100, &(running(1, 1090) + &waiting(2) + &waiting(3))));
        let one = ForecastScore { checked: 1, covered: 1, error_s: 10.0, width_s: 150.0 };
        assert_eq!(checks.score(), one);
        // A later forecast does not replace the first, and a start is counted once.
        checks.keep(&at(1100, &(waiting(2) + &waiting(3))), &forecasts(&[2, 3]));
        checks.check(&at(1400, &(running(1, 1090) + &running(2, 1300) + &waiting(3))));
        assert_eq!(checks.score(), ForecastScore { checked: 2, covered: 1, error_s: 210.0, width_s: 300.0 });
    }

    #[test]
    fn a_start_at_the_edge_of_the_interval_is_within_it() {
        for (start, covered) in [(1049, 0), (1050, 1), (1200, 1), (1201, 0)] {
            let mut checks = checks(&[1]);
            checks.check(&at(1300, &running(1, start)));
            assert_eq!(checks.score().covered, covered, "{start}");
        }
    }

    #[test]
    fn a_job_that_left_the_queue_is_found_among_those_that_ended_or_given_up() {
        let mut checks = checks(&[1, 2]);
        checks.check(&at(1200, ""));
        assert_eq!((checks.score().checked, checks.open.len()), (0, 2));
        let sacct = "JobIDRaw|User|Account|Partition|Submit|Start|End|Timelimit|AllocTRES|NodeList\n\
            1|ann|art|main|900|950|960|00:05:00|cpu=1|n1\n1|ann|art|main|960|1120|1150|00:05:00|cpu=1|n1\n";
        let mut later = at(1700, "");
        let calls = RecordedOutput::default().with("sacct", sacct);
        let ended = evenhand_slurm::FinishedJob::read(&calls, Time::from_secs(0), Time::from_secs(1700), true).unwrap();
        later.slow = Arc::new(SlowPart { ended, ..SlowPart::default() });
        checks.check(&later);
        // The start after the forecast, not the one before a requeue.
        assert_eq!(checks.score(), ForecastScore { checked: 1, covered: 1, error_s: 20.0, width_s: 150.0 });
        checks.check(&at(1200 + 1800, ""));
        assert_eq!((checks.score().checked, checks.open.len()), (1, 0), "cancelled");
    }

    #[test]
    fn tasks_of_an_array_are_not_compared() {
        let mut checks = ForecastChecks::default();
        checks.keep(&at(1000, "7|ann|PENDING|main|900|N/A|5:00|1|7|1-9\n"), &forecasts(&[7]));
        assert!(checks.open.is_empty());
    }
}
