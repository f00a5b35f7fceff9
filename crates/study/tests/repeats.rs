//! Repeats of a study against an obvious reference: each variation is replayed on its own, and intervals are computed
//! from the definition.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use evenhand_model::random::Stream;
use evenhand_model::{
    Capacity, NO_TIME, Quantity, Rational, Resource, Span, Task, Time, UserId, Weights, Workload, WorkloadBuilder,
    mean_use,
};
use evenhand_simulator::{JobOptions, Jobs as SiteJobs, PoolOptions, Progress, Site, UserTasks};
use evenhand_study::record::{ClassComparison, MethodRecord, StudyRecord};
use evenhand_study::{
    Backfill, JobRules, Live, Plan, PolicyInputs, Repeats, ReplayOn, RequestedCapacity, StudyRequest, TaskFormat,
    Variation, Vary, replay, resolution, t_quantile,
};
use proptest::prelude::*;

const ALL: [Vary; 4] = [Vary::Ties, Vary::Arrivals, Vary::Weeks, Vary::Users];
const WEEK_S: u64 = 7 * 86_400;

/// A workload of some users over some weeks, in steps of `step` seconds, with many equal submissions.
fn workload(seed: u64, tasks: u64, weeks: u64, step: u64) -> Workload {
    let mut stream = Stream::new(seed, "workload", 0);
    let mut builder = WorkloadBuilder::new([Resource::new("cpu", ""), Resource::new("mem", "")]);
    // The span is whole weeks, whatever is drawn.
    let times = (0..tasks).map(|_| stream.below(weeks * WEEK_S / step) * step).chain([0, weeks * WEEK_S]);
    let times: Vec<u64> = times.collect();
    for time in times {
        let submit = Time::from_secs(time + 100);
        builder.push(&Task {
            submit,
            start: Some(submit + Span::from_secs(stream.below(50))),
            duration: Span::from_secs(3600 + stream.below(5) * 40_000),
            user: ["ann", "bob", "cat", "dan", "eve"][stream.below(5) as usize],
            queue: Some(["q", "r"][stream.below(2) as usize]),
            amounts: &[1_000_000_000 * (1 + u128::from(stream.below(2))), 1_000_000_000],
            ..Task::default()
        });
    }
    builder.finish().unwrap()
}

/// A task without its submission: user, run time, demand, queue and the logged wait.
type Rest = (u32, u64, u32, Option<u32>, u64);

fn rest(w: &Workload, row: usize) -> Rest {
    let c = w.columns();
    let start = c.start.as_ref().map_or(NO_TIME, |starts| starts[row]);
    let queue = c.queue.as_ref().map(|queues| queues[row]);
    (c.user[row].0, c.duration[row].nanos(), c.demand[row].0, queue, start - c.submit[row].nanos())
}

fn rows(w: &Workload) -> Vec<(u64, Rest)> {
    (0..w.len()).map(|row| (w.columns().submit[row].nanos(), rest(w, row))).collect()
}

fn sorted<T: Ord>(mut list: Vec<T>) -> Vec<T> {
    list.sort_unstable();
    list
}

