//! Small histories with findings computed by hand, and two simulated histories.
#![allow(clippy::unwrap_used)]

use evenhand_audit::{Audit, AuditError, History, Property, Window};
use evenhand_model::{
    Capacity, NO_TIME, Quantity, Resource, Span, Task, Time, Weights, Workload, WorkloadBuilder, mean_use,
};
use evenhand_policies::{PolicyContext, Registry};
use evenhand_simulator::{PoolOptions, Progress, UserTasks, simulate};
use evenhand_workload::generate::{GenerateOptions, TraceModel, generate};

/// User, submit, start, duration, cpu, mem.
type Row<'a> = (&'a str, u64, u64, u64, u64, u64);

fn workload(rows: &[Row<'_>]) -> Workload {
    let mut b = WorkloadBuilder::new([Resource::new("cpu", ""), Resource::new("mem", "")]);
    for &(user, submit, start, duration, cpu, mem) in rows {
        b.push(&Task {
            user,
            submit: Time::from_secs(submit),
            start: Some(Time::from_secs(start)),
            duration: Span::from_secs(duration),
            amounts: &[cpu, mem].map(|a| u128::from(a) * 1_000_000_000),
            ..Task::default()
        });
    }
    b.finish().unwrap()
}

fn weights(w: &[&str]) -> Weights {
    Weights::new(w.iter().map(|w| Quantity::parse(w).unwrap())).unwrap()
}

/// On 10 of each.
fn audit(workload: &Workload, of: &Weights) -> Audit {
    let units = vec![Quantity::parse("10").unwrap().exact().clone(); 2];
    let capacity = Capacity::new(workload.resources(), units).unwrap();
    History::original(workload).unwrap().audit(&capacity, of, &Property::ALL, Window::default()).unwrap()
}

/// Property, who, against, on, seconds, intervals, first second, share-hours times 3600.
type Line = (&'static str, Option<u32>, Option<u32>, Option<usize>, u64, u64, u64, Option<u64>);

fn lines(audit: &Audit) -> Vec<Line> {
    let whole = |t: u64| {
        assert_eq!(t % 1_000_000_000, 0);
        t / 1_000_000_000
    };
    let line = |f: &evenhand_audit::Finding| {
        (
            f.property.name(),
            f.who.map(|u| u.0),
            f.against.map(|u| u.0),
            f.on,
            whole(f.duration.nanos()),
            f.intervals,
            whole(f.first.nanos()),
            f.share_hours.map(|h| (h * 3600.0).round() as u64),
        )
    };
    audit.findings.iter().map(line).collect()
}

#[test]
fn an_equal_allocation_has_no_findings() {
    // b's second task waits, but b holds half of the processors already.
    let w = workload(&[("a", 0, 0, 100, 5, 5), ("b", 0, 0, 50, 5, 5), ("b", 0, 50, 50, 5, 5)]);
    assert_eq!(lines(&audit(&w, &Weights::equal(2))), []);
    // From 0 to 50 b holds 5, is entitled to 5, and would hold 10.
    assert_eq!(audit(&w, &Weights::equal(2)).waiting_ns, 50_000_000_000);
}

#[test]
fn a_user_who_waits_for_free_capacity_is_a_finding() {
    // 6 of 10 cpu and all 10 mem are free, so nothing blocks a's second task. a is alone and entitled to everything.
    let w = workload(&[("a", 0, 0, 100, 4, 0), ("a", 10, 40, 10, 6, 10)]);
    assert_eq!(
        lines(&audit(&w, &Weights::equal(1))),
        [
            ("pareto", Some(0), None, None, 30, 1, 10, None),
            // For 30 s a lacks all mem, but only 6/10 of the cpu.
            ("sharing_incentive", Some(0), None, Some(1), 30, 1, 10, Some(30)),
        ]
    );
}

#[test]
fn a_task_that_fits_exactly_is_not_blocked_and_a_larger_one_is() {
    // b's task would take all remaining cpu; no other user wants memory.
    let exactly = workload(&[("a", 0, 0, 20, 8, 0), ("b", 0, 20, 10, 2, 9)]);
    assert_eq!(
        lines(&audit(&exactly, &Weights::equal(2))),
        // Not the sharing incentive: 9 mem exceed b's half.
        [("pareto", Some(1), None, None, 20, 1, 0, None)]
    );
    // With one processor more, cpu blocks the task; b would hold 3 cpu and is entitled to 5, so b has a complaint on cpu
    // only.
    let more = workload(&[("a", 0, 0, 20, 8, 0), ("b", 0, 20, 10, 3, 9)]);
    assert_eq!(
        lines(&audit(&more, &Weights::equal(2))),
        [("no_justified_complaint", Some(1), None, Some(0), 20, 1, 0, Some(10))]
    );
}

#[test]
fn a_task_that_reaches_the_entitlement_justifies_a_complaint_and_a_larger_one_does_not() {
    let w = |wanted| workload(&[("a", 0, 0, 20, 10, 0), ("b", 0, 20, 10, wanted, 0)]);
    assert_eq!(
        lines(&audit(&w(5), &Weights::equal(2))),
        [
            // b neither holds nor requests memory, so a holds at least as much of both resources as b would.
            ("sharing_incentive", Some(1), None, Some(0), 20, 1, 0, Some(10)),
            ("envy_free", Some(1), Some(0), None, 20, 1, 0, None),
            ("no_justified_complaint", Some(1), None, Some(0), 20, 1, 0, Some(10)),
        ]
    );
    // Findings are sorted by duration, user, property. b is not entitled to a sixth processor, but a holds it.
    assert_eq!(lines(&audit(&w(6), &Weights::equal(2))), [("envy_free", Some(1), Some(0), None, 20, 1, 0, None)]);
    // b has half the weight of a and is entitled to a third of 10: 3 cpu, but not 4. b can envy 5 of a's 10.
    let third = weights(&["1", "1/2"]);
    assert_eq!(lines(&audit(&w(4), &third)), [("envy_free", Some(1), Some(0), None, 20, 1, 0, None)]);
    assert_eq!(lines(&audit(&w(3), &third)).len(), 3);
    assert_eq!(lines(&audit(&w(6), &third)), []);
}

#[test]
fn an_interrupted_complaint_has_two_intervals() {
    // From 10 to 20 c is active too: a third of the cpu is 3.33, which b's 4 exceed.
    let w = workload(&[("a", 0, 0, 30, 10, 0), ("b", 0, 30, 5, 4, 0), ("c", 10, 20, 0, 1, 0)]);
    let found = lines(&audit(&w, &Weights::equal(3)));
    let of_b = |name| *found.iter().find(|l| l.0 == name && l.1 == Some(1)).unwrap();
    assert_eq!(of_b("no_justified_complaint"), ("no_justified_complaint", Some(1), None, Some(0), 20, 2, 0, Some(10)));
    // Envy does not depend on which other users are present.
    assert_eq!(of_b("envy_free"), ("envy_free", Some(1), Some(0), None, 30, 1, 0, None));
    // c's task of zero duration waited 10 s like any other, but never held anything.
    assert_eq!(
        found.iter().filter(|l| l.1 == Some(2)).map(|l| (l.0, l.4)).collect::<Vec<_>>(),
        [("sharing_incentive", 10), ("envy_free", 10), ("no_justified_complaint", 10)]
    );
}

#[test]
fn the_waiting_task_that_was_submitted_first_counts_even_if_a_later_one_starts_first() {
    // b's first task requests 6 cpu, the second 1; the second starts at once. With the first, b would hold 7 and is
    // entitled to 5.
    let w = workload(&[("a", 0, 0, 20, 9, 0), ("b", 0, 20, 5, 6, 0), ("b", 0, 0, 20, 1, 0)]);
    assert_eq!(lines(&audit(&w, &Weights::equal(2))), [("envy_free", Some(1), Some(0), None, 20, 1, 0, None)]);
}

#[test]
fn use_above_the_capacity_is_a_finding_about_the_resource() {
    let w = workload(&[("a", 0, 0, 20, 10, 1), ("b", 5, 10, 5, 5, 1)]);
    let found = audit(&w, &Weights::equal(2));
    // For 5 s users hold 1.5 times the capacity.
    assert_eq!(lines(&found).last(), Some(&("no_justified_complaint", Some(1), None, Some(0), 5, 1, 5, Some(3))));
    assert_eq!(lines(&found)[0], ("feasible", None, None, Some(0), 5, 1, 10, Some(3)));
    // With its own peak as capacity the history is feasible, and b waits for free capacity.
    let history = History::original(&w).unwrap();
    let peak = history.peak_capacity().unwrap();
    assert_eq!((peak.units(0), peak.units(1)), (15.0, 2.0));
    let found = history.audit(&peak, &Weights::equal(2), &Property::ALL, Window::default()).unwrap();
    assert_eq!(lines(&found)[0].0, "pareto");
}

#[test]
fn a_window_limits_the_audited_time() {
    let w = workload(&[("a", 0, 0, 100, 10, 0), ("b", 10, 100, 5, 5, 0)]);
    let history = History::original(&w).unwrap();
    let window = Window { from: Time::from_secs(20), until: Time::from_secs(60) };
    let capacity = history.peak_capacity().unwrap();
    let found = history.audit(&capacity, &Weights::equal(2), &[Property::EnvyFree], window).unwrap();
    assert_eq!(lines(&found), [("envy_free", Some(1), Some(0), None, 40, 1, 20, None)]);
    assert_eq!((found.from, found.until, found.waiting_ns), (window.from, window.until, 40_000_000_000));
    let after = Window { from: Time::from_secs(200), until: Time::MAX };
    let none = history.audit(&capacity, &Weights::equal(2), &Property::ALL, after).unwrap();
    assert_eq!((none.findings.len(), none.waiting_ns), (0, 0));
}

#[test]
fn histories_that_cannot_be_audited_are_errors_with_a_reason() {
    let mut b = WorkloadBuilder::new([Resource::new("cpu", "")]);
    b.push(&Task { user: "a", amounts: &[1], duration: Span::from_secs(1), ..Task::default() });
    let w = b.finish().unwrap();
    assert_eq!(History::original(&w).unwrap_err(), AuditError::NoStarts);
    assert_eq!(History::with_starts(&w, &[NO_TIME]).unwrap_err(), AuditError::NoStarts);
    let history = History::with_starts(&w, &[5]).unwrap();
    let capacity = history.peak_capacity().unwrap();
    let run = |of: &Weights| history.audit(&capacity, of, &Property::ALL, Window::default()).map(|a| a.findings.len());
    assert_eq!(run(&weights(&["1e30"])), Err(AuditError::Weights));
    // 5 ns of waiting for free capacity within the entitlement: two findings.
    assert_eq!(run(&weights(&["54/13"])), Ok(2));

    let mut b = WorkloadBuilder::new([Resource::new("cpu", "")]);
    let start = Some(Time::ZERO);
    let amounts = [999_999_999_999_999_999 * 1_000_000_000];
    b.push(&Task { user: "a", amounts: &amounts, start, duration: Span::from_secs(1), count: 20, ..Task::default() });
    let w = b.finish().unwrap();
    assert_eq!(History::original(&w).unwrap_err(), AuditError::AmountOverflow { resource: "cpu".into() });
}

/// Returns for each property the time in which it is violated in a simulated run, in user-seconds.
fn complaints(w: &Workload, capacity: &Capacity, policy: &str) -> Vec<(&'static str, f64)> {
    let of = Weights::equal(w.users().len());
    let mut policy = Registry::built_in().build(policy, &PolicyContext::new(capacity, &of).decay(None)).unwrap();
    let tasks = UserTasks::new(w);
    let run = simulate(w, &tasks, capacity, policy.as_mut(), PoolOptions::default(), &Progress::default()).unwrap();
    let history = History::with_starts(w, &run.starts).unwrap();
    let audit = history.audit(capacity, &of, &Property::ALL, Window::default()).unwrap();
    audit.summaries.iter().map(|s| (s.property.name(), s.complaint_ns as f64 / 1e9)).collect()
}

#[test]
fn drf_violates_the_properties_for_less_time_than_fifo() {
    let options = GenerateOptions { model: TraceModel::Google2011, tasks: 20_000, users: 40, days: 1.0, seed: 7 };
    let w = generate(&options).unwrap().expanded();
    let capacity = Capacity::multiple(w.resources(), &mean_use(&w), &Quantity::parse("0.75").unwrap()).unwrap();
    let (fifo, drf) = (complaints(&w, &capacity, "fifo"), complaints(&w, &capacity, "drf"));
    // A simulated pool never exceeds its capacity.
    assert_eq!((fifo[0], drf[0]), (("feasible", 0.0), ("feasible", 0.0)));
    for name in ["sharing_incentive", "envy_free", "no_justified_complaint"] {
        let of = |of: &[(&str, f64)]| of.iter().find(|(n, _)| *n == name).unwrap().1;
        assert!(2.0 * of(&drf) < of(&fifo), "{name}: drf {}, fifo {}", of(&drf), of(&fifo));
    }
}
