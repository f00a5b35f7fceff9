//! Real queueing disciplines, rules and traffic, in network namespaces and control groups that the tests create.
//!
//! The tests need root and HTB, and are skipped with a message without them.
#![allow(clippy::unwrap_used, clippy::print_stderr, clippy::print_stdout)]

#[allow(unreachable_pub)]
mod support;

use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

use evenhand_enforcers::cgroups::{
    CompositeEnforcer, Enforcer, Group, GroupFilter, GroupId, Hierarchies, KernelError, Meter, Resource, SavedState,
    Targets,
};
use evenhand_enforcers::traffic::{Settings, TrafficEnforcer, TrafficError, TrafficLeftovers, probe};

use support::{Groups, Namespace, Process, Receiver, cable, run, sender, speeds, unable};

const MEGABIT: u64 = 125_000;
const LINK: u64 = 100 * MEGABIT;
const SETTLE: Duration = Duration::from_millis(700);
const SPAN: Duration = Duration::from_millis(1500);

macro_rules! or_skip {
    () => {
        if let Some(why) = unable() {
            eprintln!("skipped: {why}");
            return;
        }
    };
}

fn settings(device: &str) -> Settings {
    Settings { device: device.into(), link: Some(LINK), force: false }
}

fn open(namespace: &Namespace, device: &str) -> TrafficEnforcer {
    namespace.within(|| TrafficEnforcer::open(settings(device), &Hierarchies::detect().unwrap()).unwrap())
}

fn group(path: &str) -> Group {
    Group { path: path.into(), ..Group::default() }
}

fn network(weight: f64) -> Targets {
    Targets { network: Some(weight), ..Targets::default() }
}

/// Sets the weights of groups 0, 1, … and returns the values that were written.
fn set_weights(traffic: &mut TrafficEnforcer, weights: &[f64]) -> Vec<u64> {
    let mut changes = Vec::new();
    for (i, weight) in weights.iter().enumerate() {
        traffic.apply(GroupId(i as u32), &network(*weight), &mut changes).unwrap();
    }
    traffic.flush().unwrap();
    assert!(changes.iter().all(|change| change.resource == Resource::Network));
    changes.into_iter().map(|change| change.value).collect()
}

fn admit(traffic: &mut TrafficEnforcer, groups: &[Group]) -> Vec<SavedState> {
    let admitted = groups.iter().enumerate().map(|(i, group)| Enforcer::admit(traffic, GroupId(i as u32), group));
    admitted.collect::<Result<_, _>>().unwrap()
}

fn within_a_tenth(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 0.1, "{found:.3}, expected {expected:.3}");
}

/// Repeats a measurement of two speeds until their ratio is as expected, at most four times: other processes of the
/// machine can delay the senders. A ratio that is wrong stays wrong.
fn share(expected: f64, mut measure: impl FnMut() -> [f64; 2]) -> [f64; 2] {
    let mut found = [0.0, 1.0];
    for _ in 0..4 {
        found = measure();
        let ratio = found[0] / found[1];
        let together = (found[0] + found[1]) / MEGABIT as f64;
        eprintln!("{expected}:1 is {ratio:.3}:1, together {together:.1} Mbit/s");
        if (ratio / expected - 1.0).abs() < 0.1 {
            return found;
        }
    }
    within_a_tenth(found[0] / found[1], expected);
    found
}

/// Returns the word after this one in a line of a listing.
fn value_after<'a>(line: &'a str, word: &str) -> &'a str {
    line.split_whitespace().skip_while(|w| *w != word).nth(1).unwrap_or("")
}

#[test]
#[ignore = "runs as a process of the other tests"]
fn process_that_sends() {
    support::send();
}

#[test]
fn probing_leaves_no_trace() {
    or_skip!();
    let look = || (run("tc qdisc show"), run("ip -o link"), run("ip netns"));
    let before = look();
    let found = probe(&settings("lo"), &Hierarchies::detect().unwrap());
    assert!(found.len() == 7 && found.iter().all(|check| check.passed == Some(true)), "{found:#?}");
    let missing = probe(&settings("nothing-here"), &Hierarchies::default());
    let failed: Vec<_> = missing.iter().filter(|check| check.passed == Some(false)).map(|check| check.name).collect();
    assert_eq!(failed, ["device", "groups"]);
    assert_eq!(look().0, before.0);
}

