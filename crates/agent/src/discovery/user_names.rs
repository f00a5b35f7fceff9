//! Names of this machine's users.

use std::collections::{HashMap, HashSet};

use nix::unistd::{Uid, User};

/// The name of a user.
pub(crate) enum UserName {
    /// The name from the machine's name service, or the user's number if it knows no such user.
    Resolved(String),
    /// The user's number for now: the name service, or the directory behind it, does not answer.
    Provisional(String),
}

/// Caches the names from the machine's name service, which may ask a directory.
#[derive(Default)]
pub(crate) struct UserNames {
    names: HashMap<u32, String>,
    /// The users without a name, of this scan.
    unknown: HashSet<u32>,
    problem: Option<String>,
}

impl UserNames {
    /// Begins a scan, in which users without a name are looked up again.
    pub(crate) fn begin_scan(&mut self) {
        self.problem = None;
        self.unknown.clear();
    }

    /// Returns the name of a user. After a failure no user is looked up until the next scan: a directory that is down
    /// costs its timeout once.
    pub(crate) fn name(&mut self, uid: u32) -> UserName {
        if let Some(name) = self.names.get(&uid) {
            return UserName::Resolved(name.clone());
        }
        if self.unknown.contains(&uid) {
            return UserName::Resolved(uid.to_string());
        }
        if self.problem.is_some() {
            return UserName::Provisional(uid.to_string());
        }
        match User::from_uid(Uid::from_raw(uid)) {
            Ok(Some(user)) => {
                self.names.insert(uid, user.name.clone());
                UserName::Resolved(user.name)
            }
            Ok(None) => {
                self.unknown.insert(uid);
                UserName::Resolved(uid.to_string())
            }
            Err(error) => {
                self.problem = Some(format!("the name of user {uid} cannot be looked up at present: {error}"));
                UserName::Provisional(uid.to_string())
            }
        }
    }

    /// Returns why names are missing.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_has_a_name_and_unknown_users_keep_their_number() {
        let mut users = UserNames::default();
        assert!(matches!(users.name(0), UserName::Resolved(name) if name == "root"));
        assert!(matches!(users.name(0), UserName::Resolved(name) if name == "root"));
        assert!(matches!(users.name(4_000_000_123), UserName::Resolved(name) if name == "4000000123"));
        assert!(users.problem().is_none());
    }
}
