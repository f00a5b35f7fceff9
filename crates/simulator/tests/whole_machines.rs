//! Whole machines of several kinds, and what is free of a kind while jobs wait.

#![allow(clippy::unwrap_used)]

use evenhand_model::{
    Cluster, Detail, Details, MachineGroup, NO_TIME, Rational, Resource, ResourceQuantity, Span, Task, Time, Weights,
    Workload, WorkloadBuilder,
};
use evenhand_policies::{PolicyContext, Registry};
use evenhand_simulator::{
    Backfill, FreeWhileWaiting, IdleWhileWaiting, JobOptions, Jobs, Layout, LayoutRule, Progress, Rejection, Simulated,
    Site, UserTasks, simulate_jobs,
};
use proptest::prelude::*;

const S: u64 = 1_000_000_000;

/// Submission, run time, and CPUs and memory.
type Job = (u64, u64, [u64; 2]);

/// How many machines, and what each has.
type Kind = (u32, [u64; 2]);

fn workload(jobs: &[Job], nodes: Option<u32>) -> Workload {
    let mut builder = WorkloadBuilder::new([Resource::new("cpu", ""), Resource::new("mem", "")]);
    for (submit, run, amounts) in jobs {
        builder.push(&Task {
            submit: Time::from_secs(*submit),
            duration: Span::from_secs(*run),
            user: "a",
            amounts: &amounts.map(|a| u128::from(a * S)),
            nodes,
            ..Task::default()
        });
    }
    builder.finish().unwrap()
}

fn cluster(kinds: &[Kind]) -> Cluster {
    let group = |(i, (count, has)): (usize, &Kind)| MachineGroup {
        weight: 1,
        hosts: Vec::new(),
        name: format!("kind{i}"),
        count: *count,
        capacity: has.map(|n| ResourceQuantity::parse(&n.to_string()).unwrap()).to_vec(),
        speed: Rational::ONE,
        properties: Vec::new(),
    };
    let groups = kinds.iter().enumerate().map(group).collect();
    Cluster { resources: vec!["cpu".into(), "mem".into()], groups, ..Cluster::default() }
}

fn site(kinds: &[Kind], layout: Layout, w: &Workload) -> Site {
    match layout {
        Layout::Whole => Site::whole_machines(&cluster(kinds), w.resources()).unwrap(),
        _ => Site::machines(&cluster(kinds), w.resources()).unwrap(),
    }
}

fn run(w: &Workload, site: &Site, jobs: &Jobs, backfill: Backfill) -> Simulated {
    let weights = Weights::equal(w.users().len());
    let mut policy = Registry::built_in().build("fifo", &PolicyContext::new(site.total(), &weights)).unwrap();
    let options = JobOptions { backfill, ..JobOptions::default() };
    simulate_jobs(w, &UserTasks::new(w), site, jobs, policy.as_mut(), options, &Progress::default()).unwrap()
}

/// Where each job of a workload lies: the machines, ascending.
fn machines(w: &Workload, run: &Simulated) -> Vec<Vec<u32>> {
    let mut machines = vec![Vec::new(); w.len()];
    for part in &run.machines.as_ref().unwrap().placed {
        machines[part.row as usize].extend((0..part.chunks).map(|_| part.machine));
    }
    machines.iter_mut().for_each(|on| on.sort_unstable());
    machines
}

#[test]
fn whole_machines_may_be_of_several_kinds() {
    // Twenty-five machines of 4 CPUs, of two sizes of memory: a job of 100 CPUs has them all.
    let kinds = [(12, [4, 8]), (13, [4, 16])];
    let w = workload(&[(0, 10, [8, 0]), (0, 10, [92, 0]), (1, 10, [100, 0]), (2, 1, [101, 0])], None);
    let site = site(&kinds, Layout::Whole, &w);
    let jobs = Jobs::new(&w, &site, Layout::Whole);
    assert!((0..4).all(|row| row == 3 || jobs.rule(row) == LayoutRule::Whole));
    assert_eq!([0, 1, 2].map(|row| jobs.chunks(row)), [2, 23, 25]);
    let found = run(&w, &site, &jobs, Backfill::None);
    assert_eq!(found.starts, [0, 0, 10 * S, NO_TIME]);
    assert_eq!(machines(&w, &found)[1], (2..25).collect::<Vec<u32>>());
    assert_eq!(found.rejections[3], Some(Rejection::Resource(0)), "101 CPUs are more than there are");
    let busy = found.machines.as_ref().unwrap().group_utilization(&site, Span::from_secs(20));
    assert_eq!(busy, [vec![Some(1.0), Some(1.0)], vec![Some(1.0), Some(1.0)]]);
}

