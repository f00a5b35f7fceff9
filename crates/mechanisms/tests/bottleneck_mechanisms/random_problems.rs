//! Random problems of the kinds that break mechanisms: ties, zeros, equal users, limits at breakpoints.

use evenhand_mechanisms::{Problem, User};
use evenhand_model::Rational;
use proptest::prelude::*;

pub(crate) fn fraction(above: u64, below: u64) -> Rational {
    Rational::from_parts(above.into(), below.into())
}

/// Kind of random problem.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) users: usize,
    pub(crate) resources: (usize, usize),
    pub(crate) zeros: bool,
    pub(crate) weights: bool,
    pub(crate) limits: bool,
}

/// Generates demands in sixteenths (which f64 represents exactly), weights in quarters and limits in eighths; every
/// fourth user equals the previous one.
pub(crate) fn problems(kind: Kind) -> impl Strategy<Value = Problem<Rational>> {
    (1..=kind.users, kind.resources.0..=kind.resources.1).prop_flat_map(move |(n, m)| {
        let demand = (0..16_u64, 0..5_u8).prop_map(move |(d, zero)| if kind.zeros && zero == 0 { 0 } else { d + 1 });
        let user = (proptest::collection::vec(demand, m), 1..9_u64, 0..3_u8, 0..24_u64, 0..4_u8);
        proptest::collection::vec(user, n).prop_map(move |rows| {
            let mut users: Vec<User<Rational>> = Vec::new();
            for (demand, weight, limited, limit, again) in rows {
                if again == 0
                    && let Some(last) = users.last().cloned()
                {
                    users.push(last);
                    continue;
                }
                let mut demand: Vec<Rational> = demand.into_iter().map(|d| fraction(d, 16)).collect();
                if demand.iter().all(Rational::is_zero) {
                    demand[0] = fraction(1, 1);
                }
                let mut user = User::new(demand);
                if kind.weights {
                    user = user.weight(fraction(weight, 4));
                }
                if kind.limits && limited == 0 {
                    user = user.limit(fraction(limit, 8));
                }
                users.push(user);
            }
            Problem::new(m, users).unwrap()
        })
    })
}

/// Random numbers for problems that are counted rather than shrunk (SplitMix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// Returns a number between 0 and 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

pub(crate) fn with_users(
    problem: &Problem<Rational>,
    change: impl Fn(usize, User<Rational>) -> User<Rational>,
) -> Problem<Rational> {
    Problem::new(problem.resource_count(), (0..problem.users()).map(|i| change(i, problem.user(i)))).unwrap()
}
