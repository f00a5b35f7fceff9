//! Why a job of the queue waits: who stands before it, what is free, and when it would start if it asked for less.

use std::collections::BTreeMap;

use evenhand_forecast::{HORIZON_S, Replay, Running, Size, Waiting};
use evenhand_model::{Span, Time};

use crate::nodes::Node;
use crate::pool::{Counted, Held, PoolResource, free};
use crate::queue::{Job, Queue};
use crate::turn::{tasks_at_once, waits};

/// Jobs of one user that stand before a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Ahead {
    /// The user.
    pub user: String,
    /// The account.
    pub account: Option<String>,
    /// How many jobs.
    pub jobs: u64,
    /// How many CPUs they ask for together.
    pub cpus: u64,
    /// How many GPUs, where GPUs are counted.
    pub gpus: u64,
}

/// A job that asked for something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// What it asked for.
    Unchanged,
    /// Another limit, in seconds.
    Limit(i64),
    /// Less of a resource: CPUs, MiB of memory or GPUs.
    Less(PoolResource, i64),
}

/// A start that was planned for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// What is asked for.
    pub request: Request,
    /// When it would start, in seconds from now; none if it cannot.
    pub start_s: Option<i64>,
}

/// The part of a site on which a job can run, and its queue.
#[derive(Clone, Debug)]
pub struct WaitingJob<'a> {
    queue: &'a Queue,
    /// The job, as an index of the queue.
    pub job: usize,
    now: Time,
    /// What is counted.
    pub counted: Counted,
    /// What the nodes of its partitions have that are not down or drained.
    pub capacity: Size,
    /// What of it is free.
    pub free: Size,
    held: Held,
    /// Records that wait for the same partitions and come first, in their order.
    before: Vec<usize>,
}

