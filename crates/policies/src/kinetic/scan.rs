//! The plain structure: look at everyone.

use super::LineOrder;

const ABSENT: u32 = u32::MAX;
/// Slots are looked at in blocks of this many, so that the compiler uses vector instructions.
const BLOCK: usize = 8;

/// A branch-free scan over the users present.
///
/// Lines are kept by branch, present users packed together in blocks that know their least
/// priority. `least` costs O(n) simple operations (some 0.3 ns a user and branch) when `s` has
/// changed and an eighth of that when it has not; everything else is O(branches). It has no order
/// events.
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
    /// One column a branch, one entry a slot, filled up to whole blocks with lines at infinity.
    a: Vec<Vec<f64>>,
    b: Vec<Vec<f64>>,
    /// Priorities at `at`, by slot.
    values: Vec<f64>,
    /// The least priority of each block.
    least: Vec<f64>,
    /// NaN: nothing is evaluated yet.
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
            least: Vec::new(),
            at: f64::NAN,
        }
    }

    fn evaluate(&mut self, s: f64) {
        self.at = s;
        let values = self.values.as_chunks_mut::<BLOCK>().0;
        let (a, b) = (self.a[0].as_chunks::<BLOCK>().0, self.b[0].as_chunks::<BLOCK>().0);
        for (((value, least), a), b) in values.iter_mut().zip(&mut self.least).zip(a).zip(b) {
            *value = lines(a, b, s);
            *least = least_of(value);
        }
        for (a, b) in self.a.iter().zip(&self.b).skip(1) {
            let (a, b) = (a.as_chunks::<BLOCK>().0, b.as_chunks::<BLOCK>().0);
            for (((value, least), a), b) in values.iter_mut().zip(&mut self.least).zip(a).zip(b) {
                let line = lines(a, b, s);
                // Not f64::max, whose care for NaN costs the vector instruction.
                *value = std::array::from_fn(|i| if line[i] > value[i] { line[i] } else { value[i] });
                *least = least_of(value);
            }
        }
    }

    /// Writes the lines of one slot, and its value if values are being kept.
    fn put(&mut self, slot: usize, a: impl Fn(usize) -> f64, b: impl Fn(usize) -> f64) {
        let mut value = f64::NEG_INFINITY;
        for r in 0..self.a.len() {
            self.a[r][slot] = a(r);
            self.b[r][slot] = b(r);
            value = value.max(a(r) + b(r) * self.at);
        }
        self.values[slot] = value;
        if !self.at.is_nan() {
            let block = slot / BLOCK;
            self.least[block] = least_of(&self.values.as_chunks::<BLOCK>().0[block]);
        }
    }

    fn add_block(&mut self) {
        let length = self.values.len() + BLOCK;
        self.a.iter_mut().for_each(|column| column.resize(length, f64::INFINITY));
        self.b.iter_mut().for_each(|column| column.resize(length, 0.0));
        self.values.resize(length, f64::INFINITY);
        self.least.resize(length / BLOCK, f64::INFINITY);
    }
}

#[inline]
fn lines(a: &[f64; BLOCK], b: &[f64; BLOCK], s: f64) -> [f64; BLOCK] {
    std::array::from_fn(|i| a[i] + b[i] * s)
}

/// The least of a block, by halves: that is how vector instructions do it.
#[inline]
fn least_of(v: &[f64; BLOCK]) -> f64 {
    let less = |x: f64, y: f64| if x < y { x } else { y };
    let four: [f64; 4] = std::array::from_fn(|i| less(v[i], v[i + 4]));
    let two: [f64; 2] = std::array::from_fn(|i| less(four[i], four[i + 2]));
    less(two[0], two[1])
}

impl LineOrder for Scan {
    fn set(&mut self, user: u32, a: &[f64], b: &[f64]) {
        let mut slot = self.slot[user as usize];
        if slot == ABSENT {
            slot = self.users.len() as u32;
            self.slot[user as usize] = slot;
            self.users.push(user);
            if self.users.len() > self.values.len() {
                self.add_block();
            }
        }
        self.put(slot as usize, |r| a[r], |r| b[r]);
    }

    fn remove(&mut self, user: u32) {
        let slot = std::mem::replace(&mut self.slot[user as usize], ABSENT);
        if slot == ABSENT {
            return;
        }
        let (at, last) = (slot as usize, self.users.len() - 1);
        self.users.swap_remove(at);
        if let Some(&moved) = self.users.get(at) {
            self.slot[moved as usize] = slot;
            for r in 0..self.a.len() {
                self.a[r][at] = self.a[r][last];
                self.b[r][at] = self.b[r][last];
            }
            self.values[at] = self.values[last];
            if !self.at.is_nan() {
                self.least[at / BLOCK] = least_of(&self.values.as_chunks::<BLOCK>().0[at / BLOCK]);
            }
        }
        self.put(last, |_| f64::INFINITY, |_| 0.0);
    }

    fn least(&mut self, s: f64, relative: f64, absolute: f64, near: &mut Vec<u32>) {
        if s != self.at {
            self.evaluate(s);
        }
        near.clear();
        let least = self.least.iter().fold(f64::INFINITY, |m, &v| if v < m { v } else { m });
        if least == f64::INFINITY {
            return;
        }
        let limit = least + (least.abs() * relative + absolute);
        for (block, _) in self.least.iter().enumerate().filter(|(_, v)| **v <= limit) {
            let slots = block * BLOCK..((block + 1) * BLOCK).min(self.users.len());
            let of_block = self.values[slots.clone()].iter().zip(&self.users[slots]);
            near.extend(of_block.filter(|(v, _)| **v <= limit).map(|(_, u)| *u));
        }
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
