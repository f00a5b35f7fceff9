//! Combining several sources, and the groups that are never workloads.
#![allow(clippy::unwrap_used)]

mod common;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::{Machine, lines, warnings};
use evenhand_agent::discovery::{
    Discovery, DiscoveryError, DiscoveryWarning, ExclusionReason, RunningWorkload, WorkloadSource,
};
use evenhand_enforcers::cgroups::{Group, ProtectedCgroups};
use proptest::prelude::*;

fn pattern(pattern: &str, owner: &str) -> String {
    format!("[[guests]]\nfrom = 'pattern'\npattern = '{pattern}'\nowner = '{owner}'\n")
}

#[test]
fn the_first_source_and_the_outer_group_take_precedence() {
    let machine = Machine::unified();
    for group in ["a/x", "a-b", "b/y", "b/z"] {
        machine.group(group);
    }
    let text = [pattern("b/[yz]", "first"), pattern("a|b/.", "second"), pattern("a/x|a-b", "third")].concat();
    let mut discovery = machine.discovery(&text);
    let seen = discovery.refresh();
    assert_eq!(lines(seen), ["a second a", "a-b third a-b", "b/y first y", "b/z first z"]);
    let nested = DiscoveryWarning::Excluded {
        source: (2, "pattern".into()),
        reason: ExclusionReason::Nested,
        count: 1,
        first: "a/x".into(),
    };
    assert_eq!(seen.warnings, [nested]);
    assert_eq!(
        warnings(seen),
        ["source 3 (pattern): \"a/x\" excluded: part of another workload, which gets the weight"]
    );
    // The warning is repeated in each snapshot; with the outer group, all groups within it disappear.
    assert_eq!(discovery.refresh().warnings.len(), 1);
    machine.remove("a");
    machine.group("a-b/x");
    assert_eq!(discovery.refresh().workloads.len(), 3);
    assert!(discovery.snapshot().warnings.is_empty());
}

#[test]
fn groups_outside_of_the_one_to_work_below_are_counted_and_left_alone() {
    let machine = Machine::unified();
    ["hE/a/x", "hE/ab", "hE/b"].into_iter().for_each(|group| machine.group(group));
    let mut discovery = machine.discovery(&[pattern("hE/a|hE/ab|hE/b", "x"), pattern("hE/a/x", "x")].concat());
    assert_eq!(lines(discovery.refresh()), ["hE/a x a", "hE/ab x ab", "hE/b x b"]);
    // Neither the group itself, whose weight is relative to its siblings, nor one whose name only begins like it.
    discovery.limit_to("hE/a");
    assert_eq!(lines(discovery.refresh()), ["hE/a/x x x"]);
    assert_eq!(
        warnings(discovery.snapshot()),
        ["source 1 (pattern): 3 groups such as \"hE/a\" excluded: outside of the group that [node] under names"]
    );
    discovery.limit_to("");
    assert_eq!(discovery.refresh().workloads.len(), 3);
}

#[test]
fn a_table_that_others_may_write_is_not_used_where_only_trusted_files_are() {
    use std::os::unix::fs::PermissionsExt;

    let machine = Machine::unified();
    ["a", "b"].into_iter().for_each(|group| machine.group(group));
    let file = machine.write("t", "a x\n");
    let mode = |mode| std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
    mode(0o644);
    let mut discovery = machine.discovery(&format!("[[guests]]\nfrom = 'table'\nfile = {file:?}\n"));
    discovery.use_trusted_files_only();
    assert_eq!(discovery.files(), [&*file]);
    assert_eq!(lines(discovery.refresh()), ["a x a"]);
    machine.write("t", "a x\nb y\n");
    mode(0o666);
    assert_eq!(lines(discovery.refresh()), ["a x a"]);
    let why = warnings(discovery.snapshot()).concat();
    assert!(why.contains("users other than its owner may write it") && why.contains("found before are kept"), "{why}");
    mode(0o600);
    assert_eq!(lines(discovery.refresh()), ["a x a", "b y b"]);
}