fn repeats(vary: &[Vary], count: u32, seed: u64) -> Repeats {
    Repeats { count, vary: vary.to_vec(), seed }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn variation_0_is_the_log_and_the_others_are_drawn_by_seed_and_number(seed in 0u64..1000, number in 1u32..20) {
        let w = workload(seed, 60, 3, 60);
        for vary in ALL {
            let draw = |seed, count, number| Variation::new(&w, &repeats(&[vary], count, seed), number);
            prop_assert_eq!(&draw(seed, 20, 0).workload, &w);
            prop_assert_eq!(draw(seed, 20, 0).ties, None);
            let (a, b) = (draw(seed, 20, number), draw(seed, 40, number));
            prop_assert_eq!((&a.workload, a.ties), (&b.workload, b.ties), "more repeats leave the first ones as they are");
            let others = (0..5).map(|other| draw(seed + 1 + other, 20, number));
            prop_assert!(others.into_iter().any(|c| (&c.workload, c.ties) != (&a.workload, a.ties)), "the seed counts");
        }
    }

    #[test]
    fn ties_keep_every_time_and_change_only_the_order_at_one_time(seed in 0u64..1000, number in 1u32..20) {
        let w = workload(seed, 80, 2, 86_400);
        let varied = Variation::new(&w, &repeats(&[Vary::Ties], 20, seed), number);
        prop_assert_eq!(&varied.workload.columns().submit, &w.columns().submit);
        prop_assert_eq!(sorted(rows(&varied.workload)), sorted(rows(&w)));
        prop_assert!(varied.ties.is_some());
    }

    #[test]
    fn arrivals_move_within_the_resolution(seed in 0u64..1000, number in 1u32..20, step in prop::sample::select(vec![60u64, 3600])) {
        let w = workload(seed, 80, 2, step);
        prop_assert_eq!(resolution(&w), Span::from_secs(step));
        let varied = Variation::new(&w, &repeats(&[Vary::Arrivals], 20, seed), number).workload;
        prop_assert!(varied.columns().submit.is_sorted());
        // Cut to the resolution it is the log again, in another order at one time; waits in the log are kept.
        let unit = Span::from_secs(step).nanos();
        let first = w.columns().submit[0].nanos();
        let cut = |(submit, rest): &(u64, Rest)| ((submit - first) / unit * unit + first, *rest);
        prop_assert_eq!(sorted(rows(&varied).iter().map(cut).collect()), sorted(rows(&w)));
        prop_assert!(rows(&varied).iter().any(|(submit, _)| !(submit - first).is_multiple_of(unit)));
    }

    #[test]
    fn weeks_are_drawn_whole_and_keep_the_time_of_the_week(seed in 0u64..1000, number in 1u32..20) {
        let w = workload(seed, 80, 4, 3600);
        let varied = Variation::new(&w, &repeats(&[Vary::Weeks], 20, seed), number).workload;
        let (week, first) = (Span::from_secs(WEEK_S).nanos(), w.columns().submit[0].nanos());
        let by_week = |w: &Workload| {
            let mut weeks: BTreeMap<u64, Vec<(u64, Rest)>> = BTreeMap::new();
            for (submit, rest) in rows(w) {
                weeks.entry((submit - first) / week).or_default().push(((submit - first) % week, rest));
            }
            weeks.into_iter().map(|(n, tasks)| (n, sorted(tasks))).collect::<BTreeMap<_, _>>()
        };
        let (original, drawn) = (by_week(&w), by_week(&varied));
        for (n, tasks) in &drawn {
            let whole = original.iter().any(|(from, other)| *from < 4 && other == tasks);
            prop_assert!(whole || original.get(n) == Some(tasks), "week {n} is one of the log");
        }
        prop_assert_eq!(drawn.get(&4), original.get(&4), "what follows the last whole week stays");
    }

    #[test]
    fn users_move_as_a_whole_by_weeks(seed in 0u64..1000, number in 1u32..20) {
        let w = workload(seed, 80, 4, 3600);
        let varied = Variation::new(&w, &repeats(&[Vary::Users], 20, seed), number).workload;
        let (week, first) = (Span::from_secs(WEEK_S).nanos(), w.columns().submit[0].nanos());
        let of = |w: &Workload, user: u32, shift: u64| {
            let moved = |(submit, rest): (u64, Rest)| ((submit - first + shift * week) % (5 * week), rest);
            sorted(rows(w).into_iter().filter(|(_, rest)| rest.0 == user).map(moved).collect::<Vec<_>>())
        };
        for user in 0..w.users().len() as u32 {
            let found = of(&varied, user, 0);
            prop_assert!((0..5).any(|shift| of(&w, user, shift) == found), "user {user} moved by whole weeks");
        }
    }
}

fn request(policies: &[&str], capacity: &str, jobs: JobRules) -> StudyRequest {
    StudyRequest {
        policies: policies.iter().map(|p| p.to_string()).collect(),
        against: None,
        capacities: vec![RequestedCapacity::Multiple(capacity.into(), Quantity::parse(capacity).unwrap())],
        decays: vec![],
        inputs: PolicyInputs::new(Weights::equal(5)),
        blocking: true,
        until_trace_end: false,
        jobs,
    }
}

fn study(plan: &Plan, dir: &std::path::Path) -> StudyRecord {
    plan.run(dir, "a test", MethodRecord::default(), TaskFormat::None, &Live::new(plan)).unwrap()
}

