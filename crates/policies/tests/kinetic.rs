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

fn operations<C: Strategy<Value = f64> + Clone + 'static>(
    coefficient: C,
) -> impl Strategy<Value = Vec<Operation>> {
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

/// The obvious twin.
struct Map {
    lines: BTreeMap<u32, Lines>,
    s: f64,
}

impl Map {
    /// Applies an operation to the map and to structures; says what time s was passed.
    fn apply(&mut self, operation: &Operation, structures: &mut [Box<dyn LineOrder>]) {
        let set = |map: &mut Map, structures: &mut [Box<dyn LineOrder>], user: u32, lines: Lines| {
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
        let least = self.lines.values().map(value).fold(f64::INFINITY, f64::min);
        let limit = least + (least.abs() * relative + absolute);
        self.lines.iter().filter(|(_, l)| value(l) <= limit).map(|(u, _)| *u).collect()
    }

    /// Everybody by priority, then by what comes right after, then by number: in rationals.
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
    let mut all: Vec<Box<dyn LineOrder>> =
        Order::ALL.into_iter().map(|o| o.structure(USERS as usize, 2)).collect();
    // One that has to grow.
    all.push(Box::new(Tournament::new(0, 2)));
    all
}

fn check(operations: &[Operation], relative: f64, absolute: f64) -> Result<(), TestCaseError> {
    let mut structures = structures();
    let mut map = Map { lines: BTreeMap::new(), s: 1.0 };
    let mut near = Vec::new();
    for operation in operations {
        map.apply(operation, &mut structures);
        let twin = map.near(relative, absolute);
        for (k, structure) in structures.iter_mut().enumerate() {
            structure.least(map.s, relative, absolute, &mut near);
            near.sort_unstable();
            prop_assert_eq!(&near, &twin, "structure {} after {:?}", k, operation);
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
        let mut live: Vec<Box<LiveLines>> = vec![Box::new(LiveLines::new(2)), Box::new(LiveLines::new(2))];
        let mut map = Map { lines: BTreeMap::new(), s: 1.0 };
        let mut near = Vec::new();
        for (i, operation) in operations.iter().enumerate() {
            for x in &mut live {
                let mut one: Vec<Box<dyn LineOrder>> = vec![x.clone()];
                // The map must not change twice.
                let mut again = Map { lines: map.lines.clone(), s: map.s };
                again.apply(operation, &mut one);
                drop(one);
                apply_to(x, &map, operation);
            }
            map.apply(operation, &mut []);
            for (k, x) in live.iter_mut().enumerate() {
                if k == 0 || i % asked == 0 {
                    let before = x.order_events();
                    x.least(map.s, 0.0, 0.0, &mut near);
                    prop_assert!(x.order_events() - before <= map.lines.len() as u64);
                    prop_assert_eq!(x.users().collect::<Vec<_>>(), map.sorted());
                }
            }
        }
    }
}
