//! Stateful DRF over time, against Eq. 6 where it is exact and against small steps where it is not.

#![allow(clippy::unwrap_used)]

use evenhand_mechanisms::{Mechanism, MechanismOptions, Problem, User, mechanism_named};
use evenhand_model::{Quantity, Rational, Span, to_f64};
use evenhand_policies::Decay;
use evenhand_timeline::{
    Interval, Participant, Phase, Scenario, Timeline, TimelineError, TimelineOptions, divide_over_time,
};
use proptest::prelude::*;

fn q(text: &str) -> Rational {
    Quantity::parse(text).unwrap().exact().clone()
}

fn tenth(n: u32) -> Rational {
    Rational::from_parts(n.into(), 10u8.into())
}

fn mechanism(name: &str) -> &'static dyn Mechanism {
    mechanism_named(name).unwrap()
}

/// Commitments with a time constant of 100 s / ln 2.
fn options() -> TimelineOptions {
    TimelineOptions { decay: Some(Decay::from_half_life(Span::from_secs(100)).unwrap()), ..TimelineOptions::default() }
}

fn run(scenario: &Scenario, options: &TimelineOptions) -> Timeline<f64> {
    divide_over_time::<f64>(scenario, mechanism("sdrf"), options).unwrap()
}

/// Returns c after `s` seconds of constant overuse.
fn eq_6(c: f64, overuse: f64, s: f64) -> f64 {
    let kept = (-s * std::f64::consts::LN_2 / 100.0).exp();
    overuse + (c - overuse) * kept
}

#[test]
fn commitments_grow_and_decay_by_equation_6() {
    let a = Participant::new([
        Phase::new(q("0"), [q("1/10"), q("1/20")]).until(q("250")),
        Phase::new(q("400"), [q("1/10"), q("1/20")]).until(q("500")),
    ]);
    let b = Participant::new([Phase::new(q("900"), [q("1/10"), q("1/10")]).limit(q("3")).until(q("1000"))]);
    let timeline = run(&Scenario::new(2, [a, b]).unwrap(), &options());
    let begins: Vec<f64> = timeline.intervals.iter().map(|i| i.from).collect();
    assert_eq!(begins, [0.0, 250.0, 400.0, 500.0, 900.0]);
    assert!(timeline.intervals.iter().all(|i| i.ending.is_none()), "no user's tasks change");
    let mut c = [0.0, 0.0];
    for (interval, overuse) in timeline.intervals.iter().zip([[0.5, 0.0], [0.0; 2], [0.5, 0.0], [0.0; 2], [0.0; 2]]) {
        for r in 0..2 {
            assert!((interval.commitments[r] - c[r]).abs() < 1e-12, "{interval:?} {c:?}");
            c[r] = eq_6(c[r], overuse[r], interval.length().unwrap());
        }
    }
    assert_eq!(timeline.left, [Some(500.0), Some(1000.0)]);
    assert_eq!(timeline.intervals[4].users[1].as_ref().unwrap().tasks, 3.0);
}

#[test]
fn a_newcomer_gets_more_until_the_commitment_has_decayed() {
    let a = Participant::new([Phase::new(q("0"), [q("1")])]);
    let b = Participant::new([Phase::new(q("300"), [q("1")])]);
    let timeline = run(&Scenario::new(1, [a, b]).unwrap(), &options());
    let share = |i: &Interval<f64>, user: usize| i.users[user].as_ref().unwrap().tasks;
    // From then on both are partly served: o_a = (1 - c_a + c_b) / 2.
    let c = eq_6(0.0, 0.5, 300.0);
    let first = timeline.intervals.iter().position(|i| i.from == 300.0).unwrap();
    assert!((share(&timeline.intervals[first], 1) - (1.0 + c) / 2.0).abs() < 1e-12);
    let moving = &timeline.intervals[first..];
    assert!(moving.windows(2).all(|w| share(&w[1], 1) <= share(&w[0], 1) + 1e-9), "the advantage fades");
    let last = moving.last().unwrap();
    assert_eq!((last.until, last.ending.is_none()), (None, true), "and then it is at rest");
    assert!((share(last, 0) - 0.5).abs() < 1e-8, "{last:?}");
    assert!(last.commitments.iter().all(|c| *c < 1e-6), "{last:?}");
    // While A has less than its half, c_a only fades, and B's commits: c_a' = -c_a,
    // c_b' = (c_a - c_b) / 2 - c_b with b = (1 + c_a - c_b) / 2, so c_b = c (s - s^(3/2)).
    for i in moving.iter().take(20) {
        let s = (-(i.from - 300.0) * std::f64::consts::LN_2 / 100.0).exp();
        let expected = [c * s, c * (s - s.powf(1.5))];
        for (found, expected) in i.commitments.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-9, "{} {expected} {found}", i.from);
        }
    }
}

