//! Users all of whose waiting jobs limits hold back.

/// A set of users.
#[derive(Clone, Debug)]
pub(super) struct HeldBack {
    /// By user: its place in the list, or [`NOWHERE`].
    place: Vec<u32>,
    users: Vec<u32>,
}

const NOWHERE: u32 = u32::MAX;

impl HeldBack {
    /// None of so many users.
    pub(super) fn new(users: usize) -> HeldBack {
        HeldBack { place: vec![NOWHERE; users], users: Vec::new() }
    }

    pub(super) fn contains(&self, user: u32) -> bool {
        self.place[user as usize] != NOWHERE
    }

    pub(super) fn insert(&mut self, user: u32) {
        if !self.contains(user) {
            self.place[user as usize] = self.users.len() as u32;
            self.users.push(user);
        }
    }

    /// Removes a user; returns whether it was there.
    pub(super) fn remove(&mut self, user: u32) -> bool {
        let place = std::mem::replace(&mut self.place[user as usize], NOWHERE);
        if place == NOWHERE {
            return false;
        }
        self.users.swap_remove(place as usize);
        if let Some(moved) = self.users.get(place as usize) {
            self.place[*moved as usize] = place;
        }
        true
    }

    /// Removes all users, and returns them.
    pub(super) fn remove_all(&mut self) -> Vec<u32> {
        let users = std::mem::take(&mut self.users);
        users.iter().for_each(|user| self.place[*user as usize] = NOWHERE);
        users
    }
}
