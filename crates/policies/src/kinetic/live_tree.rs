//! The live tree of Sadok et al. (2021): elements in order of priorities that change with time.
//!
//! The paper offers it for more than scheduling, so it is generic here: anything whose priorities
//! can be compared at a time, and can compute when two of them next swap, is kept in order.

use std::cmp::Ordering;
use std::collections::BTreeSet;

/// A priority that changes with time as is known beforehand.
pub trait Priority {
    /// Time, or anything that moves with it: later is greater.
    type Time: Copy + Ord;

    /// Which of two is lower at `now` and, where they are equal at `now`, right after it. Equal: they
    /// are the same for a while; the tree then puts the smaller index first.
    ///
    /// At any one time this must be a total order.
    fn compare(&self, other: &Self, now: Self::Time) -> Ordering;

    /// The first time after `now` at which `other` comes before `self`, which comes first at `now`.
    ///
    /// That is when [`compare`](Priority::compare) is Greater or, if `loses_ties`, Equal: `other`
    /// has the smaller index. A time too early costs an event for nothing; one too late is an error
    /// that leaves the tree out of order.
    fn next_swap(&self, other: &Self, now: Self::Time, loses_ties: bool) -> Option<Self::Time>;
}

const NONE: u32 = u32::MAX;

/// Elements in order of their [`Priority`], lowest first, at a time that moves on.
///
/// As in the paper: a balanced tree of the elements, a balanced tree of swaps in order of time (one
/// for each element that will swap with its successor), and an index from numbers to elements.
///
/// | operation | cost |
/// |---|---|
/// | [`first`](LiveTree::first), [`successor`](LiveTree::successor), [`predecessor`](LiveTree::predecessor), [`get`](LiveTree::get) | O(1) |
/// | [`insert`](LiveTree::insert), [`remove`](LiveTree::remove) | O(log n) |
/// | [`advance`](LiveTree::advance), no swap due | O(1) |
/// | [`advance`](LiveTree::advance), k swaps due | O(k log n), and k <= n |
///
/// The tree of elements is a treap, so its O(log n) is expected, for any order of operations. The
/// index is a vector: elements are best numbered from 0. Only the order is kept, so a structure that
/// needs nothing but the first does less work (see [`Tournament`](super::Tournament)).
///
/// Changes are made at the tree's time: [`advance`](LiveTree::advance) first.
///
/// ```
/// use evenhand_policies::kinetic::{LiveTree, Priority};
/// use std::cmp::Ordering;
///
/// /// Runners on a track: metres from the start at second 0, metres a second.
/// struct Runner(i64, i64);
///
/// impl Priority for Runner {
///     type Time = i64;
///
///     fn compare(&self, other: &Runner, now: i64) -> Ordering {
///         let place = |r: &Runner| r.0 + r.1 * now;
///         place(self).cmp(&place(other)).then(self.1.cmp(&other.1))
///     }
///
///     /// Seconds are whole: the first at which self is ahead of other, or level with it and faster.
///     fn next_swap(&self, other: &Runner, now: i64, _loses_ties: bool) -> Option<i64> {
///         let (behind, faster) = (other.0 - self.0, self.1 - other.1);
///         (faster > 0).then(|| (behind + faster - 1).div_euclid(faster).max(now + 1))
///     }
/// }
///
/// let mut race = LiveTree::new(0);
/// race.insert(7, Runner(0, 5));
/// race.insert(8, Runner(10, 3));
/// race.insert(9, Runner(12, 4));
/// assert_eq!(race.iter().collect::<Vec<_>>(), [7, 8, 9]);
/// race.advance(4);
/// assert_eq!(race.iter().collect::<Vec<_>>(), [7, 8, 9]); // at 20, 22, 28
/// race.advance(6);
/// assert_eq!(race.iter().collect::<Vec<_>>(), [8, 7, 9]); // at 28, 30, 36
/// race.advance(60);
/// assert_eq!(race.iter().collect::<Vec<_>>(), [8, 9, 7]);
/// assert_eq!(race.events(), 2);
/// ```
#[derive(Clone, Debug)]
pub struct LiveTree<P: Priority> {
    now: P::Time,
    /// By index; those without priority are not in.
    nodes: Vec<Node<P>>,
    root: u32,
    first: u32,
    len: usize,
    /// When an element swaps with its successor, and which.
    swaps: BTreeSet<(P::Time, u32)>,
    events: u64,
    /// State of the generator of heap ranks.
    ranks: u64,
    /// Taken out by the present advance.
    taken: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Node<P: Priority> {
    priority: Option<P>,
    parent: u32,
    children: [u32; 2],
    /// Neighbours in order.
    before: u32,
    after: u32,
    /// A treap is a heap of random ranks: so it is as balanced as a random tree.
    rank: u32,
    swap: Option<P::Time>,
}

impl<P: Priority> Node<P> {
    fn absent() -> Node<P> {
        Node { priority: None, parent: NONE, children: [NONE; 2], before: NONE, after: NONE, rank: 0, swap: None }
    }
}

impl<P: Priority> LiveTree<P> {
    /// No user, at `now`.
    pub fn new(now: P::Time) -> LiveTree<P> {
        LiveTree {
            now,
            nodes: Vec::new(),
            root: NONE,
            first: NONE,
            len: 0,
            swaps: BTreeSet::new(),
            events: 0,
            ranks: 0,
            taken: Vec::new(),
        }
    }

