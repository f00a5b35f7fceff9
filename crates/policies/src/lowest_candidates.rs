//! Caches the few users that can have the lowest priority for some time.

use crate::decay::two_to_minus;
use crate::kinetic::LineOrder;

/// The maximum number of candidates: small enough that vector instructions evaluate all at little cost.
const MAX_CANDIDATES: usize = 8;
/// If more users than `MANY` are within the margin, it becomes narrower; if fewer than `FEW`, wider.
const MANY: usize = 7;
const FEW: usize = 5;
/// Candidates that answer fewer queries than this do not pay off; then the next `REST` queries go to the order.
const WORTH_IT: u32 = 4;
const REST: u32 = 64;

/// The margin grows no further.
const WIDEST: f64 = 1e9;

const ABSENT: u8 = u8::MAX;

/// A cache of those users of an order whose priorities are within a margin of the lowest, and of users whose lines have
/// changed since. The lowest user is among them until s has decreased so far that another user may have crossed the
/// margin.
///
/// Queries in quick succession, as in a simulation, then cost the evaluation of up to eight lines. The results are
/// those of the order itself.
pub(crate) struct LowestCandidates {
    order: Box<dyn LineOrder>,
    branches: usize,
    enabled: bool,
    /// All users' lines: a by branch, then b by branch; and the number of halvings of all slopes as of which they are.
    lines: Vec<f64>,
    as_of: Vec<u64>,
    halvings: u64,
    /// By user: its index among the candidates.
    place: Vec<u8>,
    users: [u32; MAX_CANDIDATES],
    count: usize,
    /// The candidates' lines, one column for each a and b.
    columns: Vec<[f64; MAX_CANDIDATES]>,
    /// Whether all other users were above `floor` at `chosen_at`.
    chosen: bool,
    chosen_at: f64,
    floor: f64,
    /// An upper bound on all slopes' absolute values.
    steepest: f64,
    /// The margin above the lowest priority; adapts itself.
    margin: f64,
    /// The queries answered by the current candidates, and the number of next queries without candidates.
    answered: u32,
    rest: u32,
}

impl LowestCandidates {
    /// Creates a cache over an order of users 0 to n - 1, all absent, whose priorities have this number of branches. If
    /// not `enabled`, every query goes to the order; an order that counts order changes has to see every instant.
    pub(crate) fn new(n: usize, branches: usize, order: Box<dyn LineOrder>, enabled: bool) -> LowestCandidates {
        let enabled = enabled && n > MAX_CANDIDATES;
        LowestCandidates {
            order,
            branches,
            enabled,
            lines: vec![0.0; if enabled { 2 * n * branches } else { 0 }],
            as_of: vec![0; if enabled { n } else { 0 }],
            halvings: 0,
            place: vec![ABSENT; if enabled { n } else { 0 }],
            users: [0; MAX_CANDIDATES],
            count: 0,
            columns: vec![[0.0; MAX_CANDIDATES]; 2 * branches],
            chosen: false,
            chosen_at: 0.0,
            floor: 0.0,
            steepest: 0.0,
            margin: 1e-3,
            answered: 0,
            rest: 0,
        }
    }

    fn put(&mut self, place: usize, user: u32) {
        let from = user as usize * 2 * self.branches;
        self.users[place] = user;
        self.place[user as usize] = place as u8;
        let since = self.halvings - self.as_of[user as usize];
        if since > 0 {
            let factor = two_to_minus(since);
            self.lines[from + self.branches..from + 2 * self.branches].iter_mut().for_each(|b| *b *= factor);
            self.as_of[user as usize] = self.halvings;
        }
        for (column, line) in self.columns.iter_mut().zip(&self.lines[from..]) {
            column[place] = *line;
        }
    }

    fn clear(&mut self) {
        self.users[..self.count].iter().for_each(|&user| self.place[user as usize] = ABSENT);
        self.count = 0;
        self.chosen = false;
        self.columns[..self.branches].fill([f64::INFINITY; MAX_CANDIDATES]);
        self.columns[self.branches..].fill([0.0; MAX_CANDIDATES]);
    }

    #[inline]
    fn values(&self, s: f64) -> [f64; MAX_CANDIDATES] {
        let mut values = [f64::NEG_INFINITY; MAX_CANDIDATES];
        let (a, b) = self.columns.split_at(self.branches);
        for (a, b) in a.iter().zip(b) {
            for i in 0..MAX_CANDIDATES {
                let line = a[i] + b[i] * s;
                // Not f64::max, whose handling of NaN prevents vector instructions.
                values[i] = if line > values[i] { line } else { values[i] };
            }
        }
        values
    }

    /// Returns a bound on the rounding error of priorities near `floor` and of their decrease since then.
    #[inline]
    fn rounding_bound(&self) -> f64 {
        16.0 * f64::EPSILON * (self.floor.abs() + self.steepest * self.chosen_at)
    }

