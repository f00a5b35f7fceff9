//! The structures that order users, against a plain map, each other, and exact sorting.

#![allow(clippy::unwrap_used)]

use std::cmp::Ordering;
use std::collections::BTreeMap;

use evenhand_model::Rational;
use evenhand_policies::Order;
use evenhand_policies::kinetic::{LineOrder, LiveLines, LiveTree, Priority, Tournament};
use proptest::prelude::*;

const USERS: u32 = 24;
type Lines = ([f64; 2], [f64; 2]);

#[derive(Clone, Debug)]
enum Operation {
    Set(u32, Lines),
    /// The same lines for two users: equal for ever.
    Copy(u32, u32),
    Remove(u32),
    /// s becomes s times this.
    Advance(f64),
    /// To where two users' lines cross, or a last digit beside it, if that is to come.
    AdvanceToCrossing(u32, u32, i8),
    /// The epoch moves on by so many half-lives.
    Rebase(u8),
}

fn quantised() -> impl Strategy<Value = f64> + Clone {
    (-8i32..9).prop_map(|n| f64::from(n) / 8.0)
}

/// Thirds, sevenths, and numbers a last digit away: lines that cross within rounding of each other.
fn rough() -> impl Strategy<Value = f64> + Clone {
    (-8i32..9, prop::sample::select(vec![1.0, 3.0, 7.0, 0.1]), -1i8..2).prop_map(|(n, d, digit)| {
        let x = f64::from(n) / d;
        match digit {
            -1 => x.next_down(),
            0 => x,
            _ => x.next_up(),
        }
    })
}

fn operations<C: Strategy<Value = f64> + Clone + 'static>(coefficient: C) -> impl Strategy<Value = Vec<Operation>> {
    let pair = move || [coefficient.clone(), coefficient.clone()];
    let users = (0..USERS, 0..USERS);
    let operation = prop_oneof![
        6 => (0..USERS, pair(), pair()).prop_map(|(u, a, b)| Operation::Set(u, (a, b))),
        2 => users.clone().prop_map(|(u, v)| Operation::Copy(u, v)),
        2 => (0..USERS).prop_map(Operation::Remove),
        3 => (1u8..8).prop_map(|k| Operation::Advance(1.0 - f64::from(k) / 16.0)),
        3 => (users, -1i8..2).prop_map(|((u, v), digit)| Operation::AdvanceToCrossing(u, v, digit)),
        1 => prop::sample::select(vec![1, 5, 40]).prop_map(Operation::Rebase),
    ];
    prop::collection::vec(operation, 0..120)
}

/// The obvious expected.
struct Map {
    lines: BTreeMap<u32, Lines>,
    s: f64,
}

impl Map {
    /// Applies an operation to the map and to structures; returns the s that was passed.
    fn apply(&mut self, operation: &Operation, structures: &mut [&mut dyn LineOrder]) {
        let set = |map: &mut Map, structures: &mut [&mut dyn LineOrder], user: u32, lines: Lines| {
            map.lines.insert(user, lines);
            structures.iter_mut().for_each(|x| x.set(user, &lines.0, &lines.1));
        };
        match *operation {
            Operation::Set(user, lines) => set(self, structures, user, lines),
            Operation::Copy(user, other) => {
                if let Some(&lines) = self.lines.get(&other) {
                    set(self, structures, user, lines);
                }
            }
            Operation::Remove(user) => {
                self.lines.remove(&user);
                structures.iter_mut().for_each(|x| x.remove(user));
            }
            Operation::Advance(factor) => self.s *= factor,
            Operation::AdvanceToCrossing(u, v, digit) => {
                let (Some(x), Some(y)) = (self.lines.get(&u), self.lines.get(&v)) else { return };
                let crossing = |p: usize, q: usize| (y.0[q] - x.0[p]) / (x.1[p] - y.1[q]);
                let crossings = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(p, q)| crossing(p, q));
                let next = crossings.into_iter().filter(|&c| c < self.s && c > self.s / 8.0).fold(0.0, f64::max);
                self.s = match digit {
                    _ if next == 0.0 => self.s,
                    -1 => next.next_down(),
                    0 => next,
                    _ => next.next_up().min(self.s),
                };
            }
            Operation::Rebase(half_lives) => {
                let factor = 0.5f64.powi(i32::from(half_lives));
                self.s /= factor;
                self.lines.values_mut().for_each(|l| l.1 = l.1.map(|b| b * factor));
                structures.iter_mut().for_each(|x| x.rebase(factor));
            }
        }
    }

    fn near(&self, relative: f64, absolute: f64) -> Vec<u32> {
        let value = |l: &Lines| (l.0[0] + l.1[0] * self.s).max(l.0[1] + l.1[1] * self.s);
        let lowest = self.lines.values().map(value).fold(f64::INFINITY, f64::min);
        let limit = lowest + (lowest.abs() * relative + absolute);
        self.lines.iter().filter(|(_, l)| value(l) <= limit).map(|(u, _)| *u).collect()
    }

    /// All users by priority, then by the priority right after, then by number; in rationals.
    fn sorted(&self) -> Vec<u32> {
        let rational = |x: f64| Rational::try_from(x).unwrap();
        let top = |l: &Lines| {
            let at = |r: usize| (rational(l.0[r]) + rational(l.1[r]) * rational(self.s), -rational(l.1[r]));
            at(0).max(at(1))
        };
        let mut users: Vec<_> = self.lines.iter().map(|(u, l)| (top(l), *u)).collect();
        users.sort();
        users.into_iter().map(|(_, u)| u).collect()
    }
}

