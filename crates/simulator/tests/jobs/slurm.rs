//! Slurm's scheduler against the obvious program, and what its parts are for.

use std::num::NonZeroU32;

use evenhand_model::{
    Capacity, Closure, Cluster, Detail, Details, JobTasks, Licence, Limit, MachineGroup, NO_TIME, PreemptMode,
    QualityOfService, Queue, Rational, Requirements, Resource, ResourceQuantity, SiteTime, Span, Task, Time, UserId,
    Weights, Workload, WorkloadBuilder,
};
use evenhand_policies::{DrawnTies, Job, JobPriorities, Policy, PolicyContext, Registry, Standing};
use evenhand_simulator::{
    Arrivals, Backfill, JobOptions, Jobs, Layout, PreemptType, Progress, Reactions, Rejection, Simulated, Site,
    SlurmOptions, UserTasks, simulate_jobs, simulate_reactions,
};
use proptest::prelude::*;

use crate::number_users;
use crate::slurm_reference_model::{
    AccountLimit, ClosedNodes, NodeGroup, OrderBy, Partition, Preempted, SlurmJob, SlurmReferenceModel, SlurmWorld,
    account_of, choice, priority,
};

/// Priorities from age, size and what the user held and had used at the last update.
struct Priorities {
    holds: Vec<u64>,
    held: Vec<u64>,
    /// CPU-seconds up to `since`, and at the last update.
    uses: Vec<u64>,
    used: Vec<u64>,
    since: Time,
}

impl Priorities {
    fn new(users: usize) -> Priorities {
        let none = || vec![0; users];
        Priorities { holds: none(), held: none(), uses: none(), used: none(), since: Time::ZERO }
    }

    fn advance(&mut self, now: Time) {
        let seconds = now.since(self.since).nanos() / 1_000_000_000;
        self.uses.iter_mut().zip(&self.holds).for_each(|(uses, holds)| *uses += holds * seconds);
        self.since = now;
    }
}

