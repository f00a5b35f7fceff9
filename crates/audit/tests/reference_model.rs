//! Compares the audit with a reference model that evaluates the definitions for each elementary interval from scratch,
//! in exact rationals, over all tasks.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};

use evenhand_audit::{Audit, History, Property, Window};
use evenhand_model::{
    Capacity, Quantity, Rational, Resource, Span, Task, Time, Weights, Workload, WorkloadBuilder, to_f64,
};
use proptest::prelude::*;

/// A task of the reference model; times in seconds.
#[derive(Clone, Debug)]
struct Row {
    user: usize,
    submit: u64,
    start: Option<u64>,
    duration: u64,
    amounts: Vec<u64>,
    count: u32,
}

/// Property, disadvantaged user, envied user, resource.
type Key = (Property, Option<usize>, Option<usize>, Option<usize>);

#[derive(Debug, Default)]
struct ReferenceModel {
    /// The elementary intervals of each finding.
    found: BTreeMap<Key, Vec<(u64, u64)>>,
    /// Share-seconds below entitlement (or above capacity), by property, user and resource.
    short: BTreeMap<(Property, Option<usize>, usize), Rational>,
    /// The elementary intervals in which each user waits.
    waits: BTreeMap<usize, Vec<(u64, u64)>>,
}

fn number(n: u64) -> Rational {
    Rational::from(n)
}

fn evaluate(
    rows: &[Row],
    users: usize,
    capacity: &[Rational],
    weights: &[Rational],
    window: (u64, u64),
) -> ReferenceModel {
    let rows: Vec<&Row> = rows.iter().filter(|row| row.start.is_some()).collect();
    let mut events: BTreeSet<u64> = BTreeSet::from([window.0, window.1]);
    for row in &rows {
        let start = row.start.unwrap();
        events.extend([row.submit, start, start + row.duration]);
    }
    let events: Vec<u64> = events.into_iter().filter(|t| (window.0..=window.1).contains(t)).collect();
    let mut model = ReferenceModel::default();
    for step in events.windows(2) {
        let (now, next) = (step[0], step[1]);
        let runs = |row: &&&Row| row.start.unwrap() <= now && now < row.start.unwrap() + row.duration;
        let waits = |row: &&&Row| row.submit <= now && now < row.start.unwrap();
        let held: Vec<Vec<Rational>> = (0..users)
            .map(|i| {
                let of = |r: usize| {
                    let own = rows.iter().filter(runs).filter(|row| row.user == i);
                    own.fold(Rational::ZERO, |sum, row| sum + number(row.amounts[r] * u64::from(row.count)))
                };
                (0..capacity.len()).map(of).collect()
            })
            .collect();
        let running: Vec<bool> = (0..users).map(|i| rows.iter().filter(runs).any(|row| row.user == i)).collect();
        // Rows are sorted by submission: the first one found was submitted first.
        let first: Vec<Option<&&Row>> =
            (0..users).map(|i| rows.iter().filter(waits).find(|row| row.user == i)).collect();
        let active = (0..users).filter(|&i| running[i] || first[i].is_some());
        let active_weight = active.fold(Rational::ZERO, |sum, i| sum + &weights[i]);
        let total: Vec<Rational> =
            (0..capacity.len()).map(|r| (0..users).fold(Rational::ZERO, |sum, i| sum + &held[i][r])).collect();
        let mut found: BTreeSet<Key> = BTreeSet::new();
        let seconds = number(next - now);
        let mut short = |property, who, r: usize, share: Rational| {
            *model.short.entry((property, who, r)).or_insert(Rational::ZERO) += share * &seconds;
        };
        for r in 0..capacity.len() {
            if total[r] > capacity[r] {
                found.insert((Property::Feasible, None, None, Some(r)));
                short(Property::Feasible, None, r, (&total[r] - &capacity[r]) / &capacity[r]);
            }
        }
        for i in 0..users {
            let Some(task) = first[i] else { continue };
            model.waits.entry(i).or_default().push((now, next));
            let d: Vec<Rational> = task.amounts.iter().map(|a| number(*a)).collect();
            let entitlement = &weights[i] / &active_weight;
            let with_it: Vec<Rational> = (0..d.len()).map(|r| &held[i][r] + &d[r]).collect();
            let within = |r: usize| with_it[r] <= &entitlement * &capacity[r];
            let below = |r: usize| &entitlement - &held[i][r] / &capacity[r];
            let blocking: Vec<usize> =
                (0..d.len()).filter(|&r| !d[r].is_zero() && &total[r] + &d[r] > capacity[r]).collect();
            if blocking.is_empty() {
                found.insert((Property::Pareto, Some(i), None, None));
            }
            if (0..d.len()).all(within) {
                found.insert((Property::SharingIncentive, Some(i), None, None));
                (0..d.len()).for_each(|r| short(Property::SharingIncentive, Some(i), r, below(r)));
            }
            if !blocking.is_empty() && blocking.iter().all(|&r| within(r)) {
                for &r in &blocking {
                    found.insert((Property::NoJustifiedComplaint, Some(i), None, Some(r)));
                    short(Property::NoJustifiedComplaint, Some(i), r, below(r));
                }
            }
            for k in (0..users).filter(|&k| k != i && running[k]) {
                let scale = &weights[i] / &weights[k];
                if (0..d.len()).all(|r| with_it[r] <= &scale * &held[k][r]) {
                    found.insert((Property::EnvyFree, Some(i), Some(k), None));
                }
            }
        }
        for key in found {
            model.found.entry(key).or_default().push((now, next));
        }
    }
    model
}