    /// The time for which the order holds.
    pub fn now(&self) -> P::Time {
        self.now
    }

    /// How many are in.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether no user is in.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many swaps of neighbours [`advance`](LiveTree::advance) has handled: what Sadok et al. (2021) counts
    /// as events.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// When the next swap of neighbours is due.
    pub fn next_event(&self) -> Option<P::Time> {
        self.swaps.first().map(|s| s.0)
    }

    /// The priority of an element, if it is in.
    #[inline]
    pub fn get(&self, index: u32) -> Option<&P> {
        self.nodes.get(index as usize)?.priority.as_ref()
    }

    /// Who comes first.
    #[inline]
    pub fn first(&self) -> Option<u32> {
        some(self.first)
    }

    /// Who comes right after an element; no user if it is last or not in.
    #[inline]
    pub fn successor(&self, index: u32) -> Option<u32> {
        some(self.nodes.get(index as usize)?.after)
    }

    /// Who comes right before an element; no user if it is first or not in.
    #[inline]
    pub fn predecessor(&self, index: u32) -> Option<u32> {
        some(self.nodes.get(index as usize)?.before)
    }

    /// All users in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(self.first(), |&index| self.successor(index))
    }

    /// Puts an element in, in place of one of the same index, which is handed back.
    ///
    /// # Panics
    /// If `index` is `u32::MAX`.
    pub fn insert(&mut self, index: u32, priority: P) -> Option<P> {
        assert!(index != NONE, "the index {index} is reserved");
        let previous = self.remove(index);
        if self.nodes.len() <= index as usize {
            self.nodes.resize_with(index as usize + 1, Node::absent);
        }
        self.nodes[index as usize].priority = Some(priority);
        self.len += 1;
        self.link(index);
        previous
    }

    /// Takes an element out.
    pub fn remove(&mut self, index: u32) -> Option<P> {
        let priority = self.nodes.get_mut(index as usize)?.priority.take()?;
        self.len -= 1;
        self.unlink(index);
        self.foresee(self.nodes[index as usize].before);
        self.clear(index);
        Some(priority)
    }

    /// Moves time on to `to`. An earlier time than the present changes nothing.
    ///
    /// As in the paper, both elements of a swap that is due are taken out, and when no more are due
    /// all of them are put back in where they belong at `to`. Swaps of those who become neighbours in
    /// between are foreseen from the time before, so that none is missed, and each takes a caller
    /// out, so there are at most as many as elements.
    pub fn advance(&mut self, to: P::Time) {
        if to <= self.now {
            return;
        }
        let mut taken = std::mem::take(&mut self.taken);
        while let Some(&(time, index)) = self.swaps.first()
            && time <= to
        {
            self.events += 1;
            let after = self.nodes[index as usize].after;
            let before = self.nodes[index as usize].before;
            for gone in [index, after] {
                self.unlink(gone);
                self.clear(gone);
                taken.push(gone);
            }
            self.foresee(before);
        }
        self.now = to;
        for index in taken.drain(..) {
            self.link(index);
        }
        self.taken = taken;
    }