#[test]
fn traffic_is_divided_in_proportion_to_weights_by_control_group() {
    or_skip!();
    let (near, far) = cable();
    let groups = Groups::new(&["a", "b"]);
    let [to_a, to_b] = [(); 2].map(|()| Receiver::new(&far, "10.99.0.2"));
    let mut traffic = open(&near, "e0");
    let mut meter = near.within(|| traffic.meter().unwrap());
    let members = ["a", "b"].map(|name| group(&groups.path(name)));
    admit(&mut traffic, &members);
    for (i, member) in members.iter().enumerate() {
        meter.admit(GroupId(i as u32), member).unwrap();
        assert_eq!(meter.read(GroupId(i as u32)).unwrap().network, None);
    }
    // The smallest quanta: on a slow link a round of larger ones takes so long that two seconds have only about
    // twenty, and a few of them decide the result.
    assert_eq!(set_weights(&mut traffic, &[0.25, 0.75]), [66_000, 198_000]);
    assert!(set_weights(&mut traffic, &[0.25, 0.75]).is_empty());
    let senders = [("a", &to_a), ("b", &to_b)];
    let mut senders = senders.map(|(name, to)| sender(&near, Some(&groups.root.join(name)), to.address));

    let used = |meter: &mut dyn Meter| [0, 1].map(|i| meter.read(GroupId(i)).unwrap().network.unwrap());
    let mut sent = [0.0; 2];
    std::thread::sleep(SETTLE);
    let [a, b] = share(3.0, || {
        let (begun, before) = (Instant::now(), used(&mut meter));
        let [a, b] = speeds([&to_a, &to_b], SPAN);
        let (took, after) = (begun.elapsed(), used(&mut meter));
        sent = [0, 1].map(|i| (after[i] - before[i]) as f64 / took.as_secs_f64());
        [b, a]
    });
    within_a_tenth(a + b, LINK as f64 * 0.95);
    // The meter counts headers, but not data that the receiver has not read yet.
    within_a_tenth(sent[1] / sent[0], 3.0);
    within_a_tenth(sent[0] + sent[1], LINK as f64);

    assert_eq!(set_weights(&mut traffic, &[0.5, 0.25]), [132_000, 66_000]);
    std::thread::sleep(SETTLE);
    share(2.0, || speeds([&to_a, &to_b], SPAN));

    senders[0].kill();
    std::thread::sleep(SETTLE);
    share(0.95, || [speeds([&to_b], SPAN / 2)[0], LINK as f64]);
}

#[test]
fn traffic_is_divided_in_proportion_to_weights_by_device() {
    or_skip!();
    // Two virtual machines and the link are connected to a bridge.
    let (host, far) = (Namespace::new(), Namespace::new());
    let machines = [Namespace::new(), Namespace::new()];
    host.run("ip link add bridge0 type bridge");
    host.run("ip link set bridge0 up");
    let ends = [("up0", &far, 9), ("tap1", &machines[0], 1), ("tap2", &machines[1], 2)];
    for (device, other, end) in ends {
        run(&format!("ip link add {device} netns {} type veth peer name e0 netns {}", host.name, other.name));
        host.run(&format!("ip link set {device} master bridge0"));
        host.run(&format!("ip link set {device} up"));
        other.run(&format!("ip addr add 10.99.1.{end}/24 dev e0"));
        other.run("ip link set e0 up");
    }
    let [to_1, to_2] = [(); 2].map(|()| Receiver::new(&far, "10.99.1.9"));
    let mut traffic = open(&host, "up0");
    let mut meter = host.within(|| traffic.meter().unwrap());
    let members = [1, 2].map(|i| Group {
        path: format!("machine.slice/no-such-machine-{i}.scope"),
        devices: vec![format!("tap{i}")],
        ..Group::default()
    });
    admit(&mut traffic, &members);
    for (i, member) in members.iter().enumerate() {
        meter.admit(GroupId(i as u32), member).unwrap();
    }
    set_weights(&mut traffic, &[0.75, 0.25]);
    let _senders = [(&machines[0], &to_1), (&machines[1], &to_2)].map(|(from, to)| sender(from, None, to.address));
    std::thread::sleep(SETTLE);
    let [_, two] = share(3.0, || speeds([&to_1, &to_2], SPAN));
    let used = [0, 1].map(|i| meter.read(GroupId(i)).unwrap().network.unwrap());
    assert!(used[0] > used[1] && used[1] as f64 > two * SPAN.as_secs_f64(), "{used:?}");

    // Removing a device affects only its group.
    host.run("ip link del tap2");
    assert!(matches!(meter.read(GroupId(1)), Err(KernelError::Gone(_))));
    assert!(meter.read(GroupId(0)).is_ok());
    Enforcer::dismiss(&mut traffic, GroupId(1));
    traffic.flush().unwrap();
    assert!(!host.run("nft list ruleset").contains("tap2"));
    let error = Enforcer::admit(&mut traffic, GroupId(1), &members[1]).unwrap_err();
    assert!(matches!(error, KernelError::Gone(device) if device == "tap2"));
}

