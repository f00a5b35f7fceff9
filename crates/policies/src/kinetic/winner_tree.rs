//! A winner tree over a fixed set of users.

const NO_USER: u32 = u32::MAX;

/// The first of the present users under a total order that changes only for touched users.
///
/// A complete binary tree in an array; each inner node holds the winner of its two children.
/// [`touch`](WinnerTree::touch) costs at most log2(n) comparisons and stops where a node keeps its
/// winner; [`winner`](WinnerTree::winner) is one load. Unlike a heap it never moves users, so a
/// priority may change before the tree is notified. Equal users do not occur: the order is total.
///
/// ```
/// use evenhand_policies::kinetic::WinnerTree;
/// let mut key = [3, 1, 2];
/// let mut t = WinnerTree::new(3);
/// for user in 0..3 {
///     t.touch(user, true, |a, b| key[a as usize] < key[b as usize]);
/// }
/// assert_eq!(t.winner(), Some(1));
/// key[1] = 9;
/// t.touch(1, true, |a, b| key[a as usize] < key[b as usize]);
/// assert_eq!(t.winner(), Some(2));
/// ```
#[derive(Clone, Debug)]
pub struct WinnerTree {
    /// `nodes[1]` is the root, leaf of user u is `nodes[leaves + u]`.
    nodes: Vec<u32>,
    leaves: usize,
}

impl WinnerTree {
    /// Creates a tree for users 0 to n - 1, all absent.
    pub fn new(n: usize) -> WinnerTree {
        let leaves = n.next_power_of_two().max(1);
        WinnerTree { nodes: vec![NO_USER; 2 * leaves], leaves }
    }

    /// Updates the tree after `user` became present or absent, or its priority changed. `before(a, b)` returns whether
    /// a comes before b, and must be a total order of the present users. O(log n).
    #[inline]
    pub fn touch(&mut self, user: u32, present: bool, before: impl Fn(u32, u32) -> bool) {
        let mut at = self.leaves + user as usize;
        self.nodes[at] = if present { user } else { NO_USER };
        while at > 1 {
            let (a, b) = (self.nodes[at], self.nodes[at ^ 1]);
            let winner = match (a, b) {
                (NO_USER, other) | (other, NO_USER) => other,
                _ if before(a, b) => a,
                _ => b,
            };
            at /= 2;
            // The winner stays and is not the touched user: nothing changes further up.
            if self.nodes[at] == winner && winner != user {
                return;
            }
            self.nodes[at] = winner;
        }
    }

    /// Returns the first present user. O(1).
    #[inline]
    pub fn winner(&self) -> Option<u32> {
        Some(self.nodes[1]).filter(|&u| u != NO_USER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Reference model: the lowest present key; among equal keys the user with the smaller number.
        #[test]
        fn the_winner_is_the_lowest(n in 1usize..40, ops in prop::collection::vec((0usize..40, 0u8..4, any::<bool>()), 0..200)) {
            let mut key = vec![0u8; n];
            let mut present = vec![false; n];
            let mut tree = WinnerTree::new(n);
            for (user, k, here) in ops {
                let user = user % n;
                key[user] = k;
                present[user] = here;
                tree.touch(user as u32, here, |a, b| (key[a as usize], a) < (key[b as usize], b));
                let lowest = (0..n).filter(|&u| present[u]).min_by_key(|&u| (key[u], u)).map(|u| u as u32);
                prop_assert_eq!(tree.winner(), lowest);
            }
        }
    }
}
