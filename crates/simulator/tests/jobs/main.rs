//! Jobs on machines against an obvious program, and what must hold of every schedule.
#![allow(clippy::unwrap_used, missing_docs)]

mod documented_example;
mod largest_first;
mod limits_of_zero;
mod planned;
mod reactions;
mod reference_model;
mod slurm;
mod slurm_reference_model;
mod slurm_starts;
mod slurm_suspension;

use evenhand_model::{
    Capacity, Cluster, Detail, Details, Licence, MachineGroup, NO_TIME, Queue, Rational, Resource, ResourceQuantity,
    Span, Task, Time, Weights, Workload, WorkloadBuilder,
};
use evenhand_policies::{Policy, PolicyContext, Registry};
use evenhand_simulator::{
    Backfill, JobOptions, Jobs, Layout, PLACEMENTS, Placement, PlanReservations, Progress, Simulated, Site, UserTasks,
    simulate_jobs,
};
use largest_first::LargestFirst;
use proptest::prelude::*;
use reference_model::{Job, Machines, QueueLimits, ReferenceModel, World};

/// The queues of a job as logs write them.
fn queue_text(queues: &[usize]) -> String {
    queues.iter().map(|queue| format!("queue{queue}")).collect::<Vec<_>>().join(",")
}

fn workload(world: &World) -> Workload {
    log(world, &[])
}

/// The workload, with the starts of a run where there are any.
fn log(world: &World, starts: &[u64]) -> Workload {
    let mut builder = WorkloadBuilder::new([Resource::new("cpu", ""), Resource::new("mem", "")]);
    let mut texts;
    for (i, job) in world.jobs.iter().enumerate() {
        builder.push(&Task {
            submit: Time::from_nanos(job.submit),
            start: starts.get(i).filter(|start| **start != NO_TIME).map(|start| Time::from_nanos(*start)),
            duration: Span::from_nanos(job.run),
            requested: job.asked.map(Span::from_nanos),
            user: &format!("user{}", job.user),
            queue: Some(&queue_text(&job.queues)),
            amounts: &job.amounts.map(|a| u128::from(a) * 1_000_000_000),
            nodes: job.nodes,
            details: {
                let chunk = |(count, [cpu, mem]): &(u32, [u64; 2])| format!("{count}:cpu={cpu}:mem={mem}");
                let [first, second] = job.licences;
                texts = (
                    job.sizes.iter().map(chunk).collect::<Vec<_>>().join("+"),
                    job.requires.join(","),
                    format!("first:{first},second:{second}"),
                    job.array.map_or_else(String::new, |(array, most)| format!("{array}%{most}")),
                );
                Details::from_fn(|detail| match detail {
                    Detail::Chunks => Some(texts.0.as_str()).filter(|text| !text.is_empty()),
                    Detail::Requires => Some(texts.1.as_str()).filter(|text| !text.is_empty()),
                    Detail::Array => Some(texts.3.as_str()).filter(|text| !text.is_empty()),
                    Detail::Licences => Some(texts.2.as_str()).filter(|_| job.licences != [0, 0]),
                    _ => None,
                })
            },
            ..Task::default()
        });
    }
    builder.finish().unwrap()
}

