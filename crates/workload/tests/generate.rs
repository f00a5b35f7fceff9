//! The generators against the figures measured on the traces they imitate.
#![allow(clippy::unwrap_used)]

use evenhand_model::{Time, Workload};
use evenhand_workload::describe::{Description, describe};
use evenhand_workload::generate::{GenerateError, GenerateOptions, TraceModel, generate};
use proptest::prelude::*;

fn options(like: TraceModel, tasks: u64, users: u32, days: f64, seed: u64) -> GenerateOptions {
    GenerateOptions { model: like, tasks, users, days, seed }
}

/// As many tasks and users as the first 19.65 hours of Google's task events.
fn window_a(seed: u64) -> (Workload, Description) {
    let w = generate(&options(TraceModel::Google2011, 509_816, 391, 19.65 / 24.0, seed)).unwrap();
    let d = describe(&w);
    (w, d)
}

/// `found` within a factor of `by` around `expected`.
fn near(what: &str, found: f64, expected: f64, by: f64) {
    assert!(
        found >= expected / by && found <= expected * by,
        "{what}: {found}, expected {expected} within a factor {by}"
    );
}

#[test]
fn google_users_are_as_unequal_as_measured() {
    for seed in 1..=4 {
        let (_, d) = window_a(seed);
        let t = d.tasks_per_user.distribution;
        for (q, expected) in
            [(t.q25, 1.0), (t.q50, 6.0), (t.q75, 146.0), (t.q90, 2006.0), (t.q99, 22_005.0), (t.max, 101_003.0)]
        {
            near("tasks per user", q, expected, 1.35);
        }
        near("Gini", d.task_shares.gini, 0.929, 1.02);
        near("top 1", d.task_shares.top1, 0.198, 1.35);
        near("top 5", d.task_shares.top5, 0.416, 1.25);
        near("top 10", d.task_shares.top10, 0.599, 1.15);
    }
}

#[test]
fn google_demands_are_the_measured_ones() {
    for seed in 1..=4 {
        let (w, d) = window_a(seed);
        let (cpu, mem) = (&d.resources[0].demand, &d.resources[1].demand);
        for (q, expected) in [(cpu.q25, 0.0125), (cpu.q50, 0.025), (cpu.q75, 0.0625)] {
            near("cpu", q, expected, 2.0);
        }
        for (q, expected) in [(mem.q25, 0.011), (mem.q50, 0.024), (mem.q75, 0.033)] {
            near("mem", q, expected, 1.6);
        }
        // The ends hang on which vectors one very active user happens to have.
        for (q, expected) in [(cpu.q05, 0.006), (cpu.q95, 0.1), (mem.q05, 0.0025), (mem.q95, 0.123)] {
            near("ends", q, expected, 2.2);
        }
        let rank = d.demand_correlation.unwrap();
        assert!((0.1..0.65).contains(&rank), "rank correlation {rank}");
        assert!((0.2..0.8).contains(&d.resources[0].dominant_tasks), "{}", d.resources[0].dominant_tasks);
        // The modes of the joint distribution, not a continuous law: a few vectors hold most tasks.
        let most: f64 = d.common_vectors.iter().map(|v| v.share).sum();
        assert!((0.35..0.75).contains(&most), "ten vectors hold {most}");
        let modes = [[0.0625, 0.0318], [0.024_99, 0.033_39], [0.0125, 0.0159]];
        assert!(modes.iter().all(|m| d.common_vectors.iter().any(|v| v.amounts == m)), "{:?}", d.common_vectors);
        // The number of tasks of a user is independent of their size.
        let users = w.users().len();
        let (mut tasks, mut sizes) = (vec![0.0; users], vec![0.0; users]);
        for row in 0..w.len() {
            let user = w.columns().user[row].index();
            tasks[user] += 1.0;
            sizes[user] += w.amounts(row)[0].0 as f64;
        }
        let sizes: Vec<f64> = sizes.iter().zip(&tasks).map(|(s, t)| s / t).collect();
        let rank = rank_correlation(&tasks, &sizes);
        assert!(rank.abs() < 0.3, "activity and size correlate by {rank}");
    }
}

