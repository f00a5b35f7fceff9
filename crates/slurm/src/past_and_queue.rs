//! The past of a site and its queue as one log, from which starts are forecast.

use evenhand_forecast::{Forecaster, Job as PastJob, Log, LogError, NONE, StartRecord};
use evenhand_model::{Names, Span, Time};

use crate::bounded_start::{NotPlanned, bounded_start};
use crate::explain_wait::{NO_LIMIT_S, cpus_of as cpus_of_record};
use crate::finished_job::FinishedJob;
use crate::parse_values::Limit;
use crate::queue::Queue;
use crate::tres::Tres;
use crate::turn::{tasks_at_once, waits};

/// A time after all others: when what has not happened yet is assumed to happen.
const LATER_S: i64 = 1 << 40;

/// The most waiting tasks of one job array that are told apart.
const MOST_TASKS: u64 = 1000;

/// What happened at a site until now, as the forecaster reads it.
#[derive(Clone, Debug)]
pub struct PastAndQueue {
    /// Ended, running and waiting jobs. What has not happened yet happens after everything else in it.
    pub log: Log,
    users: Names,
    accounts: Names,
    partitions: Names,
    /// By job of the log: the record of the queue, if it is in the queue.
    records: Vec<Option<usize>>,
}

/// A job that could be submitted.
#[derive(Clone, Debug)]
pub struct NewJob<'a> {
    /// Its user.
    pub user: &'a str,
    /// Its account; the user's latest if none.
    pub account: Option<&'a str>,
    /// Its partition; that of most jobs if none.
    pub partition: Option<&'a str>,
    /// The CPUs that it needs.
    pub cpus: u64,
    /// Its wall time.
    pub limit: Span,
}

impl PastAndQueue {
    /// Joins ended jobs and the queue of a site with so many CPUs. Jobs that wait for something else than their turn, as held and
    /// throttled ones, do not wait in the queue.
    ///
    /// # Errors
    /// Returns an error if there is no job at all.
    pub fn new(ended: &[FinishedJob], queue: &Queue, cpus: u64, now: Time) -> Result<PastAndQueue, LogError> {
        let mut names = [Names::default(), Names::default(), Names::default()];
        let mut all: Vec<(PastJob, Option<usize>)> = Vec::new();
        for job in ended {
            let times = [job.submit, job.start, job.end].map(seconds);
            let of = [Some(job.user.as_str()), job.account.as_deref(), job.partition.as_deref()];
            all.push((past_job(&mut names, of, times, cpus_of(&job.held), &job.limit), None));
        }
        for (record, job) in queue.jobs.iter().enumerate() {
            let submit = seconds(job.submit.unwrap_or(now));
            let of = [Some(job.user.as_str()), job.account.as_deref(), job.partitions.first().map(String::as_str)];
            let cpus = cpus_of_record(job);
            if job.state.holds_resources() {
                let start = seconds(job.start.unwrap_or(now)).min(seconds(now) - 1).max(submit.min(seconds(now) - 1));
                let job = past_job(&mut names, of, [submit.min(start), start, LATER_S], cpus, &job.limit);
                all.push((job, Some(record)));
            } else if waits(job, now) {
                let job_of_queue = past_job(&mut names, of, [submit, LATER_S, LATER_S + 1], cpus, &job.limit);
                for _ in 0..tasks_at_once(queue, job).min(MOST_TASKS) {
                    all.push((job_of_queue, Some(record)));
                }
            }
        }
        // By priority where they were submitted in the same second; stable otherwise.
        all.sort_by_key(|(job, _)| job.submit);
        let (jobs, records): (Vec<PastJob>, Vec<Option<usize>>) = all.into_iter().unzip();
        let [users, accounts, partitions] = names;
        let log = Log::from_jobs(jobs, users.len(), i64::try_from(cpus).ok().filter(|cpus| *cpus > 0))?;
        Ok(PastAndQueue { log, users, accounts, partitions, records })
    }

    /// Returns the first job of the log that is this record of the queue.
    pub fn job_of_record(&self, record: usize) -> Option<usize> {
        self.records.iter().position(|found| *found == Some(record))
    }

    /// Forecasts the start of a waiting record of the queue at `now`, by a forecaster of this log, beside what Slurm plans. None
    /// if the record does not wait for its turn.
    ///
    /// # Errors
    /// Returns an error if the forecast would be wrong and Slurm plans no start.
    pub fn start_of_record(
        &self,
        forecaster: &mut Forecaster<'_>,
        queue: &Queue,
        record: usize,
        now: Time,
    ) -> Option<Result<StartRecord, NotPlanned>> {
        let job = &queue.jobs[record];
        let waiting = self.job_of_record(record);
        let starts_now = waiting.is_some_and(|waiting| forecaster.waiting_job_starts_now(waiting));
        let forecast = match (waiting, job.begins(now)) {
            (Some(waiting), _) => forecaster.waiting_job(waiting)?,
            (None, Some(_)) if job.no_turn().is_none() => forecaster.new_job(&self.new_job(&NewJob {
                user: &job.user,
                account: job.account.as_deref(),
                partition: job.partitions.first().map(String::as_str),
                cpus: cpus_of_record(job),
                limit: job.limit.span().unwrap_or(Span::from_secs(NO_LIMIT_S as u64)),
            })),
            _ => return None,
        };
        let waited = seconds(now) - seconds(job.submit.unwrap_or(now));
        let start = StartRecord::new(seconds(now), waited, &forecast, format!("job {}", job.id));
        Some(bounded_start(start.of_job(job.id, job.user.clone()), job, starts_now, now))
    }

