//! Selects the structure that keeps users ordered.

use std::str::FromStr;

use thiserror::Error;

use super::{LineOrder, LiveLines, Scan, Tournament};

/// The structure that keeps users ordered by changing priorities. All give the same decisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// A [`Scan`] while few users wait, otherwise a [`Tournament`].
    #[default]
    Auto,
    /// A [`Scan`].
    Scan,
    /// A [`Tournament`].
    Tournament,
    /// The live tree of Sadok et al. (2021) ([`LiveLines`]), for its count of order changes.
    LiveTree,
}

/// The error for an unknown name of a structure.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("found {0:?}, expected one of: {names}", names = Order::ALL.map(Order::name).join(", "))]
pub struct OrderError(String);

impl Order {
    /// All structures.
    pub const ALL: [Order; 4] = [Order::Auto, Order::Scan, Order::Tournament, Order::LiveTree];

    /// Returns the name, as in `--order`.
    pub fn name(self) -> &'static str {
        match self {
            Order::Auto => "auto",
            Order::Scan => "scan",
            Order::Tournament => "tournament",
            Order::LiveTree => "live-tree",
        }
    }

    /// Creates the structure for users 0 to n - 1, all absent, whose priorities have this number of branches.
    ///
    /// # Panics
    /// Panics if `branches` is 0.
    pub fn structure(self, n: usize, branches: usize) -> Box<dyn LineOrder> {
        match self {
            Order::Auto if n <= MANY => Box::new(Scan::new(n, branches)),
            Order::Auto => Box::new(Auto::new(n, branches, MANY, FEW)),
            Order::Scan => Box::new(Scan::new(n, branches)),
            Order::Tournament => Box::new(Tournament::new(n, branches)),
            Order::LiveTree => Box::new(LiveLines::new(branches)),
        }
    }
}

impl FromStr for Order {
    type Err = OrderError;

    fn from_str(text: &str) -> Result<Order, OrderError> {
        Order::ALL.into_iter().find(|o| o.name() == text).ok_or_else(|| OrderError(text.to_string()))
    }
}

/// With more users than this, a tournament is faster (docs/src/explanation/performance.md: from 2,500 to 3,500,
/// depending on the time between decisions).
const MANY: usize = 3_000;
/// With fewer users than this, a scan replaces the tournament again. Far enough below `MANY` that such replacements are
/// rare compared with updates.
const FEW: usize = MANY / 2;

/// A scan or a tournament, depending on the number of users.
struct Auto {
    n: usize,
    branches: usize,
    /// A scan with more users than this becomes a tournament.
    many: usize,
    /// A tournament with fewer users than this becomes a scan.
    few: usize,
    current: Current,
    /// The events of replaced structures.
    events: u64,
}

enum Current {
    Scan(Scan),
    Tournament(Tournament),
}

impl Auto {
    fn new(n: usize, branches: usize, many: usize, few: usize) -> Auto {
        Auto { n, branches, many, few, current: Current::Scan(Scan::new(n, branches)), events: 0 }
    }

    fn inner(&mut self) -> &mut dyn LineOrder {
        match &mut self.current {
            Current::Scan(scan) => scan,
            Current::Tournament(tournament) => tournament,
        }
    }

    fn replace(&mut self) {
        self.events = self.order_events();
        let (mut a, mut b) = (vec![0.0; self.branches], vec![0.0; self.branches]);
        self.current = match &self.current {
            Current::Scan(scan) => {
                let mut tournament = Tournament::new(self.n, self.branches);
                for user in scan.users() {
                    scan.lines_of(user, &mut a, &mut b);
                    tournament.set(user, &a, &b);
                }
                Current::Tournament(tournament)
            }
            Current::Tournament(tournament) => {
                let mut scan = Scan::new(self.n, self.branches);
                for (user, lines) in tournament.entries() {
                    for (r, line) in lines.iter().enumerate() {
                        (a[r], b[r]) = (line.a, line.b);
                    }
                    scan.set(user, &a, &b);
                }
                Current::Scan(scan)
            }
        };
    }
}

