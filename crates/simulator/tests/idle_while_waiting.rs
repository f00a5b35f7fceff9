//! Resource waste against looking at every machine at every instant, in exact fractions.

#![allow(clippy::unwrap_used)]

use evenhand_model::{
    Capacity, Cluster, MachineGroup, NO_TIME, Rational, Resource, ResourceQuantity, Span, Task, Time, Weights,
    Workload, WorkloadBuilder,
};
use evenhand_policies::{PolicyContext, Registry};
use evenhand_simulator::{
    BACKFILLS, Backfill, IdleWhileWaiting, JobOptions, Jobs, Layout, PLACEMENTS, PoolOptions, Progress, Simulated,
    Site, UserTasks, simulate, simulate_jobs,
};
use proptest::prelude::*;

const RESOURCES: [&str; 3] = ["cpu", "mem", "gpu"];
const S: u64 = 1_000_000_000;

/// How many machines, what each has, and how fast they are.
type Kind = (usize, [u64; 3], (u8, u8));

/// Submission and run time in seconds, then amounts.
type Job = (u64, u64, [u64; 3]);

fn workload(jobs: &[Job]) -> Workload {
    let mut builder = WorkloadBuilder::new(RESOURCES.map(|r| Resource::new(r, "")));
    for (submit, run, amounts) in jobs {
        builder.push(&Task {
            submit: Time::from_secs(*submit),
            duration: Span::from_secs(*run),
            user: "a",
            amounts: &amounts.map(|a| u128::from(a) * u128::from(S)),
            ..Task::default()
        });
    }
    builder.finish().unwrap()
}

fn in_pool(w: &Workload, has: [u64; 3], blocking: bool, until: Option<u64>) -> (Site, Simulated) {
    let capacity = Capacity::new(w.resources(), has.map(Rational::from).to_vec()).unwrap();
    let weights = Weights::equal(1);
    let mut policy = Registry::built_in().build("fifo", &PolicyContext::new(&capacity, &weights)).unwrap();
    let options = PoolOptions { blocking, until: until.map(Time::from_secs) };
    let run = simulate(w, &UserTasks::new(w), &capacity, policy.as_mut(), options, &Progress::default()).unwrap();
    (Site::pool(&capacity), run)
}

/// By definition: at every instant, on every machine, from all that was ever put there.
fn reference(w: &Workload, machines: &[[u64; 3]], jobs: Option<&Jobs>, run: &Simulated) -> IdleWhileWaiting {
    let columns = w.columns();
    let rows = || (0..w.len()).filter(|&row| columns.submit[row] <= run.end);
    let started = |row: usize| (run.starts[row] != NO_TIME).then_some(run.starts[row]);
    let finish = |row: usize| run.starts[row] + run.run_time(row, columns.duration[row]).nanos();
    let mut instants: Vec<u64> = rows().map(|row| columns.submit[row].nanos()).chain([run.end.nanos()]).collect();
    instants.extend(rows().filter_map(started));
    instants.extend(rows().filter(|&row| started(row).is_some()).map(finish));
    instants.retain(|t| *t <= run.end.nanos());
    instants.sort_unstable();
    instants.dedup();
    // Row, machine and what it holds there.
    let placed: Vec<(usize, usize, Vec<u64>)> = match &run.machines {
        None => rows().map(|row| (row, 0, w.amounts(row).iter().map(|a| a.0).collect())).collect(),
        Some(on) => {
            let amount = |row: usize, r: usize| w.amounts(row)[r].0.div_ceil(u64::from(jobs.unwrap().chunks(row)));
            let held = |row: usize, chunks: u32| (0..3).map(|r| amount(row, r) * u64::from(chunks)).collect();
            on.placed.iter().map(|p| (p.row as usize, p.machine as usize, held(p.row as usize, p.chunks))).collect()
        }
    };
    let nothing = || vec![Rational::ZERO; 3];
    let mut waste =
        IdleWhileWaiting { queued: Span::ZERO, idle: nothing(), stranded: vec![nothing(), nothing(), nothing()] };
    for pair in instants.windows(2) {
        let (t, length) = (pair[0], pair[1] - pair[0]);
        let waits = |row: usize| {
            columns.submit[row].nanos() <= t && !run.is_rejected(row) && started(row).is_none_or(|start| start > t)
        };
        if !rows().any(waits) {
            continue;
        }
        waste.queued = Span::from_nanos(waste.queued.nanos() + length);
        for (machine, has) in machines.iter().enumerate() {
            let mut free = has.map(Rational::from);
            for (row, on, held) in &placed {
                if *on == machine && started(*row).is_some_and(|start| start <= t) && finish(*row) > t {
                    free.iter_mut().zip(held).for_each(|(f, h)| *f -= Rational::from(*h));
                }
            }
            for a in 0..3 {
                assert!(free[a] >= Rational::ZERO, "over-committed");
                waste.idle[a] += &free[a] * Rational::from(length);
                for b in (0..3).filter(|&b| b != a && has[b] > 0) {
                    let goes_along = &free[b] * Rational::from(has[a]) / Rational::from(has[b]);
                    if free[a] > goes_along {
                        waste.stranded[a][b] += (&free[a] - goes_along) * Rational::from(length);
                    }
                }
            }
        }
    }
    waste
}

