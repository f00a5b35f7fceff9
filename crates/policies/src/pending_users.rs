//! The users with pending jobs, as a set that can be iterated without gaps.

use evenhand_model::UserId;

/// A set of users, stored without gaps and in no defined order.
pub(crate) struct PendingUsers {
    users: Vec<UserId>,
    /// By user: its index in `users`.
    place: Vec<Option<usize>>,
}

impl PendingUsers {
    /// Creates an empty set of users 0 to n - 1.
    pub(crate) fn new(n: usize) -> PendingUsers {
        PendingUsers { users: Vec::new(), place: vec![None; n] }
    }

    /// Adds or removes a user; does nothing if it is already in that state. O(1).
    pub(crate) fn set(&mut self, user: UserId, is_in: bool) {
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
            _ => {}
        }
    }

    /// Returns the members.
    pub(crate) fn users(&self) -> &[UserId] {
        &self.users
    }

    /// Returns the number of all users.
    pub(crate) fn user_count(&self) -> usize {
        self.place.len()
    }
}