#[test]
fn a_node_without_workloads_says_where_each_source_looked() {
    let machine = Machine::unified();
    // `docker` is another name of the source of containers.
    let containers =
        "[[guests]]\nfrom = 'docker'\ndocker = '/nonexistent/docker.sock'\npodman = '/nonexistent/podman'\n";
    let mut discovery = machine.discovery(&[containers, &pattern("tenants/.", "x")].concat());
    assert!(discovery.refresh().workloads.is_empty());
    let [of_containers, of_pattern] = &discovery.why_nothing()[..] else { panic!("a sentence for each source") };
    let parts = [
        "docker: no control group docker-ID.scope",
        "no socket /nonexistent/docker.sock",
        "no socket /nonexistent/podman",
    ];
    assert!(parts.iter().all(|part| of_containers.contains(part)), "{of_containers}");
    assert!(
        of_pattern.starts_with("pattern: no control group below") && of_pattern.contains("tenants/."),
        "{of_pattern}"
    );
    machine.group("tenants/a");
    assert_eq!(discovery.refresh().workloads.len(), 1);
    assert!(discovery.why_nothing().is_empty());
}

#[test]
fn containers_of_workloads_and_protected_groups_are_excluded() {
    let machine = Machine::unified();
    for group in ["system.slice/agent.service/sub", "user.slice", "tenants.slice/a", "init.scope"] {
        machine.group(group);
    }
    let text = pattern("[^/]*|system.slice/[^/]*|system.slice/agent.service/sub", "x");
    let mut discovery = machine.discovery_in(&text, "0::/system.slice/agent.service\n").unwrap();
    assert_eq!(lines(discovery.refresh()), ["tenants.slice x tenants.slice"]);
    assert_eq!(
        warnings(discovery.snapshot()),
        ["source 1 (pattern): 3 groups such as \"init.scope\" excluded: a group that contains workloads of all users"]
    );

    // A source that lists such groups.
    let file = machine.write("t", "system.slice/agent.service x\nsystem.slice/agent.service/sub x\nsystem.slice x\n");
    let text = format!("[[guests]]\nfrom = 'table'\nfile = {file:?}\n");
    let mut discovery = machine.discovery_in(&text, "7:cpu:/\n0::/system.slice/agent.service\n").unwrap();
    assert_eq!(lines(discovery.refresh()), ["system.slice/agent.service/sub x sub"]);
    assert_eq!(
        warnings(discovery.snapshot()),
        [
            "source 1 (table): \"system.slice\" excluded: a group that contains workloads of all users",
            "source 1 (table): \"system.slice/agent.service\" excluded: this process itself runs there",
        ]
    );
}

/// Returns these lists in turn; `None` is an error.
struct ScriptedSource(Vec<Option<Vec<Arc<RunningWorkload>>>>);

impl WorkloadSource for ScriptedSource {
    fn list(&mut self) -> Result<Vec<Arc<RunningWorkload>>, DiscoveryError> {
        let failed = || DiscoveryError::NoAnswer { source_name: "it".into(), why: "no".into() };
        self.0.remove(0).ok_or_else(failed)
    }
}

fn workload(path: &str, identity: u64, owner: &str) -> Arc<RunningWorkload> {
    let group = Group { path: path.into(), ..Group::default() };
    Arc::new(RunningWorkload {
        name: path.into(),
        owner: owner.into(),
        group,
        identity,
        processors: None,
        memory_bytes: None,
    })
}

#[test]
fn the_workloads_of_a_source_that_fails_are_kept() {
    let scripted = ScriptedSource(vec![
        None,
        Some(vec![workload("a", 1, "x"), workload("b", 1, "x")]),
        None,
        Some(vec![workload("a", 2, "x"), workload("c", 1, "y")]),
    ]);
    let mut discovery = Discovery::new(
        [("scripted".to_owned(), Box::new(scripted) as Box<dyn WorkloadSource>)],
        ProtectedCgroups::default(),
    );
    assert!(discovery.refresh().workloads.is_empty());
    assert_eq!(warnings(discovery.snapshot()), ["source 1 (scripted): it: no; the workloads found before are kept"]);
    assert_eq!(discovery.refresh().added, [0, 1]);
    let seen = discovery.refresh();
    assert_eq!(
        (seen.workloads.len(), seen.added.len() + seen.removed.len() + seen.changed.len(), seen.warnings.len()),
        (2, 0, 1)
    );
    let seen = discovery.refresh();
    let removed: Vec<_> = seen.removed.iter().map(|g| (g.group.path.as_str(), g.identity)).collect();
    assert_eq!((removed, seen.added.as_slice()), (vec![("a", 1), ("b", 1)], &[0, 1][..]));
}