/// mean ± t s √(1 + 1/n), from the definition.
fn interval(values: &[f64]) -> [f64; 2] {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let margin = t_quantile(values.len() as u32 - 1) * (variance * (1.0 + 1.0 / n)).sqrt();
    [mean - margin, mean + margin]
}

fn near(found: Option<[f64; 2]>, expected: [f64; 2]) -> bool {
    let tolerance = 1e-9 * (1.0 + expected[0].abs() + expected[1].abs());
    found.is_some_and(|found| (0..2).all(|i| (found[i] - expected[i]).abs() <= tolerance))
}

/// The users' mean waits under a policy on one variation, from the starts of its replay.
fn mean_waits(varied: &Variation, capacity: &Capacity, jobs: JobRules, policy: &str) -> Vec<Option<f64>> {
    let w = &varied.workload;
    let inputs = PolicyInputs::new(Weights::equal(w.users().len()));
    let built = inputs.registry.build(policy, &inputs.context(w, capacity, None, None)).unwrap();
    let mut policy = varied.with_ties(built);
    let site = Site::pool(capacity);
    let on_site = SiteJobs::new(w, &site, jobs.layout);
    let on = match jobs.backfill {
        Backfill::None => ReplayOn::Pool { capacity, options: PoolOptions::default() },
        backfill => {
            let options = JobOptions { backfill, ..JobOptions::default() };
            ReplayOn::Site { site: &site, jobs: &on_site, options }
        }
    };
    let starts = replay(w, &UserTasks::new(w), on, policy.as_mut(), &Progress::default()).unwrap().starts;
    let mean = |user: usize| {
        let rows = (0..w.len()).filter(|row| w.columns().user[*row].index() == user);
        let waits: Vec<f64> = rows.map(|row| (starts[row] - w.columns().submit[row].nanos()) as f64 / 1e9).collect();
        (!waits.is_empty()).then(|| waits.iter().sum::<f64>() / waits.len() as f64)
    };
    (0..w.users().len()).map(mean).collect()
}

#[test]
fn intervals_and_verdicts_are_those_of_single_replays_of_each_variation() {
    let easy = JobRules { backfill: Backfill::Easy, ..JobRules::default() };
    let strict = JobRules::default();
    for (vary, jobs) in [(&ALL[..1], strict), (&ALL[..2], easy), (&ALL[2..3], strict), (&ALL[..], strict)] {
        let w = workload(7, 300, 3, 60);
        let drawn = repeats(vary, 6, 11);
        let request = request(&["fifo", "drf"], "0.8", jobs);
        let plan = Plan::new(w.clone(), &request).unwrap().repeated(drawn.clone()).unwrap();
        let record = study(&plan, tempfile::tempdir().unwrap().path());
        let undisturbed = study(&Plan::new(w.clone(), &request).unwrap(), tempfile::tempdir().unwrap().path());
        let capacity = Capacity::multiple(w.resources(), &mean_use(&w), &Quantity::parse("0.8").unwrap()).unwrap();
        let waits: Vec<[Vec<Option<f64>>; 2]> = (0..6)
            .map(|number| {
                let varied = Variation::new(&w, &drawn, number);
                ["fifo", "drf"].map(|policy| mean_waits(&varied, &capacity, jobs, policy))
            })
            .collect();
        let (mut better, mut worse) = (0, 0);
        for user in 0..w.users().len() {
            let of = |run: usize| waits.iter().map(|w| w[run][user].unwrap()).collect::<Vec<f64>>();
            for run in 0..2 {
                let [low, high] = interval(&of(run));
                let found = &record.runs[run].users[user];
                assert!(near(found.wait_interval_s, [low.max(0.0), high]), "{found:?} {low} {high}");
                // What is not an interval is that of the log itself.
                assert_eq!(found.mean_wait_s, undisturbed.runs[run].users[user].mean_wait_s);
            }
            let differences: Vec<f64> = of(1).iter().zip(&of(0)).map(|(a, b)| a - b).collect();
            let expected = interval(&differences);
            assert!(near(record.runs[1].users[user].difference_interval_s, expected));
            assert_eq!(record.runs[0].users[user].difference_interval_s, None, "the compared policy has none");
            let is_better = expected[1] < 0.0 && differences[0] < 0.0;
            let is_worse = expected[0] > 0.0 && differences[0] > 0.0;
            assert_eq!(record.runs[1].users[user].beyond_noise, is_better || is_worse);
            better += u64::from(is_better);
            worse += u64::from(is_worse);
        }
        let comparison = &record.comparisons[0];
        assert_eq!(comparison.users_better_beyond_noise, Some(better));
        assert_eq!(comparison.users_worse_beyond_noise, Some(worse));
        assert_eq!(comparison.repeats, Some(6));
        assert_eq!(comparison.users_better, undisturbed.comparisons[0].users_better);
    }
}

