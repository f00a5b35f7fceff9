//! Probing other machines, from copies of the files of their kernels.
#![allow(clippy::unwrap_used)]

use std::fs;

use evenhand_enforcers::cgroups::{
    DescriptorBudget, DiskWeight, KernelError, ProbeReport, ProtectedCgroups, Protection, Resource, ResourceSupport,
    SystemRoot, probe,
};

const V2: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate,\
    memory_recursiveprot\n";
const V1: &str = "31 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw shared:10 - cgroup cgroup rw,cpu,cpuacct\n\
    32 30 0:29 / /sys/fs/cgroup/memory rw shared:11 - cgroup cgroup rw,memory\n\
    33 30 0:30 / /sys/fs/cgroup/blkio rw shared:12 - cgroup cgroup rw,blkio\n\
    34 30 0:31 / /sys/fs/cgroup/unified rw shared:13 - cgroup2 cgroup2 rw\n";

/// A machine, as described by the files of its kernel.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new(mounts: &str) -> Machine {
        Machine(tempfile::tempdir().unwrap()).with("proc/self/mountinfo", mounts)
    }

    /// Debian 12 with systemd and cgroup v2 only, virtual machines in a slice of their own, and one virtual disk.
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

    fn probe(&self, under: &str) -> ProbeReport {
        let system = SystemRoot::below(self.0.path());
        let found = probe(&system, under).unwrap();
        assert_eq!(found, probe(&system, under).unwrap());
        assert_eq!(
            found.resources.iter().map(|r| r.resource).collect::<Vec<_>>(),
            [Resource::Cpu, Resource::Memory, Resource::Disk]
        );
        assert!(found.resources.iter().all(|r| r.supported != r.mechanism.is_empty() && !r.reason.is_empty()));
        found
    }
}

fn support(found: &ProbeReport, resource: Resource) -> (bool, &str, &str, Option<&str>) {
    let ResourceSupport { supported, mechanism, reason, advice, .. } = found.support(resource).unwrap();
    (*supported, mechanism, reason, advice.as_deref())
}

fn observation(found: &ProbeReport, subject: &str) -> Option<(String, String)> {
    let observation = found.observations.iter().find(|o| o.subject == subject)?;
    Some((observation.found.clone(), observation.consequence.clone()))
}

#[test]
fn debian_12_divides_only_cpu_time_by_default() {
    let machine = Machine::debian_12();
    let found = machine.probe("machine.slice");
    assert!(found.systemd);
    assert_eq!(
        support(&found, Resource::Cpu),
        (true, "cgroup-v2 cpu.weight", "controller cpu at /sys/fs/cgroup", None)
    );
    let (supported, _, reason, advice) = support(&found, Resource::Memory);
    assert_eq!((supported, reason), (false, "memory.low of machine.slice is 0, so no group below it is protected"));
    assert!(advice.unwrap().starts_with("systemctl set-property machine.slice MemoryLow=BYTES, "), "{advice:?}");
    assert_eq!(
        support(&found, Resource::Disk),
        (
            false,
            "",
            "no disk has bfq: vda has none",
            Some("echo bfq > /sys/block/vda/queue/scheduler, or enable the cost model in io.cost.qos")
        )
    );
    let subjects: Vec<_> = found.observations.iter().map(|o| o.subject.as_str()).collect();
    assert_eq!(subjects, ["control groups", "systemd", "pressure", "open files", "disk vda"]);
    assert_eq!(observation(&found, "open files").unwrap().0, "1024, at most 524288");
    let enforcers = found.enforcers(&ProtectedCgroups::default(), &DescriptorBudget::of(9));
    let kinds: Vec<_> = enforcers.iter().map(|e| (e.name(), e.resources().to_vec())).collect();
    assert_eq!(kinds, [("cgroup-v2", vec![Resource::Cpu])]);
    let dry = found.dry_run(&ProtectedCgroups::default(), &DescriptorBudget::of(9));
    assert_eq!(dry.iter().map(|e| (e.name(), e.resources().to_vec())).collect::<Vec<_>>(), kinds);
    // At the top level no ancestor limits the protection.
    let top = machine.probe("");
    assert_eq!(support(&top, Resource::Memory).1, "cgroup-v2 memory.low");
    assert_eq!(top.memory_protection, Some(Protection::Low));
    let machine = machine.with("sys/fs/cgroup/machine.slice/memory.low", "1073741824\n");
    let configured = machine.probe("machine.slice");
    assert_eq!(
        (support(&configured, Resource::Memory).1, configured.protected_memory),
        ("cgroup-v2 memory.low", Some(1 << 30))
    );
    let machine = machine.with("sys/fs/cgroup/machine.slice/memory.low", "max\n");
    assert_eq!(machine.probe("machine.slice").protected_memory, None);
}

