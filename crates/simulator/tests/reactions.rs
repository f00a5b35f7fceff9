//! Users who react, against users whose rule is known: a program of its own makes them wait for their tasks, think and
//! submit again. From the log that it writes under one policy the simulator must predict what the same program does
//! under another.
#![allow(clippy::unwrap_used)]

use evenhand_model::{Capacity, NO_TIME, Rational, Resource, Span, Task, Time, Weights, Workload, WorkloadBuilder};
use evenhand_policies::{PolicyContext, Registry};
use evenhand_simulator::{
    Arrivals, JobOptions, Jobs, Layout, Progress, Reacted, Reactions, Site, UserTasks, simulate_reactions,
};
use proptest::prelude::*;

/// Tasks that a user submits together.
#[derive(Clone, Debug)]
struct Batch {
    /// How long the user thinks before it, once all its tasks have ended.
    think: u64,
    /// If the batch opens a session: when the user comes. If its tasks have not ended by then, it waits for them.
    comes_at: Option<u64>,
    /// Run time, CPUs and memory of each task.
    tasks: Vec<(u64, [u64; 2])>,
}

#[derive(Clone, Debug)]
struct World {
    capacity: [u64; 2],
    users: Vec<Vec<Batch>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Submitted {
    user: usize,
    batch: usize,
    task: usize,
    submit: u64,
    start: u64,
}

/// Runs the users' rule under `fifo` or `drf` in strict order. `row` gives the place of a task in the log, which decides
/// between submissions of one instant. Returns the tasks in that order.
fn users_program(world: &World, policy: &str, row: impl Fn(usize, usize, usize) -> usize) -> Vec<Submitted> {
    struct User {
        batch: usize,
        /// When it submits that batch; `None` while it waits for tasks.
        due: Option<u64>,
        running_or_waiting: usize,
        /// Submission, row, batch and task.
        waiting: Vec<Waiting>,
        held: [u64; 2],
    }
    let due = |batch: &Batch, now: u64| batch.comes_at.map_or(now + batch.think, |at| at.max(now));
    let new = |batches: &Vec<Batch>| User {
        batch: 0,
        due: batches.first().map(|batch| due(batch, 0)),
        running_or_waiting: 0,
        waiting: Vec::new(),
        held: [0, 0],
    };
    let mut users: Vec<User> = world.users.iter().map(new).collect();
    let mut running: Vec<(u64, usize, [u64; 2])> = Vec::new();
    let mut free = world.capacity;
    let mut found = Vec::new();
    loop {
        let times = running.iter().map(|r| r.0).chain(users.iter().filter_map(|user| user.due));
        let Some(now) = times.min() else { break };
        running.retain(|(end, user, held)| {
            if *end == now {
                let state = &mut users[*user];
                state.running_or_waiting -= 1;
                (0..2).for_each(|r| {
                    state.held[r] -= held[r];
                    free[r] += held[r];
                });
                if state.running_or_waiting == 0 {
                    state.due = world.users[*user].get(state.batch).map(|batch| due(batch, now));
                }
            }
            *end != now
        });
        for (number, user) in users.iter_mut().enumerate().filter(|(_, user)| user.due == Some(now)) {
            let batch = &world.users[number][user.batch];
            let places = (0..batch.tasks.len()).map(|task| (now, row(number, user.batch, task), user.batch, task));
            user.waiting.extend(places);
            user.running_or_waiting += batch.tasks.len();
            (user.batch, user.due) = (user.batch + 1, None);
        }
        while let Some(number) = next_user(policy, world, users.iter().map(|user| (user.waiting.first(), user.held))) {
            let user = &mut users[number];
            let (submit, _, batch, task) = user.waiting[0];
            let (run, amounts) = world.users[number][batch].tasks[task];
            if (0..2).any(|r| amounts[r] > free[r]) {
                break;
            }
            (0..2).for_each(|r| {
                user.held[r] += amounts[r];
                free[r] -= amounts[r];
            });
            user.waiting.remove(0);
            running.push((now + run, number, amounts));
            found.push(Submitted { user: number, batch, task, submit, start: now });
        }
    }
    found.sort_by_key(|f| (f.submit, row(f.user, f.batch, f.task)));
    found
}

/// A task that waits: when it was submitted, its row in the log, its batch and its number there.
type Waiting = (u64, usize, usize, usize);

/// The user whose first waiting task starts next.
fn next_user<'a>(
    policy: &str,
    world: &World,
    users: impl Iterator<Item = (Option<&'a Waiting>, [u64; 2])>,
) -> Option<usize> {
    let key = |(number, (first, held)): (usize, (Option<&Waiting>, [u64; 2]))| {
        let (submit, row, ..) = *first?;
        // Both shares over the same denominator.
        let share = (held[0] * world.capacity[1]).max(held[1] * world.capacity[0]);
        Some((if policy == "drf" { share } else { 0 }, submit, row, number))
    };
    users.enumerate().filter_map(key).min().map(|key| key.3)
}

fn log(world: &World, found: &[Submitted]) -> Workload {
    let mut builder = WorkloadBuilder::new([Resource::new("cpu", ""), Resource::new("mem", "")]);
    for f in found {
        let (run, amounts) = world.users[f.user][f.batch].tasks[f.task];
        builder.push(&Task {
            submit: Time::from_secs(f.submit),
            start: Some(Time::from_secs(f.start)),
            duration: Span::from_secs(run),
            user: &format!("user{}", f.user),
            amounts: &amounts.map(|a| u128::from(a) * 1_000_000_000),
            ..Task::default()
        });
    }
    builder.finish().unwrap()
}

/// Submission and start of each row of the log, as predicted.
fn predicted(world: &World, log: &Workload, policy: &str, arrivals: Arrivals) -> Vec<(u64, u64)> {
    let capacity = Capacity::new(log.resources(), world.capacity.map(Rational::from).to_vec()).unwrap();
    let site = Site::pool(&capacity);
    let jobs = Jobs::new(log, &site, Layout::Auto);
    let weights = Weights::equal(log.users().len());
    let mut policy = Registry::built_in().build(policy, &PolicyContext::new(&capacity, &weights)).unwrap();
    let reactions = Reactions::new(log, UserTasks::new(log), arrivals);
    let (options, progress) = (JobOptions::default(), Progress::default());
    let run = simulate_reactions(log, &reactions, &site, &jobs, policy.as_mut(), options, &progress).unwrap();
    let submissions = run.submissions.clone().unwrap();
    let found = submissions.iter().zip(&run.starts).map(|(s, t)| (s / 1_000_000_000, t / 1_000_000_000)).collect();

    // The same run as one of the workload that was submitted in this way.
    let reacted = Reacted::new(log, run.clone());
    assert!(reacted.workload.columns().submit.is_sorted());
    for (new, old) in reacted.rows.iter().enumerate() {
        let old = *old as usize;
        assert_eq!(reacted.workload.columns().submit[new].nanos(), submissions[old]);
        assert_eq!(
            (reacted.run.starts[new], reacted.workload.columns().user[new]),
            (run.starts[old], log.columns().user[old])
        );
        let ends = |run: &evenhand_simulator::Simulated, row: usize| run.machines.as_ref().unwrap().finishes[row];
        assert_eq!(ends(&reacted.run, new), ends(&run, old));
        assert!(run.starts[old] != NO_TIME && submissions[old] != NO_TIME);
    }
    found
}

fn batch(think: impl Strategy<Value = u64>) -> impl Strategy<Value = Batch> {
    let task = (1u64..400, [1u64..4, 0u64..5]);
    (think, prop::collection::vec(task, 1..5)).prop_map(|(think, tasks)| Batch { think, comes_at: None, tasks })
}

/// Users who wait, think and go on, also overnight.
fn closed_users() -> impl Strategy<Value = World> {
    let think = || prop_oneof![Just(0u64), 0u64..200, 0u64..5000];
    let users = prop::collection::vec(prop::collection::vec(batch(think()), 1..6), 1..5);
    ([3u64..8, 4u64..9], users).prop_map(|(capacity, users)| World { capacity, users })
}

/// Users who come at certain times, and within a session think for at most 20 minutes.
fn users_with_sessions() -> impl Strategy<Value = World> {
    let session = || (0u64..3000, prop::collection::vec(batch(0u64..1201), 1..4));
    let users = prop::collection::vec(prop::collection::vec(session(), 1..4), 1..4);
    ([3u64..8, 4u64..9], users).prop_map(|(capacity, users)| {
        let user = |sessions: Vec<(u64, Vec<Batch>)>| {
            let opened = sessions.into_iter().enumerate().flat_map(|(number, (after, mut batches))| {
                // No session lasts until the next one, under any policy.
                batches[0].comes_at = Some(number as u64 * 100_000 + after);
                batches
            });
            opened.collect()
        };
        World { capacity, users: users.into_iter().map(user).collect() }
    })
}

fn agree(world: &World, arrivals: Arrivals) -> Result<(), TestCaseError> {
    for (logged, asked) in [("fifo", "drf"), ("drf", "fifo"), ("drf", "drf")] {
        let first = users_program(world, logged, |user, batch, task| (user * 100 + batch) * 100 + task);
        let log = log(world, &first);
        let row = |user: usize, batch: usize, task: usize| {
            first.iter().position(|f| (f.user, f.batch, f.task) == (user, batch, task)).unwrap()
        };
        let expected = users_program(world, asked, row);
        let found = predicted(world, &log, asked, arrivals);
        let found: Vec<(u64, u64)> = expected.iter().map(|f| found[row(f.user, f.batch, f.task)]).collect();
        let expected: Vec<(u64, u64)> = expected.iter().map(|f| (f.submit, f.start)).collect();
        prop_assert_eq!(found, expected, "from {} to {}", logged, asked);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn closed_users_are_predicted(world in closed_users()) {
        agree(&world, Arrivals::Closed)?;
    }

    #[test]
    fn users_with_sessions_are_predicted(world in users_with_sessions()) {
        agree(&world, Arrivals::Sessions)?;
    }
}

/// Otherwise the tests above would compare replays in which nothing moves.
#[test]
fn a_better_policy_moves_submissions() {
    let task = |run: u64| (run, [1, 0]);
    let batch = |think: u64, tasks: Vec<(u64, [u64; 2])>| Batch { think, comes_at: None, tasks };
    // Under fifo the second user waits behind all tasks of the first, two at a time.
    let world = World {
        capacity: [2, 1],
        users: vec![vec![batch(0, vec![task(100); 6])], vec![batch(1, vec![task(10)]), batch(5, vec![task(10)])]],
    };
    let first = users_program(&world, "fifo", |user, batch, task| (user * 100 + batch) * 100 + task);
    let submissions = |found: Vec<(u64, u64)>| found.into_iter().map(|f| f.0).collect::<Vec<u64>>();
    let log = log(&world, &first);
    assert_eq!(submissions(predicted(&world, &log, "fifo", Arrivals::Closed)), [0, 0, 0, 0, 0, 0, 1, 315]);
    // Under drf its first task starts at 100, and the second follows 5 s after its end.
    assert_eq!(submissions(predicted(&world, &log, "drf", Arrivals::Closed)), [0, 0, 0, 0, 0, 0, 1, 115]);
}