#[test]
fn a_job_takes_the_least_part_of_the_machines_that_it_may_use() {
    // 16 CPUs are one of 2 large machines or 4 of 20 small ones; 4 CPUs are one machine of all; 17 are two large ones (all of
    // them), or five of all.
    let kinds = [(20, [4, 9]), (2, [16, 9])];
    let w = workload(&[(0, 1, [16, 0]), (0, 1, [4, 0]), (0, 1, [17, 0]), (0, 1, [112, 0])], None);
    let jobs = Jobs::new(&w, &site(&kinds, Layout::Whole, &w), Layout::Whole);
    // Any 22 of 22 machines: of the smaller ones 20 have 80 CPUs, and two larger ones the rest.
    assert_eq!([0, 1, 2, 3].map(|row| jobs.chunks(row)), [4, 1, 5, 22]);
}

#[test]
fn a_machine_that_a_job_has_as_a_whole_is_no_other_s() {
    let w = workload(&[(0, 10, [1, 1]), (0, 10, [1, 1]), (0, 10, [1, 1])], None);
    let site = site(&[(1, [4, 8]), (1, [16, 8])], Layout::Whole, &w);
    let jobs = Jobs::new(&w, &site, Layout::Whole);
    let found = run(&w, &site, &jobs, Backfill::Easy);
    assert_eq!(found.starts, [0, 0, 10 * S]);
    // While the third waits, all is held.
    let waste = IdleWhileWaiting::measure(&w, &site, Some(&jobs), &found);
    assert_eq!(waste.idle, [Rational::ZERO, Rational::ZERO]);
    let free = FreeWhileWaiting::measure(&w, &site, &jobs, &found);
    assert!(free.iter().all(|kind| kind.free == [Some(0.0), Some(0.0)] && kind.may_use == 1.0), "{free:?}");
}

#[test]
fn processors_that_do_not_divide_by_the_nodes_are_split_as_evenly_as_they_can_be() {
    // 17 CPUs on 2 nodes are 9 and 8, with equal parts of the memory.
    let w = workload(&[(0, 5, [17, 34])], Some(2));
    let site_of = |kinds: &[Kind]| site(kinds, Layout::Auto, &w);
    let site = site_of(&[(1, [9, 17]), (1, [8, 17])]);
    let jobs = Jobs::new(&w, &site, Layout::Auto);
    assert_eq!((jobs.rule(0), jobs.chunks(0)), (LayoutRule::Source, 2));
    let found = run(&w, &site, &jobs, Backfill::Easy);
    assert_eq!(machines(&w, &found), [[0, 1]]);
    let busy = found.machines.as_ref().unwrap().group_utilization(&site, Span::from_secs(5));
    assert_eq!(busy, [vec![Some(1.0), Some(1.0)], vec![Some(1.0), Some(1.0)]]);
    // 16 on 3 are 6, 5 and 5.
    let w = workload(&[(0, 5, [16, 0])], Some(3));
    for (kinds, rule) in
        [([(1, [6, 9]), (2, [5, 9])], LayoutRule::Source), ([(3, [5, 9]), (1, [1, 9])], LayoutRule::Otherwise)]
    {
        assert_eq!(Jobs::new(&w, &site_of(&kinds), Layout::Auto).rule(0), rule);
    }
}

#[test]
fn jobs_that_no_machines_hold_as_their_source_says_are_counted() {
    // One node of 40 CPUs where machines have 16; then two nodes of 20; then three nodes of 16 on two machines.
    let of = |cpus: u64, nodes: u32| {
        let w = workload(&[(0, 5, [cpus, 0])], Some(nodes));
        let jobs = Jobs::new(&w, &site(&[(3, [16, 9])], Layout::Auto, &w), Layout::Auto);
        (jobs.rule(0), jobs.chunks(0), jobs.larger_than_nodes, jobs.more_than_nodes)
    };
    assert_eq!(of(40, 1), (LayoutRule::Otherwise, 40, 1, 0));
    assert_eq!(of(40, 2), (LayoutRule::Otherwise, 40, 1, 0));
    assert_eq!(of(40, 4), (LayoutRule::Otherwise, 40, 0, 1));
    assert_eq!(of(40, 3), (LayoutRule::Source, 3, 0, 0));
}