impl<'a> WaitingJob<'a> {
    /// Looks at a waiting record of the queue, at a site where so much is counted; GPUs only if the job needs some or its partitions have
    /// some.
    pub fn new(queue: &'a Queue, nodes: &[Node], counted: Counted, job: usize, now: Time) -> WaitingJob<'a> {
        let own = &queue.jobs[job];
        let of_partitions = |node: &&Node| {
            node.partitions.iter().any(|partition| own.partitions.contains(partition)) && !node.is_future()
        };
        let of_partitions: Vec<&Node> = nodes.iter().filter(of_partitions).collect();
        let needs_gpus = PoolResource::Gpus.of(counted.need(own)) > 0;
        let gpus = counted.gpus && (needs_gpus || of_partitions.iter().any(|node| node.gpus() > 0));
        let counted = Counted { gpus, ..counted };
        let usable: Vec<&Node> = of_partitions.into_iter().filter(|node| !node.is_unavailable()).collect();
        let capacity = usable.iter().fold(Size::ZERO, |sum, node| sum.plus(counted.capacity(node)));
        let running = queue.running().filter(|job| shares_partition(own, job));
        let free = free(counted, &usable, running);
        let key = |job: &Job| (std::cmp::Reverse(job.priority), job.submit, job.id);
        let stands_before = |&at: &usize| {
            let other = &queue.jobs[at];
            at != job && waits(other, now) && shares_partition(own, other) && key(other) < key(own)
        };
        let mut before: Vec<usize> = (0..queue.jobs.len()).filter(stands_before).collect();
        before.sort_by_key(|&at| key(&queue.jobs[at]));
        let held = Held::new(counted, nodes);
        WaitingJob { queue, job, now, counted, capacity, free, held, before }
    }

    /// Returns what it needs of what is counted.
    pub fn need(&self) -> Size {
        self.counted.need(&self.queue.jobs[self.job])
    }

    /// Returns the resources of which less is free than it needs.
    pub fn short(&self) -> impl Iterator<Item = PoolResource> {
        let (need, free) = (self.need(), self.free);
        self.counted.resources().filter(move |resource| resource.of(need) > resource.of(free))
    }

    /// Returns how many jobs stand before it: those that wait for their turn, and of arrays the tasks that may start at once.
    pub fn jobs_before(&self) -> u64 {
        self.before.iter().map(|&at| tasks_at_once(self.queue, &self.queue.jobs[at])).sum()
    }

    /// Returns who stands before it, by user and account, those who ask for most CPUs first.
    pub fn ahead(&self) -> Vec<Ahead> {
        let mut sums: BTreeMap<(&str, Option<&str>), (u64, u64, u64)> = BTreeMap::new();
        for &at in &self.before {
            let job = &self.queue.jobs[at];
            let (jobs, cpus, gpus) = sums.entry((&job.user, job.account.as_deref())).or_default();
            let tasks = tasks_at_once(self.queue, job);
            *jobs += tasks;
            *cpus = cpus.saturating_add(tasks.saturating_mul(cpus_of(job)));
            let of_each = PoolResource::Gpus.of(self.counted.need(job)).unsigned_abs();
            *gpus = gpus.saturating_add(tasks.saturating_mul(of_each));
        }
        let ahead = sums.into_iter().map(|((user, account), (jobs, cpus, gpus))| Ahead {
            user: user.to_string(),
            account: account.map(String::from),
            jobs,
            cpus,
            gpus,
        });
        let mut found: Vec<Ahead> = ahead.collect();
        // By user and account where the CPUs are equal.
        found.sort_by_key(|ahead| std::cmp::Reverse(ahead.cpus));
        found
    }

    /// Plans the start for the request and for smaller ones: by what is counted of the job's partitions, in the order of priority with
    /// EASY backfilling, where each job runs to its limit and none is submitted; not before its begin time. First the request itself,
    /// then what starts earlier. Types of GPUs and the shapes of nodes are not planned.
    pub fn what_if(&self) -> Vec<Planned> {
        let own = &self.queue.jobs[self.job];
        let mut replay = self.replay();
        let mut plan = |request| self.plan(request, &mut replay);
        let unchanged = plan(Request::Unchanged);
        let mut found = vec![unchanged];
        let limit = limit_s(own);
        // Without overflow of a need of bytes without end.
        let parts = |amount: i64| [3, 2, 1].map(|quarters| (i128::from(amount) * quarters / 4) as i64);
        let limits = parts(limit).map(Request::Limit);
        let need = self.need();
        let less = |resource: PoolResource| parts(resource.of(need)).map(|amount| Request::Less(resource, amount));
        for requests in std::iter::once(limits).chain(self.counted.resources().map(less)) {
            let mut best = unchanged.start_s.unwrap_or(i64::MAX);
            for request in requests {
                if matches!(request, Request::Limit(0) | Request::Less(_, 0)) {
                    continue;
                }
                let planned = plan(request);
                if let Some(start) = planned.start_s.filter(|&start| start < best) {
                    best = start;
                    found.push(planned);
                }
            }
        }
        found
    }

    /// The queue up to the job, which stands last.
    fn replay(&self) -> Replay {
        let own = &self.queue.jobs[self.job];
        let mut replay = Replay::default();
        for job in self.queue.jobs.iter().filter(|job| job.state.holds_resources() && shares_partition(own, job)) {
            let ran = job.start.map_or(0, |start| self.now.since(start).whole_secs());
            let left = (limit_s(job) - ran).max(1);
            replay.running.push(Running { size: self.held.by(job), end: left, limit: left });
        }
        for &at in &self.before {
            let job = &self.queue.jobs[at];
            let tasks = tasks_at_once(self.queue, job).min(MOST_TASKS);
            replay.queue.extend(std::iter::repeat_n(self.waiting(job), tasks as usize));
        }
        replay.queue.push(self.own_request());
        replay
    }

    /// The job as it was submitted; one with a begin time as if it were submitted then.
    fn own_request(&self) -> Waiting {
        let own = &self.queue.jobs[self.job];
        let begin =
            own.begins(self.now).map_or(0, |begin| begin.since(self.now).nanos().div_ceil(1_000_000_000) as i64);
        Waiting { submit: begin, ..self.waiting(own) }
    }

    /// A job that waits now and runs to its limit.
    fn waiting(&self, job: &Job) -> Waiting {
        let limit = limit_s(job);
        Waiting { submit: 0, size: self.counted.need(job), run: limit, limit }
    }

    fn plan(&self, request: Request, replay: &mut Replay) -> Planned {
        let mut target = self.own_request();
        match request {
            Request::Unchanged => (),
            Request::Limit(limit) => (target.run, target.limit) = (limit, limit),
            Request::Less(resource, amount) => target.size = resource.set(target.size, amount),
        }
        let last = replay.queue.len() - 1;
        if !target.size.fits(self.capacity) {
            return Planned { request, start_s: None };
        }
        replay.queue[last] = target;
        let start = replay.start_of(last, self.capacity);
        Planned { request, start_s: Some(start).filter(|&start| start < HORIZON_S) }
    }
}

/// The most tasks of one array that are planned.
const MOST_TASKS: u64 = 1000;

/// A year, for a job without a limit.
pub(crate) const NO_LIMIT_S: i64 = 366 * 86_400;

pub(crate) fn limit_s(job: &Job) -> i64 {
    job.limit.span().map_or(NO_LIMIT_S, Span::whole_secs).max(1)
}

pub(crate) fn cpus_of(job: &Job) -> u64 {
    job.cpus.unwrap_or_else(|| job.requested.cpus()).max(1)
}

fn shares_partition(a: &Job, b: &Job) -> bool {
    a.partitions.iter().any(|partition| b.partitions.contains(partition))
}

#[cfg(test)]
mod tests {
    use evenhand_model::Time;