/// Weights by which the first user is served before the others.
fn uneven() -> Weights {
    Weights::new(["10", "1", "1", "1", "1"].map(|weight| Quantity::parse(weight).unwrap())).unwrap()
}

/// The mean wait of each class under a policy on one variation, from the starts of its replay. Classes are those of the
/// log: who used more than is due there, and its medians.
fn class_waits(varied: &Variation, log: &Workload, capacity: &Capacity, policy: &str) -> Vec<Option<f64>> {
    let w = &varied.workload;
    let used = |user: Option<usize>, r: usize| -> u128 {
        let c = log.columns();
        let rows = (0..log.len()).filter(|row| user.is_none_or(|user| c.user[*row].index() == user));
        rows.map(|row| u128::from(log.amounts(row)[r].0) * u128::from(c.duration[row].nanos())).sum()
    };
    // The first user is entitled to ten fourteenths, the others to one each.
    let above = |user: usize, r: usize| 14 * used(Some(user), r) > if user == 0 { 10 } else { 1 } * used(None, r);
    let heavy: Vec<bool> = (0..5).map(|user| (0..2).any(|r| above(user, r))).collect();
    let lower_median = |list: Vec<u128>| sorted(list)[(log.len() - 1) / 2];
    // The pool has as much of both resources.
    let size = |w: &Workload, row: usize| u128::from(w.amounts(row).iter().map(|a| a.0).max().unwrap());
    let length = |w: &Workload, row: usize| u128::from(w.columns().duration[row].nanos());
    let size_bound = lower_median((0..log.len()).map(|row| size(log, row)).collect());
    let length_bound = lower_median((0..log.len()).map(|row| length(log, row)).collect());
    let inputs = PolicyInputs::new(uneven());
    let built = inputs.registry.build(policy, &inputs.context(w, capacity, None, None)).unwrap();
    let on = ReplayOn::Pool { capacity, options: PoolOptions::default() };
    let mut policy = varied.with_ties(built);
    let starts = replay(w, &UserTasks::new(w), on, policy.as_mut(), &Progress::default()).unwrap().starts;
    let mean = |is_in: &dyn Fn(usize) -> bool| {
        let rows = (0..w.len()).filter(|row| is_in(*row));
        let waits: Vec<f64> = rows.map(|row| (starts[row] - w.columns().submit[row].nanos()) as f64 / 1e9).collect();
        (!waits.is_empty()).then(|| waits.iter().sum::<f64>() / waits.len() as f64)
    };
    let is_heavy = |row: usize| heavy[w.columns().user[row].index()];
    vec![
        mean(&|row| !is_heavy(row)),
        mean(&is_heavy),
        mean(&|row| size(w, row) <= size_bound),
        mean(&|row| size(w, row) > size_bound),
        mean(&|row| length(w, row) <= length_bound),
        mean(&|row| length(w, row) > length_bound),
    ]
}

