//! Names of this machine's users.

use std::collections::{HashMap, HashSet};

use nix::unistd::{Uid, User};

/// What a user is called.
pub(crate) enum Called {
    /// By the machine's name service, or by its number if that knows no such user.
    So(String),
    /// By its number for now: the name service, or the directory behind it, does not answer.
    ForNow(String),
}

/// Asks the machine's name service, once a user. Directories are asked too if the machine uses one.
#[derive(Default)]
pub(crate) struct Users {
    names: HashMap<u32, String>,
    /// Of this look.
    unknown: HashSet<u32>,
    silent: Option<String>,
}

impl Users {
    /// A look begins: it may be asked again.
    pub(crate) fn begin(&mut self) {
        self.silent = None;
        self.unknown.clear();
    }

    /// The name of a user. After one failure nobody is asked until the next look: a directory that is down
    /// costs its time limit once.
    pub(crate) fn name(&mut self, uid: u32) -> Called {
        if let Some(name) = self.names.get(&uid) {
            return Called::So(name.clone());
        }
        if self.unknown.contains(&uid) {
            return Called::So(uid.to_string());
        }
        if self.silent.is_some() {
            return Called::ForNow(uid.to_string());
        }
        match User::from_uid(Uid::from_raw(uid)) {
            Ok(Some(user)) => {
                self.names.insert(uid, user.name.clone());
                Called::So(user.name)
            }
            Ok(None) => {
                self.unknown.insert(uid);
                Called::So(uid.to_string())
            }
            Err(error) => {
                self.silent = Some(format!("the name of user {uid} cannot be found out now: {error}"));
                Called::ForNow(uid.to_string())
            }
        }
    }

    /// Why names are missing.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.silent.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_has_a_name_and_nobody_knows_the_last_number() {
        let mut users = Users::default();
        assert!(matches!(users.name(0), Called::So(name) if name == "root"));
        assert!(matches!(users.name(0), Called::So(name) if name == "root"));
        assert!(matches!(users.name(4_000_000_123), Called::So(name) if name == "4000000123"));
        assert!(users.problem().is_none());
    }
}
