//! Which structure keeps users ordered.

use std::str::FromStr;

use thiserror::Error;

use super::{LineOrder, LiveLines, Scan, Tournament};

/// Which structure keeps users ordered by priorities that move. All decide alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// A [`Scan`] while few users wait, a [`Tournament`] while many do.
    #[default]
    Auto,
    /// A [`Scan`].
    Scan,
    /// A [`Tournament`].
    Tournament,
    /// The live tree of Sadok et al. (2021) ([`LiveLines`]), for its count of order changes.
    LiveTree,
}

/// There is no such structure.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("found {0:?}, expected one of: {names}", names = Order::ALL.map(Order::name).join(", "))]
pub struct OrderError(String);

impl Order {
    /// All of them.
    pub const ALL: [Order; 4] = [Order::Auto, Order::Scan, Order::Tournament, Order::LiveTree];

    /// What users type.
    pub fn name(self) -> &'static str {
        match self {
            Order::Auto => "auto",
            Order::Scan => "scan",
            Order::Tournament => "tournament",
            Order::LiveTree => "live-tree",
        }
    }

    /// The structure, for users 0 to n - 1 whose priorities have so many branches.
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

/// With more users than this in, a tournament is faster (docs/src/explanation/performance.md: from 2,500 to 3,500, by
/// how much time passes between decisions).
const MANY: usize = 3_000;
/// With fewer than this in, a scan takes over again. Far enough below that going over and back is
/// rare beside the changes in between.
const FEW: usize = MANY / 2;

/// A scan or a tournament, by the number of users in.
struct Auto {
    n: usize,
    branches: usize,
    /// A scan with more than this becomes a tournament.
    many: usize,
    /// A tournament with fewer than this becomes a scan.
    few: usize,
    kept: Kept,
    /// Of structures no longer in use.
    events: u64,
}

enum Kept {
    Scan(Scan),
    Tournament(Tournament),
}

impl Auto {
    fn new(n: usize, branches: usize, many: usize, few: usize) -> Auto {
        Auto { n, branches, many, few, kept: Kept::Scan(Scan::new(n, branches)), events: 0 }
    }

    fn inner(&mut self) -> &mut dyn LineOrder {
        match &mut self.kept {
            Kept::Scan(scan) => scan,
            Kept::Tournament(tournament) => tournament,
        }
    }

    fn change(&mut self) {
        self.events = self.order_events();
        let (mut a, mut b) = (vec![0.0; self.branches], vec![0.0; self.branches]);
        self.kept = match &self.kept {
            Kept::Scan(scan) => {
                let mut tournament = Tournament::new(self.n, self.branches);
                for user in scan.users() {
                    scan.lines_of(user, &mut a, &mut b);
                    tournament.set(user, &a, &b);
                }
                Kept::Tournament(tournament)
            }
            Kept::Tournament(tournament) => {
                let mut scan = Scan::new(self.n, self.branches);
                for (user, lines) in tournament.entries() {
                    for (r, line) in lines.iter().enumerate() {
                        (a[r], b[r]) = (line.a, line.b);
                    }
                    scan.set(user, &a, &b);
                }
                Kept::Scan(scan)
            }
        };
    }
}

impl LineOrder for Auto {
    fn set(&mut self, user: u32, a: &[f64], b: &[f64]) {
        self.inner().set(user, a, b);
        if matches!(&self.kept, Kept::Scan(scan) if scan.users().len() > self.many) {
            self.change();
        }
    }

    fn remove(&mut self, user: u32) {
        self.inner().remove(user);
        if matches!(&self.kept, Kept::Tournament(tournament) if tournament.len() < self.few) {
            self.change();
        }
    }

    fn lowest(&mut self, s: f64, relative: f64, absolute: f64, near: &mut Vec<u32>) {
        self.inner().lowest(s, relative, absolute, near);
    }

    fn rebase(&mut self, factor: f64) {
        self.inner().rebase(factor);
    }

    fn order_events(&self) -> u64 {
        let of_kept = match &self.kept {
            Kept::Scan(scan) => scan.order_events(),
            Kept::Tournament(tournament) => tournament.order_events(),
        };
        self.events + of_kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_structure_is_found_by_its_name() {
        for order in Order::ALL {
            assert_eq!(order.name().parse(), Ok(order));
        }
        let error = "heap".parse::<Order>().unwrap_err();
        assert_eq!(error.to_string(), "found \"heap\", expected one of: auto, scan, tournament, live-tree");
    }

    #[test]
    fn many_users_go_over_to_a_tournament_and_few_back_to_a_scan() {
        let n = MANY + 100;
        let mut auto = Auto::new(n, 1, MANY, FEW);
        let mut near = Vec::new();
        let mut lowest = |auto: &mut Auto, s: f64| {
            auto.lowest(s, 0.0, 0.0, &mut near);
            near.clone()
        };
        for user in 0..n as u32 {
            assert_eq!(matches!(auto.kept, Kept::Tournament(_)), user as usize > MANY);
            // At s = 1 the first is lowest, at s = 1/2 all are equal, later the last is.
            auto.set(user, &[f64::from(n as u32 - user)], &[f64::from(2 * user)]);
        }
        assert_eq!(lowest(&mut auto, 1.0), [0]);
        assert_eq!(lowest(&mut auto, 0.5).len(), n);
        assert_eq!(lowest(&mut auto, 0.25), [n as u32 - 1]);
        let events = auto.order_events();
        assert_eq!(events, n as u64 - 1, "every match turned once");
        for user in (FEW as u32 - 1..n as u32).rev() {
            assert!(matches!(auto.kept, Kept::Tournament(_)));
            auto.remove(user);
        }
        assert!(matches!(auto.kept, Kept::Scan(_)));
        assert_eq!(lowest(&mut auto, 0.25), [FEW as u32 - 2]);
        assert_eq!(auto.order_events(), events);
    }

    proptest! {
        /// Going over and back, with the epoch moving in between, loses nothing.
        #[test]
        fn it_answers_as_a_scan_does(
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
