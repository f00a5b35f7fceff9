//! The simplest order of users: a scan over all of them.

use super::{LineOrder, limit};

const ABSENT: u32 = u32::MAX;
/// Slots are evaluated in blocks of this size, so that the compiler uses vector instructions.
const BLOCK: usize = 8;

/// Blocks are looked at in groups of so many.
const GROUP: usize = 32;

/// A bound on the rounding error of a block's bound, relative to its parts.
const SLACK: f64 = 8.0 * f64::EPSILON;

/// A scan over the users present, in blocks and groups of blocks.
///
/// Lines are stored by branch, for present users without gaps. A block stores its lowest priority at its last
/// evaluation and its steepest slope. While the lower bound from these is above the overall minimum, the block is not
/// evaluated; a group stores the same of its blocks, which are not looked at while the group's bound is above the
/// minimum. `lowest` therefore costs O(n / 256) simple operations, 32 for each group that may contain the lowest user, and
/// the evaluation of the few blocks that may; all other operations cost O(branches). It has no order events.
///
/// ```
/// use evenhand_policies::kinetic::{LineOrder, Scan};
/// let mut scan = Scan::new(2, 1);
/// scan.set(0, &[0.3], &[0.4]);
/// scan.set(1, &[0.5], &[0.1]);
/// let mut near = Vec::new();
/// scan.lowest(1.0, 0.0, 0.0, &mut near);
/// assert_eq!(near, [1]); // 0.7 and 0.6
/// scan.lowest(0.5, 0.0, 0.0, &mut near);
/// assert_eq!(near, [0]); // 0.5 and 0.55: they crossed at s = 2/3
/// ```
#[derive(Clone, Debug)]
pub struct Scan {
    slot: Vec<u32>,
    users: Vec<u32>,
    /// One column per branch with one entry per slot, padded to whole blocks with lines at infinity.
    a: Vec<Vec<f64>>,
    b: Vec<Vec<f64>>,
    /// Priorities by slot, as of the last evaluation of their block.
    values: Vec<f64>,
    blocks: Vec<Block>,
    /// By group of blocks, as a block of all their lines; [`STALE`] once a line has changed.
    groups: Vec<Block>,
    /// A lower bound of each block at the current s, where its group has been looked at.
    bounds: Vec<f64>,
    /// A lower bound of each group at the current s.
    group_bounds: Vec<f64>,
}

/// The data for the lower bound of a block or group.
#[derive(Clone, Copy, Debug)]
struct Block {
    /// Its lowest priority at `at`.
    lowest: f64,
    at: f64,
    /// Its steepest slope, or 0 if none is positive: when s decreases by d, no priority decreases by more than this
    /// times d.
    steepest: f64,
}

/// A block that has changed since its last evaluation, without a lower bound.
const STALE: Block = Block { lowest: f64::NEG_INFINITY, at: 0.0, steepest: 0.0 };

impl Block {
    #[inline]
    fn bound(&self, s: f64) -> f64 {
        let fall = self.steepest * (self.at - s);
        // The last term covers subnormal products.
        self.lowest - fall - SLACK * (self.lowest.abs() + fall) - f64::MIN_POSITIVE
    }
}

impl Scan {
    /// Creates a scan for users 0 to n - 1, all absent, whose priorities have this number of branches.
    ///
    /// # Panics
    /// Panics if `branches` is 0.
    pub fn new(n: usize, branches: usize) -> Scan {
        assert!(branches > 0, "a priority has at least one branch");
        Scan {
            slot: vec![ABSENT; n],
            users: Vec::new(),
            a: vec![Vec::new(); branches],
            b: vec![Vec::new(); branches],
            values: Vec::new(),
            blocks: Vec::new(),
            groups: Vec::new(),
            bounds: Vec::new(),
            group_bounds: Vec::new(),
        }
    }

    /// Returns the present users.
    pub(super) fn users(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.users.iter().copied()
    }

    /// Copies the lines of a present user into `a` and `b`.
    pub(super) fn lines_of(&self, user: u32, a: &mut [f64], b: &mut [f64]) {
        let slot = self.slot[user as usize] as usize;
        for r in 0..self.a.len() {
            (a[r], b[r]) = (self.a[r][slot], self.b[r][slot]);
        }
    }

