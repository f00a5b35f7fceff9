//! Processor equivalents: the oracles of the reference (6.1) and what holds for any job on any machines.

#![allow(clippy::unwrap_used)]

use evenhand_model::{Rational, Resource};
use evenhand_policies::equivalents::{Combine, Equivalents, Weakness};
use proptest::collection::vec;
use proptest::prelude::*;

fn q(n: i64, d: u64) -> Rational {
    Rational::from_parts(n.into(), d.into())
}

fn resources() -> [Resource; 3] {
    ["cpu", "mem", "gpu"].map(|name| Resource::new(name, ""))
}

fn prices(kinds: &[(u32, [i64; 3])], combine: Combine) -> Equivalents {
    let kinds = kinds.iter().map(|(count, has)| (*count, has.map(|x| q(x, 1)).to_vec()));
    Equivalents::new(&resources(), kinds, combine).unwrap()
}

/// Machines of 16 processors and 64 GB, 8 and 256, 64 and 512.
fn reference(combine: Combine) -> Equivalents {
    prices(&[(1, [16, 64, 0]), (1, [8, 256, 0]), (1, [64, 512, 0])], combine)
}

#[test]
fn the_reference_s_jobs_cost_what_it_says() {
    let all = reference(Combine::default());
    let on = |chunk: [i64; 3]| -> Vec<Option<Rational>> {
        let chunk = chunk.map(|x| q(x, 1));
        (0..3).map(|k| all.on(k, &chunk).ok().map(|e| e.processors)).collect()
    };
    let some = |n: i64, d: u64| Some(q(n, d));
    assert_eq!(on([1, 32, 0]), [some(8, 1), some(1, 1), some(4, 1)]);
    assert_eq!(on([4, 4, 0]), [some(4, 1), some(4, 1), some(4, 1)]);
    assert_eq!(on([16, 64, 0]), [some(16, 1), None, some(16, 1)]);
    assert_eq!(on([2, 200, 0]), [None, some(25, 4), some(25, 1)]);
    assert_eq!(on([1, 600, 0]), [None, None, None]);
    let lowest = |chunk: [i64; 3]| all.lowest(&chunk.map(|x| q(x, 1))).map(|(k, e)| (k, e.processors, e.decides));
    assert_eq!(lowest([1, 32, 0]), Some((1, q(1, 1), 0)));
    // Equals: the first kind.
    assert_eq!(lowest([4, 4, 0]), Some((0, q(4, 1), 0)));
    assert_eq!(lowest([2, 200, 0]), Some((1, q(25, 4), 1)));
    assert_eq!(lowest([1, 600, 0]), None);
    assert_eq!(all.of_totals(&[q(1, 1), q(32, 1), q(0, 1)]).processors, q(44, 13));
    let why = all.on(0, &[q(2, 1), q(200, 1), q(0, 1)]).unwrap_err();
    assert_eq!((why.resource, why.wanted, why.has), (1, q(200, 1), q(64, 1)));
}

#[test]
fn gpus_count_in_three_ways() {
    // 2 machines of 32 processors, 128 GB and 2 GPUs; 4 processors, 64 GB and 1 GPU are wanted.
    let of = |combine, chunk: [i64; 3]| {
        let e = prices(&[(2, [32, 128, 2])], combine).on(0, &chunk.map(|x| q(x, 1))).unwrap();
        (e.processors, e.decides)
    };
    assert_eq!(of(Combine::Max, [4, 16, 1]), (q(16, 1), 2));
    assert_eq!(of(Combine::Sum, [4, 64, 1]), (q(4 + 16 + 16, 1), 1));
    // 16 for the memory, and 64 processors / 4 GPUs for the GPU.
    assert_eq!(of(Combine::MaxPlusOptional, [4, 64, 1]), (q(16 + 16, 1), 1));
    assert_eq!(of(Combine::MaxPlusOptional, [4, 16, 0]), (q(4, 1), 0));
}

#[test]
fn without_processors_there_is_nothing_to_count_in() {
    let gpus = [Resource::new("gpu", "")];
    let error = Equivalents::new(&gpus, [(1, vec![q(1, 1)])], Combine::Max).unwrap_err();
    assert_eq!(
        error.to_string(),
        "processor equivalents need processors: no resource is called cpu, cpus, cores, processors"
    );
}