fn rank_correlation(a: &[f64], b: &[f64]) -> f64 {
    let ranks = |v: &[f64]| {
        let below =
            |x: &f64| v.iter().map(|y| f64::from(u8::from(y < x)) + 0.5 * f64::from(u8::from(y == x))).sum::<f64>();
        v.iter().map(below).collect::<Vec<f64>>()
    };
    let (a, b) = (ranks(a), ranks(b));
    let mean = a.iter().sum::<f64>() / a.len() as f64;
    let moment = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| (x - mean) * (y - mean)).sum::<f64>();
    moment(&a, &b) / (moment(&a, &a) * moment(&b, &b)).sqrt()
}

#[test]
fn google_run_times_and_arrivals_are_the_measured_ones() {
    for seed in 1..=4 {
        let (w, d) = window_a(seed);
        let run = d.duration_s;
        for (q, expected) in [
            (run.q05, 28.0),
            (run.q25, 163.0),
            (run.q50, 626.0),
            (run.q75, 3162.0),
            (run.q95, 13_981.0),
            (run.q99, 28_766.0),
        ] {
            near("run time", q, expected, 1.6);
        }
        let gaps = d.task_interarrival.unwrap();
        near("task interarrival", gaps.mean_s, 0.139, 1.05);
        assert!((3.0..6.5).contains(&gaps.variation), "variation {}", gaps.variation);
        assert_eq!(w.columns().submit[0], Time::from_secs(600));
        assert!(w.columns().submit.iter().all(|t| t.nanos() % 1000 == 0));
        assert!(w.columns().duration.iter().all(|t| t.nanos() % 1000 == 0 && t.nanos() > 0));
        let last = w.columns().submit[w.len() - 1].secs_f64() - 600.0;
        near("span", last, 19.65 * 3600.0, 1.02);
    }
}

#[test]
fn metacentrum_jobs_are_the_measured_ones() {
    for seed in 1..=4 {
        let w = generate(&options(TraceModel::MetaCentrum, 17_900, 75, 89.0, seed)).unwrap();
        let d = describe(&w);
        let t = d.tasks_per_user.distribution;
        for (q, expected) in [(t.q50, 51.0), (t.q75, 240.0), (t.q90, 424.0), (t.max, 3343.0)] {
            near("jobs per user", q, expected, 1.3);
        }
        let (cpu, mem, run) = (&d.resources[0].demand, &d.resources[1].demand, &d.duration_s);
        assert_eq!((d.resources[0].unit.as_str(), d.resources[1].unit.as_str()), ("processors", "KB"));
        for (q, expected) in [(cpu.q05, 1.0), (cpu.q50, 1.0), (cpu.q75, 8.0), (cpu.q95, 32.0), (cpu.q99, 64.0)] {
            near("processors", q, expected, 2.5);
        }
        for (q, expected) in [(mem.q05, 0.2), (mem.q25, 0.5), (mem.q50, 4.0), (mem.q75, 16.0), (mem.q95, 64.0)] {
            near("GiB", q / (1024.0 * 1024.0), expected, 2.0);
        }
        for (q, expected) in [(run.q25, 303.0), (run.q50, 2370.0), (run.q75, 32_800.0), (run.q95, 333_550.0)] {
            near("run time", q, expected, 2.8);
        }
        assert!((0.4..0.9).contains(&d.use_shares.top5), "five users hold {}", d.use_shares.top5);
        let gaps = d.task_interarrival.unwrap();
        near("interarrival", gaps.mean_s, 429.0, 1.05);
        near("variation", gaps.variation, 4.84, 1.5);
        // Every job has a queue, an account, and asks for at least what it runs and at most its limit.
        assert_eq!(d.queues, 7);
        assert!(d.accounts >= 5);
        const DAY: u64 = 86_400;
        let limits = [
            ("q_2h", 7200),
            ("q_4h", 14_400),
            ("q_1d", DAY),
            ("q_2d", 2 * DAY),
            ("q_4d", 4 * DAY),
            ("q_1w", 7 * DAY),
            ("q_2w", 14 * DAY),
        ];
        for row in 0..w.len() {
            let queue = w.queue(row).unwrap();
            let limit = limits.iter().find(|l| l.0 == queue).unwrap().1;
            let requested = w.requested(row).unwrap().secs_f64();
            assert!(w.account(row).is_some());
            assert!(w.columns().duration[row].secs_f64() <= requested && requested <= limit as f64);
        }
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    for like in TraceModel::ALL {
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| generate(&options(like, 150_000, 60, 2.0, 9)).unwrap())
        };
        let one = on(1);
        assert!(one == on(2) && one == on(7));
        assert!(one != generate(&options(like, 150_000, 60, 2.0, 10)).unwrap());
    }
}

