//! A set of users (or parties) that can be iterated quickly.

/// A set of indices below a fixed number. Insertion, removal and lookup take constant time; iteration takes time
/// proportional to the number of members and has no particular order.
#[derive(Clone, Debug, Default)]
pub(crate) struct UserSet {
    members: Vec<u32>,
    /// The position of each user in `members`; [`u32::MAX`] for users outside the set.
    position: Vec<u32>,
}

impl UserSet {
    /// Creates an empty set of users below `users`.
    pub(crate) fn new(users: usize) -> UserSet {
        UserSet { members: Vec::new(), position: vec![u32::MAX; users] }
    }

    /// Returns the members in no particular order.
    pub(crate) fn members(&self) -> &[u32] {
        &self.members
    }

    /// Returns whether a user is a member.
    #[inline]
    pub(crate) fn contains(&self, user: u32) -> bool {
        self.position[user as usize] != u32::MAX
    }

    /// Inserts or removes a user.
    pub(crate) fn set(&mut self, user: u32, member: bool) {
        let position = self.position[user as usize];
        match (position != u32::MAX, member) {
            (false, true) => {
                self.position[user as usize] = self.members.len() as u32;
                self.members.push(user);
            }
            (true, false) => {
                self.members.swap_remove(position as usize);
                if let Some(&moved) = self.members.get(position as usize) {
                    self.position[moved as usize] = position;
                }
                self.position[user as usize] = u32::MAX;
            }
            _ => {}
        }
    }
}
