//! Slices that systemd makes for users who are logged in: `user.slice/user-1000.slice`.

use std::sync::Arc;

use evenhand_documents::{DocumentError, Table};
use evenhand_enforcers::cgroups::Hierarchies;

use crate::discovery::paths::{children, last};
use crate::discovery::roll::{Found, Roll};
use crate::discovery::users::{Called, Users};
use crate::discovery::{Guest, GuestError, Registration, Source};

pub(crate) const SOURCE: Registration = Registration {
    name: "user-slices",
    about: "systemd's slice of each user who is logged in, or whose services run",
    build,
};

/// The first number of people; smaller ones are the system's (login.defs(5), systemd's uids and gids).
const LEAST_UID: u32 = 1000;

struct UserSlices {
    hierarchies: Hierarchies,
    least_uid: u32,
    users: Users,
    roll: Roll,
}

fn build(table: &Table<'_>, hierarchies: &Hierarchies) -> Result<Box<dyn Source>, DocumentError> {
    let roll = Roll::read(table, &["least_uid"])?;
    let least_uid = match table.get("least_uid") {
        None => LEAST_UID,
        Some(node) => node.written()?.parse().map_err(|_| node.error("expected the number of a user"))?,
    };
    Ok(Box::new(UserSlices { hierarchies: hierarchies.clone(), least_uid, users: Users::default(), roll }))
}

/// Whose slice it is.
pub(crate) fn uid_of_slice(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("user-")?.strip_suffix(".slice")?;
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

impl Source for UserSlices {
    fn look(&mut self) -> Result<Vec<Arc<Guest>>, GuestError> {
        self.users.begin();
        self.roll.begin();
        for slice in children(&self.hierarchies, "user.slice")? {
            if self.roll.has(&slice.path, slice.identity) {
                continue;
            }
            let name = last(&slice.path);
            let Some(uid) = uid_of_slice(name).filter(|uid| *uid >= self.least_uid) else { continue };
            let found = |owner| Found { name: name.to_owned(), owner: Some(owner), ..Found::default() };
            match self.users.name(uid) {
                Called::So(owner) => {
                    let found = found(owner);
                    self.roll.keep(slice.path, slice.identity, Some(found));
                }
                Called::ForNow(owner) => self.roll.pass(&slice.path, slice.identity, &found(owner)),
            }
        }
        Ok(self.roll.end())
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks: Vec<String> = self.users.problem().map(str::to_owned).into_iter().collect();
        self.roll.remarks(&mut remarks);
        remarks
    }
}
