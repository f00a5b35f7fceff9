//! What is found on other machines, from what their kernels show.
#![allow(clippy::unwrap_used)]

use std::fs;

use evenhand_enforcers::cgroups::{
    Budget, Control, DiskWeight, Finding, Findings, KernelError, Own, Places, Protection, probe,
};

const V2: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate,\
    memory_recursiveprot\n";
const V1: &str = "31 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw shared:10 - cgroup cgroup rw,cpu,cpuacct\n\
    32 30 0:29 / /sys/fs/cgroup/memory rw shared:11 - cgroup cgroup rw,memory\n\
    33 30 0:30 / /sys/fs/cgroup/blkio rw shared:12 - cgroup cgroup rw,blkio\n\
    34 30 0:31 / /sys/fs/cgroup/unified rw shared:13 - cgroup2 cgroup2 rw\n";

/// A machine as its kernel shows it.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new(mounts: &str) -> Machine {
        Machine(tempfile::tempdir().unwrap()).with("proc/self/mountinfo", mounts)
    }

    /// Debian 12 with systemd and version 2 only, machines in a slice of their own, and one virtual disk.
    fn debian_12() -> Machine {
        Machine::new(V2)
            .with("run/systemd/system/x", "")
            .with("proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")
            .with(
                "proc/self/limits",
                "Limit   Soft Limit   Hard Limit   Units\nMax open files   1024   524288   files\n",
            )
            .with("sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory hugetlb pids rdma misc\n")
            .with("sys/fs/cgroup/cgroup.subtree_control", "cpu io memory pids\n")
            .with("sys/fs/cgroup/machine.slice/cgroup.subtree_control", "cpu io memory pids\n")
            .with("sys/fs/cgroup/machine.slice/memory.low", "0\n")
            .with("sys/fs/cgroup/machine.slice/memory.min", "0\n")
            .with("sys/kernel/mm/lru_gen/enabled", "0x0000\n")
            .disk("vda", "254:0", "[none] mq-deadline bfq")
    }

    fn with(self, path: &str, text: &str) -> Machine {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn disk(self, name: &str, number: &str, schedulers: &str) -> Machine {
        self.with(&format!("sys/block/{name}/size"), "41943040\n")
            .with(&format!("sys/block/{name}/dev"), &format!("{number}\n"))
            .with(&format!("sys/block/{name}/queue/scheduler"), &format!("{schedulers}\n"))
    }

    /// Settings in the order `slice_idle`, `low_latency`, `strict_guarantees`.
    fn bfq(mut self, name: &str, number: &str, settings: [&str; 3]) -> Machine {
        self = self.disk(name, number, "none mq-deadline [bfq]");
        for (setting, value) in ["slice_idle", "low_latency", "strict_guarantees"].into_iter().zip(settings) {
            self = self.with(&format!("sys/block/{name}/queue/iosched/{setting}"), &format!("{value}\n"));
        }
        self
    }

    fn probe(&self, under: &str) -> Findings {
        let places = Places::below(self.0.path());
        let found = probe(&places, under).unwrap();
        assert_eq!(found, probe(&places, under).unwrap());
        assert_eq!(
            found.rows.iter().map(|r| r.control).collect::<Vec<_>>(),
            [Control::Cpu, Control::Memory, Control::Disk]
        );
        assert!(found.rows.iter().all(|r| r.able != r.by.is_empty() && !r.why.is_empty()));
        found
    }
}

fn row(found: &Findings, control: Control) -> (bool, &str, &str, Option<&str>) {
    let Finding { able, by, why, advice, .. } = found.row(control).unwrap();
    (*able, by, why, advice.as_deref())
}

fn remark(found: &Findings, what: &str) -> Option<(String, String)> {
    let remark = found.remarks.iter().find(|remark| remark.what == what)?;
    Some((remark.found.clone(), remark.matters.clone()))
}

#[test]
fn debian_12_divides_processors_only_until_it_is_told() {
    let machine = Machine::debian_12();
    let found = machine.probe("machine.slice");
    assert!(found.systemd);
    assert_eq!(
        row(&found, Control::Cpu),
        (true, "cgroup-v2 cpu.weight", "the controller cpu is at /sys/fs/cgroup", None)
    );
    let (able, _, why, advice) = row(&found, Control::Memory);
    assert_eq!((able, why), (false, "memory.low of machine.slice is 0, so nothing below it is protected"));
    assert!(advice.unwrap().starts_with("systemctl set-property machine.slice MemoryLow=BYTES, "), "{advice:?}");
    assert_eq!(
        row(&found, Control::Disk),
        (
            false,
            "",
            "no disk has the scheduler bfq: vda has none",
            Some("echo bfq > /sys/block/vda/queue/scheduler, or enable the cost model in io.cost.qos")
        )
    );
    let whats: Vec<_> = found.remarks.iter().map(|r| r.what.as_str()).collect();
    assert_eq!(whats, ["control groups", "systemd", "pressure", "open files", "disk vda"]);
    assert_eq!(remark(&found, "open files").unwrap().0, "1024, at most 524288");
    let enforcers = found.enforcers(&Own::default(), &Budget::of(9));
    let kinds: Vec<_> = enforcers.iter().map(|e| (e.name(), e.controls().to_vec())).collect();
    assert_eq!(kinds, [("cgroup-v2", vec![Control::Cpu])]);
    // At the top nothing is around what is protected.
    let top = machine.probe("");
    assert_eq!(row(&top, Control::Memory).1, "cgroup-v2 memory.low");
    assert_eq!(top.memory, Some(Protection::Low));
    let machine = machine.with("sys/fs/cgroup/machine.slice/memory.low", "1073741824\n");
    let told = machine.probe("machine.slice");
    assert_eq!((row(&told, Control::Memory).1, told.protected), ("cgroup-v2 memory.low", Some(1 << 30)));
    let machine = machine.with("sys/fs/cgroup/machine.slice/memory.low", "max\n");
    assert_eq!(machine.probe("machine.slice").protected, None);
}