#[test]
fn the_multi_generational_lru_needs_memory_min() {
    let machine = Machine::debian_12().with("sys/kernel/mm/lru_gen/enabled", "0x0007\n");
    let found = machine.probe("");
    let (supported, mechanism, reason, _) = support(&found, Resource::Memory);
    assert_eq!((supported, mechanism, found.memory_protection), (true, "cgroup-v2 memory.min", Some(Protection::Min)));
    assert!(reason.contains("multi-generational"));
    let below = machine.probe("machine.slice");
    assert!(support(&below, Resource::Memory).2.starts_with("memory.min of machine.slice"));
    for found in [found, below] {
        assert!(observation(&found, "multi-generational LRU").unwrap().1.contains("the sum must fit"));
    }
    // Without the first bit the others have no effect.
    let off = machine.with("sys/kernel/mm/lru_gen/enabled", "0x0006\n").probe("");
    assert_eq!(off.memory_protection, Some(Protection::Low));
}

#[test]
fn bfq_without_idling_ignores_weights() {
    let machine = Machine::debian_12().bfq("sda", "8:0", ["0", "1", "0"]);
    let found = machine.probe("");
    assert_eq!(
        support(&found, Resource::Disk),
        (
            false,
            "",
            "slice_idle of sda is 0, so bfq ignores weights",
            Some("echo 8 > /sys/block/sda/queue/iosched/slice_idle")
        )
    );
    assert_eq!(observation(&found, "disk sda").unwrap().0, "scheduler bfq, slice_idle 0");
    // The finer of two files for the same setting: half a millisecond is more than nothing.
    let finer = machine.with("sys/block/sda/queue/iosched/slice_idle_us", "500\n");
    assert!(support(&finer.probe(""), Resource::Disk).0);
    let none = finer.with("sys/block/sda/queue/iosched/slice_idle_us", "0\n");
    assert!(!support(&none.probe(""), Resource::Disk).0);
    let strict = none.with("sys/block/sda/queue/iosched/strict_guarantees", "1\n");
    assert!(support(&strict.probe(""), Resource::Disk).0);
}

#[test]
fn one_disk_with_bfq_suffices_and_the_others_are_listed() {
    let machine = Machine::debian_12()
        .bfq("sdb", "8:16", ["8", "1", "0"])
        .bfq("sda", "8:0", ["8", "0", "1"])
        // Stacked, empty and removable devices are skipped.
        .disk("dm-0", "253:0", "none")
        .with("sys/block/dm-0/slaves/sda/x", "")
        .disk("loop0", "7:0", "[none] bfq")
        .with("sys/block/loop0/size", "0\n")
        .disk("sr0", "11:0", "[mq-deadline]")
        .disk("zram0", "252:0", "none");
    let found = machine.probe("");
    assert_eq!(found.disks.iter().map(|d| d.name.as_str()).collect::<Vec<_>>(), ["sda", "sdb", "vda"]);
    assert_eq!(
        support(&found, Resource::Disk),
        (true, "cgroup-v2 io.bfq.weight", "sda, sdb have the scheduler bfq", None)
    );
    assert_eq!(found.disk_weight, Some(DiskWeight::Bfq));
    assert_eq!(observation(&found, "disk sda"), None);
    assert!(observation(&found, "disk sdb").unwrap().0.contains("low_latency 1"));
    assert_eq!(observation(&found, "disk vda").unwrap().0, "scheduler none");
}

#[test]
fn the_cost_model_is_used_where_no_disk_has_bfq() {
    let machine = Machine::debian_12()
        .with("sys/fs/cgroup/io.cost.qos", "254:0 enable=1 ctrl=user rpct=0.00 rlat=5000\n8:0 enable=0 ctrl=auto\n");
    let found = machine.probe("");
    assert_eq!(support(&found, Resource::Disk), (true, "cgroup-v2 io.weight", "vda has the cost model enabled", None));
    assert_eq!((found.disk_weight, observation(&found, "disk vda")), (Some(DiskWeight::Cost), None));
    let both = machine.bfq("sda", "8:0", ["8", "0", "0"]).probe("");
    assert_eq!(both.disk_weight, Some(DiskWeight::Bfq));
    assert!(observation(&both, "disk vda").unwrap().1.starts_with("not divided"));
    let off = Machine::debian_12().with("sys/fs/cgroup/io.cost.qos", "254:0 enable=0 ctrl=auto\n").probe("");
    assert_eq!(off.disk_weight, None);
}