impl Policy for Priorities {
    fn set_first_pending(&mut self, _: UserId, _: Option<&Job<'_>>) {}
    fn started(&mut self, now: Time, job: &Job<'_>) {
        self.advance(now);
        self.holds[job.user.index()] += job.demand[0].0;
    }
    fn finished(&mut self, now: Time, job: &Job<'_>) {
        self.advance(now);
        self.holds[job.user.index()] -= job.demand[0].0;
    }
    fn next(&mut self, _: Time) -> Option<UserId> {
        None
    }
    fn standing(&mut self, _: Time, _: UserId) -> Standing {
        Standing::default()
    }
    fn job_priorities(&mut self) -> Option<&mut dyn JobPriorities> {
        Some(self)
    }
}

impl JobPriorities for Priorities {
    fn update(&mut self, now: Time) {
        self.advance(now);
        self.used.clone_from(&self.uses);
        self.held.clone_from(&self.holds);
    }
    fn priority(&mut self, now: Time, job: &Job<'_>) -> u32 {
        let waited = now.since(job.place.submitted).nanos() / 1_000_000_000;
        let user = job.user.index();
        priority(waited, job.demand[0].0, self.held[user], self.used[user])
    }
}

fn workload(world: &SlurmWorld) -> Workload {
    workload_with(world, vec![None; world.jobs.len()])
}

/// The workload with the start and the end of each job in the log, where it has them.
fn workload_with(world: &SlurmWorld, times: Vec<Option<(u64, u64)>>) -> Workload {
    let mut builder = WorkloadBuilder::new([Resource::new("cpu", ""), Resource::new("mem", "")]);
    let name = |job: &SlurmJob| job.reservation.map(|r| format!("r{r}"));
    let reservations: Vec<Option<String>> = world.jobs.iter().map(name).collect();
    let licences = |job: &SlurmJob| format!("a:{};b:{}", job.licences[0], job.licences[1]);
    let licences: Vec<String> = world.jobs.iter().map(licences).collect();
    let array = |job: &SlurmJob| {
        job.array.map(|(array, most)| match most {
            Some(most) => format!("{array}%{most}"),
            None => array.to_string(),
        })
    };
    let arrays: Vec<Option<String>> = world.jobs.iter().map(array).collect();
    let requires = |job: &SlurmJob| {
        let of_task = |tasks: u64| NonZeroU32::new((job.amounts[0] / tasks) as u32);
        let tasks = job
            .tasks
            .and_then(of_task)
            .map(|processors| JobTasks { processors, on_its_nodes: job.task_nodes.is_some() }.word());
        tasks.or_else(|| job.is_exclusive.then(|| Requirements::WHOLE_MACHINES.to_string()))
    };
    let requires: Vec<Option<String>> = world.jobs.iter().map(requires).collect();
    for (i, (job, times)) in world.jobs.iter().zip(times).enumerate() {
        builder.push(&Task {
            submit: Time::from_secs(job.submit),
            start: times.map(|(start, _)| Time::from_nanos(start)),
            duration: times.map_or(Span::from_secs(job.run), |(start, end)| Span::from_nanos(end - start)),
            requested: job.asked.map(Span::from_secs),
            user: &format!("user{}", job.user),
            queue: Some(&crate::queue_text(&job.partitions)),
            account: Some(&format!("account{}", account_of(job.user))),
            amounts: &job.amounts.map(|a| u128::from(a) * 1_000_000_000),
            // A log has the number of nodes on which tasks were.
            nodes: job.nodes.or(job.task_nodes).or(job.tasks.map(|_| 2)).map(|n| n as u32),
            details: Details::from_fn(|detail| match detail {
                Detail::Reservation => reservations[i].as_deref(),
                Detail::Licences => Some(licences[i].as_str()).filter(|_| job.licences != [0, 0]),
                Detail::Array => arrays[i].as_deref(),
                Detail::Requires => requires[i].as_deref(),
                Detail::Qos => job.qos.map(|qos| ["qos0", "qos1"][qos]),
                _ => None,
            }),
            ..Task::default()
        });
    }
    builder.finish().unwrap()
}

fn site(world: &SlurmWorld, w: &Workload) -> Site {
    let number = |n: u64| ResourceQuantity::parse(&n.to_string()).unwrap();
    let first = |group: usize| world.groups[..group].iter().map(|g| g.count).sum::<usize>();
    let group = |(i, g): (usize, &NodeGroup)| MachineGroup {
        hosts: (first(i)..first(i) + g.count).map(|node| format!("node{node}")).collect(),
        name: i.to_string(),
        count: g.count as u32,
        capacity: g.has.map(number).to_vec(),
        speed: Rational::ONE,
        weight: g.weight,
        properties: g.properties.iter().map(|p| p.to_string()).collect(),
    };
    let queue = |(i, p): (usize, &Partition)| Queue {
        priority: p.tier,
        max_wall: p.max_time.map(Span::from_secs),
        max_user: p.max_user.map(|l| ("cpu".to_string(), number(l))).into_iter().collect(),
        max: p.max.map(|l| ("cpu".to_string(), number(l))).into_iter().collect(),
        max_user_jobs: p.max_user_jobs,
        max_jobs: p.max_jobs,
        properties: p.properties.iter().map(|p| p.to_string()).collect(),
        whole_machines: p.whole_machines,
        preempt_mode: p.preempted.mode,
        grace_time: Span::from_secs(p.preempted.grace),
        ..Queue::new(format!("queue{i}"))
    };
    let limit = |(i, a): (usize, &AccountLimit)| Limit {
        accounts: vec![format!("account{i}")],
        each_user: a.each_user,
        max: a.max.map(|l| ("cpu".to_string(), number(l))).into_iter().collect(),
        max_jobs: a.max_jobs,
        max_submitted: a.max_submitted,
        except_qos: a.except_qos.map(|qos| format!("qos{qos}")).into_iter().collect(),
        ..Limit::new(format!("account {i}"))
    };
    let of_qos =
        |(i, l): (usize, &AccountLimit)| Limit { accounts: Vec::new(), qos: vec![format!("qos{i}")], ..limit((i, l)) };
    let of_quality = |(i, rules): (usize, &Preempted)| QualityOfService {
        name: format!("qos{i}"),
        priority: 0,
        usage_factor: None,
        preempts: if i == 1 { vec!["qos0".into()] } else { Vec::new() },
        preempts_within: rules.within,
        preempt_mode: rules.mode,
        preempt_exempt_time: rules.exempt.map(Span::from_secs),
        grace_time: Span::from_secs(rules.grace),
    };
    let closure = |(i, c): (usize, &ClosedNodes)| Closure {
        name: format!("r{i}"),
        machines: c.nodes.iter().map(|node| format!("node{node}")).collect(),
        from: SiteTime::OfLog(c.from as i64),
        to: Some(SiteTime::OfLog(c.to as i64)),
        may_overlap: true,
    };
    let cluster = Cluster {
        resources: vec!["cpu".into(), "mem".into()],
        groups: world.groups.iter().enumerate().map(group).collect(),
        queues: world.partitions.iter().enumerate().map(queue).collect(),
        limits: world
            .accounts
            .iter()
            .enumerate()
            .map(limit)
            .chain(world.qos.iter().enumerate().map(of_qos))
            .filter(|limit| !limit.is_empty())
            .collect(),
        qos: world.preempted.iter().enumerate().map(of_quality).collect(),
        licences: vec![
            Licence { name: "a".into(), count: world.licences[0] },
            Licence { name: "b".into(), count: world.licences[1] },
        ],
        reservations: world.reservations.iter().enumerate().map(closure).collect(),
        outages: world.outages.iter().enumerate().map(closure).collect(),
    };
    Site::machines(&cluster, w.resources()).unwrap().for_slurm(&world.options)
}

pub(crate) fn run(world: &SlurmWorld) -> Simulated {
    let w = workload(world);
    let tasks = UserTasks::new(&w);
    run_on(world, &w, |site, jobs, policy, options| {
        simulate_jobs(&w, &tasks, site, jobs, policy, options, &Progress::default()).unwrap()
    })
}

fn run_on(
    world: &SlurmWorld,
    w: &Workload,
    simulate: impl FnOnce(&Site, &Jobs, &mut dyn Policy, JobOptions) -> Simulated,
) -> Simulated {
    let site = site(world, w);
    let jobs = Jobs::new(w, &site, Layout::Auto);
    let users = w.users().len();
    let weights = Weights::equal(users);
    let total: &Capacity = site.total();
    let build = |name: &str| Registry::built_in().build(name, &PolicyContext::new(total, &weights)).unwrap();
    let mut policy: Box<dyn Policy> = match world.order {
        OrderBy::Fifo => build("fifo"),
        OrderBy::Drf => build("drf"),
        // Drawn ties change nothing: Slurm orders jobs by their priorities, and those of one priority by submission.
        OrderBy::Priorities => Box::new(DrawnTies::new(Box::new(Priorities::new(users)), 1)),
    };
    let options = JobOptions { backfill: Backfill::Slurm, slurm: world.options, ..JobOptions::default() };
    simulate(&site, &jobs, policy.as_mut(), options)
}

fn jobs(partitions: usize) -> impl Strategy<Value = Vec<SlurmJob>> {
    let asked = prop_oneof![1 => Just(None), 4 => prop::sample::select(vec![60u64, 90, 120, 300, 600]).prop_map(Some)];
    let run = prop_oneof![3 => 1u64..90, 1 => 60u64..700];
    let shape = prop_oneof![
        6 => (1u64..5, 0u64..4).prop_map(|(c, m)| ([c, m], None, None, None)),
        2 => (1u64..4, 0u64..3, 2u64..5).prop_map(|(c, m, n)| ([c * n, m * n], Some(n), None, None)),
        1 => (1u64..3, 0u64..3, 2u64..7).prop_map(|(c, m, n)| ([c * n, m * n], None, Some(n), None)),
        1 => (1u64..3, 0u64..3, 2u64..9, 2u64..5)
            .prop_map(|(c, m, n, on)| ([c * n, m * n], None, Some(n), Some(on.min(n)))),
    ];
    let shape = (shape, prop::bool::weighted(0.15));
    let named =
        prop_oneof![3 => (0..partitions).prop_map(|p| vec![p]), 1 => prop::collection::vec(0..partitions, 2..4)];
    let licences = prop::sample::select(vec![[0u64, 0], [0, 0], [0, 0], [1, 0], [2, 0], [1, 1]]);
    let array = prop_oneof![2 => Just(None), 1 => (0usize..3, prop_oneof![Just(None), (1usize..4).prop_map(Some)]).prop_map(Some)];
    let qos = (prop::sample::select(vec![None, Some(0usize), Some(1)]), licences, array);
    let reservation = prop_oneof![5 => Just(None), 1 => (0usize..2).prop_map(Some)];
    let job = (0u64..400, run, asked, 0usize..4, named, shape, (reservation, qos)).prop_map(
        |(submit, run, asked, user, partitions, shape, (reservation, (qos, licences, array)))| {
            let ((amounts, nodes, tasks, task_nodes), is_exclusive) = shape;
            SlurmJob {
                is_exclusive: is_exclusive && tasks.is_none(),
                tasks,
                task_nodes,
                qos,
                licences,
                array,
                reservation,
                submit,
                run,
                asked,
                user,
                partitions,
                amounts,
                nodes,
            }
        },
    );
    prop::collection::vec(job, 1..40).prop_map(|mut jobs| {
        jobs.sort_by_key(|j| j.submit);
        number_users(jobs.iter_mut().map(|job| &mut job.user));
        jobs
    })
}

fn options() -> impl Strategy<Value = SlurmOptions> {
    let s = Span::from_secs;
    let limit = |list: Vec<u32>| prop::sample::select(list);
    let main = (
        any::<bool>(),
        prop::sample::select(vec![Some(60u64), Some(20), Some(45), None]),
        prop::sample::select(vec![0u64, 3, 10]),
        limit(vec![100, 0, 2]),
        limit(vec![0, 0, 1, 3]),
        limit(vec![0, 0, 1]),
        prop::sample::select(vec![30u64, 5, 47]),
    );
    let backfill = (
        prop::bool::weighted(0.85),
        prop::sample::select(vec![86_400u64, 600, 120]),
        prop::sample::select(vec![60u64, 1, 30]),
        limit(vec![500, 500, 3]),
        limit(vec![0, 0, 2]),
        limit(vec![0, 0, 1]),
        (limit(vec![0, 0, 1]), limit(vec![20, 20, 1, 2, 0])),
        prop::sample::select(vec![0u64, 0, 60]),
    );
    let rest = (
        limit(vec![0, 0, 104]),
        any::<[bool; 8]>(),
        prop::sample::select(vec![None, None, Some(15u64)]),
        prop::sample::select(vec![300u64, 60, 37]),
        prop::sample::select(vec![Some(0u64), Some(60), None]),
        prop::sample::select(vec![1u64, 0, 4]),
        prop::sample::select(vec![0u64, 0, 2, 9]),
    );
    (main, backfill, rest).prop_map(move |(m, b, r)| SlurmOptions {
        at_submission: m.0 || m.2 == 3,
        defer: m.0 && m.1.is_some(),
        sched_interval: m.1.map(s),
        batch_sched_delay: s(m.2),
        default_queue_depth: m.3,
        partition_job_depth: m.4,
        sched_max_job_start: m.5,
        bf_interval: s(m.6),
        backfill: b.0,
        bf_window: s(b.1),
        bf_resolution: s(b.2),
        bf_max_job_test: b.3,
        bf_max_job_user: b.4,
        bf_max_job_start: b.5,
        bf_job_part_count_reserve: b.6.0,
        bf_max_job_array_resv: b.6.1,
        bf_min_age_reserve: s(b.7),
        bf_min_prio_reserve: r.0,
        bf_busy_nodes: r.1[0],
        assoc_limit_stop: r.1[1],
        least_loaded: r.1[2],
        whole_nodes: r.1[3],
        epilog: r.1[4],
        charge_ends: r.1[5],
        bf_licenses: r.1[6],
        tests_by_interval: r.1[7],
        bf_window_linear: r.2.map(s),
        priority_calc_period: s(r.3),
        over_time_limit: r.4.map(s),
        completing: s(r.5),
        complete_wait: s(r.6),
        ..SlurmOptions::default()
    })
}

/// Who preempts whom, and how.
fn preemption() -> impl Strategy<Value = SlurmOptions> {
    let who = prop::sample::select(vec![None, Some(PreemptType::Partition), Some(PreemptType::Qos)]);
    let modes =
        [PreemptMode::Off, PreemptMode::Cancel, PreemptMode::Requeue, PreemptMode::Suspend, PreemptMode::Suspend];
    let mode = prop::sample::select(modes.to_vec());
    let count = prop::sample::select(vec![1u32, 1, 0, 3]);
    (who, mode, prop::sample::select(vec![0u64, 0, 50]), any::<[bool; 6]>(), count).prop_map(
        |(preempt_type, preempt_mode, exempt, flags, preempt_reorder_count)| SlurmOptions {
            preempt_type,
            preempt_mode,
            preempt_exempt_time: Span::from_secs(exempt),
            preempt_youngest_first: flags[0],
            preempt_strict_order: flags[1],
            preempt_gang: flags[2] || flags[3],
            scheduler_time_slice: Span::from_secs(if flags[0] == flags[4] { 30 } else { 45 }),
            preempt_within: flags[4],
            preempt_priority: flags[5] && flags[3],
            preempt_reorder_count,
            ..SlurmOptions::default()
        },
    )
}

fn preempted() -> impl Strategy<Value = Preempted> {
    let modes = [PreemptMode::Off, PreemptMode::Cancel, PreemptMode::Requeue, PreemptMode::Suspend].map(Some);
    let modes = [None, None].into_iter().chain(modes).collect::<Vec<_>>();
    let exempt = prop::sample::select(vec![None, None, Some(0u64), Some(70)]);
    (prop::sample::select(modes), prop::sample::select(vec![0u64, 0, 20]), exempt, prop::bool::weighted(0.3))
        .prop_map(|(mode, grace, exempt, within)| Preempted { mode, grace, exempt, within })
}

/// Up to two times in which some of the nodes are closed.
fn closed_nodes(nodes: usize) -> impl Strategy<Value = Vec<ClosedNodes>> {
    let closed = (prop::sample::subsequence((0..nodes).collect::<Vec<usize>>(), 1..=nodes), 0u64..700, 1u64..400);
    let closed = closed.prop_map(|(nodes, from, length)| ClosedNodes { nodes, from, to: from + length });
    prop_oneof![2 => Just(Vec::new()), 3 => prop::collection::vec(closed, 1..3)]
}

fn world() -> impl Strategy<Value = SlurmWorld> {
    let properties = || prop::sample::select(vec![vec![], vec!["a"], vec!["b"], vec!["a", "b"]]);
    let groups =
        prop::collection::vec(
            (1usize..4, [2u64..7, 3u64..7], properties(), 0u32..3)
                .prop_map(|(count, has, properties, weight)| NodeGroup { weight, count, has, properties }),
            1..4,
        );
    let limit =
        |from: u64, to: u64| prop_oneof![30 => Just(None), 10 => (from..to).prop_map(Some), 1 => Just(Some(0u64))];
    let needs = prop::sample::select(vec![vec![], vec![], vec!["a"], vec!["b"]]);
    let jobs_at_most =
        || prop_oneof![12 => prop::sample::select(vec![None, None, None, Some(1u32), Some(3)]), 1 => Just(Some(0))];
    let limits = (limit(4, 9), limit(4, 12), jobs_at_most(), jobs_at_most());
    let longest = prop_oneof![3 => Just(None), 1 => (300u64..900).prop_map(Some)];
    let partition = (-1i32..2, longest, limits, needs, (preempted(), prop::bool::weighted(0.15)));
    let partition = partition.prop_map(|(tier, max_time, limits, properties, (preempted, whole_machines))| {
        let (max_user, max, max_user_jobs, max_jobs) = limits;
        let limits = Partition { tier, max_time, max_user, max, max_user_jobs, max_jobs, ..Partition::default() };
        Partition { properties, whole_machines, preempted, ..limits }
    });
    let order = prop::sample::select(vec![OrderBy::Fifo, OrderBy::Drf, OrderBy::Priorities, OrderBy::Priorities]);
    let account = || {
        let few = || prop_oneof![12 => prop::sample::select(vec![None, None, Some(2u32)]), 1 => Just(Some(0))];
        let except = prop::sample::select(vec![None, None, Some(0usize), Some(1)]);
        let limits = (limit(4, 12), few(), few(), any::<bool>(), except);
        limits.prop_map(|(max, max_jobs, max_submitted, each_user, except_qos)| AccountLimit {
            max,
            max_jobs,
            max_submitted,
            each_user,
            except_qos,
        })
    };
    let site = (groups, prop::collection::vec(partition, 1..4), [account(), account()], [account(), account()]);
    site.prop_flat_map(move |(groups, partitions, accounts, qos)| {
        let nodes = groups.iter().map(|g| g.count).sum();
        let closed = (closed_nodes(nodes), closed_nodes(nodes));
        let licences = prop::sample::select(vec![[9u64, 9], [2, 1], [2, 2], [3, 1]]);
        let preemption = (preemption(), [preempted(), preempted()], licences);
        let rest = (jobs(partitions.len()), order.clone(), options(), closed, preemption);
        rest.prop_map(move |(mut jobs, order, options, (reservations, outages), (preemption, preempted, licences))| {
            let options = SlurmOptions {
                preempt_type: preemption.preempt_type,
                preempt_mode: preemption.preempt_mode,
                preempt_gang: preemption.preempt_gang,
                scheduler_time_slice: preemption.scheduler_time_slice,
                preempt_within: preemption.preempt_within,
                preempt_priority: preemption.preempt_priority,
                preempt_exempt_time: preemption.preempt_exempt_time,
                preempt_youngest_first: preemption.preempt_youngest_first,
                preempt_strict_order: preemption.preempt_strict_order,
                preempt_reorder_count: preemption.preempt_reorder_count,
                ..options
            };
            jobs.iter_mut().for_each(|job| job.reservation = job.reservation.filter(|r| *r < reservations.len()));
            let (groups, partitions, accounts) = (groups.clone(), partitions.clone(), accounts.clone());
            let qos = qos.clone().map(|limit| AccountLimit { except_qos: None, ..limit });
            SlurmWorld {
                groups,
                partitions,
                accounts,
                qos,
                preempted,
                reservations,
                outages,
                licences,
                jobs,
                order,
                options,
            }
        })
    })
}

/// Without jobs whose chunks the empty nodes of their partition do not hold: these would be laid out otherwise.
fn with_jobs_that_fit(mut world: SlurmWorld) -> SlurmWorld {
    for job in &mut world.jobs {
        let nodes = job.nodes.or(job.tasks).unwrap_or(1);
        let choice = choice(&world.partitions, job);
        let is_in = |g: &&NodeGroup, p: usize| world.partitions[p].properties.iter().all(|p| g.properties.contains(p));
        let chunks = |g: &NodeGroup| (0..2).map(|i| g.has[i] * nodes / job.amounts[i].max(1)).min().unwrap();
        let able = world.groups.iter().filter(|g| choice.iter().any(|&p| is_in(g, p)));
        let mut on_each: Vec<u64> = able.flat_map(|g| vec![chunks(g); g.count]).filter(|n| *n > 0).collect();
        on_each.sort_by_key(|chunks| std::cmp::Reverse(*chunks));
        let most = job.task_nodes.map_or(on_each.len(), |nodes| nodes as usize);
        if on_each.len() < most || on_each[..most].iter().sum::<u64>() < nodes {
            (job.nodes, job.tasks, job.task_nodes, job.amounts) = (None, None, None, [1, 0]);
        }
    }
    world
}

pub(crate) fn seconds(times: &[u64]) -> Vec<Option<u64>> {
    times.iter().map(|&t| (t != NO_TIME).then_some(t / 1_000_000_000)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Under the policy of their log, users who react submit when they did in the log.
    #[test]
    fn slurm_submits_as_in_its_log(world in world()) {
        // The log lacks the runs that were preempted.
        let options = SlurmOptions { preempt_type: None, ..world.options };
        let world = SlurmWorld { options, ..world };
        let clock = run(&world);
        // The log has the run times of jobs that were ended at their limits.
        let ends = &clock.machines.as_ref().unwrap().finishes;
        let times = clock.starts.iter().zip(ends).map(|(start, end)| (*start != NO_TIME).then_some((*start, *end)));
        let log = workload_with(&world, times.collect());
        for arrivals in [Arrivals::Sessions, Arrivals::Closed] {
            let reactions = Reactions::new(&log, UserTasks::new(&log), arrivals);
            let found = run_on(&world, &log, |site, jobs, policy, options| {
                simulate_reactions(&log, &reactions, site, jobs, policy, options, &Progress::default()).unwrap()
            });
            prop_assert_eq!(&found.starts, &clock.starts);
            let stamps = log.columns().submit.iter().map(|t| t.nanos()).collect::<Vec<u64>>();
            // Without passes over the whole queue a job may wait for ever, and what follows is not submitted.
            for (submission, stamp) in found.submissions.unwrap().into_iter().zip(stamps) {
                prop_assert!(submission == stamp || submission == NO_TIME);
            }
        }
    }

    /// Starts, ends, nodes and activities are those of the program that simulates every second from plain lists.
    #[test]
    fn slurm_is_that_of_the_reference_model(world in world()) {
        // Without passes over the whole queue a job may wait for ever, in Slurm too.
        let world = with_jobs_that_fit(world);
        let world = SlurmWorld {
            options: SlurmOptions {
                sched_interval: world.options.sched_interval.or(Some(Span::from_secs(45))),
                partition_job_depth: if world.options.assoc_limit_stop { 0 } else { world.options.partition_job_depth },
                ..world.options
            },
            ..world
        };
        let found = run(&world);
        let refused: Vec<bool> = found.rejections.iter().map(Option::is_some).collect();
        let reference = SlurmReferenceModel::new(&world, &refused);
        for (job, rejection) in found.rejections.iter().enumerate() {
            let is_held = matches!(rejection, Some(Rejection::Held(..)));
            prop_assert_eq!(is_held, reference.is_held(job), "job {}: {:?}", job, rejection);
        }
        let reference = reference.run();
        let on = found.machines.as_ref().unwrap();
        prop_assert_eq!(seconds(&found.starts), reference.starts);
        prop_assert_eq!(seconds(&on.finishes), reference.finishes);
        let slurm = on.slurm.as_ref().unwrap();
        prop_assert_eq!(&slurm.started_by, &reference.started_by);
        prop_assert_eq!(slurm.beyond_submit_limits.unwrap_or(0), reference.beyond);
        let preempted = slurm.preempted.unwrap_or_default();
        let counts = (preempted.requeued, preempted.cancelled, preempted.suspended);
        prop_assert_eq!(counts, (reference.requeued, reference.cancelled, reference.suspended));
        let mut nodes = vec![Vec::new(); world.jobs.len()];
        for a in &on.placed {
            nodes[a.row as usize].extend((0..a.chunks).map(|_| a.machine as usize));
        }
        nodes.iter_mut().for_each(|n| n.sort_unstable());
        prop_assert_eq!(nodes, reference.nodes);
        prop_assert_eq!(run(&world), found, "the same again");
    }
}
