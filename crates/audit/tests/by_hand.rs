//! Small pasts whose findings were worked out by hand, and two simulated ones.
#![allow(clippy::unwrap_used)]

use evenhand_audit::{Audit, Past, PastError, Property, Window};
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
    Past::original(workload).unwrap().audit(&capacity, of, &Property::ALL, Window::default()).unwrap()
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
fn nobody_complains_of_an_even_past() {
    // b's first task waits, but he holds his half of the processors.
    let w = workload(&[("a", 0, 0, 100, 5, 5), ("b", 0, 0, 50, 5, 5), ("b", 0, 50, 50, 5, 5)]);
    assert_eq!(lines(&audit(&w, &Weights::equal(2))), []);
    // From 0 to 50 b holds 5 and would hold 10 of his 5.
    assert_eq!(audit(&w, &Weights::equal(2)).waiting_ns, 50_000_000_000);
}

#[test]
fn what_is_idle_is_not_to_be_waited_for() {
    // 6 of 10 are free of cpu and 10 of mem: a waits for 4 of nothing's being short. He is alone, so
    // everything is his.
    let w = workload(&[("a", 0, 0, 100, 4, 0), ("a", 10, 40, 10, 6, 10)]);
    assert_eq!(
        lines(&audit(&w, &Weights::equal(1))),
        [
            ("pareto", Some(0), None, None, 30, 1, 10, None),
            // 30 s short of mem entirely, of cpu by 6/10 only.
            ("sharing_incentive", Some(0), None, Some(1), 30, 1, 10, Some(30)),
        ]
    );
}

#[test]
fn a_task_that_fits_exactly_fits_and_one_that_does_not_has_a_bottleneck() {
    // b would take all that is left of cpu, and is alone in wanting memory.
    let exactly = workload(&[("a", 0, 0, 20, 8, 0), ("b", 0, 20, 10, 2, 9)]);
    assert_eq!(
        lines(&audit(&exactly, &Weights::equal(2))),
        // Not the sharing incentive: 9 of memory are more than his half.
        [("pareto", Some(1), None, None, 20, 1, 0, None)]
    );
    // One processor more, and cpu keeps him waiting; of that he would hold 3 of his 5, so he can complain,
    // on cpu only.
    let more = workload(&[("a", 0, 0, 20, 8, 0), ("b", 0, 20, 10, 3, 9)]);
    assert_eq!(
        lines(&audit(&more, &Weights::equal(2))),
        [("no_justified_complaint", Some(1), None, Some(0), 20, 1, 0, Some(10))]
    );
}

#[test]
fn with_exactly_his_entitlement_he_complains_and_with_more_he_does_not() {
    let w = |wanted| workload(&[("a", 0, 0, 20, 10, 0), ("b", 0, 20, 10, wanted, 0)]);
    assert_eq!(
        lines(&audit(&w(5), &Weights::equal(2))),
        [
            // b has no memory and wants none, so of both resources a holds at least as much as b would.
            ("sharing_incentive", Some(1), None, Some(0), 20, 1, 0, Some(10)),
            ("envy_free", Some(1), Some(0), None, 20, 1, 0, None),
            ("no_justified_complaint", Some(1), None, Some(0), 20, 1, 0, Some(10)),
        ]
    );
    // Sorted by duration, user, then property; the sixth processor is not his, but a has it.
    assert_eq!(lines(&audit(&w(6), &Weights::equal(2))), [("envy_free", Some(1), Some(0), None, 20, 1, 0, None)]);
    // Half the weight of a, a third of 10: 3 of cpu are his and 4 not; of a's 10 he may envy 5.
    let third = weights(&["1", "1/2"]);
    assert_eq!(lines(&audit(&w(4), &third)), [("envy_free", Some(1), Some(0), None, 20, 1, 0, None)]);
    assert_eq!(lines(&audit(&w(3), &third)).len(), 3);
    assert_eq!(lines(&audit(&w(6), &third)), []);
}

#[test]
fn a_complaint_that_stops_for_a_while_has_two_intervals() {
    // From 10 to 20 c is there too: a third of cpu is 3.33, and b's 4 are more than that.
    let w = workload(&[("a", 0, 0, 30, 10, 0), ("b", 0, 30, 5, 4, 0), ("c", 10, 20, 0, 1, 0)]);
    let found = lines(&audit(&w, &Weights::equal(3)));
    let of_b = |name| *found.iter().find(|l| l.0 == name && l.1 == Some(1)).unwrap();
    assert_eq!(of_b("no_justified_complaint"), ("no_justified_complaint", Some(1), None, Some(0), 20, 2, 0, Some(10)));
    // Envy does not ask who else is there.
    assert_eq!(of_b("envy_free"), ("envy_free", Some(1), Some(0), None, 30, 1, 0, None));
    // c's task of no duration waited 10 s like any other, and never held anything.
    assert_eq!(
        found.iter().filter(|l| l.1 == Some(2)).map(|l| (l.0, l.4)).collect::<Vec<_>>(),
        [("sharing_incentive", 10), ("envy_free", 10), ("no_justified_complaint", 10)]
    );
}

#[test]
fn the_first_submitted_counts_even_if_a_later_one_starts_first() {
    // b's first task asks for 6, his second for 1; the second starts at once. The first waits, and with it
    // he would hold 7 of his 5.
    let w = workload(&[("a", 0, 0, 20, 9, 0), ("b", 0, 20, 5, 6, 0), ("b", 0, 0, 20, 1, 0)]);
    assert_eq!(lines(&audit(&w, &Weights::equal(2))), [("envy_free", Some(1), Some(0), None, 20, 1, 0, None)]);
}