#[test]
fn a_controller_must_be_delegated() {
    let machine = Machine::debian_12().with("sys/fs/cgroup/machine.slice/cgroup.subtree_control", "memory pids\n");
    let found = machine.probe("machine.slice");
    let path = "/sys/fs/cgroup/machine.slice/cgroup.subtree_control";
    let (supported, _, reason, advice) = support(&found, Resource::Cpu);
    assert_eq!((supported, reason), (false, format!("{path} does not list cpu").as_str()));
    assert_eq!(advice, Some("set CPUWeight= of a unit there, and systemd delegates the controller"));
    fs::remove_dir_all(machine.0.path().join("run")).unwrap();
    assert_eq!(support(&machine.probe("machine.slice"), Resource::Cpu).3, Some(format!("echo +cpu > {path}").as_str()));
    // The first group without the controller is named; cpuset does not count as cpu.
    let machine = machine.with("sys/fs/cgroup/cgroup.subtree_control", "cpuset memory pids\n");
    let found = machine.probe("machine.slice");
    assert_eq!(support(&found, Resource::Cpu).2, "/sys/fs/cgroup/cgroup.subtree_control does not list cpu");
    let machine = machine.with("sys/fs/cgroup/cgroup.controllers", "memory pids\n");
    assert!(support(&machine.probe(""), Resource::Cpu).2.contains("the kernel does not offer it"));
    assert!(support(&machine.probe("none"), Resource::Cpu).2.starts_with("there is no group none"));
}

#[test]
fn version_1_uses_other_files() {
    let machine = ["cpu,cpuacct", "memory", "blkio", "unified"]
        .into_iter()
        .fold(Machine::new(V1), |m, name| m.with(&format!("sys/fs/cgroup/{name}/machine/cgroup.procs"), ""))
        .with("sys/kernel/mm/lru_gen/enabled", "0x0007\n")
        .disk("vda", "254:0", "[mq-deadline] none");
    let found = machine.probe("machine");
    assert_eq!(support(&found, Resource::Cpu).1, "cgroup-v1 cpu.shares");
    assert_eq!(support(&found, Resource::Cpu).2, "controller cpu at /sys/fs/cgroup/cpu,cpuacct");
    assert_eq!(support(&found, Resource::Memory).1, "cgroup-v1 memory.soft_limit_in_bytes");
    assert!(observation(&found, "multi-generational LRU").unwrap().1.starts_with("soft limits"));
    let disk = support(&found, Resource::Disk);
    assert_eq!(disk.3, Some("echo bfq > /sys/block/vda/queue/scheduler"));
    assert_eq!(observation(&found, "control groups").unwrap().0, "versions 1 and 2");
    assert_eq!(observation(&found, "pressure").unwrap().0, "not counted");
    assert!(found.observations.iter().any(|o| o.consequence.contains("only once the disk has had a limit")));
    let with_bfq = machine.bfq("vda", "254:0", ["8", "0", "0"]).probe("machine");
    assert_eq!(support(&with_bfq, Resource::Disk).1, "cgroup-v1 blkio.bfq.weight");
    assert_eq!(with_bfq.disk_weight, None, "only version 2 has the choice");
    let kinds: Vec<_> = with_bfq
        .enforcers(&ProtectedCgroups::default(), &DescriptorBudget::of(9))
        .iter()
        .map(|e| e.resources().len())
        .collect();
    assert_eq!(kinds, [3]);
}

#[test]
fn a_machine_without_control_groups_divides_nothing() {
    let found = Machine::new("nonsense\n").probe("");
    assert!(found.resources.iter().all(|r| !r.supported && r.reason == "no control groups are mounted"));
    assert_eq!(observation(&found, "control groups").unwrap().0, "none");
    assert!(found.enforcers(&ProtectedCgroups::default(), &DescriptorBudget::of(9)).is_empty());
    let nothing = tempfile::tempdir().unwrap();
    assert!(matches!(probe(&SystemRoot::below(nothing.path()), ""), Err(KernelError::Io { .. })));
    let machine = Machine::debian_12();
    assert!(matches!(probe(&SystemRoot::below(machine.0.path()), "../x"), Err(KernelError::InvalidPath(_))));
}

#[test]
fn other_probes_add_their_results() {
    let mut found = Machine::debian_12().probe("");
    let support = |resource, supported| ResourceSupport {
        resource,
        supported,
        mechanism: "x".into(),
        reason: "y".into(),
        advice: None,
    };
    found.add(support(Resource::Network, false));
    found.add(support(Resource::Network, true));
    found.add(support(Resource::Network, false));
    found.add(support(Resource::Disk, true));
    found.add(support(Resource::Cpu, false));
    assert_eq!(
        found.resources.iter().map(|r| (r.resource, r.supported)).collect::<Vec<_>>(),
        Resource::ALL.map(|c| (c, true))
    );
}
