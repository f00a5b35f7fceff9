//! The live tree of Sadok et al. (2021): elements in order of priorities that change with time.
//!
//! The paper proposes it also for other uses than scheduling, so it is generic here. It orders any elements whose
//! priorities can be compared at a time, and for which the time of the next swap of two elements can be computed.

use std::cmp::Ordering;
use std::collections::BTreeSet;

/// A priority that changes with time in a known way.
pub trait Priority {
    /// Time, or a quantity that increases with it.
    type Time: Copy + Ord;

    /// Compares two priorities at `now` and, if they are equal at `now`, right after it. `Equal` means that they stay
    /// equal for some time; the tree then puts the smaller index first.
    ///
    /// At any one time this must be a total order.
    fn compare(&self, other: &Self, now: Self::Time) -> Ordering;

    /// Returns the first time after `now` at which `other` comes before `self`, which comes first at `now`; `None` if
    /// it never does.
    ///
    /// That is when [`compare`](Priority::compare) is Greater or, if `loses_ties` (`other` has the smaller index),
    /// Equal. A time that is too early costs one needless event. A time that is too late leaves the tree out of order.
    fn next_swap(&self, other: &Self, now: Self::Time, loses_ties: bool) -> Option<Self::Time>;
}

const NONE: u32 = u32::MAX;