#[test]
fn tc_and_nft_list_the_expected_classes_and_rules() {
    or_skip!();
    let (near, _far) = cable();
    let groups = Groups::new(&["a", "b"]);
    let mut traffic = open(&near, "e0");
    let deep = group(&groups.path("a"));
    let both = Group { path: groups.name.clone(), devices: vec!["e0".into()], ..Group::default() };
    let saved = admit(&mut traffic, &[deep, both]);
    assert_eq!(saved[0].0.get("queue").map(String::as_str), Some("noqueue 0:"));
    // Nothing is installed yet.
    assert!(near.run("tc qdisc show dev e0").contains("noqueue"));
    assert_eq!(near.run("nft list ruleset"), "");
    set_weights(&mut traffic, &[0.5, 100.0]);

    let queue = near.run("tc qdisc show dev e0");
    assert!(queue.starts_with("qdisc htb 4548: root") && queue.contains("default 0x2"), "{queue}");
    let list = near.run("tc -d class show dev e0");
    let class =
        |id: &str| list.lines().find(|line| value_after(line, "htb") == id).unwrap_or_else(|| panic!("{id} in {list}"));
    for (id, quantum) in [("4548:2", "264000"), ("4548:8", "132000"), ("4548:9", "4224000")] {
        let line = class(id);
        let expected = ["4548:1", "8Kbit", "100Mbit", quantum, "0"];
        assert_eq!(
            ["parent", "rate", "ceil", "quantum", "prio"].map(|word| value_after(line, word)),
            expected,
            "{line}"
        );
        assert_eq!([value_after(line, "burst"), value_after(line, "linklayer")], ["1600b/1", "ethernet"], "{line}");
        assert_eq!(value_after(line, "cburst"), "66000b/1", "{line}");
    }
    assert_eq!(["rate", "ceil"].map(|word| value_after(class("4548:1"), word)), ["100Mbit"; 2]);
    assert_eq!(list.lines().count(), 4);

    let rules = near.run("nft list ruleset");
    for expected in [
        "table inet evenhand {",
        "flags owner",
        "type cgroupsv2 : classid",
        &format!("\"{}\" : 4548:8", groups.root.join("a").strip_prefix("/sys/fs/cgroup").unwrap().display()),
        "type filter hook output priority mangle; policy accept;",
        "table netdev evenhand {",
        "type filter hook ingress device \"e0\" priority filter; policy accept;",
        "meta priority set 4548:9",
    ] {
        assert!(rules.contains(expected), "{expected} in {rules}");
    }
    // The deeper group has the last match.
    let at = |level: u32| rules.find(&format!("level {level} map @level{level}")).unwrap_or_else(|| panic!("{rules}"));
    assert!(at(1) < at(2));
}

#[test]
fn the_earlier_state_is_restored() {
    or_skip!();
    let (near, _far) = cable();
    let groups = Groups::new(&["a", "b"]);
    let look = || (near.run("tc qdisc show"), near.run("nft list ruleset"), near.run("tc class show dev e0"));
    let before = look();
    let mut traffic = open(&near, "e0");
    let members = ["a", "b"].map(|name| group(&groups.path(name)));
    let saved = admit(&mut traffic, &members);
    set_weights(&mut traffic, &[1.0, 1.0]);
    traffic.restore(&members[0], &saved[0]).unwrap();
    let between = look();
    assert!(between.2.contains("4548:9 ") && !between.2.contains("4548:8 "), "{}", between.2);
    assert!(between.1.contains("4548:9") && !between.1.contains("4548:8"), "{}", between.1);
    traffic.restore(&members[1], &saved[1]).unwrap();
    assert_eq!(look(), before);
    traffic.restore(&members[1], &saved[1]).unwrap();
    // A restored group can be given a weight again.
    assert_eq!(set_weights(&mut traffic, &[1.0, 2.0]), [264_000, 528_000]);
    assert_eq!(look().2.lines().count(), 4);
    traffic.remove_all().unwrap();
    traffic.remove_all().unwrap();
    assert_eq!(look(), before);
}

