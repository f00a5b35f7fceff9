//! Containers of Docker and Podman.
//!
//! They are found by the names of their groups; the engine is asked for names and labels only when a group is new.
//!
//! | | with systemd | without |
//! |---|---|---|
//! | Docker | `system.slice/docker-ID.scope` | `docker/ID` |
//! | Podman | `machine.slice/libpod-ID.scope` | `libpod_parent/libpod-ID` |
//! | rootless | `user.slice/user-UID.slice/user@UID.service/user.slice/libpod-ID.scope` | |

mod engine;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use evenhand_documents::{DocumentError, Table};
use evenhand_enforcers::cgroups::{Hierarchies, Listed};

use self::engine::{Container, Engine};
use crate::discovery::paths::{children, last};
use crate::discovery::roll::{Found, Roll, such_as};
use crate::discovery::sources::user_slices::uid_of_slice;
use crate::discovery::users::{Called, Users};
use crate::discovery::{Guest, GuestError, Registration, Source, limits};

pub(crate) const SOURCE: Registration = Registration {
    name: "containers",
    about: "containers of Docker and Podman, with owners by a label, or by their user if rootless",
    build,
};

/// Who made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Docker,
    Podman,
}

struct Containers {
    hierarchies: Hierarchies,
    label: String,
    rootless: bool,
    engines: [Asked; 2],
    users: Users,
    roll: Roll,
    remarks: Vec<String>,
}

/// An engine, and when it is to be asked again about those that it did not know.
struct Asked {
    engine: Engine,
    /// New ones of the last look that it did not answer for.
    open: HashSet<String>,
    /// Looks to wait, and how many were waited for the last time.
    wait: u32,
    waited: u32,
    problem: Option<String>,
}

fn build(table: &Table<'_>, hierarchies: &Hierarchies) -> Result<Box<dyn Source>, DocumentError> {
    let roll = Roll::read(table, &["label", "rootless", "docker", "podman"])?;
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
    let asked =
        |text: String| Asked { engine: Engine::named(&text), open: HashSet::new(), wait: 0, waited: 0, problem: None };
    Ok(Box::new(Containers {
        hierarchies: hierarchies.clone(),
        label: text("label", "owner")?,
        rootless: table.get("rootless").map(|node| node.flag()).transpose()?.unwrap_or(false),
        engines: [asked(text("docker", "/var/run/docker.sock")?), asked(text("podman", "podman")?)],
        users: Users::default(),
        roll,
        remarks: Vec::new(),
    }))
}

/// The container of a group of this name within `parent`.
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

/// The user in whose slice it is.
fn rootless_user(path: &str) -> Option<u32> {
    path.split('/').find_map(uid_of_slice)
}

/// Whether containers may be further below.
fn may_hold(parent: &str, name: &str, rootless: bool) -> bool {
    // Pods of Podman without systemd are folders of their own.
    let pod = parent == "libpod_parent" && is_id(name);
    let user = rootless && name.starts_with("user@") && name.ends_with(".service");
    name.ends_with(".slice") || pod || user
}

impl Containers {
    fn list(&self, parent: &str, depth: usize, found: &mut Vec<Listed>) -> Result<(), GuestError> {
        const DEEPEST: usize = 16;
        for group in children(&self.hierarchies, parent)? {
            let name = last(&group.path);
            if container_of(parent, name).is_some() {
                found.push(group);
            } else if may_hold(parent, name, self.rootless) && depth < DEEPEST {
                self.list(&group.path, depth + 1, found)?;
            }
        }
        Ok(())
    }

    fn keep(&mut self, group: Listed, id: &str, owner: Option<String>, name: Option<&str>) {
        let found = Found {
            name: name.map_or_else(|| id.chars().take(12).collect(), str::to_owned),
            owner,
            devices: Vec::new(),
            processors: limits::processors(&self.hierarchies, &group.path),
            memory_bytes: limits::memory(&self.hierarchies, &group.path),
        };
        self.roll.keep(group.path, group.identity, Some(found));
    }

