//! Descriptions: figures that can be checked by hand, and laws they must obey.
#![allow(clippy::unwrap_used)]

use evenhand_model::{Nano, Resource, Span, Task, Time, Workload, WorkloadBuilder};
use evenhand_workload::describe::{Description, describe, describe_plots};
use evenhand_workload::generate::{GenerateOptions, TraceModel, generate};
use proptest::prelude::*;

const ONE: Nano = 1_000_000_000;

fn by_hand() -> Workload {
    let mut b = WorkloadBuilder::new([Resource::new("cpu", "cores"), Resource::new("mem", "GB")]);
    let s = Time::from_secs;
    let mut push = |submit, start, duration, user, count, amounts: [Nano; 2]| {
        let duration = Span::from_secs(duration);
        b.push(&Task {
            submit: s(submit),
            start: Some(s(start)),
            duration,
            user,
            count,
            amounts: &amounts,
            ..Task::default()
        });
    };
    // a holds 2 cpu x 10 s twice over 100..110 and 100..110; b 1 cpu, 8 mem over 110..130.
    push(100, 100, 10, "a", 2, [2 * ONE, ONE]);
    push(104, 110, 20, "b", 1, [ONE, 8 * ONE]);
    b.finish().unwrap()
}

#[test]
fn figures_that_can_be_checked_by_hand() {
    let d = describe(&by_hand());
    assert_eq!((d.tasks, d.rows, d.users, d.demand_vectors, d.starts_known), (3, 2, 2, 2, true));
    assert_eq!((d.first_submit_s, d.span_s), (100.0, 30.0));
    // cpu: (2 x 2 x 10 + 20) / 30; mem: (2 x 10 + 160) / 30; b starts as a finishes.
    let [cpu, mem] = &d.resources[..] else { panic!("two resources") };
    assert_eq!((cpu.mean_use, cpu.peak_use), (2.0, 4.0));
    assert_eq!((mem.mean_use, mem.peak_use), (6.0, 8.0));
    assert_eq!((cpu.demand.q50, cpu.demand.max, mem.demand.q50, mem.demand.max), (2.0, 2.0, 1.0, 8.0));
    // a: 2/2 against 1/6; b: 1/2 against 8/6.
    assert_eq!((cpu.dominant_tasks, cpu.dominant_users), (2.0 / 3.0, 0.5));
    assert_eq!(d.demand_correlation.map(|c| (c * 1e9).round() / 1e9), Some(-1.0));
    let wait = d.wait_s.unwrap();
    assert_eq!((wait.q50, wait.max, wait.mean), (0.0, 6.0, 2.0));
    assert_eq!((d.duration_s.q50, d.duration_s.max), (10.0, 20.0));
    assert_eq!((d.task_shares.top1, d.task_shares.top5), (2.0 / 3.0, 1.0));
    // a has 2/3 of cpu-time, b 8/9 of mem-time.
    assert!((d.use_shares.top1 - (8.0 / 9.0) / (8.0 / 9.0 + 2.0 / 3.0)).abs() < 1e-12);
    assert_eq!((d.bursts.bursts, d.bursts.single, d.bursts.tasks.max), (2, 0.5, 2.0));
    assert_eq!(d.common_vectors[0].amounts, [2.0, 1.0]);
    assert_eq!(d.requested_s, None);
    let gaps = d.task_interarrival.unwrap();
    assert_eq!((gaps.mean_s, gaps.variation), (2.0, 1.0));
}

#[test]
fn a_description_is_one_object_of_json() {
    let d = describe(&by_hand());
    let json = serde_json::to_value(&d).unwrap();
    assert_eq!(json["tasks_per_user"]["max"], 2.0);
    assert_eq!(json["resources"][0]["mean_use"], 2.0);
    assert_eq!(json["requested_s"], serde_json::Value::Null);
}

