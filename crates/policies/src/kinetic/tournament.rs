//! A kinetic tournament: the lowest user, and until when it stays lowest.

use super::lines::{Line, compare, next_swap, value};
use super::{LineOrder, limit, rounding_bound};

const NO_USER: u32 = u32::MAX;
/// The s of a change that has already happened.
const CHANGED: f64 = f64::INFINITY;
/// The s of a change that never happens.
const NEVER: f64 = 0.0;

/// A tree of matches, each between the winners of two others, down to the users.
///
/// A match stores the s at which its winner changes, and the largest such s in its subtree. An advance to a new s
/// visits only subtrees whose s was passed; a changed user marks the matches above it. So [`lowest`](LineOrder::lowest)
/// costs O(log n) for each user changed since the last call, for each match whose winner changes, and for each returned
/// user. The tree grows with the user numbers.
///
/// Unlike the [`LiveTree`](super::LiveTree) it does not order users who win no match, so it ignores swaps among them
/// (Basch, Guibas, Hershberger 1999; Agarwal, Kaplan, Sharir 2008 for changing users).
///
/// ```
/// use evenhand_policies::kinetic::{LineOrder, Tournament};
/// let mut tournament = Tournament::new(2, 1);
/// tournament.set(0, &[0.3], &[0.4]);
/// tournament.set(1, &[0.5], &[0.1]);
/// let mut near = Vec::new();
/// tournament.lowest(1.0, 0.0, 0.0, &mut near);
/// assert_eq!(near, [1]); // 0.7 and 0.6
/// tournament.lowest(0.5, 0.0, 0.0, &mut near);
/// assert_eq!(near, [0]); // 0.5 and 0.55: they crossed at s = 2/3
/// ```
#[derive(Clone, Debug)]
pub struct Tournament {
    branches: usize,
    /// One row of branches per user.
    lines: Vec<Line>,
    /// The root is 1, the children of k are 2 k and 2 k + 1, the leaf of user u is `users + u`.
    nodes: Vec<Node>,
    /// The number of leaves: a power of two, at least 2.
    users: usize,
    present: usize,
    /// The s for which the winners are valid.
    s: f64,
    /// An upper bound on all |b|.
    steepest: f64,
    events: u64,
    open: Vec<(usize, f64)>,
    found: Vec<(f64, u32)>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    winner: u32,
    /// The s at which the winner of this match changes.
    turns: f64,
    /// The largest s at which a winner in this subtree changes.
    until: f64,
}

const EMPTY: Node = Node { winner: NO_USER, turns: CHANGED, until: CHANGED };

impl Tournament {
    /// Creates a tournament for users 0 to n - 1, all absent, whose priorities have this number of branches.
    ///
    /// # Panics
    /// Panics if `branches` is 0.
    pub fn new(n: usize, branches: usize) -> Tournament {
        assert!(branches > 0, "a priority has at least one branch");
        let mut tournament = Tournament {
            branches,
            lines: Vec::new(),
            nodes: Vec::new(),
            users: 0,
            present: 0,
            s: f64::INFINITY,
            steepest: 0.0,
            events: 0,
            open: Vec::new(),
            found: Vec::new(),
        };
        tournament.grow(n);
        tournament
    }

    /// Returns the number of present users.
    pub fn len(&self) -> usize {
        self.present
    }

    /// Returns whether no user is present.
    pub fn is_empty(&self) -> bool {
        self.present == 0
    }

    /// Returns the present users with their lines.
    pub(super) fn entries(&self) -> impl Iterator<Item = (u32, &[Line])> {
        let users = self.nodes[self.users..].iter().map(|n| n.winner).filter(|&w| w != NO_USER);
        users.map(|u| (u, self.lines_of(u)))
    }

    #[inline]
    fn lines_of(&self, user: u32) -> &[Line] {
        &self.lines[user as usize * self.branches..][..self.branches]
    }

    fn grow(&mut self, n: usize) {
        let users = n.next_power_of_two().max(2);
        let mut nodes = vec![EMPTY; 2 * users];
        let old = self.nodes.get(self.users..).unwrap_or_default();
        nodes[users..users + old.len()].copy_from_slice(old);
        self.nodes = nodes;
        self.users = users;
        self.lines.resize(users * self.branches, Line::default());
    }

    /// Marks the user's leaf and all matches above it as changed.
    fn mark(&mut self, user: u32) {
        let mut at = self.users + user as usize;
        while at > 0 && (at >= self.users || self.nodes[at].until != CHANGED) {
            self.nodes[at].until = CHANGED;
            at /= 2;
        }
    }