#[test]
fn more_than_there_is_is_a_finding_on_the_resource() {
    let w = workload(&[("a", 0, 0, 20, 10, 1), ("b", 5, 10, 5, 5, 1)]);
    let found = audit(&w, &Weights::equal(2));
    // Half as much again as there is, for 5 s.
    assert_eq!(lines(&found).last(), Some(&("no_justified_complaint", Some(1), None, Some(0), 5, 1, 5, Some(3))));
    assert_eq!(lines(&found)[0], ("feasible", None, None, Some(0), 5, 1, 10, Some(3)));
    // By itself as capacity it is feasible, and b waits for what is idle.
    let past = Past::original(&w).unwrap();
    let peak = past.peak_capacity().unwrap();
    assert_eq!((peak.units(0), peak.units(1)), (15.0, 2.0));
    let found = past.audit(&peak, &Weights::equal(2), &Property::ALL, Window::default()).unwrap();
    assert_eq!(lines(&found)[0].0, "pareto");
}

#[test]
fn a_window_cuts_off_what_is_before_and_after() {
    let w = workload(&[("a", 0, 0, 100, 10, 0), ("b", 10, 100, 5, 5, 0)]);
    let past = Past::original(&w).unwrap();
    let window = Window { from: Time::from_secs(20), until: Time::from_secs(60) };
    let capacity = past.peak_capacity().unwrap();
    let found = past.audit(&capacity, &Weights::equal(2), &[Property::EnvyFree], window).unwrap();
    assert_eq!(lines(&found), [("envy_free", Some(1), Some(0), None, 40, 1, 20, None)]);
    assert_eq!((found.from, found.until, found.waiting_ns), (window.from, window.until, 40_000_000_000));
    let after = Window { from: Time::from_secs(200), until: Time::MAX };
    let none = past.audit(&capacity, &Weights::equal(2), &Property::ALL, after).unwrap();
    assert_eq!((none.findings.len(), none.waiting_ns), (0, 0));
}

#[test]
fn what_cannot_be_audited_says_why() {
    let mut b = WorkloadBuilder::new([Resource::new("cpu", "")]);
    b.push(&Task { user: "a", amounts: &[1], duration: Span::from_secs(1), ..Task::default() });
    let w = b.finish().unwrap();
    assert_eq!(Past::original(&w).unwrap_err(), PastError::NoStarts);
    assert_eq!(Past::with_starts(&w, &[NO_TIME]).unwrap_err(), PastError::NoStarts);
    let past = Past::with_starts(&w, &[5]).unwrap();
    let capacity = past.peak_capacity().unwrap();
    let run = |of: &Weights| past.audit(&capacity, of, &Property::ALL, Window::default()).map(|a| a.findings.len());
    assert_eq!(run(&weights(&["1e30"])), Err(PastError::Weights));
    // 5 ns of waiting for what is idle, and his.
    assert_eq!(run(&weights(&["54/13"])), Ok(2));

    let mut b = WorkloadBuilder::new([Resource::new("cpu", "")]);
    let start = Some(Time::ZERO);
    let amounts = [999_999_999_999_999_999 * 1_000_000_000];
    b.push(&Task { user: "a", amounts: &amounts, start, duration: Span::from_secs(1), count: 20, ..Task::default() });
    let w = b.finish().unwrap();
    assert_eq!(Past::original(&w).unwrap_err(), PastError::TooMuch { resource: "cpu".into() });
}

/// The waiting time with each property not holding, in user-seconds, of a simulated run.
fn complaints(w: &Workload, capacity: &Capacity, policy: &str) -> Vec<(&'static str, f64)> {
    let of = Weights::equal(w.users().len());
    let mut policy = Registry::built_in().build(policy, &PolicyContext::new(capacity, &of).decay(None)).unwrap();
    let tasks = UserTasks::new(w);
    let run = simulate(w, &tasks, capacity, policy.as_mut(), PoolOptions::default(), &Progress::default()).unwrap();
    let past = Past::with_starts(w, &run.starts).unwrap();
    let audit = past.audit(capacity, &of, &Property::ALL, Window::default()).unwrap();
    audit.summaries.iter().map(|s| (s.property.name(), s.complaint_ns as f64 / 1e9)).collect()
}

#[test]
fn drf_leaves_less_to_complain_of_than_fifo() {
    let options = GenerateOptions { model: TraceModel::Google2011, tasks: 20_000, users: 40, days: 1.0, seed: 7 };
    let w = generate(&options).unwrap().expanded();
    let capacity = Capacity::multiple(w.resources(), &mean_use(&w), &Quantity::parse("0.75").unwrap()).unwrap();
    let (fifo, drf) = (complaints(&w, &capacity, "fifo"), complaints(&w, &capacity, "drf"));
    // A simulated pool never holds more than it has.
    assert_eq!((fifo[0], drf[0]), (("feasible", 0.0), ("feasible", 0.0)));
    for name in ["sharing_incentive", "envy_free", "no_justified_complaint"] {
        let of = |of: &[(&str, f64)]| of.iter().find(|(n, _)| *n == name).unwrap().1;
        assert!(2.0 * of(&drf) < of(&fifo), "{name}: drf {}, fifo {}", of(&drf), of(&fifo));
    }
}