#[test]
fn a_queueing_discipline_of_another_program_is_left_alone() {
    or_skip!();
    let (near, _far) = cable();
    let groups = Groups::new(&["a"]);
    let open = |force| {
        let settings = Settings { force, ..settings("e0") };
        near.within(|| TrafficEnforcer::open(settings, &Hierarchies::detect().unwrap()))
    };
    near.run("tc qdisc add dev e0 root handle 7: tbf rate 50mbit burst 64kb latency 50ms");
    let theirs = near.run("tc qdisc show dev e0");
    match open(false) {
        Err(TrafficError::Foreign { found, .. }) => assert_eq!(found, "tbf 7:"),
        other => panic!("{other:?}"),
    }
    assert_eq!(near.run("tc qdisc show dev e0"), theirs);

    // So is one that is installed later.
    near.run("tc qdisc del dev e0 root");
    let mut traffic = open(false).unwrap();
    admit(&mut traffic, &[group(&groups.path("a"))]);
    near.run("tc qdisc add dev e0 root handle 7: tbf rate 50mbit burst 64kb latency 50ms");
    traffic.apply(GroupId(0), &network(1.0), &mut Vec::new()).unwrap();
    assert!(matches!(traffic.flush(), Err(KernelError::Withdrawn { .. })));
    assert_eq!(near.run("tc qdisc show dev e0"), theirs);
    drop(traffic);

    let mut forced = open(true).unwrap();
    admit(&mut forced, &[group(&groups.path("a"))]);
    set_weights(&mut forced, &[1.0]);
    assert!(near.run("tc qdisc show dev e0").contains("htb 4548:"));
    forced.remove_all().unwrap();
    assert!(near.run("tc qdisc show dev e0").contains("noqueue"));
    let none = near.within(|| TrafficEnforcer::open(settings("e9"), &Hierarchies::default()).unwrap_err());
    assert!(matches!(none, TrafficError::NoDevice(device) if device == "e9"));
}

