//! Jobs that are suspended for others under Slurm's scheduler, the order of the queue, and licences, in numbers.

use evenhand_model::{PreemptMode, Span};
use evenhand_simulator::{PreemptType, SlurmOptions};

use crate::slurm::{run, seconds};
use crate::slurm_reference_model::{Partition, Preempted, SlurmJob, SlurmWorld};

/// Two partitions on one node, of which jobs of the second suspend those of the first.
fn world(jobs: Vec<SlurmJob>) -> SlurmWorld {
    let partitions = vec![Partition::default(), Partition { tier: 1, ..Partition::default() }];
    let options = SlurmOptions {
        preempt_type: Some(PreemptType::Partition),
        preempt_mode: PreemptMode::Suspend,
        preempt_gang: true,
        ..SlurmOptions::default()
    };
    SlurmWorld::of_one_node(partitions, jobs, options)
}

/// Starts, ends, and how often jobs were suspended.
fn times(world: &SlurmWorld) -> (Vec<Option<u64>>, Vec<Option<u64>>, u64) {
    let found = run(world);
    let on = found.machines.unwrap();
    (seconds(&found.starts), seconds(&on.finishes), on.slurm.unwrap().preempted.unwrap_or_default().suspended)
}

#[test]
fn a_suspended_job_goes_on_when_the_one_for_which_it_made_way_has_ended() {
    // The first has run for 100 s when it is suspended for 50 s; nobody else gets what it holds.
    let low = SlurmJob::new(0, (0, 200, 300, [4, 2]));
    let jobs = vec![low, SlurmJob::new(1, (97, 50, 60, [3, 2])), SlurmJob::new(0, (98, 10, 60, [1, 0]))];
    let (starts, ends, suspended) = times(&world(jobs));
    assert_eq!(starts[..2], [Some(3), Some(98)]);
    assert_eq!(ends[..2], [Some(253), Some(148)]);
    assert_eq!(starts[2], Some(254), "the CPU that the second leaves free is the first's");
    assert_eq!(suspended, 1);
}

#[test]
fn memory_of_suspended_jobs_stays_held() {
    let jobs = vec![SlurmJob::new(0, (0, 200, 300, [4, 3])), SlurmJob::new(1, (98, 50, 60, [1, 2]))];
    let (starts, _, suspended) = times(&world(jobs));
    assert_eq!((starts, suspended), (vec![Some(3), Some(204)], 0));
}

#[test]
fn a_time_limit_does_not_run_while_a_job_is_suspended() {
    // It would end at the sweep at 90 s, and is suspended from 61 s to 111 s.
    let jobs = vec![SlurmJob::new(0, (0, 1000, 60, [4, 0])), SlurmJob::new(1, (50, 50, 60, [4, 0]))];
    let (starts, ends, _) = times(&world(jobs));
    let begin = starts[1].unwrap();
    assert!((50..70).contains(&begin), "{begin}");
    assert_eq!(ends[0], Some(((3 + 60 + 50u64).max(begin + 50)).div_ceil(30) * 30));
}

#[test]
fn as_little_is_lent_as_suffices() {
    // Of two partitions below, only jobs of the lowest are suspended.
    let tiers = [-1, 0, 1].map(|tier| Partition { tier, ..Partition::default() });
    let (low, middle) = (SlurmJob::new(0, (0, 500, 600, [2, 0])), SlurmJob::new(1, (0, 500, 600, [2, 0])));
    let of = |cpus: u64| SlurmJob::new(2, (98, 50, 60, [cpus, 0]));
    let all = |cpus: u64| {
        times(&SlurmWorld { partitions: tiers.to_vec(), ..world(vec![low.clone(), middle.clone(), of(cpus)]) })
    };
    let (_, ends, suspended) = all(2);
    assert_eq!((&ends[..2], suspended), ([Some(553), Some(503)].as_slice(), 1));
    let (_, ends, suspended) = all(3);
    assert_eq!((&ends[..2], suspended), ([Some(553), Some(553)].as_slice(), 2));
}

#[test]
fn jobs_of_a_partition_take_turns_on_what_is_left() {
    // As in a real 22.05: from 9 s to 109 s two of four CPUs are left, and a turn begins at 30, 60 and 90 s.
    let low = SlurmJob::new(0, (0, 80, 300, [2, 0]));
    let jobs = vec![low.clone(), low, SlurmJob::new(1, (8, 100, 300, [2, 0]))];
    let (starts, ends, suspended) = times(&world(jobs));
    assert_eq!(starts, [Some(3), Some(3), Some(9)]);
    // The first runs until 60 s and from 90 s on; the second until 9 s, from 60 to 90 s, and from 109 s on.
    assert_eq!(ends, [Some(113), Some(153), Some(109)]);
    assert_eq!(suspended, 3);
}

