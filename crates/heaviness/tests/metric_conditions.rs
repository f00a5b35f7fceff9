//! C1 to C6 for every metric: the conditions that hold, on random vectors in exact numbers; those that can be violated,
//! by a counterexample.
#![allow(clippy::unwrap_used)]

use evenhand_heaviness::{Cloud, METRICS, Metric, MetricCondition, Number, Parameters};
use evenhand_model::Rational;
use proptest::prelude::*;

/// Vectors in eighths on which a condition is checked.
#[derive(Clone, Debug)]
struct Sample {
    a: Vec<u8>,
    b: Vec<u8>,
    factors: Vec<u8>,
}

fn eighths<N: Number>(x: &[u8]) -> Vec<N> {
    x.iter().map(|x| N::from_count(usize::from(*x)) / &N::from_count(8)).collect()
}

fn plus<N: Number>(a: &[N], b: &[N]) -> Vec<N> {
    a.iter().zip(b).map(|(a, b)| a.clone() + b).collect()
}

/// Returns whether the condition holds for the sample, also if its premise does not. `a` and `b` are an endowment and a
/// load, x and y, or a quota and the excess of another.
fn holds<N: Number>(condition: MetricCondition, metric: &dyn Metric<N>, sample: &Sample) -> bool {
    let (a, b, factors): (Vec<N>, Vec<N>, Vec<N>) = (eighths(&sample.a), eighths(&sample.b), eighths(&sample.factors));
    let width = a.len();
    let something = |x: &[N]| x.iter().any(|x| x.is_positive());
    let sum = plus(&a, &b);
    let cloud = |quotas: Vec<Vec<N>>| {
        let quotas = quotas.into_iter().map(|row| row.into_iter().map(Some).collect()).collect();
        Cloud::new(vec![N::one(); width], quotas).unwrap()
    };
    let even = cloud(vec![vec![N::one(); width]; 2]);
    let h = |e: &[N], u: &[N]| metric.workload_heaviness(&even, &factors, e, u);
    match condition {
        MetricCondition::C1 => {
            let [less, more] = [&a, &sum].map(|e| metric.static_heaviness(&even, e));
            less >= N::zero() && (!something(&b) || more > less)
        }
        MetricCondition::C2 => {
            let d = metric.dynamic_heaviness(&even, &factors, &a, &b);
            !something(&a) || (h(&a, &b).is_positive() && d > -metric.static_heaviness(&even, &a))
        }
        MetricCondition::C3 => !something(&b) || h(&a, &sum) > h(&sum, &sum),
        MetricCondition::C4 => metric.dynamic_heaviness(&even, &factors, &a, &a).is_zero(),
        MetricCondition::C5 => !something(&b) || metric.dynamic_heaviness(&even, &factors, &sum, &a) < N::zero(),
        MetricCondition::C6 => {
            // A third user's quota, so that neither user has the largest share of the resource in which they differ.
            let cloud = cloud(vec![a.clone(), sum, factors.clone()]);
            let mut sums = vec![N::zero(); metric.terms(width)];
            metric.add_terms(&cloud, &factors, &b, &a, &mut sums);
            let totals = plus(&sums, &sums);
            let [smaller, larger] = [0, 1].map(|user| metric.user_heaviness(&cloud, user, &sums, &totals));
            !something(&b) || larger < smaller
        }
    }
}

fn parameters(slopes: &[(&str, (u16, u16))]) -> Parameters {
    let mut p = Parameters::default();
    for (name, (n, d)) in slopes {
        let value = Some(Rational::from_parts((*n).into(), (*d).into()));
        match *name {
            "k" => p.k = value,
            "beta" => p.beta = value,
            "gamma" => p.gamma = value,
            _ => p.saturation = value,
        }
    }
    p
}

type Check = Box<dyn Fn(MetricCondition, &Sample) -> bool>;

/// Each metric with the parameters that matter, the conditions that it declares as violated, and its check.
fn all() -> Vec<(String, Vec<MetricCondition>, Check)> {
    let mut all: Vec<(String, Vec<MetricCondition>, Check)> = Vec::new();
    for metric in METRICS {
        let variants: &[&[(&str, (u16, u16))]] = match metric.name {
            "deviation" => {
                &[&[], &[("beta", (1001, 1000)), ("gamma", (999, 1000))], &[("beta", (9, 1)), ("gamma", (1, 1000))]]
            }
            "greediness" => &[
                &[],
                &[("k", (0, 1))],
                &[("k", (1, 2))],
                &[("beta", (1, 1)), ("gamma", (1, 1))],
                &[("beta", (1, 1)), ("gamma", (1, 2))],
            ],
            "bottleneck" => &[&[], &[("saturation", (1, 1))]],
            _ => &[&[]],
        };
        for variant in variants {
            let p = parameters(variant);
            let name = format!("{} {variant:?}", metric.name);
            let float = (metric.build)(&p).unwrap();
            match metric.build_exact {
                Some(build) => {
                    let exact = build(&p).unwrap();
                    assert_eq!(exact.violated_conditions(), float.violated_conditions());
                    all.push((name, exact.violated_conditions(), Box::new(move |c, s| holds(c, exact.as_ref(), s))));
                }
                None => {
                    all.push((name, float.violated_conditions(), Box::new(move |c, s| holds(c, float.as_ref(), s))))
                }
            }
        }
    }
    all
}