    /// Puts everything on another clock: `time` gives each old time the new one, `change` each
    /// priority the one it has by the new clock. O(n).
    ///
    /// The order must be the same by both clocks at all times; otherwise see
    /// [`reorder`](LiveTree::reorder).
    pub fn change_clock(&mut self, time: impl Fn(P::Time) -> P::Time, mut change: impl FnMut(&mut P)) {
        self.now = time(self.now);
        let mut swaps = BTreeSet::new();
        for (index, node) in (0..).zip(&mut self.nodes) {
            node.priority.iter_mut().for_each(&mut change);
            if let Some(swap) = &mut node.swap {
                *swap = time(*swap);
                swaps.insert((*swap, index));
            }
        }
        self.swaps = swaps;
    }

    /// Changes priorities in any way and orders all users anew as of `now`, which may be any time.
    /// O(n log n).
    pub fn reorder(&mut self, now: P::Time, mut change: impl FnMut(&mut P)) {
        self.now = now;
        (self.root, self.first) = (NONE, NONE);
        self.swaps.clear();
        for index in 0..self.nodes.len() {
            if let Some(priority) = &mut self.nodes[index].priority {
                change(priority);
                self.nodes[index].swap = None;
                self.link(index as u32);
            }
        }
    }

    /// Whether a comes before b at the present time.
    fn is_before(&self, a: u32, b: u32) -> bool {
        match (self.get(a), self.get(b)) {
            (Some(x), Some(y)) => x.compare(y, self.now).then(a.cmp(&b)).is_lt(),
            _ => false,
        }
    }

    /// Foresees anew when an element swaps with its successor.
    fn foresee(&mut self, index: u32) {
        let Some(node) = self.nodes.get(index as usize) else { return };
        let after = node.after;
        let swap = match (&node.priority, self.get(after)) {
            (Some(x), Some(y)) => x.next_swap(y, self.now, index > after),
            _ => None,
        };
        let old = std::mem::replace(&mut self.nodes[index as usize].swap, swap);
        if old != swap {
            if let Some(old) = old {
                self.swaps.remove(&(old, index));
            }
            if let Some(swap) = swap {
                self.swaps.insert((swap, index));
            }
        }
    }

    /// Puts an element with a priority where it belongs.
    fn link(&mut self, index: u32) {
        let (mut parent, mut at, mut side) = (NONE, self.root, 0);
        while at != NONE {
            parent = at;
            side = usize::from(!self.is_before(index, at));
            at = self.nodes[at as usize].children[side];
        }
        let (before, after) = match (some(parent), side) {
            (None, _) => (NONE, NONE),
            (Some(p), 0) => (self.nodes[p as usize].before, p),
            (Some(p), _) => (p, self.nodes[p as usize].after),
        };
        let rank = self.next_rank();
        let node = &mut self.nodes[index as usize];
        (node.parent, node.children, node.before, node.after, node.rank) = (parent, [NONE; 2], before, after, rank);
        self.join(before, index);
        self.join(index, after);
        self.hang(parent, side, index);
        while let Some(parent) = some(self.nodes[index as usize].parent)
            && self.nodes[parent as usize].rank < rank
        {
            self.rotate_up(index);
        }
        self.foresee(before);
        self.foresee(index);
    }

    /// Takes an element out of the tree and from between its neighbours; it keeps its own links to
    /// them. What its old predecessor foresees is out of date.
    fn unlink(&mut self, index: u32) {
        loop {
            let [left, right] = self.nodes[index as usize].children;
            let up = match (some(left), some(right)) {
                (Some(l), Some(r)) if self.nodes[l as usize].rank > self.nodes[r as usize].rank => l,
                (Some(_), Some(r)) => r,
                _ => break,
            };
            self.rotate_up(up);
        }
        let node = &self.nodes[index as usize];
        let (parent, before, after) = (node.parent, node.before, node.after);
        let child = node.children[usize::from(node.children[0] == NONE)];
        let side = self.side(parent, index);
        self.hang(parent, side, child);
        self.join(before, after);
    }

    /// Forgets an element's links and its swap.
    fn clear(&mut self, index: u32) {
        let node = &mut self.nodes[index as usize];
        (node.parent, node.children, node.before, node.after) = (NONE, [NONE; 2], NONE, NONE);
        if let Some(swap) = node.swap.take() {
            self.swaps.remove(&(swap, index));
        }
    }