    use super::*;
    use crate::nodes::Nodes;

    const CPUS: Counted = Counted { memory: false, gpus: false };

    const NODE: &str = "NodeName=n1 CPUAlloc=6 CPUTot=8 RealMemory=1000 AllocMem=0 Partitions=main State=MIXED CfgTRES=cpu=8,mem=1000M\n";

    /// 8 CPUs: 6 are taken for another 100 s; ann's job of 4 stands before bob's of 2 for 200 s.
    fn queue() -> Queue {
        let text = "JOBID|USER|STATE|REASON|PARTITION|PRIORITY|SUBMIT_TIME|START_TIME|TIME_LIMIT|CPUS|TRES_ALLOC|DEPENDENCY\n\
            1|ann|RUNNING|None|main|9|900|1000|3:20|6|cpu=6|(null)\n\
            2|ann|PENDING|Resources|main|8|1000|N/A|5:00|4|cpu=4|(null)\n\
            3|bob|PENDING|Priority|main|7|1050|N/A|3:20|2|cpu=2|(null)\n\
            4|cid|PENDING|Dependency|main|9|1000|N/A|5:00|8|cpu=8|afterok:1(unfulfilled)\n\
            5|cid|PENDING|Priority|other|9|1000|N/A|5:00|8|cpu=8|(null)\n";
        Queue::parse(text).unwrap()
    }

    #[test]
    fn those_of_the_same_partition_with_a_higher_priority_stand_before() {
        let (queue, nodes) = (queue(), Nodes::parse(NODE).unwrap().nodes);
        let waiting = WaitingJob::new(&queue, &nodes, CPUS, 2, Time::from_secs(1100));
        assert_eq!((waiting.capacity, waiting.free, waiting.jobs_before()), (Size::from(8), Size::from(2), 1));
        assert_eq!(waiting.short().count(), 0);
        let ahead = waiting.ahead();
        assert_eq!((ahead[0].user.as_str(), ahead[0].jobs, ahead[0].cpus), ("ann", 1, 4));
        assert_eq!(WaitingJob::new(&queue, &nodes, CPUS, 1, Time::from_secs(1100)).jobs_before(), 0);
    }

