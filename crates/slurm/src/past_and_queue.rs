//! The past of a site and its queue as one log, from which starts are forecast.

use std::collections::BTreeSet;

use evenhand_forecast::{Forecaster, Job as PastJob, Log, LogError, NONE, Size, StartRecord};
use evenhand_model::{Names, Span, Time};

use crate::bounded_start::{NotPlanned, bounded_start};
use crate::explain_wait::NO_LIMIT_S;
use crate::finished_job::FinishedJob;
use crate::nodes::Node;
use crate::parse_values::Limit;
use crate::pool::{Counted, Held, Pools};
use crate::queue::Queue;
use crate::turn::{tasks_at_once, waits};

/// A time after all others: when what has not happened yet is assumed to happen.
const LATER_S: i64 = 1 << 40;

/// The most waiting tasks of one job array that are jobs of their own in the log.
const MOST_TASKS: u64 = 1000;

/// What happened at a site until now, as the forecaster reads it.
#[derive(Clone, Debug)]
pub struct PastAndQueue {
    /// Ended, running and waiting jobs. What has not happened yet happens after everything else in it.
    pub log: Log,
    /// The pools of the site, and what is counted of them.
    pub pools: Pools,
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
    /// Its partitions; where its user's latest job was if none. It waits in the pool of the first that has what it needs.
    pub partitions: Vec<&'a str>,
    /// What it needs of what the pools count.
    pub size: Size,
    /// Its wall time.
    pub limit: Span,
}

impl PastAndQueue {
    /// Joins ended jobs and the queue of a site with these nodes, of which so much is counted. Jobs that wait for something else than their
    /// turn, as held and throttled ones, do not wait in the queue. A job for several partitions waits in the pool of the first that
    /// has what it needs.
    ///
    /// # Errors
    /// Returns an error if there is no job at all.
    pub fn new(
        ended: &[FinishedJob],
        queue: &Queue,
        nodes: &[Node],
        counted: Counted,
        now: Time,
    ) -> Result<PastAndQueue, LogError> {
        let of_queue = queue.jobs.iter().flat_map(|job| &job.partitions);
        let used: BTreeSet<&str> =
            of_queue.map(String::as_str).chain(ended.iter().filter_map(|job| job.partition.as_deref())).collect();
        let (pools, held) = (Pools::new(nodes, counted, &used), Held::new(counted, nodes));
        let mut names = [Names::default(), Names::default(), Names::default()];
        let mut all: Vec<(PastJob, Option<usize>)> = Vec::new();
        for job in ended.iter().chain(&FinishedJob::not_listed(queue, ended, now)) {
            let times = [job.submit, job.start, job.end].map(Time::whole_secs);
            let of = [Some(job.user.as_str()), job.account.as_deref(), job.partition.as_deref()];
            all.push((past_job(&mut names, &pools, of, times, counted.held(&job.held), &job.limit), None));
        }
        for (record, job) in queue.jobs.iter().enumerate() {
            let submit = job.submit.unwrap_or(now).whole_secs();
            let of = [Some(job.user.as_str()), job.account.as_deref(), job.partitions.first().map(String::as_str)];
            if job.runs() {
                let before = now.whole_secs() - 1;
                let start = job.start.unwrap_or(now).whole_secs().min(before).max(submit.min(before));
                let times = [submit.min(start), start, LATER_S];
                let job = past_job(&mut names, &pools, of, times, held.by(job), &job.limit);
                all.push((job, Some(record)));
            } else if waits(job, now) {
                let (times, size) = ([submit, LATER_S, LATER_S + 1], counted.need(job));
                let pool = pools.of_job(job.partitions.iter().map(String::as_str), size);
                let job_of_queue = PastJob { pool, ..past_job(&mut names, &pools, of, times, size, &job.limit) };
                for _ in 0..tasks_at_once(queue, job).min(MOST_TASKS) {
                    all.push((job_of_queue, Some(record)));
                }
            }
        }
        // By priority where they were submitted in the same second; stable otherwise.
        all.sort_by_key(|(job, _)| job.submit);
        let (jobs, records): (Vec<PastJob>, Vec<Option<usize>>) = all.into_iter().unzip();
        let [users, accounts, partitions] = names;
        let log = Log::from_jobs(jobs, users.len(), pools.capacities().to_vec())?;
        Ok(PastAndQueue { log, pools, users, accounts, partitions, records })
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
            (None, Some(_)) if job.no_turn().is_none() => {
                let new = NewJob {
                    user: &job.user,
                    account: job.account.as_deref(),
                    partitions: job.partitions.iter().map(String::as_str).collect(),
                    size: self.pools.counted.need(job),
                    limit: job.limit.span().unwrap_or(Span::from_secs(NO_LIMIT_S as u64)),
                };
                forecaster.new_job(&self.new_job(&new))
            }
            _ => return None,
        };
        let waited = now.whole_secs() - job.submit.unwrap_or(now).whole_secs();
        let start = StartRecord::new(now.whole_secs(), waited, &forecast, format!("job {}", job.id));
        Some(bounded_start(start.of_job(job.id, job.user.clone()), job, starts_now, &self.pools, now))
    }

    /// Returns a job that could be submitted, for the forecaster.
    pub fn new_job(&self, job: &NewJob<'_>) -> PastJob {
        let user = self.users.id(job.user).unwrap_or(self.log.stranger());
        let latest = self.log.jobs().iter().rev().find(|past| past.user == user).or(self.log.jobs().last());
        let named = |names: &Names, name: Option<&str>| name.map(|name| names.id(name).unwrap_or(NONE));
        let pool = match latest {
            Some(latest) if job.partitions.is_empty() => self.pools.that_has(job.size, latest.pool),
            _ => self.pools.of_job(job.partitions.iter().copied(), job.size),
        };
        PastJob {
            submit: 0,
            start: 0,
            end: 0,
            size: job.size,
            limit: job.limit.whole_secs().max(1),
            user,
            account: named(&self.accounts, job.account).unwrap_or(latest.map_or(NONE, |l| l.account)),
            queue: named(&self.partitions, job.partitions.first().copied()).unwrap_or(latest.map_or(NONE, |l| l.queue)),
            pool,
        }
    }
}