/// Elements in order of their [`Priority`], lowest first, at a time that moves on.
///
/// As in the paper it consists of a balanced tree of the elements, a balanced tree of swaps in order of time (one for
/// each element that will swap with its successor), and an index from numbers to elements.
///
/// | operation | cost |
/// |---|---|
/// | [`first`](LiveTree::first), [`successor`](LiveTree::successor), [`predecessor`](LiveTree::predecessor), [`get`](LiveTree::get) | O(1) |
/// | [`insert`](LiveTree::insert), [`remove`](LiveTree::remove) | O(log n) |
/// | [`advance`](LiveTree::advance), no swap due | O(1) |
/// | [`advance`](LiveTree::advance), k swaps due | O(k log n), and k <= n |
///
/// The tree of elements is a treap, so its O(log n) is an expected cost, for any order of operations. The index is a
/// vector, so elements should be numbered from 0. A structure that needs only the first element does less work (see
/// [`Tournament`](super::Tournament)).
///
/// Changes take effect at the tree's time: call [`advance`](LiveTree::advance) first.
///
/// ```
/// use evenhand_policies::kinetic::{LiveTree, Priority};
/// use std::cmp::Ordering;
///
/// /// Runners on a track: metres from the start at second 0, metres per second.
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
    /// By index; nodes without a priority are absent.
    nodes: Vec<Node<P>>,
    root: u32,
    first: u32,
    len: usize,
    /// The times at which elements swap with their successors.
    swaps: BTreeSet<(P::Time, u32)>,
    events: u64,
    /// State of the generator of heap ranks.
    ranks: u64,
    /// Elements removed by the current advance.
    removed: Vec<u32>,
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
    /// Creates an empty tree at time `now`.
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
            removed: Vec::new(),
        }
    }

    /// Returns the time for which the order holds.
    pub fn now(&self) -> P::Time {
        self.now
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the tree is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of swaps of neighbours that [`advance`](LiveTree::advance) has handled: the events of Sadok
    /// et al. (2021).
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Returns the time of the next swap of neighbours.
    pub fn next_event(&self) -> Option<P::Time> {
        self.swaps.first().map(|s| s.0)
    }

    /// Returns the priority of an element, if it is in the tree.
    #[inline]
    pub fn get(&self, index: u32) -> Option<&P> {
        self.nodes.get(index as usize)?.priority.as_ref()
    }

    /// Returns the first element.
    #[inline]
    pub fn first(&self) -> Option<u32> {
        some(self.first)
    }

    /// Returns the successor of an element; `None` if it is the last one or absent.
    #[inline]
    pub fn successor(&self, index: u32) -> Option<u32> {
        some(self.nodes.get(index as usize)?.after)
    }

    /// Returns the predecessor of an element; `None` if it is the first one or absent.
    #[inline]
    pub fn predecessor(&self, index: u32) -> Option<u32> {
        some(self.nodes.get(index as usize)?.before)
    }

    /// Returns all elements in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(self.first(), |&index| self.successor(index))
    }

    /// Inserts an element. Replaces and returns the priority of an element with the same index.
    ///
    /// # Panics
    /// Panics if `index` is `u32::MAX`.
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

    /// Removes an element and returns its priority.
    pub fn remove(&mut self, index: u32) -> Option<P> {
        let priority = self.nodes.get_mut(index as usize)?.priority.take()?;
        self.len -= 1;
        self.unlink(index);
        self.schedule_swap(self.nodes[index as usize].before);
        self.clear(index);
        Some(priority)
    }

    /// Advances the time to `to`. Does nothing if `to` is not later than the current time.
    ///
    /// As in the paper, both elements of a due swap are removed; when no more swaps are due, all removed elements are
    /// inserted at their places at `to`. Swaps of elements that become neighbours in between are computed from the old
    /// time, so that none is missed. Each swap removes elements, so there are at most as many swaps as elements.
    pub fn advance(&mut self, to: P::Time) {
        if to <= self.now {
            return;
        }
        let mut removed = std::mem::take(&mut self.removed);
        while let Some(&(time, index)) = self.swaps.first()
            && time <= to
        {
            self.events += 1;
            let after = self.nodes[index as usize].after;
            let before = self.nodes[index as usize].before;
            for element in [index, after] {
                self.unlink(element);
                self.clear(element);
                removed.push(element);
            }
            self.schedule_swap(before);
        }
        self.now = to;
        for index in removed.drain(..) {
            self.link(index);
        }
        self.removed = removed;
    }

    /// Changes the clock: `time` converts times, and `change` adapts each priority to the new clock. O(n).
    ///
    /// The order must be the same by both clocks at all times; otherwise use [`reorder`](LiveTree::reorder).
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

    /// Changes priorities in any way and sorts all elements as of `now`, which may be any time. O(n log n).
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

    /// Returns whether a comes before b at the current time.
    fn is_before(&self, a: u32, b: u32) -> bool {
        match (self.get(a), self.get(b)) {
            (Some(x), Some(y)) => x.compare(y, self.now).then(a.cmp(&b)).is_lt(),
            _ => false,
        }
    }

    /// Computes and stores the time at which an element swaps with its successor.
    fn schedule_swap(&mut self, index: u32) {
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

    /// Links an element with a priority into its place.
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
        self.attach(parent, side, index);
        while let Some(parent) = some(self.nodes[index as usize].parent)
            && self.nodes[parent as usize].rank < rank
        {
            self.rotate_up(index);
        }
        self.schedule_swap(before);
        self.schedule_swap(index);
    }

    /// Unlinks an element from the tree and from its neighbours, but keeps its own links to them. The swap of its old
    /// predecessor is then out of date.
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
        self.attach(parent, side, child);
        self.join(before, after);
    }

    /// Clears an element's links and its swap.
    fn clear(&mut self, index: u32) {
        let node = &mut self.nodes[index as usize];
        (node.parent, node.children, node.before, node.after) = (NONE, [NONE; 2], NONE, NONE);
        if let Some(swap) = node.swap.take() {
            self.swaps.remove(&(swap, index));
        }
    }

    /// Makes two elements neighbours in order. Either may be `NONE`.
    fn join(&mut self, before: u32, after: u32) {
        match self.nodes.get_mut(before as usize) {
            Some(node) => node.after = after,
            None => self.first = after,
        }
        if let Some(node) = self.nodes.get_mut(after as usize) {
            node.before = before;
        }
    }

    /// Returns the side of its parent to which an element is attached.
    fn side(&self, parent: u32, index: u32) -> usize {
        self.nodes.get(parent as usize).map_or(0, |p| usize::from(p.children[1] == index))
    }

    /// Attaches a subtree, or `NONE`, to one side of a parent, or makes it the root.
    fn attach(&mut self, parent: u32, side: usize, child: u32) {
        match self.nodes.get_mut(parent as usize) {
            Some(node) => node.children[side] = child,
            None => self.root = child,
        }
        if let Some(node) = self.nodes.get_mut(child as usize) {
            node.parent = parent;
        }
    }

    /// Makes an element's parent its child; keeps the order.
    fn rotate_up(&mut self, index: u32) {
        let parent = self.nodes[index as usize].parent;
        let above = self.nodes[parent as usize].parent;
        let (side, side_above) = (self.side(parent, index), self.side(above, parent));
        let between = self.nodes[index as usize].children[1 - side];
        self.attach(parent, side, between);
        self.attach(index, 1 - side, parent);
        self.attach(above, side_above, index);
    }

    /// Returns the next rank by SplitMix64, so that the same operations give the same ranks.
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

    /// A constant priority.
    struct Constant(u32);

    impl Priority for Constant {
        type Time = u32;

        fn compare(&self, other: &Constant, _now: u32) -> Ordering {
            self.0.cmp(&other.0)
        }

        fn next_swap(&self, _other: &Constant, _now: u32, _loses_ties: bool) -> Option<u32> {
            None
        }
    }

    /// Returns the height of a subtree. Checks parents and ranks, and appends the elements in order to `seen`.
    fn height(tree: &LiveTree<Constant>, at: u32, parent: u32, seen: &mut Vec<u32>) -> usize {
        let Some(node) = tree.nodes.get(at as usize) else { return 0 };
        assert_eq!(node.parent, parent);
        assert!(tree.nodes.get(parent as usize).is_none_or(|p| p.rank >= node.rank));
        let left = height(tree, node.children[0], at, seen);
        seen.push(at);
        let right = height(tree, node.children[1], at, seen);
        1 + left.max(right)
    }

    fn checked_height(tree: &LiveTree<Constant>) -> usize {
        let mut seen = Vec::new();
        let height = height(tree, tree.root, NONE, &mut seen);
        assert_eq!(seen, tree.iter().collect::<Vec<_>>());
        assert_eq!(seen.len(), tree.len());
        height
    }

    proptest! {
        #[test]
        fn links_and_ranks_are_valid_after_any_operations(operations in prop::collection::vec((0u32..30, prop::option::of(0u32..10)), 0..80)) {
            let mut tree = LiveTree::new(0);
            for (index, priority) in operations {
                match priority {
                    Some(p) => tree.insert(index, Constant(p)),
                    None => tree.remove(index),
                };
                checked_height(&tree);
            }
        }
    }

    #[test]
    fn the_tree_is_balanced_for_any_order_of_insertion() {
        let n: u32 = 20_000;
        let up = |i: u32| i;
        let down = |i: u32| n - i;
        let inward = |i: u32| if i.is_multiple_of(2) { i } else { 2 * n - i };
        for priority in [&up as &dyn Fn(u32) -> u32, &down, &inward] {
            let mut tree = LiveTree::new(0);
            for i in 0..n {
                tree.insert(i, Constant(priority(i)));
            }
            // About 2 ln n = 20 levels above an element on average, and 4.3 ln n = 43 at most.
            assert!(checked_height(&tree) < 48, "{}", checked_height(&tree));
            for i in (0..n).filter(|i| i % 8 != 0) {
                tree.remove(i);
            }
            assert!(checked_height(&tree) < 40, "{}", checked_height(&tree));
        }
    }
}