    #[test]
    fn who_waits_for_another_job_is_the_same_here_as_in_the_plan() {
        let of = |reason: &str, dependency: &str| {
            let text = format!("JOBID|USER|STATE|REASON|PRIORITY|DEPENDENCY\n1|ann|PENDING|{reason}|7|{dependency}\n");
            let job = &Queue::parse(&text).unwrap().jobs[0];
            assert_eq!(waits(job, Time::from_secs(1100)), job.no_turn().is_none());
            waits(job, Time::from_secs(1100))
        };
        assert!(of("Priority", "(null)"));
        // What is left of its dependencies keeps the job no longer.
        assert!(of("Priority", "afterany:3(fulfilled)"));
        assert!(!of("Priority", "afterany:3(fulfilled),afterok:4(unfulfilled)"));
        // Releases that do not print the state of a dependency.
        assert!(!of("Dependency", "afterok:4"));
        assert!(!of("DependencyNeverSatisfied", "afterok:4(failed)"));
    }

    #[test]
    fn throttled_tasks_do_not_stand_before_and_a_begin_time_is_kept() {
        let text = "JOBID|USER|STATE|REASON|PARTITION|PRIORITY|SUBMIT_TIME|ELIGIBLE_TIME|TIME_LIMIT|CPUS|ARRAY_JOB_ID|ARRAY_TASK_ID\n\
            1|ann|PENDING|JobArrayTaskLimit|main|9|1000|N/A|5:00|8|1|3-50%2\n\
            2|ann|PENDING|PartitionTimeLimit|main|9|1000|1000|5:00|8|2|N/A\n\
            3|bob|PENDING|BeginTime|main|9|1000|9000|5:00|8|3|N/A\n\
            4|cid|PENDING|Resources|main|7|1050|1050|3:20|2|4|N/A\n";
        let (queue, nodes) =
            (Queue::parse(text).unwrap(), Nodes::parse(&NODE.replace("CPUAlloc=6", "CPUAlloc=0")).unwrap().nodes);
        let waiting = WaitingJob::new(&queue, &nodes, CPUS, 3, Time::from_secs(1100));
        assert_eq!((waiting.jobs_before(), waiting.ahead()), (0, Vec::new()));
        assert_eq!(waiting.what_if(), [Planned { request: Request::Unchanged, start_s: Some(0) }]);
        // Nothing that is asked for starts the job before its begin time.
        let later = WaitingJob::new(&queue, &nodes, CPUS, 2, Time::from_secs(1100)).what_if();
        assert_eq!(later, [Planned { request: Request::Unchanged, start_s: Some(7900) }]);
    }

    #[test]
    fn a_plan_backfills_a_job_that_asks_for_less() {
        let (queue, nodes) = (queue(), Nodes::parse(NODE).unwrap().nodes);
        // Ann's job is planned for when the first has reached its limit, in 100 s. Beside it 4 CPUs are free then: bob's job of
        // 200 s takes 2 of them, and so can start at once.
        let planned = WaitingJob::new(&queue, &nodes, CPUS, 2, Time::from_secs(1100)).what_if();
        assert_eq!(planned, [Planned { request: Request::Unchanged, start_s: Some(0) }]);
        let planned = WaitingJob::new(&queue, &nodes, CPUS, 1, Time::from_secs(1100)).what_if();
        let smaller = Planned { request: Request::Less(PoolResource::Cpus, 2), start_s: Some(0) };
        assert_eq!(planned, [Planned { request: Request::Unchanged, start_s: Some(100) }, smaller]);
        // Without usable nodes nothing is planned.
        let none = WaitingJob::new(&queue, &[], CPUS, 1, Time::from_secs(1100)).what_if();
        assert_eq!(none, [Planned { request: Request::Unchanged, start_s: None }]);
    }

