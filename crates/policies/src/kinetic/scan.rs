//! The plain structure: look at everyone.

use super::LineOrder;

const ABSENT: u32 = u32::MAX;
/// Values are compared in blocks of this many, so that the compiler uses vector instructions.
const BLOCK: usize = 8;

/// A branch-free scan over the users present.
///
/// Lines are kept by branch, present users packed together. `least` costs O(n) simple operations
/// (some 0.3 ns a user and branch), everything else O(branches); between two calls with the same
/// `s` only users that were set again are evaluated. It has no order events.
///
/// ```
/// use evenhand_policies::kinetic::{LineOrder, Scan};
/// let mut scan = Scan::new(2, 1);
/// scan.set(0, &[0.3], &[0.4]);
/// scan.set(1, &[0.5], &[0.1]);
/// let mut near = Vec::new();
/// scan.least(1.0, 0.0, 0.0, &mut near);
/// assert_eq!(near, [1]); // 0.7 and 0.6
/// scan.least(0.5, 0.0, 0.0, &mut near);
/// assert_eq!(near, [0]); // 0.5 and 0.55: they crossed at s = 2/3
/// ```
#[derive(Clone, Debug)]
pub struct Scan {
    slot: Vec<u32>,
    users: Vec<u32>,
    /// One column a branch, one entry a slot.
    a: Vec<Vec<f64>>,
    b: Vec<Vec<f64>>,
    /// Priorities at `at`, by slot.
    values: Vec<f64>,
    at: f64,
}

impl Scan {
    /// For users 0 to n - 1 whose priorities have so many branches, all absent.
    pub fn new(n: usize, branches: usize) -> Scan {
        assert!(branches > 0, "a priority has at least one branch");
        Scan {
            slot: vec![ABSENT; n],
            users: Vec::new(),
            a: vec![Vec::new(); branches],
            b: vec![Vec::new(); branches],
            values: Vec::new(),
            at: f64::NAN,
        }
    }

    fn evaluate(&mut self, s: f64) {
        let n = self.users.len();
        let (a, b) = (&self.a[0][..n], &self.b[0][..n]);
        for (v, (a, b)) in self.values.iter_mut().zip(a.iter().zip(b)) {
            *v = a + b * s;
        }
        for r in 1..self.a.len() {
            let (a, b) = (&self.a[r][..n], &self.b[r][..n]);
            for (v, (a, b)) in self.values.iter_mut().zip(a.iter().zip(b)) {
                let line = a + b * s;
                // Not f64::max, whose care for NaN costs the vector instruction.
                *v = if line > *v { line } else { *v };
            }
        }
        self.at = s;
    }

    fn minimum(&self) -> f64 {
        let mut best = [f64::INFINITY; BLOCK];
        let blocks = self.values.chunks_exact(BLOCK);
        let rest = blocks.remainder();
        for block in blocks {
            for (m, v) in best.iter_mut().zip(block) {
                *m = if *v < *m { *v } else { *m };
            }
        }
        best.iter().chain(rest).fold(f64::INFINITY, |m, &v| if v < m { v } else { m })
    }
}

impl LineOrder for Scan {
    fn set(&mut self, user: u32, a: &[f64], b: &[f64]) {
        let mut slot = self.slot[user as usize];
        if slot == ABSENT {
            slot = self.users.len() as u32;
            self.slot[user as usize] = slot;
            self.users.push(user);
            self.values.push(0.0);
            self.a.iter_mut().chain(&mut self.b).for_each(|column| column.push(0.0));
        }
        let slot = slot as usize;
        let mut value = f64::NEG_INFINITY;
        for r in 0..self.a.len() {
            self.a[r][slot] = a[r];
            self.b[r][slot] = b[r];
            value = value.max(a[r] + b[r] * self.at);
        }
        self.values[slot] = value;
    }

    fn remove(&mut self, user: u32) {
        let slot = std::mem::replace(&mut self.slot[user as usize], ABSENT);
        if slot == ABSENT {
            return;
        }
        let at = slot as usize;
        self.users.swap_remove(at);
        self.values.swap_remove(at);
        self.a.iter_mut().chain(&mut self.b).for_each(|column| {
            column.swap_remove(at);
        });
        if let Some(&moved) = self.users.get(at) {
            self.slot[moved as usize] = slot;
        }
    }

    fn least(&mut self, s: f64, relative: f64, absolute: f64, near: &mut Vec<u32>) {
        if s != self.at {
            self.evaluate(s);
        }
        let least = self.minimum();
        let limit = least + (least.abs() * relative + absolute);
        near.clear();
        near.extend(self.values.iter().zip(&self.users).filter(|(v, _)| **v <= limit).map(|(_, u)| *u));
    }

    fn rebase(&mut self, factor: f64) {
        self.b.iter_mut().flatten().for_each(|b| *b *= factor);
        self.at = f64::NAN;
    }

    fn order_events(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Operation {
        Set(u32, [i8; 2], [i8; 2]),
        Remove(u32),
        Advance(u8),
    }

    fn operation() -> impl Strategy<Value = Operation> {
        prop_oneof![
            3 => (0u32..20, any::<[i8; 2]>(), any::<[i8; 2]>()).prop_map(|(u, a, b)| Operation::Set(u, a, b)),
            1 => (0u32..20).prop_map(Operation::Remove),
            1 => (1u8..8).prop_map(Operation::Advance),
        ]
    }

    proptest! {
        /// Against the obvious twin: a map of lines, all evaluated anew. Small whole coefficients
        /// make ties common and every value exact.
        #[test]
        fn near_users_are_those_of_a_map(ops in prop::collection::vec(operation(), 0..120)) {
            let mut scan = Scan::new(20, 2);
            let mut map = std::collections::BTreeMap::new();
            let mut s = 1.0;
            let mut near = Vec::new();
            for op in ops {
                match op {
                    Operation::Set(u, a, b) => {
                        let (a, b) = (a.map(f64::from), b.map(f64::from));
                        scan.set(u, &a, &b);
                        map.insert(u, (a, b));
                    }
                    Operation::Remove(u) => {
                        scan.remove(u);
                        map.remove(&u);
                    }
                    Operation::Advance(k) => s -= s * f64::from(k) / 16.0,
                }
                scan.least(s, 0.0, 4.0, &mut near);
                near.sort_unstable();
                let value = |(a, b): &([f64; 2], [f64; 2])| (a[0] + b[0] * s).max(a[1] + b[1] * s);
                let least = map.values().map(value).fold(f64::INFINITY, f64::min);
                let twin: Vec<u32> = map.iter().filter(|(_, l)| value(l) <= least + 4.0).map(|(u, _)| *u).collect();
                prop_assert_eq!(&near, &twin);
            }
        }
    }
}