#[test]
fn classes_have_the_intervals_of_single_replays_of_each_variation() {
    let (mut beyond, mut within, mut counted, mut empty) = (0, 0, 0, 0);
    for (vary, seed) in [(&ALL[..2], 7), (&ALL[2..3], 8), (&ALL[3..], 9)] {
        let w = workload(seed, 300, 4, 60);
        let drawn = repeats(vary, 5, 2);
        let pool = RequestedCapacity::Pool("pool".into(), vec![Rational::from(12), Rational::from(12)]);
        let request = StudyRequest {
            capacities: vec![pool],
            inputs: PolicyInputs::new(uneven()),
            ..request(&["fifo", "drf"], "1", JobRules::default())
        };
        let plan = Plan::new(w.clone(), &request).unwrap().repeated(drawn.clone()).unwrap();
        let record = study(&plan, tempfile::tempdir().unwrap().path());
        let capacity = Capacity::new(w.resources(), vec![Rational::from(12), Rational::from(12)]).unwrap();
        let waits: Vec<[Vec<Option<f64>>; 2]> = (0..5)
            .map(|number| {
                let varied = Variation::new(&w, &drawn, number);
                ["fifo", "drf"].map(|policy| class_waits(&varied, &w, &capacity, policy))
            })
            .collect();
        for at in 0..6 {
            let of = |run: usize| waits.iter().filter_map(|w| w[run][at]).collect::<Vec<f64>>();
            for run in 0..2 {
                let class = &record.runs[run].classes[at];
                match of(run).len() {
                    0 => assert_eq!((class.mean_wait_s, class.wait_interval_s), (None, None), "no task, no mean"),
                    _ => {
                        let [low, high] = interval(&of(run));
                        assert!(near(class.wait_interval_s, [low.max(0.0), high]), "{class:?} {low} {high}");
                        assert!(class.slowdown_interval.is_some_and(|[low, high]| low <= high));
                    }
                }
            }
            let pairs: Vec<(f64, f64)> = waits.iter().filter_map(|w| w[1][at].zip(w[0][at])).collect();
            let class = &record.runs[1].classes[at];
            assert_eq!(record.runs[0].classes[at].difference_interval_s, None, "the compared policy has none");
            if pairs.is_empty() {
                assert_eq!((class.difference_interval_s, class.beyond_noise), (None, false));
                empty += 1;
                continue;
            }
            let differences: Vec<f64> = pairs.iter().map(|(a, b)| a - b).collect();
            let [low, high] = interval(&differences);
            assert!(near(class.difference_interval_s, [low, high]), "{class:?}");
            assert_eq!(class.beyond_noise, (low > 0.0 && differences[0] > 0.0) || (high < 0.0 && differences[0] < 0.0));
            (beyond, within) = (beyond + u32::from(class.beyond_noise), within + u32::from(!class.beyond_noise));
            let compared = &record.comparisons[0].classes[at];
            assert_eq!((&compared.by, &compared.class), (&class.by, &class.class));
            let reductions: Vec<f64> = pairs.iter().map(|(a, b)| 1.0 - a / b).collect();
            assert!(near(compared.mean_wait_reduction_interval, interval(&reductions)), "{compared:?}");
            assert!((compared.mean_wait_reduction.unwrap() - reductions[0]).abs() < 1e-9);
        }
        // Users belong to one class by use: both together are all users.
        let comparison = &record.comparisons[0];
        let sum = |of: fn(&ClassComparison) -> Option<u64>| comparison.classes.iter().filter_map(of).sum::<u64>();
        assert_eq!(sum(|c| c.users_better), comparison.users_better);
        assert_eq!(sum(|c| c.users_worse), comparison.users_worse);
        assert_eq!(Some(sum(|c| c.users_better_beyond_noise)), comparison.users_better_beyond_noise);
        assert_eq!(Some(sum(|c| c.users_worse_beyond_noise)), comparison.users_worse_beyond_noise);
        assert!(comparison.classes[2..].iter().all(|class| class.users_better.is_none()));
        counted += sum(|c| c.users_better_beyond_noise) + sum(|c| c.users_worse_beyond_noise);
    }
    let found = [beyond, within, empty, counted as u32];
    assert!(found.iter().all(|number| *number > 0), "the examples have all: {found:?}");
}

#[test]
fn a_policy_against_itself_is_never_beyond_the_noise() {
    // asset and drf are one policy for tasks that hold as much of both resources.
    let mut builder = WorkloadBuilder::new([Resource::new("cpu", ""), Resource::new("mem", "")]);
    let mut stream = Stream::new(1, "tasks", 0);
    for i in 0..600u64 {
        builder.push(&Task {
            submit: Time::from_secs(i / 3 * 60),
            duration: Span::from_secs(60 + stream.below(600)),
            user: ["ann", "bob", "cat", "dan", "eve"][stream.below(5) as usize],
            amounts: &[1_000_000_000, 1_000_000_000],
            ..Task::default()
        });
    }
    let request = request(&["drf", "asset"], "0.9", JobRules::default());
    let plan = Plan::new(builder.finish().unwrap(), &request).unwrap();
    let plan = plan.repeated(repeats(&[Vary::Ties], 8, 1)).unwrap();
    let record = study(&plan, tempfile::tempdir().unwrap().path());
    let comparison = &record.comparisons[0];
    assert_eq!((comparison.users_better_beyond_noise, comparison.users_worse_beyond_noise), (Some(0), Some(0)));
    assert!(
        record.runs[0].users.iter().any(|u| u.wait_interval_s.is_some_and(|[low, high]| low < high)),
        "ties matter"
    );
    assert!(comparison.noise.as_ref().unwrap().users_mean_wait_difference_s.unwrap().includes_zero());
}

