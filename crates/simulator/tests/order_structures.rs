//! Whole simulations with every structure that orders users: the same starts, whatever the decay.
//!
//! Lines in `f64` only determine which users may be lowest, so structures may round as they like and still must not
//! decide otherwise. Sizes come in steps, users are alike, and much happens at one instant: where two
//! users meet, they meet exactly.

#![allow(clippy::unwrap_used)]

use evenhand_model::{Capacity, Quantity, Resource, Span, Task, Time, Weights, Workload, WorkloadBuilder, mean_use};
use evenhand_policies::{Decay, Order, PolicyContext, Registry};
use evenhand_simulator::{PoolOptions, Progress, Simulated, UserTasks, simulate};
use proptest::prelude::*;

/// Time constants from a second to months.
const HALF_LIVES_S: [u64; 7] = [1, 7, 66, 660, 66_000, 691_200, 10_000_000];

fn run(
    workload: &Workload,
    capacity: &str,
    weights: &Weights,
    half_life: Span,
    (policy, order): (&str, Order),
    blocking: bool,
) -> Simulated {
    let factor = Quantity::parse(capacity).unwrap();
    let capacity = Capacity::multiple(workload.resources(), &mean_use(workload), &factor).unwrap();
    let decay = Some(Decay::from_half_life(half_life).unwrap());
    let setting = PolicyContext::new(&capacity, weights).decay(decay).order(order);
    let mut policy = Registry::built_in().build(policy, &setting).unwrap();
    let options = PoolOptions { blocking, until: None };
    simulate(workload, &UserTasks::new(workload), &capacity, policy.as_mut(), options, &Progress::default()).unwrap()
}

/// Runs with every order; all start the same tasks at the same time. Returns their events.
fn check(
    workload: &Workload,
    capacity: &str,
    weights: &Weights,
    half_life: Span,
    policy: &str,
    blocking: bool,
) -> Vec<(Order, u64)> {
    let run = |order: Order| run(workload, capacity, weights, half_life, (policy, order), blocking);
    let scan = run(Order::Scan);
    assert_eq!(scan.order_events, 0);
    [Order::Auto, Order::Tournament, Order::LiveTree]
        .into_iter()
        .map(|order| {
            let found = run(order);
            assert_eq!(found.starts, scan.starts, "{policy} {} {half_life} s", order.name());
            assert_eq!((found.end, found.decisions), (scan.end, scan.decisions));
            (order, found.order_events)
        })
        .collect()
}

fn task() -> impl Strategy<Value = (u64, u64, u32, [u64; 2])> {
    // Bursts of equal tasks at whole minutes, and some at odd times.
    let submit = prop_oneof![3 => (0u64..20).prop_map(|m| m * 60_000), 1 => 0u64..1_200_000];
    let duration = prop::sample::select(vec![1_000u64, 30_000, 60_000, 61_500, 600_000]);
    let amounts = prop::sample::select(vec![[1u64, 1], [2, 1], [1, 2], [4, 1], [1, 4], [2, 2]]);
    (submit, duration, 0u32..8, amounts)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn all_orders_start_the_same_tasks(
        mut tasks in prop::collection::vec(task(), 20..150),
        capacity in prop::sample::select(vec!["0.5", "0.75", "1"]),
        weights in prop::sample::select(vec![["1"; 8], ["1", "1", "2", "2", "1", "1", "4", "0.001"]]),
        half_life in prop::sample::select(HALF_LIVES_S.to_vec()),
        policy in prop::sample::select(vec!["sdrf", "sdrf-dominant"]),
        blocking in any::<bool>(),
    ) {
        tasks.sort_by_key(|t| t.0);
        let mut builder = WorkloadBuilder::new([Resource::new("cpu", ""), Resource::new("mem", "")]);
        for (submit, duration, user, amounts) in tasks {
            builder.push(&Task {
                submit: Time::from_nanos(submit * 1_000_000),
                duration: Span::from_nanos(duration * 1_000_000),
                user: &format!("user{user}"),
                amounts: &amounts.map(|a| u128::from(a) * 1_000_000_000),
                ..Task::default()
            });
        }
        let workload = builder.finish().unwrap();
        let users = workload.users().len();
        let weights = Weights::new(weights[..users].iter().map(|w| Quantity::parse(w).unwrap())).unwrap();
        check(&workload, capacity, &weights, Span::from_secs(half_life), policy, blocking);
    }
}

/// Enough users for the automatic choice to go over from one structure to the other.
#[test]
fn all_orders_start_the_same_tasks_of_many_users() {
    let mut state = 1u64;
    let mut below = |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let mut builder = WorkloadBuilder::new([Resource::new("cpu", ""), Resource::new("mem", "")]);
    for i in 0..20_000u64 {
        let user = format!("user{}", below(6_000));
        let amounts = [1 + below(8), 1 + below(8)].map(|a| u128::from(a) * 125_000_000);
        let (submit, duration) = (Time::from_nanos(i * 5_000_000), Span::from_secs(1 + below(60) * below(20)));
        builder.push(&Task { submit, duration, user: &user, amounts: &amounts, ..Task::default() });
    }
    let workload = builder.finish().unwrap();
    let weights = Weights::equal(workload.users().len());
    let events = check(&workload, "0.5", &weights, Span::from_secs(120), "sdrf", true);
    let of = |order: Order| events.iter().find(|e| e.0 == order).unwrap().1;
    // Most order changes are between users far from the first.
    assert!(of(Order::LiveTree) > 2 * of(Order::Tournament), "{events:?}");
    assert!(of(Order::Auto) > 0, "it stayed a scan: {events:?}");
}