fn site(world: &World, w: &Workload) -> Site {
    let number = |n: u64| ResourceQuantity::parse(&n.to_string()).unwrap();
    if world.is_pool {
        let has = world.machines[0].has.map(Rational::from);
        return Site::pool(&Capacity::new(w.resources(), has.to_vec()).unwrap());
    }
    let group = |(i, g): (usize, &Machines)| MachineGroup {
        hosts: Vec::new(),
        name: i.to_string(),
        count: g.count as u32,
        capacity: g.has.map(number).to_vec(),
        speed: Rational::from_parts(g.speed.0.into(), g.speed.1.into()),
        weight: 1,
        properties: g.properties.iter().map(|p| p.to_string()).collect(),
    };
    let cpus = |limit: Option<u64>| limit.map(|l| ("cpu".to_string(), number(l))).into_iter().collect();
    let queue = |(i, q): (usize, &QueueLimits)| Queue {
        priority: q.priority,
        max_wall: q.max_wall.map(Span::from_nanos),
        max_job: cpus(q.max_job),
        max_user: cpus(q.max_user),
        properties: q.properties.iter().map(|p| p.to_string()).collect(),
        whole_machines: q.whole_machines,
        ..Queue::new(format!("queue{i}"))
    };
    let licence = |(name, count): (String, u64)| Licence { name, count };
    let cluster = Cluster {
        resources: vec!["cpu".into(), "mem".into()],
        groups: world.machines.iter().enumerate().map(group).collect(),
        queues: world.queues.iter().enumerate().map(queue).collect(),
        licences: ["first", "second"].map(String::from).into_iter().zip(world.licences).map(licence).collect(),
        ..Cluster::default()
    };
    match world.layout {
        Layout::Whole => Site::whole_machines(&cluster, w.resources()).unwrap(),
        _ => Site::machines(&cluster, w.resources()).unwrap(),
    }
}

fn policy(world: &World, context: &PolicyContext<'_>) -> Box<dyn Policy> {
    match world.policy {
        "most cpus" => Box::new(LargestFirst::new(context.weights.len(), false)),
        "most cpus by group" => Box::new(LargestFirst::new(context.weights.len(), true)),
        name => Registry::built_in().build(name, context).unwrap(),
    }
}

fn run(world: &World) -> (Workload, Simulated) {
    let w = workload(world);
    let site = site(world, &w);
    let jobs = Jobs::new(&w, &site, world.layout);
    let weights = Weights::equal(w.users().len());
    let mut policy = policy(world, &PolicyContext::new(site.total(), &weights));
    let options = JobOptions {
        placement: world.placement,
        backfill: world.backfill,
        blocking: world.blocking,
        ..JobOptions::default()
    };
    let tasks = UserTasks::new(&w);
    let found = simulate_jobs(&w, &tasks, &site, &jobs, policy.as_mut(), options, &Progress::default()).unwrap();
    (w, found)
}

/// How many of each licence a job needs.
fn licences() -> impl Strategy<Value = [u64; 2]> {
    let few = || prop_oneof![2 => Just(0), 1 => 1u64..4];
    prop_oneof![1 => Just([0, 0]), 1 => [few(), few()]]
}

/// The jobs of worlds, some of which have licences, and how many there are.
fn with_licences(jobs: impl Strategy<Value = Vec<Job>>) -> impl Strategy<Value = (Vec<Job>, [u64; 2])> {
    (jobs, any::<bool>(), [0u64..6, 1u64..6]).prop_map(|(mut jobs, are_any, there)| {
        if !are_any {
            jobs.iter_mut().for_each(|job| job.licences = [0, 0]);
        }
        (jobs, there)
    })
}

/// The array of a job, and how many of its tasks may run at once.
fn array() -> impl Strategy<Value = Option<(usize, usize)>> {
    prop_oneof![2 => Just(None), 1 => (0usize..2, 1usize..4).prop_map(Some)]
}

fn job(users: usize) -> impl Strategy<Value = Job> {
    let asked = prop_oneof![2 => Just(None), 3 => (1u64..12).prop_map(Some)];
    let amounts = [0u64..7, 0u64..5];
    let nodes = prop_oneof![2 => Just(None), 1 => (1u32..5).prop_map(Some)];
    let word = prop::sample::select(vec!["a", "b", "^a", "a|b", "unknown", "cl_0", "1", "#excl", "#scatter"]);
    let requires = prop_oneof![2 => Just(vec![]), 1 => prop::collection::vec(word, 1..3)];
    let sizes = prop_oneof![3 => Just(vec![]), 1 => prop::collection::vec((1u32..3, [1u64..4, 0u64..4]), 2..4)];
    let queues = prop_oneof![3 => (0usize..3).prop_map(|q| vec![q]), 1 => prop::collection::vec(0usize..3, 2..4)];
    (0u64..14, 0u64..7, asked, 0..users, queues, amounts, nodes, requires, (sizes, licences(), array())).prop_map(
        |(submit, run, asked, user, queues, amounts, nodes, requires, (sizes, licences, array))| {
            let total = |r: usize| sizes.iter().map(|(count, chunk)| u64::from(*count) * chunk[r]).sum();
            let amounts = if sizes.is_empty() { amounts } else { [total(0), total(1)] };
            Job { submit, run, asked, user, queues, amounts, nodes, requires, sizes, licences, array }
        },
    )
}