#[test]
fn another_lru_needs_another_file() {
    let machine = Machine::debian_12().with("sys/kernel/mm/lru_gen/enabled", "0x0007\n");
    let found = machine.probe("");
    let (able, by, why, _) = row(&found, Control::Memory);
    assert_eq!((able, by, found.memory), (true, "cgroup-v2 memory.min", Some(Protection::Min)));
    assert!(why.contains("multi-generational"));
    let below = machine.probe("machine.slice");
    assert!(row(&below, Control::Memory).2.starts_with("memory.min of machine.slice"));
    for found in [found, below] {
        assert!(remark(&found, "multi-generational LRU").unwrap().1.contains("the sum must fit"));
    }
    // Bits without the first do nothing.
    let off = machine.with("sys/kernel/mm/lru_gen/enabled", "0x0006\n").probe("");
    assert_eq!(off.memory, Some(Protection::Low));
}

#[test]
fn bfq_that_does_not_wait_keeps_no_weights() {
    let machine = Machine::debian_12().bfq("sda", "8:0", ["0", "1", "0"]);
    let found = machine.probe("");
    assert_eq!(
        row(&found, Control::Disk),
        (
            false,
            "",
            "slice_idle of sda is 0, so bfq does not keep weights",
            Some("echo 8 > /sys/block/sda/queue/iosched/slice_idle")
        )
    );
    assert_eq!(remark(&found, "disk sda").unwrap().0, "scheduler bfq, slice_idle 0");
    // The finer of two files for the same setting: half a millisecond is not none.
    let finer = machine.with("sys/block/sda/queue/iosched/slice_idle_us", "500\n");
    assert!(row(&finer.probe(""), Control::Disk).0);
    let none = finer.with("sys/block/sda/queue/iosched/slice_idle_us", "0\n");
    assert!(!row(&none.probe(""), Control::Disk).0);
    let strict = none.with("sys/block/sda/queue/iosched/strict_guarantees", "1\n");
    assert!(row(&strict.probe(""), Control::Disk).0);
}

#[test]
fn one_disk_with_bfq_is_enough_and_the_others_are_named() {
    let machine = Machine::debian_12()
        .bfq("sdb", "8:16", ["8", "1", "0"])
        .bfq("sda", "8:0", ["8", "0", "1"])
        // None of these is a disk of its own.
        .disk("dm-0", "253:0", "none")
        .with("sys/block/dm-0/slaves/sda/x", "")
        .disk("loop0", "7:0", "[none] bfq")
        .with("sys/block/loop0/size", "0\n")
        .disk("sr0", "11:0", "[mq-deadline]")
        .disk("zram0", "252:0", "none");
    let found = machine.probe("");
    assert_eq!(found.disks.iter().map(|d| d.name.as_str()).collect::<Vec<_>>(), ["sda", "sdb", "vda"]);
    assert_eq!(row(&found, Control::Disk), (true, "cgroup-v2 io.bfq.weight", "sda, sdb have the scheduler bfq", None));
    assert_eq!(found.disk, Some(DiskWeight::Bfq));
    assert_eq!(remark(&found, "disk sda"), None);
    assert!(remark(&found, "disk sdb").unwrap().0.contains("low_latency 1"));
    assert_eq!(remark(&found, "disk vda").unwrap().0, "scheduler none");
}

#[test]
fn the_cost_model_is_second_choice() {
    let machine = Machine::debian_12()
        .with("sys/fs/cgroup/io.cost.qos", "254:0 enable=1 ctrl=user rpct=0.00 rlat=5000\n8:0 enable=0 ctrl=auto\n");
    let found = machine.probe("");
    assert_eq!(row(&found, Control::Disk), (true, "cgroup-v2 io.weight", "vda has the cost model enabled", None));
    assert_eq!((found.disk, remark(&found, "disk vda")), (Some(DiskWeight::Cost), None));
    let both = machine.bfq("sda", "8:0", ["8", "0", "0"]).probe("");
    assert_eq!(both.disk, Some(DiskWeight::Bfq));
    assert!(remark(&both, "disk vda").unwrap().1.starts_with("not divided"));
    let off = Machine::debian_12().with("sys/fs/cgroup/io.cost.qos", "254:0 enable=0 ctrl=auto\n").probe("");
    assert_eq!(off.disk, None);
}

