//! The few users who may be lowest for a while.

use crate::decay::two_to_minus;
use crate::kinetic::LineOrder;

/// How many contenders there may be: as many as vector instructions look at in passing.
const MAX_CONTENDERS: usize = 8;
/// With more, or fewer, when they are chosen, they are next time chosen from a narrower, or wider,
/// margin.
const MANY: usize = 7;
const FEW: usize = 5;
/// Contenders who do not stay that many questions were not worth it, and so are none for some time.
const WORTH_IT: u32 = 4;
const REST: u32 = 64;

/// The margin grows no further.
const WIDEST: f64 = 1e9;

const ABSENT: u8 = u8::MAX;

/// Keeps those users of an order at hand whose priorities are within a margin of the lowest, and those
/// whose lines changed since: as long as s has not fallen so far that another may have crossed the
/// margin, the lowest is among them.
///
/// Of two questions asked in a short time, as those of a simulation are, the second so costs the
/// evaluation of up to eight lines. The answers are those of the order itself.
pub(crate) struct Contenders {
    order: Box<dyn LineOrder>,
    branches: usize,
    enabled: bool,
    /// All users' lines: a by branch, then b by branch, as of how many halvings of all slopes.
    lines: Vec<f64>,
    as_of: Vec<u64>,
    halvings: u64,
    /// Each user's place among the contenders.
    place: Vec<u8>,
    users: [u32; MAX_CONTENDERS],
    count: usize,
    /// The contenders' lines, a column for each a and b.
    columns: Vec<[f64; MAX_CONTENDERS]>,
    /// Whether all users else is known to have been above `floor` at `chosen_at`.
    chosen: bool,
    chosen_at: f64,
    floor: f64,
    /// No slope of anybody present is larger, or smaller than minus this.
    steepest: f64,
    /// Above the lowest; adapts itself.
    margin: f64,
    /// Questions answered from the present contenders, and questions for which there will be none.
    answered: u32,
    rest: u32,
}