impl LineOrder for Auto {
    fn set(&mut self, user: u32, a: &[f64], b: &[f64]) {
        self.inner().set(user, a, b);
        if matches!(&self.current, Current::Scan(scan) if scan.users().len() > self.many) {
            self.replace();
        }
    }

    fn remove(&mut self, user: u32) {
        self.inner().remove(user);
        if matches!(&self.current, Current::Tournament(tournament) if tournament.len() < self.few) {
            self.replace();
        }
    }

    fn lowest(&mut self, s: f64, relative: f64, absolute: f64, near: &mut Vec<u32>) {
        self.inner().lowest(s, relative, absolute, near);
    }

    fn rebase(&mut self, factor: f64) {
        self.inner().rebase(factor);
    }

    fn order_events(&self) -> u64 {
        let of_current = match &self.current {
            Current::Scan(scan) => scan.order_events(),
            Current::Tournament(tournament) => tournament.order_events(),
        };
        self.events + of_current
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn structures_are_parsed_from_their_names() {
        for order in Order::ALL {
            assert_eq!(order.name().parse(), Ok(order));
        }
        let error = "heap".parse::<Order>().unwrap_err();
        assert_eq!(error.to_string(), "found \"heap\", expected one of: auto, scan, tournament, live-tree");
    }

    #[test]
    fn many_users_switch_to_a_tournament_and_few_back_to_a_scan() {
        let n = MANY + 100;
        let mut auto = Auto::new(n, 1, MANY, FEW);
        let mut near = Vec::new();
        let mut lowest = |auto: &mut Auto, s: f64| {
            auto.lowest(s, 0.0, 0.0, &mut near);
            near.clone()
        };
        for user in 0..n as u32 {
            assert_eq!(matches!(auto.current, Current::Tournament(_)), user as usize > MANY);
            // At s = 1 the first user is lowest, at s = 1/2 all are equal, later the last is lowest.
            auto.set(user, &[f64::from(n as u32 - user)], &[f64::from(2 * user)]);
        }
        assert_eq!(lowest(&mut auto, 1.0), [0]);
        assert_eq!(lowest(&mut auto, 0.5).len(), n);
        assert_eq!(lowest(&mut auto, 0.25), [n as u32 - 1]);
        let events = auto.order_events();
        assert_eq!(events, n as u64 - 1, "every match turned once");
        for user in (FEW as u32 - 1..n as u32).rev() {
            assert!(matches!(auto.current, Current::Tournament(_)));
            auto.remove(user);
        }
        assert!(matches!(auto.current, Current::Scan(_)));
        assert_eq!(lowest(&mut auto, 0.25), [FEW as u32 - 2]);
        assert_eq!(auto.order_events(), events);
    }

    proptest! {
        /// Also with replacements of the structure and changes of the epoch in between.
        #[test]
        fn auto_gives_the_same_users_as_a_scan(
            operations in prop::collection::vec((0u32..12, prop::option::of(any::<[i8; 4]>()), 0u8..8, 0u8..10), 0..150),
        ) {
            let (mut auto, mut scan) = (Auto::new(12, 2, 6, 4), Scan::new(12, 2));
            let (mut near, mut expected) = (Vec::new(), Vec::new());
            let mut s = 1.0;
            for (user, lines, pass, epoch) in operations {
                if epoch == 0 {
                    s *= 4.0;
                    auto.rebase(0.25);
                    scan.rebase(0.25);
                }
                match lines.map(|l| l.map(f64::from)) {
                    Some([a, b, c, d]) => {
                        auto.set(user, &[a, b], &[c, d]);
                        scan.set(user, &[a, b], &[c, d]);
                    }
                    None => {
                        auto.remove(user);
                        scan.remove(user);
                    }
                }
                s -= s * f64::from(pass) / 16.0;
                auto.lowest(s, 0.0, 2.0, &mut near);
                scan.lowest(s, 0.0, 2.0, &mut expected);
                near.sort_unstable();
                expected.sort_unstable();
                prop_assert_eq!(&near, &expected);
            }
        }
    }
}