    /// Returns whether these lines were above `floor` at `chosen_at`.
    #[inline]
    fn was_above(&self, a: &[f64], b: &[f64]) -> bool {
        a.iter().zip(b).any(|(a, b)| a + b * self.chosen_at > self.floor)
    }

    /// Puts the lowest user and all near it into `near` if they are among the candidates. Returns whether they are.
    #[inline]
    fn answer(&mut self, s: f64, relative: f64, absolute: f64, near: &mut Vec<u32>) -> bool {
        let values = self.values(s);
        let lowest = lowest_of(values);
        let limit = lowest + (lowest.abs() * relative + absolute);
        // The bound on all other users, less their maximal decrease since. Also false if no candidates are left.
        if limit <= self.floor - self.steepest * (self.chosen_at - s) - self.rounding_bound() {
            // As a bit set, without a branch for each candidate: nearly always there is one.
            let mut bits = values.iter().enumerate().fold(0u32, |bits, (i, v)| bits | u32::from(*v <= limit) << i);
            while bits != 0 {
                near.push(self.users[bits.trailing_zeros() as usize]);
                bits &= bits - 1;
            }
            return true;
        }
        false
    }

    /// Queries the order, and chooses the users within the margin as candidates.
    fn choose(&mut self, s: f64, relative: f64, absolute: f64, near: &mut Vec<u32>) {
        self.clear();
        let margin = self.margin;
        self.order.lowest(s, relative, absolute + margin, near);
        if near.len() > MANY {
            // If not even a narrow margin separates them, they tie.
            (self.margin, self.rest) = if margin > absolute { (0.5 * margin, 1) } else { (margin, REST) };
            self.order.lowest(s, relative, absolute, near);
            return;
        }
        if near.len() < FEW {
            self.margin = (1.25 * margin).min(WIDEST);
        }
        near.iter().enumerate().for_each(|(place, &user)| self.put(place, user));
        self.count = near.len();
        let values = self.values(s);
        let lowest = lowest_of(values);
        let limit = lowest + (lowest.abs() * relative + absolute);
        (self.chosen, self.chosen_at, self.answered) = (self.count > 0, s, 0);
        self.floor = lowest + (lowest.abs() * relative + (absolute + margin));
        near.retain(|&user| values[self.place[user as usize] as usize] <= limit);
    }
}

/// Returns n for `factor` = 2^-n, at most 1; for 0 a number larger than any exponent of an `f64`.
fn halvings(factor: f64) -> u64 {
    1023u64.saturating_sub(factor.to_bits() >> 52)
}

/// Returns the lowest value, by halves, which the compiler turns into vector instructions.
#[inline]
fn lowest_of(mut values: [f64; MAX_CANDIDATES]) -> f64 {
    let mut half = MAX_CANDIDATES / 2;
    while half > 0 {
        for i in 0..half {
            values[i] = if values[i + half] < values[i] { values[i + half] } else { values[i] };
        }
        half /= 2;
    }
    values[0]
}

impl LineOrder for LowestCandidates {
    #[inline]
    fn set(&mut self, user: u32, a: &[f64], b: &[f64]) {
        self.order.set(user, a, b);
        if !self.enabled {
            return;
        }
        let lines = &mut self.lines[user as usize * 2 * self.branches..][..2 * self.branches];
        for (r, (&a, &b)) in a.iter().zip(b).enumerate() {
            // Not by a call of a copy function, which takes longer for so few values.
            (lines[r], lines[r + self.branches]) = (a, b);
        }
        self.as_of[user as usize] = self.halvings;
        self.steepest = b.iter().fold(self.steepest, |steepest, b| steepest.max(b.abs()));
        if !self.chosen {
            return;
        }
        match self.place[user as usize] {
            // Above `floor` also when the candidates were chosen: it is no candidate.
            ABSENT if self.was_above(a, b) => {}
            ABSENT if self.count == MAX_CANDIDATES => self.chosen = false,
            ABSENT => {
                self.put(self.count, user);
                self.count += 1;
            }
            place => self.put(place as usize, user),
        }
    }

    fn remove(&mut self, user: u32) {
        self.order.remove(user);
        if !self.enabled || self.place[user as usize] == ABSENT {
            return;
        }
        let place = std::mem::replace(&mut self.place[user as usize], ABSENT) as usize;
        self.count -= 1;
        let (last, moved) = (self.count, self.users[self.count]);
        if place < last {
            self.put(place, moved);
        }
        let (a, b) = self.columns.split_at_mut(self.branches);
        a.iter_mut().for_each(|column| column[last] = f64::INFINITY);
        b.iter_mut().for_each(|column| column[last] = 0.0);
    }

