//! Each source on directories with the layout that it expects.
#![allow(clippy::unwrap_used)]

mod common;

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::sync::{Arc, Mutex};

use common::{Machine, lines, warnings};

#[test]
fn user_slices_are_found() {
    let machine = Machine::unified();
    for slice in [
        "user-0.slice",
        "user-4000000001.slice",
        "user-4000000002.slice/user@4000000002.service",
        "user-x.slice",
        "user-1.slice.d",
    ] {
        machine.group(&format!("user.slice/{slice}"));
    }
    let mut discovery =
        machine.discovery("[[guests]]\nfrom = 'user-slices'\nunit = true\nprocessors = 2\nmemory = '1Gi'\n");
    let seen = discovery.refresh();
    assert_eq!(
        lines(seen),
        [
            "user.slice/user-4000000001.slice 4000000001 user-4000000001.slice",
            "user.slice/user-4000000002.slice 4000000002 user-4000000002.slice",
        ]
    );
    assert_eq!(seen.workloads[0].group.unit.as_deref(), Some("user-4000000001.slice"));
    assert_eq!((seen.workloads[0].processors, seen.workloads[0].memory_bytes), (Some(2.0), Some(1 << 30)));
    assert!(seen.warnings.is_empty());

    // Including the system's users, and without systemd's units.
    let mut discovery = machine.discovery("[[guests]]\nfrom = 'user-slices'\nunit = false\nleast_uid = 0\n");
    assert_eq!(lines(discovery.refresh())[0], "user.slice/user-0.slice root user-0.slice");
    assert_eq!(discovery.snapshot().workloads[0].group.unit, None);
}

#[test]
fn a_file_maps_users_to_owners() {
    let machine = Machine::unified();
    machine.group("user.slice/user-4000000001.slice");
    let file = machine.write("owners.toml", "[owners]\n4000000001 = 'alice'\n");
    let mut discovery = machine.discovery(&format!("[[guests]]\nfrom = 'user-slices'\nowners = {file:?}\n"));
    assert_eq!(discovery.refresh().workloads[0].owner, "alice");
    machine.write("owners.toml", "[owners]\n4000000001 = 'bob'\n");
    assert_eq!(discovery.refresh().workloads[0].owner, "bob");
    assert_eq!((discovery.snapshot().changed.as_slice(), discovery.snapshot().added.len()), (&[0][..], 0));
    machine.write("owners.toml", "[owners]\n4000000001 = 7\n");
    assert_eq!(discovery.refresh().workloads[0].owner, "bob");
    assert!(discovery.snapshot().changed.is_empty());
    assert!(
        warnings(discovery.snapshot())[0].contains("owners.toml:2:14: 4000000001: found the number 7, expected a text"),
        "{:?}",
        warnings(discovery.snapshot())
    );
}

/// Files written by libvirt 11.3.
const WEB: &str = include_str!("data/web-1.a.xml");
const ODD: &str = include_str!("data/odd.xml");

fn libvirt(machine: &Machine, more: &str) -> String {
    format!("[[guests]]\nfrom = 'libvirt'\nunit = true\nfolder = {:?}\n{more}\n", machine.path("libvirt"))
}

#[test]
fn libvirt_machines_without_systemd_are_found() {
    let machine = Machine::legacy();
    for group in ["qemu-1-web-1.a.libvirt-qemu/emulator", "qemu-2-odd.nmexy.libvirt-qemu/vcpu0", "other"] {
        machine.group(&format!("machine/{group}"));
    }
    machine.write("libvirt/qemu/web-1.a.xml", WEB);
    machine.write("libvirt/qemu/-odd..n\u{e4}me_x y.xml", ODD);
    machine.write("libvirt/qemu/autostarted", "");
    let mut discovery = machine.discovery(&libvirt(&machine, ""));
    let seen = discovery.refresh();
    assert_eq!(
        lines(seen),
        [
            "machine/qemu-1-web-1.a.libvirt-qemu alice web-1.a",
            "machine/qemu-2-odd.nmexy.libvirt-qemu alice -odd..n\u{e4}me_x y",
        ]
    );
    let web = &seen.workloads[0];
    assert_eq!((web.processors, web.memory_bytes), (Some(1.0), Some(64 << 20)));
    assert_eq!((web.group.unit.as_deref(), web.group.devices.as_slice()), (None, &["tapa".to_owned()][..]));
    assert!(seen.warnings.is_empty(), "{:?}", seen.warnings);
}

