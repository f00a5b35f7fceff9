//! Names of this machine's users.

use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::process::Command;
use std::time::Duration;

use evenhand_child_process::{Limits, RunError};
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
        match look_up(uid) {
            Ok(Some(name)) => {
                self.names.insert(uid, name.clone());
                UserName::Resolved(name)
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

/// The time that a directory behind the name service has for its answer.
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// Asks the machine's name service for the name of a user.
fn look_up(uid: u32) -> Result<Option<String>, String> {
    match User::from_uid(Uid::from_raw(uid)) {
        Ok(Some(user)) => Ok(Some(user.name)),
        // A static program knows the local file of users alone, so that the machine's own `getent` asks the directory.
        Ok(None) if cfg!(target_env = "musl") => by_getent("getent", uid),
        Ok(None) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// Asks by the program `getent`. Where there is none, there is no directory either.
fn by_getent(program: &str, uid: u32) -> Result<Option<String>, String> {
    /// Status of `getent` for an unknown key.
    const UNKNOWN: i32 = 2;
    let limits = Limits { time: TIME_LIMIT, output: 1 << 16, ..Limits::default() };
    let mut command = Command::new(program);
    let finished = match evenhand_child_process::run(command.args(["passwd", &uid.to_string()]), None, &limits) {
        Ok(finished) => finished,
        Err(RunError::Start(error)) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("getent: {error}")),
    };
    if finished.status.code() == Some(UNKNOWN) {
        return Ok(None);
    }
    if !finished.status.success() {
        return Err(format!("getent: {}", finished.status));
    }
    let entry = String::from_utf8_lossy(&finished.stdout);
    match entry.split_once(':') {
        Some((name, _)) if !name.is_empty() => Ok(Some(name.to_owned())),
        _ => Err(format!("getent printed no user: {entry:?}")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions, write};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn root_has_a_name_and_unknown_users_keep_their_number() {
        let mut users = UserNames::default();
        assert!(matches!(users.name(0), UserName::Resolved(name) if name == "root"));
        assert!(matches!(users.name(0), UserName::Resolved(name) if name == "root"));
        assert!(matches!(users.name(4_000_000_123), UserName::Resolved(name) if name == "4000000123"));
        assert!(users.problem().is_none());
    }

    /// Asks a script in place of `getent`.
    fn ask(script: &str) -> Result<Option<String>, String> {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("getent");
        write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
        by_getent(program.to_str().unwrap(), 70_001)
    }

    #[test]
    fn a_directory_that_getent_asks_has_a_name_or_none_or_fails() {
        let found = ask(r#"[ "$*" = "passwd 70001" ] && echo "ann:*:70001:100:Ann:/home/ann:/bin/sh""#);
        assert_eq!(found, Ok(Some("ann".to_owned())));
        assert_eq!(ask("exit 2"), Ok(None));
        assert_eq!(ask("exit 3"), Err("getent: exit status: 3".to_owned()));
        assert!(ask("echo nothing").is_err());
        assert_eq!(by_getent("no-such-program-getent", 70_001), Ok(None));
    }
}