#[test]
fn plots_hold_what_the_figures_hold() {
    let w = by_hand();
    let p = describe_plots(&w);
    assert_eq!(p.tasks_by_rank, [(1, 2), (2, 1)]);
    assert_eq!(p.use_start_s, 100.0);
    // 30 s in 400 bins: the mean over the bins is R.
    for (series, r) in p.use_over_time.iter().zip([2.0, 6.0]) {
        assert_eq!(series.len(), 400);
        let mean = series.iter().sum::<f64>() / 400.0;
        assert!((mean * 400.0 * p.use_bin_s / 30.0 - r).abs() < 1e-6, "{mean}");
    }
    assert_eq!((p.use_over_time[0][0], p.use_over_time[0][399]), (4.0, 1.0));
    assert_eq!((p.vectors[0].tasks, p.vectors[1].tasks), (2, 1));
    assert_eq!(p.duration_cdf.last(), Some(&(20.0, 1.0)));
}

/// Submission, wait, run time, user, count, amounts in halves.
type Line = (u64, u64, u64, u8, u32, [u8; 2]);

fn tasks() -> impl Strategy<Value = Vec<Line>> {
    let task = (0..1000u64, 0..500u64, 0..300u64, 0..6u8, 1..4u32, [0..5u8, 0..5u8]);
    proptest::collection::vec(task, 1..60)
}

fn build(tasks: &[Line], expand: bool) -> Workload {
    let mut b = WorkloadBuilder::new([Resource::new("cpu", ""), Resource::new("mem", "")]);
    for &(submit, wait, run, user, count, amounts) in tasks {
        let copies = if expand { count } else { 1 };
        for _ in 0..copies {
            b.push(&Task {
                submit: Time::from_secs(submit),
                start: Some(Time::from_secs(submit + wait)),
                duration: Span::from_secs(run),
                user: &format!("u{user}"),
                amounts: &amounts.map(|a| Nano::from(a) * ONE / 2),
                count: if expand { 1 } else { count },
                ..Task::default()
            });
        }
    }
    b.finish().unwrap()
}

proptest! {
    #[test]
    fn a_row_with_a_count_is_so_many_tasks(t in tasks()) {
        let (counted, expanded) = (describe(&build(&t, false)), describe(&build(&t, true)));
        let expanded = Description { rows: counted.rows, ..expanded };
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * (1.0 + a.abs());
        prop_assert!(close(counted.use_shares.gini, expanded.use_shares.gini));
        // Sums of floats in another order: equal but for the last digits.
        let rounded = |d: Description| {
            let mut d = d;
            d.use_shares = d.task_shares;
            for r in &mut d.resources { r.dominant_users = (r.dominant_users * 1e6).round(); }
            d.task_interarrival = d.task_interarrival.map(|mut g| { g.variation = (g.variation * 1e6).round(); g });
            d
        };
        prop_assert_eq!(rounded(counted), rounded(expanded));
    }

    #[test]
    fn peak_use_is_the_largest_sum_at_any_start(t in tasks()) {
        let w = build(&t, false);
        let d = describe(&w);
        for r in 0..2 {
            let mut peak: f64 = 0.0;
            for at in (0..w.len()).map(|row| w.start(row).unwrap()) {
                let held = (0..w.len()).filter(|&row| {
                    let start = w.start(row).unwrap();
                    start <= at && at < start + w.columns().duration[row]
                });
                peak = peak.max(held.map(|row| w.resources()[r].value(w.amounts(row)[r]) * f64::from(w.count(row))).sum());
            }
            prop_assert_eq!(d.resources[r].peak_use, peak);
        }
    }

    #[test]
    fn use_over_time_sums_to_all_that_is_held(t in tasks()) {
        let w = build(&t, false);
        let p = describe_plots(&w);
        for (r, series) in p.use_over_time.iter().enumerate() {
            let area: f64 = series.iter().map(|u| u * p.use_bin_s).sum();
            let held: f64 = (0..w.len())
                .map(|row| w.resources()[r].value(w.amounts(row)[r]) * f64::from(w.count(row)) * w.columns().duration[row].secs_f64())
                .sum();
            prop_assert!((area - held).abs() <= 1e-6 * (1.0 + held), "{area} {held}");
        }
    }
}

#[test]
fn the_number_of_threads_changes_no_figure() {
    let w = generate(&GenerateOptions { model: TraceModel::Google2011, tasks: 30_000, users: 50, days: 1.0, seed: 1 })
        .unwrap();
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| (describe(&w), describe_plots(&w)))
    };
    assert_eq!(on(1), on(5));
}