#[test]
fn libvirt_machines_with_systemd_come_change_and_go() {
    let machine = Machine::unified();
    let scope = "machine.slice/machine-qemu\\x2d1\\x2dweb\\x2d1.a.scope";
    machine.group(&format!("{scope}/libvirt/emulator"));
    let mut discovery = machine.discovery(&libvirt(&machine, "owner = 'booking/@owner'"));
    // The group exists before libvirt has written the state.
    assert!(discovery.refresh().workloads.is_empty());
    assert_eq!(
        warnings(discovery.snapshot()),
        [format!("source 1 (libvirt): libvirt's state names no domain of {scope:?}")]
    );
    machine.write("libvirt/qemu/web-1.a.xml", WEB);
    assert_eq!(lines(discovery.refresh()), [format!("{scope} bob web-1.a")]);
    assert_eq!(
        discovery.snapshot().workloads[0].group.unit.as_deref(),
        Some("machine-qemu\\x2d1\\x2dweb\\x2d1.a.scope")
    );
    assert!(discovery.refresh().added.is_empty());
    // A device and a processor are plugged in, and the owner changes.
    let more = WEB.replace("current='1'", "current='2'").replace("owner=\"bob\"", "owner=\"carol\"");
    let more = more.replace(
        "</devices>\n    <seclabel",
        "<interface type='bridge'><target dev='vnet7'/></interface></devices>\n    <seclabel",
    );
    machine.write("libvirt/qemu/web-1.a.xml", more);
    let seen = discovery.refresh();
    assert_eq!(
        (seen.changed.as_slice(), seen.workloads[0].owner.as_str(), seen.workloads[0].processors),
        (&[0][..], "carol", Some(2.0))
    );
    assert_eq!(seen.workloads[0].group.devices, ["tapa", "vnet7"]);
    // A truncated file, as after a crash: the machine is unknown.
    machine.write("libvirt/qemu/web-1.a.xml", &WEB[..WEB.len() / 2]);
    assert!(discovery.refresh().workloads.is_empty());
    assert!(warnings(discovery.snapshot())[0].contains("web-1.a.xml: "), "{:?}", warnings(discovery.snapshot()));
    machine.write("libvirt/qemu/web-1.a.xml", WEB);
    assert_eq!(discovery.refresh().workloads.len(), 1);
    // The machine ends, and a new one has its name, but another number.
    machine.remove(scope);
    machine.group("machine.slice/machine-qemu\\x2d2\\x2dweb\\x2d1.a.scope");
    machine.write("libvirt/qemu/web-1.a.xml", WEB.replace("id='1'>\n    <name>", "id='2'>\n    <name>"));
    let seen = discovery.refresh();
    assert_eq!((seen.removed.len(), seen.added.as_slice(), seen.workloads.len()), (1, &[0][..], 1));
    fs::remove_dir_all(machine.path("libvirt")).unwrap();
    assert!(discovery.refresh().workloads.is_empty());
}

#[test]
fn machines_in_partitions_and_without_metadata_are_found() {
    let machine = Machine::unified();
    machine.group("machine.slice/machine-production.slice/machine-qemu\\x2d1\\x2dweb\\x2d1.a.scope");
    let bare = WEB.replace("<nova:owner>", "<nova:nothing>").replace("</nova:owner>", "</nova:nothing>");
    machine.write("libvirt/qemu/web-1.a.xml", bare);
    let mut discovery = machine.discovery(&libvirt(&machine, ""));
    assert!(discovery.refresh().workloads.is_empty());
    assert!(
        warnings(discovery.snapshot())[0].starts_with("source 1 (libvirt): the owner is unknown: \"machine.slice/")
    );
    let owners = machine.write("owners.toml", "[guests]\n'web-.*' = 'dave'\n");
    let mut discovery = machine.discovery(&libvirt(&machine, &format!("owners = {owners:?}")));
    assert_eq!(discovery.refresh().workloads[0].owner, "dave");
    let mut discovery =
        machine.discovery(&libvirt(&machine, &format!("owners = {owners:?}\nwithin = ['other.slice']")));
    assert!(discovery.refresh().workloads.is_empty());
}

/// Returns the number of this process as a group's file lists it, unless it is root's.
fn own_process() -> Option<String> {
    let own = std::process::id();
    let root = std::os::unix::fs::MetadataExt::uid(&fs::metadata(format!("/proc/{own}")).unwrap()) == 0;
    (!root).then(|| format!("{own}\n"))
}

