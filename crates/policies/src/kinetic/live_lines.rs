//! The live tree of Sadok et al. (2021) as an order of users.

use std::cmp::Ordering;

use super::lines::{Line, compare, next_swap, value};
use super::{LineOrder, LiveTree, Priority, limit, rounding_bound};

/// Time as s = 2^(-half-lives), which decreases and is above 0.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Falling(f64);

impl Eq for Falling {}

impl Ord for Falling {
    fn cmp(&self, other: &Falling) -> Ordering {
        other.0.total_cmp(&self.0)
    }
}

impl PartialOrd for Falling {
    fn partial_cmp(&self, other: &Falling) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The priority that is the maximum of some lines.
#[derive(Clone, Debug)]
struct Largest(Box<[Line]>);

impl Priority for Largest {
    type Time = Falling;

    fn compare(&self, other: &Largest, now: Falling) -> Ordering {
        compare(&self.0, &other.0, now.0)
    }

    fn next_swap(&self, other: &Largest, now: Falling, loses_ties: bool) -> Option<Falling> {
        let s = next_swap(&self.0, &other.0, now.0, loses_ties);
        (s > 0.0).then_some(Falling(s))
    }
}

/// All users in order, as in Sadok et al. (2021): the [`LiveTree`] over maxima of lines in s.
///
/// The lowest user is found in O(1), plus O(log n) for each swap since the last call. It keeps more order than a
/// scheduler needs, and so does more work than a [`Tournament`](super::Tournament); its
/// [`order_events`](LineOrder::order_events) are those of the paper's Figure 6.
///
/// ```
/// use evenhand_policies::kinetic::{LineOrder, LiveLines};
/// let mut live = LiveLines::new(2);
/// live.set(0, &[0.3, 0.0], &[0.4, 0.1]);
/// live.set(1, &[0.5, 0.0], &[0.1, 0.1]);
/// let mut near = Vec::new();
/// live.lowest(1.0, 0.0, 0.0, &mut near);
/// assert_eq!(near, [1]); // 0.7 and 0.6
/// live.lowest(0.5, 0.0, 0.0, &mut near);
/// assert_eq!(near, [0]); // 0.5 and 0.55: they crossed at s = 2/3
/// assert_eq!(live.order_events(), 1);
/// ```
#[derive(Clone, Debug)]
pub struct LiveLines {
    branches: usize,
    tree: LiveTree<Largest>,
    /// Whether the order is invalid because slopes became too small for an f64.
    out_of_order: bool,
    /// An upper bound on all |b|.
    steepest: f64,
    values: Vec<f64>,
}

impl LiveLines {
    /// Creates an empty order for priorities with this number of branches.
    ///
    /// # Panics
    /// Panics if `branches` is 0.
    pub fn new(branches: usize) -> LiveLines {
        assert!(branches > 0, "a priority has at least one branch");
        let tree = LiveTree::new(Falling(1.0));
        LiveLines { branches, tree, out_of_order: false, steepest: 0.0, values: Vec::new() }
    }

    /// Returns all users in order, as of the last [`lowest`](LineOrder::lowest).
    pub fn users(&self) -> impl Iterator<Item = u32> + '_ {
        self.tree.iter()
    }
}

/// Lines are inserted as of the last `lowest`. They are valid at every s, so the next `lowest` can advance all users
/// together.
impl LineOrder for LiveLines {
    fn set(&mut self, user: u32, a: &[f64], b: &[f64]) {
        let kept = self.tree.remove(user);
        let mut lines = kept.unwrap_or_else(|| Largest(vec![Line::default(); self.branches].into_boxed_slice()));
        for (line, (&a, &b)) in lines.0.iter_mut().zip(a.iter().zip(b)) {
            *line = Line { a, b };
            self.steepest = self.steepest.max(b.abs());
        }
        self.tree.insert(user, lines);
    }

    fn remove(&mut self, user: u32) {
        self.tree.remove(user);
    }

    fn lowest(&mut self, s: f64, relative: f64, absolute: f64, near: &mut Vec<u32>) {
        near.clear();
        if std::mem::take(&mut self.out_of_order) {
            self.tree.reorder(Falling(s), |_| ());
        } else {
            self.tree.advance(Falling(s));
        }
        let s = self.tree.now().0;
        let value_of = |user: u32| self.tree.get(user).map_or(f64::INFINITY, |l| value(&l.0, s));
        let Some(first) = self.tree.first() else { return };
        let bound = limit(value_of(first), relative, absolute);
        // Later users can be below only by rounding.
        let bound = bound + rounding_bound(bound, self.steepest, s);
        self.values.clear();
        for user in self.tree.iter() {
            let value = value_of(user);
            if value > bound {
                break;
            }
            near.push(user);
            self.values.push(value);
        }
        let lowest = self.values.iter().copied().fold(f64::INFINITY, f64::min);
        let limit = limit(lowest, relative, absolute);
        let mut values = self.values.iter();
        near.retain(|_| values.next().is_some_and(|v| *v <= limit));
    }

    fn rebase(&mut self, factor: f64) {
        let mut exact = factor > 0.0;
        let mut steepest = 0.0_f64;
        let change = |lines: &mut Largest| {
            for line in &mut lines.0 {
                let b = line.b * factor;
                exact &= b / factor == line.b;
                line.b = b;
                steepest = steepest.max(b.abs());
            }
        };
        self.tree.change_clock(|t| Falling(t.0 / factor), change);
        self.steepest = steepest;
        self.out_of_order |= !exact;
    }

    fn order_events(&self) -> u64 {
        self.tree.events()
    }
}
