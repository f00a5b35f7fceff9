//! A set of users that can be iterated without gaps.

use evenhand_model::UserId;

/// A set of users, stored without gaps and in no defined order.
///
/// ```
/// use evenhand_model::UserId;
/// use evenhand_policies::UserSet;
///
/// let mut waiting = UserSet::new(3);
/// assert!(waiting.set(UserId(1), true) && !waiting.set(UserId(1), true));
/// assert!(waiting.contains(UserId(1)));
/// assert_eq!(waiting.take_all(), [UserId(1)]);
/// assert!(waiting.users().is_empty());
/// ```
#[derive(Clone, Debug)]
pub struct UserSet {
    users: Vec<UserId>,
    /// By user: its index in `users`.
    place: Vec<Option<usize>>,
}

impl UserSet {
    /// Creates an empty set of users 0 to n - 1.
    pub fn new(n: usize) -> UserSet {
        UserSet { users: Vec::new(), place: vec![None; n] }
    }

    /// Adds or removes a user; returns whether that changed the set. O(1).
    ///
    /// # Panics
    /// Panics if `user` is not below n.
    pub fn set(&mut self, user: UserId, is_in: bool) -> bool {
        match (is_in, self.place[user.index()]) {
            (true, None) => {
                self.place[user.index()] = Some(self.users.len());
                self.users.push(user);
            }
            (false, Some(place)) => {
                self.place[user.index()] = None;
                self.users.swap_remove(place);
                if let Some(moved) = self.users.get(place) {
                    self.place[moved.index()] = Some(place);
                }
            }
            _ => return false,
        }
        true
    }

    /// Returns whether a user is in the set.
    ///
    /// # Panics
    /// Panics if `user` is not below n.
    pub fn contains(&self, user: UserId) -> bool {
        self.place[user.index()].is_some()
    }

    /// Removes all members, and returns them.
    pub fn take_all(&mut self) -> Vec<UserId> {
        let users = std::mem::take(&mut self.users);
        users.iter().for_each(|user| self.place[user.index()] = None);
        users
    }

    /// Returns the members.
    pub fn users(&self) -> &[UserId] {
        &self.users
    }

    /// Returns the number of all users.
    pub(crate) fn user_count(&self) -> usize {
        self.place.len()
    }
}