#[test]
fn jobs_of_two_partitions_of_one_tier_run_beside_each_other() {
    let jobs = vec![SlurmJob::new(0, (0, 200, 300, [4, 1])), SlurmJob::new(1, (97, 50, 60, [4, 1]))];
    let of = |mode: Option<PreemptMode>| {
        let preempted = Preempted { mode, ..Preempted::default() };
        let partitions = vec![Partition { preempted, ..Partition::default() }, Partition::default()];
        times(&SlurmWorld { partitions, ..world(jobs.clone()) })
    };
    assert_eq!(of(None), (vec![Some(3), Some(98)], vec![Some(203), Some(148)], 0));
    assert_eq!(of(Some(PreemptMode::Off)).0, [Some(3), Some(204)]);
}

#[test]
fn with_preemption_by_qos_tiers_decide_who_is_suspended() {
    let of_qos = |qos: usize, partition: usize, submit: u64, run: u64| SlurmJob {
        qos: Some(qos),
        ..SlurmJob::new(partition, (submit, run, 300, [4, 0]))
    };
    let of = |jobs: Vec<SlurmJob>| {
        let before = world(jobs);
        let options = SlurmOptions { preempt_type: Some(PreemptType::Qos), ..before.options };
        times(&SlurmWorld { options, ..before })
    };
    // A job of the higher tier, whose QOS preempts none.
    let found = of(vec![of_qos(0, 0, 0, 200), of_qos(0, 1, 97, 50)]);
    assert_eq!(found, (vec![Some(3), Some(98)], vec![Some(253), Some(148)], 1));
    // One of the lower tier, whose QOS preempts that of the other: it waits on its processors.
    let found = of(vec![of_qos(0, 1, 0, 200), of_qos(1, 0, 97, 50)]);
    assert_eq!(found, (vec![Some(3), Some(98)], vec![Some(203), Some(253)], 1));
    // Within a partition nobody is suspended.
    let found = of(vec![of_qos(0, 0, 0, 200), of_qos(1, 0, 97, 50)]);
    assert_eq!(found, (vec![Some(3), Some(204)], vec![Some(203), Some(254)], 0));
}

#[test]
fn with_preemption_by_qos_jobs_come_before_those_that_they_may_preempt() {
    let of_qos =
        |qos: Option<usize>, partition: usize| SlurmJob { qos, ..SlurmJob::new(partition, (1, 60, 60, [4, 0])) };
    // All wait for the first job, which nobody may preempt. The second partition has the higher tier.
    let first = SlurmJob::new(0, (0, 100, 120, [4, 0]));
    let jobs = vec![first, of_qos(Some(0), 1), of_qos(Some(1), 0)];
    let of_type = |preempt_type| {
        let options = SlurmOptions {
            preempt_type,
            preempt_mode: PreemptMode::Cancel,
            // So that it takes the whole time until the first has ended.
            backfill: false,
            kill_wait: Span::ZERO,
            ..SlurmOptions::default()
        };
        times(&SlurmWorld { options, ..world(jobs.clone()) }).0
    };
    let [by_tier, by_qos] = [None, Some(PreemptType::Qos)].map(of_type);
    assert!(by_tier[1] < by_tier[2], "{by_tier:?}");
    assert!(by_qos[2] < by_qos[1], "{by_qos:?}");
}

#[test]
fn a_job_without_licences_is_passed_over_and_backfill_plans_with_bf_licenses() {
    // One licence, which the first job has for 100 s of its limit of 600. The second waits for it, and the third, which needs
    // none, would keep the second from its CPUs at the limit's end.
    let with = |licence: u64, job: SlurmJob| SlurmJob { licences: [licence, 0], ..job };
    let jobs = vec![
        with(1, SlurmJob::new(0, (0, 500, 600, [1, 0]))),
        with(1, SlurmJob::new(0, (5, 60, 60, [4, 0]))),
        with(0, SlurmJob::new(0, (6, 1200, 1200, [1, 0]))),
    ];
    let of = |bf_licenses: bool| {
        let options = SlurmOptions { bf_licenses, ..SlurmOptions::default() };
        times(&SlurmWorld { licences: [1, 0], options, ..world(jobs.clone()) }).0
    };
    let (without, with) = (of(false), of(true));
    assert!(without[2] < Some(70) && without[1] > Some(1200), "{without:?}");
    assert!(with[1] < Some(600) && with[2] > with[1], "{with:?}");
}