    #[inline]
    fn lowest(&mut self, s: f64, relative: f64, absolute: f64, near: &mut Vec<u32>) {
        near.clear();
        if self.chosen && self.answer(s, relative, absolute, near) {
            self.answered += 1;
            return;
        }
        if self.chosen && self.answered < WORTH_IT {
            self.clear();
            self.rest = REST;
        }
        if self.rest > 0 || !self.enabled {
            self.rest = self.rest.saturating_sub(1);
            return self.order.lowest(s, relative, absolute, near);
        }
        self.choose(s, relative, absolute, near);
    }

    fn rebase(&mut self, factor: f64) {
        self.order.rebase(factor);
        self.clear();
        self.steepest *= factor;
        self.halvings += halvings(factor);
    }

    fn order_events(&self) -> u64 {
        self.order.order_events()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinetic::Scan;
    use proptest::prelude::*;

    const USERS: u32 = 40;

    #[derive(Clone, Debug)]
    enum Operation {
        Set(u32, [i8; 2], [i8; 2]),
        Remove(u32),
        Advance(u8),
        Rebase,
    }

    fn operation() -> impl Strategy<Value = Operation> {
        prop_oneof![
            60 => (0..USERS, any::<[i8; 2]>(), any::<[i8; 2]>()).prop_map(|(u, a, b)| Operation::Set(u, a, b)),
            20 => (0..USERS).prop_map(Operation::Remove),
            60 => (0u8..8).prop_map(Operation::Advance),
            1 => Just(Operation::Rebase),
        ]
    }

    proptest! {
        /// Reference: the order without candidates, with more queries than changes. Time passes slowly at first, so
        /// that candidates stay, and then fast.
        #[test]
        fn answers_are_those_of_the_order(
            start in prop::collection::vec(any::<[i8; 4]>(), USERS as usize),
            ops in prop::collection::vec(operation(), 0..300),
            margin in prop::sample::select(vec![1e-3, 1.0, 30.0]),
            tolerance in prop::sample::select(vec![0.0, 1e-9, 4.0]),
            slow in prop::sample::select(vec![1.0, 1e-3, 1e-6]),
        ) {
            let mut scan = Scan::new(USERS as usize, 2);
            let mut candidates = LowestCandidates::new(USERS as usize, 2, Box::new(scan.clone()), true);
            candidates.margin = margin;
            let mut s = 1.0;
            let (mut near, mut expected) = (Vec::new(), Vec::new());
            let set = |scan: &mut Scan, candidates: &mut LowestCandidates, u: u32, a: [i8; 2], b: [i8; 2]| {
                let (a, b) = (a.map(f64::from), b.map(f64::from));
                scan.set(u, &a, &b);
                candidates.set(u, &a, &b);
            };
            for (u, [a, b, c, d]) in start.into_iter().enumerate() {
                set(&mut scan, &mut candidates, u as u32, [a, b], [c, d]);
            }
            for (i, op) in ops.into_iter().enumerate() {
                match op {
                    Operation::Set(u, a, b) => set(&mut scan, &mut candidates, u, a, b),
                    Operation::Remove(u) => {
                        scan.remove(u);
                        candidates.remove(u);
                    }
                    Operation::Advance(k) => {
                        let speed = if i < 200 { slow } else { 1.0 };
                        s -= s * speed * f64::from(k) / 16.0;
                    }
                    Operation::Rebase => {
                        s *= 2.0;
                        scan.rebase(0.5);
                        candidates.rebase(0.5);
                    }
                }
                for _ in 0..2 {
                    scan.lowest(s, tolerance / 8.0, tolerance, &mut expected);
                    candidates.lowest(s, tolerance / 8.0, tolerance, &mut near);
                    near.sort_unstable();
                    expected.sort_unstable();
                    prop_assert_eq!(&near, &expected);
                }
            }
        }
    }

    #[test]
    fn halvings_are_those_of_the_clock() {
        for n in [0, 1, 33, 1022, 1023, 5000] {
            assert_eq!(two_to_minus(halvings(two_to_minus(n))), two_to_minus(n));
        }
    }

    #[test]
    fn the_candidates_answer_nearly_all_queries() {
        let mut candidates = LowestCandidates::new(100, 1, Box::new(Scan::new(100, 1)), true);
        (0..100).for_each(|u| candidates.set(u, &[f64::from(u) * 1e-3], &[0.1]));
        let (mut near, mut kept) = (Vec::new(), 0);
        for i in 0..1000u32 {
            candidates.set(i % 7, &[f64::from(i % 7) * 1e-3], &[0.1]);
            let before = candidates.answered;
            candidates.lowest(1.0 - 1e-9 * f64::from(i), 0.0, 1e-12, &mut near);
            assert_eq!(near, [0]);
            kept += u32::from(candidates.answered > before);
        }
        assert!(kept > 900, "{kept}");
    }
}
