//! Disk weights, on a loop device over a file in a temporary directory, with BFQ as its scheduler.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use evenhand_enforcers::cgroups::{
    CgroupEnforcer, CgroupMeter, DescriptorBudget, Disk, Enforcer, Meter, ProtectedCgroups, Resource, SystemRoot,
    Targets, probe,
};

use crate::rig::{Rig, rig, within};
use crate::{A, B};

/// A loop device; detached when dropped.
struct Loop {
    /// The name, as in `/sys/block`.
    name: String,
    _folder: tempfile::TempDir,
}

impl Loop {
    fn new() -> Option<Loop> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("disk");
        // Not sparse, because holes are read without disk access.
        fs::write(&file, vec![b'x'; 64 << 20]).unwrap();
        let made = Command::new("losetup").args(["-f", "--show", "--direct-io=on"]).arg(&file).output();
        let Some(made) = made.ok().filter(|made| made.status.success()) else {
            eprintln!("skipped: no loop device can be created here");
            return None;
        };
        let device = String::from_utf8(made.stdout).unwrap();
        let disk = Loop { name: device.trim().trim_start_matches("/dev/").to_owned(), _folder: folder };
        if fs::write(disk.at("scheduler"), "bfq").is_err() {
            eprintln!("skipped: there is no scheduler bfq here");
            return None;
        }
        Some(disk)
    }

    fn at(&self, file: &str) -> std::path::PathBuf {
        Path::new("/sys/block").join(&self.name).join("queue").join(file)
    }

    fn set(&self, setting: &str, value: &str) {
        fs::write(self.at("iosched").join(setting), value).unwrap();
    }

    fn number(&self) -> String {
        fs::read_to_string(Path::new("/sys/block").join(&self.name).join("dev")).unwrap().trim().to_owned()
    }

    /// Returns the disk as probing finds it.
    fn found(&self) -> Disk {
        let report = probe(&SystemRoot::default(), "").unwrap();
        report.disks.into_iter().find(|disk| disk.name == self.name).unwrap()
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = fs::write(self.at("scheduler"), "none");
        let _ = Command::new("losetup").arg("-d").arg(format!("/dev/{}", self.name)).status();
    }
}

fn enforcer(rig: &Rig) -> CgroupEnforcer {
    CgroupEnforcer::v1(&rig.hierarchies, &[Resource::Disk], ProtectedCgroups::default(), &DescriptorBudget::of(100))
}

#[test]
fn disk_bandwidth_is_divided_in_proportion_to_weights() {
    let Some(mut rig) = rig(&["blkio"]) else { return };
    let Some(disk) = Loop::new() else { return };
    disk.set("low_latency", "0");
    disk.set("strict_guarantees", "1");
    assert!(disk.found().keeps_bfq_weights());
    let (a, b) = (rig.group("a"), rig.group("b"));
    let mut enforcer = enforcer(&rig);
    let mut meter = CgroupMeter::v1(&rig.hierarchies, &DescriptorBudget::of(100));
    // Both weights are below 1, where the scale of BFQ is linear.
    for (id, group, weight) in [(A, &a, 0.8), (B, &b, 0.2)] {
        enforcer.admit(id, group).unwrap();
        enforcer.apply(id, &Targets { disk: Some(weight), ..Targets::default() }, &mut Vec::new()).unwrap();
        meter.admit(id, group).unwrap();
        // Several readers for each group: a single one is idle after each request.
        for _ in 0..4 {
            let read = format!("while :; do dd if=/dev/{} of=/dev/null bs=128k iflag=direct; done", disk.name);
            rig.run(group, &["sh", "-c", &read], None);
        }
    }
    let mut ratio = || {
        let read = |meter: &mut CgroupMeter| [A, B].map(|id| meter.read(id).unwrap().disk.unwrap());
        sleep(Duration::from_millis(500));
        let begun = read(&mut meter);
        sleep(Duration::from_millis(2000));
        let ended = read(&mut meter);
        (ended[0] - begun[0]) as f64 / (ended[1] - begun[1]) as f64
    };
    // More attempts than for processors: the disk is a file on a disk that others use.
    within(8, 2.5..=6.0, &mut ratio);
    // With strict guarantees, weights take effect without idling.
    disk.set("slice_idle", "0");
    assert!(disk.found().keeps_bfq_weights());
    within(8, 2.5..=6.0, &mut ratio);
    // Without both, the same weights have no effect, as probing reports.
    disk.set("strict_guarantees", "0");
    assert!(disk.found().bfq.is_some() && !disk.found().keeps_bfq_weights());
    within(8, 0.7..=1.5, &mut ratio);
    rig.stop();
}

#[test]
fn weights_of_single_disks_are_restored() {
    let Some(mut rig) = rig(&["blkio"]) else { return };
    let Some(disk) = Loop::new() else { return };
    let a = rig.group("a");
    if !rig.has("blkio", &a, "blkio.bfq.weight_device") {
        return eprintln!("skipped: this kernel has no weights for single disks");
    }
    rig.write("blkio", &a, "blkio.bfq.weight", "250");
    rig.write("blkio", &a, "blkio.bfq.weight_device", &format!("{} 300", disk.number()));
    let text =
        |rig: &Rig| ["blkio.bfq.weight", "blkio.bfq.weight_device"].map(|file| rig.read("blkio", &a, file).unwrap());
    let first = text(&rig);
    assert_eq!(first[1], format!("default 250\n{} 300\n", disk.number()));
    let mut enforcer = enforcer(&rig);
    let saved = enforcer.admit(A, &a).unwrap();
    enforcer.apply(A, &Targets::equal_weights(0.5), &mut Vec::new()).unwrap();
    assert_eq!(text(&rig), ["50\n", "default 50\n"], "the kernel resets the weight of the single disk");
    enforcer.restore(&a, &saved).unwrap();
    assert_eq!(text(&rig), first);
    // The disk may have been removed by then.
    enforcer.apply(A, &Targets::equal_weights(0.6), &mut Vec::new()).unwrap();
    drop(disk);
    enforcer.restore(&a, &saved).unwrap();
    assert_eq!(text(&rig)[0], "250\n");
}
