//! Several sources as one, and what is never a guest.
#![allow(clippy::unwrap_used)]

mod common;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::{Machine, lines, remarks};
use evenhand_agent::discovery::{Guest, GuestError, Guests, Own, Refusal, Remark, Source};
use evenhand_enforcers::cgroups::Group;
use proptest::prelude::*;

fn pattern(pattern: &str, owner: &str) -> String {
    format!("[[guests]]\nfrom = 'pattern'\npattern = '{pattern}'\nowner = '{owner}'\n")
}

#[test]
fn the_first_rule_wins_and_the_outer_group() {
    let machine = Machine::unified();
    for group in ["a/x", "a-b", "b/y", "b/z"] {
        machine.group(group);
    }
    let text = [pattern("b/[yz]", "first"), pattern("a|b/.", "second"), pattern("a/x|a-b", "third")].concat();
    let mut guests = machine.guests(&text);
    let seen = guests.look();
    assert_eq!(lines(seen), ["a second a", "a-b third a-b", "b/y first y", "b/z first z"]);
    let nested = Remark::Refused { source: (2, "pattern".into()), why: Refusal::Nested, count: 1, first: "a/x".into() };
    assert_eq!(seen.remarks, [nested]);
    assert_eq!(
        remarks(seen),
        ["source 3 (pattern): \"a/x\" left alone: within another guest, which is the one that is weighed"]
    );
    // The same at each look; when the outer one is gone, so is everything within.
    assert_eq!(guests.look().remarks.len(), 1);
    machine.remove("a");
    machine.group("a-b/x");
    assert_eq!(guests.look().guests.len(), 3);
    assert!(guests.seen().remarks.is_empty());
}

#[test]
fn neither_wholes_nor_ones_own() {
    let machine = Machine::unified();
    for group in ["system.slice/agent.service/sub", "user.slice", "tenants.slice/a", "init.scope"] {
        machine.group(group);
    }
    let text = pattern("[^/]*|system.slice/[^/]*|system.slice/agent.service/sub", "x");
    let mut guests = machine.guests_around(&text, "0::/system.slice/agent.service\n").unwrap();
    assert_eq!(lines(guests.look()), ["tenants.slice x tenants.slice"]);
    let said = remarks(guests.seen());
    assert_eq!(
        said,
        ["source 1 (pattern): 3 groups such as \"init.scope\" left alone: a whole of which guests are parts"]
    );

    // A source that finds what it should not, such as a table.
    let file = machine.write("t", "system.slice/agent.service x\nsystem.slice/agent.service/sub x\nsystem.slice x\n");
    let text = format!("[[guests]]\nfrom = 'table'\nfile = {file:?}\n");
    let mut guests = machine.guests_around(&text, "7:cpu:/\n0::/system.slice/agent.service\n").unwrap();
    assert_eq!(lines(guests.look()), ["system.slice/agent.service/sub x sub"]);
    assert_eq!(
        remarks(guests.seen()),
        [
            "source 1 (table): \"system.slice\" left alone: a whole of which guests are parts",
            "source 1 (table): \"system.slice/agent.service\" left alone: this process itself runs there",
        ]
    );
}

/// Says what it was told to.
struct Told(Vec<Option<Vec<Arc<Guest>>>>);

impl Source for Told {
    fn look(&mut self) -> Result<Vec<Arc<Guest>>, GuestError> {
        let silent = || GuestError::NoAnswer { whom: "it".into(), why: "no".into() };
        self.0.remove(0).ok_or_else(silent)
    }
}

fn guest(path: &str, identity: u64, owner: &str) -> Arc<Guest> {
    let group = Group { path: path.into(), ..Group::default() };
    Arc::new(Guest { name: path.into(), owner: owner.into(), group, identity, processors: None, memory_bytes: None })
}