/// Numbers users by first appearance.
fn number_users<'a>(users: impl Iterator<Item = &'a mut usize>) {
    let mut seen = Vec::new();
    for user in users {
        *user = seen.iter().position(|u| u == user).unwrap_or_else(|| {
            seen.push(*user);
            seen.len() - 1
        });
    }
}

/// Users numbered by first appearance, jobs in the order of submission.
fn in_order(mut jobs: Vec<Job>) -> Vec<Job> {
    jobs.sort_by_key(|j| j.submit);
    number_users(jobs.iter_mut().map(|job| &mut job.user));
    jobs
}

fn machines() -> impl Strategy<Value = Machines> {
    let speed = prop::sample::select(vec![(1u64, 1u64), (1, 1), (2, 1), (2, 3)]);
    let properties = prop::sample::select(vec![vec![], vec!["a"], vec!["a", "b"]]);
    (1usize..4, [1u64..6, 1u64..6], speed, properties).prop_map(|(count, has, speed, properties)| Machines {
        count,
        has,
        speed,
        properties,
    })
}

fn rules(any: bool) -> impl Strategy<Value = QueueLimits> {
    let limit = |from: u64, to: u64| prop_oneof![3 => Just(None), 1 => (from..to).prop_map(Some)];
    let properties = prop::sample::select(vec![vec![], vec![], vec!["a"]]);
    (-1i32..2, limit(2, 12), limit(2, 6), limit(3, 8), properties, prop::bool::weighted(0.2)).prop_map(
        move |(priority, max_wall, max_job, max_user, properties, whole_machines)| {
            let max_user = max_user.filter(|_| any);
            QueueLimits { priority, max_wall, max_job, max_user, properties, whole_machines }
        },
    )
}

/// Whether jobs keep reservations, beside which there are no limits on what runs together.
fn keeps_reservations(backfill: Backfill) -> bool {
    match backfill {
        Backfill::Planned(settings) => settings.plan != PlanReservations::Anew,
        backfill => backfill == Backfill::Conservative,
    }
}

fn world(backfill: Backfill) -> impl Strategy<Value = World> {
    let jobs = with_licences(prop::collection::vec(job(3), 1..22).prop_map(in_order));
    let park = prop_oneof![
        1 => [2u64..6, 2u64..6].prop_map(|has| {
            (true, vec![Machines { count: 1, has, speed: (1, 1), properties: vec![] }], vec![])
        }),
        3 => (prop::collection::vec(machines(), 1..4), prop::collection::vec(rules(!keeps_reservations(backfill)), 0..3))
            .prop_map(|(machines, queues)| (false, machines, queues)),
    ];
    let policy = prop::sample::select(vec!["fifo", "drf", "most cpus", "most cpus by group"]);
    let placement = prop::sample::select(PLACEMENTS.map(|p| p.1).to_vec());
    let layout = prop::sample::select(vec![
        Layout::Auto,
        Layout::Auto,
        Layout::Single,
        Layout::Packed,
        Layout::Whole,
        "chunk=2".parse().unwrap(),
        "chunk=3".parse().unwrap(),
        "chunk=4".parse().unwrap(),
    ]);
    (jobs, park, policy, placement, any::<bool>(), layout).prop_map(
        move |((jobs, licences), (is_pool, machines, queues), policy, placement, blocking, layout)| World {
            machines,
            queues,
            jobs,
            licences,
            is_pool,
            policy,
            placement,
            backfill,
            blocking,
            layout,
        },
    )
}