    /// Two GPUs of which job 1 has one for another 100 s; 8 CPUs, of which it has one. Job 4 needs most of the memory.
    const GPUS: &str = "NodeName=g1 CPUAlloc=1 CPUTot=8 RealMemory=8000 AllocMem=1000 Gres=gpu:2 Partitions=main State=MIXED \
        CfgTRES=cpu=8,mem=8000M,gres/gpu=2 AllocTRES=cpu=1,mem=1000M,gres/gpu=1\n\
        NodeName=o1 CPUTot=8 RealMemory=8000 Partitions=other State=IDLE\n";
    const GPU_QUEUE: &str = "JOBID|USER|STATE|REASON|PARTITION|PRIORITY|SUBMIT_TIME|START_TIME|TIME_LIMIT|CPUS|TRES_ALLOC|NODELIST\n\
        1|ann|RUNNING|None|main|9|900|1000|3:20|1|cpu=1,mem=1000M,gres/gpu=1|g1\n\
        2|bob|PENDING|Resources|main|8|1000|N/A|5:00|2|cpu=2,mem=2000M,gres/gpu=2|\n\
        3|cid|PENDING|Priority|main|7|1050|N/A|5:00|6|cpu=6,mem=100M|\n\
        4|dan|PENDING|Priority|main|6|1060|N/A|10:00|1|cpu=1,mem=7900M|\n\
        5|eve|PENDING|Priority|other|6|1060|N/A|10:00|1|cpu=1,mem=7900M|\n";

    #[test]
    fn a_job_waits_for_gpus_and_memory_beside_cpus() {
        let (queue, nodes) = (Queue::parse(GPU_QUEUE).unwrap(), Nodes::parse(GPUS).unwrap().nodes);
        let all = Counted { memory: true, gpus: true };
        let planned = |counted: Counted, job: usize| {
            let waiting = WaitingJob::new(&queue, &nodes, counted, job, Time::from_secs(1100));
            (waiting.short().collect::<Vec<_>>(), waiting.what_if())
        };
        let as_submitted = |start_s| Planned { request: Request::Unchanged, start_s: Some(start_s) };
        // Both GPUs are free when job 1 has reached its limit; one is now.
        let one = Planned { request: Request::Less(PoolResource::Gpus, 1), start_s: Some(0) };
        assert_eq!(planned(all, 1), (vec![PoolResource::Gpus], vec![as_submitted(100), one]));
        // Job 3 takes what job 2 leaves, and so starts before it.
        assert_eq!(planned(all, 2), (vec![], vec![as_submitted(0)]));
        // Job 4 waits for memory until both have ended; it fits beside them with a quarter.
        let (short, starts) = planned(all, 3);
        assert_eq!((short, starts[0]), (vec![PoolResource::Memory], as_submitted(400)));
        let less = Request::Less(PoolResource::Memory, 5925);
        assert!(starts.contains(&Planned { request: less, start_s: Some(300) }), "{starts:?}");
        // By CPUs alone the first would start at once.
        assert_eq!(planned(CPUS, 1), (vec![], vec![as_submitted(0)]));
        // A partition without GPUs does not count them.
        let waiting = WaitingJob::new(&queue, &nodes, all, 4, Time::from_secs(1100));
        assert_eq!((waiting.counted, waiting.capacity), (Counted { gpus: false, ..all }, Size::new([8, 8000, 0])));
        // Both GPUs of a second node are free, also if the first is drained while job 1 runs on it.
        let more = GPUS.replace("MIXED", "MIXED+DRAIN").to_string()
            + "NodeName=g2 CPUTot=8 RealMemory=8000 Gres=gpu:2 Partitions=main State=IDLE CfgTRES=cpu=8,mem=8000M,gres/gpu=2\n";
        let more = Nodes::parse(&more).unwrap().nodes;
        let now = WaitingJob::new(&queue, &more, all, 1, Time::from_secs(1100));
        assert_eq!((now.short().count(), now.what_if()), (0, vec![as_submitted(0)]));
        // More than the nodes have never starts.
        let drained = Nodes::parse(&GPUS.replace("MIXED", "MIXED+DRAIN")).unwrap().nodes;
        let none = WaitingJob::new(&queue, &drained, all, 1, Time::from_secs(1100)).what_if();
        assert_eq!(none, [Planned { request: Request::Unchanged, start_s: None }]);
    }
}