    /// Updates the changed parts of a subtree for `s`. Returns whether its winner or the winner's lines changed.
    fn refresh(&mut self, at: usize, s: f64) -> bool {
        if at >= self.users {
            self.nodes[at].until = NEVER;
            return true;
        }
        let children = [2 * at, 2 * at + 1];
        let changed = children.map(|c| self.nodes[c].until >= s && self.refresh(c, s));
        let mut node = self.nodes[at];
        let before = node.winner;
        let turned = node.turns >= s;
        self.events += u64::from(turned && node.turns != CHANGED);
        let [left, right] = children.map(|c| self.nodes[c]);
        if turned || changed != [false; 2] {
            (node.winner, node.turns) = self.play(left.winner, right.winner, s);
        }
        node.until = node.turns.max(left.until).max(right.until);
        self.nodes[at] = node;
        let from = changed[usize::from(node.winner == right.winner)];
        node.winner != before || from
    }

    /// Returns the winner of a match, and the s at which it changes.
    #[inline]
    fn play(&self, a: u32, b: u32, s: f64) -> (u32, f64) {
        if a == NO_USER || b == NO_USER {
            return (a.min(b), NEVER);
        }
        // a is the left one and has the smaller number.
        let (x, y) = (self.lines_of(a), self.lines_of(b));
        match compare(x, y, s).is_gt() {
            true => (b, next_swap(y, x, s, true)),
            false => (a, next_swap(x, y, s, false)),
        }
    }

    /// Marks all matches as changed.
    fn mark_all(&mut self) {
        for node in &mut self.nodes {
            (node.turns, node.until) = (CHANGED, CHANGED);
        }
        self.s = f64::INFINITY;
    }
}

impl LineOrder for Tournament {
    fn set(&mut self, user: u32, a: &[f64], b: &[f64]) {
        let index = user as usize;
        if index >= self.users {
            self.grow(index + 1);
        }
        for (line, (&a, &b)) in self.lines[index * self.branches..].iter_mut().zip(a.iter().zip(b)) {
            *line = Line { a, b };
            self.steepest = self.steepest.max(b.abs());
        }
        let leaf = &mut self.nodes[self.users + index];
        self.present += usize::from(leaf.winner == NO_USER);
        leaf.winner = user;
        self.mark(user);
    }

    fn remove(&mut self, user: u32) {
        let leaf = self.users + user as usize;
        if self.nodes.get(leaf).is_none_or(|n| n.winner == NO_USER) {
            return;
        }
        self.nodes[leaf].winner = NO_USER;
        self.present -= 1;
        self.mark(user);
    }

    fn lowest(&mut self, s: f64, relative: f64, absolute: f64, near: &mut Vec<u32>) {
        near.clear();
        self.s = self.s.min(s);
        let s = self.s;
        if self.nodes[1].until >= s {
            self.refresh(1, s);
        }
        let winner = self.nodes[1].winner;
        if winner == NO_USER {
            return;
        }
        let (mut open, mut found) = (std::mem::take(&mut self.open), std::mem::take(&mut self.found));
        found.clear();
        let value_of = |user: u32| value(self.lines_of(user), s);
        let mut lowest = value_of(winner);
        let bound = limit(lowest, relative, absolute);
        let bound = bound + rounding_bound(bound, self.steepest, s);
        open.push((1, lowest));
        while let Some((at, value)) = open.pop() {
            if at >= self.users {
                lowest = lowest.min(value);
                found.push((value, self.nodes[at].winner));
                continue;
            }
            for child in [2 * at, 2 * at + 1] {
                // Users of a subtree can be below its winner only by rounding.
                match self.nodes[child].winner {
                    NO_USER => {}
                    same if same == self.nodes[at].winner => open.push((child, value)),
                    other => {
                        let value = value_of(other);
                        if value <= bound {
                            open.push((child, value));
                        }
                    }
                }
            }
        }
        let limit = limit(lowest, relative, absolute);
        near.extend(found.iter().filter(|(v, _)| *v <= limit).map(|(_, u)| *u));
        (self.open, self.found) = (open, found);
    }

    fn rebase(&mut self, factor: f64) {
        let mut exact = factor > 0.0;
        self.steepest = 0.0;
        for line in &mut self.lines {
            let b = line.b * factor;
            exact &= b / factor == line.b;
            line.b = b;
            self.steepest = self.steepest.max(b.abs());
        }
        if !exact {
            // Slopes became too small for an f64, so winners may have changed.
            return self.mark_all();
        }
        self.s /= factor;
        for node in &mut self.nodes {
            node.turns /= factor;
            node.until /= factor;
        }
    }

    /// Returns the number of matches whose winner changed by the passing of time, not by changes of users.
    fn order_events(&self) -> u64 {
        self.events
    }
}
