//! Slices that systemd creates for users who are logged in: `user.slice/user-1000.slice`.

use std::path::Path;
use std::sync::Arc;

use evenhand_documents::{DocumentError, Table};
use evenhand_enforcers::cgroups::Hierarchies;

use crate::discovery::group_paths::{children, last};
use crate::discovery::user_names::{UserName, UserNames};
use crate::discovery::workload_cache::{WorkloadCache, WorkloadDetails};
use crate::discovery::{DiscoveryError, Registration, RunningWorkload, WorkloadSource};

pub(crate) const SOURCE: Registration = Registration {
    name: "user-slices",
    about: "systemd's slice of each user who is logged in, or whose services run",
    build,
};

/// The first number of people's accounts; smaller ones belong to the system (login.defs(5), systemd's uids and gids).
const MINIMUM_UID: u32 = 1000;

struct UserSlices {
    hierarchies: Hierarchies,
    minimum_uid: u32,
    users: UserNames,
    cache: WorkloadCache,
}

fn build(table: &Table<'_>, hierarchies: &Hierarchies) -> Result<Box<dyn WorkloadSource>, DocumentError> {
    // The key `least_uid` is part of the configuration's format.
    let cache = WorkloadCache::read(table, &["least_uid"])?;
    let minimum_uid = match table.get("least_uid") {
        None => MINIMUM_UID,
        Some(node) => node.written()?.parse().map_err(|_| node.error("expected the number of a user"))?,
    };
    Ok(Box::new(UserSlices { hierarchies: hierarchies.clone(), minimum_uid, users: UserNames::default(), cache }))
}

/// Returns the user whose slice has this name.
pub(crate) fn uid_of_slice(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("user-")?.strip_suffix(".slice")?;
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

impl WorkloadSource for UserSlices {
    fn files(&self) -> Vec<&Path> {
        self.cache.files()
    }

    fn looked_for(&self) -> String {
        format!("no slice below user.slice is of a user id from {} on; nobody is logged in", self.minimum_uid)
    }

    fn list(&mut self) -> Result<Vec<Arc<RunningWorkload>>, DiscoveryError> {
        self.users.begin_scan();
        self.cache.begin_scan();
        for slice in children(&self.hierarchies, "user.slice")? {
            if self.cache.reuse(&slice.path, slice.identity) {
                continue;
            }
            let name = last(&slice.path);
            let Some(uid) = uid_of_slice(name).filter(|uid| *uid >= self.minimum_uid) else { continue };
            let details =
                |owner| WorkloadDetails { name: name.to_owned(), owner: Some(owner), ..WorkloadDetails::default() };
            match self.users.name(uid) {
                UserName::Resolved(owner) => {
                    let details = details(owner);
                    self.cache.insert(slice.path, slice.identity, Some(details));
                }
                UserName::Provisional(owner) => {
                    self.cache.visit_uncached(&slice.path, slice.identity, &details(owner));
                }
            }
        }
        Ok(self.cache.finish_scan())
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> = self.users.problem().map(str::to_owned).into_iter().collect();
        self.cache.warnings(&mut warnings);
        warnings
    }
}