/// By definition: at every instant, for every job that waits.
fn reference(w: &Workload, kinds: &[Kind], jobs: &Jobs, run: &Simulated) -> Vec<FreeWhileWaiting> {
    let submit = |row: usize| w.columns().submit[row].nanos() / S;
    let start = |row: usize| (run.starts[row] != NO_TIME).then(|| run.starts[row] / S);
    let placed = &run.machines.as_ref().unwrap().placed;
    let group_of = |machine: u32| (kinds[0].0 <= machine) as usize;
    let mut waited = 0.0;
    let mut free = vec![[0.0; 2]; kinds.len()];
    let mut may_use = vec![0.0; kinds.len()];
    for t in 0..run.end.nanos() / S {
        for row in (0..w.len()).filter(|row| !run.is_rejected(*row)) {
            if submit(row) > t || start(row).is_some_and(|start| start <= t) {
                continue;
            }
            waited += 1.0;
            for (g, (count, has)) in kinds.iter().enumerate() {
                for r in 0..2 {
                    let runs = |row: usize| {
                        let end = |start: u64| start + w.columns().duration[row].nanos() / S;
                        start(row).is_some_and(|start| start <= t && end(start) > t)
                    };
                    let held: u64 = placed
                        .iter()
                        .filter(|part| group_of(part.machine) == g && runs(part.row as usize))
                        .map(|part| {
                            let amount = w.amounts(part.row as usize)[r].0 / u64::from(jobs.chunks(part.row as usize));
                            amount * u64::from(part.chunks)
                        })
                        .sum();
                    let there = has[r] * u64::from(*count) * w.resources()[r].steps();
                    free[g][r] += 1.0 - held as f64 / there as f64;
                }
                let amounts = w.amounts(row);
                let part = |r: usize| amounts[r].0 / u64::from(jobs.chunks(row)) / w.resources()[r].steps();
                may_use[g] += f64::from(part(0) <= has[0] && part(1) <= has[1]);
            }
        }
    }
    if waited == 0.0 {
        return Vec::new();
    }
    let of = |(free, may_use): ([f64; 2], f64)| FreeWhileWaiting {
        free: free.iter().map(|free| Some(free / waited)).collect(),
        may_use: may_use / waited,
    };
    free.into_iter().zip(may_use).map(of).collect()
}

proptest! {
    #[test]
    fn what_is_free_while_jobs_wait_is_that_of_each_second_of_each_wait(
        jobs in prop::collection::vec((0u64..14, 0u64..7, [1u64..7, 0u64..5]), 1..16),
        first in (1u32..4, [1u64..5, 1u64..5]),
        second in (1u32..3, [1u64..8, 1u64..8]),
        backfill in prop::sample::select(vec![Backfill::None, Backfill::Easy]),
    ) {
        let mut jobs = jobs;
        jobs.sort_by_key(|job| job.0);
        let kinds = [first, second];
        let w = workload(&jobs, None);
        // One chunk each, so that parts are whole numbers.
        let site = site(&kinds, Layout::Single, &w);
        let jobs = Jobs::new(&w, &site, Layout::Single);
        let found = run(&w, &site, &jobs, backfill);
        let (found, expected) = (FreeWhileWaiting::measure(&w, &site, &jobs, &found), reference(&w, &kinds, &jobs, &found));
        prop_assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            prop_assert!((found.may_use - expected.may_use).abs() < 1e-9, "{:?} {:?}", found, expected);
            for (found, expected) in found.free.iter().zip(&expected.free) {
                prop_assert!((found.unwrap() - expected.unwrap()).abs() < 1e-9, "{:?} {:?}", found, expected);
            }
        }
    }
}

/// The starts under `drf` of jobs of two users, whose number is given with each, on machines that each has as a whole.
fn starts_under_drf(jobs: &[(usize, Job)], kinds: &[Kind], requires: Option<&str>) -> Vec<u64> {
    let mut builder = WorkloadBuilder::new([Resource::new("cpu", ""), Resource::new("mem", "")]);
    for (user, (submit, run, amounts)) in jobs {
        builder.push(&Task {
            submit: Time::from_secs(*submit),
            duration: Span::from_secs(*run),
            user: ["a", "b"][*user],
            amounts: &amounts.map(|a| u128::from(a * S)),
            details: Details::from_fn(|detail| requires.filter(|_| detail == Detail::Requires)),
            ..Task::default()
        });
    }
    let w = builder.finish().unwrap();
    let layout = if requires.is_some() { Layout::Auto } else { Layout::Whole };
    let site = site(kinds, layout, &w);
    let prepared = Jobs::new(&w, &site, layout);
    let weights = Weights::equal(w.users().len());
    let mut policy = Registry::built_in().build("drf", &PolicyContext::new(site.total(), &weights)).unwrap();
    let options = JobOptions { backfill: Backfill::None, ..JobOptions::default() };
    let tasks = UserTasks::new(&w);
    simulate_jobs(&w, &tasks, &site, &prepared, policy.as_mut(), options, &Progress::default()).unwrap().starts
}

#[test]
fn policies_count_whole_machines_as_held() {
    // Each user has a machine: the next one goes to the job that stands first in the log, though its user asked for more.
    let jobs = [
        (0, (0, 1000, [1, 0])),
        (1, (0, 1000, [2, 0])),
        (0, (0, 10, [4, 0])),
        (1, (1, 10, [4, 0])),
        (0, (2, 10, [4, 0])),
    ];
    for requires in [None, Some("#excl")] {
        let starts = starts_under_drf(&jobs, &[(3, [4, 8])], requires);
        assert_eq!(starts, [0, 0, 0, 10 * S, 20 * S], "{requires:?}");
    }
}