    /// Evaluates one block and returns its lowest priority.
    #[inline]
    fn evaluate(&mut self, block: usize, s: f64) -> f64 {
        let mut value = [f64::NEG_INFINITY; BLOCK];
        let mut steepest = [0.0; BLOCK];
        for (a, b) in self.a.iter().zip(&self.b) {
            let (a, b) = (&a.as_chunks::<BLOCK>().0[block], &b.as_chunks::<BLOCK>().0[block]);
            for i in 0..BLOCK {
                let line = a[i] + b[i] * s;
                // Not f64::max, whose care for NaN costs the vector instruction.
                value[i] = if line > value[i] { line } else { value[i] };
                steepest[i] = if b[i] > steepest[i] { b[i] } else { steepest[i] };
            }
        }
        self.values.as_chunks_mut::<BLOCK>().0[block] = value;
        let lowest = extreme(&value, |x, y| x < y);
        self.blocks[block] = Block { lowest, at: s, steepest: extreme(&steepest, |x, y| x > y) };
        lowest
    }

    /// The blocks of a group.
    fn blocks_of(&self, group: usize) -> std::ops::Range<usize> {
        group * GROUP..((group + 1) * GROUP).min(self.blocks.len())
    }

    /// Computes the bounds of a group's blocks and, from them, the group's own.
    fn bound_group(&mut self, group: usize, s: f64) {
        let (mut lowest, mut steepest) = (f64::INFINITY, 0.0);
        for block in self.blocks_of(group) {
            let bound = self.blocks[block].bound(s);
            self.bounds[block] = bound;
            lowest = if bound < lowest { bound } else { lowest };
            let slope = self.blocks[block].steepest;
            steepest = if slope > steepest { slope } else { steepest };
        }
        self.groups[group] = Block { lowest, at: s, steepest };
    }

    fn mark_stale(&mut self, block: usize) {
        self.blocks[block] = STALE;
        self.groups[block / GROUP] = STALE;
    }

    fn put(&mut self, slot: usize, a: impl Fn(usize) -> f64, b: impl Fn(usize) -> f64) {
        for r in 0..self.a.len() {
            self.a[r][slot] = a(r);
            self.b[r][slot] = b(r);
        }
        self.mark_stale(slot / BLOCK);
    }

    fn add_block(&mut self) {
        let length = self.values.len() + BLOCK;
        self.a.iter_mut().for_each(|column| column.resize(length, f64::INFINITY));
        self.b.iter_mut().for_each(|column| column.resize(length, 0.0));
        self.values.resize(length, f64::INFINITY);
        self.blocks.push(STALE);
        self.groups.resize(self.blocks.len().div_ceil(GROUP), STALE);
    }
}