#[test]
fn slurm_jobs_of_the_plugin_for_v1_are_found() {
    let machine = Machine::legacy();
    machine.group("slurm/uid_4000000001/job_12/step_0/task_0");
    machine.group("slurm/uid_4000000001/job_13/step_batch");
    machine.group("slurm_n1/uid_4000000002/job_14");
    machine.group("slurm/system");
    machine.group("slurm/uid_x/job_15");
    machine.write("memory/slurm/uid_4000000001/job_12/memory.limit_in_bytes", "1048576\n");
    machine.write("cpuset/slurm/uid_4000000001/job_12/cpuset.cpus", "0-1,4\n");
    let mut discovery = machine.discovery("[[guests]]\nfrom = 'slurm'\nunit = true\n");
    let seen = discovery.refresh();
    assert_eq!(
        lines(seen),
        [
            "slurm/uid_4000000001/job_12 4000000001 12",
            "slurm/uid_4000000001/job_13 4000000001 13",
            "slurm_n1/uid_4000000002/job_14 4000000002 14",
        ]
    );
    assert_eq!((seen.workloads[0].processors, seen.workloads[0].memory_bytes), (Some(3.0), Some(1 << 20)));
    assert_eq!(seen.workloads[1].group.unit, None);
    machine.remove("slurm/uid_4000000001");
    assert_eq!(discovery.refresh().removed.len(), 2);
}

#[test]
fn slurm_jobs_of_the_plugin_for_v2_are_found() {
    let machine = Machine::unified();
    machine.group("system.slice/slurmstepd.scope/system");
    machine.group("system.slice/slurmstepd.scope/job_12/step_0/slurm");
    machine.group("system.slice/n1_slurmstepd.scope/job_13/step_batch/user/task_special");
    machine.group("system.slice/slurmd.service");
    let mut discovery = machine.discovery("[[guests]]\nfrom = 'slurm'\n");
    assert!(discovery.refresh().workloads.is_empty());
    let warning =
        "source 1 (slurm): no process of a user runs in 2 groups such as \"system.slice/slurmstepd.scope/job_12\"";
    let other_warning = warning.replace("slurmstepd.scope/job_12", "n1_slurmstepd.scope/job_13");
    assert!(
        [warning, &other_warning].contains(&warnings(discovery.snapshot())[0].as_str()),
        "{:?}",
        discovery.snapshot().warnings
    );
    // Processes of root are ignored, so the rest needs another user; unit tests cover it as root.
    if let Some(process) = own_process() {
        machine.group("system.slice/slurmstepd.scope/job_12/step_0/user/task_0");
        fs::write(machine.root().join("system.slice/slurmstepd.scope/job_12/step_0/user/task_0/cgroup.procs"), process)
            .unwrap();
        assert_eq!(discovery.refresh().workloads[0].name, "12");
    }
}

fn id(number: usize) -> String {
    format!("{number:064x}")
}

/// Starts a fake engine that answers each request with the present content of `answer`.
fn engine(machine: &Machine, answer: &Arc<Mutex<String>>) -> (String, Arc<Mutex<usize>>) {
    let path = machine.path("docker.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let (answer, asked) = (Arc::clone(answer), Arc::new(Mutex::new(0)));
    let count = Arc::clone(&asked);
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let (mut request, mut piece) = (Vec::new(), [0; 256]);
            while !request.ends_with(b"\r\n\r\n") {
                let n = socket.read(&mut piece).unwrap();
                request.extend_from_slice(&piece[..n]);
            }
            assert!(request.starts_with(b"GET /containers/json HTTP/1.1\r\n"));
            *count.lock().unwrap() += 1;
            let _ = socket.write_all(answer.lock().unwrap().as_bytes());
        }
    });
    (path.to_str().unwrap().to_owned(), asked)
}