fn structures() -> Vec<Box<dyn LineOrder>> {
    let mut all: Vec<Box<dyn LineOrder>> = Order::ALL.into_iter().map(|o| o.structure(USERS as usize, 2)).collect();
    // One that has to grow.
    all.push(Box::new(Tournament::new(0, 2)));
    all
}

fn check(operations: &[Operation], relative: f64, absolute: f64) -> Result<(), TestCaseError> {
    let mut structures = structures();
    let mut structures: Vec<&mut dyn LineOrder> =
        structures.iter_mut().map(|x| x.as_mut() as &mut dyn LineOrder).collect();
    let mut map = Map { lines: BTreeMap::new(), s: 1.0 };
    let mut near = Vec::new();
    for operation in operations {
        map.apply(operation, &mut structures);
        let expected = map.near(relative, absolute);
        for (k, structure) in structures.iter_mut().enumerate() {
            structure.lowest(map.s, relative, absolute, &mut near);
            near.sort_unstable();
            prop_assert_eq!(&near, &expected, "structure {} after {:?}", k, operation);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn all_structures_find_those_of_a_map(operations in operations(quantised()), absolute in 0u8..4) {
        check(&operations, 0.0, f64::from(absolute) / 8.0)?;
    }

    /// Even the last digits of values decide alike.
    #[test]
    fn all_structures_find_those_of_a_map_with_rounding(operations in operations(rough()), within in 0u8..4) {
        check(&operations, f64::from(within) * 1e-16, f64::from(within % 2) * 1e-16)?;
    }

    /// The whole order of the live tree, however often it is asked on the way; and no more events at a
    /// time than users.
    #[test]
    fn the_live_tree_is_sorted(operations in operations(rough()), asked in 1usize..6) {
        let (mut always, mut sometimes) = (LiveLines::new(2), LiveLines::new(2));
        let mut map = Map { lines: BTreeMap::new(), s: 1.0 };
        for (i, operation) in operations.iter().enumerate() {
            map.apply(operation, &mut [&mut always, &mut sometimes]);
            for live in [Some(&mut always), (i % asked == 0).then_some(&mut sometimes)].into_iter().flatten() {
                let before = live.order_events();
                live.lowest(map.s, 0.0, 0.0, &mut Vec::new());
                prop_assert!(live.order_events() - before <= map.lines.len() as u64);
                prop_assert_eq!(live.users().collect::<Vec<_>>(), map.sorted(), "after {:?}", operation);
            }
        }
    }

    /// Moving the epoch changes nothing: one structure is rebased, the other is not.
    #[test]
    fn a_rebase_changes_no_comparison(operations in operations(rough()), every in 1usize..8) {
        for order in Order::ALL {
            let (mut still, mut rebased) = (order.structure(USERS as usize, 2), order.structure(USERS as usize, 2));
            let mut map = Map { lines: BTreeMap::new(), s: 1.0 };
            let mut shadow = Map { lines: BTreeMap::new(), s: 1.0 };
            let (mut near, mut near_rebased) = (Vec::new(), Vec::new());
            let mut factor = 1.0;
            for (i, operation) in operations.iter().enumerate() {
                match operation {
                    Operation::Rebase(_) | Operation::AdvanceToCrossing(..) => continue,
                    Operation::Set(u, (a, b)) => {
                        // Below the normal numbers a factor does round: the test below.
                        let b = b.map(|b| if b.abs() < f64::MIN_POSITIVE { 0.0 } else { b });
                        map.apply(&Operation::Set(*u, (*a, b)), &mut [still.as_mut()]);
                        let b = b.map(|b| b * factor);
                        shadow.apply(&Operation::Set(*u, (*a, b)), &mut [rebased.as_mut()]);
                    }
                    _ => {
                        map.apply(operation, &mut [still.as_mut()]);
                        shadow.apply(operation, &mut [rebased.as_mut()]);
                    }
                }
                if i % every == 0 {
                    shadow.apply(&Operation::Rebase(3), &mut [rebased.as_mut()]);
                    factor /= 8.0;
                }
                prop_assert_eq!(map.s, shadow.s * factor);
                still.lowest(map.s, 0.0, 0.0, &mut near);
                rebased.lowest(shadow.s, 0.0, 0.0, &mut near_rebased);
                prop_assert_eq!(&near, &near_rebased);
                prop_assert_eq!(still.order_events(), rebased.order_events());
            }
        }
    }
}

#[test]
fn slopes_too_small_for_a_number_are_nothing() {
    for order in Order::ALL {
        let mut structure = order.structure(3, 1);
        let mut near = Vec::new();
        // 0 and 1 differ by a slope that two epochs take away; 2 is above by its last digit.
        structure.set(0, &[0.5], &[3e-320]);
        structure.set(1, &[0.5], &[1e-320]);
        structure.set(2, &[0.5f64.next_up()], &[1e-320]);
        structure.lowest(1.0, 0.0, 0.0, &mut near);
        near.sort_unstable();
        assert_eq!(near, [0, 1], "{order:?}: 0.5 swallows both slopes");
        for factor in [2f64.powi(-40), 0.0] {
            structure.rebase(factor);
            structure.lowest(1.0, 0.0, 0.0, &mut near);
            near.sort_unstable();
            assert_eq!(near, [0, 1], "{order:?} {factor}");
        }
        structure.set(1, &[0.0], &[1.0]);
        structure.lowest(0.75, 0.0, 0.0, &mut near);
        assert_eq!(near, [0], "{order:?}");
        structure.lowest(0.25, 0.0, 0.0, &mut near);
        assert_eq!(near, [1], "{order:?}");
    }
}

#[test]
fn users_of_the_reference_swap_three_times() {
    // At n = 4: shares (9/20, 7/10) with commitments (3/4, 1/5); (3/4, 11/20) with (1/20, 11/20).
    let mut live = LiveLines::new(2);
    live.set(0, &[0.65, 1.15], &[0.55, -0.25]);
    live.set(1, &[1.25, 0.85], &[-0.45, 0.25]);
    let mut order = Vec::new();
    for s in [1.0, 0.67, 0.66, 0.61, 0.59, 0.51, 0.49, 0.01] {
        live.lowest(s, 0.0, 0.0, &mut Vec::new());
        order.push((live.users().next().unwrap(), live.order_events()));
    }
    let (i, k) = (0, 1);
    assert_eq!(order, [(k, 0), (k, 0), (i, 1), (i, 1), (k, 2), (k, 2), (i, 3), (i, 3)]);
}

#[test]
fn a_swap_due_now_is_handled_now() {
    let mut live = LiveLines::new(1);
    // At s = 1/2 all are at 1; right below it the steepest is lowest.
    live.set(0, &[1.0], &[0.0]);
    live.set(1, &[0.5], &[1.0]);
    live.set(2, &[0.0], &[2.0]);
    let at = |live: &mut LiveLines, s: f64| {
        live.lowest(s, 0.0, 0.0, &mut Vec::new());
        live.users().collect::<Vec<_>>()
    };
    assert_eq!(at(&mut live, 0.75), [0, 1, 2]);
    assert_eq!(at(&mut live, 0.5), [2, 1, 0]);
    assert_eq!(at(&mut live, 0.25), [2, 1, 0]);
}

/// Numbers that repeat, one a second: a priority that is not a line, swaps any number of times,
/// and is often equal to another.
#[derive(Clone, Debug)]
struct Wave(Vec<i8>);

impl Wave {
    fn at(&self, now: u32) -> i8 {
        self.0[now as usize % self.0.len()]
    }
}

impl Priority for Wave {
    type Time = u32;

    fn compare(&self, other: &Wave, now: u32) -> Ordering {
        self.at(now).cmp(&other.at(now))
    }

    fn next_swap(&self, other: &Wave, now: u32, loses_ties: bool) -> Option<u32> {
        let period = (self.0.len() * other.0.len()) as u32;
        (now + 1..=now + period).find(|&t| match self.compare(other, t) {
            Ordering::Less => false,
            Ordering::Equal => loses_ties,
            Ordering::Greater => true,
        })
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Any priorities: the tree is what sorting gives, whatever is put in and taken out on the way.
    #[test]
    fn a_live_tree_of_anything_is_sorted(
        operations in prop::collection::vec(
            (0u32..12, prop::option::of(prop::collection::vec(-3i8..4, 1..6)), 0u32..5), 0..60),
    ) {
        let mut tree = LiveTree::new(0);
        let mut map = BTreeMap::new();
        let mut now = 0;
        for (index, wave, pass) in operations {
            let wave = wave.map(Wave);
            match wave.clone() {
                Some(wave) => {
                    let before = map.insert(index, wave.clone()).map(|w: Wave| w.0);
                    prop_assert_eq!(tree.insert(index, wave).map(|w| w.0), before);
                }
                None => prop_assert_eq!(tree.remove(index).map(|w| w.0), map.remove(&index).map(|w| w.0)),
            }
            now += pass;
            let events = tree.events();
            tree.advance(now);
            prop_assert!(tree.events() - events <= map.len() as u64);
            prop_assert!(tree.next_event().is_none_or(|t| t > now));
            let mut sorted: Vec<u32> = map.keys().copied().collect();
            sorted.sort_by_key(|u| (map[u].at(now), *u));
            prop_assert_eq!(tree.iter().collect::<Vec<_>>(), &sorted[..]);
            for (k, &u) in sorted.iter().enumerate() {
                prop_assert_eq!(tree.successor(u), sorted.get(k + 1).copied());
                prop_assert_eq!(tree.predecessor(u), k.checked_sub(1).map(|k| sorted[k]));
            }
            prop_assert_eq!((tree.len(), tree.first()), (map.len(), sorted.first().copied()));
        }
    }
}