/// More jobs on more machines, of few sizes and estimates, so that ties are the rule and heads wait long.
fn crowded(backfill: Backfill) -> impl Strategy<Value = World> {
    let asked = prop::sample::select(vec![None, Some(4), Some(8), Some(30)]);
    let amounts = (prop::sample::select(vec![1u64, 2, 2, 4, 8, 12]), prop::sample::select(vec![0u64, 1, 2, 4]));
    let nodes = prop::sample::select(vec![None, None, Some(2), Some(3), Some(6)]);
    let runs = prop::sample::select(vec![0u64, 1, 4, 8, 20]);
    let job = (0u64..60, runs, asked, 0usize..5, amounts, nodes, licences(), array()).prop_map(
        |(submit, run, asked, user, (cpu, mem), nodes, licences, array)| Job {
            submit,
            run,
            asked,
            user,
            queues: vec![0],
            amounts: [cpu, mem],
            nodes,
            requires: vec![],
            sizes: vec![],
            licences,
            array,
        },
    );
    let machines = (1usize..10, prop::sample::select(vec![[2u64, 4], [4, 2], [4, 8]]), any::<bool>()).prop_map(
        |(count, has, fast)| Machines { count, has, speed: if fast { (2, 1) } else { (1, 1) }, properties: vec![] },
    );
    let jobs = with_licences(prop::collection::vec(job, 30..90).prop_map(in_order));
    let policy = prop::sample::select(vec!["fifo", "drf", "most cpus", "most cpus by group"]);
    let placement = prop::sample::select(PLACEMENTS.map(|p| p.1).to_vec());
    let chunks = ["chunk=3", "chunk=5"].map(|layout| layout.parse().unwrap());
    let layout = prop::sample::select(vec![Layout::Auto, Layout::Auto, Layout::Whole, chunks[0], chunks[1]]);
    (jobs, prop::collection::vec(machines, 1..3), policy, placement, layout).prop_map(
        move |((jobs, licences), machines, policy, placement, layout)| World {
            machines,
            queues: vec![],
            jobs,
            licences,
            is_pool: false,
            policy,
            placement,
            backfill,
            blocking: true,
            layout,
        },
    )
}

fn optional(times: &[u64]) -> Vec<Option<u64>> {
    times.iter().map(|&t| (t != NO_TIME).then_some(t)).collect()
}

fn agrees_with_the_reference_model(world: &World) -> Result<(), TestCaseError> {
    let (_, found) = run(world);
    let on = found.machines.as_ref().unwrap();
    let reference = ReferenceModel::new(world).run();
    prop_assert_eq!(&found.rejections, &reference.refused);
    prop_assert_eq!(optional(&found.starts), reference.starts);
    prop_assert_eq!(optional(&on.finishes), reference.finishes);
    if world.backfill != Backfill::None {
        prop_assert_eq!(optional(&on.first_reservation), reference.promised);
    }
    let mut machines = vec![Vec::new(); world.jobs.len()];
    for a in &on.placed {
        machines[a.row as usize].extend((0..a.chunks).map(|_| a.machine as usize));
    }
    machines.iter_mut().for_each(|m| m.sort_unstable());
    prop_assert_eq!(machines, reference.machines);
    prop_assert_eq!(run(world).1, found, "the same again");
    Ok(())
}

/// A job of five seconds that asks for nothing but these amounts.
fn plain_job(amounts: [u64; 2]) -> Job {
    Job {
        submit: 0,
        run: 5,
        asked: None,
        user: 0,
        queues: vec![0],
        amounts,
        nodes: None,
        requires: vec![],
        sizes: vec![],
        licences: [0, 0],
        array: None,
    }
}

