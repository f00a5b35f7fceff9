//! Checks whether this machine can divide network traffic.

use std::fs;

use crate::cgroups::Hierarchies;
use nix::sched::{CloneFlags, unshare};

use crate::traffic::netlink::Messages;
use crate::traffic::nft::{Cgroup, Transaction};
use crate::traffic::socket::{Socket, failed, refused};
use crate::traffic::{Settings, TrafficError, htb, link};

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The name of the check.
    pub name: &'static str,
    /// Whether it passed; `None`: it could not be run.
    pub passed: Option<bool>,
    /// The finding, as a sentence.
    pub message: String,
}

/// Checks whether the traffic of a device can be divided. Changes nothing that exists: what has to be tried is tried
/// in a network namespace of its own, on a thread that ends. (The kernel may load its modules for it.)
pub fn probe(settings: &Settings, hierarchies: &Hierarchies) -> Vec<Check> {
    let mut checks = vec![capability(), device(settings), speed(settings), cgroup_version(hierarchies)];
    match std::thread::spawn(try_in_namespace).join() {
        Ok(Ok(tried)) => checks.extend(tried),
        Ok(Err(why)) => checks.extend(TRIED.map(|name| Check { name, passed: None, message: why.clone() })),
        Err(_) => {}
    }
    checks
}

const TRIED: [&str; 3] = ["classes", "rules for groups", "rules for devices"];

fn check(name: &'static str, result: Result<String, String>) -> Check {
    let passed = Some(result.is_ok());
    let (Ok(message) | Err(message)) = result;
    Check { name, passed, message }
}

fn capability() -> Check {
    // CAP_NET_ADMIN is bit 12.
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = line.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(0);
    check(
        "capability",
        match bits >> 12 & 1 {
            1 => Ok("This process may configure network devices (CAP_NET_ADMIN).".into()),
            _ => Err("This process may not configure network devices: it lacks CAP_NET_ADMIN.".into()),
        },
    )
}

fn device(settings: &Settings) -> Check {
    let name = &settings.device;
    let examine = || -> Result<Result<String, String>, TrafficError> {
        let mut socket = Socket::route()?;
        let index = link::index(&mut socket, name)?;
        Ok(match htb::root(&mut socket, index)? {
            None => Ok(format!("{name} has no queueing discipline yet.")),
            Some(queue) if queue.is_default() => {
                Ok(format!("{name} has the kernel's own queueing discipline ({}).", queue.kind))
            }
            Some(queue) if queue.is_ours() => {
                Ok(format!("{name} has a queueing discipline of evenhand ({queue}), in use or left over."))
            }
            Some(queue) if settings.force => Ok(format!(
                "{name} has a queueing discipline that another program configured ({queue}); as configured, it is replaced and not restored."
            )),
            Some(queue) => Err(format!(
                "{name} has a queueing discipline that another program configured ({queue}); it is left alone."
            )),
        })
    };
    check("device", examine().unwrap_or_else(|error| Err(format!("Traffic cannot be divided: {error}."))))
}

fn speed(settings: &Settings) -> Check {
    let result = match settings.link {
        Some(link) => Ok(format!("The link carries {link} bytes per second, as configured.")),
        None => link::speed(&settings.device)
            .map(|link| format!("The link carries {link} bytes per second, as {} reports.", settings.device))
            .map_err(|error| format!("The speed of the link is unknown: {error}.")),
    };
    check("link", result)
}

fn cgroup_version(hierarchies: &Hierarchies) -> Check {
    check("groups", match &hierarchies.unified {
        Some(path) => Ok(format!("Packets are classified by the sender's cgroup v2 at {}.", path.display())),
        None => Err("Control groups of version 2 are not mounted: only workloads with a network device of their own can be classified.".into()),
    })
}

/// Runs on a thread that ends, because it leaves the network namespace of the process.
fn try_in_namespace() -> Result<Vec<Check>, String> {
    unshare(CloneFlags::CLONE_NEWNET)
        .map_err(|errno| format!("This was not tried: no network namespace can be created ({}).", errno.desc()))?;
    let [classes, groups, devices] = TRIED;
    let describe = |result: Result<(), TrafficError>, yes: &str, no: &str| {
        result.map(|()| yes.to_owned()).map_err(|error| format!("{no} ({error})."))
    };
    let queue = describe(try_queue(), "The kernel has HTB classes.", "The kernel does not create HTB classes");
    let tables = try_rules(|_, _| {});
    let rules = |made: Result<(), TrafficError>, what: &str| match &tables {
        Ok(()) => describe(
            made,
            &format!("The kernel's packet filter can match {what}."),
            &format!("The kernel's packet filter cannot match {what}"),
        ),
        Err(error) => Err(format!(
            "The kernel has no packet filter with tables owned by a process, which Linux 5.12 introduced ({error})."
        )),
    };
    Ok(vec![
        check(classes, queue),
        check(
            groups,
            rules(
                try_rules(|t, s| {
                    t.make_level(s, 1);
                    t.set_levels(s, [1].into_iter());
                    t.add_cgroup(s, Cgroup { level: 1, id: 1 }, htb::handle(8));
                }),
                "control groups",
            ),
        ),
        check(devices, rules(try_rules(|t, s| t.add_device(s, "lo", htb::handle(8))), "devices")),
    ])
}

fn try_queue() -> Result<(), TrafficError> {
    let what = "creating classes";
    let mut socket = Socket::route()?;
    let lo = link::index(&mut socket, "lo")?;
    let (mut out, first) = (Messages::default(), socket.number());
    htb::make_queue(&mut out, first, lo, false);
    let last = socket.number();
    htb::make_top(&mut out, last, lo, 1_000_000);
    out.acknowledged();
    let answers = socket.transact(&out, first, last).map_err(failed(what))?;
    answers.first().map_or(Ok(()), |(_, errno)| Err(refused(what, *errno)))
}

/// Creates tables that disappear with the socket.
fn try_rules(fill: impl FnOnce(&mut Transaction, &mut Socket)) -> Result<(), TrafficError> {
    let mut socket = Socket::filter()?;
    let mut transaction = Transaction::begin(&mut socket);
    transaction.make_tables(&mut socket);
    fill(&mut transaction, &mut socket);
    transaction.commit(&mut socket).map_err(failed("creating rules"))
}
