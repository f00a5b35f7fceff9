//! What every source needs: the keys that all of them have, and the answers that are kept.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use evenhand_documents::{DocumentError, Node, Table};
use evenhand_enforcers::cgroups::Group;

use crate::discovery::Guest;
use crate::discovery::owners::Owners;
use crate::discovery::paths;
use crate::discovery::watched::Watched;

/// What a source found out about a group.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Found {
    pub(crate) name: String,
    /// As found; `None` if nothing says so.
    pub(crate) owner: Option<String>,
    pub(crate) devices: Vec<String>,
    pub(crate) processors: Option<f64>,
    pub(crate) memory_bytes: Option<u64>,
}

/// What the tables of all sources may say.
struct Common {
    unit: bool,
    owners: Option<Watched<Owners>>,
    processors: Option<f64>,
    memory_bytes: Option<u64>,
}

/// Answers about groups, by path, kept for as long as the group's identity stays.
///
/// A look [begins](Roll::begin), names each group that is here, with [`has`](Roll::has) if it is known and
/// [`keep`](Roll::keep) if not, and [ends](Roll::end).
pub(crate) struct Roll {
    common: Common,
    known: HashMap<String, Entry>,
    round: u32,
    marked: usize,
    here: Vec<Arc<Guest>>,
    unowned: usize,
    first_unowned: String,
}

struct Entry {
    identity: u64,
    round: u32,
    /// `None` if the group is none of this source's.
    found: Option<Found>,
    /// `None` if nobody knows whose it is.
    guest: Option<Arc<Guest>>,
}

/// Keys of every source's table.
const KEYS: [&str; 5] = ["from", "unit", "owners", "processors", "memory"];

impl Roll {
    /// Reads the keys that all sources have, and refuses those that are neither such nor `own`.
    pub(crate) fn read(table: &Table<'_>, own: &[&str]) -> Result<Roll, DocumentError> {
        let keys: Vec<&str> = KEYS.iter().chain(own).copied().collect();
        table.deny_unknown(&keys)?;
        let common = Common {
            unit: table.get("unit").map(|node| node.flag()).transpose()?.unwrap_or_else(paths::systemd_runs),
            owners: table.get("owners").map(|node| Watched::open(file(&node)?, Owners::read)).transpose()?,
            processors: table.get("processors").map(|node| node.positive()).transpose()?.map(|q| q.to_f64()),
            memory_bytes: table.get("memory").map(|node| bytes(&node)).transpose()?,
        };
        Ok(Roll {
            common,
            known: HashMap::new(),
            round: 0,
            marked: 0,
            here: Vec::new(),
            unowned: 0,
            first_unowned: String::new(),
        })
    }

    /// Whether `owners` names a file.
    pub(crate) fn has_owners(&self) -> bool {
        self.common.owners.is_some()
    }

    pub(crate) fn begin(&mut self) {
        self.round = self.round.wrapping_add(1);
        (self.marked, self.unowned) = (0, 0);
        self.here.clear();
        if self.common.owners.as_mut().is_some_and(Watched::refresh) {
            let common = &self.common;
            for (path, entry) in &mut self.known {
                entry.guest = entry.found.as_ref().and_then(|found| common.guest(path, entry.identity, found));
            }
        }
    }

    /// Whether the answer about this group is known; if so the group counts as here.
    pub(crate) fn has(&mut self, path: &str, identity: u64) -> bool {
        let Some(entry) = self.known.get_mut(path).filter(|entry| entry.identity == identity) else { return false };
        if entry.round != self.round {
            (entry.round, self.marked) = (self.round, self.marked + 1);
        }
        match (&entry.guest, &entry.found) {
            (Some(guest), _) => self.here.push(Arc::clone(guest)),
            (None, Some(_)) => unowned(&mut self.unowned, &mut self.first_unowned, path),
            (None, None) => {}
        }
        true
    }