/// Jobs on equal machines, in strict order of submission.
fn on_equal_machines(count: usize, has: [u64; 2], jobs: Vec<Job>, layout: Layout) -> World {
    World {
        machines: vec![Machines { count, has, speed: (1, 1), properties: vec![] }],
        queues: vec![],
        jobs,
        licences: [0, 0],
        is_pool: false,
        policy: "fifo",
        placement: Placement::FirstFit,
        backfill: Backfill::None,
        blocking: true,
        layout,
    }
}

/// Ten processors in chunks of four: four, four and two, so that two are left on the third machine.
#[test]
fn the_last_chunk_of_a_job_is_as_small_as_what_is_left() {
    let jobs = [10, 2, 1].map(|amount| plain_job([amount, amount])).to_vec();
    let world = on_equal_machines(3, [4, 4], jobs, "chunk=4".parse().unwrap());
    let (_, found) = run(&world);
    assert_eq!(found.starts, [0, 0, 5]);
    agrees_with_the_reference_model(&world).unwrap();
}

/// Two processors on two nodes take a machine each, where two machines are up to it; on one they share it.
#[test]
fn nodes_are_different_machines_where_there_are_enough() {
    let chunks = || Job { sizes: vec![(2, [1, 0])], ..plain_job([2, 0]) };
    let jobs =
        vec![Job { nodes: Some(2), ..plain_job([2, 0]) }, chunks(), Job { requires: vec!["#scatter"], ..chunks() }];
    for (count, expected) in [(2, [vec![0, 1], vec![0, 0], vec![0, 1]]), (1, [vec![0, 0], vec![0, 0], vec![0, 0]])] {
        let world = on_equal_machines(count, [8, 8], jobs.clone(), Layout::Auto);
        let mut machines = vec![Vec::new(); 3];
        for a in &run(&world).1.machines.as_ref().unwrap().placed {
            machines[a.row as usize].extend((0..a.chunks).map(|_| a.machine));
        }
        assert_eq!(machines, expected);
        agrees_with_the_reference_model(&world).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn strict_order_is_that_of_the_reference_model(world in world(Backfill::None)) {
        agrees_with_the_reference_model(&world)?;
    }

    #[test]
    fn easy_is_that_of_the_reference_model(world in world(Backfill::Easy)) {
        agrees_with_the_reference_model(&world)?;
    }

    #[test]
    fn conservative_is_that_of_the_reference_model(world in world(Backfill::Conservative)) {
        agrees_with_the_reference_model(&world)?;
    }

    #[test]
    fn easy_is_that_of_the_reference_model_where_ties_are_the_rule(world in crowded(Backfill::Easy)) {
        agrees_with_the_reference_model(&world)?;
    }

    /// No job starts after its first reservation, whatever is submitted later.
    #[test]
    fn no_job_starts_after_its_first_reservation(world in prop_oneof![world(Backfill::Easy), world(Backfill::Conservative)]) {
        // EASY reserves for the head only; in the order of submission a job that is the head stays the head.
        let mut world = World { policy: "fifo", queues: vec![], ..world };
        if world.backfill == Backfill::Easy {
            // Where the chunks of such a head fit is found anew at each event, and more free capacity may be worse.
            world.jobs.iter_mut().for_each(|job| job.sizes.clear());
            world.jobs.iter_mut().for_each(|job| job.nodes = job.nodes.map(|nodes| nodes.min(2)));
            // Nor does it reserve licences, or wait for the throttle of an array.
            world.jobs.iter_mut().for_each(|job| (job.licences, job.array) = ([0, 0], None));
        }
        let (_, found) = run(&world);
        let on = found.machines.as_ref().unwrap();
        for (row, (start, promised)) in found.starts.iter().zip(&on.first_reservation).enumerate() {
            prop_assert!(found.rejections[row].is_some() == (*start == NO_TIME));
            prop_assert!(*promised == NO_TIME || start <= promised, "row {row}");
        }
    }
}

proptest! {
    // The reference model takes a tenth of a second for each.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn conservative_is_that_of_the_reference_model_where_ties_are_the_rule(world in crowded(Backfill::Conservative)) {
        agrees_with_the_reference_model(&world)?;
    }
}