#[test]
fn one_odd_machine_and_smaller_pieces_make_it_cheap() {
    // 100 machines of 16 processors and 64 GB, one of 4 and 1024.
    let all = prices(&[(100, [16, 64, 0]), (1, [4, 1024, 0])], Combine::default());
    let chunk = [q(1, 1), q(32, 1), q(0, 1)];
    assert_eq!(
        all.weaknesses(&chunk, |_| true),
        [Weakness::OddMachines { kind: 1, part: q(1, 401), without: q(8, 1) }]
    );
    assert_eq!(all.weaknesses(&chunk, |k| k == 0), []);
    // 2 processors and 200 GB: the second kind, with 8 of 88 processors. Each half fits on the first kind too, but
    // costs no less.
    let all = reference(Combine::default());
    assert_eq!(
        all.weaknesses(&[q(2, 1), q(200, 1), q(0, 1)], |_| true),
        [Weakness::OddMachines { kind: 1, part: q(1, 11), without: q(25, 1) }]
    );
    // 16 processors and 400 GB fit on the third only, at 50; its halves on the second, at 8 each.
    assert_eq!(
        all.weaknesses(&[q(16, 1), q(400, 1), q(0, 1)], |_| true),
        [Weakness::Split { pieces: 2, together: q(16, 1) }]
    );
}

fn machines() -> impl Strategy<Value = Vec<(u32, [i64; 3])>> {
    vec((1..4_u32, (1..65_i64, 0..65_i64, 0..5_i64)).prop_map(|(n, (c, m, g))| (n, [c, m, g])), 1..6)
}

fn chunk() -> impl Strategy<Value = [i64; 3]> {
    (0..33_i64, 0..33_i64, 0..3_i64).prop_map(|(c, m, g)| [c, m, g])
}

fn combine() -> impl Strategy<Value = Combine> {
    prop::sample::select(Combine::ALL.to_vec())
}

fn lowest(all: &Equivalents, chunk: &[Rational]) -> Option<Rational> {
    all.lowest(chunk).map(|(_, e)| e.processors)
}

proptest! {
    /// K1: no user holds less than its processors. K4: the lowest price over the machines that fit.
    #[test]
    fn a_price_is_the_least_of_those_that_fit(kinds in machines(), wanted in chunk(), combine in combine()) {
        let all = prices(&kinds, combine);
        let chunk = wanted.map(|x| q(x, 1));
        let fits = |has: &[i64; 3]| wanted.iter().zip(has).all(|(w, h)| w <= h);
        let on: Vec<Option<Rational>> = (0..kinds.len()).map(|k| all.on(k, &chunk).ok().map(|e| e.processors)).collect();
        for (on, (_, has)) in on.iter().zip(&kinds) {
            prop_assert_eq!(on.is_some(), fits(has));
            prop_assert!(on.as_ref().is_none_or(|pe| *pe >= chunk[0]));
        }
        prop_assert_eq!(lowest(&all, &chunk), on.into_iter().flatten().min());
    }

    /// K2: no less for more, and no more with more machines to choose from. The latter where kappa, which is
    /// of all machines, is no part of it.
    #[test]
    fn more_costs_more_and_choice_less(kinds in machines(), wanted in chunk(), more in chunk(), combine in combine()) {
        let all = prices(&kinds, combine);
        let (chunk, larger) = (wanted.map(|x| q(x, 1)), [0, 1, 2].map(|r| q(wanted[r] + more[r], 1)));
        if let Some(price) = lowest(&all, &larger) {
            prop_assert!(lowest(&all, &chunk).unwrap() <= price);
        }
        if combine != Combine::MaxPlusOptional || wanted[2] == 0 {
            let fewer = prices(&kinds[..kinds.len().div_ceil(2)], combine);
            if let Some(price) = lowest(&fewer, &chunk) {
                prop_assert!(lowest(&all, &chunk).unwrap() <= price);
            }
        }
    }

    /// Independent of the unit of memory; on a fixed machine k times the chunk is k times the price.
    #[test]
    fn units_do_not_matter_and_prices_are_homogeneous(kinds in machines(), wanted in chunk(), k in 1..1000_i64, combine in combine()) {
        let all = prices(&kinds, combine);
        let other = kinds.iter().map(|(n, [c, m, g])| (*n, [*c, m * 1024, *g])).collect::<Vec<_>>();
        let in_other = [q(wanted[0], 1), q(wanted[1] * 1024, 1), q(wanted[2], 1)];
        let chunk = wanted.map(|x| q(x, 1));
        prop_assert_eq!(lowest(&all, &chunk), lowest(&prices(&other, combine), &in_other));
        let part = chunk.clone().map(|x| x / q(k, 1));
        for kind in 0..kinds.len() {
            if let Ok(whole) = all.on(kind, &chunk) {
                prop_assert_eq!(all.on(kind, &part).unwrap().processors * q(k, 1), whole.processors);
            }
        }
    }

    /// K10: a job without GPUs pays the same whether or not there are any.
    #[test]
    fn who_has_no_gpu_pays_for_none(kinds in machines(), wanted in chunk()) {
        let without = kinds.iter().map(|(n, [c, m, _])| (*n, [*c, *m, 0])).collect::<Vec<_>>();
        let chunk = [q(wanted[0], 1), q(wanted[1], 1), q(0, 1)];
        let price = |kinds: &[(u32, [i64; 3])]| lowest(&prices(kinds, Combine::MaxPlusOptional), &chunk);
        prop_assert_eq!(price(&kinds), price(&without));
    }
}