    /// Whether it is known to be none of this source's. To be asked after [`has`](Roll::has).
    pub(crate) fn is_guest(&self, path: &str) -> bool {
        self.known.get(path).is_some_and(|entry| entry.found.is_some())
    }

    /// Keeps the answer about a group that is here: `None` if it is none of this source's.
    pub(crate) fn keep(&mut self, path: String, identity: u64, found: Option<Found>) {
        let guest = found.as_ref().and_then(|found| self.common.guest(&path, identity, found));
        self.known.insert(path.clone(), Entry { identity, round: self.round.wrapping_sub(1), found, guest });
        self.has(&path, identity);
    }

    /// The group is here, but the answer is not to be kept.
    pub(crate) fn pass(&mut self, path: &str, identity: u64, found: &Found) {
        match self.common.guest(path, identity, found) {
            Some(guest) => self.here.push(guest),
            None => unowned(&mut self.unowned, &mut self.first_unowned, path),
        }
    }

    /// Forgets all answers.
    pub(crate) fn clear(&mut self) {
        self.known.clear();
        self.marked = 0;
        self.here.clear();
        self.unowned = 0;
    }

    /// Those that are here, by path. The answers about others are forgotten.
    pub(crate) fn end(&mut self) -> Vec<Arc<Guest>> {
        if self.marked != self.known.len() {
            let round = self.round;
            self.known.retain(|_, entry| entry.round == round);
        }
        let mut here = std::mem::take(&mut self.here);
        here.sort_by(|a, b| a.group.path.cmp(&b.group.path));
        self.here = Vec::with_capacity(here.len());
        here
    }

    /// What is remarkable about the look that ended last.
    pub(crate) fn remarks(&self, remarks: &mut Vec<String>) {
        if let Some(problem) = self.common.owners.as_ref().and_then(Watched::problem) {
            remarks.push(problem.to_owned());
        }
        if self.unowned > 0 {
            remarks.push(format!("nobody is known to own {}", such_as(self.unowned, &self.first_unowned)));
        }
    }
}

fn unowned(count: &mut usize, first: &mut String, path: &str) {
    if *count == 0 {
        path.clone_into(first);
    }
    *count += 1;
}

/// `"a"`, or `3 groups such as "a"`.
pub(crate) fn such_as(count: usize, first: &str) -> String {
    if count == 1 { format!("{first:?}") } else { format!("{count} groups such as {first:?}") }
}

impl Common {
    fn guest(&self, path: &str, identity: u64, found: &Found) -> Option<Arc<Guest>> {
        let owner = match &self.owners {
            Some(owners) => owners.value().of(found.owner.as_deref(), &found.name),
            None => found.owner.clone(),
        };
        let unit = if self.unit { paths::unit_of(path) } else { None };
        Some(Arc::new(Guest {
            name: found.name.clone(),
            owner: owner.filter(|owner| !owner.is_empty())?,
            group: Group { path: path.to_owned(), unit, devices: found.devices.clone() },
            identity,
            processors: found.processors.or(self.processors),
            memory_bytes: found.memory_bytes.or(self.memory_bytes),
        }))
    }
}

/// The name of a file.
pub(crate) fn file(node: &Node<'_>) -> Result<PathBuf, DocumentError> {
    match node.text()? {
        "" => Err(node.error("found \"\", expected the name of a file")),
        path => Ok(PathBuf::from(path)),
    }
}

/// Whole bytes.
pub(crate) fn bytes(node: &Node<'_>) -> Result<u64, DocumentError> {
    whole_bytes(node.positive()?.to_f64()).map_err(|problem| node.error(problem))
}

pub(crate) fn whole_bytes(bytes: f64) -> Result<u64, String> {
    // No machine has more; every number below is exact enough in `f64`.
    const MOST: f64 = (1_u64 << 60) as f64;
    if !(1.0..=MOST).contains(&bytes) {
        return Err(format!("found {bytes}, expected bytes of memory from 1 to 2^60"));
    }
    Ok(bytes as u64)
}
