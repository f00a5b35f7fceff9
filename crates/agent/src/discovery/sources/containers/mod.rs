//! Containers of Docker and Podman.
//!
//! Groups are recognized by their names; the engine is asked for names and labels only when a group is new.
//!
//! | | with systemd | without |
//! |---|---|---|
//! | Docker | `system.slice/docker-ID.scope` | `docker/ID` |
//! | Podman | `machine.slice/libpod-ID.scope` | `libpod_parent/libpod-ID` |
//! | rootless | `user.slice/user-UID.slice/user@UID.service/user.slice/libpod-ID.scope` | |

mod engine;

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use evenhand_documents::{DocumentError, Table};
use evenhand_enforcers::cgroups::{Hierarchies, ListedGroup};

use self::engine::{Container, Engine};
use crate::discovery::group_paths::{children, last};
use crate::discovery::sources::user_slices::uid_of_slice;
use crate::discovery::user_names::{UserName, UserNames};
use crate::discovery::workload_cache::{WorkloadCache, WorkloadDetails, such_as};
use crate::discovery::{DiscoveryError, Registration, RunningWorkload, WorkloadSource, read_limits};

pub(crate) const SOURCE: Registration = Registration {
    name: "containers",
    about: "containers of Docker and Podman, with owners from a label, or their user if rootless",
    build,
};

/// The engine that created a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Docker,
    Podman,
}

struct Containers {
    hierarchies: Hierarchies,
    label: String,
    rootless: bool,
    engines: [EngineQueries; 2],
    users: UserNames,
    cache: WorkloadCache,
    warnings: Vec<String>,
}

/// An engine, and when it is asked again about containers that it did not know.
struct EngineQueries {
    engine: Engine,
    /// The containers of the last scan whose details are unknown.
    unknown: HashSet<String>,
    /// The number of scans until the next query.
    wait: u32,
    /// The number of scans between the last two queries.
    last_wait: u32,
    problem: Option<String>,
}

fn build(table: &Table<'_>, hierarchies: &Hierarchies) -> Result<Box<dyn WorkloadSource>, DocumentError> {
    let cache = WorkloadCache::read(table, &["label", "rootless", "docker", "podman"])?;
    let text = |key: &str, default: &str| -> Result<String, DocumentError> {
        match table.get(key).map(|node| (node.text(), node)) {
            None => Ok(default.to_owned()),
            Some((Ok(""), node)) => Err(node.error(match key {
                "label" => "found \"\", expected the name of a label",
                _ => "found \"\", expected the path of a socket or the name of a program",
            })),
            Some((text, _)) => Ok(text?.to_owned()),
        }
    };
    let queries = |text: String| EngineQueries {
        engine: Engine::named(&text),
        unknown: HashSet::new(),
        wait: 0,
        last_wait: 0,
        problem: None,
    };
    Ok(Box::new(Containers {
        hierarchies: hierarchies.clone(),
        label: text("label", "owner")?,
        rootless: table.get("rootless").map(|node| node.flag()).transpose()?.unwrap_or(false),
        engines: [queries(text("docker", "/var/run/docker.sock")?), queries(text("podman", "podman")?)],
        users: UserNames::default(),
        cache,
        warnings: Vec::new(),
    }))
}

/// Parses the name of a container's group within `parent`.
fn container_of<'n>(parent: &str, name: &'n str) -> Option<(Kind, &'n str)> {
    let (kind, id) = if let Some(id) = name.strip_prefix("docker-") {
        (Kind::Docker, id.strip_suffix(".scope")?)
    } else if let Some(id) = name.strip_prefix("libpod-") {
        (Kind::Podman, id.strip_suffix(".scope").unwrap_or(id))
    } else {
        (last(parent) == "docker").then_some((Kind::Docker, name))?
    };
    is_id(id).then_some((kind, id))
}