#[test]
fn removed_objects_are_created_again() {
    or_skip!();
    let (near, _far) = cable();
    let groups = Groups::new(&["a", "b"]);
    let mut traffic = open(&near, "e0");
    admit(&mut traffic, &["a", "b"].map(|name| group(&groups.path(name))));
    set_weights(&mut traffic, &[1.0, 2.0]);
    let made = near.run("tc class show dev e0").lines().count();
    near.run("tc qdisc del dev e0 root");
    // No weight changed, and still the loss is noticed.
    assert!(set_weights(&mut traffic, &[1.0, 2.0]).is_empty());
    assert_eq!(near.run("tc class show dev e0").lines().count(), made);

    // A class is created again at its next change.
    near.run("tc class del dev e0 classid 4548:9");
    traffic.apply(GroupId(1), &network(3.0), &mut Vec::new()).unwrap();
    assert!(matches!(traffic.flush(), Err(KernelError::Withdrawn { .. })));
    set_weights(&mut traffic, &[1.0, 3.0]);
    assert!(near.run("tc -d class show dev e0").contains("quantum 792000"));

    // Flushing the rules does not remove owned tables.
    near.run("nft flush ruleset");
    assert!(near.run("nft list ruleset").contains("4548:9"));

    // A group that is created again is a new one and needs a new rule.
    let path = groups.root.join("a");
    std::fs::remove_dir(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    admit(&mut traffic, &[group(&groups.path("a"))]);
    set_weights(&mut traffic, &[1.0]);
    let rules = near.run("nft list ruleset");
    assert!(rules.contains("/a\" : 4548:"), "{rules}");
    assert_eq!(near.run("tc class show dev e0").lines().count(), made);
    let error = Enforcer::admit(&mut traffic, GroupId(7), &group(&groups.path("none"))).unwrap_err();
    assert!(matches!(error, KernelError::Gone(_)));
    let other = Namespace::new();
    let mut blind = other.within(|| TrafficEnforcer::open(settings("lo"), &Hierarchies::default()).unwrap());
    let error = Enforcer::admit(&mut blind, GroupId(0), &group(&groups.path("a"))).unwrap_err();
    assert!(matches!(error, KernelError::Gone(_)), "without version 2 its packets cannot be classified: {error}");
    for bad in ["", "/a", "a/../b", "a//b"] {
        let error = Enforcer::admit(&mut traffic, GroupId(7), &group(bad)).unwrap_err();
        assert!(matches!(error, KernelError::InvalidPath(_)), "{bad}");
    }
}

#[test]
#[ignore = "runs as a process of the other tests"]
fn process_that_sets_a_weight() {
    let (Ok(name), Ok(path)) = (std::env::var("NAMESPACE"), std::env::var("GROUP")) else { return };
    let namespace = std::mem::ManuallyDrop::new(Namespace { name });
    let mut traffic = open(&namespace, "e0");
    admit(&mut traffic, &[group(&path)]);
    set_weights(&mut traffic, &[2.0]);
    println!("weight set");
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
fn leftovers_of_a_killed_process_are_removed() {
    or_skip!();
    let (near, _far) = cable();
    let groups = Groups::new(&["a"]);
    let before = near.run("tc qdisc show");
    let variables = [("NAMESPACE", near.name.as_str()), ("GROUP", &groups.path("a"))];
    let mut process = Process::start("process_that_sets_a_weight", &variables);
    let lines = BufReader::new(process.0.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.ends_with("weight set")));
    assert!(near.run("tc class show dev e0").contains("4548:8"));
    // While it lives, a second process is refused.
    let second = near.within(|| TrafficEnforcer::open(settings("e0"), &Hierarchies::detect().unwrap()));
    assert!(matches!(second, Err(TrafficError::Taken { .. })), "{second:?}");
    let second = near.within(|| TrafficEnforcer::remove_leftovers("e0"));
    assert!(matches!(second, Err(TrafficError::Taken { .. })), "{second:?}");
    process.kill();
    // The kernel removed the rules; the queueing discipline without rules treats all packets alike.
    assert_eq!(near.run("nft list ruleset"), "");
    assert!(near.run("tc class show dev e0").contains("4548:8"));
    near.within(|| TrafficEnforcer::remove_leftovers("e0")).unwrap();
    near.within(|| TrafficEnforcer::remove_leftovers("e0")).unwrap();
    near.within(|| TrafficEnforcer::remove_leftovers("e9")).unwrap();
    assert_eq!(near.run("tc qdisc show"), before);
}

#[test]
fn leftovers_are_removed_where_another_device_is_configured_now() {
    or_skip!();
    let (near, _far) = cable();
    near.run("ip link add e5 type veth peer name e6");
    let before = near.run("tc qdisc show");
    near.run("tc qdisc add dev e5 root handle 4548: htb default 2");
    let groups = Groups::new(&["a"]);
    let mut traffic = open(&near, "e0");
    near.within(|| {
        admit(&mut traffic, &[group(&groups.path("a"))]);
        set_weights(&mut traffic, &[2.0]);
        let saved = SavedState([("device".to_owned(), "e5".to_owned())].into());
        // Of a group that no longer runs: the present device stays divided.
        traffic.restore(&group("b"), &saved).unwrap();
        assert!(!near.run("tc qdisc show dev e5").contains("4548"));
        assert!(near.run("tc qdisc show dev e0").contains("4548"));
        traffic.restore(&group("b"), &saved).unwrap();
        traffic.restore(&group(&groups.path("a")), &saved).unwrap();
    });
    assert_eq!(near.run("tc qdisc show"), before);
}

#[test]
fn leftovers_are_removed_where_no_device_is_configured_any_more() {
    or_skip!();
    let (near, _far) = cable();
    let before = near.run("tc qdisc show");
    near.run("tc qdisc add dev e0 root handle 4548: htb default 2");
    let saved = [("htb/device", "e0"), ("htb/queue", "noqueue 0:")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    let mut all = CompositeEnforcer::new().with(GroupFilter::All, Box::new(TrafficLeftovers));
    near.within(|| all.restore(&group("a"), &SavedState(saved.into())).unwrap());
    assert_eq!(near.run("tc qdisc show"), before);
}
