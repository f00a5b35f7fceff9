//! What works here: which control is divided by what, and what would have to be done for the others.
//!
//! Much of this fails silently: a weight for a disk can be written whatever scheduler the disk has, and memory can be
//! protected by a file that the kernel reads and does not honour. So all that is looked at before, once.

mod controls;
mod disks;
mod places;
mod remarks;

pub use disks::{Bfq, Disk};
pub use places::Places;

use crate::cgroups::{
    Budget, CgroupV1, CgroupV1Meter, CgroupV2, CgroupV2Meter, Control, DiskWeight, Enforcer, Hierarchies, KernelError,
    Meters, Own, Protection,
};

/// Whether one control can be enforced: a row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which.
    pub control: Control,
    /// Whether weights for it do something.
    pub able: bool,
    /// The enforcer and its file; empty if there is none.
    pub by: String,
    /// What was found, in a sentence.
    pub why: String,
    /// What would help, if anything.
    pub advice: Option<String>,
}

/// Something else that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// What was looked at.
    pub what: String,
    /// What it is.
    pub found: String,
    /// What follows from that.
    pub matters: String,
}

/// All that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// One row a control that was looked at, in the order of [`Control::ALL`].
    pub rows: Vec<Finding>,
    /// Everything else: first the machine, then disks by name.
    pub remarks: Vec<Remark>,
    /// Where control groups are mounted.
    pub hierarchies: Hierarchies,
    /// The disks, by name.
    pub disks: Vec<Disk>,
    /// Whether systemd runs the machine, and so owns its units.
    pub systemd: bool,
    /// By which file version 2 divides disks.
    pub disk: Option<DiskWeight>,
    /// By which file version 2 protects memory.
    pub memory: Option<Protection>,
    /// Bytes that are protected of all groups below `under` together, where the groups around them bound that.
    pub protected: Option<u64>,
}

/// Looks what can be enforced for the groups right below `under` ("" is the root). Writes nothing. Says nothing about
/// [`Control::Network`], which is not the matter of control groups: see [`Findings::set`].
///
/// # Errors
/// If it cannot be found out what is mounted, or `under` is no path.
pub fn probe(places: &Places, under: &str) -> Result<Findings, KernelError> {
    if !under.is_empty() {
        crate::cgroups::own::check_path(under)?;
    }
    let hierarchies = places.hierarchies()?;
    let mut findings = Findings {
        disks: disks::disks(places, &hierarchies),
        systemd: places.at("run/systemd/system").is_dir(),
        hierarchies,
        ..Findings::default()
    };
    let look = controls::Look { places, under, generations: remarks::generations(places) };
    for control in [Control::Cpu, Control::Memory, Control::Disk] {
        let row = look.row(control, &mut findings);
        findings.rows.push(row);
    }
    findings.remarks = remarks::remarks(&look, &findings);
    Ok(findings)
}

impl Findings {
    /// The row of a control.
    pub fn row(&self, control: Control) -> Option<&Finding> {
        self.rows.iter().find(|row| row.control == control)
    }

    /// Adds a row that somebody else found, in its place; instead of the one there if that is not able.
    pub fn set(&mut self, row: Finding) {
        match self.rows.binary_search_by_key(&row.control, |r| r.control) {
            Ok(at) if !self.rows[at].able || row.able => self.rows[at] = row,
            Ok(_) => {}
            Err(at) => self.rows.insert(at, row),
        }
    }

    fn able(&self, control: Control, legacy: &str) -> (bool, bool) {
        let able = self.row(control).is_some_and(|row| row.able);
        let v1 = self.hierarchies.legacy.contains_key(legacy);
        (able && v1, able && !v1)
    }

    /// The enforcers that can do what was found able, in the order in which they are to be asked.
    pub fn enforcers(&self, own: &Own, budget: &Budget) -> Vec<Box<dyn Enforcer>> {
        let kinds = [(Control::Cpu, "cpu"), (Control::Memory, "memory"), (Control::Disk, "blkio")];
        let able = kinds.map(|(control, legacy)| (control, self.able(control, legacy)));
        let [(_, (_, cpu)), (_, (_, memory)), (_, (_, disk))] = able;
        let mut all: Vec<Box<dyn Enforcer>> = Vec::new();
        if cpu || memory || disk {
            let (disk, memory) = (self.disk.filter(|_| disk), self.memory.filter(|_| memory));
            all.push(Box::new(CgroupV2::new(&self.hierarchies, cpu, disk, memory, own.clone(), budget)));
        }
        let legacy: Vec<Control> = able.iter().filter(|(_, (v1, _))| *v1).map(|(c, _)| *c).collect();
        if !legacy.is_empty() {
            all.push(Box::new(CgroupV1::new(&self.hierarchies, &legacy, own.clone(), budget)));
        }
        all
    }

    /// What reads groups here.
    pub fn meters(&self, budget: &Budget) -> Meters {
        let mut all = Meters::new();
        if !self.hierarchies.legacy.is_empty() {
            all = all.with(Box::new(CgroupV1Meter::new(&self.hierarchies, budget)));
        }
        if self.hierarchies.unified.is_some() {
            all = all.with(Box::new(CgroupV2Meter::new(&self.hierarchies, budget)));
        }
        all
    }
}