fn is_id(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns the user in whose slice the group is.
fn rootless_user(path: &str) -> Option<u32> {
    path.split('/').find_map(uid_of_slice)
}

/// Returns whether the descendants of a group may be containers.
fn may_hold(parent: &str, name: &str, rootless: bool) -> bool {
    // Without systemd, each of Podman's pods is a group.
    let pod = parent == "libpod_parent" && is_id(name);
    let user = rootless && name.starts_with("user@") && name.ends_with(".service");
    name.ends_with(".slice") || pod || user
}

impl Containers {
    fn list_below(&self, parent: &str, depth: usize, found: &mut Vec<ListedGroup>) -> Result<(), DiscoveryError> {
        const MAX_DEPTH: usize = 16;
        for group in children(&self.hierarchies, parent)? {
            let name = last(&group.path);
            if container_of(parent, name).is_some() {
                found.push(group);
            } else if may_hold(parent, name, self.rootless) && depth < MAX_DEPTH {
                self.list_below(&group.path, depth + 1, found)?;
            }
        }
        Ok(())
    }

    fn insert(&mut self, group: ListedGroup, id: &str, owner: Option<String>, name: Option<&str>) {
        let details = WorkloadDetails {
            name: name.map_or_else(|| id.chars().take(12).collect(), str::to_owned),
            owner,
            devices: Vec::new(),
            processors: read_limits::processors(&self.hierarchies, &group.path),
            memory_bytes: read_limits::memory(&self.hierarchies, &group.path),
        };
        self.cache.insert(group.path, group.identity, Some(details));
    }

    /// Inserts a rootless container: it belongs to its user, and the machine's engines do not know it.
    fn insert_rootless(&mut self, group: ListedGroup, id: &str, uid: u32) {
        match self.users.name(uid) {
            UserName::Resolved(owner) => self.insert(group, id, Some(owner), None),
            UserName::Provisional(owner) => {
                let name = id.chars().take(12).collect();
                let details = WorkloadDetails { name, owner: Some(owner), ..WorkloadDetails::default() };
                self.cache.visit_uncached(&group.path, group.identity, &details);
            }
        }
    }

    /// Asks the engine of one kind about new groups.
    fn query(&mut self, kind: Kind, groups: Vec<ListedGroup>) {
        let id_of = |group: &ListedGroup| {
            let (parent, name) = group.path.rsplit_once('/').unwrap_or(("", &group.path));
            container_of(parent, name).map(|(_, id)| id.to_owned()).unwrap_or_default()
        };
        let queries = &mut self.engines[kind as usize];
        let known: Option<HashMap<String, Container>> = queries.containers(groups.iter().map(id_of).collect());
        let (mut unknown, mut first) = (0, String::new());
        for group in groups {
            let id = id_of(&group);
            match known.as_ref().and_then(|known| known.get(&id)) {
                Some(container) => {
                    let owner = container.labels.get(&self.label).filter(|owner| !owner.is_empty()).cloned();
                    self.engines[kind as usize].unknown.remove(&id);
                    self.insert(group, &id, owner, container.name.as_deref());
                }
                None => {
                    if unknown == 0 {
                        first.clone_from(&group.path);
                    }
                    unknown += 1;
                }
            }
        }
        let queries = &self.engines[kind as usize];
        if unknown > 0 {
            let why = queries.problem.as_deref().unwrap_or("the engine does not know them");
            let groups = such_as(unknown, &first);
            self.warnings.push(format!("{} did not report the owner of {groups}: {why}", queries.engine));
        }
    }
}

impl EngineQueries {
    /// Returns the containers that the engine knows, or `None` if it is not asked in this scan or does not answer. It is
    /// asked when there are new containers, and about old ones that it did not know at growing intervals, so that an
    /// engine that is down rarely costs its timeout.
    fn containers(&mut self, unknown: HashSet<String>) -> Option<HashMap<String, Container>> {
        const MAX_WAIT: u32 = 32;
        if unknown.is_empty() {
            (self.wait, self.last_wait, self.problem) = (0, 0, None);
            self.unknown = unknown;
            return None;
        }
        let new = !unknown.is_subset(&self.unknown);
        self.unknown = unknown;
        if !new && self.wait > 0 {
            self.wait -= 1;
            return None;
        }
        self.last_wait = if new { 0 } else { (2 * self.last_wait + 1).min(MAX_WAIT) };
        self.wait = self.last_wait;
        match self.engine.containers() {
            Ok(found) => {
                self.problem = None;
                Some(found.into_iter().map(|container| (container.id.clone(), container)).collect())
            }
            Err(error) => {
                self.problem = Some(error.to_string());
                None
            }
        }
    }
}

impl WorkloadSource for Containers {
    fn files(&self) -> Vec<&Path> {
        self.cache.files()
    }

    fn looked_for(&self) -> String {
        let [docker, podman] = &self.engines;
        format!(
            "no control group docker-ID.scope, libpod-ID.scope or docker/ID; {}; {}",
            docker.engine.presence(),
            podman.engine.presence()
        )
    }

    fn list(&mut self) -> Result<Vec<Arc<RunningWorkload>>, DiscoveryError> {
        self.warnings.clear();
        self.users.begin_scan();
        self.cache.begin_scan();
        let mut groups = Vec::new();
        for parent in ["system.slice", "machine.slice", "docker", "libpod_parent"] {
            self.list_below(parent, 0, &mut groups)?;
        }
        if self.rootless {
            self.list_below("user.slice", 0, &mut groups)?;
        }
        let mut new = [Vec::new(), Vec::new()];
        for group in groups {
            if self.cache.reuse(&group.path, group.identity) {
                continue;
            }
            let (parent, name) = group.path.rsplit_once('/').unwrap_or(("", &group.path));
            let Some((kind, id)) = container_of(parent, name) else { continue };
            match rootless_user(&group.path) {
                Some(uid) => {
                    let id = id.to_owned();
                    self.insert_rootless(group, &id, uid);
                }
                None => new[kind as usize].push(group),
            }
        }
        let [docker, podman] = new;
        self.query(Kind::Docker, docker);
        self.query(Kind::Podman, podman);
        Ok(self.cache.finish_scan())
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> = self.users.problem().map(str::to_owned).into_iter().collect();
        warnings.extend(self.warnings.iter().cloned());
        self.cache.warnings(&mut warnings);
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_of_groups_are_parsed() {
        let id = "0123456789abcdef".repeat(4);
        let of = |path: &str| {
            let (parent, name) = path.rsplit_once('/').unwrap();
            container_of(parent, name).map(|(kind, _)| kind)
        };
        assert_eq!(of(&format!("system.slice/docker-{id}.scope")), Some(Kind::Docker));
        assert_eq!(of(&format!("docker/{id}")), Some(Kind::Docker));
        assert_eq!(of(&format!("machine.slice/libpod-{id}.scope")), Some(Kind::Podman));
        assert_eq!(of(&format!("libpod_parent/libpod-{id}")), Some(Kind::Podman));
        for none in [
            format!("machine.slice/libpod-conmon-{id}.scope"),
            format!("system.slice/docker-{id}"),
            format!("system.slice/{id}"),
            "system.slice/docker.service".into(),
            format!("docker/{}", id.to_uppercase()),
            format!("docker/{id}0"),
        ] {
            assert_eq!(of(&none), None, "{none}");
        }
        assert_eq!(
            rootless_user(&format!("user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{id}.scope")),
            Some(1000)
        );
    }

    proptest! {
        #[test]
        fn arbitrary_names_do_not_panic(parent in "(docker|/|libpod_parent|\\PC){0,4}", name in "(docker-|libpod-|[0-9a-f]{64}|\\.scope|\\PC){0,4}") {
            let _ = (container_of(&parent, &name), may_hold(&parent, &name, true), rootless_user(&name));
        }
    }
}