    /// Returns a job that could be submitted, for the forecaster.
    pub fn new_job(&self, job: &NewJob<'_>) -> PastJob {
        let user = self.users.id(job.user).unwrap_or(self.log.stranger());
        let latest = self.log.jobs().iter().rev().find(|past| past.user == user).or(self.log.jobs().last());
        let named = |names: &Names, name: Option<&str>| name.map(|name| names.id(name).unwrap_or(NONE));
        PastJob {
            submit: 0,
            start: 0,
            end: 0,
            size: i64::try_from(job.cpus).unwrap_or(i64::MAX).max(1),
            limit: ((job.limit.nanos() / 1_000_000_000) as i64).max(1),
            user,
            account: named(&self.accounts, job.account).unwrap_or(latest.map_or(NONE, |l| l.account)),
            queue: named(&self.partitions, job.partition).unwrap_or(latest.map_or(NONE, |l| l.queue)),
        }
    }
}

fn seconds(time: Time) -> i64 {
    (time.nanos() / 1_000_000_000) as i64
}

fn cpus_of(held: &Tres) -> u64 {
    held.cpus().max(1)
}

fn past_job(
    [users, accounts, partitions]: &mut [Names; 3],
    [user, account, partition]: [Option<&str>; 3],
    [submit, start, end]: [i64; 3],
    cpus: u64,
    limit: &Limit,
) -> PastJob {
    let id = |names: &mut Names, name: Option<&str>| name.map_or(NONE, |name| names.intern(name));
    PastJob {
        submit,
        start: start.max(submit),
        end: end.max(start),
        size: i64::try_from(cpus).unwrap_or(i64::MAX),
        limit: limit.span().map_or(0, |span| (span.nanos() / 1_000_000_000) as i64),
        user: id(users, user),
        account: id(accounts, account),
        queue: id(partitions, partition),
    }
}

#[cfg(test)]
mod tests {
    use evenhand_forecast::Forecaster;

    use super::*;

    #[test]
    fn the_queue_and_the_past_are_one_log() {
        let queue = "JOBID|USER|STATE|REASON|PARTITION|PRIORITY|SUBMIT_TIME|START_TIME|TIME_LIMIT|CPUS|TRES_ALLOC|DEPENDENCY\n\
            8|ann|RUNNING|None|main|9|99000|99500|20:00|8|cpu=8|(null)\n\
            9|bob|PENDING|Resources|main|8|99900|N/A|5:00|8|cpu=8|(null)\n\
            10|bob|PENDING|Dependency|main|8|99900|N/A|5:00|8|cpu=8|afterok:8(unfulfilled)\n";
        let queue = Queue::parse(queue).unwrap();
        let mut ended = String::from("JobIDRaw|User|Account|Partition|Submit|Start|End|Timelimit|AllocTRES|NodeList\n");
        for n in 0..50 {
            let at = 1000 * n;
            ended += &format!("{n}|ann|a|main|{at}|{}|{}|00:20:00|cpu=8|n1\n", at + 1, at + 601);
        }
        let ended = FinishedJob::parse(&ended).unwrap();
        let past = PastAndQueue::new(&ended, &queue, 8, Time::from_secs(100_000)).unwrap();
        let job = past.job_of_record(1).unwrap();
        assert_eq!((past.job_of_record(2), past.log.capacity()), (None, Some(8)));
        let mut forecaster = Forecaster::at(&past.log, 100_000, 1);
        assert_eq!(forecaster.waiting(), [job as u32]);
        // Ann's jobs run 600 s, and the one that runs has run for 500.
        let forecast = forecaster.waiting_job(job).unwrap();
        assert!((50..=700).contains(&forecast.quantiles[1]), "{forecast:?}");
        let known = NewJob { user: "bob", account: None, partition: Some("main"), cpus: 8, limit: Span::from_secs(60) };
        let stranger = NewJob { user: "zoe", ..known.clone() };
        assert_eq!(past.new_job(&known).user, past.log.jobs()[job].user);
        assert_eq!(past.new_job(&stranger).user, past.log.stranger());
        assert!(forecaster.new_job(&past.new_job(&stranger)).quantiles[1] >= 0);
    }
}