/// Returns the first value of a block under `before`, by halves, which the compiler turns into vector instructions.
#[inline]
fn extreme(v: &[f64; BLOCK], before: impl Fn(f64, f64) -> bool) -> f64 {
    let first = |x: f64, y: f64| if before(x, y) { x } else { y };
    let four: [f64; 4] = std::array::from_fn(|i| first(v[i], v[i + 4]));
    let two: [f64; 2] = std::array::from_fn(|i| first(four[i], four[i + 2]));
    first(two[0], two[1])
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
            self.mark_stale(at / BLOCK);
        }
        self.put(last, |_| f64::INFINITY, |_| 0.0);
        // Empty blocks are dropped; their evaluation would be wasted.
        if last % BLOCK == 0 {
            self.a.iter_mut().chain(&mut self.b).for_each(|column| column.truncate(last));
            self.values.truncate(last);
            self.blocks.truncate(last / BLOCK);
            self.groups.truncate(self.blocks.len().div_ceil(GROUP));
        }
    }

    fn lowest(&mut self, s: f64, relative: f64, absolute: f64, near: &mut Vec<u32>) {
        near.clear();
        self.bounds.resize(self.blocks.len(), 0.0);
        self.group_bounds.resize(self.groups.len(), 0.0);
        // The block with the lowest bound in the group with the lowest bound first: its minimum excludes most others. What
        // is unknown of a group with changed lines is the bounds of those blocks: they are evaluated.
        let (mut first, mut lowest) = (None, f64::INFINITY);
        for group in 0..self.groups.len() {
            if self.groups[group].lowest == f64::NEG_INFINITY {
                for block in self.blocks_of(group) {
                    if self.blocks[block].lowest == f64::NEG_INFINITY {
                        self.evaluate(block, s);
                    }
                }
                self.bound_group(group, s);
            }
            let bound = self.groups[group].bound(s);
            self.group_bounds[group] = bound;
            if bound < lowest {
                (first, lowest) = (Some(group), bound);
            }
        }
        let Some(first) = first else { return };
        self.bound_group(first, s);
        let lower = |a: &usize, b: &usize| self.bounds[*a].total_cmp(&self.bounds[*b]);
        let Some(first) = self.blocks_of(first).min_by(lower) else { return };
        let limit_of = |lowest: f64| limit(lowest, relative, absolute);
        let mut limit = limit_of(self.evaluate(first, s));
        for group in 0..self.groups.len() {
            if self.group_bounds[group] > limit {
                continue;
            }
            self.bound_group(group, s);
            for block in self.blocks_of(group) {
                if self.bounds[block] <= limit && block != first {
                    limit = limit.min(limit_of(self.evaluate(block, s)));
                }
            }
        }
        for group in (0..self.groups.len()).filter(|&group| self.group_bounds[group] <= limit) {
            for block in self.blocks_of(group) {
                if self.bounds[block] > limit || self.blocks[block].lowest > limit {
                    continue;
                }
                let slots = block * BLOCK..((block + 1) * BLOCK).min(self.users.len());
                let of_block = self.values[slots.clone()].iter().zip(&self.users[slots]);
                near.extend(of_block.filter(|(v, _)| **v <= limit).map(|(_, u)| *u));
            }
        }
    }

    fn rebase(&mut self, factor: f64) {
        self.b.iter_mut().flatten().for_each(|b| *b *= factor);
        self.blocks.fill(STALE);
        self.groups.fill(STALE);
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
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// The same with so many users that there are several groups, a few of which change between two questions.
        #[test]
        fn near_users_of_many_groups_are_those_of_the_reference_model(
            lines in prop::collection::vec((any::<[i8; 2]>(), any::<[u8; 2]>()), 300..900),
            steps in prop::collection::vec((any::<u16>(), any::<bool>(), any::<[i8; 2]>(), 0u8..4), 1..60),
        ) {
            let lines = lines.into_iter().map(|(a, b)| (a.map(f64::from), b.map(f64::from)));
            let mut map: std::collections::BTreeMap<u32, _> = (0u32..).zip(lines).collect();
            let n = map.len();
            let mut scan = Scan::new(n, 2);
            map.iter().for_each(|(user, (a, b))| scan.set(*user, a, b));
            let (mut s, mut near) = (1.0, Vec::new());
            for (user, remove, a, advance) in steps {
                let user = u32::from(user) % n as u32;
                if remove {
                    scan.remove(user);
                    map.remove(&user);
                } else {
                    let lines = (a.map(f64::from), [1.0, 0.0]);
                    scan.set(user, &lines.0, &lines.1);
                    map.insert(user, lines);
                }
                s -= s * f64::from(advance) / 16.0;
                scan.lowest(s, 0.0, 2.0, &mut near);
                near.sort_unstable();
                let value = |(a, b): &([f64; 2], [f64; 2])| (a[0] + b[0] * s).max(a[1] + b[1] * s);
                let lowest = map.values().map(value).fold(f64::INFINITY, f64::min);
                let expected: Vec<u32> = map.iter().filter(|(_, l)| value(l) <= lowest + 2.0).map(|(u, _)| *u).collect();
                prop_assert_eq!(&near, &expected);
            }
        }
    }

    proptest! {
        /// Reference model: a map of lines, all evaluated at each step. Small whole coefficients make ties common and
        /// all values exact.
        #[test]
        fn near_users_are_those_of_the_reference_model(ops in prop::collection::vec(operation(), 0..120)) {
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
                scan.lowest(s, 0.0, 4.0, &mut near);
                near.sort_unstable();
                let value = |(a, b): &([f64; 2], [f64; 2])| (a[0] + b[0] * s).max(a[1] + b[1] * s);
                let lowest = map.values().map(value).fold(f64::INFINITY, f64::min);
                let expected: Vec<u32> = map.iter().filter(|(_, l)| value(l) <= lowest + 4.0).map(|(u, _)| *u).collect();
                prop_assert_eq!(&near, &expected);
            }
        }
    }
}