#[test]
fn invalid_paths_are_excluded() {
    let paths = ["", "/a", "a/../b", "a\nb", "c"];
    let scripted = ScriptedSource(vec![Some(paths.map(|path| workload(path, 1, "x")).into())]);
    let mut discovery = Discovery::new(
        [("scripted".to_owned(), Box::new(scripted) as Box<dyn WorkloadSource>)],
        ProtectedCgroups::default(),
    );
    assert_eq!(lines(discovery.refresh()), ["c x c"]);
    assert_eq!(
        warnings(discovery.snapshot()),
        [
            "source 1 (scripted): 3 groups such as \"/a\" excluded: not the path of a group below the root",
            "source 1 (scripted): \"\" excluded: a group that contains workloads of all users",
        ]
    );
}

#[test]
fn malicious_names_do_no_harm() {
    let machine = Machine::unified();
    let long = "l".repeat(255);
    for name in [&long, "tab\there", "\u{1b}[2J", "..a", "sp ace", "\u{202e}"] {
        machine.group(&format!("t/{name}"));
    }
    // Not UTF-8, so that no file or unit can name it; and a newline, which the kernel rejects.
    std::fs::create_dir(machine.root().join("t").join(OsStr::from_bytes(b"\xff\xfe"))).unwrap();
    machine.group("t/new\nline");
    let mut discovery = machine.discovery(&pattern("(?s)t/.*", "x"));
    assert_eq!(discovery.refresh().workloads.len(), 6);
    assert_eq!(
        warnings(discovery.snapshot()),
        ["source 1 (pattern): \"t/new\\nline\" excluded: not the path of a group below the root"]
    );
}

#[test]
fn errors_in_the_configuration_have_a_position() {
    let machine = Machine::unified();
    let error = |text: &str| machine.try_discovery(text).err().unwrap().lines().next().unwrap().to_owned();
    assert_eq!(
        error("[[guests]]\nfrom = 'libvrt'\n"),
        "agent.toml:2:8: from: found \"libvrt\", expected one of: user-slices, libvirt, slurm, containers, pattern, table; did you mean \"libvirt\"?"
    );
    assert!(error("[[guests]]\n").contains("agent.toml:1:1: guests: found no from"));
    assert!(
        error("[[guests]]\nfrom = 'libvirt'\nowner = ''\n")
            .contains("agent.toml:3:9: owner: found \"\", expected nova")
    );
    assert!(error("[[guests]]\nfrom = 'libvirt'\nwithin = ['/a']\n").contains("agent.toml:3:11: within: found \"/a\""));
    assert!(error("[[guests]]\nfrom = 'slurm'\nunits = true\n").contains("agent.toml:3:1: unknown field \"units\", expected one of: from, unit, owners, processors, memory; did you mean \"unit\"?"));
    assert!(
        error("[[guests]]\nfrom = 'user-slices'\nleast_uid = -1\n")
            .contains("agent.toml:3:13: least_uid: expected the number of a user")
    );
    assert!(
        error("[[guests]]\nfrom = 'pattern'\npattern = 'a('\n")
            .contains("agent.toml:3:11: pattern: found \"a(\", expected a regular expression")
    );
    assert!(
        error("[[guests]]\nfrom = 'pattern'\npattern = 'a'\n")
            .contains("agent.toml:3:11: pattern: found no owner of the groups")
    );
    assert!(
        error("[[guests]]\nfrom = 'containers'\nlabel = ''\n")
            .contains("agent.toml:3:9: label: found \"\", expected the name of a label")
    );
    assert!(
        error("[[guests]]\nfrom = 'table'\nfile = 'no-such-file'\n")
            .starts_with("agent.toml:3:8: file: no-such-file: No such file")
    );
    assert!(
        error("[[guests]]\nfrom = 'user-slices'\nowners = 'no-such-file'\n")
            .starts_with("agent.toml:3:10: owners: no-such-file: No such file")
    );
    assert!(
        error("[[guests]]\nfrom = 'slurm'\nmemory = 0.5\n")
            .contains("agent.toml:3:10: memory: found 0.5, expected bytes")
    );
}

#[test]
fn without_control_groups_there_is_a_warning() {
    let mut machine = Machine::unified();
    machine.hierarchies = evenhand_enforcers::cgroups::Hierarchies::default();
    let mut discovery = machine.discovery("[[guests]]\nfrom = 'user-slices'\n");
    assert_eq!(warnings(discovery.refresh()), ["no control groups are mounted: no workload is found"]);
}