#[test]
fn a_user_leaves_when_its_work_is_complete() {
    let a = Participant::new([Phase::new(q("0"), [q("1")])]);
    let b = Participant::new([Phase::new(q("300"), [q("1")]).work(q("50"))]);
    let scenario = Scenario::new(1, [a, b]).unwrap();
    let stateless = divide_over_time::<f64>(&scenario, mechanism("max-min"), &options()).unwrap();
    assert_eq!(stateless.left, [None, Some(400.0)]);
    let stateful = run(&scenario, &options());
    let done = stateful.left[1].unwrap();
    assert!(done < 400.0 && done > 350.0, "{done}");
    // Integral of (1 + c s^(3/2)) / 2 over the time of presence, in seconds.
    let c = eq_6(0.0, 0.5, 300.0);
    let tau = 100.0 / std::f64::consts::LN_2;
    let s = (-(done - 300.0) / tau).exp();
    let work = (done - 300.0 + c * tau * (1.0 - s.powf(1.5)) / 1.5) / 2.0;
    assert!((work - 50.0).abs() < 1e-6, "{work}");
}

#[test]
fn exact_answers_exist_only_while_commitments_are_constant() {
    let a = |limit: &str| Participant::new([Phase::new(q("0"), [q("1/9")]).limit(q(limit)).until(q("10"))]);
    let b = Participant::new([Phase::new(q("0"), [q("1/3")]).until(q("20"))]);
    let fair = Scenario::new(1, [a("9/2"), b.clone()]).unwrap();
    let stop = TimelineOptions { until: Some(q("10")), ..TimelineOptions::default() };
    let timeline = divide_over_time::<Rational>(&fair, mechanism("sdrf"), &stop).unwrap();
    let tasks: Vec<_> = timeline.intervals[0].users.iter().map(|u| u.as_ref().unwrap().tasks.clone()).collect();
    assert_eq!(tasks, [q("9/2"), q("3/2")]);
    let error = divide_over_time::<Rational>(&fair, mechanism("sdrf"), &TimelineOptions::default()).unwrap_err();
    assert_eq!(error, TimelineError::CommitmentsMove { mechanism: "sdrf", user: 1, from: 10.0 });
    let missing = divide_over_time::<f64>(&fair, mechanism("sdrf"), &TimelineOptions::default()).unwrap_err();
    assert_eq!(missing, TimelineError::NoDecay { mechanism: "sdrf" });
    let invalid = TimelineOptions { tolerance: f64::NAN, ..options() };
    assert!(matches!(
        divide_over_time::<f64>(&fair, mechanism("sdrf"), &invalid),
        Err(TimelineError::InvalidOption { .. })
    ));
}

/// Users with up to two phases, on a grid of tens of seconds so that events coincide.
fn scenarios() -> impl Strategy<Value = Scenario> {
    let demand = |width| proptest::collection::vec(1u32..=6, width);
    let limit = prop_oneof![1 => Just(None), 2 => (1u32..=12).prop_map(Some)];
    (1usize..=3).prop_flat_map(move |width| {
        let phase = (0u32..20, 1u32..20, demand(width), limit.clone());
        let user = (1u32..=3, proptest::collection::vec(phase, 1..=2), proptest::collection::vec(0u32..4, width));
        proptest::collection::vec(user, 2..=4).prop_map(move |users| {
            let users: Vec<Participant> = users
                .into_iter()
                .map(|(weight, phases, past)| {
                    let mut at = 0;
                    let phases: Vec<Phase> = phases
                        .into_iter()
                        .map(|(gap, length, demand, limit)| {
                            let from = at + gap;
                            at = from + length;
                            let demand: Vec<Rational> = demand.into_iter().map(tenth).collect();
                            let phase = Phase::new(Rational::from(from * 10), demand).until(Rational::from(at * 10));
                            Phase { limit: limit.map(tenth), ..phase }
                        })
                        .collect();
                    let commitment = past.into_iter().map(|c| tenth(c) / Rational::from(4u8)).collect();
                    Participant { commitment, ..Participant::new(phases) }.weight(Rational::from(weight))
                })
                .collect();
            Scenario::new(width, users).unwrap()
        })
    })
}