    /// Makes two elements neighbours in order, either of whom may be no user.
    fn join(&mut self, before: u32, after: u32) {
        match self.nodes.get_mut(before as usize) {
            Some(node) => node.after = after,
            None => self.first = after,
        }
        if let Some(node) = self.nodes.get_mut(after as usize) {
            node.before = before;
        }
    }

    /// On which side of its parent an element hangs.
    fn side(&self, parent: u32, index: u32) -> usize {
        self.nodes.get(parent as usize).map_or(0, |p| usize::from(p.children[1] == index))
    }

    /// Hangs a subtree, or nothing, on one side of a parent, or makes it the root.
    fn hang(&mut self, parent: u32, side: usize, child: u32) {
        match self.nodes.get_mut(parent as usize) {
            Some(node) => node.children[side] = child,
            None => self.root = child,
        }
        if let Some(node) = self.nodes.get_mut(child as usize) {
            node.parent = parent;
        }
    }

    /// Makes an element's parent its child; the order stays.
    fn rotate_up(&mut self, index: u32) {
        let parent = self.nodes[index as usize].parent;
        let above = self.nodes[parent as usize].parent;
        let (side, side_above) = (self.side(parent, index), self.side(above, parent));
        let between = self.nodes[index as usize].children[1 - side];
        self.hang(parent, side, between);
        self.hang(index, 1 - side, parent);
        self.hang(above, side_above, index);
    }

    /// SplitMix64: the same ranks for the same operations.
    fn next_rank(&mut self) -> u32 {
        self.ranks = self.ranks.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.ranks ^ (self.ranks >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z >> 32) as u32
    }
}

#[inline]
fn some(index: u32) -> Option<u32> {
    Some(index).filter(|&i| i != NONE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Never moves.
    struct Still(u32);

    impl Priority for Still {
        type Time = u32;

        fn compare(&self, other: &Still, _now: u32) -> Ordering {
            self.0.cmp(&other.0)
        }

        fn next_swap(&self, _other: &Still, _now: u32, _loses_ties: bool) -> Option<u32> {
            None
        }
    }

    /// Below whom all users is reached once and in order, parents and ranks are right; the height.
    fn height(tree: &LiveTree<Still>, at: u32, parent: u32, seen: &mut Vec<u32>) -> usize {
        let Some(node) = tree.nodes.get(at as usize) else { return 0 };
        assert_eq!(node.parent, parent);
        assert!(tree.nodes.get(parent as usize).is_none_or(|p| p.rank >= node.rank));
        let left = height(tree, node.children[0], at, seen);
        seen.push(at);
        let right = height(tree, node.children[1], at, seen);
        1 + left.max(right)
    }

    fn checked_height(tree: &LiveTree<Still>) -> usize {
        let mut seen = Vec::new();
        let height = height(tree, tree.root, NONE, &mut seen);
        assert_eq!(seen, tree.iter().collect::<Vec<_>>());
        assert_eq!(seen.len(), tree.len());
        height
    }

    proptest! {
        #[test]
        fn links_are_right(operations in prop::collection::vec((0u32..30, prop::option::of(0u32..10)), 0..80)) {
            let mut tree = LiveTree::new(0);
            for (index, priority) in operations {
                match priority {
                    Some(p) => tree.insert(index, Still(p)),
                    None => tree.remove(index),
                };
                checked_height(&tree);
            }
        }
    }

    #[test]
    fn it_is_balanced_whatever_the_order_of_insertion() {
        let n: u32 = 20_000;
        let up = |i: u32| i;
        let down = |i: u32| n - i;
        let inward = |i: u32| if i.is_multiple_of(2) { i } else { 2 * n - i };
        for priority in [&up as &dyn Fn(u32) -> u32, &down, &inward] {
            let mut tree = LiveTree::new(0);
            for i in 0..n {
                tree.insert(i, Still(priority(i)));
            }
            // About 2 ln n = 20 levels above a user on average, and 4.3 ln n = 43 in the highest place.
            assert!(checked_height(&tree) < 48, "{}", checked_height(&tree));
            for i in (0..n).filter(|i| i % 8 != 0) {
                tree.remove(i);
            }
            assert!(checked_height(&tree) < 40, "{}", checked_height(&tree));
        }
    }
}
