//! The cost of changing, reading, creating and removing classes, in a network namespace of its own.
//!
//! `cargo bench -p evenhand-enforcers --bench traffic_classes`; needs root. Times are of the whole call through the enforcer or the meter.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

#[path = "../tests/traffic_namespaces/support/mod.rs"]
#[allow(dead_code, unreachable_pub)]
mod support;

use std::time::{Duration, Instant};

use evenhand_enforcers::cgroups::{Enforcer, Group, GroupId, Hierarchies, Meter, SavedState, Targets};
use evenhand_enforcers::traffic::{Settings, TrafficEnforcer};

use support::{Groups, cable, unable};

fn timed(act: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    act();
    begun.elapsed()
}

fn main() {
    if let Some(why) = unable() {
        eprintln!("skipped: {why}");
        return;
    }
    println!(
        "{:>7} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12}",
        "groups", "make", "change", "unchanged", "read", "dismiss", "remove all"
    );
    for groups in [10, 100, 1_000, 5_000] {
        let (near, _far) = cable();
        let names: Vec<String> = (0..groups).map(|i| format!("g{i}")).collect();
        let made = Groups::new(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let settings = Settings { device: "e0".into(), link: Some(125_000_000), force: false };
        let (mut traffic, mut meter) = near.within(|| {
            let traffic = TrafficEnforcer::open(settings, &Hierarchies::detect().unwrap()).unwrap();
            let meter = traffic.meter().unwrap();
            (traffic, meter)
        });
        let ids: Vec<(GroupId, Group)> = (0..groups)
            .map(|i| (GroupId(i as u32), Group { path: made.path(&names[i]), ..Group::default() }))
            .collect();
        for (id, group) in &ids {
            Enforcer::admit(&mut traffic, *id, group).unwrap();
            meter.admit(*id, group).unwrap();
        }
        let mut changes = Vec::new();
        let mut set_weight = |traffic: &mut TrafficEnforcer, set_weightt: f64| {
            changes.clear();
            let targets = Targets { network: Some(set_weightt), ..Targets::default() };
            timed(|| {
                for (id, _) in &ids {
                    traffic.apply(*id, &targets, &mut changes).unwrap();
                }
                traffic.flush().unwrap();
            })
        };
        let make = set_weight(&mut traffic, 1.0);
        let change = (0..20).map(|i| set_weight(&mut traffic, 1.0 + f64::from(i + 1) / 16.0)).min().unwrap();
        let last = 1.0 + 20.0 / 16.0;
        let unchanged = (0..20).map(|_| set_weight(&mut traffic, last)).min().unwrap();
        let mut read_all = || {
            timed(|| {
                for (id, _) in &ids {
                    std::hint::black_box(meter.read(*id).unwrap());
                }
            })
        };
        let read = (0..20).map(|_| read_all()).min().unwrap();
        let half = groups / 2;
        let dismiss = timed(|| {
            ids[..half].iter().for_each(|(id, _)| Enforcer::dismiss(&mut traffic, *id));
            traffic.flush().unwrap();
        });
        let few = &ids[half..(half + 10).min(groups)];
        let restore =
            timed(|| few.iter().for_each(|(_, group)| traffic.restore(group, &SavedState::default()).unwrap()));
        let remove = timed(|| traffic.remove_all().unwrap());
        let each = |took: Duration, n: usize| format!("{:.2} us", took.as_secs_f64() * 1e6 / n as f64);
        println!(
            "{groups:>7} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12}   restore {}",
            each(make, groups),
            each(change, groups),
            each(unchanged, groups),
            each(read, groups),
            each(dismiss, half),
            format!("{:.1} ms", remove.as_secs_f64() * 1e3),
            each(restore, few.len()),
        );
    }
}