/// FNV-1a over everything a run depends on.
fn digest(w: &Workload) -> u64 {
    let c = w.columns();
    (0..w.len()).fold(0xcbf2_9ce4_8422_2325, |h: u64, row| {
        let amounts = w.amounts(row).iter().map(|a| a.0);
        let all = [c.submit[row].nanos(), c.duration[row].nanos(), u64::from(c.user[row].0)];
        all.into_iter().chain(amounts).fold(h, |h, v| (h ^ v).wrapping_mul(0x100_0000_01b3))
    })
}

#[test]
fn a_seed_means_the_same_workload_everywhere_and_for_ever() {
    // Golden: published figures name only the options.
    let of = |like| digest(&generate(&options(like, 20_000, 40, 1.5, 1)).unwrap());
    assert_eq!((of(TraceModel::Google2011), of(TraceModel::MetaCentrum)), GOLDEN);
}
const GOLDEN: (u64, u64) = (8101711861458487692, 3448665297426761619);

#[test]
fn impossible_options_are_refused() {
    let good = options(TraceModel::Google2011, 10, 5, 1.0, 0);
    let cases = [
        (GenerateOptions { tasks: 0, ..good }, GenerateError::NoTasks),
        (GenerateOptions { users: 0, ..good }, GenerateError::NoUsers),
        (GenerateOptions { users: 11, ..good }, GenerateError::TooManyUsers { users: 11, tasks: 10 }),
        (GenerateOptions { tasks: 1 << 32, ..good }, GenerateError::TooManyTasks { tasks: 1 << 32 }),
        (GenerateOptions { days: 0.0, ..good }, GenerateError::Days { days: 0.0 }),
        (GenerateOptions { days: -1.0, ..good }, GenerateError::Days { days: -1.0 }),
        (GenerateOptions { days: f64::INFINITY, ..good }, GenerateError::Days { days: f64::INFINITY }),
        (GenerateOptions { days: 40_000.0, ..good }, GenerateError::Days { days: 40_000.0 }),
    ];
    for (options, error) in cases {
        assert_eq!(generate(&options), Err(error));
    }
    assert!(matches!(generate(&GenerateOptions { days: f64::NAN, ..good }), Err(GenerateError::Days { .. })));
    assert_eq!("google2011".parse(), Ok(TraceModel::Google2011));
    assert_eq!("google".parse::<TraceModel>(), Err(GenerateError::Unknown { found: "google".into() }));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn what_is_asked_for_is_there_exactly(
        like in prop_oneof![Just(TraceModel::Google2011), Just(TraceModel::MetaCentrum)],
        (tasks, users) in (1..3000u64).prop_flat_map(|t| (Just(t), 1..=(t.min(400) as u32))),
        days in prop_oneof![Just(1e-9), 1e-6..0.01, 0.01..400.0f64],
        seed in any::<u64>(),
    ) {
        let w = generate(&options(like, tasks, users, days, seed)).unwrap();
        prop_assert_eq!(w.tasks(), tasks);
        prop_assert_eq!(w.users().len(), users as usize);
        let c = w.columns();
        let first = if like == TraceModel::Google2011 { Time::from_secs(600) } else { Time::ZERO };
        prop_assert_eq!(c.submit[0], first);
        prop_assert!((c.submit[w.len() - 1] - first).secs_f64() <= (days * 86_400.0).max(1e-6));
        prop_assert!(c.duration.iter().all(|d| d.nanos() > 0));
        prop_assert!((0..w.len()).all(|row| w.amounts(row).iter().all(|a| a.0 > 0)));
    }
}