#[test]
fn by_hand() {
    // 4 CPUs and 8 of memory. From 0 to 10 s one job holds 1 CPU and 6 of memory while the other, of 2
    // CPUs and 4 of memory, waits: 3 CPUs are free and 2 of memory, which go with 1 CPU. 2 CPUs lie idle
    // for want of memory. From 10 s on nothing waits.
    let w = workload(&[(0, 10, [1, 6, 0]), (0, 5, [2, 4, 0])]);
    let (site, run) = in_pool(&w, [4, 8, 1], true, None);
    assert_eq!(run.starts, [0, 10 * S]);
    let found = IdleWhileWaiting::measure(&w, &site, None, &run);
    let times = |n: u64| Rational::from(n * S);
    assert_eq!(found.queued, Span::from_secs(10));
    assert_eq!(found.idle, [times(30), times(20), times(10)]);
    assert_eq!(found.stranded[0], [times(0), times(20), times(0)]);
    // The one GPU is free, as are three quarters of the CPUs and a quarter of the memory.
    let part = |n: u64, of: u64| Rational::from_parts((n * S).into(), of.into());
    assert_eq!(found.stranded[2], [part(10, 4), part(30, 4), times(0)]);
    assert_eq!(found.stranded[1], [times(0), times(0), times(0)]);
}

/// So many that a machine's time is cut into stretches.
#[test]
fn many_tasks_in_a_pool() {
    let mut random = 1u64;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let jobs: Vec<Job> =
        (0..1500).map(|_| (next(900) + next(900), next(9), [next(5), next(4), next(12) / 11])).collect();
    let w = workload(&in_order(jobs));
    let (site, run) = in_pool(&w, [8, 6, 1], false, None);
    let found = IdleWhileWaiting::measure(&w, &site, None, &run);
    assert!(found.queued > Span::from_secs(100) && found.stranded[1][0] > Rational::ZERO);
    assert_eq!(found, reference(&w, &[[8, 6, 1]], None, &run));
}

fn job() -> impl Strategy<Value = Job> {
    (0u64..14, 0u64..7, [0u64..7, 0u64..5, 0u64..2])
}

fn in_order(mut jobs: Vec<Job>) -> Vec<Job> {
    jobs.sort_by_key(|j| j.0);
    jobs
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn in_a_pool(
        jobs in prop::collection::vec(job(), 1..30).prop_map(in_order),
        has in [2u64..8, 1u64..6, 1u64..3],
        blocking in any::<bool>(),
        until in prop::option::of(0u64..30),
    ) {
        let w = workload(&jobs);
        let (site, run) = in_pool(&w, has, blocking, until.map(|u| u.max(jobs[0].0)));
        prop_assert_eq!(IdleWhileWaiting::measure(&w, &site, None, &run), reference(&w, &[has], None, &run));
    }

    #[test]
    fn on_machines(
        jobs in prop::collection::vec(job(), 1..30).prop_map(in_order),
        groups in prop::collection::vec((1usize..4, [0u64..6, 0u64..6, 0u64..3], prop::sample::select(vec![(1u8, 1u8), (2, 1), (2, 3)])), 1..4),
        placement in prop::sample::select(PLACEMENTS.map(|p| p.1).to_vec()),
        backfill in prop::sample::select(BACKFILLS.map(|b| b.1).to_vec()),
        until in prop::option::of(0u64..30),
    ) {
        let w = workload(&jobs);
        let group = |(i, (count, has, speed)): (usize, &Kind)| MachineGroup { hosts: Vec::new(),
            name: i.to_string(),
            count: *count as u32,
            capacity: has.map(|n| ResourceQuantity::parse(&n.to_string()).unwrap()).to_vec(),
            speed: Rational::from_parts(speed.0.into(), speed.1.into()), weight: 1,
            properties: vec![],
        };
        let mut groups = groups;
        // A resource that no machine has is refused.
        groups[0].1 = groups[0].1.map(|has| has.max(1));
        let resources = RESOURCES.map(String::from).to_vec();
        let cluster = Cluster { resources, groups: groups.iter().enumerate().map(group).collect(), queues: vec![], ..Cluster::default() };
        let site = Site::machines(&cluster, w.resources()).unwrap();
        let kinds = Jobs::new(&w, &site, Layout::Auto);
        let weights = Weights::equal(1);
        let mut policy = Registry::built_in().build("fifo", &PolicyContext::new(site.total(), &weights)).unwrap();
        let until = until.map(|u| Time::from_secs(u.max(jobs[0].0)));
        let options =
            JobOptions { placement, backfill, blocking: backfill == Backfill::None, until, ..JobOptions::default() };
        let tasks = UserTasks::new(&w);
        let run = simulate_jobs(&w, &tasks, &site, &kinds, policy.as_mut(), options, &Progress::default()).unwrap();
        let machines: Vec<[u64; 3]> = groups.iter().flat_map(|g| vec![g.1; g.0]).collect();
        prop_assert_eq!(IdleWhileWaiting::measure(&w, &site, Some(&kinds), &run), reference(&w, &machines, Some(&kinds), &run));
        // Every started job is in its places, whole.
        let mut chunks = vec![0u32; w.len()];
        run.machines.as_ref().unwrap().placed.iter().for_each(|p| chunks[p.row as usize] += p.chunks);
        for (row, found) in chunks.into_iter().enumerate() {
            let expected = if run.starts[row] == NO_TIME { 0 } else { kinds.chunks(row) };
            prop_assert_eq!(found, expected);
        }
    }
}
