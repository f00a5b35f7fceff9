//! The users who wait, in a row to be looked at one by one.

use evenhand_model::UserId;

/// A set of users whose members stand side by side, in no promised order.
pub(crate) struct Present {
    users: Vec<UserId>,
    /// By user: where it stands.
    place: Vec<Option<usize>>,
}

impl Present {
    /// Of users 0 to n - 1, none of whom is in.
    pub(crate) fn new(n: usize) -> Present {
        Present { users: Vec::new(), place: vec![None; n] }
    }

    /// Puts a user in or takes it out; nothing happens if it is already.
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

    /// Those who are in.
    pub(crate) fn users(&self) -> &[UserId] {
        &self.users
    }

    /// How many there could be.
    pub(crate) fn user_count(&self) -> usize {
        self.place.len()
    }
}