#[test]
fn a_source_that_fails_keeps_what_it_found() {
    let told = Told(vec![
        None,
        Some(vec![guest("a", 1, "x"), guest("b", 1, "x")]),
        None,
        Some(vec![guest("a", 2, "x"), guest("c", 1, "y")]),
    ]);
    let mut guests = Guests::new([("told".to_owned(), Box::new(told) as Box<dyn Source>)], Own::default());
    assert!(guests.look().guests.is_empty());
    assert_eq!(remarks(guests.seen()), ["source 1 (told): it: no; what it found before stays"]);
    assert_eq!(guests.look().added, [0, 1]);
    let seen = guests.look();
    assert_eq!(
        (seen.guests.len(), seen.added.len() + seen.removed.len() + seen.changed.len(), seen.remarks.len()),
        (2, 0, 1)
    );
    let seen = guests.look();
    let removed: Vec<_> = seen.removed.iter().map(|g| (g.group.path.as_str(), g.identity)).collect();
    assert_eq!((removed, seen.added.as_slice()), (vec![("a", 1), ("b", 1)], &[0, 1][..]));
}

#[test]
fn paths_that_are_none_are_refused() {
    let paths = ["", "/a", "a/../b", "a\nb", "c"];
    let told = Told(vec![Some(paths.map(|path| guest(path, 1, "x")).into())]);
    let mut guests = Guests::new([("told".to_owned(), Box::new(told) as Box<dyn Source>)], Own::default());
    assert_eq!(lines(guests.look()), ["c x c"]);
    assert_eq!(
        remarks(guests.seen()),
        [
            "source 1 (told): 3 groups such as \"/a\" left alone: not the path of a group below the root",
            "source 1 (told): \"\" left alone: a whole of which guests are parts",
        ]
    );
}

#[test]
fn names_that_are_meant_to_hurt() {
    let machine = Machine::unified();
    let long = "l".repeat(255);
    for name in [&long, "tab\there", "\u{1b}[2J", "..a", "sp ace", "\u{202e}"] {
        machine.group(&format!("t/{name}"));
    }
    // Not UTF-8, so no name that any file or unit could say; and a newline, which the kernel refuses.
    std::fs::create_dir(machine.root().join("t").join(OsStr::from_bytes(b"\xff\xfe"))).unwrap();
    machine.group("t/new\nline");
    let mut guests = machine.guests(&pattern("(?s)t/.*", "x"));
    assert_eq!(guests.look().guests.len(), 6);
    assert_eq!(
        remarks(guests.seen()),
        ["source 1 (pattern): \"t/new\\nline\" left alone: not the path of a group below the root"]
    );
}

#[test]
fn what_is_wrong_in_the_configuration_has_a_place() {
    let machine = Machine::unified();
    let said = |text: &str| machine.try_guests(text).err().unwrap().lines().next().unwrap().to_owned();
    assert_eq!(
        said("[[guests]]\nfrom = 'libvrt'\n"),
        "agent.toml:2:8: from: found \"libvrt\", expected one of: user-slices, libvirt, slurm, containers, pattern, table; did you mean \"libvirt\"?"
    );
    assert!(said("[[guests]]\n").contains("agent.toml:1:1: guests: found no from"));
    assert!(
        said("[[guests]]\nfrom = 'libvirt'\nowner = ''\n").contains("agent.toml:3:9: owner: found \"\", expected nova")
    );
    assert!(said("[[guests]]\nfrom = 'libvirt'\nwithin = ['/a']\n").contains("agent.toml:3:11: within: found \"/a\""));
    assert!(said("[[guests]]\nfrom = 'slurm'\nunits = true\n").contains("agent.toml:3:1: unknown field \"units\", expected one of: from, unit, owners, processors, memory; did you mean \"unit\"?"));
    assert!(
        said("[[guests]]\nfrom = 'user-slices'\nleast_uid = -1\n")
            .contains("agent.toml:3:13: least_uid: expected the number of a user")
    );
    assert!(
        said("[[guests]]\nfrom = 'pattern'\npattern = 'a('\n")
            .contains("agent.toml:3:11: pattern: found \"a(\", expected a regular expression")
    );
    assert!(
        said("[[guests]]\nfrom = 'pattern'\npattern = 'a'\n")
            .contains("agent.toml:3:11: pattern: found no word on whose the groups are")
    );
    assert!(
        said("[[guests]]\nfrom = 'containers'\nlabel = ''\n")
            .contains("agent.toml:3:9: label: found \"\", expected the name of a label")
    );
    assert!(said("[[guests]]\nfrom = 'table'\nfile = 'no-such-file'\n").starts_with("no-such-file: "));
    assert!(
        said("[[guests]]\nfrom = 'slurm'\nmemory = 0.5\n")
            .contains("agent.toml:3:10: memory: found 0.5, expected bytes")
    );
}