impl Contenders {
    /// Over an order of users 0 to n - 1, all absent, whose priorities have so many branches. Not
    /// `enabled`, every question goes to the order: one that counts order changes is to see every
    /// instant.
    pub(crate) fn new(n: usize, branches: usize, order: Box<dyn LineOrder>, enabled: bool) -> Contenders {
        let enabled = enabled && n > MAX_CONTENDERS;
        Contenders {
            order,
            branches,
            enabled,
            lines: vec![0.0; if enabled { 2 * n * branches } else { 0 }],
            as_of: vec![0; if enabled { n } else { 0 }],
            halvings: 0,
            place: vec![ABSENT; if enabled { n } else { 0 }],
            users: [0; MAX_CONTENDERS],
            count: 0,
            columns: vec![[0.0; MAX_CONTENDERS]; 2 * branches],
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
        self.columns[..self.branches].fill([f64::INFINITY; MAX_CONTENDERS]);
        self.columns[self.branches..].fill([0.0; MAX_CONTENDERS]);
    }

    #[inline]
    fn values(&self, s: f64) -> [f64; MAX_CONTENDERS] {
        let mut values = [f64::NEG_INFINITY; MAX_CONTENDERS];
        let (a, b) = self.columns.split_at(self.branches);
        for (a, b) in a.iter().zip(b) {
            for i in 0..MAX_CONTENDERS {
                let line = a[i] + b[i] * s;
                // Not f64::max, whose care for NaN costs the vector instruction.
                values[i] = if line > values[i] { line } else { values[i] };
            }
        }
        values
    }

    /// What rounding may hide of priorities about `floor` and of their fall since then.
    #[inline]
    fn may_be_off(&self) -> f64 {
        16.0 * f64::EPSILON * (self.floor.abs() + self.steepest * self.chosen_at)
    }

    /// Whether these lines were above `floor` at `chosen_at`.
    #[inline]
    fn was_above(&self, a: &[f64], b: &[f64]) -> bool {
        a.iter().zip(b).any(|(a, b)| a + b * self.chosen_at > self.floor)
    }

    /// Whether the lowest and all near it are among the contenders; then they are put into `near`.
    #[inline]
    fn answer(&mut self, s: f64, relative: f64, absolute: f64, near: &mut Vec<u32>) -> bool {
        let values = self.values(s);
        let lowest = lowest_of(values);
        let limit = lowest + (lowest.abs() * relative + absolute);
        // What others were above, less what they may have fallen by since. False too where there are no
        // contenders left.
        if limit <= self.floor - self.steepest * (self.chosen_at - s) - self.may_be_off() {
            // Without a branch for each: nearly always there is one.
            let mut who = values.iter().enumerate().fold(0u32, |who, (i, v)| who | u32::from(*v <= limit) << i);
            while who != 0 {
                near.push(self.users[who.trailing_zeros() as usize]);
                who &= who - 1;
            }
            return true;
        }
        false
    }

    /// Asks the order, for whoever is within the margin too.
    fn choose(&mut self, s: f64, relative: f64, absolute: f64, near: &mut Vec<u32>) {
        self.clear();
        let margin = self.margin;
        self.order.lowest(s, relative, absolute + margin, near);
        if near.len() > MANY {
            // Where not even a narrow margin parts them they tie.
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

/// How many times 1 was halved to give `factor`, a power of two up to 1; more than there are in an
/// `f64` for 0.
fn halvings(factor: f64) -> u64 {
    1023u64.saturating_sub(factor.to_bits() >> 52)
}

/// By halves: that is how vector instructions do it.
#[inline]
fn lowest_of(mut values: [f64; MAX_CONTENDERS]) -> f64 {
    let mut half = MAX_CONTENDERS / 2;
    while half > 0 {
        for i in 0..half {
            values[i] = if values[i + half] < values[i] { values[i + half] } else { values[i] };
        }
        half /= 2;
    }
    values[0]
}

impl LineOrder for Contenders {
    #[inline]
    fn set(&mut self, user: u32, a: &[f64], b: &[f64]) {
        self.order.set(user, a, b);
        if !self.enabled {
            return;
        }
        let lines = &mut self.lines[user as usize * 2 * self.branches..][..2 * self.branches];
        for (r, (&a, &b)) in a.iter().zip(b).enumerate() {
            // Not by a call, which takes longer than so few take.
            (lines[r], lines[r + self.branches]) = (a, b);
        }
        self.as_of[user as usize] = self.halvings;
        self.steepest = b.iter().fold(self.steepest, |steepest, b| steepest.max(b.abs()));
        if !self.chosen {
            return;
        }
        match self.place[user as usize] {
            // As if it had been so when they were chosen: it was not near.
            ABSENT if self.was_above(a, b) => {}
            ABSENT if self.count == MAX_CONTENDERS => self.chosen = false,
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
        /// Against the order without contenders, with more questions than changes. Time passes slowly
        /// at first, so that contenders stay, and then fast.
        #[test]
        fn answers_are_those_of_the_order(
            start in prop::collection::vec(any::<[i8; 4]>(), USERS as usize),
            ops in prop::collection::vec(operation(), 0..300),
            margin in prop::sample::select(vec![1e-3, 1.0, 30.0]),
            tolerance in prop::sample::select(vec![0.0, 1e-9, 4.0]),
            slow in prop::sample::select(vec![1.0, 1e-3, 1e-6]),
        ) {
            let mut scan = Scan::new(USERS as usize, 2);
            let mut contenders = Contenders::new(USERS as usize, 2, Box::new(scan.clone()), true);
            contenders.margin = margin;
            let mut s = 1.0;
            let (mut near, mut expected) = (Vec::new(), Vec::new());
            let set = |scan: &mut Scan, contenders: &mut Contenders, u: u32, a: [i8; 2], b: [i8; 2]| {
                let (a, b) = (a.map(f64::from), b.map(f64::from));
                scan.set(u, &a, &b);
                contenders.set(u, &a, &b);
            };
            for (u, [a, b, c, d]) in start.into_iter().enumerate() {
                set(&mut scan, &mut contenders, u as u32, [a, b], [c, d]);
            }
            for (i, op) in ops.into_iter().enumerate() {
                match op {
                    Operation::Set(u, a, b) => set(&mut scan, &mut contenders, u, a, b),
                    Operation::Remove(u) => {
                        scan.remove(u);
                        contenders.remove(u);
                    }
                    Operation::Advance(k) => {
                        let speed = if i < 200 { slow } else { 1.0 };
                        s -= s * speed * f64::from(k) / 16.0;
                    }
                    Operation::Rebase => {
                        s *= 2.0;
                        scan.rebase(0.5);
                        contenders.rebase(0.5);
                    }
                }
                for _ in 0..2 {
                    scan.lowest(s, tolerance / 8.0, tolerance, &mut expected);
                    contenders.lowest(s, tolerance / 8.0, tolerance, &mut near);
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
    fn most_questions_are_answered_by_the_contenders() {
        let mut contenders = Contenders::new(100, 1, Box::new(Scan::new(100, 1)), true);
        (0..100).for_each(|u| contenders.set(u, &[f64::from(u) * 1e-3], &[0.1]));
        let (mut near, mut kept) = (Vec::new(), 0);
        for i in 0..1000u32 {
            contenders.set(i % 7, &[f64::from(i % 7) * 1e-3], &[0.1]);
            let before = contenders.answered;
            contenders.lowest(1.0 - 1e-9 * f64::from(i), 0.0, 1e-12, &mut near);
            assert_eq!(near, [0]);
            kept += u32::from(contenders.answered > before);
        }
        assert!(kept > 900, "{kept}");
    }
}