/// Reference model: Heun's method in equal small steps from the start of each interval to its end, with commitments of
/// all users, present or not.
struct Heun<'a> {
    scenario: &'a Scenario,
    entitlements: Vec<f64>,
    tau: f64,
}

impl Heun<'_> {
    fn slope(&self, phases: &[Option<usize>], c: &[f64]) -> Vec<f64> {
        let width = self.scenario.resource_count();
        let here: Vec<usize> = (0..phases.len()).filter(|u| phases[*u].is_some()).collect();
        let users = here.iter().map(|&u| {
            let phase = &self.scenario.users()[u].phases[phases[u].unwrap()];
            User {
                weight: to_f64(&self.scenario.users()[u].weight),
                demand: phase.demand.iter().map(to_f64).collect(),
                limit: phase.limit.as_ref().map(to_f64),
                commitment: c[u * width..][..width].iter().map(|c| c.max(0.0)).collect(),
            }
        });
        let problem = Problem::new(width, users).unwrap();
        let tasks = mechanism("sdrf").divide(&problem, &MechanismOptions::default()).unwrap().tasks;
        let mut slope: Vec<f64> = c.iter().map(|c| -c / self.tau).collect();
        for (i, &u) in here.iter().enumerate() {
            for (r, d) in problem.demand(i).iter().enumerate() {
                slope[u * width + r] += (d * tasks[i] - self.entitlements[u]).max(0.0) / self.tau;
            }
        }
        slope
    }

    fn after(&self, phases: &[Option<usize>], mut c: Vec<f64>, seconds: f64) -> Vec<f64> {
        let steps = (seconds / 0.2).ceil();
        let h = seconds / steps;
        for _ in 0..steps as usize {
            let first = self.slope(phases, &c);
            let tried: Vec<f64> = c.iter().zip(&first).map(|(c, k)| c + h * k).collect();
            let second = self.slope(phases, &tried);
            for (c, (a, b)) in c.iter_mut().zip(first.iter().zip(&second)) {
                *c += h * (a + b) / 2.0;
            }
        }
        c
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn small_steps_converge_to_the_same_commitments(scenario in scenarios()) {
        let timeline = run(&scenario, &options());
        let reference = Heun {
            scenario: &scenario,
            entitlements: (0..scenario.users().len()).map(|u| to_f64(&scenario.entitlement(u))).collect(),
            tau: options().decay.unwrap().tau_s(),
        };
        let mut c = timeline.intervals[0].commitments.clone();
        for pair in timeline.intervals.windows(2) {
            prop_assert_eq!(pair[0].until, Some(pair[1].from));
            let phases: Vec<Option<usize>> = pair[0].users.iter().map(|u| u.as_ref().map(|s| s.phase)).collect();
            c = reference.after(&phases, c, pair[0].length().unwrap());
            for (found, expected) in pair[1].commitments.iter().zip(&c) {
                prop_assert!((found - expected).abs() < 5e-6, "{}: {} {}", pair[1].from, found, expected);
            }
        }
        for (u, participant) in scenario.users().iter().enumerate() {
            let end = to_f64(participant.phases.last().unwrap().until.as_ref().unwrap());
            prop_assert_eq!(timeline.left[u], Some(end));
        }
    }

    #[test]
    fn splitting_a_phase_changes_nothing_and_commitments_stay_bounded(scenario in scenarios(), at in 0u32..380) {
        let whole = run(&scenario, &options());
        // An event that changes nothing: a phase in two.
        let at = Rational::from(at) + q("1/3");
        let split: Vec<Participant> = scenario.users().iter().map(|user| {
            let phases = user.phases.iter().flat_map(|phase| {
                let until = phase.until.clone().unwrap();
                if phase.from < at && at < until {
                    let first = phase.clone().until(at.clone());
                    vec![first, Phase { from: at.clone(), ..phase.clone() }]
                } else {
                    vec![phase.clone()]
                }
            });
            Participant { phases: phases.collect(), ..user.clone() }
        }).collect();
        let split = run(&Scenario::new(scenario.resource_count(), split).unwrap(), &options());
        let (a, b) = (whole.intervals.last().unwrap(), split.intervals.last().unwrap());
        let tasks = |i: &Interval<f64>| -> Vec<f64> {
            i.users.iter().map(|u| u.as_ref().map_or(0.0, |s| s.tasks)).collect()
        };
        prop_assert_eq!(a.until, b.until);
        if a.from == b.from {
            for (a, b) in tasks(a).iter().zip(tasks(b)).chain(a.commitments.iter().zip(b.commitments.clone())) {
                prop_assert!((a - b).abs() < 1e-7 * (1.0 + b), "{} {}", a, b);
            }
        }
        for interval in whole.intervals.iter().chain(&split.intervals) {
            for (i, c) in interval.commitments.iter().enumerate() {
                let user = i / scenario.resource_count();
                let start = scenario.users()[user].commitment.iter().map(to_f64).fold(0.0, f64::max);
                let most = (1.0 - to_f64(&scenario.entitlement(user))).max(start);
                prop_assert!((0.0..=most + 1e-9).contains(c), "{} of {}", c, most);
            }
            let ending = interval.ending.as_ref().map_or(&interval.loads, |e| &e.loads);
            prop_assert!(interval.loads.iter().chain(ending).all(|load| *load <= 1.0 + 1e-9));
        }
    }

    /// With a half-life of 146 years, 400 seconds leave commitments below a ten-millionth.
    #[test]
    fn without_commitments_it_is_drf(scenario in scenarios()) {
        let users: Vec<Participant> =
            scenario.users().iter().map(|u| Participant { commitment: Vec::new(), ..u.clone() }).collect();
        let scenario = Scenario::new(scenario.resource_count(), users).unwrap();
        let long = Decay::from_half_life(Span::MAX).ok();
        let long = TimelineOptions { decay: long, ..options() };
        let (stateful, drf) = (run(&scenario, &long), divide_over_time::<f64>(&scenario, mechanism("drf"), &long).unwrap());
        // The first interval has no commitments at all.
        prop_assert_eq!(&stateful.intervals[0].users, &drf.intervals[0].users);
        for interval in &stateful.intervals {
            let same = drf.intervals.iter().rfind(|i| i.from <= interval.from).unwrap();
            for (a, b) in interval.users.iter().zip(&same.users) {
                let tasks = |u: &Option<evenhand_timeline::UserShare<f64>>| u.as_ref().map_or(0.0, |s| s.tasks);
                prop_assert!((tasks(a) - tasks(b)).abs() < 2e-6 * (1.0 + tasks(b)));
            }
        }
    }
}

#[test]
fn the_instant_at_which_commitments_begin_makes_no_interval() {
    // The user holds half of the first resource, its entitlement, and all of the second: at the start both commitments are 0,
    // then the second is the largest.
    let a = Participant::new([Phase::new(q("0"), [q("1/9"), q("2/9")]).until(q("100"))]);
    let b = Participant::new([Phase::new(q("200"), [q("1/9"), q("2/9")]).until(q("300"))]);
    let options = TimelineOptions {
        decay: Some(Decay::from_delta(&Quantity::parse("0.999999").unwrap()).unwrap()),
        ..TimelineOptions::default()
    };
    let timeline = run(&Scenario::new(2, [a, b]).unwrap(), &options);
    let begins: Vec<f64> = timeline.intervals.iter().map(|i| i.from).collect();
    assert_eq!(begins, [0.0, 100.0, 200.0]);
    assert_eq!((timeline.intervals[0].level, timeline.intervals[0].commitments[1]), (Some(1.0), 0.0));
}