fn sample() -> impl Strategy<Value = Sample> {
    (1_usize..=4).prop_flat_map(|width| {
        let row = |max: u8| prop::collection::vec(prop_oneof![Just(0), Just(max), 0..=max], width);
        (row(8), row(8), row(8)).prop_map(|(a, b, factors)| Sample { a, b, factors })
    })
}

proptest! {
    #[test]
    fn conditions_that_a_metric_does_not_declare_as_violated_hold(sample in sample()) {
        for (name, breaks, check) in all() {
            for condition in MetricCondition::ALL.into_iter().filter(|c| !breaks.contains(c)) {
                prop_assert!(check(condition, &sample), "{name}: {condition:?}");
            }
        }
    }
}

#[test]
fn every_condition_declared_as_violated_has_a_counterexample() {
    let row = |i: u32| vec![[0, 4, 8][(i % 3) as usize], [0, 4, 8][(i / 3 % 3) as usize]];
    let grid = || (0..729).map(|i| Sample { a: row(i), b: row(i / 9), factors: row(i / 81) });
    for (name, breaks, check) in all() {
        for condition in breaks {
            assert!(grid().any(|s| !check(condition, &s)), "{name}: no counter-example to {condition:?}");
        }
    }
}

/// The counterexamples in the documentation.
#[test]
fn documented_counterexamples_violate_their_condition() {
    let one = |a, b, factors| Sample { a: vec![a], b: vec![b], factors: vec![factors] };
    let fails = |name: &str, variant: &[(&str, (u16, u16))], condition, sample: &Sample| {
        let metric = evenhand_heaviness::metric_named(name).unwrap();
        let exact = (metric.build_exact.unwrap())(&parameters(variant)).unwrap();
        assert!(!holds(condition, exact.as_ref(), sample), "{name} {condition:?}");
        exact
    };
    // No workload exceeds its endowment: leaving half of the endowment unused earns no credit.
    fails("greediness", &[], MetricCondition::C5, &one(4, 4, 0));
    // k = 0: the workload is idle, and others use its whole endowment.
    fails("greediness", &[("k", (0, 1))], MetricCondition::C2, &one(8, 0, 8));
    // beta = gamma = 1: exactly as heavy.
    let nova = parameters(&[("beta", (1, 1)), ("gamma", (1, 1))]);
    let nova = (evenhand_heaviness::metric_named("greediness").unwrap().build_exact.unwrap())(&nova).unwrap();
    for (x, y) in (0..=8).flat_map(|x| (1..=8).map(move |y| (x, y))) {
        assert!(!holds(MetricCondition::C3, nova.as_ref(), &one(x, y, 8)));
    }
    // The quota of a resource that is not the user's dominant one.
    let sample = Sample { a: vec![8, 2], b: vec![0, 2], factors: vec![0, 8] };
    fails("dominant", &[], MetricCondition::C6, &sample);
}

/// A larger quota of every resource makes a user lighter under `drf`, and never heavier under `bottleneck`.
#[test]
fn larger_quotas_of_all_resources_make_a_user_lighter() {
    for (load, more) in (0..=16).flat_map(|load| (1..=8).map(move |more| (load, more))) {
        let quotas = [vec![4, 6], vec![4 + more, 6 + more]];
        let quotas = quotas.map(|q| eighths::<Rational>(&q).into_iter().map(Some).collect()).to_vec();
        let cloud = Cloud::new(vec![Rational::ONE; 2], quotas).unwrap();
        let sums: Vec<Rational> = eighths(&[load, 16 - load]);
        let of = |name| {
            let build = evenhand_heaviness::metric_named(name).unwrap().build_exact.unwrap();
            let metric = build(&Parameters::default()).unwrap();
            [0, 1].map(|user| metric.user_heaviness(&cloud, user, &sums, &plus(&sums, &sums)))
        };
        let [drf, bottleneck] = ["drf", "bottleneck"].map(of);
        assert!(drf[1] < drf[0] && bottleneck[1] <= bottleneck[0], "{load} {more}");
    }
}