#[test]
fn ten_thousand_users_are_found() {
    let machine = Machine::large();
    for uid in 0..10_000_u64 {
        machine.group(&format!("user.slice/user-{}.slice", 3_000_000_000 + uid));
    }
    let mut discovery = machine.discovery("[[guests]]\nfrom = 'user-slices'\n");
    assert_eq!(discovery.refresh().added.len(), 10_000);
    machine.remove("user.slice/user-3000000007.slice");
    machine.remove("user.slice/user-3000000009.slice");
    machine.group("user.slice/user-3000010000.slice");
    // The file system may reuse the inode number of a removed directory, so none is created again.
    let seen = discovery.refresh();
    assert_eq!((seen.workloads.len(), seen.added.as_slice(), seen.removed.len()), (9_999, &[9_998][..], 2));
    assert!(seen.workloads.is_sorted_by(|a, b| a.group.path < b.group.path));
}

#[test]
fn groups_may_come_and_go_during_a_scan() {
    let machine = Machine::large();
    machine.group("t/stays");
    let root = machine.root().to_owned();
    let over = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&over);
    let maker = std::thread::spawn(move || {
        let mut made = 0_u32;
        while !stop.load(Ordering::Relaxed) {
            let path = root.join(format!("t/{}/x/y", made % 7));
            std::fs::create_dir_all(&path).unwrap();
            std::fs::remove_dir_all(root.join(format!("t/{}", (made + 3) % 7))).unwrap_or(());
            made += 1;
        }
        made
    });
    let mut discovery = machine.discovery(&pattern("t/stays|t/./x/y", "x"));
    for _ in 0..2000 {
        let seen = discovery.refresh();
        assert!(seen.warnings.is_empty(), "{:?}", seen.warnings);
        assert!(seen.workloads.iter().any(|w| w.name == "stays") && seen.workloads.len() <= 8);
    }
    over.store(true, Ordering::Relaxed);
    assert!(maker.join().unwrap() > 0);
}

/// A simple reference model: of all groups found, in the order of sources, those that are not within another.
fn reference_model(found: &[(usize, String)]) -> Vec<(usize, String)> {
    let mut kept: Vec<(usize, String)> = Vec::new();
    for (rule, path) in found {
        let outer = found.iter().any(|(_, other)| path.starts_with(&format!("{other}/")));
        if !outer && !kept.iter().any(|(_, other)| other == path) {
            kept.push((*rule, path.clone()));
        }
    }
    kept.sort_by(|a, b| a.1.cmp(&b.1));
    kept
}

proptest! {
    #[test]
    fn each_group_is_found_once_and_none_within_another(rules in proptest::collection::vec(proptest::collection::btree_set("[ab-](/[ab-]){0,3}", 0..6), 1..4)) {
        let found: Vec<(usize, String)> = rules.iter().enumerate().flat_map(|(n, r)| r.iter().map(move |p| (n, p.clone()))).collect();
        let sources = rules.iter().enumerate().map(|(n, paths)| {
            let scripted = ScriptedSource(vec![Some(paths.iter().map(|p| workload(p, 1, &n.to_string())).collect())]);
            (n.to_string(), Box::new(scripted) as Box<dyn WorkloadSource>)
        });
        let mut discovery = Discovery::new(sources, ProtectedCgroups::default());
        let seen: Vec<(usize, String)> = discovery.refresh().workloads.iter().map(|g| (g.owner.parse().unwrap(), g.group.path.clone())).collect();
        prop_assert_eq!(seen, reference_model(&found));
    }

    #[test]
    fn changes_lead_from_one_snapshot_to_the_next(looks in proptest::collection::vec(proptest::collection::btree_map("[a-e]", (0..2_u64, 0..2_u8), 0..5), 2..6)) {
        let of = |look: &std::collections::BTreeMap<String, (u64, u8)>| Some(look.iter().map(|(p, (i, o))| workload(p, *i, &o.to_string())).collect());
        let scripted = ScriptedSource(looks.iter().map(of).collect());
        let mut discovery = Discovery::new([("scripted".to_owned(), Box::new(scripted) as Box<dyn WorkloadSource>)], ProtectedCgroups::default());
        let mut here: Vec<Arc<RunningWorkload>> = Vec::new();
        for _ in &looks {
            let seen = discovery.refresh();
            here.retain(|g| !seen.removed.contains(g));
            for at in &seen.changed {
                let now = &seen.workloads[*at];
                let before = here.iter_mut().find(|g| g.group.path == now.group.path).unwrap();
                prop_assert!(before != now && before.identity == now.identity);
                *before = now.clone();
            }
            here.extend(seen.added.iter().map(|at| seen.workloads[*at].clone()));
            here.sort_by(|a, b| a.group.path.cmp(&b.group.path));
            prop_assert_eq!(&here, &seen.workloads);
        }
    }
}