#[test]
fn without_control_groups_nobody_is_found_and_that_is_said() {
    let mut machine = Machine::unified();
    machine.hierarchies = evenhand_enforcers::cgroups::Hierarchies::default();
    let mut guests = machine.guests("[[guests]]\nfrom = 'user-slices'\n");
    assert_eq!(remarks(guests.look()), ["no control groups are mounted: nobody is found"]);
}

#[test]
fn ten_thousand_users() {
    let machine = Machine::large();
    for uid in 0..10_000_u64 {
        machine.group(&format!("user.slice/user-{}.slice", 3_000_000_000 + uid));
    }
    let mut guests = machine.guests("[[guests]]\nfrom = 'user-slices'\n");
    assert_eq!(guests.look().added.len(), 10_000);
    machine.remove("user.slice/user-3000000007.slice");
    machine.remove("user.slice/user-3000000009.slice");
    machine.group("user.slice/user-3000010000.slice");
    // Of the one that is made anew the file system may use the number again, so it is not counted on.
    let seen = guests.look();
    assert_eq!((seen.guests.len(), seen.added.as_slice(), seen.removed.len()), (9_999, &[9_998][..], 2));
    assert!(seen.guests.is_sorted_by(|a, b| a.group.path < b.group.path));
}

#[test]
fn groups_come_and_go_while_it_looks() {
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
    let mut guests = machine.guests(&pattern("t/stays|t/./x/y", "x"));
    for _ in 0..2000 {
        let seen = guests.look();
        assert!(seen.remarks.is_empty(), "{:?}", seen.remarks);
        assert!(seen.guests.iter().any(|g| g.name == "stays") && seen.guests.len() <= 8);
    }
    over.store(true, Ordering::Relaxed);
    assert!(maker.join().unwrap() > 0);
}

/// What `Guests` does, told simply: of all that is found, in order of rules, what is not within something else.
fn simply(found: &[(usize, String)]) -> Vec<(usize, String)> {
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
    fn each_group_once_and_none_within_another(rules in proptest::collection::vec(proptest::collection::btree_set("[ab-](/[ab-]){0,3}", 0..6), 1..4)) {
        let found: Vec<(usize, String)> = rules.iter().enumerate().flat_map(|(n, r)| r.iter().map(move |p| (n, p.clone()))).collect();
        let sources = rules.iter().enumerate().map(|(n, paths)| {
            let told = Told(vec![Some(paths.iter().map(|p| guest(p, 1, &n.to_string())).collect())]);
            (n.to_string(), Box::new(told) as Box<dyn Source>)
        });
        let mut guests = Guests::new(sources, Own::default());
        let seen: Vec<(usize, String)> = guests.look().guests.iter().map(|g| (g.owner.parse().unwrap(), g.group.path.clone())).collect();
        prop_assert_eq!(seen, simply(&found));
    }

    #[test]
    fn changes_lead_from_one_look_to_the_next(looks in proptest::collection::vec(proptest::collection::btree_map("[a-e]", (0..2_u64, 0..2_u8), 0..5), 2..6)) {
        let of = |look: &std::collections::BTreeMap<String, (u64, u8)>| Some(look.iter().map(|(p, (i, o))| guest(p, *i, &o.to_string())).collect());
        let told = Told(looks.iter().map(of).collect());
        let mut guests = Guests::new([("told".to_owned(), Box::new(told) as Box<dyn Source>)], Own::default());
        let mut here: Vec<Arc<Guest>> = Vec::new();
        for _ in &looks {
            let seen = guests.look();
            here.retain(|g| !seen.removed.contains(g));
            for at in &seen.changed {
                let now = &seen.guests[*at];
                let before = here.iter_mut().find(|g| g.group.path == now.group.path).unwrap();
                prop_assert!(before != now && before.identity == now.identity);
                *before = now.clone();
            }
            here.extend(seen.added.iter().map(|at| seen.guests[*at].clone()));
            here.sort_by(|a, b| a.group.path.cmp(&b.group.path));
            prop_assert_eq!(&here, &seen.guests);
        }
    }
}
