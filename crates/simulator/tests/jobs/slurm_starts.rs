//! When jobs start under Slurm's scheduler, in numbers.

use evenhand_model::{
    Cluster, Detail, Details, MachineGroup, Rational, Resource, ResourceQuantity, Span, Task, WorkloadBuilder,
};
use evenhand_simulator::{Activity, Jobs, Layout, LayoutRule, Site, SlurmOptions};

use crate::slurm::{run, seconds};
use crate::slurm_reference_model::{ClosedNodes, Partition, SlurmJob, SlurmWorld};

/// One node of four CPUs; jobs of user 0, by submission, run time, limit and CPUs.
fn one_node(jobs: &[(u64, u64, u64, u64)], options: SlurmOptions) -> Vec<(Option<u64>, Option<Activity>)> {
    let job = |&(submit, run, asked, cpus): &(u64, u64, u64, u64)| SlurmJob::new(0, (submit, run, asked, [cpus, 0]));
    let jobs = jobs.iter().map(job).collect();
    let found = run(&SlurmWorld::of_one_node(vec![Partition::default()], jobs, options));
    let started_by = found.machines.unwrap().slurm.unwrap().started_by;
    seconds(&found.starts).into_iter().zip(started_by).collect()
}

#[test]
fn a_job_starts_at_its_submission_in_a_pass_or_by_backfill() {
    let options = SlurmOptions::default();
    // The second waits for the first; the third has a shorter limit than what is left until then.
    let jobs = [(10, 600, 600, 3), (11, 60, 60, 4), (12, 60, 60, 1)];
    let found = one_node(&jobs, options);
    assert_eq!(found[0], (Some(11), Some(Activity::Main)), "the first whole second after the submission");
    assert_eq!(found[2], (Some(30), Some(Activity::Backfill)), "the first run of backfill is at 30 s");
    assert_eq!(found[1], (Some(612), Some(Activity::Main)), "the end of the first asks for a pass");
    let epilog = SlurmOptions { epilog: true, completing: Span::from_secs(2), ..options };
    assert_eq!(one_node(&jobs, epilog)[1], (Some(613), Some(Activity::Main)), "a pass when the nodes are free");
    let strict = one_node(&jobs, SlurmOptions { backfill: false, ..options });
    assert_eq!(strict[2], (Some(673), Some(Activity::Main)), "sched/builtin starts nothing before its turn");
    let interactive = one_node(&jobs, SlurmOptions { at_submission: true, ..options });
    assert_eq!(interactive[0], (Some(10), Some(Activity::Submit)));
    assert_eq!(interactive[2], (Some(30), Some(Activity::Backfill)), "an earlier job waits for the node");
}

#[test]
fn jobs_are_ended_by_their_limits_at_a_sweep() {
    let found = one_node(&[(7, 1000, 100, 4), (9, 10, 60, 4)], SlurmOptions::default());
    // 8 s + 2 min, at the next multiple of 30 s.
    assert_eq!((found[0].0, found[1].0), (Some(8), Some(151)));
    let soft = SlurmOptions { over_time_limit: None, ..SlurmOptions::default() };
    assert_eq!(one_node(&[(7, 1000, 100, 4), (9, 10, 60, 4)], soft)[1].0, Some(1009));
}

#[test]
fn a_planned_job_reserves_whole_nodes() {
    // The planned job of 2 CPUs leaves 2 free beside it, and the last job would be done long after it starts.
    let found = one_node(&[(0, 600, 600, 3), (1, 60, 60, 2), (2, 900, 900, 1)], SlurmOptions::default());
    let starts: Vec<Option<u64>> = found.into_iter().map(|(start, _)| start).collect();
    assert_eq!(starts, [Some(3), Some(604), Some(604)]);
}

#[test]
fn a_job_closes_its_partition_until_a_reservation_is_in_its_way() {
    // The first runs longer than its limit. The second waits for it with a limit of two minutes, the third has one of one.
    let job = |times: (u64, u64, u64), cpus: u64| SlurmJob::new(0, (times.0, times.1, times.2, [cpus, 0]));
    let jobs = vec![job((0, 559, 60), 3), job((95, 1, 120), 4), job((229, 1, 60), 1)];
    let options = SlurmOptions {
        backfill: false,
        over_time_limit: None,
        sched_interval: Some(Span::from_secs(20)),
        ..SlurmOptions::default()
    };
    let mut world = SlurmWorld::of_one_node(vec![Partition::default()], jobs, options);
    assert_eq!(seconds(&run(&world).starts), [Some(3), Some(563), Some(566)]);
    // From 320 s on the second would meet it: no nodes are left that could hold it.
    world.reservations = vec![ClosedNodes { nodes: vec![0], from: 420, to: 421 }];
    assert_eq!(seconds(&run(&world).starts), [Some(3), Some(563), Some(320)]);
}

#[test]
fn a_job_that_asks_for_whole_nodes_has_them_alone() {
    let job = |(submit, run, asked): (u64, u64, u64), is_exclusive: bool| SlurmJob {
        is_exclusive,
        ..SlurmJob::new(0, (submit, run, asked, [1, 0]))
    };
    // The second waits for the first, which needs one CPU of four; the third for the second.
    let jobs = vec![job((0, 100, 120), true), job((4, 100, 120), false), job((5, 50, 60), true)];
    let world = SlurmWorld::of_one_node(vec![Partition::default()], jobs, SlurmOptions::default());
    assert_eq!(seconds(&run(&world).starts), [Some(3), Some(104), Some(205)]);
    let shared = world.jobs.iter().map(|job| SlurmJob { is_exclusive: false, ..job.clone() }).collect();
    let shared = SlurmWorld { jobs: shared, ..world };
    assert_eq!(seconds(&run(&shared).starts), [Some(3), Some(6), Some(6)]);
}

#[test]
fn jobs_that_had_all_processors_of_their_nodes_and_requested_fewer_have_whole_nodes() {
    let mut log = WorkloadBuilder::new([Resource::new("cpu", "")]);
    // Processors held and requested, and the nodes.
    let jobs = [(4, 1, "n0"), (8, 2, "n[0-1]"), (4, 4, "n0"), (2, 1, "n0"), (4, 1, "n[0-1]"), (4, 1, "m0")];
    for (held, requested, machines) in jobs {
        log.push(&Task {
            user: "ann",
            amounts: &[held * 1_000_000_000],
            requested_amounts: Some(&[requested * 1_000_000_000]),
            nodes: Some(held.div_ceil(4) as u32),
            details: Details::from_fn(|detail| (detail == Detail::Machines).then_some(machines)),
            ..Task::default()
        });
    }
    let log = log.finish().unwrap();
    let group = MachineGroup {
        name: "nodes".into(),
        hosts: vec!["n0".into(), "n1".into()],
        count: 2,
        capacity: vec![ResourceQuantity::parse("4").unwrap()],
        speed: Rational::ONE,
        weight: 1,
        properties: Vec::new(),
    };
    let cluster = Cluster { resources: vec!["cpu".into()], groups: vec![group], ..Cluster::default() };
    let whole = |site: &Site| {
        let jobs = Jobs::new(&log, site, Layout::Auto);
        (0..6).map(|row| jobs.rule(row) == LayoutRule::Exclusive).collect::<Vec<bool>>()
    };
    let site = Site::machines(&cluster, log.resources()).unwrap();
    assert_eq!(whole(&site), [false; 6], "other schedulers give jobs what they held");
    assert_eq!(whole(&site.for_slurm(&SlurmOptions::default())), [true, true, false, false, false, false]);
}
