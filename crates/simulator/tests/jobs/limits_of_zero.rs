//! Limits of 0, which hold all jobs.

use evenhand_model::{
    Cluster, Limit, MachineGroup, NO_TIME, Queue, Rational, Resource, ResourceQuantity, Span, Task, Time, Weights,
    WorkloadBuilder,
};
use evenhand_policies::{PolicyContext, Registry};
use evenhand_simulator::{
    Backfill, JobOptions, Jobs, Layout, Progress, Rejection, Site, UserTasks, ZeroLimit, simulate_jobs,
};

#[test]
fn jobs_of_a_limit_of_zero_never_start_and_a_job_of_several_queues_goes_to_one_that_takes_jobs() {
    let number = |n: u64| ResourceQuantity::parse(&n.to_string()).unwrap();
    let cluster = Cluster {
        resources: vec!["cpu".into(), "gpu".into()],
        groups: vec![MachineGroup {
            name: "node".into(),
            count: 1,
            capacity: vec![number(4), number(2)],
            speed: Rational::ONE,
            weight: 1,
            properties: Vec::new(),
            hosts: Vec::new(),
        }],
        queues: vec![Queue { max_user_jobs: Some(0), priority: 1, ..Queue::new("shut") }, Queue::new("open")],
        limits: vec![Limit {
            users: vec!["ann".into()],
            max: vec![("gpu".into(), number(0))],
            ..Limit::new("no GPUs")
        }],
        ..Cluster::default()
    };
    let mut builder = WorkloadBuilder::new([Resource::new("cpu", ""), Resource::new("gpu", "")]);
    for (user, queue, gpus) in
        [("ann", "shut", 0), ("ann", "shut,open", 0), ("ann", "open", 1), ("bob", "open", 1), ("ann", "open", 0)]
    {
        builder.push(&Task {
            submit: Time::from_secs(10),
            duration: Span::from_secs(60),
            requested: Some(Span::from_secs(60)),
            user,
            queue: Some(queue),
            amounts: &[1_000_000_000, gpus * 1_000_000_000],
            ..Task::default()
        });
    }
    let workload = builder.finish().unwrap();
    let site = Site::machines(&cluster, workload.resources()).unwrap();
    let jobs = Jobs::new(&workload, &site, Layout::Auto);
    let tasks = UserTasks::new(&workload);
    for backfill in [Backfill::None, Backfill::Easy, Backfill::Slurm] {
        let weights = Weights::equal(2);
        let mut policy = Registry::built_in().build("fifo", &PolicyContext::new(site.total(), &weights)).unwrap();
        let options = JobOptions { backfill, ..JobOptions::default() };
        let progress = Progress::default();
        let found = simulate_jobs(&workload, &tasks, &site, &jobs, policy.as_mut(), options, &progress).unwrap();
        let started: Vec<bool> = found.starts.iter().map(|start| *start != NO_TIME).collect();
        assert_eq!(started, [false, true, false, true, true], "{backfill:?}");
        let held = [0, 2].map(|row: usize| found.rejections[row]);
        assert_eq!(
            held,
            [Some(Rejection::Held(0, ZeroLimit::Jobs)), Some(Rejection::Held(1, ZeroLimit::Amount(1)))],
            "{backfill:?}"
        );
        let why = held.map(|held| jobs.describe(held.unwrap(), workload.resources()));
        let remedy = "raise it, or leave it out if it was not there when the jobs ran";
        assert_eq!(why[0], format!("held by max_user_jobs = 0 of the queue \"shut\": {remedy}"));
        assert_eq!(why[1], format!("held by max = {{ gpu = 0 }} of the limit \"no GPUs\": {remedy}"));
    }
}