/// Merges adjacent intervals.
fn joined(pieces: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut whole: Vec<(u64, u64)> = Vec::new();
    for &(a, b) in pieces {
        match whole.last_mut() {
            Some(last) if last.1 == a => last.1 = b,
            _ => whole.push((a, b)),
        }
    }
    whole
}

fn length(pieces: &[(u64, u64)]) -> u64 {
    pieces.iter().map(|(a, b)| b - a).sum()
}

fn workload(rows: &[Row], users: usize, width: usize) -> Workload {
    let mut b = WorkloadBuilder::new((0..width).map(|r| Resource::new(format!("r{r}"), "")));
    // One task per user first, so that users keep their indices; it has zero duration and never waits.
    for user in 0..users {
        let start = Some(Time::ZERO);
        b.push(&Task { user: &user.to_string(), start, amounts: &vec![0; width], ..Task::default() });
    }
    for row in rows {
        let amounts: Vec<u128> = row.amounts.iter().map(|&a| u128::from(a) * 1_000_000_000).collect();
        b.push(&Task {
            submit: Time::from_secs(row.submit),
            start: row.start.map(Time::from_secs),
            duration: Span::from_secs(row.duration),
            user: &row.user.to_string(),
            amounts: &amounts,
            count: row.count,
            ..Task::default()
        });
    }
    b.finish().unwrap()
}

fn secs(s: u64) -> Span {
    Span::from_secs(s)
}