    /// A rootless container is its user's, and no engine of the machine knows it.
    fn keep_rootless(&mut self, group: Listed, id: &str, uid: u32) {
        match self.users.name(uid) {
            Called::So(owner) => self.keep(group, id, Some(owner), None),
            Called::ForNow(owner) => {
                let found = Found { name: id.chars().take(12).collect(), owner: Some(owner), ..Found::default() };
                self.roll.pass(&group.path, group.identity, &found);
            }
        }
    }

    /// Asks the engine of one kind about groups that are new.
    fn ask(&mut self, kind: Kind, groups: Vec<Listed>) {
        let id_of = |group: &Listed| {
            let (parent, name) = group.path.rsplit_once('/').unwrap_or(("", &group.path));
            container_of(parent, name).map(|(_, id)| id.to_owned()).unwrap_or_default()
        };
        let asked = &mut self.engines[kind as usize];
        let known: Option<HashMap<String, Container>> = asked.containers(groups.iter().map(id_of).collect());
        let (mut left, mut first) = (0, String::new());
        for group in groups {
            let id = id_of(&group);
            match known.as_ref().and_then(|known| known.get(&id)) {
                Some(container) => {
                    let owner = container.labels.get(&self.label).filter(|owner| !owner.is_empty()).cloned();
                    self.engines[kind as usize].open.remove(&id);
                    self.keep(group, &id, owner, container.name.as_deref());
                }
                None => {
                    if left == 0 {
                        first.clone_from(&group.path);
                    }
                    left += 1;
                }
            }
        }
        let asked = &self.engines[kind as usize];
        if left > 0 {
            let why = asked.problem.as_deref().unwrap_or("it does not know them");
            self.remarks.push(format!("{} has not said whose {} is: {why}", asked.engine, such_as(left, &first)));
        }
    }
}

impl Asked {
    /// What the engine knows, or `None` if it is not asked now, or does not answer. It is asked when there are new
    /// containers; about old ones that it did not know at longer and longer intervals, so that an engine that is
    /// down costs its time limit rarely.
    fn containers(&mut self, open: HashSet<String>) -> Option<HashMap<String, Container>> {
        const LONGEST_WAIT: u32 = 32;
        if open.is_empty() {
            (self.wait, self.waited, self.problem) = (0, 0, None);
            self.open = open;
            return None;
        }
        let new = !open.is_subset(&self.open);
        self.open = open;
        if !new && self.wait > 0 {
            self.wait -= 1;
            return None;
        }
        self.waited = if new { 0 } else { (2 * self.waited + 1).min(LONGEST_WAIT) };
        self.wait = self.waited;
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

impl Source for Containers {
    fn look(&mut self) -> Result<Vec<Arc<Guest>>, GuestError> {
        self.remarks.clear();
        self.users.begin();
        self.roll.begin();
        let mut groups = Vec::new();
        for parent in ["system.slice", "machine.slice", "docker", "libpod_parent"] {
            self.list(parent, 0, &mut groups)?;
        }
        if self.rootless {
            self.list("user.slice", 0, &mut groups)?;
        }
        let mut open = [Vec::new(), Vec::new()];
        for group in groups {
            if self.roll.has(&group.path, group.identity) {
                continue;
            }
            let (parent, name) = group.path.rsplit_once('/').unwrap_or(("", &group.path));
            let Some((kind, id)) = container_of(parent, name) else { continue };
            match rootless_user(&group.path) {
                Some(uid) => {
                    let id = id.to_owned();
                    self.keep_rootless(group, &id, uid);
                }
                None => open[kind as usize].push(group),
            }
        }
        let [docker, podman] = open;
        self.ask(Kind::Docker, docker);
        self.ask(Kind::Podman, podman);
        Ok(self.roll.end())
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks: Vec<String> = self.users.problem().map(str::to_owned).into_iter().collect();
        remarks.extend(self.remarks.iter().cloned());
        self.roll.remarks(&mut remarks);
        remarks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_of_groups() {
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
        fn any_name_is_read(parent in "(docker|/|libpod_parent|\\PC){0,4}", name in "(docker-|libpod-|[0-9a-f]{64}|\\.scope|\\PC){0,4}") {
            let _ = (container_of(&parent, &name), may_hold(&parent, &name, true), rootless_user(&name));
        }
    }
}