#[test]
fn a_controller_has_to_be_handed_down() {
    let machine = Machine::debian_12().with("sys/fs/cgroup/machine.slice/cgroup.subtree_control", "memory pids\n");
    let found = machine.probe("machine.slice");
    let path = "/sys/fs/cgroup/machine.slice/cgroup.subtree_control";
    let (able, _, why, advice) = row(&found, Control::Cpu);
    assert_eq!((able, why), (false, format!("{path} does not list cpu").as_str()));
    assert_eq!(advice, Some("set CPUWeight= of a unit there, and systemd hands it down"));
    fs::remove_dir_all(machine.0.path().join("run")).unwrap();
    assert_eq!(row(&machine.probe("machine.slice"), Control::Cpu).3, Some(format!("echo +cpu > {path}").as_str()));
    // The first that does not is named, and a word within a word is none.
    let machine = machine.with("sys/fs/cgroup/cgroup.subtree_control", "cpuset memory pids\n");
    let found = machine.probe("machine.slice");
    assert_eq!(row(&found, Control::Cpu).2, "/sys/fs/cgroup/cgroup.subtree_control does not list cpu");
    let machine = machine.with("sys/fs/cgroup/cgroup.controllers", "memory pids\n");
    assert!(row(&machine.probe(""), Control::Cpu).2.contains("the kernel does not offer it"));
    assert!(row(&machine.probe("nobody"), Control::Cpu).2.starts_with("there is no group nobody"));
}

#[test]
fn version_1_has_other_files() {
    let machine = ["cpu,cpuacct", "memory", "blkio", "unified"]
        .into_iter()
        .fold(Machine::new(V1), |m, name| m.with(&format!("sys/fs/cgroup/{name}/machine/cgroup.procs"), ""))
        .with("sys/kernel/mm/lru_gen/enabled", "0x0007\n")
        .disk("vda", "254:0", "[mq-deadline] none");
    let found = machine.probe("machine");
    assert_eq!(row(&found, Control::Cpu).1, "cgroup-v1 cpu.shares");
    assert_eq!(row(&found, Control::Cpu).2, "the controller cpu is at /sys/fs/cgroup/cpu,cpuacct");
    assert_eq!(row(&found, Control::Memory).1, "cgroup-v1 memory.soft_limit_in_bytes");
    assert!(remark(&found, "multi-generational LRU").unwrap().1.starts_with("soft limits"));
    let disk = row(&found, Control::Disk);
    assert_eq!(disk.3, Some("echo bfq > /sys/block/vda/queue/scheduler"));
    assert_eq!(remark(&found, "control groups").unwrap().0, "versions 1 and 2");
    assert_eq!(remark(&found, "pressure").unwrap().0, "not counted");
    assert!(found.remarks.iter().any(|r| r.matters.contains("only counted once it has had a limit")));
    let able = machine.bfq("vda", "254:0", ["8", "0", "0"]).probe("machine");
    assert_eq!(row(&able, Control::Disk).1, "cgroup-v1 blkio.bfq.weight");
    assert_eq!(able.disk, None, "a matter of version 2");
    let kinds: Vec<_> = able.enforcers(&Own::default(), &Budget::of(9)).iter().map(|e| e.controls().len()).collect();
    assert_eq!(kinds, [3]);
}

#[test]
fn a_machine_that_shows_nothing() {
    let found = Machine::new("nonsense\n").probe("");
    assert!(found.rows.iter().all(|row| !row.able && row.why == "no control groups are mounted"));
    assert_eq!(remark(&found, "control groups").unwrap().0, "none");
    assert!(found.enforcers(&Own::default(), &Budget::of(9)).is_empty());
    let nothing = tempfile::tempdir().unwrap();
    assert!(matches!(probe(&Places::below(nothing.path()), ""), Err(KernelError::Io { .. })));
    let machine = Machine::debian_12();
    assert!(matches!(probe(&Places::below(machine.0.path()), "../x"), Err(KernelError::Path(_))));
}

#[test]
fn others_add_their_rows() {
    let mut found = Machine::debian_12().probe("");
    let row = |control, able| Finding { control, able, by: "x".into(), why: "y".into(), advice: None };
    found.set(row(Control::Network, false));
    found.set(row(Control::Network, true));
    found.set(row(Control::Network, false));
    found.set(row(Control::Disk, true));
    found.set(row(Control::Cpu, false));
    assert_eq!(found.rows.iter().map(|r| (r.control, r.able)).collect::<Vec<_>>(), Control::ALL.map(|c| (c, true)));
}
