//! Virtual machines and containers of libvirt.
//!
//! Groups are found by their names, and what runs in them by the files in which libvirt itself keeps the state of
//! running domains, `/run/libvirt/qemu/NAME.xml`. libvirt need not be asked, and may be down. It replaces a
//! file at every change (a device plugged in, metadata set), which changes the folder's time: that is looked at in
//! every look, and only what changed is read.

mod domain;
mod names;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use evenhand_documents::{DocumentError, Table};
use evenhand_enforcers::cgroups::{Hierarchies, Listed};

use self::domain::{Domain, OwnerPath};
use self::names::{Machine, is_partition, machine_of};
use crate::discovery::paths::{children, is_path, last};
use crate::discovery::roll::{Found, Roll, file, such_as};
use crate::discovery::watched::Stamp;
use crate::discovery::{Guest, GuestError, Registration, Source};

pub(crate) const SOURCE: Registration = Registration {
    name: "libvirt",
    about: "libvirt's machines, with owners by their metadata, virtual processors, memory and network devices",
    build,
};

const FOLDER: &str = "/run/libvirt";
/// Files larger than this are no domain's.
const LARGEST: u64 = 4 << 20;

struct Libvirt {
    hierarchies: Hierarchies,
    owner: OwnerPath,
    within: Vec<String>,
    drivers: Vec<Driver>,
    roll: Roll,
    remarks: Vec<String>,
}

/// The running domains of one driver.
struct Driver {
    name: &'static str,
    folder: PathBuf,
    stamp: Option<Stamp>,
    files: HashMap<PathBuf, (Stamp, Result<Domain, String>)>,
    /// Which file says what runs under a number.
    by_id: HashMap<u32, PathBuf>,
}

fn build(table: &Table<'_>, hierarchies: &Hierarchies) -> Result<Box<dyn Source>, DocumentError> {
    let roll = Roll::read(table, &["owner", "within", "folder"])?;
    let owner = match table.get("owner") {
        None => OwnerPath::nova(),
        Some(node) => OwnerPath::parse(node.text()?).map_err(|problem| node.error(problem))?,
    };
    let mut within = vec!["machine.slice".to_owned(), "machine".to_owned()];
    if let Some(list) = table.get("within") {
        within.clear();
        for node in list.list()? {
            let path = node.text()?;
            if !is_path(path) {
                return Err(node.error(format!("found {path:?}, expected the path of a group, such as machine.slice")));
            }
            within.push(path.to_owned());
        }
    }
    let folder = table.get("folder").map(|node| file(&node)).transpose()?.unwrap_or_else(|| FOLDER.into());
    let driver =
        |name| Driver { name, folder: folder.join(name), stamp: None, files: HashMap::new(), by_id: HashMap::new() };
    let drivers = names::DRIVERS.map(driver).into();
    Ok(Box::new(Libvirt { hierarchies: hierarchies.clone(), owner, within, drivers, roll, remarks: Vec::new() }))
}

impl Driver {
    /// Reads what changed; whether anything did.
    fn refresh(&mut self, owner: &OwnerPath) -> Result<bool, GuestError> {
        let now = Stamp::of(&self.folder);
        match (self.stamp, now) {
            (Some(before), Some(now)) if before.still(now) => return Ok(false),
            (None, None) => return Ok(false),
            _ => self.stamp = now,
        }
        let listed = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.files.clear();
                self.by_id.clear();
                return Ok(true);
            }
            Err(error) => return Err(self.unreadable(&error)),
        };
        let (mut files, mut changed) = (HashMap::new(), false);
        for entry in listed {
            let path = entry.map_err(|error| self.unreadable(&error))?.path();
            if path.extension().is_none_or(|ending| ending != "xml") {
                continue;
            }
            let Some(stamp) = Stamp::of(&path) else { continue };
            let kept = self.files.remove(&path).filter(|(before, _)| before.still(stamp));
            changed |= kept.is_none();
            let kept = kept.unwrap_or_else(|| (stamp, read(&path, owner)));
            files.insert(path, kept);
        }
        // Those that are left are gone.
        changed |= !self.files.is_empty();
        self.files = files;
        self.by_id.clear();
        for (path, (_, domain)) in &self.files {
            if let Ok(domain) = domain {
                self.by_id.insert(domain.id, path.clone());
            }
        }
        Ok(changed)
    }

    fn unreadable(&self, error: &io::Error) -> GuestError {
        GuestError::NoAnswer { whom: self.folder.display().to_string(), why: error.to_string() }
    }

    /// What runs in a group.
    fn domain(&self, machine: &Machine) -> Option<&Domain> {
        let (_, domain) = self.files.get(self.by_id.get(&machine.id)?)?;
        domain.as_ref().ok().filter(|domain| machine.is_called(&domain.name))
    }
}

fn read(path: &Path, owner: &OwnerPath) -> Result<Domain, String> {
    let wrong = |why: String| format!("{}: {why}", path.display());
    let size = fs::metadata(path).map_err(|e| wrong(e.to_string()))?.len();
    if size > LARGEST {
        return Err(wrong(format!("found {size} bytes, expected the state of one domain")));
    }
    let text = fs::read_to_string(path).map_err(|e| wrong(e.to_string()))?;
    Domain::parse(&text, owner).map_err(wrong)
}

impl Libvirt {
    /// The groups below `parent`, and in the partitions there: machines and what else stands among them.
    fn list(&self, parent: &str, depth: usize, found: &mut Vec<Listed>) -> Result<(), GuestError> {
        const DEEPEST: usize = 16;
        for group in children(&self.hierarchies, parent)? {
            let name = last(&group.path);
            if !is_partition(name) {
                found.push(group);
            } else if depth < DEEPEST {
                self.list(&group.path, depth + 1, found)?;
            }
        }
        Ok(())
    }
}

impl Source for Libvirt {
    fn look(&mut self) -> Result<Vec<Arc<Guest>>, GuestError> {
        self.remarks.clear();
        self.roll.begin();
        // First the groups: a machine that starts in between is then among the domains, and not the reverse.
        let mut groups = Vec::new();
        for parent in &self.within {
            self.list(parent, 0, &mut groups)?;
        }
        let mut changed = false;
        for driver in &mut self.drivers {
            changed |= driver.refresh(&self.owner)?;
            let wrong = driver.files.values().filter_map(|(_, domain)| domain.as_ref().err());
            self.remarks.extend(wrong.min().cloned());
        }
        if changed {
            self.roll.clear();
        }
        let (mut unknown, mut first) = (0, String::new());
        for group in groups {
            if self.roll.has(&group.path, group.identity) {
                continue;
            }
            let Some(machine) = machine_of(last(&group.path)) else { continue };
            let driver = self.drivers.iter().find(|driver| driver.name == machine.driver);
            let Some(domain) = driver.and_then(|driver| driver.domain(&machine)) else {
                if unknown == 0 {
                    first.clone_from(&group.path);
                }
                unknown += 1;
                continue;
            };
            let found = Found {
                name: domain.name.clone(),
                owner: domain.owner.clone(),
                devices: domain.devices.clone(),
                processors: domain.processors,
                memory_bytes: domain.memory_bytes,
            };
            self.roll.keep(group.path, group.identity, Some(found));
        }
        if unknown > 0 {
            self.remarks.push(format!("libvirt's state names no domain of {}", such_as(unknown, &first)));
        }
        Ok(self.roll.end())
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = self.remarks.clone();
        self.roll.remarks(&mut remarks);
        remarks
    }
}