fn past_job(
    [users, accounts, partitions]: &mut [Names; 3],
    pools: &Pools,
    [user, account, partition]: [Option<&str>; 3],
    [submit, start, end]: [i64; 3],
    size: Size,
    limit: &Limit,
) -> PastJob {
    let id = |names: &mut Names, name: Option<&str>| name.map_or(NONE, |name| names.intern(name));
    PastJob {
        submit,
        start: start.max(submit),
        end: end.max(start),
        size,
        limit: limit.span().map_or(0, Span::whole_secs),
        user: id(users, user),
        account: id(accounts, account),
        queue: id(partitions, partition),
        pool: pools.of_partition(partition),
    }
}

#[cfg(test)]
mod tests {
    use evenhand_forecast::Forecaster;

    use super::*;
    use crate::nodes::Nodes;

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
        let nodes = Nodes::parse("NodeName=n1 CPUTot=8 Partitions=main State=IDLE\n").unwrap().nodes;
        let now = Time::from_secs(100_000);
        let past = PastAndQueue::new(&ended, &queue, &nodes, Counted::default(), now).unwrap();
        let job = past.job_of_record(1).unwrap();
        assert_eq!((past.job_of_record(2), past.log.capacity(0)), (None, Some(Size::from(8))));
        let mut forecaster = Forecaster::at(&past.log, 100_000, 1);
        assert_eq!(forecaster.waiting(), [job as u32]);
        // Ann's jobs run 600 s, and the one that runs has run for 500.
        let forecast = forecaster.waiting_job(job).unwrap();
        assert!((50..=700).contains(&forecast.quantiles[1]), "{forecast:?}");
        let known = NewJob {
            user: "bob",
            account: None,
            partitions: vec!["main"],
            size: Size::from(8),
            limit: Span::from_secs(60),
        };
        let stranger = NewJob { user: "zoe", ..known.clone() };
        assert_eq!(past.new_job(&known).user, past.log.jobs()[job].user);
        assert_eq!(past.new_job(&stranger).user, past.log.stranger());
        assert!(forecaster.new_job(&past.new_job(&stranger)).quantiles[1] >= 0);
    }

    /// Ann's jobs hold both GPUs for another 600 s; bob's waits for one. There are 8 nodes of which two have GPUs.
    fn gpu_site(counted: Counted) -> (PastAndQueue, Queue) {
        let queue = "JOBID|USER|STATE|REASON|PARTITION|PRIORITY|SUBMIT_TIME|START_TIME|TIME_LIMIT|CPUS|TRES_ALLOC\n\
            8|ann|RUNNING|None|gpu|9|99000|99400|20:00|1|cpu=1,mem=1G,gres/gpu=2\n\
            9|bob|PENDING|Priority|gpu|8|99900|N/A|5:00|1|cpu=1,mem=1G,gres/gpu=1\n\
            10|bob|PENDING|Priority|main|8|99900|N/A|5:00|1|cpu=1,mem=1G\n";
        let queue = Queue::parse(queue).unwrap();
        let mut ended = String::from("JobIDRaw|User|Account|Partition|Submit|Start|End|Timelimit|AllocTRES|NodeList\n");
        for n in 0..50 {
            let at = 1000 * n;
            ended += &format!("{n}|ann|a|gpu|{at}|{at}|{}|00:20:00|cpu=1,mem=1G,gres/gpu=2|g1\n", at + 1200);
        }
        let nodes = "NodeName=g1 CPUTot=8 RealMemory=8000 Gres=gpu:2 Partitions=gpu State=MIXED\n\
            NodeName=n1 CPUTot=8 RealMemory=8000 Partitions=main State=IDLE\n";
        let (ended, nodes) = (FinishedJob::parse(&ended).unwrap(), Nodes::parse(nodes).unwrap().nodes);
        (PastAndQueue::new(&ended, &queue, &nodes, counted, Time::from_secs(100_000)).unwrap(), queue)
    }

    #[test]
    fn a_job_that_waits_for_a_gpu_starts_when_one_is_free() {
        let now = Time::from_secs(100_000);
        let start = |counted: Counted, record: usize| {
            let (past, queue) = gpu_site(counted);
            let mut forecaster = Forecaster::at(&past.log, 100_000, 1);
            past.start_of_record(&mut forecaster, &queue, record, now).unwrap().unwrap()
        };
        let gpus = Counted { memory: true, gpus: true };
        let waits = start(gpus, 1);
        assert!((400..=800).contains(&waits.median_s), "{waits:?}");
        assert_eq!(
            waits.caveats,
            [
                "The forecast counts the CPUs, memory and GPUs of the partitions that share nodes with its own: not types of GPUs, whole \
              nodes or certain nodes."
            ]
        );
        // One without GPUs in the other pool starts at once, and by CPUs alone each does.
        assert_eq!(start(gpus, 2).median_s, 0);
        assert_eq!(start(Counted::default(), 1).median_s, 0);
    }

    #[test]
    fn a_job_with_a_begin_time_waits_in_the_first_of_its_partitions_that_has_what_it_needs() {
        let (past, mut queue) = gpu_site(Counted { memory: true, gpus: true });
        let mut later = queue.jobs[1].clone();
        later.partitions = vec!["main".into(), "gpu".into()];
        later.eligible = Some(Time::from_secs(100_300));
        later.reason = Some("BeginTime".into());
        queue.jobs.push(later);
        let mut forecaster = Forecaster::at(&past.log, 100_000, 1);
        let start = past.start_of_record(&mut forecaster, &queue, 3, Time::from_secs(100_000)).unwrap().unwrap();
        // Not at its begin, since both GPUs are held until then and `main`, which it names first, has none.
        assert!((400..=1200).contains(&start.median_s), "{start:?}");
    }

    #[test]
    fn what_is_being_completed_holds_nothing_and_is_in_the_log_once() {
        let now = Time::from_secs(100_000);
        let queue = "JOBID|USER|STATE|REASON|PARTITION|PRIORITY|SUBMIT_TIME|START_TIME|END_TIME|TIME_LIMIT|CPUS|TRES_ALLOC\n\
            8|ann|COMPLETING|None|main|9|99000|99400|99990|20:00|8|cpu=8\n\
            9|bob|PENDING|Resources|main|8|99900|N/A|N/A|5:00|8|cpu=8\n";
        let queue = Queue::parse(queue).unwrap();
        let nodes =
            Nodes::parse("NodeName=n1 CPUTot=8 CPUAlloc=8 Partitions=main State=ALLOCATED+COMPLETING\n").unwrap();
        let header = "JobIDRaw|User|Account|Partition|Submit|Start|End|Timelimit|AllocTRES|NodeList\n";
        let past = |ended: &str| {
            let ended = FinishedJob::parse(&format!("{header}{ended}")).unwrap();
            PastAndQueue::new(&ended, &queue, &nodes.nodes, Counted::default(), now).unwrap()
        };
        // Accounting has it, has only a run before a requeue, or has nothing.
        let run = |start: i64| format!("8|ann|a|main|99000|{start}|99990|00:20:00|cpu=8|n1\n");
        for (ended, jobs) in [(run(99_400), 2), (run(99_100), 3), (String::new(), 2)] {
            let past = past(&ended);
            assert_eq!(past.log.jobs().len(), jobs, "{ended}");
            let mut forecaster = Forecaster::at(&past.log, 100_000, 1);
            let waiting = past.job_of_record(1).unwrap();
            assert!(forecaster.waiting_job_starts_now(waiting), "{ended}");
            assert_eq!(past.job_of_record(0), None);
        }
    }

    #[test]
    fn a_new_job_waits_in_the_pool_of_its_partition_or_of_its_user_s_latest_job() {
        let (past, _) = gpu_site(Counted { memory: true, gpus: true });
        let new = |user: &str, partitions: &[&str]| {
            let limit = Span::from_secs(60);
            let partitions = partitions.to_vec();
            past.new_job(&NewJob {
                user,
                account: None,
                partitions,
                size: past.pools.counted.size(2, 3 << 20, 1),
                limit,
            })
        };
        assert_eq!(new("ann", &[]).size, Size::new([2, 3, 1]));
        // Bob's latest job ran where there are no GPUs.
        let asked: [(&str, &[&str]); 5] =
            [("ann", &[]), ("bob", &[]), ("ann", &["main"]), ("ann", &["main", "gpu"]), ("ann", &["gone"])];
        assert_eq!(asked.map(|(user, partitions)| new(user, partitions).pool), [0, 0, 1, 0, 0]);
    }
}