fn answer(containers: &[(usize, &str, &str)]) -> String {
    let one = |(number, name, labels): &(usize, &str, &str)| {
        format!(r#"{{"Id":"{}","Names":["/{name}"],"Labels":{{{labels}}}}}"#, id(*number))
    };
    let body = format!("[{}]", containers.iter().map(one).collect::<Vec<_>>().join(","));
    format!("HTTP/1.0 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

#[test]
fn docker_containers_with_and_without_systemd_are_found() {
    let machine = Machine::unified();
    let content = Arc::new(Mutex::new(answer(&[
        (1, "web", r#""tenant":"alice""#),
        (2, "db", r#""tenant":"bob","x":"y""#),
        (3, "cache", ""),
    ])));
    let (socket, asked) = engine(&machine, &content);
    let web = format!("system.slice/docker-{}.scope", id(1));
    let db = format!("docker/{}", id(2));
    let cache = format!("docker/{}", id(3));
    machine.group(&web);
    machine.group(&db);
    machine.write(&format!("cgroup/{db}/cpu.max"), "250000 100000\n");
    machine.write(&format!("cgroup/{db}/memory.max"), "1048576\n");
    machine.group("system.slice/docker.service");
    let mut discovery = machine
        .discovery(&format!("[[guests]]\nfrom = 'containers'\nunit = true\nlabel = 'tenant'\ndocker = {socket:?}\n"));
    let seen = discovery.refresh();
    assert_eq!(lines(seen), [format!("{db} bob db"), format!("{web} alice web")]);
    assert_eq!(
        (seen.workloads[0].processors, seen.workloads[0].memory_bytes, seen.workloads[0].group.unit.as_deref()),
        (Some(2.5), Some(1 << 20), None)
    );
    assert_eq!(seen.workloads[1].group.unit.as_ref(), Some(&format!("docker-{}.scope", id(1))));
    assert!(seen.warnings.is_empty(), "{:?}", seen.warnings);
    // The engine is not asked about known containers again.
    discovery.refresh();
    assert_eq!(*asked.lock().unwrap(), 1);

    machine.group(&cache);
    assert_eq!(discovery.refresh().workloads.len(), 2);
    assert_eq!(warnings(discovery.snapshot()), [format!("source 1 (containers): the owner is unknown: {cache:?}")]);
    assert_eq!(*asked.lock().unwrap(), 2);
}

#[test]
fn an_engine_that_fails_is_asked_at_growing_intervals() {
    let machine = Machine::unified();
    let content = Arc::new(Mutex::new("HTTP/1.0 500 Internal Server Error\r\n\r\n".to_owned()));
    let (socket, asked) = engine(&machine, &content);
    machine.group(&format!("docker/{}", id(1)));
    let mut discovery =
        machine.discovery(&format!("[[guests]]\nfrom = 'containers'\nlabel = 'tenant'\ndocker = {socket:?}\n"));
    for _ in 0..100 {
        assert!(discovery.refresh().workloads.is_empty());
        assert!(
            warnings(discovery.snapshot())[0].contains("answers 500 Internal Server Error"),
            "{:?}",
            discovery.snapshot().warnings
        );
    }
    assert_eq!(*asked.lock().unwrap(), 8);
    // A container that the engine does not know yet.
    *content.lock().unwrap() = answer(&[]);
    machine.group(&format!("docker/{}", id(2)));
    assert!(
        warnings(discovery.refresh())[0].contains("did not report the owner of 2 groups such as"),
        "{:?}",
        discovery.snapshot().warnings
    );
    *content.lock().unwrap() = answer(&[(1, "web", r#""tenant":"alice""#), (2, "db", r#""tenant":"bob""#)]);
    discovery.refresh();
    discovery.refresh();
    assert_eq!(discovery.snapshot().workloads.len(), 2, "{:?}", discovery.snapshot().warnings);
    assert!(discovery.snapshot().warnings.is_empty());
    for nonsense in ["", "HTTP/1.0 200 OK\r\n\r\n[{", "HTTP/1.0 200 OK\r\nContent-Length: 99\r\n\r\n[]", "\u{0}"] {
        *content.lock().unwrap() = nonsense.to_owned();
        machine.group(&format!("docker/{}", id(1000 + nonsense.len())));
        let before = discovery.snapshot().workloads.clone();
        let seen = discovery.refresh();
        assert_eq!((&seen.workloads, seen.warnings.len()), (&before, 1));
    }
}

/// Creates a socket whose daemon accepts nothing and whose backlog is full; a plain connect to it blocks for ever.
fn full_backlog(path: &std::path::Path) -> Vec<std::os::fd::OwnedFd> {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with};
    let address = SocketAddrUnix::new(path).unwrap();
    let socket = |flags| socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
    let mut open = vec![socket(SocketFlags::CLOEXEC)];
    bind(&open[0], &address).unwrap();
    listen(&open[0], 1).unwrap();
    loop {
        let client = socket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK);
        let refused = connect(&client, &address).is_err();
        open.push(client);
        if refused {
            return open;
        }
    }
}

#[test]
fn engines_that_never_answer_leave_time_to_restore_everything_before_the_exit_limit() {
    let machine = Machine::unified();
    let socket = machine.path("docker.sock");
    let _open = full_backlog(&socket);
    let hung = machine.write("podman", "#!/bin/sh\nexec sleep 600\n");
    fs::set_permissions(&hung, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    machine.group(&format!("docker/{}", id(1)));
    machine.group(&format!("machine.slice/libpod-{}.scope", id(2)));
    let mut discovery =
        machine.discovery(&format!("[[guests]]\nfrom = 'containers'\ndocker = {socket:?}\npodman = {hung:?}\n"));
    let begun = std::time::Instant::now();
    let seen = discovery.refresh();
    // What SIGTERM may have to wait for; the other half is for restoring.
    assert!(begun.elapsed() < evenhand_agent::EXIT_LIMIT / 2, "{:?}", begun.elapsed());
    let text = warnings(seen).join("\n");
    assert!(text.contains("docker.sock did not report") && text.contains("podman did not report"), "{text}");
}

#[test]
fn podman_containers_with_and_without_root_are_found() {
    let machine = Machine::unified();
    let program = machine.write("podman", format!(
        "#!/bin/sh\n[ \"$*\" = 'ps --no-trunc --format json' ] || exit 3\necho '[{{\"Id\":\"{}\",\"Names\":[\"db\"],\"Labels\":{{\"owner\":\"bob\"}}}},{{\"Id\":\"{}\",\"Names\":[\"pod\"],\"Labels\":{{\"owner\":\"carol\"}}}}]'\n",
        id(1), id(2)));
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    // An absolute path would mean a socket, so the program is named by a relative one.
    let name = format!("./{}", pathdiff(&program));
    let of_user = "user.slice/user-4000000001.slice/user@4000000001.service";
    for group in [
        format!("machine.slice/libpod-{}.scope/container", id(1)),
        format!("machine.slice/libpod-conmon-{}.scope", id(1)),
        format!("machine.slice/machine-libpod_pod_{}.slice/libpod-{}.scope", id(9), id(2)),
        format!("{of_user}/user.slice/libpod-{}.scope", id(3)),
        format!("{of_user}/app.slice/docker-{}.scope", id(4)),
        "user.slice/user-4000000001.slice/session-1.scope".to_owned(),
    ] {
        machine.group(&group);
    }
    let text = format!("[[guests]]\nfrom = 'containers'\nunit = true\npodman = {name:?}\n");
    let mut discovery = machine.discovery(&text);
    assert_eq!(
        lines(discovery.refresh()),
        [
            format!("machine.slice/libpod-{}.scope bob db", id(1)),
            format!("machine.slice/machine-libpod_pod_{}.slice/libpod-{}.scope carol pod", id(9), id(2)),
        ],
        "{:?}",
        discovery.snapshot().warnings
    );
    let mut discovery = machine.discovery(&format!("{text}rootless = true\n"));
    assert_eq!(
        lines(discovery.refresh())[2..],
        [
            format!("{of_user}/app.slice/docker-{}.scope 4000000001 000000000000", id(4)),
            format!("{of_user}/user.slice/libpod-{}.scope 4000000001 000000000000", id(3)),
        ]
    );
    // Their units belong to the user's own manager.
    assert_eq!(discovery.snapshot().workloads[2].group.unit, None);
}

#[test]
fn podman_containers_without_systemd_are_found() {
    let machine = Machine::legacy();
    let content = Arc::new(Mutex::new(answer(&[(1, "a", r#""owner":"alice""#), (2, "b", r#""owner":"bob""#)])));
    let (socket, _) = engine(&machine, &content);
    machine.group(&format!("libpod_parent/libpod-{}", id(1)));
    machine.group(&format!("libpod_parent/{}/libpod-{}", id(8), id(2)));
    machine.group("libpod_parent/conmon");
    let mut discovery = machine.discovery(&format!("[[guests]]\nfrom = 'containers'\npodman = {socket:?}\n"));
    let owners: Vec<&str> = discovery.refresh().workloads.iter().map(|g| g.owner.as_str()).collect();
    assert_eq!(owners, ["bob", "alice"]);
}

/// Returns the path relative to the current directory.
fn pathdiff(path: &std::path::Path) -> String {
    let here = std::env::current_dir().unwrap();
    let up = "../".repeat(here.components().count() - 1);
    format!("{up}{}", path.to_str().unwrap().trim_start_matches('/'))
}

#[test]
fn groups_whose_paths_match_are_found() {
    let machine = Machine::unified();
    for group in ["alice-web\\x2d1.service/sub", "bob-db.service", "9-x.service", "alice-web.socket"] {
        machine.group(&format!("tenants.slice/{group}"));
    }
    machine.group("other.slice/alice-web.service");
    let pattern = r"pattern = 'tenants\.slice/(?<owner>[a-z]+)-(?<name>.*)\.service'";
    let mut discovery = machine.discovery(&format!("[[guests]]\nfrom = 'pattern'\nunit = true\n{pattern}\n"));
    assert_eq!(
        lines(discovery.refresh()),
        ["tenants.slice/alice-web\\x2d1.service alice web-1", "tenants.slice/bob-db.service bob db",]
    );
    let mut discovery =
        machine.discovery("[[guests]]\nfrom = 'pattern'\npattern = '.*/[^/]*\\.service'\nowner = 'carol'\n");
    assert_eq!(discovery.refresh().workloads.len(), 4);
    assert!(discovery.snapshot().workloads.iter().all(|g| g.owner == "carol"));
    assert_eq!(discovery.snapshot().workloads[0].name, "alice-web.service");
}

#[test]
fn groups_listed_in_a_file_are_found() {
    let machine = Machine::legacy();
    machine.group("a.slice/b c");
    machine.group("d");
    let file = machine.write("guests.txt", "d alice\na.slice/b c, bob, bee, 2, 1Gi\nlater carol\n");
    let mut discovery = machine.discovery(&format!("[[guests]]\nfrom = 'table'\nfile = {file:?}\n"));
    assert_eq!(lines(discovery.refresh()), ["a.slice/b c bob bee", "d alice d"]);
    machine.group("later");
    assert_eq!(discovery.refresh().added, [2]);
    machine.write("guests.txt", "d alice\nlater,\n");
    assert_eq!(discovery.refresh().workloads.len(), 3);
    let messages = warnings(discovery.snapshot());
    assert!(
        messages[0].contains("guests.txt:2:1: found no owner")
            && messages[0].ends_with("the earlier content stays in use"),
        "{messages:?}"
    );
    machine.write("guests.txt", "d bob\n");
    let seen = discovery.refresh();
    assert_eq!((seen.changed.as_slice(), seen.removed.len(), seen.warnings.len()), (&[0][..], 2, 0));

    let text = "[[guest]]\npath = 'd'\nowner = 'alice'\nmemory = '2Gi'\ndevices = ['tap0']\n";
    let file = machine.write("guests.toml", text);
    let mut discovery = machine.discovery(&format!("[[guests]]\nfrom = 'table'\nfile = {file:?}\n"));
    assert_eq!(discovery.refresh().workloads[0].group.devices, ["tap0"]);
    assert_eq!(discovery.snapshot().workloads[0].memory_bytes, Some(2 << 30));
    machine.write("guests.toml", format!("{text}{text}"));
    assert!(
        warnings(discovery.refresh())[0].contains("guests.toml:7:8: path: found \"d\" a second time"),
        "{:?}",
        discovery.snapshot().warnings
    );
}

#[test]
fn many_rows_of_one_group_are_found_like_few() {
    let machine = Machine::unified();
    // Some rows name no group, some a file, and some groups are in no row.
    let numbers = 0..40;
    for n in numbers.clone().filter(|n| n % 3 != 0) {
        machine.group(&format!("many/{n}"));
        machine.group(&format!("many/{n}/few{}", n % 2));
    }
    machine.write("cgroup/many/3", "");
    let rows: String = numbers.rev().filter(|n| n % 5 != 0).map(|n| format!("many/{n}/few1 x\n")).collect();
    let wide: String = (0..40).rev().filter(|n| n % 5 != 0).map(|n| format!("many/{n} x\n")).collect();
    let expected = |suffix: &str, keep: fn(&i32) -> bool| {
        let mut paths: Vec<String> =
            (0..40).filter(|n| n % 3 != 0 && n % 5 != 0).filter(keep).map(|n| format!("many/{n}{suffix}")).collect();
        paths.sort();
        paths
    };
    for (text, expected) in [(wide, expected("", |_| true)), (rows, expected("/few1", |n| n % 2 == 1))] {
        let file = machine.write("rows", text);
        let mut discovery = machine.discovery(&format!("[[guests]]\nfrom = 'table'\nfile = {file:?}\n"));
        let paths: Vec<String> = discovery.refresh().workloads.iter().map(|g| g.group.path.clone()).collect();
        assert_eq!(paths, expected);
        assert!(discovery.refresh().added.is_empty());
    }
}