fn assert_agreement(audit: &Audit, model: &ReferenceModel) {
    let index = |id: Option<evenhand_model::UserId>| id.map(|u| u.index());
    let mut seen = BTreeSet::new();
    for f in &audit.findings {
        let on = f.on.filter(|_| f.property != Property::SharingIncentive);
        let key = (f.property, index(f.who), index(f.against), on);
        assert!(seen.insert(key), "duplicate {key:?}");
        let whole = joined(model.found.get(&key).unwrap_or_else(|| panic!("{f:?} is not in the reference model")));
        let longest = whole.iter().map(|(a, b)| b - a).max().unwrap();
        assert_eq!(
            (f.duration, f.intervals, f.longest, f.first),
            (secs(length(&whole)), whole.len() as u64, secs(longest), Time::from_secs(whole[0].0)),
            "{key:?}"
        );
        assert_eq!(f.share_hours.is_some(), f.on.is_some(), "{key:?}");
        if let Some(r) = f.on {
            let exact = to_f64(&model.short[&(f.property, key.1, r)]) / 3600.0;
            assert!((f.share_hours.unwrap() - exact).abs() <= 1e-9 * exact.abs().max(1e-3), "{key:?}: {exact}");
        }
        if f.property == Property::SharingIncentive {
            // The resource with the most share-hours; ties go to the first.
            let of = |r: usize| &model.short[&(f.property, key.1, r)];
            let r = f.on.unwrap();
            assert!((0..).map_while(|o| model.short.get(&(f.property, key.1, o))).all(|o| o <= of(r)));
            assert!((0..r).all(|o| of(o) < of(r)), "{key:?}: ties go to the first");
        }
    }
    assert_eq!(seen, model.found.keys().copied().collect());
    let order = |f: &evenhand_audit::Finding| (std::cmp::Reverse(f.duration), f.who, f.property, f.against, f.on);
    assert!(audit.findings.is_sorted_by_key(order));

    let waiting: u64 = model.waits.values().map(|w| length(w)).sum();
    assert_eq!(audit.waiting_ns, u128::from(waiting) * 1_000_000_000);
    for summary in &audit.summaries {
        // For each subject (user; for `feasible` resource) the union over its findings.
        let mut union: BTreeMap<_, BTreeSet<(u64, u64)>> = BTreeMap::new();
        for ((property, who, _, on), pieces) in &model.found {
            let subject = if *property == Property::Feasible { *on } else { *who };
            if *property == summary.property {
                union.entry(subject).or_default().extend(pieces);
            }
        }
        let total: u64 = union.values().flatten().map(|(a, b)| b - a).sum();
        assert_eq!(summary.complaint_ns, u128::from(total) * 1_000_000_000, "{summary:?}");
        let of_users = summary.property != Property::Feasible;
        assert_eq!(summary.users, if of_users { union.len() } else { 0 });
        assert_eq!(summary.findings, model.found.keys().filter(|k| k.0 == summary.property).count());
        let share = (of_users && waiting > 0).then(|| total as f64 / waiting as f64);
        assert_eq!(summary.share_of_waiting, share);
    }
}

fn row(users: usize, width: usize) -> impl Strategy<Value = Row> {
    // Few distinct values, so that ties in time and in amounts are common.
    let start = prop_oneof![1 => Just(None), 9 => (0u64..16).prop_map(Some)];
    let amounts = prop::collection::vec(prop_oneof![1 => Just(0u64), 4 => 1u64..4], width);
    let count = prop_oneof![4 => Just(1u32), 1 => 2u32..4];
    (0..users, 0u64..8, start, 0u64..8, amounts, count).prop_map(|(user, submit, start, duration, amounts, count)| {
        Row { user, submit, start, duration, amounts, count }
    })
}

/// Rows, users, capacity, weights, window.
type Case = (Vec<Row>, usize, Vec<Rational>, Vec<Rational>, (u64, u64));

fn case() -> impl Strategy<Value = Case> {
    (1usize..6, 1usize..4).prop_flat_map(|(users, width)| {
        let quantity = |texts: &'static [&'static str]| {
            prop::sample::select(texts).prop_map(|t| Quantity::parse(t).unwrap().exact().clone())
        };
        let window = prop_oneof![Just((0u64, 1000u64)), (0u64..12, 0u64..12).prop_map(|(a, l)| (a, a + l))];
        (
            prop::collection::vec(row(users, width), 1..24),
            Just(users),
            prop::collection::vec(quantity(&["1", "3", "4", "6", "13/2", "12", "1e30"]), width),
            prop::collection::vec(quantity(&["1", "1", "1", "2", "1/3", "0.5", "1000000007"]), users),
            window,
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_audit_agrees_with_the_reference_model((mut rows, users, capacity, weights, window) in case()) {
        rows.sort_by_key(|row| row.submit);
        let w = workload(&rows, users, capacity.len());
        let history = History::original(&w).unwrap();
        let pool = Capacity::new(w.resources(), capacity.clone()).unwrap();
        let weighted = Weights::new(weights.iter().map(|w| Quantity::from(w.clone()))).unwrap();
        let bounds = Window { from: Time::from_secs(window.0), until: Time::from_secs(window.1) };
        let audit = history.audit(&pool, &weighted, &Property::ALL, bounds).unwrap();
        assert_agreement(&audit, &evaluate(&rows, users, &capacity, &weights, window));
        // Auditing one property at a time gives the same findings.
        for property in Property::ALL {
            let alone = history.audit(&pool, &weighted, &[property], bounds).unwrap();
            let all = audit.findings.iter().filter(|f| f.property == property);
            prop_assert!(alone.findings.iter().eq(all));
        }
    }
}