#[test]
fn more_repeats_reuse_those_of_the_folder_and_threads_change_nothing() {
    let request = request(&["fifo", "drf"], "0.8", JobRules::default());
    let run = |count: u32, threads: usize, dir: &std::path::Path| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let plan = Plan::new(workload(3, 200, 2, 60), &request).unwrap();
        let plan = plan.repeated(repeats(&ALL, count, 5)).unwrap();
        let live = Live::new(&plan);
        let record = pool.install(|| plan.run(dir, "t", MethodRecord::default(), TaskFormat::None, &live)).unwrap();
        let made = live.repeats.done.load(std::sync::atomic::Ordering::Relaxed);
        (
            StudyRecord {
                runs: record
                    .runs
                    .into_iter()
                    .map(|r| evenhand_study::record::RunRecord { elapsed_s: 0.0, ..r })
                    .collect(),
                ..record
            },
            made,
        )
    };
    let dirs = [0, 1].map(|_| tempfile::tempdir().unwrap());
    let (_, made) = run(4, 1, dirs[0].path());
    assert_eq!(made, 2 * 3, "two policies, three repeats beside the log itself");
    let (grown, made) = run(7, 3, dirs[0].path());
    assert_eq!(made, 2 * 3, "the first ones are in the folder");
    let (whole, made) = run(7, 1, dirs[1].path());
    assert_eq!(made, 2 * 6);
    assert_eq!(grown, whole);
    // A damaged file is done again.
    let path = dirs[1].path().join("repeats/drf-0.8.json");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("1", "2", 1)).unwrap();
    let (again, made) = run(7, 2, dirs[1].path());
    assert_eq!((again, made), (whole, 6));
}

#[test]
fn weeks_need_two_of_them() {
    let w = workload(3, 20, 1, 60);
    let request = request(&["fifo"], "0.8", JobRules::default());
    for vary in [Vary::Weeks, Vary::Users] {
        let error = Plan::new(w.clone(), &request).unwrap().repeated(repeats(&[vary], 3, 1)).unwrap_err().to_string();
        let expected = format!(
            "--vary {}: the submissions of the workload span 7.0 days; expected two weeks or more",
            vary.name()
        );
        assert_eq!(error, expected);
    }
    assert!(Plan::new(w, &request).unwrap().repeated(repeats(&[Vary::Weeks], 1, 1)).is_ok(), "nothing is repeated");
}

#[test]
fn a_user_without_tasks_in_a_variation_is_left_out_there() {
    // One user submits in the first week only, the other in both.
    let mut builder = WorkloadBuilder::new([Resource::new("cpu", "")]);
    for (day, user) in [(0, "once"), (0, "always"), (8, "always"), (14, "always")] {
        builder.push(&Task {
            submit: Time::from_secs(day * 86_400),
            duration: Span::from_secs(3600),
            user,
            amounts: &[1_000_000_000],
            ..Task::default()
        });
    }
    let w = builder.finish().unwrap();
    let drawn = repeats(&[Vary::Weeks], 40, 1);
    let present = |number: u32| Variation::new(&w, &drawn, number).workload.columns().user.contains(&UserId(0));
    assert!((1..40).any(present) && !(1..40).all(present));
    let plan = Plan::new(
        w.clone(),
        &StudyRequest {
            inputs: PolicyInputs::new(Weights::equal(2)),
            ..request(&["fifo", "drf"], "200", JobRules::default())
        },
    )
    .unwrap();
    let record = study(&plan.repeated(drawn).unwrap(), tempfile::tempdir().unwrap().path());
    assert!(record.runs.iter().all(|run| run.users.iter().all(|user| user.wait_interval_s.is_some())));
}
